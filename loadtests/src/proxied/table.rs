//! The table of proxied calls.

use crate::versus::Comparison;

/// How many times as long as the direct call the middle proxied one may take.
pub(super) const AIM: f64 = 1.5;

/// The head of the table.
pub(super) const HEAD: &str = "\
| server | connections | direct calls/s | proxied calls/s | p50 | aim | ok? | p99 |
|---|--:|--:|--:|--:|--:|---|--:|";

/// What the columns mean.
pub(super) const FOOT: &str = "
p50, p99: how many times as long a call takes by way of the service as directly, the middle round of eleven. The way holds
the caller's token, the session, the rules, two entries in the audit_log on Redis and a second HTTP exchange.";

/// One server on that many connections.
pub(super) struct ProxiedRow<'a> {
    /// What the server does.
    pub(super) server: &'a str,
    /// Connections of the generator.
    pub(super) connections: usize,
    /// The most the middle call may take; none where it is only told.
    pub(super) aim: Option<f64>,
    /// The figures.
    pub(super) verdict: Comparison,
}

impl ProxiedRow<'_> {
    /// Whether there is an aim and it was not reached.
    pub(super) fn missed(&self) -> bool {
        self.aim.is_some_and(|aim| self.verdict.p50 > aim)
    }

    /// The row as a line of the table.
    pub(super) fn line(&self) -> String {
        let Comparison { rates: (proxied, direct), p50, p99, .. } = &self.verdict;
        let (aim, ok) = match self.aim {
            None => ("-".to_owned(), "-"),
            Some(aim) if self.missed() => (format!("x{aim:.2}"), "MISSED"),
            Some(aim) => (format!("x{aim:.2}"), "ok"),
        };
        let (server, connections) = (self.server, self.connections);
        format!("| {server} | {connections} | {direct:.0} | {proxied:.0} | x{p50:.2} | {aim} | {ok} | x{p99:.2} |")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(aim: Option<f64>, p50: f64) -> ProxiedRow<'static> {
        let verdict = Comparison { rates: (90.0, 120.4), ratio: (0.75, 0.7, 0.8), p50, p99: 2.0, cpu: None };
        ProxiedRow { server: "real", connections: 16, aim, verdict }
    }

    #[test]
    fn a_row_tells_both_rates_and_the_verdict() {
        let line = row(Some(AIM), 1.5).line();
        assert_eq!(line, "| real | 16 | 120 | 90 | x1.50 | x1.50 | ok | x2.00 |");
        assert_eq!(line.matches('|').count(), HEAD.lines().next().unwrap().matches('|').count());
    }

    #[test]
    fn more_than_the_aim_is_missed_and_without_one_nothing_is() {
        assert!(row(Some(AIM), 1.51).missed() && row(Some(AIM), 1.51).line().contains("| MISSED |"));
        assert!(!row(None, 9.0).missed() && row(None, 9.0).line().contains("| - | - |"));
    }
}
