//! A long list, read to its end: whether the work grows with the list and no faster.
//!
//! There is one stand for each length. All of them are up at once and are read in turns, so that a busy moment of the
//! machine falls on all of them. Each turn reads as many pods as the longest list has, a short list several times over:
//! turns last about as long, and memory is judged after the same number of calls.
//!
//! The simulated cluster is not linear itself: it looks through all that is left to find a page. Therefore the same pages
//! are read bare beside it, and the CPU time of the service's own process is told, in which the cluster has no part.
//!
//! Reading order: [`stand`] (who is read), [`reading`] (how, and what must have come), [`table`] (what is aimed at).

mod reading;
mod stand;
mod table;

use crate::options::LoadOptions;
use crate::plan::quartermaster;
use crate::report;
use anyhow::{Context, ensure};
use stand::PodsStand;
use std::time::Duration;
use table::PodsRow;

/// The lengths: the first is what the others are compared with, the last is how much a turn reads.
const LENGTHS: [usize; 4] = [2_500, 5_000, 10_000, 20_000];
/// How many rounds: odd, so that there is a middle one.
const ROUNDS: usize = 7;

/// Measures all lengths, prints the table, and gives how many rows missed an aim.
pub(crate) async fn run(options: &LoadOptions) -> anyhow::Result<usize> {
    let program = quartermaster(options)?;
    if cfg!(debug_assertions) {
        report::print(
            "This is a debug build: the simulated cluster is slow, and hides the service. Use --profile dist.\n",
        );
    }
    let mut measured = Vec::new();
    for pods in LENGTHS {
        let stand = PodsStand::start(&program, pods).await.with_context(|| format!("no stand with {pods} pods"))?;
        warm_up(&stand).await.with_context(|| stand.failed())?;
        measured.push(MeasuredStand::new(stand));
    }
    for round in 0..ROUNDS {
        // Neither the order of the lengths nor that of the two sides may favour one of them.
        let mut order: Vec<&mut MeasuredStand> = measured.iter_mut().collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for one in order {
            one.turn(round % 2 == 1).await.with_context(|| one.stand.failed())?;
        }
    }
    let rows = rows(&measured);
    report::print(table::HEAD);
    rows.iter().for_each(|row| report::print(&row.line()));
    report::print(table::FOOT);
    Ok(rows.iter().filter(|row| row.missed()).count())
}

/// The first reading of each side, which nobody times: the service must show the very pods the cluster has.
async fn warm_up(stand: &PodsStand) -> anyhow::Result<()> {
    let (shown, there) = (stand.through_the_service().await?, stand.bare().await?);
    ensure!(shown.names == there.names, "the service shows other pods than the cluster has");
    Ok(())
}

/// A stand and what its turns showed.
struct MeasuredStand {
    stand: PodsStand,
    turns: Vec<MeasuredTurn>,
    ticks: Option<u64>,
    requests: usize,
    readings: usize,
}

/// One turn of both sides: seconds for each pod.
#[derive(Debug, Clone, Copy)]
struct MeasuredTurn {
    service: f64,
    floor: f64,
}

impl MeasuredStand {
    fn new(stand: PodsStand) -> MeasuredStand {
        MeasuredStand { stand, turns: Vec::new(), ticks: Some(0), requests: 0, readings: 0 }
    }

    async fn turn(&mut self, floor_first: bool) -> anyhow::Result<()> {
        let (service, floor) = if floor_first {
            let floor = self.floor().await?;
            (self.service().await?, floor)
        } else {
            (self.service().await?, self.floor().await?)
        };
        self.turns.push(MeasuredTurn { service, floor });
        Ok(())
    }

    async fn service(&mut self) -> anyhow::Result<f64> {
        let (ticks, requests) = (self.stand.ticks(), self.stand.requests());
        let mut took = Duration::ZERO;
        for _ in 0..self.times() {
            took += self.stand.through_the_service().await?.took;
        }
        let used = self.stand.ticks().zip(ticks).map(|(after, before)| after.saturating_sub(before));
        self.ticks = self.ticks.zip(used).map(|(all, used)| all + used);
        self.requests += self.stand.requests() - requests;
        self.readings += self.times();
        Ok(self.each(took))
    }

    async fn floor(&self) -> anyhow::Result<f64> {
        let mut took = Duration::ZERO;
        for _ in 0..self.times() {
            took += self.stand.bare().await?.took;
        }
        Ok(self.each(took))
    }

    /// How often the list is read in one turn.
    fn times(&self) -> usize {
        LENGTHS[LENGTHS.len() - 1] / self.stand.pods
    }

    fn each(&self, took: Duration) -> f64 {
        took.as_secs_f64() / (self.times() * self.stand.pods) as f64
    }
}

/// Every length beside the first one.
fn rows(measured: &[MeasuredStand]) -> Vec<PodsRow> {
    let shortest = &measured[0];
    let row = |one: &MeasuredStand| PodsRow {
        pods: one.stand.pods,
        service: growth(&one.turns, &shortest.turns, |turn| turn.service),
        floor: growth(&one.turns, &shortest.turns, |turn| turn.floor),
        ratio: middle(one.turns.iter().map(|turn| turn.service / turn.floor)),
        // Every stand has read the same number of pods, so ticks compare as they are.
        cpu: one.ticks.zip(shortest.ticks.filter(|ticks| *ticks > 0)).map(|(ours, first)| ours as f64 / first as f64),
        memory: one.stand.growth(),
        requests: one.requests as f64 / one.readings as f64,
    };
    measured.iter().map(row).collect()
}

/// How many times as long a pod takes as one of the shortest list, each round against itself.
fn growth(turns: &[MeasuredTurn], shortest: &[MeasuredTurn], figure: fn(&MeasuredTurn) -> f64) -> f64 {
    middle(turns.iter().zip(shortest).map(|(turn, first)| figure(turn) / figure(first)))
}

fn middle(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_compared_with_itself_and_one_bad_round_does_not_count() {
        let turns = |figures: [f64; 3]| figures.map(|service| MeasuredTurn { service, floor: 1.0 });
        let (shortest, longest) = (turns([1.0, 4.0, 2.0]), turns([1.5, 6.0, 90.0]));
        assert_eq!(growth(&longest, &shortest, |turn| turn.service), 1.5);
        assert_eq!(growth(&longest, &shortest, |turn| turn.floor), 1.0);
    }

    #[test]
    fn every_turn_reads_the_same_number_of_pods() {
        let longest = LENGTHS[LENGTHS.len() - 1];
        assert!(LENGTHS.iter().all(|pods| longest.is_multiple_of(*pods)), "{LENGTHS:?}");
        assert!(LENGTHS.is_sorted());
        assert_eq!(ROUNDS % 2, 1);
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named_before_anything_starts() {
        let options =
            LoadOptions { pods: true, quartermaster: Some("/nowhere/quartermaster".into()), ..LoadOptions::default() };
        let error = run(&options).await.unwrap_err().to_string();
        assert!(error.contains("/nowhere/quartermaster"), "{error}");
    }
}
