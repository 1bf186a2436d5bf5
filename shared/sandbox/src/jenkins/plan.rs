//! What a build does: its stages, what they say, how it ends and what it leaves behind.

use std::time::Duration;

/// The script of a simulated build.
#[derive(Debug, Clone)]
pub struct Plan {
    pub(super) stages: Vec<Stage>,
    pub(super) outcome: Outcome,
    pub(super) artifacts: Vec<(String, Vec<u8>)>,
    pub(super) cases: Vec<Case>,
    pub(super) changes: Vec<Change>,
    pub(super) stubborn: Stubborn,
}

/// A part of a build. In a freestyle job only its lines are seen.
#[derive(Debug, Clone)]
pub(super) struct Stage {
    pub(super) name: String,
    pub(super) lasts: Duration,
    pub(super) lines: Vec<String>,
}

/// How a build ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All went well.
    Success,
    /// It was built, and tests failed.
    Unstable,
    /// It broke; the last stage is the one that failed.
    Failure,
    /// Somebody stopped it.
    Aborted,
    /// Nothing was built.
    NotBuilt,
}

/// What it takes to stop a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stubborn {
    /// `stop` is enough.
    Never,
    /// `stop` is ignored, `term` is not.
    UntilTerm,
    /// Only `kill` helps.
    UntilKill,
}

/// How one test case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It passed.
    Passed,
    /// It failed, as it did before.
    Failed,
    /// It failed for the first time.
    Regression,
    /// It was left out.
    Skipped,
}

#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) class: String,
    pub(super) name: String,
    pub(super) verdict: Verdict,
}

/// A commit that is new in a build.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) author: String,
    pub(super) message: String,
    pub(super) paths: Vec<String>,
}

impl Plan {
    /// A build without stages that succeeds at once.
    pub fn new() -> Plan {
        Plan {
            stages: Vec::new(),
            outcome: Outcome::Success,
            artifacts: Vec::new(),
            cases: Vec::new(),
            changes: Vec::new(),
            stubborn: Stubborn::Never,
        }
    }

    /// A build of one stage that lasts so long and succeeds.
    pub fn lasting(time: Duration) -> Plan {
        Plan::new().stage("Build", time, &["+ make all"])
    }

    /// Adds a stage; its lines come evenly spread over its time.
    #[must_use]
    pub fn stage(mut self, name: &str, lasts: Duration, lines: &[&str]) -> Plan {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        self.stages.push(Stage { name: name.to_owned(), lasts, lines });
        self
    }

    /// How it ends if nobody stops it.
    #[must_use]
    pub fn ending(mut self, outcome: Outcome) -> Plan {
        self.outcome = outcome;
        self
    }

    /// A file it archives at its end.
    #[must_use]
    pub fn artifact(mut self, path: &str, content: impl Into<Vec<u8>>) -> Plan {
        self.artifacts.push((path.to_owned(), content.into()));
        self
    }

    /// A test case of its report. Without any there is no report.
    #[must_use]
    pub fn case(mut self, class: &str, name: &str, verdict: Verdict) -> Plan {
        self.cases.push(Case { class: class.to_owned(), name: name.to_owned(), verdict });
        self
    }

    /// A commit that is new in it.
    #[must_use]
    pub fn change(mut self, author: &str, message: &str, paths: &[&str]) -> Plan {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        self.changes.push(Change { author: author.to_owned(), message: message.to_owned(), paths });
        self
    }

    /// What it takes to stop it.
    #[must_use]
    pub fn stubborn(mut self, stubborn: Stubborn) -> Plan {
        self.stubborn = stubborn;
        self
    }

    /// How long it takes.
    pub(super) fn lasts(&self) -> Duration {
        self.stages.iter().map(|stage| stage.lasts).sum()
    }
}

impl Default for Plan {
    fn default() -> Plan {
        Plan::new()
    }
}

impl Outcome {
    /// As builds show it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Outcome::Success => "SUCCESS",
            Outcome::Unstable => "UNSTABLE",
            Outcome::Failure => "FAILURE",
            Outcome::Aborted => "ABORTED",
            Outcome::NotBuilt => "NOT_BUILT",
        }
    }

    /// As the stage view shows it.
    pub(super) fn stage_status(self) -> &'static str {
        match self {
            Outcome::Success => "SUCCESS",
            Outcome::Unstable => "UNSTABLE",
            Outcome::Failure => "FAILED",
            Outcome::Aborted => "ABORTED",
            Outcome::NotBuilt => "NOT_EXECUTED",
        }
    }

    /// The ball beside a job.
    pub(super) fn color(self) -> &'static str {
        match self {
            Outcome::Success => "blue",
            Outcome::Unstable => "yellow",
            Outcome::Failure => "red",
            Outcome::Aborted => "aborted",
            Outcome::NotBuilt => "notbuilt",
        }
    }
}
