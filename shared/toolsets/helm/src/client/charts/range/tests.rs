use super::*;

fn check(range: &str, inside: &[&str], outside: &[&str]) {
    let range = Range::parse(range).expect(range);
    for text in inside {
        assert!(range.holds(&version(text).expect(text)), "{text} is in {range}");
    }
    for text in outside {
        assert!(!range.holds(&version(text).expect(text)), "{text} is not in {range}");
    }
}

#[test]
fn a_full_version_is_that_version() {
    check("1.2.3", &["1.2.3", "v1.2.3", "1.2.3+build"], &["1.2.4", "1.2.3-rc.1", "1.3.0"]);
    check("=1.2.3", &["1.2.3"], &["1.2.4"]);
    check("v1.2.3", &["1.2.3"], &["1.2.2"]);
    check("1.2.3-rc.1", &["1.2.3-rc.1"], &["1.2.3", "1.2.3-rc.2"]);
}

#[test]
fn wildcards_and_missing_parts_leave_room() {
    for range in ["1.2", "1.2.x", "1.2.X", "1.2.*", "~1.2", "~1.2.0", "~>1.2"] {
        check(range, &["1.2.0", "1.2.99"], &["1.3.0", "1.1.9", "2.2.0", "1.2.1-rc.1", "1.3.0-0"]);
    }
    for range in ["1", "1.x", "1.*", "~1", "^1", "^1.0.0"] {
        check(range, &["1.0.0", "1.99.0"], &["2.0.0", "0.9.9", "2.0.0-alpha"]);
    }
    check("*", &["0.0.0", "9.9.9"], &["1.0.0-rc.1"]);
}

#[test]
fn a_caret_holds_the_first_number_that_is_not_zero() {
    check("^1.2.3", &["1.2.3", "1.9.0"], &["1.2.2", "2.0.0"]);
    check("^0.2.3", &["0.2.3", "0.2.9"], &["0.3.0", "0.2.2"]);
    check("^0.0.3", &["0.0.3"], &["0.0.4", "0.0.2"]);
    check("^0.0", &["0.0.0", "0.0.9"], &["0.1.0"]);
    check("^0", &["0.0.0", "0.9.9"], &["1.0.0"]);
}

#[test]
fn comparisons_join_and_alternate() {
    check(">=1.2, <2", &["1.2.0", "1.9.9"], &["1.1.9", "2.0.0"]);
    check(">= 1.2 < 2", &["1.2.0", "1.9.9"], &["1.1.9", "2.0.0"]);
    check(">1.2", &["1.3.0"], &["1.2.9", "1.2.0"]);
    check(">1.2.3", &["1.2.4"], &["1.2.3"]);
    check("<=1.2", &["1.2.99", "0.1.0"], &["1.3.0"]);
    check("<1.2", &["1.1.9"], &["1.2.0"]);
    check("1.2 - 1.4", &["1.2.0", "1.4.9"], &["1.1.9", "1.5.0"]);
    check("1.2.0 - 1.4.5", &["1.4.5"], &["1.4.6"]);
    check("1.0.0 || ^2.1", &["1.0.0", "2.5.0"], &["1.0.1", "2.0.0", "3.0.0"]);
}

#[test]
fn early_versions_fit_only_what_names_one() {
    check(">=1.2.0-0", &["1.2.0-rc.1", "1.2.0", "1.3.0-beta"], &["1.1.0"]);
    check(">=1.2.0", &["1.2.0"], &["1.3.0-beta"]);
    check("~1.2.3-beta.1", &["1.2.3-beta.2", "1.2.3", "1.2.9"], &["1.3.0-alpha", "1.2.3-alpha"]);
    check(">=1.2.0-0 <2", &["1.2.0"], &["1.2.0-rc.1"]);
}

#[test]
fn ghsa_wmg3_what_means_nothing_is_refused() {
    let long = "1".repeat(65);
    for bad in [
        "",
        " ",
        ",",
        "||",
        "1.2.3 ||",
        "|",
        "latest",
        "1.2.3.4",
        "1.x.3",
        "a.b.c",
        "=",
        ">=",
        "<*",
        "--version=1",
        "-1",
        "--post-renderer=x",
        "1.2.3;id",
        "1.2.3\n",
        "$(id)",
        "../1.2.3",
        "1.2.3/../x",
        "1.2.3_x",
        "01.2.3-",
        "1.2.3-",
        "99999999999999999999.0.0",
        "1..2",
        ".",
        "1.",
        "!=1.2.3",
        "^^1",
        "1.2.3 - ",
        &long,
    ] {
        assert_eq!(Range::parse(bad), None, "{bad:?}");
    }
}

#[test]
fn the_best_is_the_exact_spelling_or_the_highest_that_fits() {
    let all = ["1.0.0", "v1.10.0", "1.9.0", "2.0.0-rc.1", "not a version", "1.9.0+x"];
    let best = |range: &str| Range::parse(range).unwrap().best(&all, |text| text).copied();

    assert_eq!(best("*"), Some("v1.10.0"));
    assert_eq!(best("<1.10.0"), Some("1.9.0+x"));
    assert_eq!(best("1.9.0"), Some("1.9.0"), "exactly as written");
    assert_eq!(best(">=2.0.0-0"), Some("2.0.0-rc.1"));
    assert_eq!(best("3"), None);
    assert_eq!(Range::newest().best(&["2.0.0-rc.1"], |text| text), None);
}

#[test]
fn a_single_version_is_known_as_one() {
    assert_eq!(Range::parse("1.2.3-rc.1+b").unwrap().exact().map(|v| v.to_string()).as_deref(), Some("1.2.3-rc.1+b"));
    assert!(Range::parse("v1.2.3").unwrap().exact().is_some());
    assert!(Range::parse("1.2").unwrap().exact().is_none());
    assert!(Range::parse("=1.2.3").unwrap().exact().is_none());
}
