//! `explain`: whether a call of a tenant would be allowed, need approval or be denied, and by which rule and line.
//!
//! The verdict is that of [`explain`]. Nothing is called: an external server is not asked what its tools do, and a note says
//! what is unknown.

mod switches;

use crate::cli::{Explain, OutputFormat};
use crate::commands::{CommandOutcome, check, print, print_json, runtime, say};
use crate::explain::{self, ExplainSubject, FileRules, judge};
use crate::reach::EgressPolicy;
use crate::settings::Settings;
use crate::tenants;
use crate::toolsets::Toolsets;
use anyhow::{Context, bail};
use domain::{Scopes, SessionMode};
use serde_json::{Map, Value};
use tenancy::TenantConfig;

pub(super) fn run(args: &Explain, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let toolsets = runtime()?.block_on(check::toolsets())?;
    let (config, rules) = read(args, &toolsets)?;
    let mode = match args.mode.as_deref() {
        Some("read") => SessionMode::Read,
        Some(_) => SessionMode::Write,
        None => config.mode,
    };
    let arguments = args.args.as_deref().map(arguments).transpose()?;
    let answer = match explain::subject(&args.tool, arguments, &config, &toolsets, &[])? {
        ExplainSubject::Call(request) => {
            let switches = args.switches.as_deref().map(|file| switches::read(file, &config.tenant)).transpose()?;
            judge(&config, &rules, request, Scopes::parse(&args.scope), (mode, &switches.unwrap_or_default()))
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

fn arguments(text: &str) -> anyhow::Result<Map<String, Value>> {
    match serde_json::from_str(text).context("--args is not JSON")? {
        Value::Object(arguments) => Ok(arguments),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            bail!("--args must be a JSON object, such as '{{\"namespace\":\"shop\"}}'")
        }
    }
}
