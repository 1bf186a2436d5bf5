//! `schema`: the JSON Schema of a tenant's file, for editors, or the OpenAPI description of the HTTP API.

use crate::cli::SchemaCommand;
use crate::commands::{CommandOutcome, print_json, runtime, toolsets};
use crate::openapi;
use external::ServerCatalog;

pub(super) fn run(args: &SchemaCommand) -> anyhow::Result<CommandOutcome> {
    if args.openapi {
        // Commands build no external servers, and a service has them.
        let mut codes = runtime()?.block_on(toolsets())?.codes();
        codes.extend(external::codes::ALL.iter().copied());
        print_json(&openapi::document(None, &codes))?;
        return Ok(CommandOutcome::Done);
    }
    let sections = runtime()?.block_on(toolsets())?.sections(&ServerCatalog::none());
    print_json(&tenancy::json_schema(&sections))?;
    Ok(CommandOutcome::Done)
}
