//! `/console/usage`: what the tenant used, as charts and tables.

use super::person::ConsolePerson;
use super::reply::{self, DrawnPage};
use crate::app::Gateway;
use crate::usage;
use actix_web::HttpResponse;
use actix_web::web::{Data, Query};
use console::Screen;
use console::usage::{self as page, UsageView, group_name};
use domain::usage::UsageGroup;
use domain::{Code, Failure, Moment};
use serde::Deserialize;
use store::UsageDate;

/// How many days are shown unless the address says otherwise.
const DAYS: u64 = 14;
const DAY_MILLIS: u64 = 24 * 60 * 60 * 1_000;
/// How many rows a page has; the commands and the REST API have all of them.
const MOST_ROWS: usize = 50;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UsageScreenQuery {
    from: String,
    to: String,
    by: String,
}

/// `GET /console/usage?from=&to=&by=`.
pub(super) async fn show(
    person: ConsolePerson,
    query: Query<UsageScreenQuery>,
    gateway: Data<Gateway>,
) -> HttpResponse {
    reply::screen(
        &gateway,
        &person,
        "console_usage",
        Box::pin(async {
            let to = if query.to.is_empty() { UsageDate::of(person.now).as_str().to_owned() } else { query.to.clone() };
            let from = if query.from.is_empty() { some_days_before(&to) } else { query.from.clone() };
            let by = group(&query.by)?;
            let used = usage::days(&gateway, &person.authed, Some(&from), Some(&to)).await?;
            let all = used.together();
            let rows = usage::by_cost(&all, by);
            let view = UsageView {
                from,
                to,
                by,
                days: used.days.iter().map(|(date, day)| (date.as_str().to_owned(), day.total)).collect(),
                left_out: rows.len().saturating_sub(MOST_ROWS),
                rows: rows.into_iter().take(MOST_ROWS).map(|(name, count)| (name.to_owned(), *count)).collect(),
                total: all.total,
            };
            Ok(DrawnPage::ok(Screen::Usage, "Usage", false, page::page(&view)).into())
        }),
    )
    .await
}

/// The first day of a stretch that ends with this one; a day that is none stays what it is, and is told of as such.
fn some_days_before(day: &str) -> String {
    let Some(noon) = UsageDate::parse(day).and_then(|day| Moment::parse(&format!("{}T12:00:00Z", day.as_str()))) else {
        return day.to_owned();
    };
    let first = Moment::from_millis(noon.millis().saturating_sub((DAYS - 1) * DAY_MILLIS));
    UsageDate::of(first).as_str().to_owned()
}

fn group(text: &str) -> Result<UsageGroup, Failure> {
    let all = [UsageGroup::Tool, UsageGroup::Toolset, UsageGroup::Principal, UsageGroup::Session];
    let known = all.into_iter().find(|group| group_name(*group) == text);
    let known = known.or(text.is_empty().then_some(UsageGroup::Tool));
    known.ok_or_else(|| Failure::new(Code::InvalidRequest, "usage is not counted that way"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_of_days_ends_with_the_day_that_was_asked_for() {
        assert_eq!(some_days_before("2026-11-18"), "2026-11-05");
        assert_eq!(some_days_before("2026-01-05"), "2025-12-23");
        assert_eq!(some_days_before("soon"), "soon");
        assert!(group("tool").is_ok() && group("").is_ok() && group("colour").is_err());
    }
}
