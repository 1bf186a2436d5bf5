//! What callers used on one day: calls, time and tokens, for each tool, toolset, principal and session.
//!
//! A day has a bounded number of rows: what does not fit any more is added up under [`OTHER`], so that nobody can fill the
//! store by inventing sessions.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The row of everything that has none of its own.
pub const OTHER: &str = "_other";
/// So many rows there are of each kind on one day, [`OTHER`] aside.
pub const MOST_ROWS: usize = 300;
/// A longer name is cut.
const LONGEST_NAME: usize = 200;

/// What was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageCount {
    /// Calls and executed runs.
    #[serde(skip_serializing_if = "is_zero")]
    pub calls: u64,
    /// Those of them that failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub errors: u64,
    /// How long they took together, in milliseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub millis: u64,
    /// The tokens of their results, estimated.
    #[serde(skip_serializing_if = "is_zero")]
    pub result_tokens: u64,
    /// Lists of tools that were handed out.
    #[serde(skip_serializing_if = "is_zero")]
    pub lists: u64,
    /// The tokens of the schemas in these lists and in the answers of `load_toolset`.
    #[serde(skip_serializing_if = "is_zero")]
    pub schema_tokens: u64,
    /// What these lists would have cost with every tool of the tenant in each.
    #[serde(skip_serializing_if = "is_zero")]
    pub whole_tokens: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl UsageCount {
    /// Adds another one.
    pub fn add(&mut self, other: &UsageCount) {
        let sum = |own: &mut u64, more: u64| *own = own.saturating_add(more);
        sum(&mut self.calls, other.calls);
        sum(&mut self.errors, other.errors);
        sum(&mut self.millis, other.millis);
        sum(&mut self.result_tokens, other.result_tokens);
        sum(&mut self.lists, other.lists);
        sum(&mut self.schema_tokens, other.schema_tokens);
        sum(&mut self.whole_tokens, other.whole_tokens);
    }

    /// What loading on demand saved against loading everything: the whole catalog in every list, less what was handed out.
    pub fn saved_tokens(&self) -> i64 {
        i64::try_from(self.whole_tokens).unwrap_or(i64::MAX) - i64::try_from(self.schema_tokens).unwrap_or(i64::MAX)
    }
}

/// By what usage is grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageGroup {
    /// By tool.
    Tool,
    /// By toolset.
    Toolset,
    /// By who asked.
    Principal,
    /// By session.
    Session,
}

/// Who used what. A list of tools belongs to no tool.
#[derive(Debug, Clone, Copy)]
pub struct UsagePlace<'a> {
    /// The tool and its toolset.
    pub tool: Option<(&'a str, &'a str)>,
    /// Who asked.
    pub principal: &'a str,
    /// In which session.
    pub session: Option<&'a str>,
}

/// The rows of one kind.
pub type UsageRows = BTreeMap<String, UsageCount>;

/// What was used in one tenant, on one day or since the last time it was written down.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageDay {
    /// All of it.
    pub total: UsageCount,
    tools: UsageRows,
    toolsets: UsageRows,
    principals: UsageRows,
    sessions: UsageRows,
}

impl UsageDay {
    /// Notes what was used.
    pub fn note(&mut self, place: UsagePlace<'_>, count: &UsageCount) {
        self.total.add(count);
        if let Some((tool, toolset)) = place.tool {
            add(&mut self.tools, tool, count);
            add(&mut self.toolsets, toolset, count);
        }
        add(&mut self.principals, place.principal, count);
        if let Some(session) = place.session {
            add(&mut self.sessions, session, count);
        }
    }

    /// Adds what another one holds.
    pub fn merge(&mut self, other: &UsageDay) {
        self.total.add(&other.total);
        let pairs = [
            (&mut self.tools, &other.tools),
            (&mut self.toolsets, &other.toolsets),
            (&mut self.principals, &other.principals),
            (&mut self.sessions, &other.sessions),
        ];
        for (own, more) in pairs {
            more.iter().for_each(|(name, count)| add(own, name, count));
        }
    }

    /// The rows of a kind.
    pub fn rows(&self, group: UsageGroup) -> &UsageRows {
        match group {
            UsageGroup::Tool => &self.tools,
            UsageGroup::Toolset => &self.toolsets,
            UsageGroup::Principal => &self.principals,
            UsageGroup::Session => &self.sessions,
        }
    }
}

/// Adds to the row of that name, or to the one for all others if there is no room for it.
fn add(rows: &mut UsageRows, name: &str, count: &UsageCount) {
    let end = (0..=LONGEST_NAME.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    let name = &name[..end];
    if let Some(row) = rows.get_mut(name) {
        return row.add(count);
    }
    let own = rows.len() - usize::from(rows.contains_key(OTHER));
    let name = if own < MOST_ROWS { name } else { OTHER };
    rows.entry(name.to_owned()).or_default().add(count);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place<'a>(tool: Option<(&'a str, &'a str)>, principal: &'a str, session: Option<&'a str>) -> UsagePlace<'a> {
        UsagePlace { tool, principal, session }
    }

    #[test]
    fn usage_is_added_up_by_each_of_its_kinds() {
        let mut day = UsageDay::default();
        let call = UsageCount { calls: 1, millis: 5, result_tokens: 40, ..UsageCount::default() };
        let list = UsageCount { lists: 1, schema_tokens: 300, whole_tokens: 1_000, ..UsageCount::default() };
        day.note(place(Some(("k8s_get", "k8s")), "ana", Some("s1")), &call);
        day.note(place(Some(("k8s_logs", "k8s")), "ana", None), &call);
        day.note(place(None, "ana", Some("s1")), &list);
        assert_eq!((day.total.calls, day.total.result_tokens, day.total.saved_tokens()), (2, 80, 700));
        assert_eq!(day.rows(UsageGroup::Tool).len(), 2);
        assert_eq!(day.rows(UsageGroup::Toolset)["k8s"].calls, 2);
        assert_eq!(day.rows(UsageGroup::Principal)["ana"].lists, 1);
        assert_eq!(day.rows(UsageGroup::Session)["s1"].calls, 1);
        let mut twice = day.clone();
        twice.merge(&day);
        assert_eq!((twice.total.calls, twice.rows(UsageGroup::Session)["s1"].schema_tokens), (4, 600));
    }

    #[test]
    fn a_day_has_a_bounded_number_of_rows_and_loses_nothing() {
        let (mut day, mut more) = (UsageDay::default(), UsageDay::default());
        let call = UsageCount { calls: 1, ..UsageCount::default() };
        for number in 0..2 * MOST_ROWS {
            let name = format!("ses_{number}");
            day.note(place(None, "ana", Some(&name)), &call);
            more.note(place(None, "ana", Some(&format!("{name}_{}", "é".repeat(300)))), &call);
        }
        day.merge(&more);
        let rows = day.rows(UsageGroup::Session);
        assert_eq!(rows.len(), MOST_ROWS + 1);
        assert_eq!(rows.values().map(|row| row.calls).sum::<u64>(), day.total.calls);
        assert_eq!(rows[OTHER].calls, day.total.calls - MOST_ROWS as u64);
        assert!(rows.keys().all(|name| name.len() <= LONGEST_NAME));
    }

    #[test]
    fn loading_more_than_everything_saves_less_than_nothing() {
        let count = UsageCount { schema_tokens: 10, whole_tokens: 4, ..UsageCount::default() };
        assert_eq!(count.saved_tokens(), -6);
    }
}
