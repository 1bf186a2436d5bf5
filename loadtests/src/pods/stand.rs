//! One simulated cluster with many pods, and the real service in front of it.

use super::reading::{self, Language, PodsReading};
use crate::contender::token;
use crate::floor::healthy;
use crate::operations;
use crate::process::{Process, ProcessMemory, free_port};
use anyhow::{Context, ensure};
use sandbox::{Sandbox, Seed};
use std::net::SocketAddr;
use std::path::Path;
use tempfile::TempDir;

const NAMESPACE: &str = "shop";
/// How many pods the service asks the cluster for at once; the floor does the same.
const PAGE: usize = 100;
/// One cluster, whose kubeconfig is a secret of the tenant. The limits are out of the way: not they are measured.
const TENANT: &str = "\
tenant: dev
mode: write
default_toolsets: [k8s]
limits: { calls_per_minute: 1000000 }
clusters: [{ name: main, kubeconfig: { secret: main }, default_namespace: shop }]
";

/// A cluster and a service, ready to be read. The service ends first.
pub(super) struct PodsStand {
    /// How many pods there are.
    pub(super) pods: usize,
    service: SocketAddr,
    token: String,
    process: Process,
    before: Option<ProcessMemory>,
    sandbox: Sandbox,
    cluster: SocketAddr,
    _folder: TempDir,
}

impl PodsStand {
    /// Fills a cluster and starts the service.
    pub(super) async fn start(program: &Path, pods: usize) -> anyhow::Result<PodsStand> {
        let (sandbox, cluster) = filled(pods).await?;
        let folder = tempfile::tempdir().context("no temporary folder for the service")?;
        let data = folder.path().join("data");
        write(&data.join("tenants"), "dev.yaml", TENANT)?;
        write(&data.join("secrets").join("dev"), "main", &sandbox.kubeconfig())?;
        let service = free_port()?;
        let words = ["dev", "--data", &data.display().to_string(), "--listen", &service.to_string()].map(str::to_owned);
        let mut process = Process::start("quartermaster", program, &words, folder.path())?;
        let file = data.join("agent.token");
        process.up(async || file.exists() && healthy(service).await).await?;
        let before = process.memory();
        Ok(PodsStand { pods, service, token: token(&file)?, process, before, sandbox, cluster, _folder: folder })
    }

    /// Reads all pods by calls of a tool.
    pub(super) async fn through_the_service(&self) -> anyhow::Result<PodsReading> {
        let ask = |cursor: Option<&str>| operations::pods(&self.token, cursor);
        reading::read(self.service, self.pods, Language { ask, page: reading::of_the_service }).await
    }

    /// Reads all pods from the cluster itself.
    pub(super) async fn bare(&self) -> anyhow::Result<PodsReading> {
        bare(&self.sandbox, self.cluster, self.pods).await
    }

    /// How many requests the cluster has seen.
    pub(super) fn requests(&self) -> usize {
        self.sandbox.requests().len()
    }

    /// The CPU time the service has used.
    pub(super) fn ticks(&self) -> Option<u64> {
        self.process.ticks()
    }

    /// By how many KiB the service's memory exceeded, at its highest, what it had before the first call.
    pub(super) fn growth(&self) -> Option<u64> {
        self.process.memory().zip(self.before).map(|(now, before)| now.highest.saturating_sub(before.resident))
    }

    /// What to say when a reading failed.
    pub(super) fn failed(&self) -> String {
        format!("{} pods could not be read; the service said last: {}", self.pods, self.process.tail())
    }
}

async fn filled(pods: usize) -> anyhow::Result<(Sandbox, SocketAddr)> {
    let seed = Seed::empty().with_pods(NAMESPACE, pods);
    let sandbox = Sandbox::start(seed).await.context("no simulated cluster could be started")?;
    let address = sandbox.url().trim_start_matches("http://").parse();
    Ok((sandbox, address.context("the simulated cluster has no address")?))
}

async fn bare(sandbox: &Sandbox, address: SocketAddr, pods: usize) -> anyhow::Result<PodsReading> {
    let token = sandbox.token();
    let ask = |cursor: Option<&str>| {
        let more = cursor.map(|cursor| format!("&continue={cursor}")).unwrap_or_default();
        format!(
            "GET /api/v1/namespaces/{NAMESPACE}/pods?limit={PAGE}{more} HTTP/1.1\r\nHost: {address}\r\n\
             Authorization: Bearer {token}\r\nAccept: application/json\r\n\r\n"
        )
        .into_bytes()
    };
    reading::read(address, pods, Language { ask, page: reading::of_the_cluster }).await
}

fn write(folder: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let told = || format!("{name} could not be written");
    std::fs::create_dir_all(folder).with_context(told)?;
    ensure!(!folder.join(name).exists(), "{name} is there already");
    std::fs::write(folder.join(name), text).with_context(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_filled_cluster_is_read_bare_with_as_few_requests_as_there_are_pages() {
        let (sandbox, address) = filled(250).await.unwrap();
        let reading = bare(&sandbox, address, 250).await.unwrap();
        assert_eq!(reading.names.len(), 250);
        let requests = sandbox.requests();
        assert_eq!(requests.len(), 3, "{requests:?}");
        assert!(requests.iter().all(|request| request.contains("limit=100")), "{requests:?}");
    }
}
