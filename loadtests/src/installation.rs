//! Replicas of the service as an operator runs them: `serve` with settings, keys and tenants of their own, over one Redis.

use crate::floor::healthy;
use crate::process::{Process, free_port};
use anyhow::{Context, ensure};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

const ISSUER: &str = "loadtests";
const AUDIENCE: &str = "http://127.0.0.1/mcp";
/// What signs tokens, and what seals records. Nothing but this program's own processes ever sees either.
const SIGNING_KEY: &str = "bG9hZHRlc3RzLWxvYWR0ZXN0cy1sb2FkdGVzdHMtMDE";
pub(crate) const SERVICE_KEY: &[u8; 32] = b"loadtests-loadtests-loadtests-01";
/// What keys of its records begin with.
pub(crate) const PREFIX: &str = "load";

/// What all replicas share.
pub(crate) struct Installation {
    program: PathBuf,
    redis: String,
    folder: TempDir,
    started: AtomicUsize,
}

/// One replica, ready to serve.
pub(crate) struct Replica {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// The process.
    pub(crate) process: Process,
}

impl Installation {
    /// Writes settings, keys and the files of these tenants.
    pub(crate) fn new(program: &Path, redis: &str, tenants: &[(String, String)]) -> anyhow::Result<Installation> {
        let folder = tempfile::tempdir().context("no temporary folder for the service")?;
        let at = |name: &str| folder.path().join(name);
        for name in ["tenants", "secrets"] {
            std::fs::create_dir(at(name)).with_context(|| format!("no folder {name}"))?;
        }
        write(&at("issuer.key"), SIGNING_KEY.as_bytes())?;
        write(&at("service.key"), SERVICE_KEY)?;
        for (tenant, text) in tenants {
            write(&at("tenants").join(format!("{tenant}.yaml")), text.as_bytes())?;
        }
        let path = |name: &str| at(name).display().to_string();
        let settings = format!(
            "[listen]\ndrain = \"10s\"\n[store]\nurl = \"{redis}\"\nprefix = \"{PREFIX}\"\n\
             [identity]\nresource = \"{AUDIENCE}\"\n\
             issuers = [{{ issuer = \"{ISSUER}\", algorithms = [\"HS256\"], key_file = \"{}\" }}]\n\
             [calls]\nkey_file = \"{}\"\n[limits]\nrequests_per_caller = 4294967295\nrequests_per_tenant = 4294967295\n\
             [tenants]\ndir = \"{}\"\nsecrets = \"{}\"\nclusters_on_loopback = true\n\
             [telemetry]\nlog = \"warn\"\nformat = \"text\"\n",
            path("issuer.key"),
            path("service.key"),
            path("tenants"),
            path("secrets"),
        );
        write(&at("settings.toml"), settings.as_bytes())?;
        let (program, redis, started) = (program.to_owned(), redis.to_owned(), AtomicUsize::new(0));
        Ok(Installation { program, redis, folder, started })
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the store is.
    pub(crate) fn redis(&self) -> &str {
        &self.redis
    }

    /// Starts one more replica, with these variables over its settings.
    pub(crate) async fn replica(&self, more: &[(&str, String)]) -> anyhow::Result<Replica> {
        self.replica_at(free_port()?, more).await
    }

    /// The same at an address that is known.
    pub(crate) async fn replica_at(&self, address: SocketAddr, more: &[(&str, String)]) -> anyhow::Result<Replica> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.path().join(format!("replica{number}"));
        std::fs::create_dir(&folder).context("no folder for a replica")?;
        let settings = self.folder.path().join("settings.toml").display().to_string();
        let arguments = ["serve".to_owned(), "--config".to_owned(), settings];
        let mut environment = vec![
            ("QM_LISTEN__ADDRESS", address.to_string()),
            ("QM_UPSTREAMS__CACHE", folder.join("cache").display().to_string()),
        ];
        environment.extend_from_slice(more);
        let mut process = Process::start_in("quartermaster", &self.program, &arguments, &folder, &environment)?;
        process.up(async || healthy(address).await).await?;
        Ok(Replica { address, process })
    }

    /// A token of somebody.
    #[expect(clippy::disallowed_methods, reason = "the door: the service's own program signs its tokens")]
    pub(crate) fn token(&self, tenant: &str, subject: &str, scope: &str) -> anyhow::Result<String> {
        let key = self.folder.path().join("issuer.key").display().to_string();
        let words = ["token", "--tenant", tenant, "--sub", subject, "--scope", scope, "--ttl", "6h"];
        let signed = ["--key", &key, "--issuer", ISSUER, "--audience", AUDIENCE];
        let made = std::process::Command::new(&self.program).args(words).args(signed).output();
        let made = made.context("no token could be made")?;
        ensure!(made.status.success(), "no token: {}", String::from_utf8_lossy(&made.stderr));
        Ok(String::from_utf8_lossy(&made.stdout).trim().to_owned())
    }
}

fn write(file: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    std::fs::write(file, bytes).with_context(|| format!("{} could not be written", file.display()))
}
