//! `explain`: whether a call of a tenant would be allowed, need approval or be denied, and by which rule and line.
//!
//! [`policy::explain()`] gives the verdict: it judges as [`policy::decide()`] does and permits nothing, for a session that
//! has loaded the tool. Only the line is looked up here. Nothing is called: an external server is not asked what its tools
//! do, and a note says what is unknown.

mod external;
mod rules;
mod switches;
mod verdict;

use crate::cli::{Explain, OutputFormat};
use crate::commands::{CommandOutcome, check, print, print_json, runtime, say};
use crate::reach::EgressPolicy;
use crate::settings::Settings;
use crate::tenants;
use crate::toolsets::Toolsets;
use anyhow::{Context, bail};
use catalog::{CatalogEntry, ControlTool};
use domain::outcome::near;
use domain::{Effect, Level, SessionMode, ToolName, ToolsetName};
use rules::FileRules;
use serde_json::{Map, Value};
use tenancy::TenantConfig;
use verdict::{ExplainAnswer, ExplainRequest, judge};

pub(super) fn run(args: &Explain, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let toolsets = runtime()?.block_on(check::toolsets())?;
    let (config, rules) = read(args, &toolsets)?;
    let mode = match args.mode.as_deref() {
        Some("read") => SessionMode::Read,
        Some(_) => SessionMode::Write,
        None => config.mode,
    };
    let answer = match subject(args, &config, &toolsets)? {
        ExplainSubject::Call(request) => {
            let switches = args.switches.as_deref().map(|file| switches::read(file, &config.tenant)).transpose()?;
            judge(&config, &rules, request, &args.scope, (mode, &switches.unwrap_or_default()))
        }
        ExplainSubject::Answered(answer) => rules.place(answer),
    };
    match output {
        OutputFormat::Json => print_json(&answer)?,
        OutputFormat::Text => print(&answer.to_string()),
    }
    Ok(if answer.is_denied() { CommandOutcome::Negative } else { CommandOutcome::Done })
}

/// Reads the tenant's file: the configuration, and its rules with their lines.
fn read(args: &Explain, toolsets: &Toolsets) -> anyhow::Result<(TenantConfig, FileRules)> {
    let settings = args.settings.as_ref().map(|file| Settings::read(Some(file), [])).transpose()?;
    let (curated, wrong) = check::curated(settings.as_ref(), &args.servers);
    wrong.iter().for_each(|problem| say(&format!("{problem}\n")));
    let reach = settings.as_ref().map_or_else(EgressPolicy::unknown, EgressPolicy::of);
    let config = tenants::with_known_names(toolsets, &reach, &curated, |names| tenancy::read_file(&args.tenant, names));
    let config = config.map_err(|problems| {
        problems.iter().for_each(|problem| say(&format!("{problem}\n")));
        anyhow::anyhow!("{} has mistakes, so the call cannot be judged", args.tenant.display())
    })?;
    let text =
        std::fs::read_to_string(&args.tenant).with_context(|| format!("cannot read {}", args.tenant.display()))?;
    Ok((config, FileRules::of(&args.tenant.display().to_string(), &text, &toolsets.sections(&curated))))
}

/// What is to be explained.
enum ExplainSubject {
    /// A call that policy judges.
    Call(ExplainRequest),
    /// The answer does not depend on policy.
    Answered(ExplainAnswer),
}

/// The call, as far as it can be known here.
fn subject(args: &Explain, config: &TenantConfig, toolsets: &Toolsets) -> anyhow::Result<ExplainSubject> {
    let arguments = args.args.as_deref().map(arguments).transpose()?;
    if let Some(server) = external::server_of(config, &args.tool)? {
        return external::subject(server, &args.tool);
    }
    if ControlTool::ALL.iter().any(|tool| tool.name() == args.tool) {
        return Ok(ExplainSubject::Answered(ExplainAnswer::allowed(
            &args.tool,
            "every session has this tool, and no rule applies to it",
        )));
    }
    let declared = toolsets.tools_of(config)?;
    let tools = || toolsets.tools().iter().chain(&declared);
    let Some(entry) = tools().find(|entry| entry.name().as_str() == args.tool) else {
        let names = tools().map(|entry| entry.name().as_str());
        match near(&args.tool, names).as_slice() {
            [] => bail!("there is no tool `{}`; `quartermaster tools` lists them", args.tool),
            meant => bail!("there is no tool `{}`; did you mean {}?", args.tool, meant.join(" or ")),
        }
    };
    if !toolsets.offers(entry.definition().toolset.as_str(), config) {
        let why = format!(
            "the tenant configures no target for the toolset `{}` and does not name it under `default_toolsets`",
            entry.definition().toolset
        );
        return Ok(ExplainSubject::Answered(ExplainAnswer::denied(&args.tool, why)));
    }
    Ok(ExplainSubject::Call(of_entry(entry, arguments)?))
}

fn arguments(text: &str) -> anyhow::Result<Map<String, Value>> {
    match serde_json::from_str(text).context("--args is not JSON")? {
        Value::Object(arguments) => Ok(arguments),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            bail!("--args must be a JSON object, such as '{{\"namespace\":\"shop\"}}'")
        }
    }
}

/// A call of a built-in tool: its effect follows from the arguments, or from the most it can do.
fn of_entry(entry: &CatalogEntry, arguments: Option<Map<String, Value>>) -> anyhow::Result<ExplainRequest> {
    let definition = entry.definition();
    let (effect, about, target, notes) = match arguments {
        Some(arguments) => {
            let parsed = entry
                .parse(arguments)
                .map_err(|failure| anyhow::anyhow!("{}: {}", failure.code.as_str(), failure.message))?;
            let target = entry.target(&parsed);
            (parsed.effect, parsed.about, target, Vec::new())
        }
        None if definition.most == Effect::Read => (definition.most, None, None, Vec::new()),
        None => {
            let note = "judged by the strongest effect of the tool; --args judges one call";
            (definition.most, None, None, vec![note.to_owned()])
        }
    };
    let (tool, toolset): (ToolName, ToolsetName) = (definition.name.clone(), definition.toolset.clone());
    let needs: Level = entry.list();
    Ok(ExplainRequest { tool, toolset, needs, effect, about, target, notes })
}
