//! One document as a file: a small head between two lines of dashes, then the text.
//!
//! The head is written as YAML that is also JSON behind each colon, and read a little more generously, since people write
//! such files too. `sha256` names the version the file was exported from; an import replaces that version or none.

use memory::documents::DocumentKind;
use serde_json::json;

/// The most a head may have.
pub(super) const MOST_HEAD: usize = 16 * 1024;
const FENCE: &str = "---";

/// A document in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DocumentFile {
    pub(super) title: Option<String>,
    pub(super) kind: String,
    pub(super) tags: Vec<String>,
    pub(super) evidence: Option<String>,
    pub(super) sha256: Option<String>,
    pub(super) content: String,
}

/// Why a file is not a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileProblem {
    pub(super) line: usize,
    pub(super) message: String,
}

impl DocumentFile {
    /// Reads a file.
    pub(super) fn parse(text: &str) -> Result<DocumentFile, FileProblem> {
        let text = text.replace("\r\n", "\n");
        let (head, content) = split(&text)?;
        let mut filed = DocumentFile {
            title: None,
            kind: String::new(),
            tags: Vec::new(),
            evidence: None,
            sha256: None,
            content: content.to_owned(),
        };
        let mut seen: Vec<&str> = Vec::new();
        for (at, line) in head.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let wrong = |message: String| FileProblem { line: at + 2, message };
            let (key, value) =
                line.split_once(':').ok_or_else(|| wrong("a line of the head is `key: value`".into()))?;
            let (key, value) = (key.trim_end(), value.trim());
            if seen.contains(&key) {
                return Err(wrong(format!("`{key}` appears twice")));
            }
            seen.push(key);
            match key {
                "title" => filed.title = Some(word(value).map_err(wrong)?),
                "type" => filed.kind = word(value).map_err(wrong)?,
                "tags" => filed.tags = words(value).map_err(wrong)?,
                "evidence" => filed.evidence = Some(word(value).map_err(wrong)?),
                "sha256" => filed.sha256 = Some(word(value).map_err(wrong)?),
                _ => return Err(wrong("the head can have title, type, tags, evidence and sha256".into())),
            }
        }
        if DocumentKind::parse(&filed.kind).is_none() {
            let kinds = DocumentKind::ALL.map(DocumentKind::as_str).join(", ");
            return Err(FileProblem { line: 1, message: format!("`type` must be one of {kinds}") });
        }
        Ok(filed)
    }

    /// Writes it out.
    pub(super) fn to_text(&self) -> String {
        let mut head = String::new();
        if let Some(title) = &self.title {
            head.push_str(&format!("title: {}\n", json!(title)));
        }
        head.push_str(&format!("type: {}\ntags: {}\n", self.kind, json!(self.tags)));
        if let Some(evidence) = &self.evidence {
            head.push_str(&format!("evidence: {}\n", json!(evidence)));
        }
        if let Some(sha256) = &self.sha256 {
            head.push_str(&format!("sha256: {sha256}\n"));
        }
        format!("{FENCE}\n{head}{FENCE}\n{}\n", self.content)
    }
}

/// The same file, taken from another version. Nothing else of it is touched: it may be somebody's own writing.
pub(super) fn with_sha256(text: &str, sha256: &str) -> String {
    let line = format!("sha256: {sha256}");
    let (mut out, mut fences, mut done) = (Vec::new(), 0, false);
    for old in text.split('\n') {
        let fence = fences < 2 && old.trim_end() == FENCE;
        if fence && fences == 1 && !done {
            out.push(line.as_str());
        }
        fences += usize::from(fence);
        let named = fences == 1 && old.split_once(':').is_some_and(|(key, _)| key.trim_end() == "sha256");
        done |= named;
        out.push(if named { &line } else { old });
    }
    out.join("\n")
}

/// How many lines of a file come before its text.
pub(super) fn head_lines(text: &str) -> usize {
    text.lines().skip(1).position(|line| line.trim_end() == FENCE).map_or(0, |at| at + 2)
}

/// Head and text of a file.
fn split(text: &str) -> Result<(&str, &str), FileProblem> {
    let wrong = |message: &str| FileProblem { line: 1, message: message.to_owned() };
    let begin = wrong("the file must begin with a head between two lines `---`");
    let rest = text.strip_prefix(FENCE).and_then(|rest| rest.strip_prefix('\n')).ok_or(begin)?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if at > MOST_HEAD {
            return Err(wrong("the head is too long"));
        }
        if line.trim_end() == FENCE {
            return Ok((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    Err(wrong("the head does not end with a line `---`"))
}

/// One text: in quotes as JSON has it, or as it stands.
fn word(value: &str) -> Result<String, String> {
    match value.as_bytes().first() {
        Some(b'"') => serde_json::from_str(value).map_err(|_| "the closing quote is missing".to_owned()),
        Some(b'[' | b'{' | b'|' | b'>' | b'&' | b'*' | b'!' | b'\'') => Err("write it in double quotes".to_owned()),
        Some(_) => Ok(value.to_owned()),
        None => Err("a value is missing".to_owned()),
    }
}

/// Several texts in brackets.
fn words(value: &str) -> Result<Vec<String>, String> {
    if let Ok(words) = serde_json::from_str(value) {
        return Ok(words);
    }
    let inner = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let inner = inner.ok_or_else(|| "write tags in brackets, such as [db, cart]".to_owned())?;
    inner.split(',').map(str::trim).filter(|one| !one.is_empty()).map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filed() -> DocumentFile {
        DocumentFile {
            title: Some("A \"title\": with\ntricks".into()),
            kind: "runbook".into(),
            tags: vec!["db".into(), "cart".into()],
            evidence: Some("seen\u{202e} in run_1".into()),
            sha256: Some("ab12".into()),
            content: "# Text\n---\nnot: a head\n\n  end".into(),
        }
    }

    #[test]
    fn a_file_reads_back_as_it_was_written() {
        let text = filed().to_text();
        let read = DocumentFile::parse(&text).unwrap();
        assert_eq!(DocumentFile { content: read.content.trim_end().to_owned(), ..read.clone() }, filed());
        assert_eq!(memory::documents::normalise(&read.content), filed().content);
        let bare = DocumentFile { title: None, tags: Vec::new(), evidence: None, sha256: None, ..filed() };
        let read = DocumentFile::parse(&bare.to_text()).unwrap();
        assert_eq!((read.title, read.tags, read.evidence, read.sha256), (None, Vec::new(), None, None));
    }

    #[test]
    fn what_people_write_is_read() {
        let text = "---\r\ntitle: Cart failover: how\r\ntype: note\r\n\r\ntags: [db, \"c d\",]\r\n---\r\nText\r\n";
        let read = DocumentFile::parse(text).unwrap();
        assert_eq!((read.title.as_deref(), read.kind.as_str()), (Some("Cart failover: how"), "note"));
        assert_eq!((read.tags, read.content.as_str()), (vec!["db".to_owned(), "c d".to_owned()], "Text\n"));
    }

    #[test]
    fn what_is_no_document_says_where() {
        for (text, line) in [
            ("# Text", 1),
            ("---\ntype: note\n", 1),
            ("---\ntitle: x\n---\n", 1),
            ("---\ntype: Note\n---\n", 1),
            ("---\ntype: note\nowner: me\n---\n", 3),
            ("---\ntype: note\ntype: note\n---\n", 3),
            ("---\ntype: note\ntitle:\n---\n", 3),
            ("---\ntype: note\ntitle: |\n---\n", 3),
            ("---\ntype: note\ntitle: \"x\n---\n", 3),
            ("---\ntype: note\ntags: db\n---\n", 3),
            ("---\ntype: note\njust a line\n---\n", 3),
        ] {
            assert_eq!(DocumentFile::parse(text).unwrap_err().line, line, "{text:?}");
        }
        let long = format!("---\ntype: note\ntitle: {}\n---\n", "x".repeat(MOST_HEAD));
        assert_eq!(DocumentFile::parse(&long).unwrap_err().message, "the head is too long");
    }

    #[test]
    fn a_new_version_is_noted_and_nothing_else_is_touched() {
        let text = "---\ntype: note # mine\nsha256: old\n---\nsha256: in the text\n---\n";
        assert_eq!(with_sha256(text, "new"), text.replace("sha256: old", "sha256: new"));
        let bare = "---\ntype: note\n---\ntext";
        assert_eq!((head_lines(text), head_lines(bare), head_lines("text")), (4, 3, 0));
        assert_eq!(with_sha256(bare, "new"), "---\ntype: note\nsha256: new\n---\ntext");
    }
}
