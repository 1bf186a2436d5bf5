//! One tool of a server as an entry of the catalog, and one call of it.
//!
//! The way of a call: is the definition still the accepted one, is the server left alone for now, is there a place, where
//! is it for this assignment, and once more whether the definition is the accepted one. Only then a byte is sent.

use crate::answer;
use crate::codes;
use crate::config::ExternalServerConfig;
use crate::definition::{Hints, ListedDefinition, UsableDefinition};
use crate::effect::JudgedEffect;
use crate::link::{LinkKey, LinkLimits, ServerLinks, ToolCall};
use crate::member::{Member, MemberRef};
use crate::places::{NoFreeSlot, SharedSlots};
use crate::server::HttpTransport;
use crate::{ClientCredentials, LinkTarget, TargetReach};
use catalog::entry::ToolSource;
use catalog::{
    BoxedFuture, ErasedCall, ErasedTool, ParseResult, PreviewBuilder, Progress, ToolDefinition, ToolFuture, ToolPreview,
};
use domain::{Code, Failure, Tenant, ToolName, ToolOutput, json};
use policy::{Permit, PermitMode};
use redact::Scrubber;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Most values in one answer of a server.
pub(crate) const NODES: usize = 200_000;
/// How deep an answer may nest.
pub(crate) const DEPTH: usize = 64;
/// How much longer the service waits than the call itself may take, so that the call's own words are heard.
const GRACE: Duration = Duration::from_secs(1);

/// What all tools of all servers share.
pub(crate) struct ExternalDeps {
    pub(crate) links: ServerLinks,
    pub(crate) common: SharedSlots,
    pub(crate) reserved: BTreeSet<String>,
}

impl ExternalDeps {
    /// What must not come back from a server: the tenant's secrets, and the tokens that were fetched with them.
    pub(crate) fn scrubber(&self, tenant: &Tenant, config: &ExternalServerConfig) -> Arc<Scrubber> {
        let (secrets, tokens) = ((config.scrubber)(), self.links.tokens_of(tenant));
        if tokens.is_empty() { secrets } else { Arc::new(secrets.with(tokens)) }
    }
}

/// A tool of a server.
pub(crate) struct ExternalTool {
    pub(crate) member: MemberRef,
    pub(crate) shared: Arc<ExternalDeps>,
    /// Our name for it.
    pub(crate) name: ToolName,
    /// The server's.
    pub(crate) tool: String,
    /// The definition that was accepted.
    pub(crate) digest: String,
    pub(crate) judged: JudgedEffect,
    pub(crate) hints: Hints,
}

/// What the catalog knows of it.
pub(crate) fn definition(
    member: &Member,
    name: &ToolName,
    listed: &ListedDefinition,
    usable: &UsableDefinition,
    judged: JudgedEffect,
    config: &ExternalServerConfig,
) -> ToolDefinition {
    ToolDefinition {
        name: name.clone(),
        toolset: member.toolset.clone(),
        title: usable.title.clone(),
        description: usable.description.clone(),
        most: judged.effect,
        idempotent: judged.idempotent,
        open_world: true,
        deadline: config.limits.deadline + GRACE,
        outside_text: true,
        reviewed: None,
        waits: false,
        strict: usable.strict.clone(),
        wire: usable.wire.clone(),
        // Pinned, and not passed on: it would be a promise about what somebody else will say.
        output: None,
        needs_client: None,
        hint: config.description.clone(),
        source: ToolSource::Server { id: member.id.clone(), tool: listed.name.clone() },
    }
}

impl ErasedTool for ExternalTool {
    fn understand(self: Arc<Self>, arguments: Value) -> ParseResult {
        let most = self.home()?.config().limits.argument_bytes;
        let bytes = arguments.to_string().len();
        if bytes > most {
            let message = format!("the arguments have {bytes} bytes, and {} takes {most}", self.name);
            return Err(Failure::new(Code::TooLarge, message).next("send less at once"));
        }
        let Value::Object(arguments) = arguments else {
            return Err(Failure::new(Code::InvalidArgument, "arguments are an object"));
        };
        Ok((self.judged.effect, None, Box::new(ToolCallRequest { tool: self, arguments })))
    }
}

/// One call with its arguments.
struct ToolCallRequest {
    tool: Arc<ExternalTool>,
    arguments: Map<String, Value>,
}

impl ErasedCall for ToolCallRequest {
    fn run<'a>(self: Box<Self>, permit: &'a Permit, progress: &'a Progress) -> ToolFuture<'a> {
        Box::pin(async move { self.tool.call(permit, &self.arguments, progress).await })
    }

    fn preview<'a>(&'a self, permit: &'a Permit) -> BoxedFuture<'a, Result<Option<ToolPreview>, Failure>> {
        Box::pin(std::future::ready(self.tool.draw(permit).map(Some)))
    }
}

impl ExternalTool {
    fn home(&self) -> Result<Arc<Member>, Failure> {
        self.member.upgrade().ok_or_else(|| {
            Failure::new(target::codes::SERVER_UNKNOWN, format!("the server of {} is no longer configured", self.name))
                .next("list the tools again")
        })
    }

    /// The accepted definition, or no call.
    fn live(&self, member: &Member) -> Result<(), Failure> {
        if member.is_live(&self.tool, &self.digest) {
            return Ok(());
        }
        let message = format!("{} of the external server {} is not the tool that was accepted", self.name, member.id);
        Err(Failure::new(Code::ToolChanged, message)
            .next("nothing was sent; go on without it until an administrator of the tenant has accepted it"))
    }

    async fn call(
        &self,
        permit: &Permit,
        arguments: &Map<String, Value>,
        progress: &Progress,
    ) -> Result<ToolOutput, Failure> {
        let member = self.home()?;
        if permit.extent() != PermitMode::Act || *permit.tenant() != member.tenant {
            return Err(Failure::new(Code::Internal, "this permit does not reach an external server"));
        }
        self.live(&member)?;
        let config = member.config();
        let deadline = Instant::now() + config.limits.deadline;
        // Asked before waiting, so that a server that is down answers at once; the try itself is taken below.
        drop(member.breaker.enter(Instant::now()).map_err(|wait| left_alone(&member, wait))?);
        let target = (config.target)(&permit.call().assignment)?;
        let common = self.shared.common.of(&address(&target));
        let _place = member.places().take(&common, deadline).await.map_err(|full| crowded(&member, full))?;
        let go = member.breaker.enter(Instant::now()).map_err(|wait| left_alone(&member, wait))?;
        self.live(&member)?;
        let limits = LinkLimits { deadline, bytes: config.limits.result_bytes, nodes: NODES, depth: DEPTH };
        let key = LinkKey { tenant: member.tenant.clone(), server: member.id.clone() };
        let call = ToolCall { tool: &self.tool, arguments, progress };
        let called = self.shared.links.call(permit, &key, &target, call, &limits).await;
        let scrubber = self.shared.scrubber(&member.tenant, &config);
        match called {
            Ok(called) => {
                go.answered(Instant::now());
                answer::outcome(&member.id, called, &scrubber)
            }
            Err(failure) => {
                if is_silence(failure.code) {
                    go.lost(Instant::now());
                } else {
                    go.answered(Instant::now());
                }
                Err(answer::failure(&member.id, failure, permit.effect(), &scrubber))
            }
        }
    }

    /// What a person is shown before saying yes. The yes holds for this definition and these parameters.
    fn draw(&self, permit: &Permit) -> Result<ToolPreview, Failure> {
        let member = self.home()?;
        self.live(&member)?;
        let config = member.config();
        let target = (config.target)(&permit.call().assignment)?;
        let place = place(&target);
        let claim = |name: &str, said: Option<bool>| match said {
            Some(said) => format!("{name} {said}"),
            None => format!("{name} not said"),
        };
        let Hints { read_only, destructive, idempotent } = self.hints;
        let claims = [
            claim("readOnlyHint", read_only),
            claim("destructiveHint", destructive),
            claim("idempotentHint", idempotent),
        ];
        let mut preview = PreviewBuilder::new(format!("server: {} at {}", member.id, address(&target)));
        preview.line(format!("tool: {}, listed as {}", self.tool, self.name));
        preview.line(format!("effect: {} ({})", self.judged.effect.as_str(), self.judged.why));
        preview.line(format!("the server's own claim, not checked: {}", claims.join(", ")));
        target.params.iter().for_each(|(name, value)| preview.line(format!("parameter {name}: {value}")));
        if let Some(ClientCredentials { token_url, client_id, scope, .. }) = &target.credentials {
            let scope = scope.as_ref().map(|scope| format!(", scope {scope}")).unwrap_or_default();
            preview.line(format!("token: for client {client_id} at {token_url}{scope}"));
        }
        preview.line(format!("definition sha256: {}", self.digest));
        preview.line(format!("target sha256: {place}"));
        preview.warn("What this does is up to an external server; only its name and arguments are known.");
        let (summary, text) =
            (format!("{} of the external server {}", self.tool, member.id), preview.lines().join("\n"));
        Ok(preview.build(summary, text, format!("{} {place}", self.digest)))
    }
}

/// Whether the server kept silent, as opposed to saying something that was of no use.
fn is_silence(code: Code) -> bool {
    matches!(code, codes::UPSTREAM_UNAVAILABLE | codes::UPSTREAM_REFUSED | Code::Deadline | Code::OutcomeUnknown)
}

fn left_alone(member: &Member, wait: Duration) -> Failure {
    let message = format!("the external server {} did not answer lately and is left alone for now", member.id);
    Failure::new(codes::UPSTREAM_UNAVAILABLE, message)
        .next("nothing was sent; go on without it and try again later")
        .retry_after(wait)
}

fn crowded(member: &Member, full: NoFreeSlot) -> Failure {
    let message = match full {
        NoFreeSlot::Queue => format!("too many calls wait for the external server {} already", member.id),
        NoFreeSlot::Late => format!("the external server {} was busy with other calls all the while", member.id),
    };
    Failure::new(codes::UPSTREAM_UNAVAILABLE, message).next("nothing was sent; try again later").retry_after_ms(1_000)
}

/// Where a server is, as people read it.
pub(crate) fn address(target: &LinkTarget) -> String {
    match &target.reach {
        TargetReach::Http { url, .. } => url.to_string(),
        TargetReach::Process { command, .. } => format!("the program {command}"),
    }
}

/// Names a target without its secrets: those may be replaced by newer ones between a yes and its execution.
pub(crate) fn place(target: &LinkTarget) -> String {
    let reach = match &target.reach {
        TargetReach::Http { url, transport: HttpTransport::Streamable } => serde_json::json!([url.as_str()]),
        TargetReach::Http { url, transport: HttpTransport::Sse } => serde_json::json!(["sse", url.as_str()]),
        TargetReach::Process { command, args, env } => serde_json::json!([command, args, env]),
    };
    let headers: Vec<&str> = target.headers.iter().map(|(name, _)| name.as_str()).collect();
    let mut place = serde_json::json!([reach, headers, target.params]);
    if let (Some(credentials), Value::Array(parts)) = (&target.credentials, &mut place) {
        parts.push(credentials.place());
    }
    json::sha256_hex(place.to_string().as_bytes())
}
