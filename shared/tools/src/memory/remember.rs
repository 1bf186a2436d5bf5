//! `memory_remember`: keeps a document.
//!
//! A write to session scope touches nobody outside the session, so it counts as a read and runs at once; user and tenant
//! scope are changes, and a person is asked.

use super::path::{DocPath, Scope};
use super::shape::{Kind, trust};
use super::{TOOLSET, memory, no_store, scan, scope};
use catalog::{Drawn, Probe, Progress, Tool, ToolSpec};
use domain::{Code, Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;
use store::{Actor, ActorKind, AuditEntry, Document, Draft, Limits, Phase, Put, Store, Trust, Version};

const DAY: u64 = 24 * 60 * 60;
/// Session documents are kept for as long as a session can live.
const SESSION_KEEP: Duration = Duration::from_secs(30 * DAY);

pub(super) struct Remember {
    pub(super) store: Store,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    path: DocPath,
    #[serde(rename = "type")]
    kind: Kind,
    #[schemars(length(min = 1, max = 100_000))]
    content: String,
    #[schemars(length(min = 1, max = 2_000))]
    evidence: String,
    #[schemars(length(min = 1, max = 240))]
    title: Option<String>,
    #[schemars(length(max = 16), inner(length(max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")))]
    tags: Option<Vec<String>>,
    #[schemars(length(equal = 64), regex(pattern = r"^[0-9a-f]{64}$"))]
    if_sha256: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Kept {
    path: String,
    version: u64,
    sha256: String,
    trust: &'static str,
    created: bool,
}

impl Tool for Remember {
    const SPEC: ToolSpec = ToolSpec::new("memory_remember", TOOLSET, Effect::Change)
        .says(
            "Keep a document",
            "Save a document at path (session/, user/ or tenant/). evidence: how you know. if_sha256 is required to overwrite.",
        )
        .idempotent()
        .closed_world();
    type Args = Args;
    type Output = Kept;

    fn effect(args: &Args) -> Effect {
        match args.path.scope() {
            Scope::Session => Effect::Read,
            Scope::User | Scope::Tenant => Effect::Change,
        }
    }

    fn about(args: &Args) -> Option<String> {
        Some(args.path.scope().as_str().to_owned())
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<Drawn>, Failure> {
        args.path.in_known_store()?;
        let content = normalise(&args.content);
        scanned(&content, args)?;
        let path = args.path.as_str();
        let whose = scope(permit, args.path.scope())?;
        let current = memory(&self.store, permit).get(&whose, path).await.map_err(|e| no_store(&e))?;
        let readers = match args.path.scope() {
            Scope::Session => "this session",
            Scope::User => "the requester, in every session",
            Scope::Tenant => "everybody in the tenant",
        };
        let (what, before, fingerprint) = match &current {
            None => ("create", String::new(), "absent".to_owned()),
            Some(found) => ("replace", found.content.clone(), found.sha256.clone()),
        };
        Ok(Some(Drawn {
            summary: format!("{what} {path} ({}, {} bytes)", args.kind.as_str(), content.len()),
            text: format!(
                "{what} {path}, to be read by {readers}\n\n--- now\n{before}\n+++ then\n{content}\n\nevidence, written by the agent (untrusted):\n{}",
                args.evidence
            ),
            warnings: Vec::new(),
            arguments: None,
            fingerprint,
        }))
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> Probe {
        let Ok(whose) = scope(permit, args.path.scope()) else { return Probe::Unknown };
        match memory(&self.store, permit).get(&whose, args.path.as_str()).await {
            Ok(Some(found)) if found.provenance.run.is_some() && found.provenance.run == permit.run() => {
                Probe::Done(serde_json::to_string(&kept(&found, found.version == 1)).ok())
            }
            Ok(_) => Probe::NotDone,
            Err(_) => Probe::Unknown,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<Kept, Failure> {
        args.path.in_known_store()?;
        let content = normalise(&args.content);
        scanned(&content, &args)?;
        let (memory, whose) = (memory(&self.store, permit), scope(permit, args.path.scope())?);
        let current = memory.get(&whose, args.path.as_str()).await.map_err(|e| no_store(&e))?;
        let expect = match (&current, &args.if_sha256) {
            (None, None) => Version::NONE,
            (None, Some(_)) => return Err(conflict(None)),
            // Saying the same again is no new version.
            (Some(found), _) if found.content == content => return Ok(kept(found, false)),
            (Some(found), Some(sha)) if found.sha256 == *sha => Version::new(found.version),
            (Some(found), Some(_)) => return Err(conflict(Some(found))),
            (Some(found), None) => return Err(exists(found)),
        };
        let draft = draft(permit, &args, content);
        let entry = entry(permit, &args.path);
        let limits = limits(args.path.scope());
        match memory.put(&whose, draft, expect, limits, &entry).await.map_err(|e| no_store(&e))? {
            Put::Done(document) => Ok(kept(&document, expect == Version::NONE)),
            Put::Conflict(found) => Err(conflict(found.as_ref())),
            Put::TooMany => Err(over(format!("this scope holds at most {} documents", limits.documents))),
            Put::TooLarge => Err(over(format!("this scope holds at most {} bytes", limits.bytes))),
        }
    }
}

/// Everything that would be kept, or shown to whoever decides, passes the scan.
fn scanned(content: &str, args: &Args) -> Result<(), Failure> {
    let texts = [content, &args.evidence, args.title.as_deref().unwrap_or_default()];
    texts.into_iter().try_for_each(scan::check)
}

/// One form for equal texts: line feeds alone, and nothing blank at the end.
fn normalise(content: &str) -> String {
    content.replace("\r\n", "\n").trim_end().to_owned()
}

fn draft(permit: &Permit, args: &Args, content: String) -> Draft {
    let call = permit.call();
    let heading =
        || content.lines().find_map(|line| line.strip_prefix("# ")).map(|h| h.trim().chars().take(240).collect());
    Draft {
        path: args.path.as_str().to_owned(),
        title: args.title.clone().or_else(heading).unwrap_or_else(|| args.path.name().to_owned()),
        kind: args.kind.as_str().to_owned(),
        tags: args.tags.clone().unwrap_or_default(),
        // What a person approved is more than a draft.
        trust: if permit.run().is_some() { Trust::Approved } else { Trust::Draft },
        content,
        evidence: args.evidence.clone(),
        actor: call.caller.principal.clone(),
        actor_kind: ActorKind::Agent.as_str().to_owned(),
        session: call.session,
        tainted: false,
        run: permit.run(),
    }
}

fn entry(permit: &Permit, path: &DocPath) -> AuditEntry {
    let call = permit.call();
    let principal = call.caller.principal.clone();
    AuditEntry {
        actor: Some(Actor { principal, kind: ActorKind::Agent, scopes: call.caller.scopes, token: None }),
        session: call.session,
        call: Some(call.id),
        tool: Some(call.tool.clone()),
        toolset: Some(call.toolset.clone()),
        effect: Some(call.effect),
        target: Some(format!("memory/{}", path.as_str())),
        ..AuditEntry::new(Phase::Transition)
    }
}

const fn limits(scope: Scope) -> Limits {
    const MIB: u64 = 1 << 20;
    match scope {
        Scope::Session => Limits { documents: 50, bytes: MIB, keep: Some(SESSION_KEEP) },
        Scope::User => Limits { documents: 200, bytes: 10 * MIB, keep: None },
        Scope::Tenant => Limits { documents: 2_000, bytes: 100 * MIB, keep: None },
    }
}

fn kept(document: &Document, created: bool) -> Kept {
    Kept {
        path: document.path.clone(),
        version: document.version,
        sha256: document.sha256.clone(),
        trust: trust(document.trust),
        created,
    }
}

fn exists(found: &Document) -> Failure {
    Failure::new(Code::DocExists, format!("{} exists already", found.path))
        .next("read it, then call again with if_sha256 to overwrite it")
        .details(json!({ "sha256": found.sha256, "version": found.version }))
}

fn conflict(found: Option<&Document>) -> Failure {
    let failure = Failure::new(Code::MemoryConflict, "the document is not the one that if_sha256 names")
        .next("read it again, then decide");
    match found {
        Some(found) => failure.details(json!({ "sha256": found.sha256, "version": found.version })),
        None => failure,
    }
}

fn over(message: String) -> Failure {
    Failure::new(Code::QuotaExceeded, message).next("shorten or replace what is kept")
}
