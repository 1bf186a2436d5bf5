//! Two servers in turns: what one does, as a share of what the other does.
//!
//! A machine that is busy for a second is busy for both, or for one slice out of many. So each round loads both, shortly
//! after each other and each time in the other order, gives one ratio, and the middle one of the rounds counts.

use crate::load::{self, LoadExchange, Slice};
use crate::process::Process;
use anyhow::Context;
use std::net::SocketAddr;
use std::time::Duration;

/// How many rounds: odd, so that there is a middle one, and many, so that a neighbour's burst is not the middle.
const ROUNDS: u32 = 11;
/// Load before the first round, which nobody counts: connections, caches and branch predictors settle.
const WARM_UP: Duration = Duration::from_millis(300);

/// One of the two.
pub(crate) struct Side<'a> {
    /// What to call it when something is wrong.
    pub(crate) name: &'static str,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Whose CPU time is read, the server's own first; none where it is not ours.
    pub(crate) processes: Vec<&'a Process>,
    /// What it is asked, and what must come back.
    pub(crate) exchange: &'a LoadExchange,
}

/// How hard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Load on each side, in all.
    pub(crate) span: Duration,
    /// Connections of the generator.
    pub(crate) connections: usize,
}

/// What the rounds showed. All ratios are contender over floor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Comparison {
    /// Answers a second of the contender, and of the floor.
    pub(crate) rates: (f64, f64),
    /// Throughput: middle, lowest and highest of the rounds.
    pub(crate) ratio: (f64, f64, f64),
    /// How much longer the middle answer takes.
    pub(crate) p50: f64,
    /// How much longer the slow answers take.
    pub(crate) p99: f64,
    /// How much more CPU time of its own process an answer costs.
    pub(crate) cpu: Option<f64>,
}

/// Loads both in turns.
pub(crate) async fn compare(contender: &Side<'_>, floor: &Side<'_>, effort: Effort) -> anyhow::Result<Comparison> {
    for side in [contender, floor] {
        loaded(side, WARM_UP, effort.connections).await?;
    }
    let span = effort.span / ROUNDS;
    let (mut pairs, mut costs) = (Vec::new(), (Cost::default(), Cost::default()));
    for round in 0..ROUNDS {
        let first = if round % 2 == 0 { contender } else { floor };
        let second = if round % 2 == 0 { floor } else { contender };
        let one = loaded(first, span, effort.connections).await?;
        let two = loaded(second, span, effort.connections).await?;
        let (ours, theirs) = if round % 2 == 0 { (one, two) } else { (two, one) };
        costs.0.add(&ours);
        costs.1.add(&theirs);
        pairs.push((ours.slice, theirs.slice));
    }
    Ok(judge(&pairs, costs))
}

struct LoadedSide {
    slice: Slice,
    ticks: Option<u64>,
}

async fn loaded(side: &Side<'_>, span: Duration, connections: usize) -> anyhow::Result<LoadedSide> {
    let ticks = || side.processes.iter().map(|process| process.ticks()).sum::<Option<u64>>();
    let before = ticks();
    let slice = load::slice(side.address, side.exchange, connections, span).await.with_context(|| {
        let last = side.processes.first().map(|process| process.tail()).unwrap_or_default();
        format!("the {} could not be measured; it said last: {last}", side.name)
    })?;
    let ticks = ticks().zip(before).map(|(after, before)| after.saturating_sub(before));
    Ok(LoadedSide { slice, ticks })
}

/// CPU time and answers of all rounds: single slices are too short for the system's clock ticks.
#[derive(Debug, Default, Clone, Copy)]
struct Cost {
    ticks: u64,
    answers: usize,
}

impl Cost {
    fn add(&mut self, loaded: &LoadedSide) {
        if let Some(ticks) = loaded.ticks {
            self.ticks += ticks;
            self.answers += loaded.slice.answers;
        }
    }

    fn each(self) -> Option<f64> {
        (self.ticks > 0 && self.answers > 0).then(|| self.ticks as f64 / self.answers as f64)
    }
}

fn judge(pairs: &[(Slice, Slice)], costs: (Cost, Cost)) -> Comparison {
    let ordered = |figure: &dyn Fn(&(Slice, Slice)) -> f64| {
        let mut figures: Vec<f64> = pairs.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures
    };
    let middle = |figure: &dyn Fn(&(Slice, Slice)) -> f64| ordered(figure)[pairs.len() / 2];
    let ratios = ordered(&|(ours, theirs)| ours.rate / theirs.rate);
    let slower = |ours: Duration, theirs: Duration| ours.as_secs_f64() / theirs.as_secs_f64().max(f64::MIN_POSITIVE);
    Comparison {
        rates: (middle(&|(ours, _)| ours.rate), middle(&|(_, theirs)| theirs.rate)),
        ratio: (ratios[ratios.len() / 2], ratios[0], ratios[ratios.len() - 1]),
        p50: middle(&|(ours, theirs)| slower(ours.p50, theirs.p50)),
        p99: middle(&|(ours, theirs)| slower(ours.p99, theirs.p99)),
        cpu: costs.0.each().zip(costs.1.each()).map(|(ours, theirs)| ours / theirs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(rate: f64, millis: u64) -> Slice {
        let p50 = Duration::from_millis(millis);
        Slice { rate, answers: 10, p50, p99: p50 * 3 }
    }

    #[test]
    fn the_middle_round_counts_and_one_bad_round_does_not() {
        let pairs =
            [(slice(80.0, 2), slice(100.0, 1)), (slice(10.0, 90), slice(100.0, 1)), (slice(81.0, 2), slice(90.0, 1))];
        let verdict = judge(&pairs, (Cost { ticks: 60, answers: 30 }, Cost { ticks: 30, answers: 30 }));
        assert_eq!(verdict.ratio, (0.8, 0.1, 0.9));
        assert_eq!(verdict.rates, (80.0, 100.0));
        assert_eq!((verdict.p50, verdict.p99, verdict.cpu), (2.0, 2.0, Some(2.0)));
    }

    #[test]
    fn cpu_time_nobody_told_is_no_ratio() {
        let pairs = [(slice(1.0, 1), slice(1.0, 1))];
        assert_eq!(judge(&pairs, (Cost { ticks: 1, answers: 1 }, Cost::default())).cpu, None);
    }
}
