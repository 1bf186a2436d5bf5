//! Tenants and their servers as resources: from `kubectl apply` to what agents see at every replica.

use crate::on_a_cluster::gateways::{Gateways, folder_of, sync, texts_in};
use crate::on_a_cluster::rights::all_used;
use crate::on_a_cluster::yard::{Yard, condition_of, object};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use operator::discover::DiscoverError;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use testkit::upstream::{Era, McpServer};

pub(crate) const FIELDS_OF_A_TENANT: [&str; 2] = ["config", "secretRefs"];
pub(crate) const FIELDS_OF_AN_ENTRY: [&str; 8] =
    ["url", "toolRef", "transport", "auth", "headers", "description", "access", "accept"];

/// What the acceptance wants.
const SOON: Duration = Duration::from_secs(2);

fn config(toolsets: &[&str]) -> Value {
    json!({ "config": { "mode": "write", "default_toolsets": toolsets, "clusters": [{ "name": "play", "sandbox": true }] } })
}

async fn secret(yard: &Yard, name: &str, value: &str) {
    let secret: Secret = object(json!({ "metadata": { "name": name }, "stringData": { "token": value } }));
    let params = PatchParams::apply("person").force();
    yard.api::<Secret>().patch(name, &params, &Patch::Apply(secret)).await.unwrap();
}

/// Waits until every replica shows a tool, or does not show it any more; tells how long the slowest took.
async fn shown(yard: &Yard, gateways: &Gateways, tool: &str, is_shown: bool) -> Duration {
    let began = Instant::now();
    for replica in 0..2 {
        yard.until(&format!("{tool} at replica {replica}: {is_shown}"), async || {
            let tools = gateways.tools(replica).await.unwrap_or_default();
            (!tools.is_empty() && tools.iter().any(|name| name == tool) == is_shown).then_some(())
        })
        .await;
    }
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_is_served_by_every_replica_keeps_its_last_good_text_and_leaves_with_its_resource() {
    let Some(yard) = Yard::open().await else { return };
    let operator = yard.operator().await;
    let mut gateways = Gateways::start(&yard, 2, &[]).await;
    let name = yard.namespace.clone();
    assert!(gateways.tools(0).await.is_err(), "nobody knows the tenant yet");

    // Applied, and changed to and fro: the quickest shows what is between the resource and the agent besides a busy machine.
    let mut times = Vec::new();
    for round in 0..4 {
        let toolsets: &[&str] = if round % 2 == 0 { &["memory", "k8s"] } else { &["memory"] };
        yard.write("Tenant", &name, config(toolsets)).await.unwrap();
        times.push(shown(&yard, &gateways, "k8s_get", round % 2 == 0).await);
    }
    println!("from the resource to both replicas: {times:?}");
    let quickest = times.iter().min().unwrap();
    assert!(*quickest < SOON, "{times:?}");
    let seen = yard.see_condition("Tenant", &name, "Ready", ("True", "Served")).await;
    assert_eq!(seen["status"]["servedBy"], json!({ "ready": 2, "total": 2 }));
    assert_eq!(seen["status"]["configDigest"], seen["status"]["accepted"]["digest"]);
    assert_eq!(seen["status"]["observedGeneration"], seen["metadata"]["generation"]);
    let good = seen["status"]["configDigest"].clone();

    // A faulty generation leaves the last good one in force, with the mistake where it stands.
    let mut bad = config(&["memory"]);
    bad["config"]["clusters"][0]["colour"] = json!("red");
    yard.write("Tenant", &name, bad).await.unwrap();
    let seen = yard.see_condition("Tenant", &name, "Accepted", ("False", "Invalid")).await;
    let error = &seen["status"]["errors"][0];
    assert_eq!(error["path"], "clusters[0].colour", "{error}");
    assert!(error["line"].as_u64() > Some(0) && error["column"].as_u64() > Some(0), "{error}");
    let seen = yard.see_condition("Tenant", &name, "Programmed", ("True", "EarlierServed")).await;
    assert_eq!((&seen["status"]["configDigest"], &condition_of(&seen, "Ready")["status"]), (&good, &json!("False")));
    assert_eq!(seen["status"]["servedBy"], json!({ "ready": 2, "total": 2 }));
    // So do a replica that is started anew and one that begins with nothing.
    gateways.restart(0).await;
    shown(&yard, &gateways, "memory_read", true).await;
    gateways.replace(&yard, 1).await;
    shown(&yard, &gateways, "memory_read", true).await;
    let seen = yard.see("Tenant", &name, "both replicas again", |one| one["status"]["servedBy"]["ready"] == 2).await;
    assert_eq!(
        (&seen["status"]["configDigest"], &condition_of(&seen, "Accepted")["reason"]),
        (&good, &json!("Invalid"))
    );

    // One that becomes no text at all is no other case.
    let mut nobody = config(&["memory"]);
    nobody["config"]["tenant"] = json!("somebody-else");
    yard.write("Tenant", &name, nobody).await.unwrap();
    yard.see("Tenant", &name, "the mistake", |one| one["status"]["errors"][0]["path"] == "tenant").await;
    gateways.replace(&yard, 1).await;
    shown(&yard, &gateways, "memory_read", true).await;

    yard.write("Tenant", &name, config(&["memory", "k8s"])).await.unwrap();
    shown(&yard, &gateways, "k8s_get", true).await;
    yard.see_condition("Tenant", &name, "Ready", ("True", "Served")).await;

    // A replica that leaves is not waited for, and one that comes counts.
    gateways.leave(1).await;
    yard.see("Tenant", &name, "one replica", |one| one["status"]["servedBy"] == json!({ "ready": 1, "total": 1 }))
        .await;
    gateways.come_back(&yard, 1).await;
    yard.see("Tenant", &name, "two replicas", |one| one["status"]["servedBy"] == json!({ "ready": 2, "total": 2 }))
        .await;

    // Deleted: nobody gets in any more, and nothing of it is left beside the gateways.
    yard.delete("Tenant", &name).await;
    for replica in 0..2 {
        yard.until("the tenant to be refused", async || {
            matches!(gateways.tools(replica).await, Err(DiscoverError::Unauthorized(_))).then_some(())
        })
        .await;
        assert_eq!(texts_in(&gateways.folders(replica)), 0);
    }
    gateways.stop().await;
    assert!(operator.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_entry_reaches_the_gateway_with_its_token_and_a_rotated_one() {
    let Some(yard) = Yard::open().await else { return };
    let operator = yard.operator().await;
    let server = McpServer::start(Era::Both).await;
    server.offer(vec![json!({ "name": "remember", "inputSchema": { "type": "object" } })]);
    server.require("authorization", "Bearer first");
    let own = format!("[\"{}\"]", yard.namespace);
    let ports = format!("[{}]", server.port());
    let settings =
        [("QM_UPSTREAMS__PRIVATE", "true"), ("QM_UPSTREAMS__PORTS", &ports), ("QM_UPSTREAMS__OWN_SERVERS", &own)];
    let gateways = Gateways::start(&yard, 2, &settings).await;
    let name = yard.namespace.clone();

    let reference = json!({ "name": "notes", "key": "token" });
    let entry =
        json!({ "url": format!("http://127.0.0.1:{}/mcp", server.port()), "auth": { "secretKeyRef": reference } });
    yard.write("ServerEntry", "notes", entry.clone()).await.unwrap();
    yard.see_condition("ServerEntry", "notes", "ResolvedRefs", ("False", "TenantNotFound")).await;
    yard.write("Tenant", &name, config(&["memory"])).await.unwrap();
    yard.see_condition("ServerEntry", "notes", "ResolvedRefs", ("False", "SecretNotFound")).await;
    yard.see_condition("Tenant", &name, "ResolvedRefs", ("False", "SecretNotFound")).await;
    secret(&yard, "notes", "first").await;
    // A server is asked when somebody uses the tenant.
    yard.until("the gateway to ask the server", async || {
        gateways.tools(0).await.ok();
        (server.count("tools/list") > 0).then_some(())
    })
    .await;
    yard.see_condition("ServerEntry", "notes", "Accepted", ("True", "Valid")).await;
    yard.see_condition("ServerEntry", "notes", "Ready", ("True", "Served")).await;

    // Rotated.
    server.require("authorization", "Bearer second");
    secret(&yard, "notes", "second").await;
    for replica in 0..2 {
        let file = gateways.folders(replica).secrets.join(&name).join("server.notes.token");
        yard.until("the new token", async || (std::fs::read_to_string(&file).ok()? == "second").then_some(())).await;
    }
    let seen = yard.find("Tenant", &name).await.unwrap().to_string()
        + &yard.find("ServerEntry", "notes").await.unwrap().to_string();
    assert!(!seen.contains("first") && !seen.contains("second"), "no value of a Secret is in a resource: {seen}");

    // A faulty entry is told at the entry, and its tenant keeps what it had.
    let mut faulty = entry;
    faulty["accept"] = json!("sometimes");
    yard.write("ServerEntry", "notes", faulty).await.unwrap();
    let seen = yard.see_condition("ServerEntry", "notes", "Accepted", ("False", "Invalid")).await;
    assert!(condition_of(&seen, "Accepted")["message"].as_str().unwrap().contains("servers[0]"), "{seen}");
    yard.see_condition("Tenant", &name, "Programmed", ("True", "EarlierServed")).await;
    gateways.stop().await;
    all_used(&yard, &yard.user("gateway-0"), &["sync", "syncNamespace"]).await;
    assert!(operator.stop().await);
}

/// What the file of the tenant says at a folder.
async fn text_with(yard: &Yard, folder: &std::path::Path, part: &str) -> String {
    let file = folder_of(folder, 0).tenants.join(format!("{}.yaml", yard.namespace));
    yard.until(&format!("{part} in the text"), async || {
        std::fs::read_to_string(&file).ok().filter(|text| text.contains(part))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_field_of_a_tenant_and_of_an_entry_has_an_effect() {
    let Some(yard) = Yard::open().await else { return };
    let folder = std::env::temp_dir().join(format!("quartermaster-fields-{}", yard.namespace));
    let sync = sync(&yard, &folder, 0).await;
    let name = yard.namespace.clone();
    secret(&yard, "access", "value").await;
    let reference = json!({ "name": "access", "key": "token" });

    // `config` and `secretRefs`.
    yard.write("Tenant", &name, json!({ "config": { "mode": "read" } })).await.unwrap();
    let text = text_with(&yard, &folder, "\"mode\": \"read\"").await;
    assert!(text.starts_with(&format!("\"tenant\": \"{name}\"\n")), "{text}");
    yard.write(
        "Tenant",
        &name,
        json!({ "config": { "mode": "read" }, "secretRefs": [{ "name": "wiki.key", "secretKeyRef": reference }] }),
    )
    .await
    .unwrap();
    let file = folder_of(&folder, 0).secrets.join(&name).join("wiki.key");
    yard.until("the secret", async || (std::fs::read_to_string(&file).ok()? == "value").then_some(())).await;
    yard.write("Tenant", &name, json!({ "config": { "mode": "write" } })).await.unwrap();
    yard.until("the secret to be gone", async || (!file.exists()).then_some(())).await;

    // Every field of an entry.
    yard.tool("files", json!({ "image": "registry.example/files:1", "port": 7000, "path": "/rpc" })).await;
    let at = format!("http://files.{name}.svc.cluster.local:7000/rpc");
    let entry = |more: Value| {
        let mut spec = json!({ "url": "https://notes.example/mcp" });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    };
    let effects = [
        ("url", json!({ "url": "https://other.example/mcp" }), "https://other.example/mcp".to_owned()),
        ("toolRef", json!({ "toolRef": { "name": "files" } }), at),
        ("transport", entry(json!({ "transport": "sse" })), "\"transport\": \"sse\"".to_owned()),
        (
            "auth",
            entry(json!({ "auth": { "secretKeyRef": reference, "header": "X-Key", "scheme": "raw" } })),
            "\"X-Key\"".to_owned(),
        ),
        ("headers", entry(json!({ "headers": { "X-Team": "a" } })), "\"X-Team\": \"a\"".to_owned()),
        ("description", entry(json!({ "description": "notes of all" })), "notes of all".to_owned()),
        ("access", entry(json!({ "access": { "allowlist": ["read_*"] } })), "\"read_*\"".to_owned()),
        ("accept", entry(json!({ "accept": "each" })), "\"accept\": \"each\"".to_owned()),
    ];
    assert_eq!(effects.clone().map(|(field, ..)| field), FIELDS_OF_AN_ENTRY);
    for (field, spec, part) in effects {
        let before = std::fs::read_to_string(folder_of(&folder, 0).tenants.join(format!("{name}.yaml"))).unwrap();
        assert!(!before.contains(&part), "{field} shows nothing");
        // As `kubectl replace` does: what is not named is gone.
        if yard.find("ServerEntry", "notes").await.is_some() {
            yard.delete("ServerEntry", "notes").await;
        }
        yard.write("ServerEntry", "notes", spec).await.unwrap();
        text_with(&yard, &folder, &part).await;
    }

    // What the API server refuses.
    for (kind, called, spec, why) in [
        ("ServerEntry", "x", json!({}), "either url or toolRef"),
        (
            "ServerEntry",
            "x",
            json!({ "url": "https://a.example", "toolRef": { "name": "files" } }),
            "either url or toolRef",
        ),
        ("ServerEntry", "x.y", json!({ "url": "https://a.example" }), "part of the names of tools"),
        ("ServerEntry", "x", json!({ "url": "https://a.example", "transport": "carrier" }), "spec.transport"),
        ("Tenant", "x", json!({}), "spec.config"),
        (
            "Tenant",
            "x",
            json!({ "config": {}, "secretRefs": [{ "name": "../x", "secretKeyRef": reference }] }),
            "spec.secretRefs",
        ),
    ] {
        let refused = yard.write(kind, called, spec.clone()).await.map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains(why), "{kind} {spec}: {refused}");
    }
    sync.stop().await;
    assert!(yard.find("Lease", "quartermaster-sync-gateway-0").await.is_none(), "who stops takes the lease along");
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_is_called_like_its_namespace_and_tools_that_are_used_let_the_gateway_in() {
    let Some(yard) = Yard::open().await else { return };
    let operator = yard.operator().await;
    let folder = std::env::temp_dir().join(format!("quartermaster-names-{}", yard.namespace));
    let sync = sync(&yard, &folder, 0).await;
    yard.write("Tenant", "somebody-else", config(&["memory"])).await.unwrap();
    let seen = yard.see_condition("Tenant", "somebody-else", "Accepted", ("False", "NameMismatch")).await;
    assert!(condition_of(&seen, "Accepted")["message"].as_str().unwrap().contains(&yard.namespace));
    yard.write("Tenant", &yard.namespace, config(&["memory"])).await.unwrap();
    text_with(&yard, &folder, "memory").await;
    assert_eq!(texts_in(&folder_of(&folder, 0)), 1, "nobody serves the other one");
    // Nobody judges it here: no gateway reports.
    yard.see_condition("Tenant", &yard.namespace, "Accepted", ("Unknown", "Pending")).await;
    yard.see_condition("Tenant", &yard.namespace, "Programmed", ("False", "NotServed")).await;

    let gateway = |policy: &Value| {
        let from = policy["spec"]["ingress"][0]["from"].as_array().unwrap();
        from.iter().any(|one| one["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "gateway")
    };
    yard.write("ServerEntry", "files", json!({ "toolRef": { "name": "files" } })).await.unwrap();
    yard.see_condition("ServerEntry", "files", "ResolvedRefs", ("False", "ToolNotFound")).await;
    yard.tool("files", json!({ "image": "registry.example/files:1" })).await;
    yard.see("NetworkPolicy", "files", "the gateway let in", gateway).await;
    yard.see_condition("ServerEntry", "files", "ResolvedRefs", ("True", "Resolved")).await;
    text_with(&yard, &folder, &format!("http://files.{}.svc.cluster.local:8080/mcp", yard.namespace)).await;
    yard.delete("ServerEntry", "files").await;
    yard.see("NetworkPolicy", "files", "the gateway kept out", |policy| !gateway(policy)).await;
    sync.stop().await;
    std::fs::remove_dir_all(folder).unwrap();
    assert!(operator.stop().await);
}
