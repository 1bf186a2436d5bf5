//! Every route there is, and what it says to somebody without a token.

use crate::here::embedded;
use testkit::Request;

/// Every method and address that means something, and some that mean nothing.
const ROUTES: [(&str, &str); 65] = [
    ("GET", "/health"),
    ("GET", "/livez"),
    ("GET", "/readyz"),
    ("GET", "/.well-known/oauth-protected-resource"),
    ("GET", "/.well-known/oauth-protected-resource/mcp"),
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("DELETE", "/mcp"),
    ("PUT", "/mcp"),
    ("OPTIONS", "/mcp"),
    ("POST", "/mcp/"),
    ("POST", "/mcp/x/memory"),
    ("GET", "/mcp/x/memory"),
    ("DELETE", "/mcp/x/memory"),
    ("PATCH", "/mcp/x/memory"),
    ("POST", "/v1/sessions"),
    ("GET", "/v1/sessions"),
    ("GET", "/v1/sessions/ses_0000000000000000000000"),
    ("DELETE", "/v1/sessions/ses_0000000000000000000000"),
    ("PUT", "/v1/sessions/ses_0000000000000000000000"),
    ("GET", "/v1/sessions/ses_0000000000000000000000/tools"),
    ("GET", "/v1/sessions/ses_0000000000000000000000/tools?format=x&y=z"),
    ("POST", "/v1/sessions/ses_0000000000000000000000/calls"),
    ("GET", "/v1/sessions/ses_0000000000000000000000/calls"),
    ("GET", "/v1/runs"),
    ("GET", "/v1/runs/run_0000000000000000000000"),
    ("POST", "/v1/runs/run_0000000000000000000000/approve"),
    ("POST", "/v1/runs/run_0000000000000000000000/reject"),
    ("POST", "/v1/runs/run_0000000000000000000000/cancel"),
    ("POST", "/v1/runs/run_0000000000000000000000/resolve"),
    ("POST", "/v1/runs/run_0000000000000000000000/clear"),
    ("GET", "/runs/run_0000000000000000000000"),
    ("POST", "/runs/run_0000000000000000000000/approve"),
    ("POST", "/runs/run_0000000000000000000000/reject"),
    ("GET", "/v1/memory/documents"),
    ("GET", "/v1/memory/documents/tenant/runbooks/a"),
    ("PUT", "/v1/memory/documents/tenant/runbooks/a"),
    ("DELETE", "/v1/memory/documents/tenant/runbooks/a"),
    ("GET", "/v1/memory/history/tenant/runbooks/a"),
    ("GET", "/v1/tenant/config"),
    ("PUT", "/v1/tenant/config"),
    ("DELETE", "/v1/tenant/config"),
    ("POST", "/v1/tenant/config/check"),
    ("GET", "/v1/tenant/config/history"),
    ("GET", "/v1/tenant/config/history/1"),
    ("POST", "/v1/tenant/config/rollback"),
    ("GET", "/v1/tenant/secrets"),
    ("PUT", "/v1/tenant/secrets/a"),
    ("DELETE", "/v1/tenant/secrets/a"),
    ("GET", "/v1/tenant/servers/a"),
    ("POST", "/v1/tenant/servers/a/accept"),
    ("POST", "/v1/tenant/servers/a/refresh"),
    ("POST", "/health"),
    ("GET", "/"),
    ("GET", "/metrics"),
    ("GET", "/console"),
    ("GET", "/v1/schemas/tenant.json"),
    ("GET", "/v1/audit"),
    ("GET", "/v1/catalog"),
    ("GET", "/v1/tenant/servers"),
    ("GET", "/v1/tenant/servers/wiki"),
    ("POST", "/v1/tenant/servers/wiki/accept"),
    ("POST", "/v1/tenant/servers/wiki/refresh"),
    ("GET", "/health/../v1/sessions"),
    ("GET", "//livez"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_route_needs_a_caller() {
    let world = embedded().await;
    let mut table = String::new();
    for (method, path) in ROUTES {
        let answer = Request::new(method, path).send(world.address(0)).await;
        table.push_str(&format!("{} {method} {path}\n", answer.status));
    }
    insta::assert_snapshot!(table, @r"
    200 GET /health
    200 GET /livez
    200 GET /readyz
    200 GET /.well-known/oauth-protected-resource
    200 GET /.well-known/oauth-protected-resource/mcp
    401 POST /mcp
    401 GET /mcp
    401 DELETE /mcp
    401 PUT /mcp
    401 OPTIONS /mcp
    401 POST /mcp/
    401 POST /mcp/x/memory
    401 GET /mcp/x/memory
    401 DELETE /mcp/x/memory
    401 PATCH /mcp/x/memory
    401 POST /v1/sessions
    401 GET /v1/sessions
    401 GET /v1/sessions/ses_0000000000000000000000
    401 DELETE /v1/sessions/ses_0000000000000000000000
    401 PUT /v1/sessions/ses_0000000000000000000000
    401 GET /v1/sessions/ses_0000000000000000000000/tools
    401 GET /v1/sessions/ses_0000000000000000000000/tools?format=x&y=z
    401 POST /v1/sessions/ses_0000000000000000000000/calls
    401 GET /v1/sessions/ses_0000000000000000000000/calls
    401 GET /v1/runs
    401 GET /v1/runs/run_0000000000000000000000
    401 POST /v1/runs/run_0000000000000000000000/approve
    401 POST /v1/runs/run_0000000000000000000000/reject
    401 POST /v1/runs/run_0000000000000000000000/cancel
    401 POST /v1/runs/run_0000000000000000000000/resolve
    401 POST /v1/runs/run_0000000000000000000000/clear
    401 GET /runs/run_0000000000000000000000
    401 POST /runs/run_0000000000000000000000/approve
    401 POST /runs/run_0000000000000000000000/reject
    401 GET /v1/memory/documents
    401 GET /v1/memory/documents/tenant/runbooks/a
    401 PUT /v1/memory/documents/tenant/runbooks/a
    401 DELETE /v1/memory/documents/tenant/runbooks/a
    401 GET /v1/memory/history/tenant/runbooks/a
    401 GET /v1/tenant/config
    401 PUT /v1/tenant/config
    401 DELETE /v1/tenant/config
    401 POST /v1/tenant/config/check
    401 GET /v1/tenant/config/history
    401 GET /v1/tenant/config/history/1
    401 POST /v1/tenant/config/rollback
    401 GET /v1/tenant/secrets
    401 PUT /v1/tenant/secrets/a
    401 DELETE /v1/tenant/secrets/a
    401 GET /v1/tenant/servers/a
    401 POST /v1/tenant/servers/a/accept
    401 POST /v1/tenant/servers/a/refresh
    401 POST /health
    401 GET /
    401 GET /metrics
    401 GET /console
    401 GET /v1/schemas/tenant.json
    401 GET /v1/audit
    401 GET /v1/catalog
    401 GET /v1/tenant/servers
    401 GET /v1/tenant/servers/wiki
    401 POST /v1/tenant/servers/wiki/accept
    401 POST /v1/tenant/servers/wiki/refresh
    401 GET /health/../v1/sessions
    401 GET //livez
    ");
}
