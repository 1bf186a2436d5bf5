//! The shapes of what other crates write as JSON, for the description alone.
//!
//! A type of this crate describes itself. What stands here is written elsewhere (`executor::runs::report`, the catalog,
//! the audit log), and the ring `openapi` holds every answer of the running service to it.

#![expect(dead_code, reason = "nobody makes these: their schema is all that is wanted of them")]

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A JSON object whose keys are somebody else's.
pub(crate) type AnyObject = BTreeMap<String, Value>;

/// What a session is for.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SessionMode {
    Read,
    Write,
}

/// What a call does.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Effect {
    Read,
    Change,
    Disrupt,
}

/// Where a run stands.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunState {
    PendingApproval,
    Approved,
    Rejected,
    Expired,
    Cancelled,
    Executing,
    Succeeded,
    Failed,
    OutcomeUnknown,
    ReconciledSucceeded,
    ReconciledFailed,
}

/// What a rejection means for the session.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnReject {
    Fail,
    Continue,
}

/// What a kill switch leaves.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SwitchMode {
    ReadOnly,
    Stop,
}

/// On whose side a switch was set.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SwitchOwner {
    TenantAdmin,
    Operator,
    Service,
}

/// By what usage is grouped.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum UsageGroup {
    Tool,
    Toolset,
    Principal,
    Session,
}

/// What a document is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DocumentKind {
    Preference,
    Convention,
    Runbook,
    Incident,
    Service,
    Lesson,
    Checklist,
    Note,
}

/// One page of runs, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunList {
    runs: Vec<RunSummary>,
    /// What to ask for next, as `cursor`; none on the last page.
    next_cursor: Option<String>,
}

/// A run in a list: enough to choose from.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunSummary {
    id: String,
    state: RunState,
    tool: String,
    effect: Effect,
    summary: String,
    requested_by: String,
    asked_at: String,
    expires_at: String,
}

/// A run. Who asked for it gets it without `arguments`, `warnings` and `claim`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Run {
    id: String,
    state: RunState,
    tool: String,
    toolset: String,
    effect: Effect,
    preview: RunPreview,
    /// Names exactly this call.
    digest: String,
    requested_by: String,
    session: Option<String>,
    session_tainted: bool,
    asked_at: String,
    expires_at: String,
    /// How many different people have to approve.
    deciders: u32,
    reviewed: bool,
    on_reject: OnReject,
    decisions: Vec<RunDecision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execute_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<RunOutcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    claim: Option<RunClaim>,
}

/// What a run would do, drawn by the service.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunPreview {
    summary: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// What is hidden all the same: how many characters of what, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hidden: Vec<String>,
}

/// What one person said.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunDecision {
    by: String,
    verdict: String,
    reason: Option<String>,
    at: String,
}

/// What became of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunOutcome {
    /// The code of the failure; none if it succeeded.
    code: Option<String>,
    message: String,
    attempted: bool,
    result: Value,
    /// The source of this knowledge.
    basis: Value,
}

/// The replica that executes a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunClaim {
    owner: String,
    epoch: u64,
    lease_until: String,
}

/// The exact arguments of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunArguments {
    id: String,
    tool: String,
    digest: String,
    arguments: Value,
}

/// A finished call, or with status 202 one that waits: then `result` holds `run` and `preview`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CallResult {
    /// The structured result of the tool.
    result: Value,
    /// Further blocks, as MCP has them.
    content: Vec<AnyObject>,
    trace_id: String,
}

/// This turn's tools in the form that `format` names.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ToolList {
    tools: Vec<AnyObject>,
}

/// Whether the service may serve.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Health {
    /// `ok` or `unready`.
    status: String,
}

/// The same, with codes of what is wrong or doubtful.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Readiness {
    status: String,
    ready: bool,
    reasons: Vec<Value>,
    warnings: Vec<Value>,
}

/// The metadata of the protected resource (RFC 9728).
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ResourceMetadata {
    resource: String,
    authorization_servers: Vec<String>,
    scopes_supported: Vec<String>,
    bearer_methods_supported: Vec<String>,
    resource_name: String,
}

/// A JWK set.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct KeySet {
    keys: Vec<AnyObject>,
}

/// A JSON-RPC message of the client.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JsonRpcMessage {
    jsonrpc: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<AnyObject>,
}

/// A JSON-RPC answer: `result` or `error`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JsonRpcAnswer {
    jsonrpc: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<AnyObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<JsonRpcError>,
}

/// The error of a JSON-RPC answer; its stable code is `data.code`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JsonRpcError {
    code: i32,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<AnyObject>,
}

/// What a runner is told about the job it has.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobLease {
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemars::SchemaGenerator;
    use std::collections::BTreeSet;

    fn words_of<T: JsonSchema>() -> BTreeSet<String> {
        let schema = SchemaGenerator::default().into_root_schema_for::<T>().to_value();
        schema["enum"].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    }

    fn spelled<T: Serialize>(all: impl IntoIterator<Item = T>) -> BTreeSet<String> {
        all.into_iter().map(|one| serde_json::to_value(one).unwrap().as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn every_word_is_one_of_the_domains_and_none_is_missing() {
        use domain::run::{OnReject as Reject, RunState as State};
        assert_eq!(words_of::<RunState>(), spelled(State::ALL));
        assert_eq!(words_of::<DocumentKind>(), spelled(memory::documents::DocumentKind::ALL));
        assert_eq!(words_of::<OnReject>(), spelled([Reject::Fail, Reject::Continue]));
        assert_eq!(words_of::<SessionMode>(), spelled([domain::SessionMode::Read, domain::SessionMode::Write]));
        assert_eq!(
            words_of::<Effect>(),
            spelled([domain::Effect::Read, domain::Effect::Change, domain::Effect::Disrupt])
        );
        let modes = [domain::switch::SwitchMode::ReadOnly, domain::switch::SwitchMode::Stop];
        assert_eq!(words_of::<SwitchMode>(), spelled(modes));
        use domain::switch::SwitchOwner as Owner;
        assert_eq!(words_of::<SwitchOwner>(), spelled([Owner::TenantAdmin, Owner::Operator, Owner::Service]));
        use domain::usage::UsageGroup as Group;
        assert_eq!(words_of::<UsageGroup>(), spelled([Group::Tool, Group::Toolset, Group::Principal, Group::Session]));
    }
}
