//! The service beside servers of others, on the same work: throughput, latency, bytes and tokens.
//!
//! Everybody runs on this machine as it ships, each in a process of its own, and is asked by the same generator in
//! alternate rounds. kubernetes-mcp-server and FastMCP come from the package registries (`deploy/lib/tools.sh` has their
//! versions); pods come from a real API server, the testbed's, if one is up. What nobody brought is left out, and the
//! table says so.
//!
//! Reading order: [`actor`] (who is asked, and for what), [`cluster`] (the real API server and its pods), [`rounds`] (in
//! turns), [`table`] (what comes out).

mod actor;
mod cluster;
mod rounds;
mod table;

use crate::contender::OwnRedis;
use crate::figures;
use crate::options::LoadOptions;
use crate::plan::quartermaster;
use crate::report;
use actor::{Ours, Peer, Work};
use anyhow::Context;
use cluster::RealCluster;
use rounds::Contest;
use std::path::PathBuf;
use std::time::Duration;
use table::PeerRow;

/// Where the testbed and the cache of parts are told.
const KUBECONFIG: &str = "QUARTERMASTER_TEST_KUBECONFIG";
const KUBERNETES_MCP: &str = "QUARTERMASTER_KUBERNETES_MCP";
const FASTMCP: &str = "QUARTERMASTER_FASTMCP";

/// Measures everything that is there, prints the table, and gives how many aims were missed.
pub(crate) async fn run(options: &LoadOptions) -> anyhow::Result<usize> {
    let (program, redis) = (quartermaster(options)?, OwnRedis::start(&options.redis).await?);
    let span = Duration::from_secs(options.seconds);
    let contest = Contest { span, connections: options.connections, only: options.only.clone() };
    let cluster = match told(KUBECONFIG) {
        Some(file) => Some(RealCluster::fill(&file).await.context("the real cluster cannot be used")?),
        None => None,
    };
    let ours = Ours::start(&program, &redis, cluster.as_ref()).await.context("the service")?;
    let mut rows: Vec<PeerRow> = Vec::new();
    let mut left_out = Vec::new();
    match told(FASTMCP) {
        Some(packages) => {
            let fast = Peer::fastmcp(&packages).await.context("the FastMCP server")?;
            for (work, aim) in [
                (Work::List, Some(120.0)),
                (Work::ListLoaded, None),
                (Work::NoOp, Some(40.0)),
                (Work::Gated, None),
                (Work::Turn, None),
            ] {
                rows.extend(contest.compare(&ours, &fast, work, aim).await?);
            }
        }
        None => left_out.push(format!("FastMCP: {FASTMCP} names no folder with the package")),
    }
    match (told(KUBERNETES_MCP), &cluster) {
        (Some(program), Some(cluster)) => {
            let shipped = Peer::kubernetes(&program, cluster, false).await.context("kubernetes-mcp-server")?;
            for (work, aim) in [(Work::List, Some(30.0)), (Work::ListLoaded, None), (Work::NoOp, Some(8.0))] {
                rows.extend(contest.compare(&ours, &shipped, work, aim).await?);
            }
            rows.extend(contest.compare(&ours, &shipped, Work::Pods, Some(10.0)).await?);
            drop(shipped);
            let lifted = Peer::kubernetes(&program, cluster, true).await.context("kubernetes-mcp-server")?;
            rows.extend(contest.compare(&ours, &lifted, Work::Pods, Some(2.0)).await?);
        }
        (None, _) => left_out.push(format!("kubernetes-mcp-server: {KUBERNETES_MCP} names no program")),
        (Some(_), None) => left_out.push(format!("kubernetes-mcp-server: {KUBECONFIG} names no cluster")),
    }
    match &cluster {
        Some(cluster) => rows.extend(contest.compare(&ours, &Peer::bare(cluster), Work::Pods, Some(0.8)).await?),
        None => left_out.push(format!("the bare list of pods: {KUBECONFIG} names no cluster")),
    }
    report::print(table::FOOT);
    left_out.iter().for_each(|what| report::print(&format!("not measured: {what}")));
    let (json, chart) = (options.json.as_deref(), options.chart.as_deref());
    figures::keep(json, &table::json(&rows), chart, &table::chart(&rows))?;
    Ok(rows.iter().filter(|row| row.missed()).count())
}

fn told(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
