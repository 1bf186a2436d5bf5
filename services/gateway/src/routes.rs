//! Every route, in one table: the server is configured from it, and the tests walk through it.
//!
//! The table says whom a route answers; the check itself stands in the handler, and a test compares the two.

use crate::http::{
    audit, catalog, health, mcp, memory, metadata, runner, runs, schemas, secrets, servers, sessions, switches, tenant,
    usage,
};
use actix_web::http::Method;
use actix_web::web::{self, ServiceConfig};
use domain::TokenScope::{self, AuditRead, OperatorSwitch, RunsDecide, TenantAdmin, ToolsRead};

/// Whom a route answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteAccess {
    /// Anybody, without a token.
    Anyone,
    /// Every caller; what it may do with what it names is the handler's to judge.
    Caller,
    /// A caller whose token has one of these scopes.
    OneOf(&'static [TokenScope]),
    /// A person: a token with this scope and none that calls tools.
    Person(TokenScope),
    /// A person: a token with one of these scopes and none that calls tools.
    OnePerson(&'static [TokenScope]),
    /// A runner: a token with the scope `runner:work` and no other, and with labels.
    Runner,
}

/// One method of one address.
pub struct ApiRoute {
    /// The method; `None` is any that no earlier route of the address has.
    pub method: Option<Method>,
    /// The address, with its parameters in braces.
    pub path: &'static str,
    /// Whom it answers.
    pub access: RouteAccess,
    handler: Handler,
}

const READ: RouteAccess = RouteAccess::OneOf(&[ToolsRead]);
const RUNS: RouteAccess = RouteAccess::OneOf(&[ToolsRead, RunsDecide, AuditRead]);
const CATALOG: RouteAccess = RouteAccess::OneOf(&[ToolsRead, TenantAdmin]);
const AUDIT: RouteAccess = RouteAccess::OneOf(&[AuditRead]);
const DECIDER: RouteAccess = RouteAccess::Person(RunsDecide);
const ADMIN: RouteAccess = RouteAccess::Person(TenantAdmin);
const SESSIONS: RouteAccess = RouteAccess::OnePerson(&[TenantAdmin, AuditRead]);
const SWITCHES: RouteAccess = RouteAccess::OnePerson(&[TenantAdmin, OperatorSwitch]);

/// All routes. The first that fits a request answers it.
pub static ROUTES: &[ApiRoute] = &[
    get("/health", RouteAccess::Anyone, || web::to(health::health)),
    get("/livez", RouteAccess::Anyone, || web::to(health::livez)),
    get("/readyz", RouteAccess::Anyone, || web::to(health::readyz)),
    get("/.well-known/oauth-protected-resource", RouteAccess::Anyone, || web::to(metadata::document)),
    get("/.well-known/oauth-protected-resource/mcp", RouteAccess::Anyone, || web::to(metadata::document)),
    get("/.well-known/quartermaster-audit-keys.json", RouteAccess::Anyone, || web::to(metadata::audit_keys)),
    post("/mcp", READ, || web::to(mcp::post)),
    get("/mcp", READ, || web::to(mcp::get)),
    delete("/mcp", RouteAccess::Caller, || web::to(mcp::delete)),
    any("/mcp", RouteAccess::Caller, || web::to(mcp::other_method)),
    post("/mcp/x/{selection}", READ, || web::to(mcp::post)),
    get("/mcp/x/{selection}", READ, || web::to(mcp::get)),
    delete("/mcp/x/{selection}", RouteAccess::Caller, || web::to(mcp::delete)),
    any("/mcp/x/{selection}", RouteAccess::Caller, || web::to(mcp::other_method)),
    post("/v1/sessions", READ, || web::to(sessions::open)),
    get("/v1/sessions", SESSIONS, || web::to(sessions::list)),
    get("/v1/sessions/{session}", READ, || web::to(sessions::show)),
    delete("/v1/sessions/{session}", RouteAccess::Caller, || web::to(sessions::close)),
    get("/v1/sessions/{session}/tools", READ, || web::to(sessions::tools)),
    post("/v1/sessions/{session}/calls", READ, || web::to(sessions::call)),
    get("/v1/runs", RUNS, || web::to(runs::list)),
    get("/v1/runs/{run}", RUNS, || web::to(runs::show)),
    get("/v1/runs/{run}/arguments", DECIDER, || web::to(runs::arguments)),
    post("/v1/runs/{run}/approve", DECIDER, || web::to(runs::approve)),
    post("/v1/runs/{run}/reject", DECIDER, || web::to(runs::reject)),
    post("/v1/runs/{run}/cancel", RouteAccess::Caller, || web::to(runs::cancel)),
    post("/v1/runs/{run}/resolve", DECIDER, || web::to(runs::resolve)),
    post("/v1/runs/{run}/clear", DECIDER, || web::to(runs::clear)),
    get("/v1/memory/documents", ADMIN, || web::to(memory::list)),
    get("/v1/memory/documents/{path:.*}", ADMIN, || web::to(memory::show)),
    put("/v1/memory/documents/{path:.*}", ADMIN, || web::to(memory::put)),
    delete("/v1/memory/documents/{path:.*}", ADMIN, || web::to(memory::remove)),
    get("/v1/memory/history/{path:.*}", ADMIN, || web::to(memory::history)),
    get("/v1/tenant/config", ADMIN, || web::to(tenant::show)),
    put("/v1/tenant/config", ADMIN, || web::to(tenant::put)),
    delete("/v1/tenant/config", ADMIN, || web::to(tenant::remove)),
    post("/v1/tenant/config/check", ADMIN, || web::to(tenant::check)),
    get("/v1/tenant/config/history", ADMIN, || web::to(tenant::history)),
    get("/v1/tenant/config/history/{version}", ADMIN, || web::to(tenant::version)),
    post("/v1/tenant/config/rollback", ADMIN, || web::to(tenant::rollback)),
    get("/v1/tenant/secrets", ADMIN, || web::to(secrets::list)),
    put("/v1/tenant/secrets/{secret}", ADMIN, || web::to(secrets::put)),
    delete("/v1/tenant/secrets/{secret}", ADMIN, || web::to(secrets::remove)),
    get("/v1/tenant/servers", ADMIN, || web::to(servers::list)),
    get("/v1/tenant/servers/{server}", ADMIN, || web::to(servers::show)),
    post("/v1/tenant/servers/{server}/accept", ADMIN, || web::to(servers::accept)),
    post("/v1/tenant/servers/{server}/refresh", ADMIN, || web::to(servers::refresh)),
    get("/v1/schemas/tenant.json", RouteAccess::Caller, || web::to(schemas::tenant)),
    get("/v1/openapi.json", RouteAccess::Caller, || web::to(schemas::openapi)),
    get("/v1/audit", AUDIT, || web::to(audit::list)),
    post("/v1/audit/verify", AUDIT, || web::to(audit::verify)),
    get("/v1/audit/checkpoints", AUDIT, || web::to(audit::checkpoints::list)),
    get("/v1/usage", AUDIT, || web::to(usage::show)),
    get("/v1/switches", SWITCHES, || web::to(switches::list)),
    post("/v1/switches", SWITCHES, || web::to(switches::set)),
    delete("/v1/switches/{switch}", SWITCHES, || web::to(switches::lift)),
    post("/v1/runner/claim", RouteAccess::Runner, || web::to(runner::claim)),
    post("/v1/runner/leave", RouteAccess::Runner, || web::to(runner::leave)),
    post("/v1/runner/jobs/{job}/start", RouteAccess::Runner, || web::to(runner::start)),
    post("/v1/runner/jobs/{job}/events", RouteAccess::Runner, || web::to(runner::events)),
    post("/v1/runner/jobs/{job}/end", RouteAccess::Runner, || web::to(runner::end)),
    get("/v1/catalog", CATALOG, || web::to(catalog::list)),
    get("/runs/{run}", RUNS, || web::to(runs::show)),
    post("/runs/{run}/approve", DECIDER, || web::to(runs::approve)),
    post("/runs/{run}/reject", DECIDER, || web::to(runs::reject)),
];

type Handler = fn() -> actix_web::Route;

const fn get(path: &'static str, access: RouteAccess, handler: Handler) -> ApiRoute {
    ApiRoute { method: Some(Method::GET), path, access, handler }
}

const fn post(path: &'static str, access: RouteAccess, handler: Handler) -> ApiRoute {
    ApiRoute { method: Some(Method::POST), path, access, handler }
}

const fn put(path: &'static str, access: RouteAccess, handler: Handler) -> ApiRoute {
    ApiRoute { method: Some(Method::PUT), path, access, handler }
}

const fn delete(path: &'static str, access: RouteAccess, handler: Handler) -> ApiRoute {
    ApiRoute { method: Some(Method::DELETE), path, access, handler }
}

const fn any(path: &'static str, access: RouteAccess, handler: Handler) -> ApiRoute {
    ApiRoute { method: None, path, access, handler }
}

/// Configures the server with every route, and with an answer for every address that is none.
pub fn all(config: &mut ServiceConfig) {
    for ApiRoute { method, path, handler, .. } in ROUTES {
        let route = handler();
        config.route(path, method.iter().cloned().fold(route, actix_web::Route::method));
    }
    config.default_service(web::to(sessions::nothing_here));
}
