//! An exported audit log: lines of JSON of four kinds.
//!
//! First the head, `{"ledger":2,"tenant":…,"after":…,"seal":…}`; then the entries, `{"id":…,"entry":…}`, oldest first, with
//! what is in them as `contents` before `entry` where a sink gets that opened, each followed by its link, `{"seq":…,"entry":…,"link":…}`, as far as the seal goes. An entry is kept byte for byte. A
//! checkpoint, `{"checkpoint":…}`, stands behind the last entry it holds, or later.

use crate::checkpoint::Checkpoint;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use store::{ChainLink, EntryLink, OpenedContents};

/// The shape of the lines below the head. Under 1 an export began with the first entry and had no checkpoints.
const SHAPE: u8 = 2;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportHead {
    ledger: u8,
    /// The tenant.
    pub tenant: String,
    /// The link of the entry before the first one here; none if this is the beginning of the audit log.
    #[serde(default)]
    pub after: Option<ChainLink>,
    /// The newest link of this export.
    pub seal: Option<ChainLink>,
}

impl ExportHead {
    /// The head of an export that begins behind `after`.
    pub fn new(tenant: String, after: Option<ChainLink>, seal: Option<ChainLink>) -> ExportHead {
        ExportHead { ledger: SHAPE, tenant, after, seal }
    }

    /// Whether whoever wrote it made checkpoints.
    pub(crate) fn signs(&self) -> bool {
        self.ledger > 1
    }

    /// Reads the first line.
    pub fn read(line: &str) -> Option<ExportHead> {
        let known = |head: &ExportHead| head.ledger == SHAPE || (head.ledger == 1 && head.after.is_none());
        serde_json::from_str(line).ok().filter(known)
    }
}

/// An entry.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportEntry {
    /// Its place.
    pub id: String,
    /// What is sealed in the entry, opened. It is no part of the chain; the entry has its digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<OpenedContents>,
    /// The entry, byte for byte.
    pub entry: Box<RawValue>,
}

/// Any line but the first.
#[derive(Debug)]
pub enum ExportLine {
    /// An entry.
    Entry(ExportEntry),
    /// The link of the entry before it.
    Link(EntryLink),
    /// A checkpoint.
    Checkpoint(Box<Checkpoint>),
}

impl ExportLine {
    /// Reads a line; `None` if it is of no kind.
    pub fn read(line: &str) -> Option<ExportLine> {
        if line.starts_with(r#"{"checkpoint":"#) {
            return Checkpoint::read(line).map(Box::new).map(ExportLine::Checkpoint);
        }
        let entry = serde_json::from_str(line).map(ExportLine::Entry);
        entry.or_else(|_| serde_json::from_str(line).map(ExportLine::Link)).ok()
    }
}

/// Writes a line of any kind.
pub fn write_line(out: &mut String, line: &impl Serialize) -> serde_json::Result<()> {
    out.push_str(&serde_json::to_string(line)?);
    out.push('\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_back_byte_for_byte() {
        let text = r#"{"id":"1-0","entry":{"b": 1.50,"a":"\u0041"}}"#;
        let Some(ExportLine::Entry(read)) = ExportLine::read(text) else { panic!("this is an entry") };
        assert_eq!(read.entry.get(), r#"{"b": 1.50,"a":"\u0041"}"#);
        let mut out = String::new();
        write_line(&mut out, &read).unwrap();
        assert_eq!(out, format!("{text}\n"));
    }

    #[test]
    fn what_is_no_line_of_ours_is_not_taken_for_one() {
        let hex = "0".repeat(64);
        for bad in [
            "",
            "{}",
            "[]",
            r#"{"id":"1-0"}"#,
            r#"{"id":"1-0","entry":{},"entry":{}}"#,
            r#"{"id":"1-0","entry":{},"more":1}"#,
            r#"{"id":"1-0","entry":{}"#,
            r#"{"id":"1-0","entry":{}} {}"#,
            r#"{"checkpoint":1}"#,
            &format!(r#"{{"seq":-1,"entry":"1-0","link":"sha256:{hex}"}}"#),
            &format!(r#"{{"seq":1,"entry":"1-0","link":"md5:{hex}"}}"#),
        ] {
            assert!(ExportLine::read(bad).is_none(), "{bad}");
        }
        for bad in [
            "",
            "{}",
            r#"{"ledger":3,"tenant":"acme","seal":null}"#,
            r#"{"ledger":1,"seal":null}"#,
            &format!(
                r#"{{"ledger":1,"tenant":"acme","after":{{"seq":1,"entry":"1-0","link":"sha256:{hex}"}},"seal":null}}"#
            ),
        ] {
            assert!(ExportHead::read(bad).is_none(), "{bad}");
        }
        assert!(ExportHead::read(r#"{"ledger":1,"tenant":"acme","seal":null}"#).is_some(), "an older export");
    }
}
