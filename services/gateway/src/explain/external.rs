//! A call of an external server's tool. The tool's definition is not known here, so only the operator's catalog counts.

use super::ExplainSubject;
use super::verdict::{ExplainAnswer, ExplainRequest};
use anyhow::Context;
use domain::{Effect, Level, ToolName, ToolsetName};
use external::section::ALLOWLIST;
use external::{Accept, ServerUse, TenantServers, server_toolset, tool_prefix};
use tenancy::TenantConfig;

/// The server whose tool a name is.
pub(crate) fn server_of<'a>(config: &'a TenantConfig, tool: &str) -> anyhow::Result<Option<&'a ServerUse>> {
    let servers = TenantServers::of(config)?.servers;
    Ok(servers.iter().find(|server| tool.starts_with(&tool_prefix(&server.id))))
}

/// What is known of a call.
pub(crate) fn subject(server: &ServerUse, tool: &str) -> anyhow::Result<ExplainSubject> {
    let name = ToolName::parse(tool).with_context(|| format!("`{tool}` is not a tool name"))?;
    let own = tool.strip_prefix(&tool_prefix(&server.id)).unwrap_or(tool);
    if server.allow.as_ref().is_some_and(|allow| !allow.iter().any(|pattern| pattern.tool_matches(own))) {
        let why = format!("the server's allowlist does not name `{own}`, so this tenant does not get it");
        let of_server = Some((ALLOWLIST, server.id.clone()));
        return Ok(ExplainSubject::Answered(ExplainAnswer { of_server, ..ExplainAnswer::denied(tool, why) }));
    }
    let operators_effect = server.server.vouch.effect(own).filter(|_| !server.server.own);
    let mut notes = Vec::new();
    let effect = match operators_effect {
        Some(effect) => {
            notes.push("the operator's catalog sets its effect".to_owned());
            effect
        }
        None => {
            notes.push("its definition is not known here, so it counts as a change".to_owned());
            if server.server.vouch.annotations {
                notes.push(
                    "the operator trusts the server's annotations: a tool marked read-only counts as a read".to_owned(),
                );
            }
            Effect::Change
        }
    };
    notes.push(match server.accept {
        Accept::Each => "it is listed only after an admin has accepted its definition".to_owned(),
        Accept::First => "its first definition is accepted; a changed one waits for an admin".to_owned(),
    });
    let toolset = ToolsetName::parse(&server_toolset(&server.id)).context("the server's name cannot name a toolset")?;
    let needs = if effect == Effect::Read { Level::Read } else { Level::Write };
    Ok(ExplainSubject::Call(ExplainRequest {
        tool: name,
        toolset,
        needs,
        effect,
        about: None,
        target: Some(format!("server/{}", server.id)),
        notes,
    }))
}
