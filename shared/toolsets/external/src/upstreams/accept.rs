//! An administrator accepts what a server offers now, by the digest of what was shown.

use super::refresh::RefreshPolicy;
use super::{Upstreams, no_store};
use crate::definition::ListedDefinition;
use crate::member::{JudgedTool, Member};
use crate::offer::ToolOffer;
use crate::pins::{self, PinState};
use domain::{Caller, Code, Failure, Tenant, ToolName};
use serde::Serialize;
use std::sync::Arc;
use store::{Actor, ActorKind, AuditEntry, Phase, PinOutcome, StoreError};

/// How often a change is tried against others of the same moment.
const TRIES: usize = 5;

/// What was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AcceptedTools {
    /// The server.
    pub server: String,
    /// The tools, by the names agents know them by.
    pub tools: Vec<String>,
}

impl Upstreams {
    /// Accepts one tool, by our name or the server's, or every tool that waits. `digest` is that of the definition, or of
    /// the whole list, as the standing showed it: nobody accepts what they have not seen.
    pub async fn accept(
        &self,
        tenant: &Tenant,
        server: &str,
        tool: Option<&str>,
        digest: Option<&str>,
        by: &Caller,
    ) -> Result<AcceptedTools, Failure> {
        let member = self.member(tenant, server)?;
        let digest = digest.ok_or_else(|| {
            Failure::new(Code::InvalidArgument, "accepting names the digest of what was shown")
                .next("read the standing")
        })?;
        let _flight = member.flight.lock().await;
        let servers = self.0.store.of(tenant).servers();
        for _ in 0..TRIES {
            self.look(&member, RefreshPolicy::No).await.map_err(|error| no_store(&error))?;
            let view = member.view();
            let Some(offer) = &view.known.offer else {
                return Err(Failure::new(Code::NotFound, "the server has never been listed"));
            };
            let chosen = match tool {
                Some(tool) => vec![one(&view.tools, tool, digest)?],
                None => all(&view.tools, offer, digest)?,
            };
            let waiting: Vec<&JudgedTool> = chosen.into_iter().filter(|stood| is_waiting(stood)).collect();
            let told =
                AcceptedTools { server: member.id.clone(), tools: waiting.iter().map(|stood| named(stood)).collect() };
            if waiting.is_empty() {
                return Ok(told);
            }
            let (before, version) = match servers.pins(&member.id).await {
                // Somebody else wrote what stands there. An administrator who accepts writes over it, and what this
                // process knows to be accepted stays.
                Err(StoreError::NotAuthentic { version, .. }) => (view.known.pins.pins().cloned(), version),
                pins => pins.map_err(|error| no_store(&error))?,
            };
            let now = self.0.store.now().await.map_err(|error| no_store(&error))?;
            let tools: Vec<&ListedDefinition> = waiting.iter().map(|stood| &stood.listed).collect();
            let pins = pins::accepted(before.as_ref(), offer, tools, Some(&by.principal), now);
            let entry = entry(&member, &waiting, digest, by);
            match servers.pin(&member.id, version, &pins, &entry).await.map_err(|error| no_store(&error))? {
                PinOutcome::Done => {
                    self.look(&member, RefreshPolicy::No).await.map_err(|error| no_store(&error))?;
                    return Ok(told);
                }
                PinOutcome::Conflict => {}
            }
        }
        Err(Failure::new(Code::Conflict, "others accept tools of this server at the same moment").next("try again"))
    }
}

fn is_waiting(stood: &JudgedTool) -> bool {
    match stood.state {
        PinState::New | PinState::Changed => true,
        PinState::Accepted | PinState::Removed | PinState::Refused | PinState::NotAllowed => false,
    }
}

fn named(stood: &JudgedTool) -> String {
    stood.name.as_ref().map_or_else(|| stood.listed.name.clone(), ToolName::to_string)
}

/// The tool that was named, if it is still what was shown.
fn one<'a>(tools: &'a [JudgedTool], tool: &str, digest: &str) -> Result<&'a JudgedTool, Failure> {
    let is = |stood: &&JudgedTool| stood.listed.name == tool || stood.name.as_ref().is_some_and(|n| n.as_str() == tool);
    let stood = tools.iter().find(is).ok_or_else(|| Failure::new(Code::NotFound, "the server lists no such tool"))?;
    if stood.listed.digest != digest {
        return Err(moved(&stood.listed.digest));
    }
    match &stood.refused {
        Some(why) => Err(Failure::new(Code::NotPossible, format!("this tool cannot be offered: {why}"))),
        None => Ok(stood),
    }
}

fn all<'a>(tools: &'a [JudgedTool], offer: &Arc<ToolOffer>, digest: &str) -> Result<Vec<&'a JudgedTool>, Failure> {
    if offer.digest == digest { Ok(tools.iter().collect()) } else { Err(moved(&offer.digest)) }
}

fn moved(now: &str) -> Failure {
    Failure::new(Code::Conflict, "this is no longer what was shown")
        .next("read the standing again and accept what it shows now")
        .details(serde_json::json!({ "digest": now }))
}

fn entry(member: &Member, waiting: &[&JudgedTool], digest: &str, by: &Caller) -> AuditEntry {
    let actor = Actor { principal: by.principal.clone(), kind: ActorKind::Person, scopes: by.scopes, token: None };
    let what = match waiting {
        [only] => format!("tool {:?}", only.listed.name),
        many => format!("{} tools", many.len()),
    };
    AuditEntry {
        actor: Some(actor),
        tool: if let [only] = waiting { only.name.clone() } else { None },
        toolset: Some(member.toolset.clone()),
        target: Some(format!("server {}: {what} accepted as {digest}", member.id)),
        ..AuditEntry::new(Phase::Admin)
    }
}
