//! How helm is started, watched and ended: the only door to another program.
//!
//! It sees a cleared environment, private folders, no plugins and an empty working folder; it leads a group of its own.
//! Both its streams are read to their end, so that it never waits for us, and kept within bounds. Past the deadline the
//! group is asked to end, which lets helm write down that a release failed, and ten seconds later it is ended.

use crate::client::config::{HelmConfig, PLACES};
use crate::client::group::{HelmProcessGroup, HelmUsage};
use crate::client::invocation::{Invocation, Subcommand};
use crate::client::output::{CapturedOutput, STDERR, STDOUT};
use crate::client::private::{self, Private};
use crate::client::version::{HelmVersion, Unavailable};
use domain::{Code, Failure, Tenant};
use kubernetes::client::Cluster;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};
use tracing::Instrument;
use tracing::field::Empty;

/// How long a group that was asked to end may take.
const GRACE: Duration = Duration::from_secs(10);
/// How long streams may stay open behind a program that ended.
const DRAIN: Duration = Duration::from_secs(2);
/// How long a call waits for its turn.
const SLOT_WAIT: Duration = Duration::from_secs(5);

/// The helm binary, as one tenant may use it. Cheap to clone.
#[derive(Clone)]
pub struct Helm {
    parts: Arc<RunnerParts>,
    /// The tenant's own slots: fewer than there are, so that no tenant takes all.
    own: Arc<Semaphore>,
}

struct RunnerParts {
    config: HelmConfig,
    /// Looked for when it is first needed.
    found: OnceCell<FoundHelm>,
    slots: Semaphore,
    /// The slots of each tenant whose tools are attached; a tenant that is attached anew keeps its own.
    tenants: Mutex<HashMap<Tenant, Weak<Semaphore>>>,
}

/// The binary and its version, or why it cannot be used.
type FoundHelm = Result<(PathBuf, HelmVersion), Unavailable>;

/// How helm ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelmExit {
    /// By itself, with this code.
    Exited(i32),
    /// Our deadline ended it.
    Stopped,
    /// Somebody else's signal ended it.
    Killed,
}

/// What came of one call. Its private folder lives as long as this does.
#[derive(Debug)]
pub struct HelmResult {
    /// How it ended.
    pub ended: HelmExit,
    /// What it printed. As it came: not masked.
    pub stdout: CapturedOutput,
    /// What it complained about. As it came: not masked.
    pub stderr: CapturedOutput,
    folder: Option<PathBuf>,
    private: Private,
}

impl HelmResult {
    /// Whether it ended well.
    pub fn success(&self) -> bool {
        self.ended == HelmExit::Exited(0)
    }

    /// The whole of what it printed, as text.
    pub fn text(&self) -> Result<&str, Failure> {
        if !self.stdout.is_whole() {
            let failure = Failure::new(Code::ResultTooLarge, "helm printed more than is taken");
            return Err(failure.next("narrow the call"));
        }
        std::str::from_utf8(self.stdout.head())
            .map_err(|_| Failure::new(Code::Internal, "helm printed something that is no text"))
    }

    /// The folder of [`Invocation::out_folder`].
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref().filter(|folder| folder.starts_with(self.private.path("")))
    }
}

impl Helm {
    /// Finds the binary and asks for its version. What former processes left behind is removed.
    pub async fn new(config: HelmConfig) -> Helm {
        let helm = Helm::when_used(config);
        helm.found().await;
        helm
    }

    /// The same, at the first call: for a process that somebody waits for at its start.
    pub fn when_used(config: HelmConfig) -> Helm {
        let slots = Semaphore::new(config.slots.max(1));
        Helm::with(RunnerParts { config, found: OnceCell::new(), slots, tenants: Mutex::default() })
    }

    async fn found(&self) -> &FoundHelm {
        let config = &self.parts.config;
        let look = async || {
            let found = find(config).await;
            match &found {
                Ok((_, version)) => tracing::info!(%version, "helm is there"),
                // Not every operator wants it; `doctor` and the tools themselves say so, too.
                Err(why) => tracing::info!(%why, "the helm tools cannot be used"),
            }
            let swept = private::sweep(&config.cache);
            if swept > 0 {
                tracing::warn!(swept, "helm of a former process was ended");
            }
            found
        };
        self.parts.found.get_or_init(look).await
    }

    fn with(parts: RunnerParts) -> Helm {
        let own = Arc::new(Semaphore::new(parts.config.tenant_slots.max(1)));
        Helm { parts: Arc::new(parts), own }
    }

    /// The same helm, with the slots of this tenant.
    pub fn for_tenant(&self, tenant: &Tenant) -> Helm {
        let mut tenants = self.parts.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        tenants.retain(|_, slots| slots.strong_count() > 0);
        let own = tenants.get(tenant).and_then(Weak::upgrade).unwrap_or_else(|| {
            let slots = Arc::new(Semaphore::new(self.parts.config.tenant_slots.max(1)));
            tenants.insert(tenant.clone(), Arc::downgrade(&slots));
            slots
        });
        Helm { parts: Arc::clone(&self.parts), own }
    }

    /// No helm, for whoever only looks at tools.
    pub fn absent() -> Helm {
        let (config, slots) = (HelmConfig::new(PathBuf::new()), Semaphore::new(1));
        let found = OnceCell::new_with(Some(Err(Unavailable::Missing)));
        Helm::with(RunnerParts { config, found, slots, tenants: Mutex::default() })
    }

    /// The version in use, or why there is none. Before the first look there is none.
    pub fn available(&self) -> Result<HelmVersion, Unavailable> {
        let found = self.parts.found.get().ok_or(Unavailable::Missing)?;
        found.as_ref().map(|(_, version)| *version).map_err(Clone::clone)
    }

    /// How it was set up.
    pub fn config(&self) -> &HelmConfig {
        &self.parts.config
    }

    /// Runs helm without a cluster.
    pub async fn run(&self, invocation: Invocation) -> Result<HelmResult, Failure> {
        if invocation.changes() {
            return Err(Failure::new(Code::Internal, "a change of a release needs a cluster"));
        }
        self.started(None, invocation).await
    }

    /// Runs helm with the identity of a cluster handle. What would change the cluster needs a permit that may act.
    pub async fn run_at(&self, cluster: &Cluster<'_>, invocation: Invocation) -> Result<HelmResult, Failure> {
        if invocation.changes() && cluster.write()?.is_dry() {
            return Err(Failure::new(Code::PolicyDenied, "a rehearsal changes nothing"));
        }
        // Asked by our own client first: a cluster that is away is known there, and helm would wait for it in its own way.
        cluster.version().await?;
        self.started(Some(cluster), invocation).await
    }

    async fn started(&self, cluster: Option<&Cluster<'_>>, invocation: Invocation) -> Result<HelmResult, Failure> {
        let (binary, version) = self.found().await.as_ref().map_err(unavailable)?;
        // The tenant's own first: whoever waits for those holds none of the slots that others wait for.
        let slots = async { (self.own.acquire().await, self.parts.slots.acquire().await) };
        let Ok((Ok(_own), Ok(_slot))) = timeout(SLOT_WAIT, slots).await else {
            let failure = Failure::new(target::codes::TARGET_BUSY, "too many calls of helm are under way");
            return Err(failure.next("wait, then call again").retry_after_ms(1000));
        };
        let private = Private::make(&self.parts.config.cache).map_err(|error| no_folder(&error))?;
        let mut more = Vec::new();
        if let Some(cluster) = cluster {
            let path = private.path("kubeconfig");
            cluster.hand_over(&path).await?;
            more.push(format!("--kubeconfig={}", path.display()));
        }
        for (n, (flag, contents)) in invocation.files.iter().enumerate() {
            let path = private.file(&format!("file{n}"), contents).map_err(|error| no_folder(&error))?;
            more.push(format!("{flag}={}", path.display()));
        }
        let folder = invocation.out.map(|_| private.path("out"));
        if let (Some(flag), Some(folder)) = (invocation.out, &folder) {
            more.push(format!("{flag}={}", folder.display()));
        }
        let argv = invocation.argv(Some(*version), &more);
        if argv.iter().any(|element| element.contains('\0')) {
            let failure = Failure::new(Code::InvalidArgument, "an argument holds a byte no text has");
            return Err(failure.next("correct the arguments and call again"));
        }
        let verb = invocation.subcommand.verb();
        let span = tracing::info_span!(
            "helm",
            otel.name = format!("helm {verb}"),
            otel.kind = "internal",
            process.exit.code = Empty,
            error.type = Empty,
        );
        let usage = HelmUsage::of(&self.parts.config);
        let ran = ran(binary, &argv, &private, &invocation, usage).instrument(span).await;
        let (ended, stdout, stderr) = ran.map_err(|error| {
            tracing::warn!(%error, "helm could not be started");
            Failure::new(target::codes::TARGET_UNREACHABLE, "helm could not be started")
                .next("try later")
                .retry_after_ms(5000)
        })?;
        Ok(HelmResult { ended, stdout, stderr, folder, private })
    }
}

impl std::fmt::Debug for Helm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Helm({:?})", self.available())
    }
}

async fn find(config: &HelmConfig) -> Result<(PathBuf, HelmVersion), Unavailable> {
    let places = || PLACES.iter().map(PathBuf::from).find(|path| path.is_file());
    let binary = config.binary.clone().or_else(places).filter(|path| path.is_file()).ok_or(Unavailable::Missing)?;
    // A relative name would mean another file once helm has a working folder of its own.
    let binary = std::fs::canonicalize(binary).map_err(|_| Unavailable::Missing)?;
    let private = Private::make(&config.cache).map_err(|_| Unavailable::NoFolder)?;
    let asked = Invocation::new(Subcommand::Version).flag("--template", "{{.Version}}");
    let (ended, stdout, _) = ran(&binary, &asked.argv(None, &[]), &private, &asked, HelmUsage::of(config))
        .await
        .map_err(|_| Unavailable::Broken)?;
    match ended {
        HelmExit::Exited(0) => Ok((binary, HelmVersion::judge(&stdout.lossy())?)),
        HelmExit::Exited(_) | HelmExit::Stopped | HelmExit::Killed => Err(Unavailable::Broken),
    }
}

type FinishedRun = (HelmExit, CapturedOutput, CapturedOutput);

async fn ran(
    binary: &Path,
    argv: &[String],
    private: &Private,
    invocation: &Invocation,
    usage: HelmUsage,
) -> io::Result<FinishedRun> {
    let deadline = Instant::now() + invocation.deadline;
    let mut child = command(binary, argv, private, invocation.stdin.is_some()).spawn()?;
    // Declared behind the child, so that it is dropped first: the leader's number is still its own.
    let mut group = HelmProcessGroup::led_by(child.id(), usage);
    private.inhabited_by(child.id())?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async {
        if let (Some(mut stdin), Some(bytes)) = (stdin, &invocation.stdin) {
            // A program that does not read to the end has its reasons; its exit says which.
            if let Err(error) = stdin.write_all(bytes).await {
                tracing::debug!(%error, "helm did not read its input");
            }
        }
    };
    let read = async {
        match (stdout, stderr) {
            (Some(out), Some(err)) => {
                tokio::join!(CapturedOutput::read(out, STDOUT), CapturedOutput::read(err, STDERR))
            }
            (_, _) => Default::default(),
        }
    };
    let streams = async { tokio::join!(feed, read).1 };
    tokio::pin!(streams);
    let (exit, early) = {
        let ending = end(&mut child, &group, deadline);
        tokio::pin!(ending);
        let mut early = None;
        loop {
            tokio::select! {
                exit = &mut ending => break (exit?, early),
                captured = &mut streams, if early.is_none() => early = Some(captured),
            }
        }
    };
    let (stdout, stderr) = match early {
        Some(captured) => captured,
        None => match timeout(DRAIN, &mut streams).await {
            Ok(captured) => captured,
            Err(_) => {
                // Somebody in the group holds the streams open, so the group's number is still its own.
                group.kill();
                timeout(DRAIN, &mut streams).await.unwrap_or_default()
            }
        },
    };
    group.release();
    let ended = told(exit);
    Ok((ended, stdout, stderr))
}

/// Waits for the leader; past the deadline ends the group. Says whether the deadline did it.
async fn end(child: &mut Child, group: &HelmProcessGroup, deadline: Instant) -> io::Result<(ExitStatus, bool)> {
    if let Ok(exit) = timeout_at(deadline, child.wait()).await {
        return Ok((exit?, false));
    }
    group.terminate();
    if let Ok(exit) = timeout(GRACE, child.wait()).await {
        return Ok((exit?, true));
    }
    group.kill();
    Ok((child.wait().await?, true))
}

fn told((exit, stopped): (ExitStatus, bool)) -> HelmExit {
    let span = tracing::Span::current();
    let ended = match (stopped, exit.code()) {
        (true, _) => HelmExit::Stopped,
        (false, Some(code)) => HelmExit::Exited(code),
        (false, None) => HelmExit::Killed,
    };
    match ended {
        HelmExit::Exited(code) => {
            span.record("process.exit.code", code);
        }
        HelmExit::Stopped => {
            span.record("error.type", "deadline");
        }
        HelmExit::Killed => {
            span.record("error.type", "killed");
        }
    }
    ended
}

#[expect(clippy::disallowed_methods, reason = "this is the one door")]
fn command(binary: &Path, argv: &[String], private: &Private, has_input: bool) -> Command {
    let mut command = Command::new(binary);
    command
        .args(argv)
        .env_clear()
        .env("HOME", private.path("home"))
        .env("TMPDIR", private.path("tmp"))
        .env("HELM_CACHE_HOME", private.path("cache"))
        .env("HELM_CONFIG_HOME", private.path("config"))
        .env("HELM_DATA_HOME", private.path("data"))
        .env("HELM_PLUGINS", private.path("plugins"))
        .env("HELM_NO_PLUGINS", "1")
        .current_dir(private.path("cwd"))
        .process_group(0)
        .kill_on_drop(true)
        .stdin(if has_input { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn unavailable(why: &Unavailable) -> Failure {
    Failure::new(target::codes::TOOLSET_NOT_CONFIGURED, format!("helm cannot be used: {why}"))
        .next("ask the operator of this service to install helm")
}

fn no_folder(error: &io::Error) -> Failure {
    tracing::warn!(%error, "a private folder for helm cannot be made");
    Failure::new(Code::Internal, "there is no private place to run helm in")
}

#[cfg(test)]
mod tests;
