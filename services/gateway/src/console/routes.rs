//! Every address of the console, in one table. It is served beside the tools, or by a listener of its own.

use super::{assets, inbox, links, live, run, runs, sign_in};
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
    post("/console/runs/{run}/approve", || web::to(run::approve)),
    post("/console/runs/{run}/reject", || web::to(run::reject)),
    post("/console/runs/{run}/resolve", || web::to(run::resolve)),
    post("/console/runs/{run}/cancel", || web::to(run::cancel)),
    post("/console/runs/{run}/clear", || web::to(run::clear)),
    post("/console/runs/{run}/arguments", || web::to(run::arguments)),
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
