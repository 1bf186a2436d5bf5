//! `serve`: production. Settings in, a server out, drained on SIGTERM.

use crate::app::Gateway;
use crate::cli::Serve;
use crate::commands::{CommandOutcome, runtime};
use crate::settings::Settings;
use crate::{measure, server};
use anyhow::Context;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long work in the background may take to end if the process cannot listen.
const LAST_WORK: Duration = Duration::from_secs(2);

pub(super) fn run(args: &Serve) -> anyhow::Result<CommandOutcome> {
    let settings = Settings::read(Some(&args.config), std::env::vars())
        .with_context(|| format!("{} cannot be used", args.config.display()))?;
    runtime()?.block_on(serve(settings, async |_| Ok(())))
}

/// Serves until a signal says stop. `ready` is called once, when the server listens.
pub(super) async fn serve(
    settings: Settings,
    ready: impl AsyncFnOnce(&Arc<Gateway>) -> anyhow::Result<()>,
) -> anyhow::Result<CommandOutcome> {
    let replica = format!("pid-{}", std::process::id());
    let http = egress::telemetry_sender().context("cannot build the HTTP client")?;
    let guard = telemetry::start(&settings.telemetry, &replica, &http).context("telemetry cannot start")?;
    tracing::info!(settings = ?settings, "starting");
    let gateway = Gateway::build(settings).await?;
    // Before anything is answered: who got an answer may say stop, and that is not to end the process at once.
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let running = match server::start(&gateway) {
        Ok(running) => running,
        Err(error) => {
            // What has begun in the background ends in order, so that its loss is not the last thing in the log.
            gateway.tasks.drain(LAST_WORK).await;
            gateway.store.close().await;
            return Err(error);
        }
    };
    tracing::info!(address = %running.address, store = gateway.store.backend(), tenants = gateway.tenants.len(), "serving");
    let metrics = guard.metrics();
    if let Some(exporter) = metrics.clone() {
        measure::send(&gateway, exporter);
    }
    ready(&gateway).await?;
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    tracing::info!("stopping");
    if let Some(metrics) = metrics {
        measure::measure(&gateway).await;
        metrics.export().await;
    }
    running.stop().await;
    let flushed = tokio::task::spawn_blocking(move || guard.shutdown(Duration::from_secs(5))).await?;
    if let Err(error) = flushed {
        tracing::warn!(%error, "the last traces were not sent");
    }
    Ok(CommandOutcome::Done)
}
