//! Two texts side by side, for whoever puts the second in the place of the first.

use similar::TextDiff;
use std::time::Duration;

/// How long the search for the smallest difference may take; after that a larger one is shown.
const PATIENCE: Duration = Duration::from_millis(100);

/// The difference, line by line; empty if there is none.
pub(super) fn between(before: &str, after: &str) -> String {
    let mut config = TextDiff::configure();
    config.timeout(PATIENCE);
    config.diff_lines(before, after).unified_diff().context_radius(3).to_string()
}

#[cfg(test)]
mod tests {
    use super::between;

    #[test]
    fn a_difference_names_what_goes_and_what_comes() {
        assert_eq!(between("a\n", "a\n"), "");
        let told = between("tenant: acme\nmode: read\n", "tenant: acme\nmode: write\n");
        assert!(told.contains("-mode: read\n+mode: write\n"), "{told}");
    }
}
