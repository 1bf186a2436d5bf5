//! The table of peers, the same as JSON, and its chart.

use super::actor::Work;
use super::rounds::SideFigures;
use crate::figures;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};

/// The head of the table.
pub(super) const HEAD: &str = "\
| work | connections | against | ours/s | theirs/s | ratio (rounds) | aim | ok? | p50 ms | p99 ms | cpu ms | bytes | tokens |
|---|--:|---|--:|--:|--:|--:|---|--:|--:|--:|--:|--:|";

/// What the columns mean.
pub(super) const FOOT: &str = "
ratio: throughput, ours over theirs, the middle of five rounds in turns (lowest to highest). Pairs are ours / theirs.
bytes: all bodies of the answers of one piece of work. tokens: what a model reads of them (the texts of results, the tools
of a list), estimated by the service's own counter for o200k_base. cpu: of the server's own process, without Redis and
without the API server.";

/// One work against one peer.
pub(super) struct PeerRow {
    pub(super) work: Work,
    pub(super) peer: &'static str,
    pub(super) connections: usize,
    pub(super) ours: SideFigures,
    pub(super) theirs: SideFigures,
    /// The least ratio of throughput, on several connections.
    pub(super) aim: Option<f64>,
}

static HEAD_PRINTED: AtomicBool = AtomicBool::new(false);

/// Whether nothing was printed before this row.
pub(super) fn is_first(_: &PeerRow) -> bool {
    !HEAD_PRINTED.swap(true, Ordering::Relaxed)
}

impl PeerRow {
    /// Throughput: middle, lowest and highest of the rounds.
    fn ratio(&self) -> (f64, f64, f64) {
        let mut ratios: Vec<f64> = self.ours.rates.iter().zip(&self.theirs.rates).map(|(a, b)| a / b).collect();
        ratios.sort_by(f64::total_cmp);
        let last = ratios.len().saturating_sub(1);
        let at = |place: usize| ratios.get(place).copied().unwrap_or(0.0);
        (at(last / 2), at(0), at(last))
    }

    /// Whether an aim was not reached. It holds for several connections, where throughput is what counts.
    pub(super) fn missed(&self) -> bool {
        self.connections > 1 && self.aim.is_some_and(|aim| self.ratio().0 < aim)
    }

    pub(super) fn line(&self) -> String {
        let (middle_ratio, low, high) = self.ratio();
        let (ours, theirs) = (&self.ours, &self.theirs);
        let aim = self.aim.filter(|_| self.connections > 1);
        let ok = match aim {
            None => "-",
            Some(_) if self.missed() => "MISSED",
            Some(_) => "ok",
        };
        let aim = aim.map_or_else(|| "-".to_owned(), |aim| format!("{aim}"));
        let cpu = |side: &SideFigures| side.cpu.map_or_else(|| "-".to_owned(), |cpu| format!("{cpu:.3}"));
        format!(
            "| {} | {} | {} | {:.0} | {:.1} | {middle_ratio:.2} ({low:.2} to {high:.2}) | {aim} | {ok} | {:.2} / {:.2} | {:.2} / {:.2} | {} / {} | {} / {} | {} / {} |",
            self.work.name(),
            self.connections,
            self.peer,
            middle(&ours.rates),
            middle(&theirs.rates),
            middle(&ours.p50),
            middle(&theirs.p50),
            middle(&ours.p99),
            middle(&theirs.p99),
            cpu(ours),
            cpu(theirs),
            ours.bytes,
            theirs.bytes,
            ours.tokens,
            theirs.tokens,
        )
    }
}

fn middle(figures: &[f64]) -> f64 {
    let mut figures = figures.to_vec();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(0.0)
}

/// All rows for programs.
pub(super) fn json(rows: &[PeerRow]) -> Value {
    let side = |side: &SideFigures| {
        json!({
            "per_second": middle(&side.rates), "rounds": side.rates, "p50_ms": middle(&side.p50),
            "p99_ms": middle(&side.p99), "cpu_ms": side.cpu, "bytes": side.bytes, "tokens": side.tokens,
        })
    };
    let row = |row: &PeerRow| {
        let (ratio, lowest, highest) = row.ratio();
        json!({
            "work": row.work.name(), "connections": row.connections, "against": row.peer, "ratio": ratio,
            "lowest": lowest, "highest": highest, "aim": row.aim, "ours": side(&row.ours), "theirs": side(&row.theirs),
        })
    };
    json!({ "peers": rows.iter().map(row).collect::<Vec<_>>() })
}

/// What each does in a second, on several connections.
pub(super) fn chart(rows: &[PeerRow]) -> String {
    let most = rows.iter().map(|row| row.connections).max().unwrap_or(1);
    let mut bars = Vec::new();
    for row in rows.iter().filter(|row| row.connections == most) {
        bars.push((format!("quartermaster: {}", row.work.name()), middle(&row.ours.rates)));
        bars.push((format!("{}: {}", row.peer, row.work.name()), middle(&row.theirs.rates)));
    }
    figures::bars(&format!("Pieces of work in a second, {most} connections"), "/s", &bars)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ours: [f64; 3], aim: Option<f64>, connections: usize) -> PeerRow {
        let side = |rates: [f64; 3]| SideFigures {
            rates: rates.to_vec(),
            p50: vec![1.0],
            p99: vec![2.0],
            cpu: Some(0.5),
            bytes: 10,
            tokens: 3,
        };
        PeerRow { work: Work::List, peer: "peer", connections, ours: side(ours), theirs: side([10.0, 10.0, 20.0]), aim }
    }

    #[test]
    fn the_middle_of_rounds_against_themselves_counts() {
        let row = row([100.0, 300.0, 400.0], Some(20.0), 8);
        assert_eq!(row.ratio(), (20.0, 10.0, 30.0));
        assert!(!row.missed());
        assert_eq!(row.line().matches('|').count(), HEAD.lines().next().unwrap().matches('|').count());
    }

    #[test]
    fn an_aim_is_missed_on_several_connections_only() {
        assert!(row([100.0; 3], Some(20.0), 8).missed() && !row([100.0; 3], Some(20.0), 1).missed());
        assert!(!row([1.0; 3], None, 8).missed());
    }
}
