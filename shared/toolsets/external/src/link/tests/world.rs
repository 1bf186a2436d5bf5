//! Who calls whom: permits, targets and limits of the tests.

use super::super::{LinkKey, LinkLimits, LinkTarget, LinksConfig, ServerLinks, TargetReach, ToolCall};
use super::double::Double;
use crate::server::HttpTransport;
use catalog::Progress;
use domain::run::{Answer, Run, RunRequest, Verdict};
use domain::{
    Call, CallId, Caller, Effect, Failure, Level, Moment, Principal, RunId, Scopes, SessionMode, Tenant, ToolName,
    ToolUse, ToolsetName,
};
use egress::{AddressGuard, Url};
use policy::{CallEvidence, Decision, Permit, Policy, decide};
use redact::SecretText;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use testkit::bench::Opened;
use tokio::time::Instant;

use super::super::CallResult;

pub(crate) const CANARY: &str = "Bearer canary-7f3a91";

pub(crate) fn tenant() -> Tenant {
    Tenant::parse("acme").unwrap()
}

pub(crate) fn key() -> LinkKey {
    LinkKey { tenant: tenant(), server: "double".into() }
}

pub(crate) fn links() -> ServerLinks {
    links_with(LinksConfig::default())
}

pub(crate) fn links_with(config: LinksConfig) -> ServerLinks {
    // Several tests of one process may come first; whoever does installs the same provider.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    ServerLinks::new(config)
}

pub(crate) fn target(double: &Double) -> LinkTarget {
    target_at(&format!("http://127.0.0.1:{}/mcp", double.port), double.port)
}

pub(crate) fn target_at(url: &str, port: u16) -> LinkTarget {
    LinkTarget {
        reach: TargetReach::Http { url: Url::parse(url).unwrap(), transport: HttpTransport::Streamable },
        headers: vec![(egress::header::AUTHORIZATION, SecretText::new(CANARY))],
        params: BTreeMap::from([("project".to_owned(), "blue".to_owned())]),
        guard: AddressGuard { private: true, ports: vec![port] },
        credentials: None,
    }
}

pub(crate) fn limits() -> LinkLimits {
    limits_of(Duration::from_secs(20))
}

pub(crate) fn limits_of(within: Duration) -> LinkLimits {
    LinkLimits { deadline: Instant::now() + within, bytes: 8 * 1024 * 1024, nodes: 200_000, depth: 64 }
}

pub(crate) async fn call(links: &ServerLinks, target: &LinkTarget, effect: Effect) -> Result<CallResult, Failure> {
    call_within(links, target, effect, limits()).await
}

pub(crate) async fn call_within(
    links: &ServerLinks,
    target: &LinkTarget,
    effect: Effect,
    limits: LinkLimits,
) -> Result<CallResult, Failure> {
    let Value::Object(arguments) = json!({ "text": "hello" }) else { unreachable!() };
    call_of(links, target, &permit(effect), &arguments, &limits, &Progress::default()).await
}

pub(crate) async fn call_of(
    links: &ServerLinks,
    target: &LinkTarget,
    permit: &Permit,
    arguments: &Map<String, Value>,
    limits: &LinkLimits,
    progress: &Progress,
) -> Result<CallResult, Failure> {
    links.call(permit, &key(), target, ToolCall { tool: "echo", arguments, progress }, limits).await
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let waiting = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// A permit to act.
pub(crate) fn permit(effect: Effect) -> Permit {
    match decided(effect, true) {
        Decision::Permit(permit) => permit,
        other @ (Decision::Ask(..) | Decision::Deny(_)) => panic!("{other:?}"),
    }
}

/// A permit to look at what would happen.
pub(crate) fn rehearsal() -> Permit {
    match decided(Effect::Change, false) {
        Decision::Ask(_, permit) => permit,
        other @ (Decision::Permit(_) | Decision::Deny(_)) => panic!("{other:?}"),
    }
}

fn decided(effect: Effect, approved: bool) -> Decision {
    let toolset = ToolsetName::parse("mcp_double").unwrap();
    let principal = Principal::new("https://login.example", "agent");
    let caller = Caller {
        tenant: tenant(),
        principal: principal.clone(),
        scopes: Scopes::parse("tools:read tools:write"),
        expires_at: Moment::from_secs(9),
        token: None,
        labels: Vec::new(),
    };
    let used = ToolUse {
        tool: ToolName::parse("mcp_double__echo").unwrap(),
        toolset: toolset.clone(),
        needs: Level::Write,
        effect,
        about: None,
        schema: "",
        arguments: "{}",
    };
    let call = Call::new(CallId::from_random([1; 16]), Arc::new(caller), None, used);
    let evidence = if approved {
        let at = Moment::from_secs(1);
        let answer = Answer { by: principal, verdict: Verdict::Approve, reason: None, at, span: None };
        let asked = RunRequest::new(&call, at);
        let run = Run { answers: vec![answer], ..Run::new(RunId::from_random([7; 16]), asked) };
        CallEvidence::of_approved_run(&run, &Opened).unwrap()
    } else {
        CallEvidence::of_address(&Opened, [(toolset, Level::Write)].into_iter().collect())
    };
    let policy = Policy { mode: SessionMode::Write, deny: vec![], require_approval: vec![], calls_per_minute: 10 };
    decide(&policy, call, &evidence)
}
