//! A program of ours in a process of its own: started with a log, watched until it is up, ended with the value.

use anyhow::{Context, bail, ensure};
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a program may take to come up.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often it is looked at meanwhile. Other programs give no signal one could wait for.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// How much of a log is shown when something went wrong.
const TAIL: usize = 2_000;

/// How much memory a process has, in KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessMemory {
    /// Now.
    pub(crate) resident: u64,
    /// At its highest.
    pub(crate) highest: u64,
}

/// A running program.
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program; what it prints goes to a log file in the folder.
    pub(crate) fn start(
        name: &'static str,
        program: &Path,
        arguments: &[String],
        folder: &Path,
    ) -> anyhow::Result<Process> {
        Process::start_in(name, program, arguments, folder, &[])
    }

    /// The same with these variables over those of this process.
    #[expect(clippy::disallowed_methods, reason = "the door: everything that is measured is started here")]
    pub(crate) fn start_in(
        name: &'static str,
        program: &Path,
        arguments: &[String],
        folder: &Path,
        environment: &[(&str, String)],
    ) -> anyhow::Result<Process> {
        let log = folder.join(format!("{name}.log"));
        let file = File::create(&log).with_context(|| format!("the log of {name} could not be made"))?;
        let child = Command::new(program)
            .args(arguments)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(file.try_clone().context("a log file could not be shared")?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("{name} could not be started from {}", program.display()))?;
        Ok(Process { name, child, log })
    }

    /// Asks until the program says that it is ready.
    pub(crate) async fn up(&mut self, ready: impl AsyncFn() -> bool) -> anyhow::Result<()> {
        let end = Instant::now() + PATIENCE;
        while !ready().await {
            let ended = self.child.try_wait().with_context(|| format!("the state of {} is unknown", self.name))?;
            if let Some(status) = ended {
                bail!("{} ended by itself with {status}:\n{}", self.name, self.tail());
            }
            if Instant::now() > end {
                bail!("{} did not come up within {} s:\n{}", self.name, PATIENCE.as_secs(), self.tail());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// Asks it to leave.
    #[expect(clippy::disallowed_methods, reason = "the door: signals to what was started here")]
    pub(crate) fn terminate(&self) -> anyhow::Result<()> {
        let status = Command::new("kill").arg("-TERM").arg(self.child.id().to_string()).status();
        ensure!(status.context("no program `kill`")?.success(), "{} could not be told to leave", self.name);
        Ok(())
    }

    /// Waits until it has left, and gives its exit code; `None` if a signal ended it.
    pub(crate) async fn left(&mut self) -> anyhow::Result<Option<i32>> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().with_context(|| format!("the state of {}", self.name))? {
                return Ok(status.code());
            }
            ensure!(Instant::now() < end, "{} did not leave within {} s", self.name, PATIENCE.as_secs());
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// The CPU time this process has used, in clock ticks; `None` where the system does not tell.
    pub(crate) fn ticks(&self) -> Option<u64> {
        ticks(&std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?)
    }

    /// How much memory this process has; `None` where the system does not tell.
    pub(crate) fn memory(&self) -> Option<ProcessMemory> {
        memory(&std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?)
    }

    /// Whether it has said this since it was started.
    pub(crate) fn said(&self, text: &str) -> bool {
        let log = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&log).contains(text)
    }

    /// The last it said.
    pub(crate) fn tail(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&text[text.len().saturating_sub(TAIL)..]).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if it has ended by itself, which is what we want.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A port nobody uses at this moment.
pub(crate) fn free_port() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
    listener.local_addr().context("a bound port is not known")
}

/// User and system time from a line of `/proc/PID/stat`. The program's name may hold anything, so counting starts after it.
fn ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

/// The memory in a text of `/proc/PID/status`.
fn memory(status: &str) -> Option<ProcessMemory> {
    let field = |name: &str| {
        let rest = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        rest.trim().strip_suffix(" kB")?.parse().ok()
    };
    Some(ProcessMemory { resident: field("VmRSS")?, highest: field("VmHWM")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_found_among_the_other_lines() {
        let status = "Name:\tVmRSS\nVmPeak:\t  900 kB\nVmHWM:\t  512 kB\nVmRSS:\t  500 kB\nThreads:\t4\n";
        assert_eq!(memory(status), Some(ProcessMemory { resident: 500, highest: 512 }));
        assert_eq!(memory("VmHWM:\t  512 kB\n"), None);
        assert_eq!(memory("VmHWM:\t  lots\nVmRSS:\t  500 kB\n"), None);
    }

    #[test]
    fn cpu_time_is_found_behind_any_name() {
        let stat = "77 (a) R (b) S 1 77 77 0 -1 4194560 900 0 0 0 41 9 0 0 20 0 4 0 100 1 1";
        assert_eq!(ticks(stat), Some(50));
        assert_eq!(ticks("77 (short) S 1 2"), None);
        assert_eq!(ticks(""), None);
    }

    #[tokio::test]
    async fn a_program_that_ends_before_it_is_ready_is_told_with_its_last_words() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = ["-c".to_owned(), "echo no such setting; exit 3".to_owned()];
        let mut process = Process::start("shell", Path::new("/bin/sh"), &arguments, folder.path()).unwrap();
        let error = process.up(async || false).await.unwrap_err().to_string();
        assert!(error.contains("shell ended by itself") && error.contains("no such setting"), "{error}");
    }

    #[tokio::test]
    async fn a_dropped_process_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = ["-c".to_owned(), "read never".to_owned()];
        let process = Process::start("shell", Path::new("/bin/sh"), &arguments, folder.path()).unwrap();
        let path = format!("/proc/{}", process.child.id());
        drop(process);
        assert!(!Path::new(&path).exists());
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Process::start("ghost", Path::new("/nowhere/ghost"), &[], folder.path()).err().unwrap();
        assert!(error.to_string().contains("/nowhere/ghost"));
    }
}
