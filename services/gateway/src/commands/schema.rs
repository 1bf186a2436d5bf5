//! `schema`: the JSON Schema of a tenant's file, for editors.

use crate::commands::{Ended, print};

pub(super) fn run() -> anyhow::Result<Ended> {
    print(&format!("{}\n", serde_json::to_string_pretty(&tenancy::json_schema())?));
    Ok(Ended::Well)
}
