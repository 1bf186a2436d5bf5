//! The `quartermaster-operator` binary.

use anyhow::Context as _;
use clap::Parser;
use operator::cli::{Cli, OperatorCommand, RunArgs};
use operator::context::OperatorSettings;
use operator::{resources, run, serve};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    // The one TLS provider, before anything could ask for one.
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        return ExitCode::from(2);
    }
    let outcome = match Cli::parse().command {
        OperatorCommand::Crds { into } => definitions(into.as_deref()).map(|()| ExitCode::SUCCESS),
        OperatorCommand::Run(args) => operate(*args),
    };
    outcome.unwrap_or_else(|error| {
        writeln!(std::io::stderr(), "quartermaster-operator: {error:#}").ok();
        ExitCode::from(2)
    })
}

/// Prints the definitions as one list, which `kubectl apply -f -` reads, or writes a file for each.
fn definitions(into: Option<&Path>) -> anyhow::Result<()> {
    let all = resources::definitions();
    let Some(folder) = into else {
        let items: Vec<_> = all.iter().map(|(_, definition)| definition).collect();
        let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": items });
        return Ok(writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&list)?)?);
    };
    for (file, definition) in all {
        let file = folder.join(file);
        std::fs::write(&file, resources::text(&definition)?)
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

#[tokio::main]
async fn operate(args: RunArgs) -> anyhow::Result<ExitCode> {
    let identity = args.identity.unwrap_or_else(|| format!("pid-{}", std::process::id()));
    let config = telemetry::Config {
        log: args.log,
        otlp_endpoint: args.otlp_endpoint,
        service_name: "quartermaster-operator".to_owned(),
        ..telemetry::Config::default()
    };
    let http = egress::telemetry_sender().context("cannot build the HTTP client")?;
    let guard = telemetry::start(&config, &identity, &http).context("telemetry cannot start")?;
    telemetry::metrics::begin(env!("CARGO_PKG_VERSION"), "");
    let settings = OperatorSettings {
        watch: args.watch,
        namespace: args.namespace,
        identity,
        cluster_domain: args.cluster_domain,
        resync: Duration::from_secs(args.resync_seconds),
        lease: Duration::from_secs(args.lease_seconds),
        lookup: None,
    };
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let client = kube::Client::try_default().await.context("no cluster is configured")?;
    let (reached, stopping) = (serve::Reached::default(), CancellationToken::new());
    let (address, server) = serve::start(&args.listen, serve::Reached::clone(&reached))?;
    tracing::info!(%address, ?settings, "starting");
    let told_to_stop = async {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        stopping.cancel();
        // What is under way is finished by whoever does it.
        std::future::pending::<()>().await;
    };
    let kept = tokio::select! {
        kept = run::run(client, settings, &reached, stopping.clone()) => kept.context("the API server cannot be asked")?,
        ended = server => anyhow::bail!("the listener ended: {ended:?}"),
        () = told_to_stop => true,
    };
    tracing::info!("stopping");
    if let Err(error) = tokio::task::spawn_blocking(move || guard.shutdown(Duration::from_secs(5))).await? {
        tracing::warn!(%error, "the last traces were not sent");
    }
    // An operator that lost its lease begins anew, with nothing in its memory.
    Ok(if kept { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
