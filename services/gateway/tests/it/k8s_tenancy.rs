//! How far a tenant reaches: not without a cluster, not beyond its namespaces, not above its identity, not unissued.

use crate::k8s_yard::{Draft, Yard, config_map, is_real, loaded, manifest};
use serde_json::{Value, json};
use testkit::{Legacy, until};

/// A namespace beside the yard's, with a pod and a map in it.
async fn neighbour(yard: &Yard) -> String {
    let name = format!("{}-b", yard.namespace);
    let mut map = config_map("theirs", "hello");
    map["metadata"]["namespace"] = json!(name);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "theirs", "namespace": name },
        "spec": { "containers": [{ "name": "app", "image": "registry.example/app:1.0" }] },
    });
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    yard.make(&[namespace]).await;
    // A real cluster gives a new namespace its service account a moment later.
    yard.awaits(json!({ "kind": "ServiceAccount", "name": "default", "namespace": name, "until": "exists" })).await;
    yard.make(&[map, pod]).await;
    name
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_without_clusters_is_told_so() {
    let yard = Yard::open().await;
    let unissued = yard.world.tenant("other").agent().legacy().await;
    let refused = unissued.call("load_toolset", json!({ "toolset": "k8s" })).await;
    assert_eq!(refused.code(), "unknown_toolset", "what has nothing to act on is not issued");

    // Its file may name the toolset all the same; then the tools say what is missing.
    yard.world.write_tenant("other", "tenant: other\nmode: write\ndefault_toolsets: [k8s]\n");
    until("the file to be read", async || {
        let listed = yard.world.tenant("other").agent().legacy().await.list().await;
        listed.contains(&"k8s_get".to_owned()).then_some(())
    })
    .await;
    let other = yard.world.tenant("other").agent().legacy().await;
    other.load("k8s:write").await;
    for (tool, args) in [
        ("k8s_get", json!({ "kind": "pods" })),
        ("k8s_discover", json!({ "ask": "cluster" })),
        ("k8s_get", json!({ "kind": "pods", "cluster": "main" })),
    ] {
        let outcome = other.call(tool, args).await;
        assert_eq!(outcome.code(), "toolset_not_configured", "{tool}: {}", outcome.answer.text());
    }
    let change = other.call("k8s_apply", json!({ "manifest": manifest(&[config_map("a", "b")]) })).await;
    assert_ne!(change.code(), "ok", "nobody is asked about a change of nothing: {}", change.answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_of_some_namespaces_sees_and_changes_no_others() {
    let draft = Draft::new().await.tenant("fenced", "admin", ", namespaces: [NAMESPACE]");
    let yard = draft.start().await;
    let there = neighbour(&yard).await;
    yard.make(&[config_map("ours", "hello")]).await;
    let fenced = loaded(&yard.world.tenant("fenced").agent()).await;

    let ours = fenced.call("k8s_get", json!({ "kind": "cm", "name": "ours" })).await;
    assert_eq!(ours.ok()["object"]["name"], "ours");
    let all = fenced.call("k8s_get", json!({ "kind": "cm", "namespace": "*" })).await;
    let rows = all.ok()["items"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["name"] == "ours"));
    assert!(
        rows.iter().all(|row| row["namespace"] == yard.namespace.as_str() || row["namespace"].is_null()),
        "{rows:?}"
    );

    let mut map = config_map("x", "y");
    map["metadata"]["namespace"] = json!(there);
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "qm-x" }, "rules": [] });
    let space = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": format!("{there}-c") } });
    for (tool, args) in [
        ("k8s_get", json!({ "kind": "cm", "namespace": there })),
        ("k8s_get", json!({ "kind": "cm", "name": "theirs", "namespace": there })),
        ("k8s_logs", json!({ "pod": "theirs", "namespace": there })),
        ("k8s_wait", json!({ "kind": "pod", "name": "theirs", "namespace": there, "timeout_s": 1 })),
        ("k8s_diff", json!({ "manifest": manifest(&[map.clone()]) })),
        ("k8s_discover", json!({ "ask": "can_i", "verb": "get", "target": "pods", "namespace": there })),
        ("k8s_apply", json!({ "manifest": manifest(&[map]) })),
        ("k8s_apply", json!({ "manifest": manifest(&[role]) })),
        ("k8s_apply", json!({ "manifest": manifest(&[space]) })),
        ("k8s_exec", json!({ "pod": "theirs", "command": ["true"], "namespace": there })),
        ("k8s_delete", json!({ "kind": "cm", "name": "theirs", "namespace": there })),
        ("k8s_delete", json!({ "kind": "Namespace", "name": there })),
        ("k8s_patch", json!({ "kind": "cm", "name": "theirs", "namespace": there, "patch": "{}" })),
        ("k8s_probe", json!({ "kind": "pod", "name": "theirs", "port": 80, "namespace": there })),
        ("k8s_run", json!({ "image": "busybox", "namespace": there })),
        ("k8s_node", json!({ "action": "cordon", "name": "node-0" })),
        ("k8s_get", json!({ "kind": "secrets", "namespace": "kube-system" })),
    ] {
        denied(&fenced, tool, args).await;
    }
    let kept = yard.read("k8s_get", json!({ "kind": "cm", "name": "theirs", "namespace": there })).await;
    assert_eq!(kept["object"]["name"], "theirs");
    yard.act("k8s_delete", json!({ "kind": "Namespace", "name": there })).await;
}

/// Wants a call refused because of where it goes, at once or because nothing can be shown.
async fn denied(client: &Legacy, tool: &str, args: Value) {
    let outcome = client.call(tool, args.clone()).await;
    let refusal = outcome.refusal();
    let told = refusal["message"].as_str().unwrap();
    let right = refusal["code"] == "namespace_denied"
        || (refusal["code"] == "preview_unavailable" && told.contains("namespace"));
    assert!(right, "{tool} {args}: {refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_protected_namespace_is_read_and_not_changed() {
    let draft = Draft::new().await.tenant("guarded", "admin", ", protected: [NAMESPACE]");
    let yard = draft.start().await;
    yard.runs("web", 1).await;
    let guarded = loaded(&yard.world.tenant("guarded").agent()).await;
    assert_eq!(guarded.call("k8s_get", json!({ "kind": "deploy", "name": "web" })).await.code(), "ok");
    let pod = yard.pods("web").await.remove(0);
    for (tool, args) in [
        ("k8s_apply", json!({ "manifest": manifest(&[config_map("x", "y")]) })),
        ("k8s_scale", json!({ "kind": "deploy", "name": "web", "replicas": 2 })),
        ("k8s_patch", json!({ "kind": "deploy", "name": "web", "patch": "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}" })),
        ("k8s_rollout", json!({ "kind": "deploy", "name": "web", "action": "restart" })),
        ("k8s_delete", json!({ "kind": "deploy", "name": "web" })),
        ("k8s_exec", json!({ "pod": pod, "command": ["true"] })),
        ("k8s_run", json!({ "image": "busybox" })),
    ] {
        let outcome = guarded.call(tool, args).await;
        let refusal = outcome.refusal();
        assert!(refusal["message"].as_str().unwrap().contains("protected"), "{tool}: {refusal}");
    }
    assert_eq!(yard.field("Deployment", "web", "spec.replicas").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_acts_as_whom_its_file_says() {
    let viewer = ", impersonate: { user: sandbox-viewer }";
    let stranger = ", impersonate: { user: somebody-without-rights, groups: [nobodies] }";
    let draft = Draft::new().await;
    let draft = draft.tenant("viewing", "impersonator", viewer).tenant("strange", "impersonator", stranger);
    let yard = draft.start().await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": "viewers" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "sandbox-viewer" }],
    });
    yard.make(&[binding, config_map("settings", "hello")]).await;
    let viewing = loaded(&yard.world.tenant("viewing").agent()).await;
    let strange = loaded(&yard.world.tenant("strange").agent()).await;
    let settings = json!({ "kind": "cm", "name": "settings" });

    let seen = viewing.call("k8s_get", settings.clone()).await;
    assert_eq!(seen.ok()["object"]["name"], "settings");
    let secrets = viewing.call("k8s_get", json!({ "kind": "secrets" })).await;
    assert_eq!(secrets.refusal()["code"], "forbidden", "a viewer sees no secrets");
    let may = json!({ "ask": "can_i", "verb": "delete", "target": "configmaps" });
    assert_eq!(viewing.call("k8s_discover", may).await.ok()["allowed"], false);
    let change = json!({ "kind": "cm", "name": "settings", "patch": "{\"data\":{\"a\":\"b\"}}" });
    let refused = viewing.call("k8s_patch", change).await;
    let refusal = refused.refusal();
    assert!(refusal["message"].as_str().unwrap().contains("rules do not allow it"), "{refusal}");

    let refused = strange.call("k8s_get", settings).await;
    let refusal = refused.refusal();
    assert_eq!(refusal["code"], "forbidden", "{refusal}");
    assert!(refusal["details"]["message"].as_str().unwrap().contains("somebody-without-rights"), "{refusal}");
    assert!(refusal["next"].as_str().unwrap().contains("do not retry"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_calls_what_was_not_issued() {
    let yard = Yard::open().await;
    yard.make(&[config_map("settings", "hello")]).await;
    let agent = yard.world.tenant("acme").agent();
    let gone = json!({ "kind": "cm", "name": "settings" });

    let unloaded = agent.legacy().await;
    assert!(!unloaded.list().await.iter().any(|name| name == "k8s_delete"), "it is not listed");
    let reader = yard.world.tenant("acme").reader();
    let session = agent.rest().open("read").await;
    let by_rest = agent.rest().call(&session, "k8s_delete", gone.clone()).await;
    assert!(by_rest.status >= 400, "{}", by_rest.text());
    for outcome in [
        unloaded.call("k8s_delete", gone.clone()).await,
        agent.modern().call("k8s_delete", gone.clone()).await,
        agent.modern().call("call_tool", json!({ "name": "k8s_delete", "arguments": gone })).await,
        agent.plain("tools/call", json!({ "name": "k8s_delete", "arguments": gone })).await,
        reader.legacy().await.call("k8s_delete", gone.clone()).await,
        reader.modern().call("k8s_delete", gone.clone()).await,
    ] {
        assert_ne!(outcome.code(), "ok", "{}", outcome.answer.text());
    }
    let waiting = yard.ana.rest().get("/v1/runs?state=pending_approval").await.json();
    assert_eq!(waiting["runs"], json!([]), "nobody was asked about what nobody may call");
    assert_eq!(yard.field("ConfigMap", "settings", "data.greeting").await, "hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_an_identity_is_told_as_it_is() {
    if !is_real() {
        // A sandbox has one identity; what its faults look like is tested beside them.
        return;
    }
    let identities = [
        ("by-certificate", "admin-by-certificate", "ok"),
        ("viewing", "viewer", "ok"),
        ("known", "nobody", "forbidden"),
        ("unknown", "broken-token", "forbidden"),
        ("untrusting", "broken-authority", "target_unreachable"),
        ("lost", "broken-address", "target_unreachable"),
    ];
    let mut draft = Draft::new().await;
    for (tenant, identity, _) in identities {
        draft = draft.tenant(tenant, identity, "");
    }
    let yard = draft.start().await;
    yard.make(&[config_map("settings", "hello")]).await;
    for (tenant, _, code) in identities {
        let agent = loaded(&yard.world.tenant(tenant).agent()).await;
        let told = agent.call("k8s_get", json!({ "kind": "cm", "name": "settings" })).await;
        assert_eq!(told.code(), code, "{tenant}: {}", told.answer.text());
        let patch = json!({ "kind": "cm", "name": "settings", "patch": "{\"data\":{\"a\":\"b\"}}" });
        let told = agent.call("k8s_patch", patch).await;
        assert_eq!(told.code() == "ok", tenant == "by-certificate", "{tenant}: {}", told.answer.text());
    }
}
