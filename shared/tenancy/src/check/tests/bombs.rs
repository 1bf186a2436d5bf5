//! Texts made to exhaust a reader: each ends early, with the place where reading stopped.

use super::{KNOWN, codes};
use crate::parse;
use crate::yaml::MOST_BYTES;

/// Code, line and column of the first problem.
fn ends(text: &str) -> (&'static str, u32, u32) {
    let problem = parse("acme.yaml", text, &KNOWN).expect_err("a bomb").remove(0);
    (problem.code, problem.line, problem.column)
}

#[test]
fn yaml_bombs_end_within_budget() {
    let laughs = "tenant: acme\na: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: &d [*c, *c]\n";
    assert_eq!(ends(laughs), ("unknown_key", 2, 1));
    assert_eq!(codes(laughs).iter().filter(|code| **code == "yaml_alias").count(), 10);

    let many_aliases = format!("tenant: &a acme\nmode: [{}]", "*a,".repeat(80_000));
    assert_eq!(ends(&many_aliases), ("yaml_alias", 1, 12));
    assert_eq!(codes(&many_aliases).len(), 100);
    assert_eq!(ends(&format!("a: &a 1\nb: [{}]", "*a,".repeat(1_000_000))).0, "too_large");

    assert_eq!(ends(&"#".repeat(10 << 20)), ("too_large", 1, 262_145));
    assert_eq!(ends(&"a\n".repeat(5 << 20)), ("too_large", 131_073, 1));
    assert_eq!(ends(&"ä".repeat(MOST_BYTES)).0, "too_large");

    assert_eq!(ends("limits:\n\tresult_bytes: 5000"), ("yaml_syntax", 2, 2));
    assert_eq!(ends("tenant: acme\ntenant: acme"), ("duplicate_key", 2, 1));
    assert_eq!(ends("tenant: no"), ("ambiguous_text", 1, 9));
    assert_eq!(ends("tenant: on"), ("ambiguous_text", 1, 9));
    assert_eq!(ends("tenant: !!python/object:os.system [id]"), ("yaml_tag", 1, 9));
}

#[test]
fn nesting_ends_at_its_limit() {
    assert_eq!(ends(&format!("tenant: {}", "[".repeat(100_000))).0, "too_deep");
    assert_eq!(ends(&format!("tenant: {}", "{a: ".repeat(50_000))).0, "too_deep");
    assert_eq!(ends(&"- ".repeat(100_000)).0, "too_deep");
    let steps: String = (0..500).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert_eq!(ends(&steps).0, "too_deep");
}

#[test]
fn the_number_of_values_and_of_keys_is_bounded() {
    let values = format!("tenant: acme\ndefault_toolsets: [{}]", "'',".repeat(60_000));
    assert_eq!(codes(&values), ["too_many_values"]);

    let keys: String = (0..30_000).map(|number| format!("k{number}: 1\n")).collect();
    assert_eq!(codes(&keys[..MOST_BYTES]), ["too_many_values"]);
}

#[test]
fn the_longest_text_that_is_looked_at_is_still_read() {
    let head = "tenant: acme\n#";
    let text = format!("{head}{}", "x".repeat(MOST_BYTES - head.len()));
    assert!(parse("acme.yaml", &text, &KNOWN).is_ok());
    assert_eq!(ends(&format!("{text}x")), ("too_large", 2, 262_132));
}

#[test]
fn parameters_are_held_to_the_same_budget() {
    let params: String = (0..7_000).map(|n| format!("  p{n}: {{ default: x }}\n")).collect();
    assert_eq!(codes(&format!("tenant: acme\nparams:\n{params}")), ["too_many_values"]);
    assert_eq!(ends(&format!("tenant: acme\nparams: {}", "[".repeat(100_000))).0, "too_deep");
    assert_eq!(ends("tenant: acme\nparams: &a [*a]").0, "yaml_alias");
}
