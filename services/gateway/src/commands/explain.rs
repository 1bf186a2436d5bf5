//! `explain`: whether a call of a tenant would be allowed, ask a person or be denied, and by which rule and line.
//!
//! The verdict is [`policy::decide()`]'s own, for a session that has loaded the tool; only the line is looked up beside it.
//! Nothing is called: an external server is not asked what its tools do, and what is not known of one is said.

mod external;
mod rules;
mod verdict;

use crate::cli::{Explain, Output};
use crate::commands::{Ended, check, print, runtime, say};
use crate::settings::Settings;
use crate::targets::Reach;
use crate::tenants;
use anyhow::{Context, bail};
use catalog::{Entry, Virtual};
use domain::outcome::near;
use domain::{Effect, Level, Mode, ToolName, ToolsetName};
use rules::Rules;
use serde_json::{Map, Value};
use std::sync::Arc;
use tenancy::TenantConfig;
use tools::{Has, Toolbox};
use verdict::{Asked, Explained, judge};

pub(super) fn run(args: &Explain, output: Output) -> anyhow::Result<Ended> {
    let toolbox = runtime()?.block_on(check::toolbox())?;
    let (config, rules) = read(args, toolbox.every())?;
    let mode = match args.mode.as_deref() {
        Some("read") => Mode::Read,
        Some(_) => Mode::Write,
        None => config.mode,
    };
    let explained = match asked(args, &config, &toolbox)? {
        Found::Judged(asked) => judge(&config, &rules, asked, &args.scope, mode),
        Found::Said(explained) => rules.place(explained),
    };
    match output {
        Output::Json => print(&format!("{}\n", serde_json::to_string_pretty(&explained)?)),
        Output::Text => print(&explained.to_string()),
    }
    Ok(if explained.is_no() { Ended::WithNo } else { Ended::Well })
}

/// What the file says, and where.
fn read(args: &Explain, tools: &[Arc<Entry>]) -> anyhow::Result<(TenantConfig, Rules)> {
    let settings = args.settings.as_ref().map(|file| Settings::read(Some(file), [])).transpose()?;
    let (curated, wrong) = check::curated(settings.as_ref(), &args.servers);
    wrong.iter().for_each(|problem| say(&format!("{problem}\n")));
    let reach = settings.as_ref().map_or_else(Reach::unknown, Reach::of);
    let config = tenants::with_known(tools, &reach, &curated, |known| tenancy::read_file(&args.tenant, known));
    let config = config.map_err(|problems| {
        problems.iter().for_each(|problem| say(&format!("{problem}\n")));
        anyhow::anyhow!("{} has mistakes, so nothing can be said about it", args.tenant.display())
    })?;
    let text =
        std::fs::read_to_string(&args.tenant).with_context(|| format!("cannot read {}", args.tenant.display()))?;
    Ok((config, Rules::of(&args.tenant.display().to_string(), &text)))
}

/// What is to be explained.
enum Found {
    /// A call that policy judges.
    Judged(Asked),
    /// Something that is settled before policy is asked.
    Said(Explained),
}

/// The call, as far as it can be known here.
fn asked(args: &Explain, config: &TenantConfig, toolbox: &Toolbox) -> anyhow::Result<Found> {
    let arguments = args.args.as_deref().map(arguments).transpose()?;
    if let Some(server) = external::server_of(config, &args.tool) {
        return external::asked(server, &args.tool);
    }
    if Virtual::ALL.iter().any(|tool| tool.name() == args.tool) {
        return Ok(Found::Said(Explained::allowed(&args.tool, "every session has it, and no rule is about it")));
    }
    let Some(entry) = toolbox.every().iter().find(|entry| entry.name().as_str() == args.tool) else {
        let names = toolbox.every().iter().map(|entry| entry.name().as_str());
        match near(&args.tool, names).as_slice() {
            [] => bail!("there is no tool `{}`; `quartermaster tools` lists them", args.tool),
            meant => bail!("there is no tool `{}`; did you mean {}?", args.tool, meant.join(" or ")),
        }
    };
    let has = Has { clusters: config.clusters.len(), servers: config.jenkins.len() };
    if !toolbox.issue(has, &config.default_toolsets).iter().any(|issued| issued.name() == entry.name()) {
        let why = format!(
            "the toolset `{}` has nothing to act on: the tenant configures neither a target for it nor names it under `default_toolsets`",
            entry.definition().toolset
        );
        return Ok(Found::Said(Explained::denied(&args.tool, why)));
    }
    Ok(Found::Judged(of_entry(entry, arguments)?))
}

fn arguments(text: &str) -> anyhow::Result<Map<String, Value>> {
    match serde_json::from_str(text).context("--args is no JSON")? {
        Value::Object(arguments) => Ok(arguments),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            bail!("--args must be a JSON object, such as '{{\"namespace\":\"shop\"}}'")
        }
    }
}

/// A call of a built-in tool: its effect follows from the arguments, or from the most it can do.
fn of_entry(entry: &Entry, arguments: Option<Map<String, Value>>) -> anyhow::Result<Asked> {
    let definition = entry.definition();
    let (effect, about, notes) = match arguments {
        Some(arguments) => {
            let parsed = entry
                .parse(arguments)
                .map_err(|failure| anyhow::anyhow!("{}: {}", failure.code.as_str(), failure.message))?;
            (parsed.effect, parsed.about, Vec::new())
        }
        None if definition.most == Effect::Read => (definition.most, None, Vec::new()),
        None => {
            let note = "judged by the most it can do; --args says what one call would do";
            (definition.most, None, vec![note.to_owned()])
        }
    };
    let (tool, toolset): (ToolName, ToolsetName) = (definition.name.clone(), definition.toolset.clone());
    let needs: Level = entry.list();
    Ok(Asked { tool, toolset, needs, effect, about, notes })
}
