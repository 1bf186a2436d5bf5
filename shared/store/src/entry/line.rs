//! An entry as it is written: every part borrowed, all of it put into one buffer in one go.

use super::{ActorKind, CallVerdict, CloseFacts, Phase, RunMove, UnrecordedReads};
use crate::contents::StoredContents;
use domain::{AuditId, Code, Principal, Scopes, Tenant};
use serde::{Serialize, Serializer};
use std::time::{SystemTime, UNIX_EPOCH};

/// Most entries fit without their contents, so that the buffer seldom grows.
const USUAL: usize = 640;

#[derive(Serialize)]
pub(crate) struct EntryRecord<'a> {
    pub(crate) v: u8,
    pub(crate) tenant: &'a str,
    pub(crate) id: String,
    pub(crate) phase: &'static str,
    pub(crate) at: At,
    pub(crate) replica: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) actor: Option<EntryCaller<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) toolset: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) effect: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) args: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<&'a CallVerdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<EntryEnd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<&'a RunMove>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unrecorded: Option<&'a UnrecordedReads>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<&'a str>,
    /// The program the caller uses, as it names itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) contents: Option<StoredContents>,
}

impl<'a> EntryRecord<'a> {
    /// A line of which only that is known which every line has. `id` is drawn by the caller, because two writers must
    /// never agree on one.
    pub(crate) fn new(tenant: &'a Tenant, id: AuditId, replica: &'a str, phase: Phase) -> EntryRecord<'a> {
        EntryRecord {
            v: 1,
            tenant: tenant.as_str(),
            id: id.to_string(),
            phase: phase.as_str(),
            at: At { host: host_millis() },
            replica,
            actor: None,
            session: None,
            call: None,
            tool: None,
            toolset: None,
            effect: None,
            target: None,
            args: None,
            decision: None,
            outcome: None,
            run: None,
            unrecorded: None,
            trace: None,
            client: None,
            contents: None,
        }
    }

    /// The host's time, in milliseconds.
    pub(crate) fn host(&self) -> u64 {
        self.at.host
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        telemetry::metrics::AUDIT_RECORDS.add([self.phase], 1);
        let sealed = self.contents.as_ref().map_or(0, StoredContents::len);
        let mut bytes = Vec::with_capacity(USUAL + sealed);
        // Only maps with odd keys and failing writers can fail here, and there are neither.
        let written = serde_json::to_writer(&mut bytes, self);
        debug_assert!(written.is_ok());
        bytes
    }
}

fn host_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[derive(Serialize)]
pub(crate) struct At {
    host: u64,
}

#[derive(Serialize)]
pub(crate) struct EntryCaller<'a> {
    iss: &'a str,
    sub: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    person: Option<&'a str>,
    kind: &'static str,
    #[serde(serialize_with = "names")]
    scopes: Scopes,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
}

impl<'a> EntryCaller<'a> {
    pub(crate) fn new(
        principal: &'a Principal,
        kind: ActorKind,
        scopes: Scopes,
        token: Option<&'a str>,
    ) -> EntryCaller<'a> {
        let Principal { issuer, subject, person } = principal;
        EntryCaller { iss: issuer, sub: subject, person: person.as_deref(), kind: kind.as_str(), scopes, token }
    }
}

fn names<S: Serializer>(scopes: &Scopes, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(scopes.iter().map(domain::TokenScope::as_str))
}

#[derive(Serialize)]
pub(crate) struct EntryEnd {
    code: &'static str,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ms: Option<u64>,
}

impl EntryEnd {
    pub(crate) fn of(facts: &CloseFacts) -> EntryEnd {
        let code = facts.code.map_or("ok", Code::as_str);
        EntryEnd { code, bytes: facts.bytes, tokens: facts.tokens, ms: facts.millis }
    }
}
