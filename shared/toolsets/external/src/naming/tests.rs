use super::*;
use proptest::prelude::*;

fn named(list: &[&str]) -> BTreeMap<String, Result<ToolName, BadName>> {
    names("wiki", list.iter().copied(), &BTreeSet::new())
}

fn of(list: &[&str], name: &str) -> String {
    named(list).remove(name).unwrap().unwrap().to_string()
}

#[test]
fn a_plain_name_stays_and_a_strange_one_becomes_plain() {
    assert_eq!(of(&["search"], "search"), "mcp_wiki__search");
    assert_eq!(of(&["pages/get.v2"], "pages/get.v2"), "mcp_wiki__pages_get_v2");
    assert_eq!(of(&["söök"], "söök"), "mcp_wiki__s__k");
}

#[test]
fn the_name_that_needs_no_change_wins_and_the_others_are_told_apart() {
    let list = ["get_page", "get.page", "get/page"];
    assert_eq!(of(&list, "get_page"), "mcp_wiki__get_page");
    let (dot, slash) = (of(&list, "get.page"), of(&list, "get/page"));
    assert!(dot.starts_with("mcp_wiki__get_page_") && slash.starts_with("mcp_wiki__get_page_") && dot != slash);
}

#[test]
fn a_long_name_is_cut_and_told_apart_by_the_whole_of_it() {
    let (one, two) = (format!("{}1", "x".repeat(100)), format!("{}2", "x".repeat(100)));
    let (a, b) = (of(&[&one, &two], &one), of(&[&one, &two], &two));
    assert_eq!((a.len(), b.len()), (64, 64));
    assert_ne!(a, b);
    assert_eq!(of(&[&one], &one), a, "others in the list do not matter");
}

#[test]
fn a_name_made_to_look_like_another_takes_nothing_over() {
    let victim = "a.b";
    let list = [victim, "a_b", "a/b"];
    let ours = of(&list, victim);
    let twin = ours.strip_prefix("mcp_wiki__").unwrap();
    let named = named(&[victim, "a_b", "a/b", twin]);
    assert_eq!(named[victim], Err(BadName::Taken));
    assert_eq!(named[twin], Err(BadName::Taken));
    assert!(named["a_b"].is_ok() && named["a/b"].is_ok());
}

#[test]
fn what_is_no_name_is_refused_with_the_reason() {
    let long = "x".repeat(257);
    let named = named(&["", "a\nb", "a\u{7f}", &long, "good"]);
    assert_eq!(named[""], Err(BadName::Empty));
    assert_eq!(named["a\nb"], Err(BadName::Control));
    assert_eq!(named["a\u{7f}"], Err(BadName::Control));
    assert_eq!(named[&long], Err(BadName::Long));
    assert!(named["good"].is_ok());
}

#[test]
fn what_is_reserved_is_never_given_away() {
    let reserved = BTreeSet::from(["mcp_wiki__search".to_owned()]);
    let named = names("wiki", ["search"], &reserved);
    let ours = named["search"].as_ref().unwrap().as_str();
    assert!(ours.starts_with("mcp_wiki__search_") && !reserved.contains(ours));
}

fn a_name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c._/]{1,4}", "[a-z_.]{40,70}", "\\PC{0,80}", ".{0,300}"]
}

proptest! {
    #[test]
    fn names_are_unique_short_ours_and_the_same_in_any_order(
        mut list in prop::collection::vec(a_name(), 0..20),
        server in "[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?",
    ) {
        let reserved: BTreeSet<String> = catalog::ControlTool::ALL.iter().map(|v| v.name().to_owned()).collect();
        let forward = names(&server, list.iter().map(String::as_str), &reserved);
        list.reverse();
        let backward = names(&server, list.iter().map(String::as_str), &reserved);
        prop_assert_eq!(&forward, &backward);

        let given: Vec<&str> = forward.values().filter_map(|n| n.as_ref().ok()).map(ToolName::as_str).collect();
        let unique: BTreeSet<&str> = given.iter().copied().collect();
        prop_assert_eq!(unique.len(), given.len());
        let prefix = format!("mcp_{server}__");
        prop_assert!(given.iter().all(|n| n.len() <= 64 && n.starts_with(&prefix) && !reserved.contains(*n)));
    }
}
