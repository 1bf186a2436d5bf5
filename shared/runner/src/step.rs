//! One command: a process group of its own, started with a clean environment, and ended whole.
//!
//! The leader is waited for without being reaped: as long as it is not, its number is the group's and nobody else's, so
//! what is left of the group can be killed without hitting a stranger.
//!
//! A process that leaves the group (`setsid`) is not reached from here; the systemd unit's control group ends those.

use crate::Host;
use crate::output::OutputLog;
use domain::job::{JobSpec, JobStep, OutputStream, StepExit};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::{ChildStderr, ChildStdout};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// How long streams may stay open behind a group that was killed.
const DRAIN: Duration = Duration::from_secs(2);

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepEnd {
    /// With exit 0.
    Good,
    /// Otherwise.
    Bad(StepExit),
    /// Its submitter wanted it ended.
    Cancelled,
}

/// What a command is run with.
pub(crate) struct StepContext<'a> {
    pub(crate) spec: &'a JobSpec,
    pub(crate) host: &'a Host,
    pub(crate) output: &'a OutputLog,
    pub(crate) stop: &'a CancellationToken,
    pub(crate) deadline: Instant,
}

/// Runs one command to its end.
pub(crate) async fn run(step: JobStep, argv: &[String], context: &StepContext<'_>) -> StepEnd {
    let started = spawn(argv, context).and_then(|mut child| {
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let group = ProcessGroup::led_by(child);
        let stdout = stdout.map(ChildStdout::from_std).transpose()?;
        let stderr = stderr.map(ChildStderr::from_std).transpose()?;
        Ok((group, stdout, stderr))
    });
    let (mut group, stdout, stderr) = match started {
        Ok(parts) => parts,
        Err(error) => return StepEnd::Bad(StepExit::NotStarted(context.output.scrub(&error.to_string()))),
    };
    let streams = async {
        let read_out = async {
            if let Some(stdout) = stdout {
                context.output.read(stdout, step, OutputStream::Stdout).await;
            }
        };
        let read_err = async {
            if let Some(stderr) = stderr {
                context.output.read(stderr, step, OutputStream::Stderr).await;
            }
        };
        tokio::join!(read_out, read_err);
    };
    tokio::pin!(streams);
    let mut drained = false;
    let end = {
        let ending = group.end(context);
        tokio::pin!(ending);
        loop {
            tokio::select! {
                end = &mut ending => break end,
                () = &mut streams, if !drained => drained = true,
            }
        }
    };
    if !drained && timeout(DRAIN, &mut streams).await.is_err() {
        tracing::warn!(step = step.as_str(), "a process that left its group still holds the output of a command");
    }
    end
}

fn spawn(argv: &[String], context: &StepContext<'_>) -> io::Result<Child> {
    let (program, arguments) = argv.split_first().ok_or_else(|| io::Error::other("there is no command"))?;
    command(program, arguments, context).spawn()
}

#[expect(clippy::disallowed_methods, reason = "what a job names is started here and nowhere else")]
fn command(program: &str, arguments: &[String], context: &StepContext<'_>) -> Command {
    let StepContext { spec, host, .. } = context;
    let directory: PathBuf = spec.directory.as_ref().map_or(host.directory.clone(), |named| host.directory.join(named));
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(spec.env.iter().map(|(name, variable)| (name, &variable.value)))
        // The host's own come last: a job cannot replace them.
        .envs(&host.env)
        .current_dir(directory)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A command and everything it started that stayed in its group. Killed when dropped.
struct ProcessGroup {
    pid: Option<Pid>,
    child: Child,
}

impl ProcessGroup {
    fn led_by(child: Child) -> ProcessGroup {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        ProcessGroup { pid, child }
    }

    /// Waits for the leader; at the deadline or by its submitter's wish asks the group to end, then kills it. What the
    /// leader leaves of its group is killed in any case.
    async fn end(&mut self, context: &StepContext<'_>) -> StepEnd {
        let mut leader = self.watch();
        let cut = tokio::select! {
            biased;
            _ = &mut leader => None,
            () = context.stop.cancelled() => Some(StepEnd::Cancelled),
            () = tokio::time::sleep_until(context.deadline) => Some(StepEnd::Bad(StepExit::TimedOut)),
        };
        if cut.is_some() {
            self.signal(Signal::TERM);
            if timeout(context.host.grace, &mut leader).await.is_err() {
                self.signal(Signal::KILL);
                // It cannot refuse; it may only be slow to go.
                drop(leader.await);
            }
        }
        match (cut, self.reap()) {
            (Some(end), _) => end,
            (None, Ok(status)) if status.success() => StepEnd::Good,
            (None, Ok(status)) => StepEnd::Bad(exit_of(status)),
            (None, Err(error)) => StepEnd::Bad(StepExit::NotStarted(error.to_string())),
        }
    }

    /// Resolves when the leader has ended. It is not reaped.
    fn watch(&self) -> JoinHandle<()> {
        let pid = self.pid;
        tokio::task::spawn_blocking(move || {
            let Some(pid) = pid else { return };
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(error) = waitid(WaitId::Pid(pid), options) {
                if error != rustix::io::Errno::INTR {
                    return;
                }
            }
        })
    }

    /// Kills what is left of the group and reaps the leader; from then on the number may be another's.
    fn reap(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        self.pid = None;
        self.child.wait()
    }

    fn signal(&self, signal: Signal) {
        // No such group: they ended by themselves.
        if let Some(pid) = self.pid
            && kill_process_group(pid, signal).is_err()
        {
            tracing::debug!("a process group had ended already");
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if self.pid.is_some() && self.reap().is_err() {
            tracing::debug!("a command could not be waited for");
        }
    }
}

fn exit_of(status: ExitStatus) -> StepExit {
    match (status.code(), status.signal()) {
        (Some(code), _) => StepExit::Code(code),
        (None, Some(signal)) => StepExit::Signal(signal),
        (None, None) => StepExit::Code(-1),
    }
}
