//! The small values a call is made of, each parsed by its own grammar. What they become of is decided by `jenkins`.

use crate::client::path::is_plain;
use crate::client::{ArtifactPath, BuildSelector, JobPath};
use domain::{Code, Failure};
use target::checked_text;

checked_text!(
    /// The path of a job or folder.
    JobText, |text| JobPath::parse(text).is_ok(),
    "a job is named by its path a/b/c: 1 to 10 segments of 1 to 200 characters, none of them '.' or '..', without control characters",
    { "type": "string", "minLength": 1, "maxLength": 2009 }
);

checked_text!(
    /// Which build: a number, or a word for the newest of a kind.
    BuildText, |text| BuildSelector::parse(text).is_some(), "a build is a number, last, lastFailed, lastSuccessful or lastCompleted",
    { "type": "string", "minLength": 1, "maxLength": 14, "pattern": "^([1-9][0-9]{0,9}|last|lastFailed|lastSuccessful|lastCompleted)$" }
);

checked_text!(
    /// The path of an artifact within its build.
    ArtifactText, |text| ArtifactPath::parse(text).is_ok(),
    "an artifact is a path from show=artifacts: at most 512 bytes, no '.' or '..', no '*', '?' or backslash, without control characters",
    { "type": "string", "minLength": 1, "maxLength": 512 }
);

checked_text!(
    /// The id of a stage.
    StageText, |text| (1..=9).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()),
    "a stage is named by its id from jenkins_build show=stages",
    { "type": "string", "minLength": 1, "maxLength": 9, "pattern": "^[0-9]+$" }
);

checked_text!(
    /// A part of a job's path.
    QueryText, |text| (1..=128).contains(&text.len()) && text.chars().all(is_plain),
    "a query has 1 to 128 bytes and no control characters",
    { "type": "string", "minLength": 1, "maxLength": 128 }
);

checked_text!(
    /// What a build is called; empty for its number alone.
    NameText, |text| text.chars().count() <= 200 && text.chars().all(is_plain),
    "a name has at most 200 characters and no control characters",
    { "type": "string", "maxLength": 200 }
);

checked_text!(
    /// What is said about a build; empty for nothing.
    DescriptionText, |text| text.chars().count() <= 10_000 && text.chars().all(|c| is_plain(c) || matches!(c, '\n' | '\r' | '\t')),
    "a description has at most 10000 characters and no control characters but line ends and tabs",
    { "type": "string", "maxLength": 10_000 }
);

impl JobText {
    /// The path it names.
    pub(super) fn path(&self) -> Result<JobPath, Failure> {
        JobPath::parse(self.as_str()).map_err(|error| Failure::new(Code::InvalidArgument, error.to_string()))
    }
}

impl BuildText {
    /// The build it names; the newest, where none is named.
    pub(super) fn which(text: Option<&BuildText>) -> BuildSelector {
        text.and_then(|text| BuildSelector::parse(text.as_str())).unwrap_or(BuildSelector::Last)
    }
}

impl ArtifactText {
    /// The path it names.
    pub(super) fn path(&self) -> Result<ArtifactPath, Failure> {
        ArtifactPath::parse(self.as_str()).map_err(|error| Failure::new(Code::InvalidArgument, error.to_string()))
    }
}

impl StageText {
    /// The id as a number.
    pub(super) fn id(&self) -> u32 {
        self.as_str().parse().unwrap_or_default()
    }
}
