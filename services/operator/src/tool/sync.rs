//! What a tool offers: asked once a replica is ready, again when what runs has changed, and every now and then.

use crate::context::{Context, ListedTools, pause};
use crate::discover::{ToolAddress, list_tools};
use crate::resources::{LanguageTool, ToolSchema};
use crate::status::Verdict;
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use kube::{Client, ResourceExt};
use std::error::Error;
use std::time::{Duration, Instant};

/// The most that status holds of schemas: an object of the API server has 1.5 MiB at most, and others read it as well.
const MOST_SCHEMA_BYTES: usize = 256 << 10;

/// What is known of a tool's list after a look.
#[derive(Debug)]
pub struct SyncedTools {
    /// `SchemaSynced`.
    pub verdict: Verdict,
    /// What it offers; `None`: as before.
    pub schemas: Option<Vec<ToolSchema>>,
    /// When to look again, at the latest.
    pub again: Duration,
}

/// The token for asking, if the tool has one: `ResolvedRefs`, and the token.
pub async fn token(client: &Client, tool: &LanguageTool) -> Result<(Verdict, Option<String>), kube::Error> {
    let Some(reference) = &tool.spec.token_secret_ref else {
        return Ok((Verdict::yes("ResolvedRefs", "NoReferences"), None));
    };
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &tool.namespace().unwrap_or_default());
    let missing = |reason, what: String| Ok((Verdict::no("ResolvedRefs", reason, what), None));
    let Some(secret) = secrets.get_opt(&reference.name).await? else {
        return missing("SecretNotFound", format!("there is no Secret `{}`", reference.name));
    };
    let value = secret.data.unwrap_or_default().remove(&reference.key);
    match value.and_then(|value| String::from_utf8(value.0).ok()).filter(|value| !value.trim().is_empty()) {
        Some(token) => Ok((Verdict::yes("ResolvedRefs", "Resolved"), Some(token))),
        None => missing("KeyNotFound", format!("the Secret `{}` has no text at `{}`", reference.name, reference.key)),
    }
}

/// Asks the tool, unless it was asked about `running` a while ago.
pub async fn sync(context: &Context, uid: &str, running: String, address: ToolAddress) -> SyncedTools {
    let before = context.listed(uid).filter(|listed| listed.of == running);
    if let Some(listed) = &before {
        let left = listed.again.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            return SyncedTools { verdict: listed.verdict.clone(), schemas: listed.schemas.clone(), again: left };
        }
    }
    let (verdict, schemas, failures) = match list_tools(&address).await {
        Ok(schemas) => {
            let fits = fitting(&schemas);
            let verdict = if fits == schemas.len() {
                Verdict::yes("SchemaSynced", "Listed")
            } else {
                let message = format!("status holds the schemas of {fits} of {} tools", schemas.len());
                Verdict::no("SchemaSynced", "TooLarge", message)
            };
            (verdict, Some(schemas), 0)
        }
        Err(error) => {
            let failures = before.map_or(0, |listed| listed.failures).saturating_add(1);
            (Verdict::no("SchemaSynced", error.reason(), chain(&error)), None, failures)
        }
    };
    let again = if failures == 0 { context.settings.resync } else { pause(failures).min(context.settings.resync) };
    let listed = ListedTools {
        of: running,
        again: Instant::now() + again,
        failures,
        verdict: verdict.clone(),
        schemas: schemas.clone(),
    };
    context.remember_list(uid, listed);
    SyncedTools { verdict, schemas, again }
}

/// How many schemas fit into status.
pub fn fitting(schemas: &[ToolSchema]) -> usize {
    let mut room = MOST_SCHEMA_BYTES;
    let size = |schema: &ToolSchema| serde_json::to_vec(schema).map_or(usize::MAX, |bytes| bytes.len());
    let fits = |schema: &&ToolSchema| {
        room.checked_sub(size(schema)).is_some_and(|left| {
            room = left;
            true
        })
    };
    schemas.iter().take_while(fits).count()
}

fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
