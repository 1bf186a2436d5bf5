//! The listener without tokens keeps the LanguageTool contract, line by line of its checklist, and gives nobody more than
//! reading.

use crate::here::{World, in_process};
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpListener};
use testkit::{Answer, Plan, Request, until};

/// A service with that listener, for the tenant acme, which may write.
struct Agentless {
    world: World,
    open: SocketAddr,
}

impl Agentless {
    async fn start() -> Agentless {
        // Free a moment ago; the service binds it again.
        let open = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let sandbox = "clusters: [{ name: play, sandbox: true, default_namespace: shop }]\n\
            policy: { require_approval: ['k8s_get:configmaps'] }";
        let plan = Plan::embedded().tenant("acme", sandbox).setting("QM_TOKENLESS__LISTEN", &open.to_string());
        let world = plan.setting("QM_TOKENLESS__TENANT", "acme").start(in_process()).await;
        Agentless { world, open }
    }

    async fn send(&self, request: Request) -> Answer {
        request.send(self.open).await
    }

    /// A message as the contract shows it: a content type, a body, and nothing else.
    async fn message(&self, message: &Value) -> Answer {
        let request = Request::new("POST", "/mcp").header("Content-Type", "application/json");
        self.send(request.body(message.to_string())).await
    }

    async fn rpc(&self, method: &str, params: Value) -> Value {
        let answer = self.message(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let body = answer.json();
        assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), &json!(1)));
        body
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.rpc("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// A call that may be refused before there is a result; never by a fault.
    async fn attempt(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer =
            self.message(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).await;
        assert!(answer.status < 500, "{tool}: {}", answer.text());
        answer.json()
    }

    async fn tools(&self) -> Vec<Value> {
        self.rpc("tools/list", json!({})).await["result"]["tools"].as_array().unwrap().clone()
    }
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn checklist_1_it_implements_the_mcp_json_rpc_protocol_at_the_configured_port() {
    let service = Agentless::start().await;
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" } });
    let opened = service.rpc("initialize", hello).await;
    assert_eq!(opened["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(service.rpc("ping", json!({})).await["result"], json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn checklist_2_tools_list_has_every_available_tool_with_its_input_schema() {
    let service = Agentless::start().await;
    let tools = service.tools().await;
    for tool in &tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(tool["description"].as_str().is_some_and(|text| !text.is_empty()), "{tool}");
    }
    // Complete: every read tool of every toolset of the tenant is there without anything being loaded.
    let listed = names(&tools);
    let catalog = &service.world.part(0).tenants.all();
    let (_, snapshot) = catalog.iter().find(|(tenant, _)| tenant.as_str() == "acme").unwrap();
    let readable = snapshot.catalog.sheets().filter(|sheet| sheet.list == domain::Level::Read);
    let readable: Vec<String> = readable.map(|sheet| sheet.name.to_owned()).collect();
    assert!(readable.iter().any(|name| name.starts_with("k8s_")) && readable.iter().any(|n| n.starts_with("memory_")));
    for name in &readable {
        assert!(listed.contains(&name.as_str()), "{name} is not in {listed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn checklist_3_tools_call_answers_with_the_result_of_the_named_tool() {
    let service = Agentless::start().await;
    let answer = service.call("k8s_get", json!({ "kind": "deployments" })).await;
    let result = &answer["result"];
    assert_ne!(result["isError"], true, "{answer}");
    assert_eq!(result["content"][0]["type"], "text");
    assert!(result["content"][0]["text"].as_str().unwrap().contains("checkout"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn checklist_4_get_health_answers_200_and_status_ok_when_ready() {
    let service = Agentless::start().await;
    // A probe of the cluster names the pod's address as host.
    let answer = service.send(Request::new("GET", "/health").header("Host", "10.1.2.3:8080")).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, r#"{"status":"ok"}"#));
}

#[tokio::test(flavor = "multi_thread")]
async fn checklist_5_the_endpoint_is_on_the_port_that_the_resource_names() {
    let service = Agentless::start().await;
    assert_ne!(service.world.address(0).port(), service.open.port());
    assert!(!service.tools().await.is_empty());
    // Any other path, and any other method, is refused without a fault.
    assert_eq!(service.send(Request::new("GET", "/mcp")).await.status, 405);
    assert_eq!(service.send(Request::new("GET", "/")).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn checklist_6_errors_are_mcp_errors_and_never_http_5xx() {
    let service = Agentless::start().await;
    let send = |body: &str| {
        let request = Request::new("POST", "/mcp").header("Content-Type", "application/json");
        service.send(request.body(body.to_owned()))
    };
    for (body, code) in [
        ("{", -32700),
        (r#"{"jsonrpc":"2.0","id":2}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":2,"method":"no/such"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"no_such","arguments":{}}}"#, -32602),
    ] {
        let answer = send(body).await;
        assert!(answer.status < 500, "{body}: {}", answer.status);
        assert_eq!(answer.json()["error"]["code"], code, "{body}: {}", answer.text());
        assert!(answer.json()["error"]["message"].is_string());
    }
    // A tool that fails is a result that says so.
    let failed = service.call("k8s_get", json!({ "kind": "Deployment", "name": "nowhere" })).await;
    assert_eq!(failed["result"]["isError"], true, "{failed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_without_a_token_only_reads() {
    let service = Agentless::start().await;
    let tools = service.tools().await;
    let listed = names(&tools);
    for tool in ["k8s_scale", "k8s_rollout", "memory_remember"] {
        assert!(!listed.contains(&tool), "{tool} is listed");
    }
    let load = json!({ "toolset": "k8s", "include_write_tools": true });
    let refused = service.attempt("load_toolset", load).await;
    assert!(refused.to_string().contains("insufficient_scope"), "{refused}");
    let scale = json!({ "kind": "Deployment", "name": "catalog", "replicas": 5 });
    for refused in [
        service.attempt("k8s_scale", scale.clone()).await,
        service.attempt("call_tool", json!({ "tool": "k8s_scale", "arguments": scale })).await,
    ] {
        let text = refused.to_string();
        assert!(
            text.contains("write_not_loaded") || text.contains("insufficient_scope") || text.contains("not_loaded"),
            "{text}"
        );
    }
    // What the operator serves to people and programs with tokens is not here, and neither is a token of any use.
    let approver = service.world.tenant("acme").approver();
    for (method, path) in [("GET", "/v1/runs"), ("POST", "/v1/sessions"), ("GET", "/v1/audit"), ("GET", "/readyz")] {
        let request = approver.request(method, path);
        assert_eq!(service.send(request).await.status, 404, "{method} {path}");
    }
    assert_eq!(
        Request::new("GET", "/v1/runs").send(service.world.address(0)).await.status,
        401,
        "the other one wants a token"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_a_rule_gates_waits_for_a_person_at_the_other_listener() {
    let service = Agentless::start().await;
    let asked = service.call("k8s_get", json!({ "kind": "configmaps" })).await;
    let run = &asked["result"]["structuredContent"]["run"];
    assert_eq!(run["state"], "pending_approval", "{asked}");
    let path = format!("/runs/{}/approve", run["id"].as_str().unwrap());
    let approve = Request::new("POST", &path).header("Content-Type", "application/json").body("{}");
    assert_eq!(service.send(approve).await.status, 404);
    let approver = service.world.tenant("acme").approver().rest();
    let seen = approver.get("/v1/runs").await.json();
    assert_eq!(seen["runs"][0]["requested_by"], "tokenless", "{seen}");
    let decided = approver.post(&format!("/v1{path}"), &json!({})).await;
    assert_eq!(decided.status, 200, "{}", decided.text());
    let id = run["id"].clone();
    until("the run to be carried out", async || {
        let outcome = service.call("await_run", json!({ "run_id": id })).await;
        (outcome["result"]["structuredContent"]["run"]["state"] == "succeeded").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_page_does_not_reach_it_through_a_browser_nearby() {
    let service = Agentless::start().await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let request = || Request::new("POST", "/mcp").header("Content-Type", "application/json").body(list.clone());
    let rebound = service.send(request().header("Host", "evil.example")).await;
    assert_eq!(rebound.status, 403, "{}", rebound.text());
    let foreign = service.send(request().header("Origin", "https://evil.example")).await;
    assert_eq!(foreign.status, 403, "{}", foreign.text());
    let form = Request::new("POST", "/mcp").header("Content-Type", "text/plain").body(list.clone());
    assert_eq!(service.send(form).await.status, 415);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_called_without_a_token_is_in_the_audit_log() {
    let service = Agentless::start().await;
    service.call("k8s_get", json!({ "kind": "deployments" })).await;
    let auditor = service.world.tenant("acme").agent().scoped("audit:read").rest();
    until("the entry", async || {
        let page = auditor.get("/v1/audit?principal=tokenless&tool=k8s_get").await.json();
        page["entries"].as_array().is_some_and(|entries| !entries.is_empty()).then_some(())
    })
    .await;
}
