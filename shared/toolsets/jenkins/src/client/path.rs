//! How things on a server are named. A name becomes one or more encoded segments of a path and nothing else: no dot
//! segment, no separator, no query, no control character gets through.

use domain::text::{is_invisible, is_variation_selector};
use std::fmt;

/// The path of a job or folder: `folder/job`, one to ten segments.
///
/// `%2F` in a segment is a literal part of it: that is how Jenkins itself names the job of the branch `feature/x`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JobPath(String);

/// The text is no path of a job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a job is named by its path a/b/c: 1 to 10 segments of 1 to 200 characters, none of them '.' or '..', without control characters"
)]
pub struct NotAJob;

const MOST_SEGMENTS: usize = 10;
const MOST_LETTERS: usize = 200;

impl JobPath {
    /// Reads a path.
    pub fn parse(text: &str) -> Result<JobPath, NotAJob> {
        let mut segments = text.split('/');
        let fits = segments.clone().count() <= MOST_SEGMENTS
            && segments.all(|segment| is_segment(segment) && segment.chars().count() <= MOST_LETTERS);
        if fits { Ok(JobPath(text.to_owned())) } else { Err(NotAJob) }
    }

    /// As it was given, and as Jenkins calls it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last segment.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// The folder it is in; `None` at the root.
    pub fn parent(&self) -> Option<JobPath> {
        self.0.rsplit_once('/').map(|(parent, _)| JobPath(parent.to_owned()))
    }

    /// `/job/a/job/b`, every segment encoded.
    pub(in crate::client) fn address(&self) -> String {
        let mut out = String::new();
        for segment in self.0.split('/') {
            out.push_str("/job/");
            encode(&mut out, segment);
        }
        out
    }
}

impl fmt::Display for JobPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for JobPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Which build of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildSelector {
    /// The one with this number.
    Number(u32),
    /// The newest.
    Last,
    /// The newest that failed.
    LastFailed,
    /// The newest that succeeded.
    LastSuccessful,
    /// The newest that is over.
    LastCompleted,
}

impl BuildSelector {
    /// Reads a number, or one of `last`, `lastFailed`, `lastSuccessful` and `lastCompleted`.
    pub fn parse(text: &str) -> Option<BuildSelector> {
        match text {
            "last" => Some(BuildSelector::Last),
            "lastFailed" => Some(BuildSelector::LastFailed),
            "lastSuccessful" => Some(BuildSelector::LastSuccessful),
            "lastCompleted" => Some(BuildSelector::LastCompleted),
            // The parser of numbers would let a sign through.
            digits if digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0') => {
                digits.parse().ok().map(BuildSelector::Number)
            }
            _ => None,
        }
    }

    pub(in crate::client) fn segment(self) -> String {
        match self {
            BuildSelector::Number(number) => number.to_string(),
            BuildSelector::Last => "lastBuild".to_owned(),
            BuildSelector::LastFailed => "lastFailedBuild".to_owned(),
            BuildSelector::LastSuccessful => "lastSuccessfulBuild".to_owned(),
            BuildSelector::LastCompleted => "lastCompletedBuild".to_owned(),
        }
    }
}

impl fmt::Display for BuildSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildSelector::Number(number) => write!(f, "#{number}"),
            BuildSelector::Last
            | BuildSelector::LastFailed
            | BuildSelector::LastSuccessful
            | BuildSelector::LastCompleted => f.write_str(&self.segment()),
        }
    }
}

/// The path of an artifact within its build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactPath(String);

/// The text is no path of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "an artifact is a path from the list of artifacts: at most 512 bytes, no '.' or '..', no '*', '?' or backslash, without control characters"
)]
pub struct NotAnArtifact;

impl ArtifactPath {
    /// Reads a path. What Jenkins would take as a pattern, an archive on the fly or a folder up is refused.
    pub fn parse(text: &str) -> Result<ArtifactPath, NotAnArtifact> {
        let fits = text.len() <= 512 && !text.contains(['*', '?', '\\']) && text.split('/').all(is_segment);
        if fits { Ok(ArtifactPath(text.to_owned())) } else { Err(NotAnArtifact) }
    }

    /// As it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(in crate::client) fn address(&self) -> String {
        let mut out = String::new();
        for segment in self.0.split('/') {
            out.push('/');
            encode(&mut out, segment);
        }
        out
    }
}

/// Whether a character is neither a control nor one that makes text read otherwise than it is. What chooses how an emoji
/// is drawn is part of honest names.
pub fn is_plain(c: char) -> bool {
    !c.is_control() && (!is_invisible(c) || is_variation_selector(c))
}

fn is_segment(segment: &str) -> bool {
    !matches!(segment, "" | "." | "..") && segment.chars().all(is_plain)
}

/// Everything but letters, digits and four harmless signs is encoded, so that a forgotten check still bends no path.
pub(in crate::client) fn encode(out: &mut String, text: &str) {
    const HEX: [u8; 16] = *b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_path_becomes_encoded_segments() {
        let path = JobPath::parse("shop/web app/feature%2Fcart").unwrap();
        assert_eq!(path.address(), "/job/shop/job/web%20app/job/feature%252Fcart");
        assert_eq!((path.name(), path.parent().unwrap().as_str()), ("feature%2Fcart", "shop/web app"));
        assert_eq!(JobPath::parse("a").unwrap().parent(), None);
        assert_eq!(JobPath::parse("a?b=c#d").unwrap().address(), "/job/a%3Fb%3Dc%23d");
        assert_eq!(JobPath::parse("%2e%2e").unwrap().address(), "/job/%252e%252e");
    }

    #[test]
    fn what_is_no_path_is_refused() {
        let (long, deep) = ("x".repeat(201), ["a"; 11].join("/"));
        for bad in [
            "",
            "/",
            "a//b",
            "/a",
            "a/",
            ".",
            "..",
            "a/../b",
            "a/.",
            "a\nb",
            "a\0",
            "\u{202e}a",
            "\u{feff}",
            &long,
            &deep,
        ] {
            assert!(JobPath::parse(bad).is_err(), "{bad:?}");
        }
        for bad in ["", "/a", "a/", "../a", "a/..", "*zip*/a.zip", "a?", "a\\b", "a\rb", &"x".repeat(513)] {
            assert!(ArtifactPath::parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(ArtifactPath::parse("out/a b#1.txt").unwrap().address(), "/out/a%20b%231.txt");
    }

    #[test]
    fn a_build_is_a_number_or_one_of_four_words() {
        assert_eq!(BuildSelector::parse("17"), Some(BuildSelector::Number(17)));
        assert_eq!(BuildSelector::parse("lastFailed"), Some(BuildSelector::LastFailed));
        for bad in ["", "0", "-1", "+1", "017", "1/stop", "lastBuild", "latest", "4294967296", "1 "] {
            assert_eq!(BuildSelector::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_leaves_its_place_in_the_path(text in "\\PC{0,40}") {
            if let Ok(path) = JobPath::parse(&text) {
                let address = path.address();
                prop_assert!(address.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.~%/".contains(&b)));
                prop_assert_eq!(address.matches("/job/").count(), text.split('/').count());
                prop_assert!(address.split('/').all(|segment| segment != "." && segment != ".."));
            }
        }
    }
}
