//! The real program as a child of the test: started from its file, signalled, and killed without mercy.

use crate::patience::until;
use crate::world::{Leftovers, Replica, Setup, Start};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// A process that serves.
#[derive(Clone)]
pub struct Process {
    child: Arc<Mutex<Child>>,
    log: Arc<Mutex<Vec<String>>>,
}

impl Process {
    /// How replicas are started as processes: `PROGRAM serve --config FILE`.
    #[expect(clippy::disallowed_methods, reason = "a test's own process, never part of the service")]
    pub fn starter(program: &'static str) -> Start<Process> {
        Process::started_by(move |setup| {
            let mut command = Command::new(program);
            command.args(["serve", "--config"]).arg(&setup.config);
            command
        })
    }

    /// How replicas are started by another command; its environment is laid over by that of the setup.
    pub fn started_by(command: impl Fn(&Setup) -> Command + Send + Sync + 'static) -> Start<Process> {
        Arc::new(move |setup| {
            let command = command(&setup);
            Box::pin(Process::start(command, setup))
        })
    }

    async fn start(command: Command, setup: Setup) -> anyhow::Result<Replica<Process>> {
        let process = Process::spawn(command, &setup.environment)?;
        let looked = until("a process to serve", async || match process.ended() {
            Some(status) => Some(Err(anyhow::anyhow!("the process ended with {status}: {}", process.log()))),
            None => process.address().map(Ok),
        });
        let address = looked.await?;
        let stopping = process.clone();
        let stop = move || -> crate::world::Work<Leftovers> {
            Box::pin(async move {
                if stopping.ended().is_none() {
                    stopping.signal("-TERM");
                    let status = stopping.end().await;
                    assert!(status.success(), "the process should end well: {status} {}", stopping.log());
                }
                Leftovers::default()
            })
        };
        Ok(Replica { address, part: process, stop: Box::new(stop) })
    }

    /// Starts a program that is no replica.
    pub fn of(command: Command) -> Process {
        Process::spawn(command, &[]).expect("the program should start")
    }

    fn spawn(mut command: Command, environment: &[(String, String)]) -> anyhow::Result<Process> {
        let mut child = command
            .envs(environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = child.stderr.take();
        let log = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&log);
        // A thread of its own, because a full pipe would stop the process.
        std::thread::spawn(move || {
            for line in stderr.into_iter().flat_map(|stderr| BufReader::new(stderr).lines()).map_while(Result::ok) {
                written.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        Ok(Process { child: Arc::new(Mutex::new(child)), log })
    }

    /// Everything it has logged.
    pub fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }

    /// How much memory it has in use.
    pub fn resident_bytes(&self) -> usize {
        self.memory("VmRSS:")
    }

    /// How much memory it had in use at its highest.
    pub fn highest_bytes(&self) -> usize {
        self.memory("VmHWM:")
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.lock().unwrap_or_else(PoisonError::into_inner).id()
    }

    fn memory(&self, figure: &str) -> usize {
        let told = std::fs::read_to_string(format!("/proc/{}/status", self.id())).expect("the process should run");
        let line = told.lines().find_map(|line| line.strip_prefix(figure)).expect("its memory should be told");
        let kibibytes: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kibibytes * 1024
    }

    /// Ends it at once, as a crash or the kernel does.
    pub fn kill(&self) {
        self.signal("-KILL");
        // It fails only if the process is gone already.
        drop(self.child.lock().unwrap_or_else(PoisonError::into_inner).wait());
    }

    /// Sends a signal.
    #[expect(clippy::disallowed_methods, reason = "signals a test's own process")]
    pub fn signal(&self, signal: &str) {
        let id = self.id().to_string();
        let done = Command::new("kill").args([signal, &id]).status();
        assert!(done.is_ok_and(|status| status.success()), "kill {signal} should reach the process");
    }

    /// How it ended, if it has.
    pub fn ended(&self) -> Option<ExitStatus> {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        child.try_wait().expect("the state of a child should be known")
    }

    /// Waits for its end.
    pub async fn end(&self) -> ExitStatus {
        until("the process to end", async || self.ended()).await
    }

    /// Where it says it serves.
    fn address(&self) -> Option<SocketAddr> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let line = log.iter().find(|line| line.contains("\"serving\""))?;
        let text = line.split_once("\"address\":\"")?.1;
        text.split('"').next()?.parse().ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The last holder takes the process along, so that a failed test leaves none behind.
        if Arc::strong_count(&self.child) == 1 {
            let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
            drop(child.kill());
            drop(child.wait());
        }
    }
}
