//! Which requests are counted, and as what: REST has the rate and the concurrency of calls.

use crate::app::Gateway;
use actix_web::HttpRequest;
use actix_web::http::Method;
use domain::{Caller, Failure, TokenScope};
use executor::{SlotGuard, Snapshot};

/// What a request is counted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestKind {
    /// As nothing here: the executor counts calls, and MCP is counted message by message.
    Call,
    /// As a person's decision.
    Decision,
    /// As any other request.
    Plain,
}

/// Counts a request of a verified caller; holds its place until it is answered.
pub(crate) fn admit(
    gateway: &Gateway,
    request: &HttpRequest,
    caller: &Caller,
    snapshot: &Snapshot,
) -> Result<Option<SlotGuard>, Failure> {
    let decides = match kind(request.method(), request.path()) {
        RequestKind::Call => return Ok(None),
        RequestKind::Decision => caller.scopes.allow(TokenScope::RunsDecide),
        RequestKind::Plain => false,
    };
    gateway.executor.admit_request(snapshot, caller, decides).map(Some)
}

fn kind(method: &Method, path: &str) -> RequestKind {
    let posted = method == Method::POST;
    if path == "/mcp" || path.starts_with("/mcp/") {
        return RequestKind::Call;
    }
    if posted && path.starts_with("/v1/sessions/") && path.ends_with("/calls") {
        return RequestKind::Call;
    }
    if posted && ["/v1/runs/", "/runs/", "/console/runs/"].iter().any(|start| path.starts_with(start)) {
        return RequestKind::Decision;
    }
    RequestKind::Plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::ROUTES;

    #[test]
    fn every_route_is_counted_as_a_call_a_decision_or_a_request() {
        let named = |wanted: RequestKind| -> Vec<String> {
            let routes = ROUTES.iter().map(|route| (route.method.clone().unwrap_or(Method::PATCH), route.path));
            routes
                .filter(|(method, path)| kind(method, path) == wanted)
                .map(|(method, path)| format!("{method} {path}"))
                .collect()
        };
        let calls = named(RequestKind::Call);
        assert!(calls.iter().all(|route| route.contains(" /mcp") || route == "POST /v1/sessions/{session}/calls"));
        let decisions = named(RequestKind::Decision);
        assert!(decisions.iter().all(|route| route.starts_with("POST ") && route.contains("/runs/{run}/")));
        assert_eq!(decisions.len(), 7, "{decisions:?}");
        assert!(named(RequestKind::Plain).contains(&"GET /v1/audit".to_owned()));
    }
}
