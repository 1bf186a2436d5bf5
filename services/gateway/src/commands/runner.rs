//! `runner`: takes jobs from a service and executes them on this host.

use crate::cli::RunnerCommand;
use crate::commands::token::span;
use crate::commands::{CommandOutcome, runtime, say};
use anyhow::{Context, bail};
use domain::RunnerId;
use domain::job::RunnerLabel;
use runner::{AllowList, ClientFault, Host, JobClient, NamePattern, RunnerOptions, RunnerStop};
use std::path::Path;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long the service may take to answer: longer than it waits for a job.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

pub(super) fn run(args: &RunnerCommand) -> anyhow::Result<CommandOutcome> {
    let options = options(args)?;
    runtime()?.block_on(work(options))
}

async fn work(options: RunnerOptions) -> anyhow::Result<CommandOutcome> {
    let http = egress::telemetry_sender().context("cannot build the HTTP client")?;
    let config = crate::settings::telemetry_of(std::env::vars())?;
    let guard = telemetry::start(&config, &format!("pid-{}", std::process::id()), &http)?;
    let stop = RunnerStop::default();
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let listening = async {
        loop {
            tokio::select! {
                _ = term.recv() => {}
                _ = int.recv() => {}
            }
            // The second one is meant.
            if stop.drain.is_cancelled() {
                stop.now.cancel();
            }
            stop.drain.cancel();
        }
    };
    let served = tokio::select! {
        served = runner::serve(options, &stop) => served,
        () = listening => Ok(()),
    };
    let flushed = tokio::task::spawn_blocking(move || guard.shutdown(Duration::from_secs(5))).await?;
    if let Err(error) = flushed {
        tracing::debug!(%error, "the last traces were not sent");
    }
    match served {
        Ok(()) => Ok(CommandOutcome::Done),
        Err(fault @ ClientFault::Token(_)) => Err(fault.into()),
        Err(fault) => {
            say(&format!("the service refuses this runner: {fault}\n"));
            Ok(CommandOutcome::Negative)
        }
    }
}

fn options(args: &RunnerCommand) -> anyhow::Result<RunnerOptions> {
    egress::check_operator_address(&args.url).with_context(|| format!("--url {} cannot be used", args.url))?;
    let mut bits = [0; 16];
    getrandom::fill(&mut bits)?;
    let authorities = args.ca.as_deref().map(read).transpose()?;
    let config = egress::Config { answer_within: ANSWER_WITHIN, authorities, ..egress::Config::default() };
    let http = egress::service_client(&args.url, &config).context("cannot build the HTTP client")?;
    let label = |text: &String| {
        RunnerLabel::parse(text).with_context(|| format!("--label {text} is no label: 1 to 63 of a-z, 0-9 and '-'"))
    };
    let mut client = JobClient::new(&args.url, args.token_file.clone(), http, RunnerId::from_random(bits));
    client.name = args.name.clone().unwrap_or_else(host_name);
    client.labels = args.label.iter().map(label).collect::<Result<_, _>>()?;
    client.slots = args.slots;
    let drain = span(&args.drain).context("--drain cannot be read")?;
    Ok(RunnerOptions { client, allow: allow(args)?, host: host(args)?, drain })
}

fn allow(args: &RunnerCommand) -> anyhow::Result<AllowList> {
    let pattern = |text: &String| {
        NamePattern::parse(text)
            .with_context(|| format!("--only {text} is not of the form GROUP/NAME; `*` stands for all"))
    };
    let only = args.only.iter().map(pattern).collect::<Result<Vec<_>, _>>()?;
    let pins = match &args.pin {
        Some(path) => {
            let pins = AllowList::read_pins(&read(path)?);
            Some(pins.with_context(|| format!("{} cannot be used", path.display()))?)
        }
        None => None,
    };
    Ok(AllowList::new(only, pins))
}

fn host(args: &RunnerCommand) -> anyhow::Result<Host> {
    let folder =
        std::fs::canonicalize(&args.dir).with_context(|| format!("--dir {} is not there", args.dir.display()))?;
    let mut host = Host::new(folder);
    for pair in &args.env {
        if !pair.split_once('=').is_some_and(|(name, value)| host.set(name, value)) {
            bail!("--env {pair} is not of the form NAME=VALUE");
        }
    }
    Ok(host)
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}
