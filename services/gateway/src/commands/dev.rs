//! `dev`: one process with everything in it, ready for a first call.
//!
//! Keys, tokens, the tenant's file and the state live in one folder. There is no anonymous mode here either: the tokens
//! are real ones, signed with a key made on first start.

use crate::app::Gateway;
use crate::cli::Dev;
use crate::commands::data_folder::{DataFolder, TENANT};
use crate::commands::{CommandOutcome, runtime, say, serve};
use crate::fixture;
use anyhow::bail;
use domain::Tenant;
use std::sync::Arc;

pub(super) fn run(args: &Dev) -> anyhow::Result<CommandOutcome> {
    if args.conformance && !args.listen.ip().is_loopback() {
        bail!("--conformance serves a fixture tenant and therefore listens on loopback only");
    }
    let folder = DataFolder::open(&args.data, "dev", args.listen, args.cluster.as_deref())?;
    let settings = folder.settings(args.store.as_deref())?;
    runtime()?.block_on(serve::serve(settings, async |gateway| {
        folder.write_tokens()?;
        if args.conformance {
            let tenant = Tenant::parse(fixture::TENANT)?;
            folder.write_token(fixture::TENANT, fixture::TENANT, "tools:read")?;
            fixture::install(gateway, &tenant)?;
        }
        let links = folder.sign_in_links(gateway).await?;
        say(&banner(args, &folder, gateway, &links));
        Ok(())
    }))
}

fn banner(args: &Dev, folder: &DataFolder, gateway: &Arc<Gateway>, links: &[(&str, String)]) -> String {
    let (address, data) = (folder.address(), folder.path().display());
    let store = gateway.store.backend();
    let cluster = match &args.cluster {
        Some(context) => format!("{context} (real: approved changes happen there)"),
        None => "sandbox (simulated in this process; reset at each start)".to_owned(),
    };
    let tenant = Tenant::parse(TENANT).ok().and_then(|tenant| gateway.tenants.find(&tenant));
    let toolsets = tenant.map_or_else(String::new, |tenant| {
        let names: Vec<&str> = tenant.catalog.toolsets().iter().map(|set| set.name.as_str()).collect();
        names.join(", ")
    });
    let lines: String = links.iter().map(|(role, link)| format!("  {role:<10} {link}\n")).collect();
    let console = match links {
        [] => String::new(),
        _ => format!("\nThe console; each link signs in once, for twelve hours:\n\n{lines}"),
    };
    format!(
        "
Quartermaster is ready, for development only.

  endpoint   {address}
  store      {store} ({data})
  tenant     {TENANT}   toolsets: {toolsets}
  cluster    {cluster}
  tokens     {data}/agent.token      calls tools
             {data}/approver.token   decides runs
             {data}/admin.token      configures the tenant, accepts external tools, manages documents
{console}
A first call:

  curl -s {address} -H \"Authorization: Bearer $(cat {data}/agent.token)\" \\
    -H 'Content-Type: application/json' \\
    -d '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}}'

A client:

  npx -y @modelcontextprotocol/inspector --cli {address} --transport http \\
    --header \"Authorization: Bearer $(cat {data}/agent.token)\" --method tools/list

"
    )
}
