//! From a `LanguageAgent` to what is there.

use super::objects::{self, GivenTool, clash};
use crate::apply::WantedObject;
use crate::context::Context;
use crate::resources::{AgentToolStatus, LanguageAgent, LanguageAgentStatus, LanguageTool};
use crate::status::{Verdict, conditions, phase};
use crate::tool::endpoint;
use crate::tool::reconcile::{REFUSED_AGAIN, ReconcileError, readiness};
use kube::api::{Api, DynamicObject};
use kube::runtime::controller::Action;
use kube::{Resource, ResourceExt};
use std::sync::Arc;

/// Looks at one agent, and makes what is there be what it says.
pub async fn reconcile(agent: Arc<LanguageAgent>, context: Arc<Context>) -> Result<Action, ReconcileError> {
    let (namespace, name) = (agent.namespace().unwrap_or_default(), agent.name_any());
    let api: Api<LanguageAgent> = Api::namespaced(context.client.clone(), &namespace);
    let found = api.get_opt(&name).await.map_err(|error| ReconcileError::Api("the LanguageAgent", error))?;
    let Some(agent) = found.filter(|agent| agent.metadata.deletion_timestamp.is_none()) else {
        context.forget(&agent.uid().unwrap_or_default());
        return Ok(Action::await_change());
    };
    let uid = agent.uid().ok_or(ReconcileError::NoUid)?;
    let before = agent.status.clone().unwrap_or_default();
    let (tools, resolved) = tools_of(&context, &agent).await?;
    let (accepted, deployment) = apply(&context, &agent, &tools).await?;
    let is_accepted = accepted.holds();
    let (ready, ready_replicas) = readiness(deployment.as_ref());
    let given = |tool: &GivenTool| AgentToolStatus { name: tool.name.clone(), endpoint: tool.endpoint.clone() };
    let generation = agent.metadata.generation;
    let status = LanguageAgentStatus {
        observed_generation: generation,
        phase: Some(phase(&accepted, &ready).to_owned()),
        ready_replicas,
        // What was not accepted was not given.
        tools: if is_accepted { tools.iter().map(given).collect() } else { before.tools.clone() },
        conditions: conditions(&before.conditions, vec![accepted, resolved, ready], generation),
    };
    let wrote = context.applier.write_status(&api, &agent, &before, &status).await;
    if wrote.map_err(|error| ReconcileError::Api("the status of the LanguageAgent", error))? {
        context.tell(&agent.object_ref(&()), &before.conditions, &status.conditions).await;
    }
    context.succeeded(&uid);
    Ok(if is_accepted { Action::await_change() } else { Action::requeue(REFUSED_AGAIN) })
}

/// The tools that an agent refers to and that exist, ready or not, and `ResolvedRefs`.
async fn tools_of(context: &Context, agent: &LanguageAgent) -> Result<(Vec<GivenTool>, Verdict), ReconcileError> {
    let namespace = agent.namespace().unwrap_or_default();
    let api: Api<LanguageTool> = Api::namespaced(context.client.clone(), &namespace);
    let (mut tools, mut missing) = (Vec::new(), Vec::new());
    for reference in agent.spec.tools.iter().filter(|reference| reference.enabled) {
        let found = api.get_opt(&reference.name).await;
        let found = found.map_err(|error| ReconcileError::Api("a LanguageTool", error))?;
        match found.filter(|tool| tool.metadata.deletion_timestamp.is_none()) {
            Some(LanguageTool { spec, .. }) => tools.push(GivenTool {
                name: reference.name.clone(),
                endpoint: endpoint(&reference.name, &namespace, &spec, &context.settings.cluster_domain),
                spec,
            }),
            None => missing.push(reference.name.as_str()),
        }
    }
    let resolved = if missing.is_empty() {
        Verdict::yes("ResolvedRefs", "Resolved")
    } else {
        Verdict::no("ResolvedRefs", "ToolNotFound", format!("no LanguageTool is called {}", missing.join(", ")))
    };
    Ok((tools, resolved))
}

/// Writes what the agent becomes: `Accepted`, and the Deployment as it is.
async fn apply(
    context: &Context,
    agent: &LanguageAgent,
    tools: &[GivenTool],
) -> Result<(Verdict, Option<DynamicObject>), ReconcileError> {
    let owner = agent.controller_owner_ref(&()).ok_or(ReconcileError::NoUid)?;
    let [config, deployment] = objects::all(agent, &owner, tools);
    let refused = match clash(agent, tools) {
        Some(why) => Some(Verdict::no("Accepted", "Clash", why)),
        None => write(context, [&config, &deployment]).await?,
    };
    let live = context.applier.find(&context.client, &deployment).await.map_err(ReconcileError::Apply)?;
    Ok((refused.unwrap_or_else(|| Verdict::yes("Accepted", "Applied")), live))
}

/// Writes the objects in order, up to one that is refused: `Accepted`, if it does not hold.
async fn write(context: &Context, objects: [&WantedObject; 2]) -> Result<Option<Verdict>, ReconcileError> {
    for object in objects {
        if let Err(error) = context.applier.apply(&context.client, object).await {
            return match error.reason() {
                Some(reason) => Ok(Some(Verdict::no("Accepted", reason, error.to_string()))),
                None => Err(ReconcileError::Apply(error)),
            };
        }
    }
    Ok(None)
}
