//! Every name of a span, an attribute and a log key; nothing else spells one.
//!
//! An attribute that does not stand here never leaves the process, so adding one is a decision that shows in a
//! diff. The `mcp.*` and `gen_ai.*` names follow conventions that still move: a rename is one edit here.
//!
//! Deliberately absent: arguments, results, descriptions, addresses of people, and anything a caller wrote freely.

pub mod metrics;

/// Defines constants together with the list of all of them, so that neither can be forgotten.
macro_rules! names {
    ($(#[$about:meta])* $list:ident: $($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = $text;)*
        $(#[$about])*
        pub const $list: &[&str] = &[$($text),*];
    };
}

names! {
    /// Every attribute that may leave the process.
    ATTRIBUTES:
    /// The JSON-RPC method.
    MCP_METHOD_NAME = "mcp.method.name";
    /// The negotiated protocol version.
    MCP_PROTOCOL_VERSION = "mcp.protocol.version";
    /// The transport's session, in the legacy era.
    MCP_SESSION_ID = "mcp.session.id";
    /// The request's id, cut at 64 characters.
    JSONRPC_REQUEST_ID = "jsonrpc.request.id";
    /// The JSON-RPC error code of the response, as text.
    RPC_RESPONSE_STATUS_CODE = "rpc.response.status_code";
    /// Why it failed: a JSON-RPC code as text, or `tool_error`; absent on success.
    ERROR_TYPE = "error.type";
    /// What is done: `execute_tool` for tool calls, `search_memory` and the like for documents.
    GEN_AI_OPERATION_NAME = "gen_ai.operation.name";
    /// The tool's name, if it is in the catalog.
    GEN_AI_TOOL_NAME = "gen_ai.tool.name";
    /// Our id of the call.
    GEN_AI_TOOL_CALL_ID = "gen_ai.tool.call.id";
    /// `extension`, or `datastore` for memory.
    GEN_AI_TOOL_TYPE = "gen_ai.tool.type";
    /// `tcp`, or `pipe` for stdio.
    NETWORK_TRANSPORT = "network.transport";
    /// The protocol beneath MCP.
    NETWORK_PROTOCOL_NAME = "network.protocol.name";
    /// Its version.
    NETWORK_PROTOCOL_VERSION = "network.protocol.version";
    /// Where the client is, as far as its proxies can be trusted.
    CLIENT_ADDRESS = "client.address";
    /// Its port, unless a proxy is between.
    CLIENT_PORT = "client.port";
    /// The name under which an external server is configured; its address may be the tenant's own affair.
    SERVER_ADDRESS = "server.address";
    /// The HTTP method.
    HTTP_REQUEST_METHOD = "http.request.method";
    /// The template of the route, never the path.
    HTTP_ROUTE = "http.route";
    /// The HTTP status of the response.
    HTTP_RESPONSE_STATUS_CODE = "http.response.status_code";
    /// How helm ended.
    PROCESS_EXIT_CODE = "process.exit.code";
    /// `redis` or `redb`.
    DB_SYSTEM_NAME = "db.system.name";
    /// What the store did, such as `cas` or `append`.
    DB_OPERATION_NAME = "db.operation.name";
    /// The tenant's slug.
    TENANT = "quartermaster.tenant";
    /// Our session.
    SESSION_ID = "quartermaster.session.id";
    /// What the session is for: read or write.
    SESSION_MODE = "quartermaster.session.mode";
    /// Whether the session has read text from outside.
    SESSION_TAINTED = "quartermaster.session.tainted";
    /// The tool's toolset.
    TOOLSET = "quartermaster.toolset";
    /// What the call does to the world: read, change or disrupt.
    EFFECT = "quartermaster.effect";
    /// What was decided: permit, ask or deny.
    DECISION = "quartermaster.decision";
    /// The rule or the run the decision rests on.
    BASIS = "quartermaster.basis";
    /// The stable code of the outcome.
    CODE = "quartermaster.code";
    /// Whether the answer was given before and is only repeated.
    REPLAYED = "quartermaster.replayed";
    /// The protocol's era: legacy or modern.
    ERA = "quartermaster.era";
    /// The door the call came through: mcp, rest or stdio.
    ENTRY = "quartermaster.entry";
    /// Where a list came from: l1, l2 or miss.
    CACHE = "quartermaster.cache";
    /// The result's size after redaction and cap.
    RESULT_BYTES = "quartermaster.result.bytes";
    /// The result's tokens.
    RESULT_TOKENS = "quartermaster.result.tokens";
    /// Whether the result was larger than the cap, and withheld.
    RESULT_TRUNCATED = "quartermaster.result.truncated";
    /// Whether the result holds text from outside.
    RESULT_UNTRUSTED = "quartermaster.result.untrusted";
    /// The pinned catalog.
    CATALOG_DIGEST = "quartermaster.catalog.digest";
    /// The run a call became.
    RUN_ID = "quartermaster.run.id";
    /// Where the run stands.
    RUN_STATE = "quartermaster.run.state";
    /// How often the run was claimed.
    RUN_EPOCH = "quartermaster.run.epoch";
    /// The beginning of the digest of what was asked for.
    RUN_DIGEST = "quartermaster.run.digest";
    /// Seconds from the request to the decision.
    RUN_WAIT = "quartermaster.run.wait_s";
    /// A pseudonym of whoever decided, of its own for each tenant; never a name.
    RUN_DECIDER = "quartermaster.run.decider";
    /// What a link points to: request, decision, execution, previous_epoch or transport.
    LINK = "quartermaster.link";
}

names! {
    /// The spans whose names do not depend on the request.
    SPANS:
    /// A tool's execution outside an MCP request; the tool's name follows it.
    SPAN_EXECUTE_TOOL = "execute_tool";
    /// Finding the tool and reading the arguments.
    SPAN_RESOLVE = "resolve";
    /// Opening the audit entry and reading the evidence.
    SPAN_AUDIT_OPEN = "audit open";
    /// The decision.
    SPAN_DECIDE = "decide";
    /// Drawing what a change would do.
    SPAN_PREVIEW = "preview";
    /// Claiming an approved run.
    SPAN_CLAIM = "claim";
    /// Looking at the target for what became of a run.
    SPAN_PROBE = "probe";
    /// A person's decision about a run.
    SPAN_DECISION = "decision";
    /// Waiting for what becomes of a run.
    SPAN_AWAIT_RUN = "await_run";
    /// Asking the target what became of a run whose outcome is unknown.
    SPAN_RECONCILE = "reconcile";
    /// Redacting and capping the result.
    SPAN_REDACT = "redact";
    /// Closing the audit entry.
    SPAN_AUDIT_CLOSE = "audit close";
}

names! {
    /// Fields that shape a span and are no attributes of it.
    SHAPES:
    /// The exported name of a span.
    OTEL_NAME = "otel.name";
    /// The exported kind of a span.
    OTEL_KIND = "otel.kind";
}

/// The code of an execution that another replica was quicker to claim: nothing happened, so nothing is told.
pub const NOT_CLAIMED: &str = "not_claimed";

/// Whether an attribute may leave the process.
pub fn may_leave(attribute: &str) -> bool {
    ATTRIBUTES.contains(&attribute)
}

/// The key under which log lines inside a span carry one of its attributes, if they do.
pub fn log_key(attribute: &str) -> Option<&'static str> {
    match attribute {
        TENANT => Some("tenant"),
        SESSION_ID => Some("session"),
        GEN_AI_TOOL_CALL_ID => Some("call"),
        RUN_ID => Some("run"),
        GEN_AI_TOOL_NAME => Some("tool"),
        EFFECT => Some("effect"),
        CODE => Some("code"),
        _ => None,
    }
}

/// The keys of a log line, in the order in which they are written; others follow.
pub const LOG_KEYS: [&str; 16] = [
    "ts", "level", "event", "msg", "tenant", "session", "call", "run", "tool", "effect", "code", "dur_ms", "trace_id",
    "span_id", "replica", "error",
];

// Attributes of log records of an exported audit log; no span has them.

/// The chunk that a log record is of.
pub const AUDIT_CHUNK: &str = "quartermaster.audit.chunk";
/// Which line of the chunk it is, counted from 1.
pub const AUDIT_LINE: &str = "quartermaster.audit.line";
/// What the line is: head, entry, link or checkpoint.
pub const AUDIT_KIND: &str = "quartermaster.audit.kind";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_that_leave_are_these() {
        insta::assert_snapshot!(ATTRIBUTES.join("\n"), @"
        mcp.method.name
        mcp.protocol.version
        mcp.session.id
        jsonrpc.request.id
        rpc.response.status_code
        error.type
        gen_ai.operation.name
        gen_ai.tool.name
        gen_ai.tool.call.id
        gen_ai.tool.type
        network.transport
        network.protocol.name
        network.protocol.version
        client.address
        client.port
        server.address
        http.request.method
        http.route
        http.response.status_code
        process.exit.code
        db.system.name
        db.operation.name
        quartermaster.tenant
        quartermaster.session.id
        quartermaster.session.mode
        quartermaster.session.tainted
        quartermaster.toolset
        quartermaster.effect
        quartermaster.decision
        quartermaster.basis
        quartermaster.code
        quartermaster.replayed
        quartermaster.era
        quartermaster.entry
        quartermaster.cache
        quartermaster.result.bytes
        quartermaster.result.tokens
        quartermaster.result.truncated
        quartermaster.result.untrusted
        quartermaster.catalog.digest
        quartermaster.run.id
        quartermaster.run.state
        quartermaster.run.epoch
        quartermaster.run.digest
        quartermaster.run.wait_s
        quartermaster.run.decider
        quartermaster.link
    ");
        insta::assert_snapshot!(SPANS.join("\n"), @"
        execute_tool
        resolve
        audit open
        decide
        preview
        claim
        probe
        decision
        await_run
        reconcile
        redact
        audit close
    ");
    }

    #[test]
    fn a_name_stands_once() {
        let mut names = ATTRIBUTES.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ATTRIBUTES.len());
    }

    #[test]
    fn what_could_carry_a_callers_text_is_not_listed() {
        for never in [
            "gen_ai.tool.call.arguments",
            "gen_ai.tool.call.result",
            "gen_ai.tool.description",
            "mcp.resource.uri",
            "url.full",
            "url.query",
            "exception.message",
            "enduser.id",
        ] {
            assert!(!may_leave(never), "{never}");
        }
    }

    #[test]
    fn attributes_reach_log_lines_under_known_keys() {
        for attribute in ATTRIBUTES {
            assert!(log_key(attribute).is_none_or(|key| LOG_KEYS.contains(&key)), "{attribute}");
        }
        assert_eq!(log_key(TENANT), Some("tenant"));
    }
}
