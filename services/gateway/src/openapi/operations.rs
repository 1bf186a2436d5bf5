//! Every operation, in the order of the routes. A test holds this list to the table of routes.

use super::operation::{Operation, operation};
use super::shapes;
use crate::http::{audit, catalog, memory, runner, runs, secrets, servers, sessions, switches, tenant, usage};
use crate::protocol::turn::{SessionRequest, SessionView, TurnCall};

const IF_MATCH: (&str, &str) = ("If-Match", "names what the request replaces, as ETag returned it");
const YAML: &[&str] = &["text/yaml", "application/yaml"];
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

pub(super) fn all() -> Vec<Operation> {
    let groups = [open(), mcp(), turn(), runs(), memory(), tenant(), servers(), operators(), runners()];
    groups.into_iter().flatten().collect()
}

fn open() -> Vec<Operation> {
    const METADATA: &str = "Resource metadata (RFC 9728)";
    vec![
        operation("GET", "/health", "health", "Whether the service is ready")
            .answers::<shapes::Health>(200)
            .answers::<shapes::Health>(503),
        operation("GET", "/livez", "livez", "Whether the process runs").answers::<shapes::Health>(200),
        operation("GET", "/readyz", "readyz", "Whether the service is ready, with reasons and warnings")
            .answers::<shapes::Readiness>(200)
            .answers::<shapes::Readiness>(503),
        operation("GET", "/.well-known/oauth-protected-resource", "resourceMetadata", METADATA)
            .answers::<shapes::ResourceMetadata>(200),
        operation("GET", "/.well-known/oauth-protected-resource/mcp", "mcpResourceMetadata", METADATA)
            .answers::<shapes::ResourceMetadata>(200),
        operation("GET", "/.well-known/quartermaster-audit-keys.json", "auditKeys", "The public keys of checkpoints")
            .answers_as::<shapes::KeySet>(200, "application/jwk-set+json"),
    ]
}

fn mcp() -> Vec<Operation> {
    let post = |path, id| {
        operation("POST", path, id, "One MCP message, of either protocol era")
            .header("MCP-Protocol-Version", "the protocol revision")
            .header("Mcp-Session-Id", "the session of the older era")
            .body::<shapes::JsonRpcMessage>()
            .answers::<shapes::JsonRpcAnswer>(200)
            .nothing(202)
            .bare(&[406, 408, 413, 415])
            .errors(&[404])
    };
    let get = |path, id| {
        operation("GET", path, id, "The stream of notices of a session of the older era")
            .header("Mcp-Session-Id", "the session")
            .answers_as::<String>(200, EVENTS)
            .bare(&[405, 406])
            .errors(&[404])
    };
    let delete = |path, id| {
        operation("DELETE", path, id, "End a session of the older era")
            .header("Mcp-Session-Id", "the session")
            .nothing(204)
            .bare(&[400, 405])
            .errors(&[404])
    };
    vec![
        post("/mcp", "mcp"),
        get("/mcp", "mcpStream"),
        delete("/mcp", "mcpEnd"),
        post("/mcp/x/{selection}", "mcpSelected"),
        get("/mcp/x/{selection}", "mcpSelectedStream"),
        delete("/mcp/x/{selection}", "mcpSelectedEnd"),
    ]
}

fn turn() -> Vec<Operation> {
    vec![
        operation("POST", "/v1/sessions", "openSession", "Open a session")
            .body::<SessionRequest>()
            .answers::<SessionView>(201)
            .errors(&[404, 409]),
        operation("GET", "/v1/sessions", "listSessions", "Open sessions of the tenant")
            .query::<sessions::SessionsQuery>()
            .answers::<sessions::SessionList>(200),
        operation("GET", "/v1/sessions/{session}", "showSession", "The session")
            .answers::<SessionView>(200)
            .errors(&[404, 409]),
        operation(
            "DELETE",
            "/v1/sessions/{session}",
            "closeSession",
            "Close a session; administrators end those of others",
        )
        .nothing(204)
        .errors(&[404, 409]),
        operation("GET", "/v1/sessions/{session}/tools", "listTools", "This turn's tools, ready for a model call")
            .query::<sessions::SessionToolsQuery>()
            .header("If-None-Match", "the ETag of a list that the caller has")
            .answers::<shapes::ToolList>(200)
            .nothing(304)
            .errors(&[404, 409]),
        operation("POST", "/v1/sessions/{session}/calls", "callTool", "Call a tool; 202 means that a person is asked")
            .body::<TurnCall>()
            .answers::<shapes::CallResult>(200)
            .answers::<shapes::CallResult>(202)
            .errors(&[404, 409, 410, 412, 422, 502, 504]),
    ]
}

fn runs() -> Vec<Operation> {
    let show = |path, id| {
        operation("GET", path, id, "One run, at once or after its next change")
            .query::<runs::RunQuery>()
            .answers::<shapes::Run>(200)
            .errors(&[404, 409])
    };
    let decide = |path, id, what| {
        operation("POST", path, id, what)
            .body::<runs::DecisionRequest>()
            .answers::<shapes::Run>(200)
            .errors(&[404, 409, 410])
    };
    let plain = |path, id, what| operation("POST", path, id, what).answers::<shapes::Run>(200).errors(&[404, 409, 410]);
    vec![
        operation("GET", "/v1/runs", "listRuns", "Runs, newest first")
            .query::<runs::RunsQuery>()
            .answers::<shapes::RunList>(200),
        show("/v1/runs/{run}", "showRun"),
        operation("GET", "/v1/runs/{run}/arguments", "runArguments", "The exact arguments, with nothing hidden")
            .answers::<shapes::RunArguments>(200)
            .errors(&[404, 409]),
        decide("/v1/runs/{run}/approve", "approveRun", "Approve a run"),
        decide("/v1/runs/{run}/reject", "rejectRun", "Reject a run"),
        plain("/v1/runs/{run}/cancel", "cancelRun", "Take a pending run back, as its requester"),
        operation("POST", "/v1/runs/{run}/resolve", "resolveRun", "Settle an unknown outcome")
            .body::<runs::SettleRequest>()
            .answers::<shapes::Run>(200)
            .errors(&[404, 409, 410]),
        plain("/v1/runs/{run}/clear", "clearRun", "Unblock sessions after a rejection"),
        show("/runs/{run}", "showRunShort"),
        decide("/runs/{run}/approve", "approveRunShort", "Approve a run"),
        decide("/runs/{run}/reject", "rejectRunShort", "Reject a run"),
    ]
}

fn memory() -> Vec<Operation> {
    const DOCUMENT: &str = "/v1/memory/documents/{path:.*}";
    vec![
        operation("GET", "/v1/memory/documents", "listDocuments", "The tenant's documents, by path")
            .query::<memory::DocumentsQuery>()
            .answers::<memory::DocumentListPage>(200)
            .errors(&[404]),
        operation("GET", DOCUMENT, "showDocument", "One document, or one of its versions")
            .query::<memory::DocumentVersionQuery>()
            .answers::<memory::DocumentView>(200)
            .errors(&[404, 409, 410, 422]),
        operation("PUT", DOCUMENT, "putDocument", "Write a document; overwrites only what If-Match names")
            .header(IF_MATCH.0, IF_MATCH.1)
            .body::<memory::DocumentPutBody>()
            .answers::<memory::WriteResponse>(200)
            .answers::<memory::WriteResponse>(201)
            .errors(&[404, 409, 422]),
        operation("DELETE", DOCUMENT, "removeDocument", "Delete a document, or remove text of it for good")
            .query::<memory::RemovalQuery>()
            .header(IF_MATCH.0, IF_MATCH.1)
            .answers::<memory::RemovalResponse>(200)
            .errors(&[404, 409, 410, 413, 422]),
        operation("GET", "/v1/memory/history/{path:.*}", "documentHistory", "Versions of a document, newest first")
            .query::<memory::DocumentHistoryQuery>()
            .answers::<memory::DocumentVersions>(200)
            .errors(&[404, 410]),
    ]
}

fn tenant() -> Vec<Operation> {
    use tenant::{TenantChange, TenantCheck, TenantVersion, TenantVersions, TenantView};
    const SECRET: &str = "/v1/tenant/secrets/{secret}";
    let change = |method, path, id, what| {
        operation(method, path, id, what)
            .header(IF_MATCH.0, IF_MATCH.1)
            .answers::<TenantChange>(200)
            .errors(&[404, 409, 412, 422])
    };
    vec![
        operation("GET", "/v1/tenant/config", "showConfig", "The tenant's configuration")
            .answers::<TenantView>(200)
            .answers_text(200, "text/yaml")
            .errors(&[404, 409]),
        change("PUT", "/v1/tenant/config", "putConfig", "Set the configuration")
            .query::<tenant::ChangeNote>()
            .text(YAML)
            .errors(&[413]),
        change("DELETE", "/v1/tenant/config", "removeConfig", "Return to the operator's file")
            .query::<tenant::ChangeNote>(),
        operation("POST", "/v1/tenant/config/check", "checkConfig", "Validate a configuration without setting it")
            .text(YAML)
            .answers::<TenantCheck>(200)
            .errors(&[413]),
        operation("GET", "/v1/tenant/config/history", "configHistory", "Versions, newest first")
            .query::<tenant::TenantHistoryQuery>()
            .answers::<TenantVersions>(200)
            .errors(&[409]),
        operation("GET", "/v1/tenant/config/history/{version}", "configVersion", "One version with its text")
            .answers::<TenantVersion>(200)
            .errors(&[404, 409]),
        change("POST", "/v1/tenant/config/rollback", "rollbackConfig", "Restore an earlier version")
            .body::<tenant::RollbackRequest>(),
        operation("GET", "/v1/tenant/secrets", "listSecrets", "Names of secrets, never a value")
            .answers::<secrets::SecretList>(200),
        operation("PUT", SECRET, "putSecret", "Set a secret; the body is the value")
            .header(IF_MATCH.0, IF_MATCH.1)
            .text(&["text/plain", "application/octet-stream"])
            .answers::<secrets::SecretChange>(200)
            .answers::<secrets::SecretChange>(201)
            .errors(&[404, 409, 412, 413, 422]),
        operation("DELETE", SECRET, "removeSecret", "Remove a secret")
            .header(IF_MATCH.0, IF_MATCH.1)
            .answers::<secrets::SecretChange>(200)
            .errors(&[404, 409, 412]),
    ]
}

fn servers() -> Vec<Operation> {
    vec![
        operation("GET", "/v1/tenant/servers", "listServers", "External servers and the state of their tools")
            .answers::<servers::ServerList>(200),
        operation("GET", "/v1/tenant/servers/{server}", "showServer", "One server, with the definitions that wait")
            .answers::<shapes::AnyObject>(200)
            .errors(&[404]),
        operation("POST", "/v1/tenant/servers/{server}/accept", "acceptTools", "Accept tools as they were shown")
            .body::<servers::AcceptRequest>()
            .answers::<servers::AcceptResponse>(200)
            .errors(&[404, 409]),
        operation("POST", "/v1/tenant/servers/{server}/refresh", "refreshServer", "Fetch the list of tools now")
            .answers::<shapes::AnyObject>(200)
            .errors(&[404, 409, 502, 504]),
        operation("GET", "/v1/schemas/tenant.json", "tenantSchema", "The JSON Schema of a tenant's configuration")
            .answers::<shapes::AnyObject>(200),
        operation("GET", "/v1/openapi.json", "openapi", "This description").answers::<shapes::AnyObject>(200),
    ]
}

fn operators() -> Vec<Operation> {
    vec![
        operation("GET", "/v1/audit", "listAudit", "The audit log")
            .query::<audit::AuditQuery>()
            .answers::<audit::AuditPage>(200),
        operation("POST", "/v1/audit/verify", "verifyAudit", "Whether the audit log is as it was sealed and signed")
            .answers::<audit::AuditVerdict>(200)
            .errors(&[504]),
        operation("GET", "/v1/audit/checkpoints", "listCheckpoints", "The signed checkpoints of the audit log")
            .query::<audit::checkpoints::CheckpointQuery>()
            .answers::<audit::checkpoints::CheckpointPage>(200),
        operation("GET", "/v1/usage", "showUsage", "Calls, time and tokens")
            .query::<usage::UsageQuery>()
            .answers::<usage::UsageReport>(200),
        operation("GET", "/v1/switches", "listSwitches", "Kill switches").answers::<switches::SwitchList>(200),
        operation("POST", "/v1/switches", "setSwitch", "Set a kill switch")
            .body::<switches::SwitchRequest>()
            .answers::<switches::SwitchView>(200)
            .answers::<switches::SwitchView>(201)
            .errors(&[404, 409]),
        operation("DELETE", "/v1/switches/{switch}", "liftSwitch", "Lift a kill switch")
            .answers::<shapes::AnyObject>(200)
            .nothing(204)
            .errors(&[404, 409]),
        operation("GET", "/v1/catalog", "listCatalog", "Every tool the tenant could load")
            .query::<catalog::CatalogQuery>()
            .header("If-None-Match", "the ETag of a page that the caller has")
            .answers_as::<catalog::CatalogPage<'_>>(200, JSON)
            .nothing(304)
            .errors(&[404]),
    ]
}

fn runners() -> Vec<Operation> {
    let job = |path, id, what| {
        operation("POST", path, id, what)
            .body::<runner::JobReport>()
            .answers::<shapes::JobLease>(200)
            .errors(&[404, 409, 410])
    };
    vec![
        operation("POST", "/v1/runner/claim", "claimJob", "A runner takes a job")
            .body::<runner::JobRequest>()
            .answers::<runner::JobOffer>(200)
            .errors(&[404, 409]),
        operation("POST", "/v1/runner/leave", "leave", "A runner takes no more jobs")
            .body::<runner::Departure>()
            .answers::<shapes::AnyObject>(200)
            .errors(&[404, 409]),
        job("/v1/runner/jobs/{job}/start", "startJob", "A runner starts a job"),
        job("/v1/runner/jobs/{job}/events", "reportJob", "A runner reports output of a job"),
        job("/v1/runner/jobs/{job}/end", "endJob", "A runner reports how a job ended"),
    ]
}
