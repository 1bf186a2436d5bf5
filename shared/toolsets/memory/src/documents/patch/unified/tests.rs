use super::*;
use similar::TextDiff;

const TEXT: &str = "# Failover\n\n1. Stop the writer.\n2. Promote the replica.\n3. Start the writer.\n\nDone.";

fn refused(content: &str, diff: &str) -> String {
    let failure = apply(content, diff).unwrap_err();
    assert_eq!(failure.code, crate::codes::DIFF_MISMATCH);
    failure.message
}

#[test]
fn several_hunks_apply_and_names_of_files_say_nothing() {
    let diff = "diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@ about\n-# Failover\n+# Failover of the database\n \n 1. Stop the writer.\n@@ -5,3 +5,4 @@\n 3. Start the writer.\n+4. Look at the lag.\n \n Done.\n\\ No newline at end of file\n";
    assert_eq!(
        apply(TEXT, diff).unwrap(),
        "# Failover of the database\n\n1. Stop the writer.\n2. Promote the replica.\n3. Start the writer.\n4. Look at the lag.\n\nDone."
    );
}

#[test]
fn a_hunk_may_have_moved_if_it_fits_in_one_place_only() {
    let moved = "@@ -40,2 +40,2 @@\n-2. Promote the replica.\n+2. Promote the newest replica.\n 3. Start the writer.\n";
    assert!(apply(TEXT, moved).unwrap().contains("newest"));
    let twice = "a\nx\na\nx\na";
    assert!(refused(twice, "@@ -9,1 +9,1 @@\n-x\n+y\n").contains("more than one place"));
    assert_eq!(apply(twice, "@@ -4,1 +4,1 @@\n-x\n+y\n").unwrap(), "a\nx\na\ny\na", "its own place is its place");
    assert_eq!(apply(twice, "@@ -9,3 +9,3 @@\n x\n a\n-x\n+y\n").unwrap(), "a\nx\na\ny\na");
}

#[test]
fn context_must_match_exactly_and_hunks_come_in_order() {
    assert!(refused(TEXT, "@@ -1,1 +1,1 @@\n-# failover\n+# x\n").starts_with("hunk 1 does not apply"));
    assert!(refused(TEXT, "@@ -3,1 +3,1 @@\n-1. Stop the writer. \n+x\n").contains("not in the text"));
    let backwards = "@@ -5,1 +5,1 @@\n-3. Start the writer.\n+x\n@@ -3,1 +3,1 @@\n-1. Stop the writer.\n+y\n";
    assert!(refused(TEXT, backwards).starts_with("hunk 2"));
}

#[test]
fn counts_that_lie_and_lines_of_no_kind_are_refused() {
    for (diff, why) in [
        ("", "no hunk"),
        ("just words", "no hunk"),
        ("@@ -1,2 +1,1 @@\n-# Failover\n", "ends before"),
        ("@@ -1,1 +1,1 @@\n-# Failover\n-\n+x\n", "more lines than"),
        ("@@ -1,1 +1,1 @@\n-# Failover\n*x\n", "neither blank"),
        ("@@ -x,1 +1,1 @@\n-# Failover\n+x\n", "belongs to no hunk"),
        ("@@ -0,1 +1,1 @@\n-# Failover\n+x\n", "belongs to no hunk"),
        ("@@ -1,1 +1,1 @@\n-# Failover\n+x\n--- other\n+++ other\n@@ -1 +1 @@\n-a\n+b\n", "one document"),
        ("@@ -99,0 +99,1 @@\n+x\n", "not there"),
        ("@@ -99999999999999999999,1 +1,1 @@\n-a\n+x\n", "belongs to no hunk"),
    ] {
        let message = refused(TEXT, diff);
        assert!(message.contains(why), "{diff:?}: {message}");
    }
}

#[test]
fn lines_can_be_added_without_context_where_the_header_says() {
    assert_eq!(apply("", "@@ -0,0 +1,2 @@\n+a\n+b\n").unwrap(), "a\nb");
    assert_eq!(apply("a\nb", "@@ -1,0 +2 @@\n+x\n").unwrap(), "a\nx\nb");
    assert_eq!(apply("a\nb", "@@ -2,0 +3,1 @@\n+x").unwrap(), "a\nb\nx");
    assert_eq!(apply("a\n\nb", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n").unwrap(), "a\n\nc", "an empty line is empty context");
}

#[test]
fn what_another_tool_finds_different_applies_here() {
    let mut seed = 7_u64;
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for round in 0..300 {
        let mut text = |lines: u64| (0..lines).map(|_| format!("line {}", next(6))).collect::<Vec<_>>().join("\n");
        let (old, new) = (text(1 + round % 30), text(1 + (round * 7) % 30));
        let diff = TextDiff::from_lines(&old, &new).unified_diff().context_radius(3).header("a", "b").to_string();
        if old != new {
            assert_eq!(apply(&old, &diff).unwrap(), new, "round {round}\n{diff}");
        }
    }
}

#[test]
fn a_hostile_difference_is_refused_in_linear_time() {
    let content = "\n".repeat(90_000);
    let context = " \n".repeat(30_000);
    let diff = format!("@@ -100000,30001 +1,30000 @@\n{context}-x\n");
    assert!(refused(&content, &diff).contains("not in the text"));
}
