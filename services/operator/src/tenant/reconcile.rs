//! From a `Tenant` to its status. What replicas serve is theirs to say; this adds it up.

use super::replicas::{REPLICA_LABEL, ReplicaReport, ReplicaSummary, summarize};
use super::sources::{ServerSources, resolve};
use super::tenant_of;
use super::text::{TenantFileText, render, secrets_of};
use crate::context::Context;
use crate::resources::{
    AcceptedText, ConfigMistake, LanguageTool, ServerEntry, ServingReplicas, TenantResource, TenantResourceStatus,
    TokenReference,
};
use crate::status::{Verdict, conditions};
use crate::tool::reconcile::ReconcileError;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ListParams};
use kube::runtime::controller::Action;
use kube::{Resource, ResourceExt};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a tenant is looked at without a change, if all is well: a replica may have gone without a word.
const AGAIN: Duration = Duration::from_secs(300);
/// The same while something is missing: a Secret that appears is told by nobody.
const AGAIN_SOON: Duration = Duration::from_secs(20);

/// What the resources of a namespace say of its tenant.
pub struct TenantView {
    /// The tenant of the namespace, and whether this resource is about it.
    pub tenant: Option<String>,
    /// Its servers.
    pub sources: ServerSources,
    /// Its text, or why there is none.
    pub text: Result<TenantFileText, ConfigMistake>,
}

/// Reads everything that a tenant's text is made of.
pub async fn view(context: &Context, tenant: &TenantResource) -> Result<TenantView, ReconcileError> {
    let namespace = tenant.namespace().unwrap_or_default();
    let entries: Api<ServerEntry> = Api::namespaced(context.client.clone(), &namespace);
    let entries = entries.list(&ListParams::default()).await;
    let entries = entries.map_err(|error| ReconcileError::Api("the ServerEntries", error))?.items;
    let tools = if entries.iter().any(|entry| entry.spec.tool_ref.is_some()) {
        let tools: Api<LanguageTool> = Api::namespaced(context.client.clone(), &namespace);
        let tools = tools.list(&ListParams::default()).await;
        tools.map_err(|error| ReconcileError::Api("the LanguageTools", error))?.items
    } else {
        Vec::new()
    };
    let sources = resolve(&entries, &tools, &context.settings.cluster_domain);
    let name = tenant_of(&namespace, &context.settings.namespace_prefix).map(str::to_owned);
    let text = render(&tenant.name_any(), &tenant.spec, &sources.servers);
    Ok(TenantView { tenant: name.filter(|name| *name == tenant.name_any()), sources, text })
}

/// The reports of the replicas that are there.
pub async fn reports(context: &Context) -> Result<Vec<ReplicaReport>, ReconcileError> {
    let leases: Api<Lease> = Api::namespaced(context.client.clone(), &context.settings.namespace);
    let leases = leases.list(&ListParams::default().labels(REPLICA_LABEL)).await;
    let leases = leases.map_err(|error| ReconcileError::Api("the leases of replicas", error))?.items;
    Ok(context.live_replicas(&leases, Instant::now()))
}

/// Looks at one tenant, and writes what became of it.
pub async fn reconcile(tenant: Arc<TenantResource>, context: Arc<Context>) -> Result<Action, ReconcileError> {
    let (namespace, name) = (tenant.namespace().unwrap_or_default(), tenant.name_any());
    let api: Api<TenantResource> = Api::namespaced(context.client.clone(), &namespace);
    let found = api.get_opt(&name).await.map_err(|error| ReconcileError::Api("the Tenant", error))?;
    let Some(tenant) = found.filter(|tenant| tenant.metadata.deletion_timestamp.is_none()) else {
        context.forget(&tenant.uid().unwrap_or_default());
        return Ok(Action::await_change());
    };
    let uid = tenant.uid().ok_or(ReconcileError::NoUid)?;
    let before = tenant.status.clone().unwrap_or_default();
    let view = view(&context, &tenant).await?;
    let reports = reports(&context).await?;
    let wanted = view.text.as_ref().ok().filter(|_| view.tenant.is_some());
    let summary = summarize(&reports, &name, wanted.map(|text| text.digest.as_str()));
    let resolved = references(&context, &namespace, &tenant, &view.sources).await?;
    let (accepted, errors) = acceptance(&view, &summary, &tenant, &context.settings.namespace_prefix);
    let programmed = programming(&summary, wanted);
    let ready = readiness(&accepted, &summary, wanted);
    let again = if ready.holds() && resolved.holds() { AGAIN } else { AGAIN_SOON };
    let generation = tenant.metadata.generation;
    let newly = wanted
        .filter(|_| accepted.holds())
        .map(|text| AcceptedText { digest: text.digest.clone(), text: text.text.clone() });
    let status = TenantResourceStatus {
        observed_generation: generation,
        config_digest: summary.in_force.clone(),
        served_by: Some(ServingReplicas { ready: summary.serving, total: summary.total }),
        errors,
        accepted: newly.or_else(|| before.accepted.clone()),
        conditions: conditions(&before.conditions, vec![accepted, resolved, programmed, ready], generation),
    };
    let wrote = context.applier.write_status(&api, &tenant, &before, &status).await;
    if wrote.map_err(|error| ReconcileError::Api("the status of the Tenant", error))? {
        context.tell(&tenant.object_ref(&()), &before.conditions, &status.conditions).await;
    }
    context.succeeded(&uid);
    Ok(Action::requeue(again))
}

fn acceptance(
    view: &TenantView,
    summary: &ReplicaSummary,
    tenant: &TenantResource,
    prefix: &str,
) -> (Verdict, Vec<ConfigMistake>) {
    let no = |reason, message: String| Verdict::no("Accepted", reason, message);
    if view.tenant.is_none() {
        let namespace = tenant.namespace().unwrap_or_default();
        let message = match tenant_of(&namespace, prefix) {
            Some(name) => format!("the tenant of this namespace is called `{name}`, and so is its resource"),
            None => format!("namespaces of tenants begin with `{prefix}`"),
        };
        return (no("NameMismatch", message), Vec::new());
    }
    let errors = view.text.as_ref().err().map(|error| vec![error.clone()]).or_else(|| summary.errors.clone());
    if let Some(errors) = errors {
        let first = errors.first().map(|error| format!("{}: {}", error.path, error.message)).unwrap_or_default();
        let message = format!("{} mistakes; what was in force stays so. {first}", errors.len());
        return (no("Invalid", message), errors);
    }
    let verdict = match (summary.accepted, summary.total) {
        (1.., _) => Verdict::yes("Accepted", "Valid"),
        (0, 0) => Verdict::unknown("Accepted", "NoReplicas", "no replica of the gateway is there to judge it"),
        (0, _) => Verdict::unknown("Accepted", "Pending", "no replica has judged it yet"),
    };
    (verdict, Vec::new())
}

/// `Programmed`: all replicas serve one text, if maybe an earlier one.
fn programming(summary: &ReplicaSummary, wanted: Option<&TenantFileText>) -> Verdict {
    let no = |reason, message: &str| Verdict::no("Programmed", reason, message);
    match &summary.in_force {
        _ if summary.total == 0 => no("NoReplicas", "no replica of the gateway is there"),
        None => no("NotServed", "no replica serves the tenant"),
        Some(_) if summary.serving < summary.total => no("Updating", "replicas serve different texts"),
        Some(digest) if wanted.is_some_and(|text| text.digest == *digest) => Verdict::yes("Programmed", "Served"),
        Some(_) => Verdict::yes("Programmed", "EarlierServed"),
    }
}

/// `Ready`: all replicas serve exactly what the resources say.
fn readiness(accepted: &Verdict, summary: &ReplicaSummary, wanted: Option<&TenantFileText>) -> Verdict {
    let is_wanted = wanted.is_some_and(|text| summary.in_force.as_deref() == Some(text.digest.as_str()));
    if accepted.holds() && is_wanted && summary.total > 0 && summary.serving == summary.total {
        return Verdict::yes("Ready", "Served");
    }
    let message =
        format!("{} of {} replicas serve what is wanted", if is_wanted { summary.serving } else { 0 }, summary.total);
    Verdict::no("Ready", "NotServed", message)
}

/// `ResolvedRefs`: every Secret and every tool is there.
async fn references(
    context: &Context,
    namespace: &str,
    tenant: &TenantResource,
    sources: &ServerSources,
) -> Result<Verdict, ReconcileError> {
    if let Some((entry, why)) = sources.unresolved.first() {
        return Ok(Verdict::no("ResolvedRefs", "ToolNotFound", format!("ServerEntry `{entry}`: {why}")));
    }
    let all = secrets_of(&tenant.spec, &sources.servers);
    for (_, reference) in &all {
        if let Some((reason, message)) = missing_secret(context, namespace, reference).await? {
            return Ok(Verdict::no("ResolvedRefs", reason, message));
        }
    }
    Ok(Verdict::yes("ResolvedRefs", if all.is_empty() { "NoReferences" } else { "Resolved" }))
}

/// Why a key of a Secret cannot be used, if it cannot.
pub async fn missing_secret(
    context: &Context,
    namespace: &str,
    reference: &TokenReference,
) -> Result<Option<(&'static str, String)>, ReconcileError> {
    let secrets: Api<Secret> = Api::namespaced(context.client.clone(), namespace);
    let found = secrets.get_opt(&reference.name).await.map_err(|error| ReconcileError::Api("a Secret", error))?;
    let TokenReference { name, key } = reference;
    let Some(secret) = found else {
        return Ok(Some(("SecretNotFound", format!("there is no Secret `{name}`"))));
    };
    let value = secret.data.unwrap_or_default().remove(key);
    let is_text = value.is_some_and(|value| std::str::from_utf8(&value.0).is_ok_and(|text| !text.trim().is_empty()));
    Ok((!is_text).then(|| ("KeyNotFound", format!("the Secret `{name}` has no text at `{key}`"))))
}
