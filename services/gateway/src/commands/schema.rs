//! `schema`: the JSON Schema of a tenant's file, for editors.

use crate::commands::{CommandOutcome, print, runtime, toolsets};
use external::ServerCatalog;

pub(super) fn run() -> anyhow::Result<CommandOutcome> {
    let sections = runtime()?.block_on(toolsets())?.sections(&ServerCatalog::none());
    print(&format!("{}\n", serde_json::to_string_pretty(&tenancy::json_schema(&sections))?));
    Ok(CommandOutcome::Well)
}
