//! What runbooks are called as tools: `runbook__<group>__<name>`, letters, digits, `_` and `-` only, at most 64, no two
//! alike.
//!
//! Pure, and the same whatever the order in a file. A name that would be given twice within one level is given to nobody:
//! both get a tail made of what they are, so that no rule about a tool can come to mean another one unnoticed. Between
//! levels the nearest keeps its name.

use domain::ToolName;
use domain::json::sha256_hex;
use std::collections::BTreeMap;

/// What the name of every runbook's tool begins with.
pub const PREFIX: &str = "runbook__";
/// The longest name.
const MOST: usize = 64;
/// How much of a digest tells two names apart.
const TAIL: usize = 10;

/// What a runbook is known by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunbookId {
    /// How far away it is declared: 0 is nearest. A tenant's file is the only level there is.
    pub level: usize,
    /// The level's folder; empty for a tenant's file.
    pub folder: String,
    /// Its group.
    pub group: String,
    /// Its name.
    pub name: String,
}

impl RunbookId {
    /// Of a tenant's file.
    pub fn of_tenant(group: &str, name: &str) -> RunbookId {
        RunbookId { level: 0, folder: String::new(), group: group.to_owned(), name: name.to_owned() }
    }

    fn plain(&self) -> String {
        format!("{PREFIX}{}__{}", sanitised(&self.group), sanitised(&self.name))
    }

    fn tailed(&self) -> String {
        let digest = sha256_hex(format!("{}\0{}\0{}", self.folder, self.group, self.name).as_bytes());
        let plain = self.plain();
        let kept = plain.get(..MOST - TAIL - 1).unwrap_or(&plain);
        format!("{kept}_{}", &digest[..TAIL])
    }
}

fn sanitised(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).collect()
}

/// The name of each runbook's tool, in the order given. `None`: there are two of that very id.
pub fn tool_names(ids: &[RunbookId]) -> Vec<Option<ToolName>> {
    let mut claims: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for id in ids {
        claims.entry(id.plain()).or_default().push(id.level);
    }
    let is_alone = |id: &RunbookId, plain: &str| {
        let levels = claims.get(plain).map(Vec::as_slice).unwrap_or_default();
        let nearest = levels.iter().min();
        nearest == Some(&id.level) && levels.iter().filter(|level| **level == id.level).count() == 1
    };
    let given: Vec<String> = ids
        .iter()
        .map(|id| match id.plain() {
            plain if plain.len() <= MOST && is_alone(id, &plain) => plain,
            _ => id.tailed(),
        })
        .collect();
    let name = |given_name: &String| {
        let once = given.iter().filter(|other| *other == given_name).count() == 1;
        ToolName::parse(given_name).ok().filter(|_| once)
    };
    given.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn names(ids: &[RunbookId]) -> Vec<String> {
        tool_names(ids).into_iter().map(|name| name.unwrap().to_string()).collect()
    }

    #[test]
    fn a_name_says_group_and_name_and_holds_nothing_else() {
        let ids = [RunbookId::of_tenant("shop", "seed-data"), RunbookId::of_tenant("shop", "Größe ändern; rm -rf /")];
        assert_eq!(names(&ids), ["runbook__shop__seed-data", "runbook__shop__Gr__e__ndern__rm_-rf__"]);
        let long = names(&[RunbookId::of_tenant("g", &"x".repeat(90))]);
        assert_eq!(long[0].len(), 64);
        assert!(long[0].starts_with("runbook__g__xxx"));
    }

    #[test]
    fn a_name_that_two_would_have_is_nobodys() {
        let (one, other) = (RunbookId::of_tenant("a", "b__c"), RunbookId::of_tenant("a__b", "c"));
        let both = names(&[one.clone(), other.clone()]);
        assert!(both.iter().all(|name| name.starts_with("runbook__a__b__c_")), "{both:?}");
        let reversed: Vec<String> = names(&[other, one.clone()]).into_iter().rev().collect();
        assert_eq!(both, reversed, "the order in the file does not matter");
        assert_eq!(names(&[one]), ["runbook__a__b__c"]);
    }

    #[test]
    fn the_nearest_level_keeps_its_name() {
        let at = |level: usize, folder: &str| RunbookId {
            level,
            folder: folder.to_owned(),
            ..RunbookId::of_tenant("shop", "migrate")
        };
        let all = names(&[at(0, "/p/web"), at(1, "/p"), at(2, "/")]);
        assert_eq!(all[0], "runbook__shop__migrate");
        assert!(all[1].starts_with("runbook__shop__migrate_") && all[2].starts_with("runbook__shop__migrate_"));
        assert_ne!(all[1], all[2]);
    }

    proptest! {
        #[test]
        fn any_ids_get_names_that_fit_and_differ(all in proptest::collection::btree_set(("\\PC{0,12}", "\\PC{0,70}"), 0..8)) {
            let ids: Vec<RunbookId> = all.iter().map(|(group, name)| RunbookId::of_tenant(group, name)).collect();
            let names = names(&ids);
            prop_assert!(names.iter().all(|name| name.len() <= 64
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))));
            prop_assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), ids.len());
        }
    }
}
