//! The tables of the file, and opening all of them in one transaction.

use redb::{Table, TableDefinition, WriteTransaction};

/// The end of what has none.
pub(super) const NEVER: u64 = u64::MAX;

/// Records: version, end, body.
pub(super) const RECORDS: TableDefinition<&str, (u64, u64, &[u8])> = TableDefinition::new("records");
/// Entries by stream, millisecond and number.
pub(super) const STREAMS: TableDefinition<(&str, u64, u64), &[u8]> = TableDefinition::new("streams");
/// The rank of each member of each index.
pub(super) const PLACES: TableDefinition<(&str, &str), u64> = TableDefinition::new("places");
/// The same by rank, for walking.
pub(super) const RANKS: TableDefinition<(&str, u64, &str), ()> = TableDefinition::new("ranks");
/// Counters: value, end.
pub(super) const COUNTERS: TableDefinition<&str, (u64, u64)> = TableDefinition::new("counters");
/// The ends of those streams and indexes that have one.
pub(super) const LIVES: TableDefinition<&str, u64> = TableDefinition::new("lives");
/// Everything that ends, by its end, for the sweep.
pub(super) const ENDS: TableDefinition<(u64, &str), ()> = TableDefinition::new("ends");
/// The latest time told.
pub(super) const MARK: TableDefinition<&str, u64> = TableDefinition::new("mark");
/// The one key of [`MARK`].
pub(super) const CLOCK: &str = "clock";

/// All tables, open for writing.
pub(super) struct Tables<'t> {
    pub(super) records: Table<'t, &'static str, (u64, u64, &'static [u8])>,
    pub(super) streams: Table<'t, (&'static str, u64, u64), &'static [u8]>,
    pub(super) places: Table<'t, (&'static str, &'static str), u64>,
    pub(super) ranks: Table<'t, (&'static str, u64, &'static str), ()>,
    pub(super) counters: Table<'t, &'static str, (u64, u64)>,
    pub(super) lives: Table<'t, &'static str, u64>,
    pub(super) ends: Table<'t, (u64, &'static str), ()>,
    pub(super) mark: Table<'t, &'static str, u64>,
}

impl<'t> Tables<'t> {
    /// Opens them, making those that are missing.
    pub(super) fn open(transaction: &'t WriteTransaction) -> Result<Tables<'t>, redb::Error> {
        Ok(Tables {
            records: transaction.open_table(RECORDS)?,
            streams: transaction.open_table(STREAMS)?,
            places: transaction.open_table(PLACES)?,
            ranks: transaction.open_table(RANKS)?,
            counters: transaction.open_table(COUNTERS)?,
            lives: transaction.open_table(LIVES)?,
            ends: transaction.open_table(ENDS)?,
            mark: transaction.open_table(MARK)?,
        })
    }
}
