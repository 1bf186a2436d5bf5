//! What a build does: its stages, what they say, how it ends and what it leaves behind.

use std::time::Duration;

/// The script of a simulated build.
#[derive(Debug, Clone)]
pub struct BuildScript {
    pub(super) stages: Vec<PlannedStage>,
    pub(super) outcome: BuildResult,
    pub(super) artifacts: Vec<(String, Vec<u8>)>,
    pub(super) cases: Vec<PlannedCase>,
    pub(super) changes: Vec<PlannedCommit>,
    pub(super) stubborn: StopResistance,
}

/// A part of a build. In a freestyle job only its lines are seen.
#[derive(Debug, Clone)]
pub(super) struct PlannedStage {
    pub(super) name: String,
    pub(super) lasts: Duration,
    pub(super) lines: Vec<String>,
}

/// How a build ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildResult {
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
pub enum StopResistance {
    /// `stop` is enough.
    Never,
    /// `stop` is ignored, `term` is not.
    UntilTerm,
    /// Only `kill` helps.
    UntilKill,
}

/// How one test case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseResult {
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
pub(super) struct PlannedCase {
    pub(super) class: String,
    pub(super) name: String,
    pub(super) verdict: CaseResult,
}

/// A commit that is new in a build.
#[derive(Debug, Clone)]
pub(super) struct PlannedCommit {
    pub(super) author: String,
    pub(super) message: String,
    pub(super) paths: Vec<String>,
}

impl BuildScript {
    /// A build without stages that succeeds at once.
    pub fn new() -> BuildScript {
        BuildScript {
            stages: Vec::new(),
            outcome: BuildResult::Success,
            artifacts: Vec::new(),
            cases: Vec::new(),
            changes: Vec::new(),
            stubborn: StopResistance::Never,
        }
    }

    /// A build of one stage that lasts so long and succeeds.
    pub fn lasting(time: Duration) -> BuildScript {
        BuildScript::new().stage("Build", time, &["+ make all"])
    }

    /// Adds a stage; its lines come evenly spread over its time.
    #[must_use]
    pub fn stage(mut self, name: &str, lasts: Duration, lines: &[&str]) -> BuildScript {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        self.stages.push(PlannedStage { name: name.to_owned(), lasts, lines });
        self
    }

    /// How it ends if nobody stops it.
    #[must_use]
    pub fn ending(mut self, outcome: BuildResult) -> BuildScript {
        self.outcome = outcome;
        self
    }

    /// A file it archives at its end.
    #[must_use]
    pub fn artifact(mut self, path: &str, content: impl Into<Vec<u8>>) -> BuildScript {
        self.artifacts.push((path.to_owned(), content.into()));
        self
    }

    /// A test case of its report. Without any there is no report.
    #[must_use]
    pub fn case(mut self, class: &str, name: &str, verdict: CaseResult) -> BuildScript {
        self.cases.push(PlannedCase { class: class.to_owned(), name: name.to_owned(), verdict });
        self
    }

    /// A commit that is new in it.
    #[must_use]
    pub fn change(mut self, author: &str, message: &str, paths: &[&str]) -> BuildScript {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        self.changes.push(PlannedCommit { author: author.to_owned(), message: message.to_owned(), paths });
        self
    }

    /// What it takes to stop it.
    #[must_use]
    pub fn stubborn(mut self, stubborn: StopResistance) -> BuildScript {
        self.stubborn = stubborn;
        self
    }

    /// How long it takes.
    pub(super) fn lasts(&self) -> Duration {
        self.stages.iter().map(|stage| stage.lasts).sum()
    }
}

impl Default for BuildScript {
    fn default() -> BuildScript {
        BuildScript::new()
    }
}

impl BuildResult {
    /// As builds show it.
    pub(super) fn name(self) -> &'static str {
        match self {
            BuildResult::Success => "SUCCESS",
            BuildResult::Unstable => "UNSTABLE",
            BuildResult::Failure => "FAILURE",
            BuildResult::Aborted => "ABORTED",
            BuildResult::NotBuilt => "NOT_BUILT",
        }
    }

    /// As the stage view shows it.
    pub(super) fn stage_status(self) -> &'static str {
        match self {
            BuildResult::Success => "SUCCESS",
            BuildResult::Unstable => "UNSTABLE",
            BuildResult::Failure => "FAILED",
            BuildResult::Aborted => "ABORTED",
            BuildResult::NotBuilt => "NOT_EXECUTED",
        }
    }

    /// The ball beside a job.
    pub(super) fn color(self) -> &'static str {
        match self {
            BuildResult::Success => "blue",
            BuildResult::Unstable => "yellow",
            BuildResult::Failure => "red",
            BuildResult::Aborted => "aborted",
            BuildResult::NotBuilt => "notbuilt",
        }
    }
}
