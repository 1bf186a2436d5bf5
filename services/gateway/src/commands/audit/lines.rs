//! An exported audit log: lines of JSON of three kinds.
//!
//! First the head, `{"ledger":2,"tenant":…,"seal":…}`; then the entries, `{"id":…,"entry":…}`, oldest first, each followed
//! by its link, `{"seq":…,"entry":…,"link":…}`, as far as the seal goes. An entry is kept byte for byte. Of most links only
//! the beginning is kept; under the head `{"ledger":1` of earlier releases all of them were whole, which is read as well.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use store::{ChainLink, EntryLink};

/// The shape of the lines below the head.
const SHAPE: u8 = 2;
/// The shape in which every link is whole and every entry had an item of its own.
const FORMER_SHAPE: u8 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportHead {
    ledger: u8,
    /// The tenant.
    pub(super) tenant: String,
    /// The newest link of this export.
    pub(super) seal: Option<ChainLink>,
}

impl ExportHead {
    pub(super) fn new(tenant: String, seal: Option<ChainLink>) -> ExportHead {
        ExportHead { ledger: SHAPE, tenant, seal }
    }

    /// Reads the first line.
    pub(super) fn read(line: &str) -> Option<ExportHead> {
        serde_json::from_str(line).ok().filter(|head: &ExportHead| matches!(head.ledger, SHAPE | FORMER_SHAPE))
    }
}

/// An entry.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportEntry {
    /// Its position.
    pub(super) id: String,
    /// The entry, byte for byte.
    pub(super) entry: Box<RawValue>,
}

/// Any line but the first.
#[derive(Debug)]
pub(super) enum ExportLine {
    Entry(ExportEntry),
    Link(EntryLink),
}

impl ExportLine {
    /// Reads a line; `None` if it is of neither kind.
    pub(super) fn read(line: &str) -> Option<ExportLine> {
        let entry = serde_json::from_str(line).map(ExportLine::Entry);
        entry.or_else(|_| serde_json::from_str(line).map(ExportLine::Link)).ok()
    }
}

/// Writes a line of any kind.
pub(super) fn write(out: &mut String, line: &impl Serialize) -> serde_json::Result<()> {
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
        write(&mut out, &read).unwrap();
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
            &format!(r#"{{"seq":-1,"entry":"1-0","link":"sha256:{hex}"}}"#),
            &format!(r#"{{"seq":1,"entry":"1-0","link":"md5:{hex}"}}"#),
        ] {
            assert!(ExportLine::read(bad).is_none(), "{bad}");
        }
        for bad in ["", "{}", r#"{"ledger":3,"tenant":"acme","seal":null}"#, r#"{"ledger":1,"seal":null}"#] {
            assert!(ExportHead::read(bad).is_none(), "{bad}");
        }
    }
}
