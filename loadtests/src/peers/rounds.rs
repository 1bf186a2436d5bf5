//! Two of them in turns on the same work.

use super::actor::{Actor, Ours, Peer, Work};
use super::table::{self, PeerRow};
use crate::load::{Slice, summed};
use crate::report;
use anyhow::Context;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How many rounds: odd, so that there is a middle one.
const ROUNDS: u32 = 5;
/// Work before the first round, which nobody counts.
const WARM_UP: Duration = Duration::from_millis(200);

/// How hard.
pub(super) struct Contest {
    pub(super) span: Duration,
    pub(super) connections: usize,
    /// Only works whose name holds this.
    pub(super) only: String,
}

/// What one side did in all rounds.
#[derive(Debug, Clone)]
pub(super) struct SideFigures {
    pub(super) rates: Vec<f64>,
    pub(super) p50: Vec<f64>,
    pub(super) p99: Vec<f64>,
    /// CPU time for each answer, in milliseconds, of the server's own process.
    pub(super) cpu: Option<f64>,
    pub(super) bytes: usize,
    pub(super) tokens: u64,
}

impl Contest {
    /// One work on one connection and on several; nothing if it was not asked for.
    pub(super) async fn compare(
        &self,
        ours: &Ours,
        peer: &Peer,
        work: Work,
        aim: Option<f64>,
    ) -> anyhow::Result<Vec<PeerRow>> {
        let mut rows = Vec::new();
        if !format!("{} {}", work.name(), peer.name()).contains(&self.only) {
            return Ok(rows);
        }
        for connections in if self.connections == 1 { vec![1] } else { vec![1, self.connections] } {
            let row = self.rounds(ours, peer, work, connections).await;
            let (ours, theirs) = row.with_context(|| format!("{} against {}", work.name(), peer.name()))?;
            let row = PeerRow { work, peer: peer.name(), connections, ours, theirs, aim };
            if table::is_first(&row) {
                report::print(table::HEAD);
            }
            report::print(&row.line());
            rows.push(row);
        }
        Ok(rows)
    }

    async fn rounds(
        &self,
        ours: &Ours,
        peer: &Peer,
        work: Work,
        connections: usize,
    ) -> anyhow::Result<(SideFigures, SideFigures)> {
        let sides = [Actor::Ours(ours), Actor::Peer(peer)];
        let mut figures = Vec::new();
        for side in sides {
            let (bytes, tokens) = side.sample(work).await.with_context(|| side.tail())?;
            slice(side, work, connections, WARM_UP).await.with_context(|| side.tail())?;
            let (rates, p50, p99) = (Vec::new(), Vec::new(), Vec::new());
            figures.push(SideFigures { rates, p50, p99, cpu: None, bytes, tokens });
        }
        let mut cost = [(0_u64, 0_usize); 2];
        for round in 0..ROUNDS {
            for turn in 0..2 {
                let place = usize::from((turn + round) % 2 == 1);
                let side = sides[place];
                let before = side.ticks();
                let done = slice(side, work, connections, self.span / ROUNDS).await.with_context(|| side.tail())?;
                if let (Some(before), Some(after)) = (before, side.ticks()) {
                    cost[place].0 += after.saturating_sub(before);
                    cost[place].1 += done.answers;
                }
                figures[place].rates.push(done.rate);
                figures[place].p50.push(done.p50.as_secs_f64() * 1e3);
                figures[place].p99.push(done.p99.as_secs_f64() * 1e3);
            }
        }
        for (side, (ticks, answers)) in figures.iter_mut().zip(cost) {
            // A hundred ticks are a second, on every Linux there is.
            side.cpu = (ticks > 0 && answers > 0).then(|| ticks as f64 * 10.0 / answers as f64);
        }
        let theirs = figures.pop().context("two sides")?;
        Ok((figures.pop().context("two sides")?, theirs))
    }
}

/// Works for a while on so many connections.
async fn slice(side: Actor<'_>, work: Work, connections: usize, span: Duration) -> anyhow::Result<Slice> {
    let mut workers = Vec::with_capacity(connections);
    for _ in 0..connections {
        workers.push(side.worker(work).await?);
    }
    let start = Instant::now();
    let mut loops = JoinSet::new();
    for mut worker in workers {
        loops.spawn(async move {
            let mut times = Vec::new();
            loop {
                let begun = Instant::now();
                worker.once().await?;
                times.push(begun.elapsed());
                if start.elapsed() >= span {
                    return Ok::<_, anyhow::Error>(times);
                }
            }
        });
    }
    let mut times = Vec::new();
    while let Some(ended) = loops.join_next().await {
        times.append(&mut ended.context("a loop broke")??);
    }
    summed(times, start.elapsed())
}
