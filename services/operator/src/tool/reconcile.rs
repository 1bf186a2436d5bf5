//! From a `LanguageTool` to what is there.

use super::sync::{SyncedTools, fitting, sync, token};
use super::{endpoint, objects};
use crate::apply::ApplyError;
use crate::context::Context;
use crate::discover::ToolAddress;
use crate::names::DIGEST;
use crate::resources::{DeploymentMode, LanguageAgent, LanguageTool, LanguageToolStatus};
use crate::status::{Verdict, conditions, phase};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{Api, DynamicObject, ListParams};
use kube::runtime::controller::Action;
use kube::{Resource, ResourceExt};
use std::sync::Arc;
use std::time::Duration;

/// How long a resource that cannot be applied is left alone if it does not change: a quota may have been raised.
pub const REFUSED_AGAIN: Duration = Duration::from_secs(120);

/// Why a look was not finished.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// Something could not be read, or the status not be written.
    #[error("the API server could not be asked for {0}")]
    Api(&'static str, #[source] kube::Error),
    /// An object could not be written.
    #[error("an object could not be written")]
    Apply(#[source] ApplyError),
    /// The API server sent an object that cannot be one.
    #[error("the resource has no uid")]
    NoUid,
}

/// Looks at one tool, and makes what is there be what it says.
pub async fn reconcile(tool: Arc<LanguageTool>, context: Arc<Context>) -> Result<Action, ReconcileError> {
    let (namespace, name) = (tool.namespace().unwrap_or_default(), tool.name_any());
    let api: Api<LanguageTool> = Api::namespaced(context.client.clone(), &namespace);
    // The watch may be behind our own last write.
    let found = api.get_opt(&name).await.map_err(|error| ReconcileError::Api("the LanguageTool", error))?;
    let Some(tool) = found.filter(|tool| tool.metadata.deletion_timestamp.is_none()) else {
        context.forget(&tool.uid().unwrap_or_default());
        return Ok(Action::await_change());
    };
    let uid = tool.uid().ok_or(ReconcileError::NoUid)?;
    let before = tool.status.clone().unwrap_or_default();
    let looked = match tool.spec.deployment_mode {
        DeploymentMode::Service => as_service(&context, &tool).await?,
        DeploymentMode::Sidecar => as_sidecar(&context, &tool).await?,
    };
    let LookedAt { accepted, resolved, ready, ready_replicas, synced } = looked;
    let again = if accepted.holds() { synced.again } else { REFUSED_AGAIN };
    let (available_tools, tool_schemas) = match synced.schemas {
        Some(mut schemas) => {
            let names = schemas.iter().map(|schema| schema.name.clone()).collect();
            schemas.truncate(fitting(&schemas));
            (names, schemas)
        }
        // A list that could not be had leaves what was known.
        None => (before.available_tools.clone(), before.tool_schemas.clone()),
    };
    let generation = tool.metadata.generation;
    let status = LanguageToolStatus {
        observed_generation: generation,
        phase: Some(phase(&accepted, &ready).to_owned()),
        endpoint: Some(endpoint(&name, &namespace, &tool.spec, &context.settings)),
        ready_replicas,
        available_tools,
        tool_schemas,
        conditions: conditions(&before.conditions, vec![accepted, resolved, ready, synced.verdict], generation),
    };
    let about: ObjectReference = tool.object_ref(&());
    let wrote = context.applier.write_status(&api, &tool, &before, &status).await;
    if wrote.map_err(|error| ReconcileError::Api("the status of the LanguageTool", error))? {
        context.tell(&about, &before.conditions, &status.conditions).await;
    }
    context.succeeded(&uid);
    Ok(if again.is_zero() { Action::await_change() } else { Action::requeue(again) })
}

/// What a look found.
struct LookedAt {
    accepted: Verdict,
    resolved: Verdict,
    ready: Verdict,
    ready_replicas: Option<i64>,
    synced: SyncedTools,
}

/// A tool in pods of its own.
async fn as_service(context: &Context, tool: &LanguageTool) -> Result<LookedAt, ReconcileError> {
    let owner = tool.controller_owner_ref(&()).ok_or(ReconcileError::NoUid)?;
    let agents = agents_of(context, tool).await?;
    let wanted = objects::all(tool, &owner, &agents, &context.settings.namespace);
    let (mut accepted, mut deployment) = (Verdict::yes("Accepted", "Applied"), None);
    for object in &wanted {
        match context.applier.apply(&context.client, object).await {
            Ok(live) if object.resource.kind == "Deployment" => deployment = Some(live),
            Ok(_) => {}
            Err(error) => match error.reason() {
                // What is there stays as it was, and is told of as it is.
                Some(reason) => {
                    accepted = Verdict::no("Accepted", reason, error.to_string());
                    if object.resource.kind == "Deployment" {
                        deployment =
                            context.applier.find(&context.client, object).await.map_err(ReconcileError::Apply)?;
                    }
                    break;
                }
                None => return Err(ReconcileError::Apply(error)),
            },
        }
    }
    let (resolved, token) =
        token(&context.client, tool).await.map_err(|error| ReconcileError::Api("a Secret", error))?;
    let (ready, ready_replicas) = readiness(deployment.as_ref());
    let synced = if !ready.holds() {
        let verdict = Verdict::unknown("SchemaSynced", "NoReplicaReady", "nobody is there to be asked");
        SyncedTools { verdict, schemas: None, again: Duration::ZERO }
    } else if !resolved.holds() {
        let verdict = Verdict::no("SchemaSynced", "NoToken", "the token for asking is missing");
        SyncedTools { verdict, schemas: None, again: Duration::from_secs(10).min(context.settings.resync) }
    } else {
        let url = endpoint(&tool.name_any(), &tool.namespace().unwrap_or_default(), &tool.spec, &context.settings);
        let url = format!("{url}{}", tool.spec.path);
        let address = ToolAddress { url, token, lookup: context.settings.lookup.clone() };
        sync(context, &tool.uid().unwrap_or_default(), running(tool, deployment.as_ref()), address).await
    };
    Ok(LookedAt { accepted, resolved, ready, ready_replicas, synced })
}

/// A tool in the pods of agents: it has none itself, and what it had when it was a service goes.
async fn as_sidecar(context: &Context, tool: &LanguageTool) -> Result<LookedAt, ReconcileError> {
    let owner = tool.controller_owner_ref(&()).ok_or(ReconcileError::NoUid)?;
    for object in objects::all(tool, &owner, &[], &context.settings.namespace).iter().rev() {
        context.applier.remove(&context.client, object).await.map_err(ReconcileError::Apply)?;
    }
    let verdict = Verdict::unknown("SchemaSynced", "Sidecar", "a sidecar is reached from its own pod only");
    Ok(LookedAt {
        accepted: Verdict::yes("Accepted", "Applied"),
        resolved: Verdict::yes("ResolvedRefs", "NoReferences"),
        ready: Verdict::yes("Ready", "Sidecar"),
        ready_replicas: None,
        synced: SyncedTools { verdict, schemas: Some(Vec::new()), again: Duration::ZERO },
    })
}

/// The agents of the namespace that refer to a tool, in order.
async fn agents_of(context: &Context, tool: &LanguageTool) -> Result<Vec<String>, ReconcileError> {
    let api: Api<LanguageAgent> = Api::namespaced(context.client.clone(), &tool.namespace().unwrap_or_default());
    let agents = api.list(&ListParams::default()).await;
    let agents = agents.map_err(|error| ReconcileError::Api("the LanguageAgents", error))?;
    let name = tool.name_any();
    let uses = |agent: &&LanguageAgent| agent.spec.tools.iter().any(|tool| tool.enabled && tool.name == name);
    let mut names: Vec<String> = agents.items.iter().filter(uses).map(ResourceExt::name_any).collect();
    names.sort_unstable();
    Ok(names)
}

/// `Ready` of whatever a Deployment runs, and how many pods are.
pub fn readiness(deployment: Option<&DynamicObject>) -> (Verdict, Option<i64>) {
    let Some(deployment) = deployment else {
        return (Verdict::no("Ready", "NotDeployed", "there is no Deployment"), None);
    };
    let (status, wanted) = (&deployment.data["status"], deployment.data["spec"]["replicas"].as_i64());
    let count = status["readyReplicas"].as_i64().unwrap_or_default();
    if count > 0 {
        return (Verdict::yes("Ready", "ReplicasReady"), Some(count));
    }
    if wanted == Some(0) {
        return (Verdict::no("Ready", "ScaledToZero", "it is to have no replica"), Some(0));
    }
    let trouble = status["conditions"].as_array().into_iter().flatten().find(|condition| {
        let is = |kind: &str, status: &str| condition["type"] == kind && condition["status"] == status;
        is("ReplicaFailure", "True") || is("Progressing", "False")
    });
    let message = trouble.and_then(|trouble| trouble["message"].as_str()).unwrap_or("no replica is ready yet");
    (Verdict::no("Ready", "NoReplicaReady", message), Some(0))
}

/// What is running, in one word: another word means that the tool is to be asked anew.
fn running(tool: &LanguageTool, deployment: Option<&DynamicObject>) -> String {
    let Some(deployment) = deployment else { return String::new() };
    let status = &deployment.data["status"];
    let count = |key: &str| status[key].as_i64().unwrap_or_default();
    let is_whole = count("observedGeneration") >= deployment.metadata.generation.unwrap_or_default()
        && count("updatedReplicas") == count("replicas")
        && count("readyReplicas") == count("replicas");
    let digest = deployment.annotations().get(DIGEST).map_or("", String::as_str);
    format!("{digest} {is_whole} {} {:?}", tool.spec.path, tool.spec.token_secret_ref)
}
