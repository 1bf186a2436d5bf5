//! What an import does with one file. Nobody's change is lost: a document that changed since the file was exported is left
//! as it is, and reported.

use super::file::DocumentFile;
use crate::http::memory::DocumentSummary;

/// What is to be done with one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SyncStep {
    /// The service has it so already.
    Unchanged,
    /// The file was not touched since it was taken, and the service has something newer.
    Behind,
    /// There is no such document yet.
    Create,
    /// The document is still the one the file was taken from.
    Replace(String),
    /// Both have changed.
    Conflict,
}

/// Compares a file with what the service has at its path.
pub(super) fn step(filed: &DocumentFile, there: Option<&DocumentSummary>) -> SyncStep {
    let Some(there) = there else { return SyncStep::Create };
    let digest = domain::json::sha256_hex(memory::documents::normalise(&filed.content).as_bytes());
    let titled = filed.title.as_ref().is_none_or(|title| *title == there.title);
    if digest == there.sha256 && titled && filed.kind == there.kind && filed.tags == there.tags {
        return SyncStep::Unchanged;
    }
    match &filed.sha256 {
        Some(taken) if *taken == there.sha256 => SyncStep::Replace(taken.clone()),
        Some(taken) if *taken == digest => SyncStep::Behind,
        Some(_) | None => SyncStep::Conflict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filed(content: &str, taken: Option<&str>) -> DocumentFile {
        DocumentFile {
            title: Some("T".into()),
            kind: "note".into(),
            tags: vec!["a".into()],
            evidence: None,
            sha256: taken.map(digest),
            content: content.into(),
        }
    }

    fn digest(content: &str) -> String {
        domain::json::sha256_hex(content.as_bytes())
    }

    fn there(content: &str) -> DocumentSummary {
        DocumentSummary {
            path: "tenant/runbooks/a".into(),
            title: "T".into(),
            kind: "note".into(),
            tags: vec!["a".into()],
            trust: "authored".into(),
            version: 3,
            sha256: digest(content),
            updated_at: String::new(),
        }
    }

    #[test]
    fn each_file_is_written_skipped_or_left_in_conflict() {
        for (content, taken, now, step_wanted) in [
            ("x", None, None, SyncStep::Create),
            ("x", Some("x"), None, SyncStep::Create),
            ("x \r\n", Some("x"), Some("x"), SyncStep::Unchanged),
            ("x", None, Some("x"), SyncStep::Unchanged),
            ("x", Some("w"), Some("x"), SyncStep::Unchanged),
            ("y", Some("x"), Some("x"), SyncStep::Replace(digest("x"))),
            ("x", Some("x"), Some("y"), SyncStep::Behind),
            ("z", Some("x"), Some("y"), SyncStep::Conflict),
            ("x", None, Some("y"), SyncStep::Conflict),
        ] {
            let now = now.map(there);
            assert_eq!(step(&filed(content, taken), now.as_ref()), step_wanted, "{content:?} {taken:?} {now:?}");
        }
    }

    #[test]
    fn another_title_type_or_tag_is_a_change() {
        let same = filed("x", Some("x"));
        for changed in [
            DocumentFile { title: Some("U".into()), ..same.clone() },
            DocumentFile { kind: "lesson".into(), ..same.clone() },
            DocumentFile { tags: Vec::new(), ..same.clone() },
        ] {
            assert_eq!(step(&changed, Some(&there("x"))), SyncStep::Replace(digest("x")));
        }
        assert_eq!(step(&DocumentFile { title: None, ..same }, Some(&there("x"))), SyncStep::Unchanged);
    }
}
