//! Servers that want tokens of an authorization server, through the whole service: a token is fetched and used, an approver
//! sees for whom, and neither it nor the client's secret is found anywhere afterwards.

use crate::here::{in_process, processes};
use crate::runs_desk::{approve, ended, pending, show};
use crate::upstream_canary::{audit_log, spellings};
use crate::upstream_yard::{Shelf, admin, draw, drawn, ours, put_secret, settled, standing};
use serde_json::json;
use testkit::upstream::token_server::TOKEN;
use testkit::upstream::{Era, Harm, McpServer, SseServer, TokenServer};
use testkit::{Collector, Plan, until};

const CLIENT: &str = "client-of-acme";
const SECRET: &str = "canary-of-a-client-5Xw8RtQ2mN7";

fn entry(tokens: &TokenServer, more: &str) -> String {
    format!(
        "deadline: 5s\ntrust_annotations: true\nparams: {{ client: {{}}, key: {{ secret: true }} }}\n\
         auth:\n  client_credentials:\n    token_url: \"{}\"\n    client_id: \"{{{{ params.client }}}}\"\n    \
         client_secret: \"{{{{ params.key }}}}\"\n    scope: wiki.read\n{more}",
        tokens.url()
    )
}

fn file(names: &[&str]) -> String {
    let of = |name: &&str| {
        format!("- {{ use: {name}, params: {{ client: {CLIENT}, key: \"{{{{ params.client_secret }}}}\" }} }}\n")
    };
    let servers: String = names.iter().map(of).collect();
    format!(
        "limits: {{ calls_per_minute: 1000000 }}\nparams: {{ client_secret: {{ secret: true }} }}\nservers:\n{servers}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approver_sees_for_whom_a_token_is_fetched_and_a_secret_that_is_set_is_used() {
    let (server, tokens) = (McpServer::start(Era::Both).await, TokenServer::start(CLIENT, SECRET).await);
    let shelf = Shelf::new().of("wiki", &server, &entry(&tokens, ""));
    let world = shelf.under(Plan::embedded()).tenant("acme", &file(&["wiki"])).start(in_process()).await;
    let acme = world.tenant("acme");
    let paul = admin(&acme.agent());
    let told = settled(&paul, "wiki").await;
    assert_eq!(told["trouble"]["code"], "unknown_credential", "{told:#}");
    assert_eq!((tokens.requests().len(), server.connections()), (0, 0), "nothing was asked without a secret");

    assert!((200..300).contains(&put_secret(&paul, "client_secret", SECRET).await.status));
    let client = drawn(&acme.agent(), "wiki:write").await;
    let run = pending(&client.call(&ours("wiki", "keep"), json!({ "text": "hi" })).await);
    let shown = show(&acme.approver(), &run).await.to_string();
    assert!(shown.contains(&format!("for client {CLIENT} at {}, scope wiki.read", tokens.url())), "{shown}");
    approve(&acme.approver(), &run).await;
    assert_eq!(ended(&acme.approver(), &run).await["state"], "succeeded");
    assert_eq!((tokens.given(), server.calls("keep").len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_refused_is_named_and_its_server_hears_nothing() {
    let (server, tokens) = (McpServer::start(Era::Both).await, TokenServer::start(CLIENT, "another secret").await);
    let shelf = Shelf::new().of("wiki", &server, &entry(&tokens, ""));
    let plan = shelf.under(Plan::embedded()).tenant("acme", &file(&["wiki"])).secret("acme", "client_secret", SECRET);
    let world = plan.start(in_process()).await;
    let told = settled(&admin(&world.tenant("acme").agent()), "wiki").await;
    assert_eq!(told["trouble"]["code"], "credentials_refused", "{told:#}");
    assert!(told["trouble"]["message"].as_str().unwrap().contains("invalid_client"), "{told:#}");
    assert!(!told.to_string().contains("words of the authorization server"), "{told:#}");
    assert_eq!(server.connections(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_and_clients_secrets_are_found_nowhere() {
    let (server, older) = (McpServer::start(Era::Both).await, SseServer::start().await);
    let (tokens, collector) = (TokenServer::start(CLIENT, SECRET).await, Collector::start().await);
    let shelf = Shelf::new().of("wiki", &server, &entry(&tokens, "")).at(
        "older",
        &older.url(),
        &entry(&tokens, "transport: sse"),
    );
    let plan = (shelf.under(Plan::file()))
        .setting("QM_TELEMETRY__OTLP_ENDPOINT", &collector.url())
        .setting("QM_TELEMETRY__SAMPLE_RATIO", "1.0")
        .setting("QM_TELEMETRY__LOG", "debug")
        .tenant("acme", &file(&["wiki", "older"]))
        .secret("acme", "client_secret", SECRET);
    let mut world = plan.start(processes()).await;
    let acme = world.tenant("acme");
    let (client, ana, paul) = (acme.agent().legacy().await, acme.approver(), admin(&acme.agent()));
    let mut told = String::new();
    for name in ["wiki", "older"] {
        draw(&client, &format!("{name}:write")).await;
        told.push_str(&client.call(&ours(name, "whoami"), json!({})).await.answer.text());
    }
    for harm in [Harm::EchoInError, Harm::EchoInResult, Harm::EchoInStatus] {
        server.plant("tools/call", harm);
        told.push_str(&client.call(&ours("wiki", "whoami"), json!({})).await.answer.text());
        let run = pending(&client.call(&ours("wiki", "keep"), json!({ "text": "hi" })).await);
        approve(&ana, &run).await;
        told.push_str(&ended(&ana, &run).await.to_string());
        told.push_str(&client.call("await_run", json!({ "run_id": run, "wait_ms": 0 })).await.answer.text());
    }
    server.plant("tools/list", Harm::EchoInError);
    server.announce();
    told.push_str(&standing(&paul, "wiki").await.to_string());
    let sent = server.requests().iter().any(|seen| seen.text().contains(TOKEN));
    let sent_older = older.requests().iter().any(|seen| seen.text().contains(TOKEN));
    assert!(sent && sent_older && tokens.given() > 0, "tokens were really sent, or nothing is proven");

    let audit_log = audit_log(&world).await;
    let process = world.part(0).clone();
    let folder = world.settings_file().parent().unwrap().to_owned();
    world.stop(0).await;
    until("the spans", async || (!collector.taken().is_empty()).then_some(())).await;
    let stored = std::fs::read(folder.join("state.redb")).unwrap();
    let places: [(&str, &[u8]); 5] = [
        ("results and errors", told.as_bytes()),
        ("the log", &process.log().into_bytes()),
        ("spans", &collector.taken()),
        ("the audit log", audit_log.as_bytes()),
        ("the store", &stored),
    ];
    for (place, bytes) in places {
        assert!(bytes.len() > 1_000, "there is something to search in {place}");
        for canary in [SECRET, TOKEN] {
            let holds = |text: &String| bytes.windows(text.len()).any(|window| window == text.as_bytes());
            let found: Vec<String> = spellings(canary).into_iter().filter(holds).collect();
            assert_eq!(found, Vec::<String>::new(), "in {place}");
        }
    }
}
