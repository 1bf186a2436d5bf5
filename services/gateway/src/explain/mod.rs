//! What policy says to a call and by which rule and line, without making it: for the command `explain`, the console, and
//! calls of the past ([`replay`]).
//!
//! [`policy::explain()`] gives the verdict: it judges as [`policy::decide()`] does and permits nothing, for a session that
//! has loaded the tool. Only the line is looked up here.

mod external;
pub(crate) mod replay;
mod rules;
mod verdict;

pub(crate) use rules::{FileRules, RulePosition};
pub(crate) use verdict::{ExplainAnswer, ExplainRequest, ExplainVerdict, judge};

use crate::toolsets::Toolsets;
use anyhow::bail;
use catalog::{CatalogEntry, ControlTool};
use domain::outcome::near;
use domain::{Effect, Level, ToolName, ToolsetName};
use serde_json::{Map, Value};
use std::sync::Arc;
use tenancy::TenantConfig;

/// What is to be explained.
pub(crate) enum ExplainSubject {
    /// A call that policy judges.
    Call(ExplainRequest),
    /// The answer does not depend on policy.
    Answered(ExplainAnswer),
}

/// The call, as far as it can be known here. `known` are the tools that the tenant has, with its targets and those of its
/// external servers; none where nothing is attached.
pub(crate) fn subject(
    tool: &str,
    arguments: Option<Map<String, Value>>,
    config: &TenantConfig,
    toolsets: &Toolsets,
    known: &[Arc<CatalogEntry>],
) -> anyhow::Result<ExplainSubject> {
    if let Some(server) = external::server_of(config, tool)? {
        let listed = known.iter().find(|entry| entry.name().as_str() == tool);
        return match (external::subject(server, tool)?, listed) {
            (ExplainSubject::Call(_), Some(entry)) => Ok(ExplainSubject::Call(of_entry(entry, arguments)?)),
            (answered, _) => Ok(answered),
        };
    }
    if ControlTool::ALL.iter().any(|control| control.name() == tool) {
        return Ok(ExplainSubject::Answered(ExplainAnswer::allowed(
            tool,
            "every session has this tool, and no rule applies to it",
        )));
    }
    let declared = toolsets.tools_of(config)?;
    let tools = || toolsets.tools().iter().chain(&declared);
    // The tools of the tenant itself know its targets, so they come first.
    let Some(entry) = known.iter().chain(tools()).find(|entry| entry.name().as_str() == tool) else {
        let names = tools().chain(known).map(|entry| entry.name().as_str());
        match near(tool, names).as_slice() {
            [] => bail!("there is no tool `{tool}`; `quartermaster tools` lists them"),
            meant => bail!("there is no tool `{tool}`; did you mean {}?", meant.join(" or ")),
        }
    };
    if !toolsets.offers(entry.definition().toolset.as_str(), config) {
        let why = format!(
            "the tenant configures no target for the toolset `{}` and does not name it under `default_toolsets`",
            entry.definition().toolset
        );
        return Ok(ExplainSubject::Answered(ExplainAnswer::denied(tool, why)));
    }
    Ok(ExplainSubject::Call(of_entry(entry, arguments)?))
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
            let note = "judged by the strongest effect of the tool; its arguments would judge one call";
            (definition.most, None, None, vec![note.to_owned()])
        }
    };
    let (tool, toolset): (ToolName, ToolsetName) = (definition.name.clone(), definition.toolset.clone());
    let needs: Level = entry.list();
    Ok(ExplainRequest { tool, toolset, needs, effect, about, target, notes })
}
