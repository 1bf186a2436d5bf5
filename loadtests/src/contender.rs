//! The service under load: the real program in a process of its own, and the Redis it may stand on.

use crate::floor::healthy;
use crate::http::KeptConnection;
use crate::operations::{self, Tickets};
use crate::process::{Process, free_port};
use anyhow::{Context, ensure};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A rate that is out of the way: not the limits are measured.
pub(crate) const UNLIMITED: u32 = 1_000_000;

/// The tenant's file.
fn tenant(calls_per_minute: u32) -> String {
    format!(
        "tenant: dev\nmode: write\ndefault_toolsets: [memory]\n\
         limits: {{ calls_in_flight: 10000, calls_per_minute: {calls_per_minute}, result_bytes: 262144 }}\n"
    )
}

/// `quartermaster dev`, ready to be asked.
pub(crate) struct Contender {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// The process.
    pub(crate) process: Process,
    /// What its requests carry.
    pub(crate) tickets: Tickets,
    /// Its data folder.
    pub(crate) data: PathBuf,
    _folder: TempDir,
}

impl Contender {
    /// Starts it on the embedded store, or on a Redis, with so many calls a minute for its tenant.
    pub(crate) async fn start(program: &Path, redis: Option<&str>, calls_per_minute: u32) -> anyhow::Result<Contender> {
        Contender::start_in(program, redis, calls_per_minute, &[]).await
    }

    /// The same with these variables over those of this process.
    pub(crate) async fn start_in(
        program: &Path,
        redis: Option<&str>,
        calls_per_minute: u32,
        more: &[(&'static str, String)],
    ) -> anyhow::Result<Contender> {
        Contender::start_tenant(program, redis, &tenant(calls_per_minute), &[], more).await
    }

    /// The same with this file of its tenant, and these secrets for it.
    pub(crate) async fn start_tenant(
        program: &Path,
        redis: Option<&str>,
        tenant: &str,
        secrets: &[(&str, String)],
        more: &[(&'static str, String)],
    ) -> anyhow::Result<Contender> {
        let folder = tempfile::tempdir().context("no temporary folder for the service")?;
        let data = folder.path().join("data");
        std::fs::create_dir_all(data.join("tenants")).context("the data folder could not be made")?;
        let file = data.join("tenants").join("dev.yaml");
        std::fs::write(file, tenant).context("the tenant could not be written")?;
        std::fs::create_dir_all(data.join("secrets").join("dev")).context("the secrets could not be written")?;
        for (name, value) in secrets {
            let file = data.join("secrets").join("dev").join(name);
            std::fs::write(file, value).context("a secret could not be written")?;
        }
        let address = free_port()?;
        let mut arguments = vec!["dev".to_owned(), "--listen".to_owned(), address.to_string()];
        // The fixture tenant has tools that only answer; its limits are out of the way as well.
        arguments.extend(["--conformance".to_owned(), "--data".to_owned(), data.display().to_string()]);
        if let Some(url) = redis {
            arguments.extend(["--store".to_owned(), url.to_owned()]);
        }
        let mut environment = vec![
            // One caller sends all the requests.
            ("QM_LIMITS__REQUESTS_PER_CALLER", u32::MAX.to_string()),
            ("QM_LIMITS__REQUESTS_PER_TENANT", u32::MAX.to_string()),
            // Several may share one Redis.
            ("QM_STORE__PREFIX", format!("service{}", address.port())),
        ];
        environment.extend_from_slice(more);
        let mut process = Process::start_in("quartermaster", program, &arguments, folder.path(), &environment)?;
        let tokens = ["agent.token", "conformance.token"].map(|name| data.join(name));
        process.up(async || healthy(address).await && served(address, &tokens[1]).await).await?;
        let tickets =
            tickets(address, [token(&tokens[0])?, token(&tokens[1])?]).await.with_context(|| process.tail())?;
        Ok(Contender { address, process, tickets, data, _folder: folder })
    }
}

/// Whether the tenant of this token is there. The fixture comes a moment after the server listens.
async fn served(address: SocketAddr, file: &Path) -> bool {
    let (Ok(token), Ok(mut connection)) = (token(file), KeptConnection::open(address).await) else { return false };
    session(&mut connection, &token).await.is_ok()
}

/// The token in a file.
pub(crate) fn token(file: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    Ok(text.trim().to_owned())
}

/// Opens a session in each era and one of the fixture tenant, as a client would.
async fn tickets(address: SocketAddr, [token, fixture]: [String; 2]) -> anyhow::Result<Tickets> {
    let mut connection = KeptConnection::open(address).await?;
    let legacy = session(&mut connection, &token).await?;
    let fixture_session = session(&mut connection, &fixture).await?;
    let loaded = connection.send(&operations::first_load(&token)).await?;
    ensure!(loaded.status == 200, "load_toolset was answered with {}", loaded.status);
    let body: serde_json::Value = serde_json::from_slice(loaded.body).context("an answer is not JSON")?;
    let handle = body["result"]["structuredContent"]["session"].as_str();
    let modern = handle.with_context(|| format!("load_toolset gave no handle: {body}"))?.to_owned();
    Ok(Tickets { token, legacy, modern, fixture, fixture_session })
}

async fn session(connection: &mut KeptConnection, token: &str) -> anyhow::Result<String> {
    let opened = connection.send(&operations::initialize(token)).await?;
    Ok(opened.header("mcp-session-id").context("no session was opened")?.to_owned())
}

/// A Redis of one's own.
pub(crate) struct OwnRedis {
    /// Where to reach it.
    pub(crate) url: String,
    /// The process.
    pub(crate) process: Process,
    _folder: TempDir,
}

impl OwnRedis {
    /// Starts it with the settings an audit log asks for.
    pub(crate) async fn start(program: &Path) -> anyhow::Result<OwnRedis> {
        let folder = tempfile::tempdir().context("no temporary folder for Redis")?;
        let address = free_port()?;
        let (port, dir) = (address.port().to_string(), folder.path().display().to_string());
        let words = ["--port", &port, "--bind", "127.0.0.1", "--dir", &dir, "--save", ""];
        let safe = ["--appendonly", "yes", "--maxmemory-policy", "noeviction"];
        let arguments: Vec<String> = words.into_iter().chain(safe).map(str::to_owned).collect();
        let mut process = Process::start("redis-server", program, &arguments, folder.path())?;
        process.up(async || pong(address).await.is_some()).await?;
        Ok(OwnRedis { url: format!("redis://{address}"), process, _folder: folder })
    }
}

/// It listens before it has read its files, so it is asked.
async fn pong(address: SocketAddr) -> Option<()> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    stream.write_all(b"PING\r\n").await.ok()?;
    let mut said = [0; 7];
    stream.read_exact(&mut said).await.ok()?;
    (said == *b"+PONG\r\n").then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_redis_of_ones_own_answers_and_goes_with_the_value() {
        let redis = OwnRedis::start(Path::new("redis-server")).await.unwrap();
        let address: SocketAddr = redis.url.strip_prefix("redis://").unwrap().parse().unwrap();
        assert!(pong(address).await.is_some());
        drop(redis);
        assert!(pong(address).await.is_none());
    }

    #[tokio::test]
    async fn a_server_that_gives_no_session_is_no_contender() {
        let floor = crate::floor::tests::floor("{}", None);
        let error = tickets(floor.address, ["token", "fixture"].map(str::to_owned)).await.err().unwrap();
        assert!(error.to_string().contains("no session was opened"), "{error}");
    }
}
