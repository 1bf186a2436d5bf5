//! The service in front of one external server, and the same call by both ways.

use super::server::{CallTarget, CalledServer};
use crate::contender::token;
use crate::floor::healthy;
use crate::http::KeptConnection;
use crate::load::LoadExchange;
use crate::operations;
use crate::plan;
use crate::process::{Process, free_port};
use crate::versus::Side;
use anyhow::Context;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use tempfile::TempDir;

/// What the server is called in the names of its tools.
const ID: &str = "bench";
/// The limits are out of the way: not they are measured.
const TENANT: &str = "\
tenant: dev
mode: write
default_toolsets: [memory]
limits: { calls_in_flight: 10000, calls_per_minute: 1000000 }
servers:
- { use: bench }
";

/// A service and the server behind it, ready to be called.
pub(super) struct ProxiedStand<'a> {
    server: &'a CalledServer,
    service: SocketAddr,
    process: Process,
    proxied: LoadExchange,
    direct: LoadExchange,
    _folder: TempDir,
}

impl<'a> ProxiedStand<'a> {
    /// Starts the service with a catalog that vouches for the one tool, and loads that.
    pub(super) async fn start(
        program: &Path,
        redis: &str,
        server: &'a CalledServer,
    ) -> anyhow::Result<ProxiedStand<'a>> {
        let (folder, called) = (tempfile::tempdir().context("no temporary folder for the service")?, &server.called);
        let data = folder.path().join("data");
        write(&data.join("tenants"), "dev.yaml", TENANT)?;
        let catalog = folder.path().join("catalog");
        write(&catalog.join("servers"), "bench.server.yaml", &entry(called))?;
        let service = free_port()?;
        let words = ["dev", "--data", &data.display().to_string(), "--listen", &service.to_string(), "--store", redis];
        let environment = [
            ("QM_UPSTREAMS__CATALOG", catalog.display().to_string()),
            // Each stand begins with an empty store, although they share a server.
            ("QM_STORE__PREFIX", format!("stand{}", called.address.port())),
        ];
        let words = words.map(str::to_owned);
        let mut process = Process::start_in("quartermaster", program, &words, folder.path(), &environment)?;
        let file = data.join("agent.token");
        process.up(async || file.exists() && healthy(service).await && loaded(service, &file).await.is_some()).await?;
        let handle = loaded(service, &file).await.with_context(|| process.tail())?;
        let params = json!({ "name": called.tool, "arguments": called.arguments });
        let direct = settled(called.address, operations::direct("tools/call", params)).await;
        let direct = direct.context("the server itself")?;
        let call = operations::proxied(&token(&file)?, &handle, &ours(&called.tool), &called.arguments);
        let proxied = settled(service, call).await.with_context(|| process.tail())?;
        Ok(ProxiedStand { server, service, process, proxied, direct, _folder: folder })
    }

    /// The call by way of the service, and the direct one.
    pub(super) fn sides(&self) -> (Side<'_>, Side<'_>) {
        let ProxiedStand { server, service, process, proxied, direct, .. } = self;
        let ours = Side { name: "service", address: *service, processes: vec![process], exchange: proxied };
        let processes = server.process.iter().collect();
        (ours, Side { name: "server", address: server.called.address, processes, exchange: direct })
    }
}

/// The operator's entry: a read that is vouched for, and room for every connection of the generator.
fn entry(called: &CallTarget) -> String {
    let CallTarget { url, tool, .. } = called;
    format!("name: {ID}\nurl: \"{url}\"\ncalls_in_flight: 256\ncalls_waiting: 1024\neffects: {{ {tool}: read }}\n")
}

/// Our name for one of its tools.
fn ours(tool: &str) -> String {
    format!("mcp_{ID}__{tool}")
}

/// The handle of a session that has the server's tools; none until they were discovered.
async fn loaded(service: SocketAddr, file: &Path) -> Option<String> {
    let mut connection = KeptConnection::open(service).await.ok()?;
    let request = operations::load(&token(file).ok()?, &format!("mcp_{ID}"));
    let answer: Value = serde_json::from_slice(connection.send(&request).await.ok()?.body).ok()?;
    let told = &answer["result"]["structuredContent"];
    told["added"].as_array().filter(|added| !added.is_empty())?;
    told["session"].as_str().map(str::to_owned)
}

async fn settled(address: SocketAddr, request: Vec<u8>) -> anyhow::Result<LoadExchange> {
    plan::settled(&mut KeptConnection::open(address).await?, &request).await
}

fn write(folder: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("{} could not be made", folder.display()))?;
    std::fs::write(folder.join(name), text).with_context(|| format!("{name} could not be written"))
}
