//! What a text over HTTP may say about external servers: those of the tenant's file within the file's bounds, and others
//! that the operator offers to every tenant.
//!
//! A server of the file keeps its id, because rules name tools by it. Values for parameters are the tenant's to say:
//! a session may say them as well.

use super::{AGENTS, SERVERS, ServersSection, WORKFLOWS};
use crate::server::{Accept, ServerUse, TenantAgent, Workflow};
use policy::Pattern;
use tenancy::{Excess, ParameterValue, SecretUse, SectionTypeError, SectionValues, listed};

/// Every secret that is sent to a server, whoever gives it: the tenant, an agent or a workflow.
pub(super) fn secret_uses(values: &SectionValues) -> Result<Vec<SecretUse>, SectionTypeError> {
    let servers = values.get::<ServersSection>(SERVERS)?.map_or(&[][..], |section| &section.servers);
    let agents = values.get::<Vec<TenantAgent>>(AGENTS)?.map_or(&[][..], Vec::as_slice);
    let workflows = values.get::<Vec<Workflow>>(WORKFLOWS)?.map_or(&[][..], Vec::as_slice);
    let of_server = |server: &ServerUse| {
        let overrides =
            agents.iter().map(|agent| &agent.params).chain(workflows.iter().map(|workflow| &workflow.params));
        let given = std::iter::once(&server.params).chain(overrides.filter_map(|params| params.get(&server.id)));
        let uses = given.flat_map(|params| params.values()).filter_map(|value| match value {
            ParameterValue::Secret(name) => Some(server.secret_use(name)),
            ParameterValue::Text(_) => None,
        });
        uses.collect::<Vec<_>>()
    };
    Ok(servers.iter().flat_map(of_server).collect())
}

pub(super) fn exceeding(file: Option<&ServersSection>, asked: Option<&ServersSection>) -> Vec<Excess> {
    let file = file.map_or(&[][..], |section| &section.servers);
    let asked = asked.map_or(&[][..], |section| &section.servers).iter().enumerate();
    asked.flat_map(|(n, server)| one(file, n, server)).collect()
}

fn one(file: &[ServerUse], n: usize, asked: &ServerUse) -> Vec<Excess> {
    let (at, named) = (|key: &str| format!("/{n}/{key}"), |key: &str| format!("`{key}` of the server `{}`", asked.id));
    let same = |given: &ServerUse| given.server.place() == asked.server.place();
    let Some(given) = file.iter().find(|given| given.id == asked.id) else {
        let others: Vec<&str> = file.iter().filter(|given| same(given)).map(|given| given.id.as_str()).collect();
        let renamed =
            || Excess::new(at("id"), named("id"), format!("it as {}", listed(&others)), format!("it as {}", asked.id));
        return (!others.is_empty()).then(renamed).into_iter().collect();
    };
    let mut found = Vec::new();
    if !same(given) {
        found.push(Excess::new(at("url"), named("url"), given.server.place(), asked.server.place()));
    }
    if !within(given.allow.as_deref(), asked.allow.as_deref()) {
        let told = |list: Option<&[Pattern]>| list.map_or_else(|| "all tools".to_owned(), listed);
        found.push(Excess::new(
            at("access"),
            named("allowlist"),
            told(given.allow.as_deref()),
            told(asked.allow.as_deref()),
        ));
    }
    for gate in &given.gates {
        let usable = asked.allow.as_ref().is_none_or(|allow| allow.iter().any(|allowed| allowed.meets(&gate.pattern)));
        if usable && !asked.gates.iter().any(|asked| asked.covers(gate)) {
            let given = format!("the rule `{}`", gate.pattern);
            let asked = listed(asked.gates.iter().map(|gate| &gate.pattern));
            found.push(Excess::new(at("access"), named("require_approval"), given, asked));
        }
    }
    if given.accept == Accept::Each && asked.accept == Accept::First {
        found.push(Excess::new(at("accept"), named("accept"), "each", "first"));
    }
    found
}

/// Whether every tool of the second list is in the first. No list is every tool.
fn within(given: Option<&[Pattern]>, asked: Option<&[Pattern]>) -> bool {
    match (given, asked) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(given), Some(asked)) => asked.iter().all(|asked| given.iter().any(|given| given.covers(asked))),
    }
}
