//! Every address of the console, in one table. It is served beside the tools, or by a listener of its own.

use super::{
    assets, audit, catalog, config, explain, inbox, links, live, memory, operations, run, runs, secrets, servers,
    sessions, sign_in, usage,
};
use actix_web::Route;
use actix_web::http::Method;
use actix_web::web::{self, ServiceConfig};

/// Whom an address answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsoleAccess {
    /// Anybody.
    Anyone,
    /// Somebody who is signed in; what they may see is judged by what the screen calls.
    Person,
    /// Somebody who is signed in, by a form of a page of theirs.
    Form,
}

/// One address.
pub struct ConsoleRoute {
    /// The method.
    pub method: Method,
    /// The path.
    pub path: &'static str,
    /// Whom it answers.
    pub access: ConsoleAccess,
    handler: fn() -> Route,
}

/// All addresses. The first that fits a request answers it.
pub static ROUTES: &[ConsoleRoute] = &[
    get("/console/assets/{asset}", ConsoleAccess::Anyone, || web::to(assets::show)),
    get("/console/sign-in", ConsoleAccess::Anyone, || web::to(sign_in::show)),
    get("/console/sign-in/start", ConsoleAccess::Anyone, || web::to(sign_in::start)),
    get("/console/callback", ConsoleAccess::Anyone, || web::to(sign_in::callback)),
    get("/console/link/{secret}", ConsoleAccess::Anyone, || web::to(links::follow)),
    post("/console/sign-out", || web::to(sign_in::sign_out)),
    get("/console/live", ConsoleAccess::Person, || web::to(live::follow)),
    get("/console", ConsoleAccess::Person, || web::to(inbox::show)),
    get("/console/", ConsoleAccess::Person, || web::to(inbox::show)),
    get("/console/runs", ConsoleAccess::Person, || web::to(runs::all)),
    get("/console/mine", ConsoleAccess::Person, || web::to(runs::mine)),
    get("/console/runs/{run}", ConsoleAccess::Person, || web::to(run::show)),
    post("/console/runs/{run}/{action}", || web::to(run::act)),
    get("/console/audit", ConsoleAccess::Person, || web::to(audit::list)),
    get("/console/audit/export", ConsoleAccess::Person, || web::to(audit::export)),
    post("/console/audit/verify", || web::to(audit::verify)),
    get("/console/audit/{entry}", ConsoleAccess::Person, || web::to(audit::show)),
    get("/console/operations", ConsoleAccess::Person, || web::to(operations::show)),
    post("/console/operations/switches", || web::to(operations::set)),
    post("/console/operations/switches/{switch}/lift", || web::to(operations::lift)),
    get("/console/sessions", ConsoleAccess::Person, || web::to(sessions::list)),
    post("/console/sessions/{session}/end", || web::to(sessions::end)),
    get("/console/usage", ConsoleAccess::Person, || web::to(usage::show)),
    get("/console/catalog", ConsoleAccess::Person, || web::to(catalog::list)),
    get("/console/catalog/{tool}", ConsoleAccess::Person, || web::to(catalog::show)),
    // Configure.
    get("/console/config", ConsoleAccess::Person, || web::to(config::show)),
    post("/console/config/check", || web::to(config::check)),
    post("/console/config/save", || web::to(config::save)),
    post("/console/config/remove", || web::to(config::remove)),
    post("/console/config/rollback", || web::to(config::rollback)),
    get("/console/config/history", ConsoleAccess::Person, || web::to(config::history)),
    get("/console/config/history/{version}", ConsoleAccess::Person, || web::to(config::version)),
    get("/console/config/keys", ConsoleAccess::Person, || web::to(config::keys)),
    get("/console/servers", ConsoleAccess::Person, || web::to(servers::list)),
    get("/console/servers/{server}", ConsoleAccess::Person, || web::to(servers::show)),
    post("/console/servers/{server}/refresh", || web::to(servers::refresh)),
    post("/console/servers/{server}/accept", || web::to(servers::accept)),
    get("/console/secrets", ConsoleAccess::Person, || web::to(secrets::show)),
    post("/console/secrets/set", || web::to(secrets::set)),
    post("/console/secrets/remove", || web::to(secrets::remove)),
    get("/console/explain", ConsoleAccess::Person, || web::to(explain::show)),
    get("/console/replay", ConsoleAccess::Person, || web::to(explain::begin)),
    post("/console/replay", || web::to(explain::replay)),
    get("/console/memory", ConsoleAccess::Person, || web::to(memory::list)),
    post("/console/memory/forget", || web::to(memory::forget)),
    get("/console/memory/{document:.*}", ConsoleAccess::Person, || web::to(memory::show)),
    get("/console/{path:.*}", ConsoleAccess::Person, || web::to(runs::nothing_here)),
];

const fn get(path: &'static str, access: ConsoleAccess, handler: fn() -> Route) -> ConsoleRoute {
    ConsoleRoute { method: Method::GET, path, access, handler }
}

const fn post(path: &'static str, handler: fn() -> Route) -> ConsoleRoute {
    ConsoleRoute { method: Method::POST, path, access: ConsoleAccess::Form, handler }
}

/// Configures a server with every address of the console.
pub fn all(config: &mut ServiceConfig) {
    for route in ROUTES {
        config.route(route.path, (route.handler)().method(route.method.clone()));
    }
}
