//! Every route of the router's own table, and what it says to somebody without a token or without its scope.

use crate::here::{World, embedded};
use domain::TokenScope;
use gateway::routes::{ApiRoute, ROUTES, RouteAccess};
use serde_json::json;
use testkit::{Answer, Request};

/// Methods, addresses and queries that mean nothing.
const NO_ROUTES: [(&str, &str); 13] = [
    ("PUT", "/mcp"),
    ("OPTIONS", "/mcp"),
    ("POST", "/mcp/"),
    ("PATCH", "/mcp/x/memory"),
    ("PUT", "/v1/sessions/ses_0000000000000000000000"),
    ("GET", "/v1/sessions/ses_0000000000000000000000/tools?format=x&y=z"),
    ("GET", "/v1/sessions/ses_0000000000000000000000/calls"),
    ("POST", "/health"),
    ("GET", "/"),
    ("GET", "/metrics"),
    ("GET", "/console"),
    ("GET", "/health/../v1/sessions"),
    ("GET", "//livez"),
];

/// A value for each parameter an address can have.
const PARAMETERS: [(&str, &str); 9] = [
    ("{job}", "job_0000000000000000000000"),
    ("{selection}", "memory"),
    ("{session}", "ses_0000000000000000000000"),
    ("{run}", "run_0000000000000000000000"),
    ("{path:.*}", "tenant/runbooks/a"),
    ("{version}", "1"),
    ("{secret}", "a"),
    ("{server}", "wiki"),
    ("{switch}", "sw_0000000000000000"),
];

fn method(route: &ApiRoute) -> &str {
    route.method.as_ref().map_or("PATCH", |method| method.as_str())
}

fn address(route: &ApiRoute) -> String {
    let path = PARAMETERS.iter().fold(route.path.to_owned(), |path, (parameter, value)| path.replace(parameter, value));
    assert!(!path.contains('{'), "{path} has a parameter that no value is known for");
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_needs_a_caller() {
    let world = embedded().await;
    for route in ROUTES {
        let (method, path) = (method(route), address(route));
        let answer = Request::new(method, &path).send(world.address(0)).await;
        let wanted = match route.access {
            RouteAccess::Anyone => 200,
            RouteAccess::Caller
            | RouteAccess::OneOf(_)
            | RouteAccess::Person(_)
            | RouteAccess::OnePerson(_)
            | RouteAccess::Runner => 401,
        };
        assert_eq!(answer.status, wanted, "{method} {path}");
    }
    for (method, path) in NO_ROUTES {
        let answer = Request::new(method, path).send(world.address(0)).await;
        assert_eq!(answer.status, 401, "{method} {path}");
    }
}

#[test]
fn only_health_and_the_resource_metadata_answer_anyone() {
    let open: Vec<&str> = ROUTES.iter().filter(|r| r.access == RouteAccess::Anyone).map(|r| r.path).collect();
    insta::assert_snapshot!(open.join("\n"), @r"
    /health
    /livez
    /readyz
    /.well-known/oauth-protected-resource
    /.well-known/oauth-protected-resource/mcp
    /.well-known/quartermaster-audit-keys.json
    ");
}

/// Asks as somebody with these scopes, with everything a route may want to see before it looks at them.
async fn ask(world: &World, route: &ApiRoute, scopes: &[TokenScope]) -> Answer {
    let scope = scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(" ");
    let actor = world.tenant("acme").agent().claiming(|claims| {
        claims.scope = scope;
        claims.labels = vec!["shop-hosts".to_owned()];
    });
    let request = actor
        .request(method(route), &address(route))
        .header("Content-Type", "application/json")
        .body(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string())
        .header("Accept", "application/json, text/event-stream")
        .header("Mcp-Session-Id", "ses_0000000000000000000000");
    actor.send(&request).await
}

/// All scopes but these, and but a runner's: a token that has it is refused before anybody looks at the others.
fn others_than(scopes: &[TokenScope]) -> Vec<TokenScope> {
    let other = |scope: &TokenScope| *scope != TokenScope::RunnerWork && !scopes.contains(scope);
    TokenScope::ALL.into_iter().filter(other).collect()
}

fn lacks_scope(answer: &Answer) -> bool {
    answer.status == 403 && answer.text().contains(r#""code":"insufficient_scope""#)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_wants_the_scope_its_table_names() {
    let world = embedded().await;
    for route in ROUTES {
        let shown = format!("{} {}", method(route), route.path);
        let (enough, too_little): (Vec<Vec<TokenScope>>, Vec<Vec<TokenScope>>) = match route.access {
            RouteAccess::Anyone => (TokenScope::ALL.map(|scope| vec![scope]).to_vec(), Vec::new()),
            RouteAccess::Caller => (others_than(&[]).into_iter().map(|scope| vec![scope]).collect(), Vec::new()),
            RouteAccess::OneOf(scopes) => {
                let names = |scope: &TokenScope| match scope {
                    TokenScope::ToolsWrite => scopes.contains(&TokenScope::ToolsRead) || scopes.contains(scope),
                    TokenScope::ToolsRead
                    | TokenScope::RunsDecide
                    | TokenScope::TenantAdmin
                    | TokenScope::AuditRead
                    | TokenScope::OperatorSwitch
                    | TokenScope::RunnerWork => scopes.contains(scope),
                };
                let (named, others): (Vec<TokenScope>, Vec<TokenScope>) = others_than(&[]).into_iter().partition(names);
                (named.into_iter().map(|scope| vec![scope]).collect(), vec![others])
            }
            RouteAccess::OnePerson(scopes) => {
                let others = others_than(scopes);
                let with_tools = scopes.iter().map(|scope| vec![*scope, TokenScope::ToolsRead]);
                (scopes.iter().map(|scope| vec![*scope]).collect(), with_tools.chain([others]).collect())
            }
            RouteAccess::Person(scope) => {
                (vec![vec![scope]], vec![others_than(&[scope]), vec![scope, TokenScope::ToolsRead]])
            }
            RouteAccess::Runner => {
                let with_another = others_than(&[]).into_iter().map(|scope| vec![TokenScope::RunnerWork, scope]);
                (vec![vec![TokenScope::RunnerWork]], with_another.chain([others_than(&[])]).collect())
            }
        };
        if !matches!(route.access, RouteAccess::Anyone | RouteAccess::Runner) {
            // Alone and beside every other scope: a runner's token opens nothing else.
            for scopes in [vec![TokenScope::RunnerWork], TokenScope::ALL.to_vec()] {
                let answer = ask(&world, route, &scopes).await;
                assert!(lacks_scope(&answer), "{shown} with {scopes:?}: {} {}", answer.status, answer.text());
            }
        }
        for scopes in enough {
            let answer = ask(&world, route, &scopes).await;
            assert!(!lacks_scope(&answer), "{shown} with {scopes:?}: {} {}", answer.status, answer.text());
        }
        for scopes in too_little {
            let answer = ask(&world, route, &scopes).await;
            assert!(lacks_scope(&answer), "{shown} with {scopes:?}: {} {}", answer.status, answer.text());
        }
    }
}
