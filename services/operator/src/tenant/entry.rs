//! From a `ServerEntry` to its status: whether it is known where the server is, and whether the tenant's text has it.

use super::reconcile::{missing_secret, view};
use super::tenant_of;
use crate::context::Context;
use crate::resources::{ServerEntry, ServerEntryStatus, TenantResource};
use crate::status::{Verdict, conditions};
use crate::tool::reconcile::ReconcileError;
use kube::api::Api;
use kube::runtime::controller::Action;
use kube::{Resource, ResourceExt};
use serde_json::Value;
use std::sync::Arc;

/// Looks at one entry, and writes what became of it.
pub async fn reconcile(entry: Arc<ServerEntry>, context: Arc<Context>) -> Result<Action, ReconcileError> {
    let (namespace, name) = (entry.namespace().unwrap_or_default(), entry.name_any());
    let api: Api<ServerEntry> = Api::namespaced(context.client.clone(), &namespace);
    let found = api.get_opt(&name).await.map_err(|error| ReconcileError::Api("the ServerEntry", error))?;
    let Some(entry) = found.filter(|entry| entry.metadata.deletion_timestamp.is_none()) else {
        context.forget(&entry.uid().unwrap_or_default());
        return Ok(Action::await_change());
    };
    let uid = entry.uid().ok_or(ReconcileError::NoUid)?;
    let before = entry.status.clone().unwrap_or_default();
    let tenant = match tenant_of(&namespace, &context.settings.namespace_prefix) {
        Some(tenant) => {
            let tenants: Api<TenantResource> = Api::namespaced(context.client.clone(), &namespace);
            tenants.get_opt(tenant).await.map_err(|error| ReconcileError::Api("the Tenant", error))?
        }
        None => None,
    };
    let look = look(&context, &entry, tenant.as_ref()).await?;
    let generation = entry.metadata.generation;
    let EntryLook { accepted, resolved, ready, url } = look;
    let status = ServerEntryStatus {
        observed_generation: generation,
        url,
        conditions: conditions(&before.conditions, vec![accepted, resolved, ready], generation),
    };
    let wrote = context.applier.write_status(&api, &entry, &before, &status).await;
    if wrote.map_err(|error| ReconcileError::Api("the status of the ServerEntry", error))? {
        context.tell(&entry.object_ref(&()), &before.conditions, &status.conditions).await;
    }
    context.succeeded(&uid);
    // The status of its tenant tells when to look again.
    Ok(Action::await_change())
}

struct EntryLook {
    accepted: Verdict,
    resolved: Verdict,
    ready: Verdict,
    url: Option<String>,
}

async fn look(
    context: &Context,
    entry: &ServerEntry,
    tenant: Option<&TenantResource>,
) -> Result<EntryLook, ReconcileError> {
    let (namespace, name) = (entry.namespace().unwrap_or_default(), entry.name_any());
    let Some(tenant) = tenant else {
        let message = "there is no Tenant in this namespace that is called like it";
        return Ok(EntryLook {
            accepted: Verdict::unknown("Accepted", "TenantNotFound", message),
            resolved: Verdict::no("ResolvedRefs", "TenantNotFound", message),
            ready: Verdict::no("Ready", "NotServed", message),
            url: None,
        });
    };
    let view = view(context, tenant).await?;
    let place = view.sources.servers.iter().position(|server| server.name == name);
    let url = place.and_then(|place| view.sources.servers.get(place)).map(|server| server.url.clone());
    let unresolved = view.sources.unresolved.iter().find(|(unresolved, _)| *unresolved == name);
    let resolved = match (unresolved, &entry.spec.auth) {
        (Some((_, why)), _) => Verdict::no("ResolvedRefs", "ToolNotFound", why.clone()),
        (None, Some(auth)) => match missing_secret(context, &namespace, &auth.secret_key_ref).await? {
            Some((reason, message)) => Verdict::no("ResolvedRefs", reason, message),
            None => Verdict::yes("ResolvedRefs", "Resolved"),
        },
        (None, None) => Verdict::yes("ResolvedRefs", "Resolved"),
    };
    let status = tenant.status.clone().unwrap_or_default();
    let condition = |kind: &str| status.conditions.iter().find(|condition| condition.kind == kind);
    let is_true = |kind: &str| condition(kind).is_some_and(|condition| condition.status == "True");
    let digest = view.text.as_ref().ok().map(|text| text.digest.as_str());
    let is_of_now = |of: Option<&str>| digest.is_some() && of == digest;
    // The servers of the file stand before those of entries.
    let in_file = tenant.spec.config.get("servers").and_then(Value::as_array).map_or(0, Vec::len);
    let path = place.map(|place| format!("servers[{}]", in_file + place));
    let own = path.and_then(|path| status.errors.iter().find(|error| error.path.starts_with(&path)));
    let accepted = match (place, own) {
        (None, _) => Verdict::unknown("Accepted", "Unresolved", "it is left out until it is known where it is"),
        (Some(_), Some(error)) => Verdict::no("Accepted", "Invalid", format!("{}: {}", error.path, error.message)),
        (Some(_), None) if is_of_now(status.accepted.as_ref().map(|text| text.digest.as_str())) => {
            Verdict::yes("Accepted", "Valid")
        }
        (Some(_), None) => {
            Verdict::unknown("Accepted", "TenantNotAccepted", "the tenant's configuration was not accepted")
        }
    };
    let ready = if place.is_some() && is_true("Ready") && is_of_now(status.config_digest.as_deref()) {
        Verdict::yes("Ready", "Served")
    } else {
        Verdict::no("Ready", "NotServed", "not every replica serves it")
    };
    Ok(EntryLook { accepted, resolved, ready, url })
}
