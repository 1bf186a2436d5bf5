//! What the service on its embedded store holds in memory after many calls: whether it has a bound.
//!
//! Memory is no time, so a figure of one machine holds for others of its kind, and the aim is absolute. A quarter of the
//! calls comes first: what is filled once, such as caches, should be filled by then.

use crate::contender::{Contender, UNLIMITED};
use crate::load;
use crate::operations;
use crate::options::LoadOptions;
use crate::plan::{quartermaster, sample};
use crate::report;
use anyhow::Context;
use std::time::Duration;

/// How many calls there are at least.
const CALLS: usize = 100_000;
/// Connections that call.
const CONNECTIONS: usize = 16;
/// How long they call before memory is looked at again.
const SPAN: Duration = Duration::from_secs(2);
/// The most the process may hold at its end, in KiB.
const MOST: u64 = 120 * 1024;

/// Calls, prints what the process holds, and gives 1 if that is too much.
pub(crate) async fn run(options: &LoadOptions) -> anyhow::Result<usize> {
    let contender = Contender::start(&quartermaster(options)?, None, UNLIMITED).await?;
    let exchange = sample(&contender, &operations::NO_OP).await?;
    let held = || contender.process.memory().context("this system does not tell how much memory a process has");
    report::print("| calls | resident, MiB | highest, MiB |\n|--:|--:|--:|");
    let mut calls = 0;
    for end in [0, CALLS / 4, CALLS / 2, CALLS * 3 / 4, CALLS] {
        while calls < end {
            let slice = load::slice(contender.address, &exchange, CONNECTIONS, SPAN).await;
            calls += slice.with_context(|| contender.process.tail())?.answers;
        }
        let memory = held()?;
        report::print(&format!("| {calls} | {} | {} |", memory.resident / 1024, memory.highest / 1024));
    }
    let resident = held()?.resident;
    let (ok, most) = (resident <= MOST, MOST / 1024);
    report::print(&format!("\nat most {most} MiB after {CALLS} calls: {}", if ok { "ok" } else { "MISSED" }));
    Ok(usize::from(!ok))
}
