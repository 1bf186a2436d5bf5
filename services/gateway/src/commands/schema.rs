//! `schema`: the JSON Schema of a tenant's file, for editors.

use crate::commands::{CommandOutcome, print_json, runtime, toolsets};
use external::ServerCatalog;

pub(super) fn run() -> anyhow::Result<CommandOutcome> {
    let sections = runtime()?.block_on(toolsets())?.sections(&ServerCatalog::none());
    print_json(&tenancy::json_schema(&sections))?;
    Ok(CommandOutcome::Done)
}
