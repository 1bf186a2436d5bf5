//! The processes of one call. They are one group, are limited, and are ended together.

use crate::client::config::HelmConfig;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process_group, prlimit};
use std::path::Path;

/// What a process that left its group behind could still use up.
const LIMITS: [(Resource, u64); 3] =
    [(Resource::Core, 0), (Resource::Fsize, 256 * 1024 * 1024), (Resource::Nofile, 1024)];
/// What a Go program reserves of its address space without using it.
const RESERVED: u64 = 3 * 1024 * 1024 * 1024;

/// What one process may use: a template can ask for any amount of text and of time, and this is where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::client) struct HelmUsage {
    /// Bytes of memory.
    pub(in crate::client) memory: u64,
    /// Seconds of CPU time, of all its threads together.
    pub(in crate::client) cpu: u64,
}

impl HelmUsage {
    pub(in crate::client) fn of(config: &HelmConfig) -> HelmUsage {
        HelmUsage { memory: config.memory_bytes, cpu: config.cpu.as_secs().max(1) }
    }

    fn limits(self) -> [(Resource, u64); 3] {
        let HelmUsage { memory, cpu } = self;
        [(Resource::Data, memory), (Resource::As, memory.saturating_add(RESERVED)), (Resource::Cpu, cpu)]
    }
}

/// The group of a program that was started as its leader. Ends it when dropped, unless it was released.
#[derive(Debug)]
pub(in crate::client) struct HelmProcessGroup(Option<Pid>);

impl HelmProcessGroup {
    /// The group led by a process that was started just now, its limits set.
    pub(in crate::client) fn led_by(pid: Option<u32>, usage: HelmUsage) -> HelmProcessGroup {
        let pid = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        for (resource, most) in LIMITS.into_iter().chain(usage.limits()) {
            let limit = Rlimit { current: Some(most), maximum: Some(most) };
            // A limit that cannot be set belongs to a process that is gone already.
            if let Some(error) = pid.and_then(|pid| prlimit(Some(pid), resource, limit).err()) {
                tracing::debug!(%error, "a limit of helm was not set");
            }
        }
        HelmProcessGroup(pid)
    }

    /// Asks it to end.
    pub(in crate::client) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends it.
    pub(in crate::client) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// The leader was waited for and nobody else is left: its number may belong to others from now on.
    pub(in crate::client) fn release(&mut self) {
        self.0 = None;
    }

    fn signal(&self, signal: Signal) {
        let Some(pid) = self.0 else { return };
        // No such group: they ended by themselves.
        if let Err(error) = kill_process_group(pid, signal) {
            tracing::debug!(%error, "helm had ended already");
        }
    }
}

impl Drop for HelmProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A process by its number and the moment it began, since numbers are used again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::client) struct ProcessIdentity {
    pid: u32,
    began: u64,
    /// In which space of numbers, and since which start of the machine.
    space: String,
}

impl ProcessIdentity {
    /// Who has this number now.
    pub(in crate::client) fn of(pid: u32) -> Option<ProcessIdentity> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name of the program stands in brackets and may hold anything; the start is the 20th field behind it.
        let began = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
        let space = std::fs::read_link("/proc/self/ns/pid").ok()?;
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(ProcessIdentity { pid, began, space: format!("{}@{}", space.display(), boot.trim()) })
    }

    /// Ourselves.
    pub(in crate::client) fn own() -> Option<ProcessIdentity> {
        ProcessIdentity::of(std::process::id())
    }

    /// As one line.
    pub(in crate::client) fn line(&self) -> String {
        format!("{} {} {}", self.pid, self.began, self.space)
    }

    /// Reads the line of a file.
    pub(in crate::client) fn read(file: &Path) -> Option<ProcessIdentity> {
        let text = std::fs::read_to_string(file).ok()?;
        let mut words = text.split_whitespace();
        let (pid, began) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(ProcessIdentity { pid, began, space: words.next()?.to_owned() })
    }

    /// Whether it could be seen from here if it were alive.
    pub(in crate::client) fn is_near(&self) -> bool {
        ProcessIdentity::own().is_some_and(|own| own.space == self.space)
    }

    /// Whether it is alive.
    pub(in crate::client) fn is_alive(&self) -> bool {
        ProcessIdentity::of(self.pid).as_ref() == Some(self)
    }

    /// Ends the group it leads.
    pub(in crate::client) fn kill_group(&self) {
        if self.is_alive() {
            drop(HelmProcessGroup(i32::try_from(self.pid).ok().and_then(Pid::from_raw)));
        }
    }
}
