//! The place of an entry in the audit log. Entries that were written together are one item of the stream, one entry a
//! line; an entry's place is that of its item, and its number among the item's lines.

use crate::StreamId;
use std::fmt;

/// The place of an entry in the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryPlace {
    /// Where the item stands that holds it.
    pub item: StreamId,
    /// Which of the item's entries it is, counted from 0.
    pub index: u32,
}

impl EntryPlace {
    /// Reads what [`Display`](fmt::Display) wrote: `<milliseconds>-<number>`, and `.<index>` unless it is the first.
    pub fn parse(text: &str) -> Option<EntryPlace> {
        let (item, index) = match text.split_once('.') {
            // The first one has one spelling, and so has every other.
            Some((item, index)) => (item, index.parse().ok().filter(|number| *number > 0 && digits(*number, index))?),
            None => (text, 0),
        };
        Some(EntryPlace { item: StreamId::parse(item)?, index })
    }
}

fn digits(number: u32, text: &str) -> bool {
    number.to_string() == text
}

impl From<StreamId> for EntryPlace {
    /// The first entry of an item.
    fn from(item: StreamId) -> EntryPlace {
        EntryPlace { item, index: 0 }
    }
}

impl fmt::Display for EntryPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            0 => write!(f, "{}", self.item),
            index => write!(f, "{}.{index}", self.item),
        }
    }
}

/// The entries of an item, in the order in which they were written.
pub(crate) fn entries_of((item, body): (StreamId, Vec<u8>)) -> Vec<(EntryPlace, Vec<u8>)> {
    if !body.contains(&b'\n') {
        return vec![(item.into(), body)];
    }
    let lines = body.split(|byte| *byte == b'\n');
    (0..).zip(lines).map(|(index, line)| (EntryPlace { item, index }, line.to_vec())).collect()
}

/// The same of an item that is only looked at.
pub(crate) fn lines_of(item: StreamId, body: &[u8]) -> impl Iterator<Item = (EntryPlace, &[u8])> {
    (0..).zip(body.split(|byte| *byte == b'\n')).map(move |(index, line)| (EntryPlace { item, index }, line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Moment;

    #[test]
    fn a_place_reads_back_as_itself_and_has_one_spelling() {
        let item = StreamId { at: Moment::from_millis(1_763_280_000_000), seq: 7 };
        for (place, text) in [(item.into(), "1763280000000-7"), (EntryPlace { item, index: 12 }, "1763280000000-7.12")]
        {
            assert_eq!((place.to_string().as_str(), EntryPlace::parse(text)), (text, Some(place)));
        }
        for bad in ["", ".", "1-0.", "1-0.0", "1-0.01", "1-0.+1", "1-0.-1", "1-0.1.1", ".1", "1.1", "1-0.4294967296"] {
            assert_eq!(EntryPlace::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_item_holds_an_entry_in_each_line() {
        let item = StreamId { at: Moment::from_millis(5), seq: 0 };
        let split = |body: &str| {
            let entries = entries_of((item, body.as_bytes().to_vec()));
            entries.into_iter().map(|(place, line)| (place.to_string(), String::from_utf8(line).unwrap())).collect()
        };
        let wanted = |lines: &[(&str, &str)]| -> Vec<(String, String)> {
            lines.iter().map(|(place, line)| ((*place).to_owned(), (*line).to_owned())).collect()
        };
        let read: Vec<(String, String)> = split("{}");
        assert_eq!(read, wanted(&[("5-0", "{}")]));
        let read: Vec<(String, String)> = split("{}\n[]\n");
        assert_eq!(read, wanted(&[("5-0", "{}"), ("5-0.1", "[]"), ("5-0.2", "")]));
    }
}
