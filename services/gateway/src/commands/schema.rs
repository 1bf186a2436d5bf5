//! `schema`: the JSON Schema of a tenant's file, for editors.

use crate::commands::{CommandOutcome, print_json, runtime, toolsets};

pub(super) fn run() -> anyhow::Result<CommandOutcome> {
    let sections = runtime()?.block_on(toolsets())?.sections();
    print_json(&tenancy::json_schema_with(&sections))?;
    Ok(CommandOutcome::Done)
}
