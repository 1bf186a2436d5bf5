//! Measures the service against named floors, in one run, and prints a table of ratios.
//!
//! Absolute figures depend on the machine and its mood, so none is promised. What is promised is a ratio: the service and
//! a floor (the least a server could do to give the same answer) are loaded in turns, in short slices, by the same
//! generator with the same request bytes, and must give the same answer bytes. Each of them is one process.
//!
//! Reading order: [`plan`] (what is measured), [`operations`] (the requests and their aims), [`contender`] and [`floor`]
//! (who is measured), [`versus`] (in turns), [`load`] and [`http`] (by what), [`report`] (the table). [`pods`] and
//! `searching` are measurements of their own: how reading a long list grows with the list, and how long a search takes
//! against a bare search library. So is [`proxied`]: what a call of an external server costs by way of the service; and [`memory`]: what
//! the service holds after many calls; and [`idle`]: what tenants cost that do nothing. [`peers`], [`neighbour`], [`rolling`]
//! and [`growth`] leave figures and charts ([`figures`]); they run the service as an operator does ([`installation`]).
//!
//! Not here: whether answers are right. That is tested elsewhere; here an answer only has to stay the same.

mod contender;
mod figures;
mod floor;
mod growth;
mod http;
mod idle;
mod installation;
mod load;
mod memory;
mod neighbour;
mod operations;
mod options;
mod paced;
mod peers;
mod plan;
mod pods;
mod process;
mod proxied;
mod report;
mod rolling;
#[cfg(feature = "rival")]
mod searching;
mod versus;

use anyhow::Context;
use options::{CommandLine, LoadOptions, Study};
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

fn main() -> anyhow::Result<ExitCode> {
    match options::read(std::env::args().skip(1))? {
        CommandLine::Help => {
            report::print(options::HELP);
            Ok(ExitCode::SUCCESS)
        }
        CommandLine::Floor(floor) => floor::serve(&floor).map(|()| ExitCode::SUCCESS),
        CommandLine::Upstream(server) => proxied::server::serve(&server).map(|()| ExitCode::SUCCESS),
        CommandLine::Measure(options) => measure(&options),
    }
}

fn measure(options: &LoadOptions) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(load::threads())
        .enable_all()
        .build()
        .context("the generator could not start")?;
    let missed = runtime.block_on(async {
        // Whoever is interrupted still stops what it started: children end when their values are dropped.
        let mut terminated = signal(SignalKind::terminate())?;
        tokio::select! {
            missed = asked(options) => missed,
            _ = tokio::signal::ctrl_c() => anyhow::bail!("interrupted"),
            _ = terminated.recv() => anyhow::bail!("terminated"),
        }
    })?;
    Ok(if options.strict && missed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn asked(options: &LoadOptions) -> anyhow::Result<usize> {
    match options {
        LoadOptions { pods: true, .. } => pods::run(options).await,
        LoadOptions { study: Some(Study::Peers), .. } => peers::run(options).await,
        LoadOptions { study: Some(Study::Neighbour), .. } => neighbour::run(options).await,
        LoadOptions { study: Some(Study::Restart), .. } => rolling::run(options).await,
        LoadOptions { study: Some(Study::Growth), .. } => growth::run(options).await,
        LoadOptions { idle: true, seconds, .. } => idle::run(options, Duration::from_secs(*seconds)).await,
        LoadOptions { memory: true, .. } => memory::run(options).await,
        LoadOptions { proxied: Some(asked), .. } => proxied::run(options, asked).await,
        #[cfg(feature = "rival")]
        LoadOptions { search: true, .. } => searching::run().await,
        #[cfg(not(feature = "rival"))]
        LoadOptions { search: true, .. } => anyhow::bail!("--search needs a build with `--features rival`"),
        LoadOptions { .. } => plan::run(options).await,
    }
}
