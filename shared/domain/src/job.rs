//! A job: commands of a runbook that a runner is to execute once, and what became of them.
//!
//! The record moves only through the methods in `apply`, each a pure function of the job, the store's time and who asks.
//! A runner claims a job for a while (lease) and under a number (epoch). Before it executes anything it reports the
//! start. A claim without a start may be taken by another runner once its lease is over; a job that was started is
//! never given to anybody else, because nobody can prove that its command is not still at work.
//!
//! A lease is judged by whoever looks ([`Job::standing`]); nothing has to walk over jobs in the background.
//!
//! Not here: how a job is kept (see `store`), how its commands are executed (see `runner`).

use crate::{JobId, Moment, Principal, RunnerId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

mod apply;

pub use apply::JobRefusal;

/// Which runners a job is for: a DNS label, such as `shop-hosts`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunnerLabel(String);

impl RunnerLabel {
    /// Reads a label.
    pub fn parse(text: &str) -> Option<RunnerLabel> {
        crate::text::is_label(text).then(|| RunnerLabel(text.to_owned()))
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for RunnerLabel {
    type Error = &'static str;

    fn try_from(text: String) -> Result<RunnerLabel, &'static str> {
        RunnerLabel::parse(&text).ok_or("a runner label is 1 to 63 of a-z, 0-9 and '-'")
    }
}

impl From<RunnerLabel> for String {
    fn from(label: RunnerLabel) -> String {
        label.0
    }
}

impl fmt::Display for RunnerLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The part of a runbook that is at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStep {
    /// Looks whether there is anything to do.
    Check,
    /// Does it.
    Run,
    /// Looks whether it was done.
    Verify,
}

impl JobStep {
    /// The one spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            JobStep::Check => "check",
            JobStep::Run => "run",
            JobStep::Verify => "verify",
        }
    }
}

/// One variable of a job's environment. Its value does not print.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobVariable {
    /// The value; empty once the job was started, since nobody needs it any more.
    pub value: String,
    /// Whether the value is a secret, to be taken out of everything the commands print.
    #[serde(default)]
    pub secret: bool,
}

impl fmt::Debug for JobVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobVariable({} bytes{})", self.value.len(), if self.secret { ", secret" } else { "" })
    }
}

/// What a runner is to execute. Everything is resolved; no shell reads any of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// Which runners may take it.
    pub label: RunnerLabel,
    /// The runbook, as `group/name`.
    pub runbook: String,
    /// The runbook as its author wrote it, arguments not filled in: canonical JSON of `runbook::RunbookText`. A runner
    /// whose owner pinned it checks that the commands below follow from it.
    pub text: String,
    /// The arguments, as they stand in the commands.
    #[serde(default)]
    pub arguments: BTreeMap<String, String>,
    /// Exit 0: it is done already, and nothing else runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Vec<String>>,
    /// The command itself; none in a job that only checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Vec<String>>,
    /// Exit 0: it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Vec<String>>,
    /// The environment, besides what the runner itself provides.
    #[serde(default)]
    pub env: BTreeMap<String, JobVariable>,
    /// The working directory; the runner's own if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// How long all steps together may take, in milliseconds.
    pub timeout_ms: u64,
    /// How many bytes of output are kept.
    pub output_bytes: u64,
}

impl JobSpec {
    /// How long all steps together may take.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// SHA-256 over the text of the runbook, as `sha256:<hex>`; what a runner's owner pins.
    pub fn digest(&self) -> String {
        format!("sha256:{}", crate::json::sha256_hex(self.text.as_bytes()))
    }
}

/// How one step ended, if not well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepExit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal, which the runner did not send.
    Signal(i32),
    /// The deadline was over, and the runner ended it.
    TimedOut,
    /// It could not be started: no such program, no such directory.
    NotStarted(String),
}

/// What became of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum JobEnding {
    /// `check` found it done; nothing else was executed.
    AlreadyDone,
    /// Executed, and verified where there is a `verify`.
    Succeeded,
    /// A step failed; the steps before it were executed.
    Failed {
        /// Which.
        step: JobStep,
        /// How.
        exit: StepExit,
    },
    /// The runner's own rules forbid it. Nothing was executed.
    Refused {
        /// Which rule, in words.
        reason: String,
    },
    /// Provably nothing was executed: taken back in time, or nobody took it, or the lease was over too early.
    NotBegun {
        /// Why, in words.
        reason: String,
    },
    /// Ended by its submitter's wish while it was at work; a part may be done.
    Cancelled,
    /// The runner itself cannot tell.
    Unknown {
        /// Why, in words.
        reason: String,
    },
}

impl JobEnding {
    /// The stable name: in metrics, spans and the audit log.
    pub const fn as_str(&self) -> &'static str {
        match self {
            JobEnding::AlreadyDone => "already_done",
            JobEnding::Succeeded => "succeeded",
            JobEnding::Failed { .. } => "failed",
            JobEnding::Refused { .. } => "refused",
            JobEnding::NotBegun { .. } => "not_begun",
            JobEnding::Cancelled => "cancelled",
            JobEnding::Unknown { .. } => "unknown",
        }
    }
}

/// Who holds a job: one process, with one account's token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobHolder {
    /// The process.
    pub runner: RunnerId,
    /// Whose token it shows.
    pub principal: Principal,
}

/// A runner's hold on a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobClaim {
    /// Whose.
    pub holder: JobHolder,
    /// Counts the claims of this job; whoever shows an older one is refused.
    pub epoch: u64,
    /// Until when the runner need not be heard of, by the store's clock.
    pub until: Moment,
    /// When it reported the start, before anything was executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Moment>,
}

/// A job as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// The run or call it belongs to.
    pub owner: String,
    /// What is to be executed. Without values of variables once it was started.
    pub spec: JobSpec,
    /// When it was submitted, by the store's clock.
    pub submitted_at: Moment,
    /// The last moment at which a runner may claim it.
    pub claim_by: Moment,
    /// Who has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<JobClaim>,
    /// Whether its submitter wants it ended.
    #[serde(default)]
    pub cancel: bool,
    /// How many chunks of output are kept.
    #[serde(default)]
    pub chunks: u64,
    /// How many bytes of output are kept.
    #[serde(default)]
    pub kept_bytes: u64,
    /// How many bytes of output were left out.
    #[serde(default)]
    pub dropped_bytes: u64,
    /// What became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<JobEnding>,
}

/// Where a job stands at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobStanding {
    /// Waits for a runner. Nothing was executed.
    Queued,
    /// A runner has it and has not begun.
    Claimed,
    /// A runner executes it.
    Started,
    /// A runner began and has not been heard of for longer than its lease. It may still report.
    Lost,
    /// Over.
    Ended,
}

impl JobStanding {
    /// The one spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            JobStanding::Queued => "queued",
            JobStanding::Claimed => "claimed",
            JobStanding::Started => "started",
            JobStanding::Lost => "lost",
            JobStanding::Ended => "ended",
        }
    }
}

/// From where a piece of output came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A piece of what a step printed, secrets taken out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobOutput {
    /// Which step.
    pub step: JobStep,
    /// On which stream.
    pub stream: OutputStream,
    /// Whole lines, unless a line was too long.
    pub text: String,
}

#[cfg(test)]
mod tests;
