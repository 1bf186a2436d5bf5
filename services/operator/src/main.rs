//! The `quartermaster-operator` binary.

use anyhow::Context as _;
use clap::Parser;
use operator::cli::{Cli, OperatorCommand, RunArgs, SyncArgs};
use operator::context::OperatorSettings;
use operator::sync::folder::SyncFolders;
use operator::sync::{self, SyncSettings};
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
        OperatorCommand::Sync(args) => keep_folder(*args),
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
    let identity = args.identity.unwrap_or_else(own_name);
    let guard = observe(args.log, args.otlp_endpoint, &identity)?;
    let settings = OperatorSettings {
        watch: args.watch,
        namespace: args.namespace,
        identity,
        cluster_domain: args.cluster_domain,
        namespace_prefix: args.namespace_prefix,
        resync: Duration::from_secs(args.resync_seconds),
        lease: Duration::from_secs(args.lease_seconds),
        lookup: None,
    };
    let (reached, stopping) = (serve::Reached::default(), CancellationToken::new());
    let client = kube::Client::try_default().await.context("no cluster is configured")?;
    tracing::info!(?settings, "starting");
    let work = async {
        let kept = run::run(client, settings, &reached, stopping.clone()).await;
        kept.context("the API server cannot be asked")
    };
    let kept = until_told(&args.listen, &reached, &stopping, Box::pin(work)).await?;
    end(guard).await?;
    // An operator that lost its lease begins anew, with nothing in its memory.
    Ok(if kept { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

#[tokio::main]
async fn keep_folder(args: SyncArgs) -> anyhow::Result<ExitCode> {
    let identity = args.identity.unwrap_or_else(own_name);
    let guard = observe(args.log, args.otlp_endpoint, &identity)?;
    let settings = SyncSettings {
        watch: args.watch,
        namespace: args.namespace,
        identity,
        cluster_domain: args.cluster_domain,
        namespace_prefix: args.namespace_prefix,
        pod_uid: args.pod_uid,
        secrets_every: Duration::from_secs(args.secrets_seconds),
        lease: Duration::from_secs(args.lease_seconds),
        folders: SyncFolders { tenants: args.tenants, secrets: args.secrets },
        report: args.report,
    };
    let (reached, stopping) = (serve::Reached::default(), CancellationToken::new());
    let client = kube::Client::try_default().await.context("no cluster is configured")?;
    tracing::info!(?settings, "starting");
    let work = async {
        let kept = sync::run(client, settings, &reached, stopping.clone()).await;
        kept.context("the gateway's folder cannot be kept")
    };
    until_told(&args.listen, &reached, &stopping, Box::pin(work)).await?;
    end(guard).await?;
    Ok(ExitCode::SUCCESS)
}

fn own_name() -> String {
    format!("pid-{}", std::process::id())
}

fn observe(log: String, otlp_endpoint: String, identity: &str) -> anyhow::Result<telemetry::TelemetryGuard> {
    let config = telemetry::Config {
        log,
        otlp_endpoint,
        service_name: "quartermaster-operator".to_owned(),
        ..telemetry::Config::default()
    };
    let http = egress::telemetry_sender().context("cannot build the HTTP client")?;
    let guard = telemetry::start(&config, identity, &http).context("telemetry cannot start")?;
    telemetry::metrics::begin(env!("CARGO_PKG_VERSION"), "");
    Ok(guard)
}

/// Serves `/metrics` while the work goes on, and tells it to stop when a signal comes.
async fn until_told<T>(
    listen: &str,
    reached: &serve::Reached,
    stopping: &CancellationToken,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (address, server) = serve::start(listen, serve::Reached::clone(reached))?;
    tracing::info!(%address, "listening");
    let told_to_stop = async {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        stopping.cancel();
        // What is under way is finished by whoever does it.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = work => ended,
        ended = server => anyhow::bail!("the listener ended: {ended:?}"),
        () = told_to_stop => anyhow::bail!("this never ends"),
    }
}

async fn end(guard: telemetry::TelemetryGuard) -> anyhow::Result<()> {
    tracing::info!("stopping");
    if let Err(error) = tokio::task::spawn_blocking(move || guard.shutdown(Duration::from_secs(5))).await? {
        tracing::warn!(%error, "the last traces were not sent");
    }
    Ok(())
}
