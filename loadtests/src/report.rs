//! The table, line by line as the figures come in.

use crate::versus::Comparison;

/// What is aimed at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Aim {
    /// At least this ratio of throughput.
    Ratio(f64),
    /// At most so many times as much CPU time.
    Cpu(f64),
}

/// One row: who was measured against what, and what came of it.
pub(crate) struct ReportRow {
    /// The operation.
    pub(crate) operation: &'static str,
    /// The store of the contender.
    pub(crate) store: &'static str,
    /// The floor.
    pub(crate) floor: &'static str,
    /// What is aimed at; none where the figures are only told.
    pub(crate) aim: Option<Aim>,
    /// The figures.
    pub(crate) verdict: Comparison,
}

/// The head of the table.
pub(crate) const HEAD: &str = "\
| operation | store | req/s | floor | floor req/s | ratio (rounds) | aim | ok? | p50 | p99 | cpu |
|---|---|--:|---|--:|--:|--:|---|--:|--:|--:|";

/// What the columns mean.
pub(crate) const FOOT: &str = "
ratio: throughput, contender over floor, the middle round (lowest to highest). p50, p99, cpu: how many times as long an
answer takes, and how many times as much CPU time of the server's own process it costs. Absolute figures are of this
machine and this minute; the control row shows how far equal servers seem to differ.";

impl ReportRow {
    /// Whether there is an aim and it was not reached.
    pub(crate) fn missed(&self) -> bool {
        self.aim.is_some_and(|aim| match aim {
            Aim::Ratio(least) => self.verdict.ratio.0 < least,
            Aim::Cpu(most) => self.verdict.cpu.is_none_or(|cpu| cpu > most),
        })
    }

    /// The row as a line of the table.
    pub(crate) fn line(&self) -> String {
        let Comparison { rates, ratio: (middle, low, high), p50, p99, cpu } = &self.verdict;
        let (aim, reached) = match self.aim {
            None => ("-".to_owned(), "-"),
            Some(Aim::Ratio(least)) => (format!("{least:.2}"), "ok"),
            Some(Aim::Cpu(most)) => (format!("cpu x{most:.2}"), "ok"),
        };
        let ok = if self.missed() { "MISSED" } else { reached };
        let cpu = cpu.map_or_else(|| "-".to_owned(), |cpu| format!("x{cpu:.2}"));
        format!(
            "| {} | {} | {:.0} | {} | {:.0} | {middle:.2} ({low:.2} to {high:.2}) | {aim} | {ok} | x{p50:.2} | x{p99:.2} | {cpu} |",
            self.operation, self.store, rates.0, self.floor, rates.1,
        )
    }
}

/// Prints for whoever reads the table.
#[expect(clippy::print_stdout, reason = "the door: the table is what this program is for")]
pub(crate) fn print(text: &str) {
    println!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(aim: Option<f64>, ratio: f64) -> ReportRow {
        let aim = aim.map(Aim::Ratio);
        let verdict = Comparison {
            rates: (8000.4, 10000.0),
            ratio: (ratio, ratio - 0.1, ratio + 0.1),
            p50: 1.25,
            p99: 2.0,
            cpu: Some(1.5),
        };
        ReportRow { operation: "list", store: "redis", floor: "bare", aim, verdict }
    }

    #[test]
    fn a_row_tells_figures_aim_and_verdict() {
        let line = row(Some(0.75), 0.8).line();
        assert_eq!(
            line,
            "| list | redis | 8000 | bare | 10000 | 0.80 (0.70 to 0.90) | 0.75 | ok | x1.25 | x2.00 | x1.50 |"
        );
        assert_eq!(line.matches('|').count(), HEAD.lines().next().unwrap().matches('|').count());
    }

    #[test]
    fn a_missed_aim_is_said_and_exactly_reaching_it_is_enough() {
        assert!(row(Some(0.75), 0.7499).missed());
        assert!(row(Some(0.75), 0.74).line().contains("| MISSED |"));
        assert!(!row(Some(0.75), 0.75).missed());
    }

    #[test]
    fn more_cpu_time_than_is_aimed_at_is_missed_and_so_is_what_nobody_told() {
        let row = |cpu| ReportRow {
            aim: Some(Aim::Cpu(0.25)),
            verdict: Comparison { cpu, ..row(None, 4.0).verdict },
            ..row(None, 4.0)
        };
        assert!(row(Some(0.26)).missed() && row(None).missed() && !row(Some(0.25)).missed());
        assert!(row(Some(0.25)).line().contains("| cpu x0.25 | ok |"));
    }

    #[test]
    fn without_an_aim_nothing_is_missed() {
        assert!(!row(None, 0.1).missed());
        assert!(row(None, 0.1).line().contains("| - | - |"));
    }
}
