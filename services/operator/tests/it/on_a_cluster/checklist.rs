//! The checklist of the LanguageTool contract, line by line, through the endpoint that the operator hands out: for our own
//! gateway by its listener without tokens, and for a FastMCP server.
//!
//! No container runs here: the test starts the processes in place of a kubelet, and the name of a Service leads to this
//! machine. Deployment, Service, readiness and status are the cluster's own.

use crate::on_a_cluster::gateways::program;
use crate::on_a_cluster::yard::{Yard, using};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use testkit::{Plan, Process, Request};

/// A tool that runs: how it is called, where it listens, and what is asked of it.
struct RunningTool {
    name: &'static str,
    port: u16,
    /// A call that succeeds, and a part of its result.
    good: (Value, &'static str),
    /// A call that the tool itself fails.
    failing: Value,
    /// What a server gave that wants one.
    session: Option<String>,
}

impl RunningTool {
    async fn send(&self, request: Request) -> testkit::Answer {
        request.send(SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))).await
    }

    /// A message as the contract shows it. A server may want to hear which answers are taken.
    async fn message(&self, message: &str) -> (u16, Value) {
        let request = Request::new("POST", "/mcp").header("Content-Type", "application/json");
        let mut request = request.header("Accept", "application/json, text/event-stream");
        if let Some(session) = &self.session {
            request = request.header("Mcp-Session-Id", session.clone());
        }
        let answer = self.send(request.body(message.to_owned())).await;
        let text = answer.text();
        let line = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&text);
        (answer.status, serde_json::from_str(line).unwrap_or(Value::Null))
    }

    /// Opens a session, as a client of the protocol does.
    async fn open(&mut self) {
        let client = json!({ "name": "a", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let request = Request::new("POST", "/mcp").header("Content-Type", "application/json");
        let request = request.header("Accept", "application/json, text/event-stream");
        let answer = self.send(request.body(hello.to_string())).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        self.session = answer.header("mcp-session-id").map(str::to_owned);
        self.message(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string()).await;
    }

    async fn rpc(&self, method: &str, params: Value) -> (u16, Value) {
        self.message(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()).await
    }
}

async fn hold_to_the_contract(yard: &Yard, mut tool: RunningTool) {
    tool.open().await;
    let RunningTool { name, port, good, failing, .. } = &tool;
    yard.tool(name, json!({ "image": "registry.example/tool:1", "port": port })).await;
    yard.agent(&format!("{name}-user"), using(&[name])).await;

    // An MCP-compliant HTTP endpoint on spec.port, behind a Service that the operator made.
    let service = yard.see("Service", name, "its port", |one| one["spec"]["ports"][0]["port"] == *port).await;
    assert_eq!(service["spec"]["type"], "ClusterIP");
    let endpoint = format!("http://{name}.{}.svc.cluster.local:{port}", yard.namespace);
    let config = yard.see("ConfigMap", &format!("{name}-user-tools"), "its tools", |_| true).await;
    assert!(config["data"]["config.yaml"].as_str().unwrap().contains(&format!("endpoint: {endpoint}\n")));

    // The protocol at the configured port.
    let (status, pong) = tool.rpc("ping", json!({})).await;
    assert_eq!(
        (status, &pong["jsonrpc"], &pong["id"], &pong["result"]),
        (200, &json!("2.0"), &json!(1), &json!({})),
        "{name}"
    );

    // tools/list, complete and with schemas, and the same in the status of the resource.
    let (status, listed) = tool.rpc("tools/list", json!({})).await;
    assert_eq!(status, 200, "{listed}");
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert!(!tools.is_empty() && tools.iter().all(|one| one["inputSchema"]["type"] == "object"), "{listed}");
    let seen = yard.see_condition("LanguageTool", name, "SchemaSynced", ("True", "Listed")).await;
    // The operator asks without a session, and may be shown more tools for that.
    let available = seen["status"]["availableTools"].as_array().unwrap();
    assert!(tools.iter().all(|one| available.contains(&one["name"])), "{tools:?} {available:?}");
    assert_eq!(seen["status"]["endpoint"], endpoint);

    // tools/call with the result of the named tool.
    let (status, called) = tool.rpc("tools/call", good.0.clone()).await;
    assert_eq!(status, 200, "{called}");
    assert_ne!(called["result"]["isError"], true, "{called}");
    assert_eq!(called["result"]["content"][0]["type"], "text", "{called}");
    assert!(called["result"]["content"][0]["text"].as_str().unwrap().contains(good.1), "{called}");

    // GET /health.
    let health = tool.send(Request::new("GET", "/health")).await;
    assert_eq!((health.status, &health.json()["status"]), (200, &json!("ok")), "{name}");
    let deployment = yard.find("Deployment", name).await.unwrap();
    let probe = &deployment["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["httpGet"];
    assert_eq!((&probe["path"], &probe["port"]), (&json!("/health"), &json!(port)));

    // Errors are MCP errors, and no HTTP 5xx.
    for (message, code) in [("{", -32700), (r#"{"jsonrpc":"2.0","id":2,"method":"no/such","params":{}}"#, -32601)] {
        let (status, answer) = tool.message(message).await;
        assert!(status < 500, "{name} {message}: {status}");
        // FastMCP says -32602 of a method that it does not know.
        let allowed = [code, -32602];
        assert!(allowed.iter().any(|code| answer["error"]["code"] == *code), "{name} {message}: {status} {answer}");
    }
    let (status, failed) = tool.rpc("tools/call", failing.clone()).await;
    assert_eq!((status, &failed["result"]["isError"]), (200, &json!(true)), "{failed}");
    let (status, unknown) = tool.rpc("tools/call", json!({ "name": "no_such_tool", "arguments": {} })).await;
    assert!(
        status < 500 && (unknown["error"].is_object() || unknown["result"]["isError"] == true),
        "{status} {unknown}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn our_own_gateway_keeps_the_contract_of_a_language_tool() {
    let Some(yard) = Yard::open().await else { return };
    let operator = yard.operator().await;
    // Free a moment ago; the service binds it again.
    let open = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let name = format!("gateway.{}.svc.cluster.local:{}", yard.namespace, open.port());
    let plan = Plan::embedded().tenant("acme", "clusters: [{ name: play, sandbox: true, default_namespace: shop }]");
    let plan = plan.setting("QM_TOKENLESS__LISTEN", &open.to_string()).setting("QM_TOKENLESS__TENANT", "acme");
    let plan = plan.setting("QM_TOKENLESS__HOSTS", &format!("[\"{name}\"]"));
    #[expect(clippy::disallowed_methods, reason = "a test's own process, never part of the service")]
    let start = Process::started_by(|setup| {
        let mut command = std::process::Command::new(program());
        command.args(["serve", "--config"]).arg(&setup.config);
        command
    });
    let world = plan.start(start).await;
    let tool = RunningTool {
        name: "gateway",
        port: open.port(),
        good: (json!({ "name": "k8s_get", "arguments": { "kind": "deployments" } }), "checkout"),
        failing: json!({ "name": "k8s_get", "arguments": { "kind": "Deployment", "name": "nowhere" } }),
        session: None,
    };
    hold_to_the_contract(&yard, tool).await;
    drop(world);
    assert!(operator.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fastmcp_server_keeps_the_contract_of_a_language_tool() {
    let Some(yard) = Yard::open().await else { return };
    let folder = std::env::var_os("QUARTERMASTER_TEST_UPSTREAMS").filter(|folder| !folder.is_empty());
    let Some(folder) = folder else {
        eprintln!("SKIPPED: QUARTERMASTER_TEST_UPSTREAMS names no servers; see `deploy/testbed upstreams`");
        return;
    };
    let operator = yard.operator().await;
    let url = std::fs::read_to_string(Path::new(&folder).join("url/shop")).unwrap();
    let port = url.trim().trim_end_matches("/mcp").rsplit_once(':').unwrap().1.parse().unwrap();
    let tool = RunningTool {
        name: "shop",
        port,
        good: (json!({ "name": "count", "arguments": { "item": "apple" } }), "12"),
        failing: json!({ "name": "broken", "arguments": {} }),
        session: None,
    };
    hold_to_the_contract(&yard, tool).await;
    assert!(operator.stop().await);
}
