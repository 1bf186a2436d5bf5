//! Names that change, Secrets and namespaces that go, and operators that die at random.

use crate::on_a_cluster::gateways::{folder_of, start_sync, sync_from, sync_settings};
use crate::on_a_cluster::yard::{Yard, condition_of, object, using};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, DeleteParams, PostParams};
use operator::context::OperatorSettings;
use operator::sync::SyncSettings;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

fn tool() -> Value {
    json!({ "image": "registry.example/tool:1" })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_under_another_name_is_another_tool_and_nothing_is_left_of_the_first() {
    let Some(yard) = Yard::open().await else { return };
    let operator = yard.operator().await;
    yard.tool("before", tool()).await;
    yard.agent("ana", using(&["before"])).await;
    yard.see_condition("LanguageAgent", "ana", "ResolvedRefs", ("True", "Resolved")).await;

    yard.tool("after", tool()).await;
    yard.agent("ana", using(&["after"])).await;
    yard.delete("LanguageTool", "before").await;
    for kind in ["Deployment", "Service", "NetworkPolicy"] {
        yard.see_gone(kind, "before").await;
        yard.see(kind, "after", "to be there", |_| true).await;
    }
    let endpoint = format!("http://after.{}.svc.cluster.local:8080", yard.namespace);
    let at = "/spec/template/spec/containers/0/env/0/value";
    yard.see("Deployment", "ana", "the new name alone", |one| one.pointer(at) == Some(&json!(endpoint))).await;
    let config = yard.find("ConfigMap", "ana-tools").await.unwrap().to_string();
    assert!(!config.contains("before"), "{config}");
    assert!(operator.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_goes_takes_everything_along_and_the_operator_goes_on() {
    let Some(yard) = Yard::open().await else { return };
    // The programs stand elsewhere, as they do in a cluster.
    let Some(home) = Yard::open().await else { return };
    home.grant_everywhere().await;
    let settings = OperatorSettings { watch: Some(yard.namespace.clone()), ..home.settings("one") };
    let operator = home.operator_with(settings).await;
    let folder = std::env::temp_dir().join(format!("quartermaster-leaving-{}", yard.namespace));
    let sync = sync_from(&home, &yard.namespace, &folder, 0).await;
    yard.tool("tool", tool()).await;
    yard.agent("agent", using(&["tool"])).await;
    yard.write("Tenant", &yard.namespace, json!({ "config": { "mode": "read" } })).await.unwrap();
    yard.see_condition("LanguageTool", "tool", "Ready", ("True", "ReplicasReady")).await;
    yard.see("Tenant", &yard.namespace, "a status", |one| condition_of(one, "Accepted")["status"] == "Unknown").await;
    let file = folder_of(&folder, 0).tenants.join(format!("{}.yaml", yard.namespace));
    yard.until("the tenant's file", async || file.exists().then_some(())).await;

    let namespaces: Api<Namespace> = Api::all(yard.admin.clone());
    namespaces.delete(&yard.namespace, &DeleteParams::default()).await.unwrap();
    yard.until("the namespace to be gone", async || {
        namespaces.get_opt(&yard.namespace).await.unwrap().is_none().then_some(())
    })
    .await;
    yard.until("the tenant to be served no more", async || (!file.exists()).then_some(())).await;

    // Both still act, in a new namespace of that name as well.
    yard.make_namespace().await;
    yard.until("the default account", async || yard.find("ServiceAccount", "default").await).await;
    yard.tool("tool", tool()).await;
    yard.see_condition("LanguageTool", "tool", "Ready", ("True", "ReplicasReady")).await;
    yard.write("Tenant", &yard.namespace, json!({ "config": { "mode": "read" } })).await.unwrap();
    yard.until("the tenant's file again", async || file.exists().then_some(())).await;
    sync.stop().await;
    std::fs::remove_dir_all(folder).unwrap();
    assert!(operator.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lease_of_a_replica_goes_with_its_pod() {
    let Some(yard) = Yard::open().await else { return };
    let pod: Pod = object(json!({
        "metadata": { "name": "gateway-0" },
        "spec": { "containers": [{ "name": "gateway", "image": "registry.example/gateway:1" }] },
    }));
    let pod = yard.api::<Pod>().create(&PostParams::default(), &pod).await.unwrap();
    let folder = std::env::temp_dir().join(format!("quartermaster-pod-{}", yard.namespace));
    let settings = sync_settings(&yard, &yard.namespace, &folder, 0);
    let sync = start_sync(&yard, SyncSettings { pod_uid: pod.metadata.uid, ..settings }).await;
    yard.see("Lease", "quartermaster-sync-gateway-0", "its holder", |one| one["spec"]["holderIdentity"] == "gateway-0")
        .await;
    // Nobody is left to remove it.
    sync.kill();
    yard.delete("Pod", "gateway-0").await;
    yard.see_gone("Lease", "quartermaster-sync-gateway-0").await;
    std::fs::remove_dir_all(folder).unwrap();
}

/// A small generator, so that a seed tells everything.
fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_that_die_at_random_writes_while_resources_change_come_to_what_is_wanted() {
    let Some(yard) = Yard::open().await else { return };
    let fixed = std::env::var_os("QUARTERMASTER_TEST_SEED").and_then(|seed| seed.to_str()?.parse().ok());
    let drawn = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos();
    let mut seed: u64 = fixed.unwrap_or_else(|| u64::from(drawn()) | 1);
    println!("QUARTERMASTER_TEST_SEED={seed}");
    for life in 0..8 {
        let port = 7000 + next(&mut seed) % 3;
        let writes = usize::try_from(1 + next(&mut seed) % 6).unwrap();
        println!("life {life}: port {port}, killed after write {writes}");
        yard.tool("tool", json!({ "image": format!("registry.example/tool:{life}"), "port": port })).await;
        yard.agent("agent", if next(&mut seed).is_multiple_of(2) { using(&["tool"]) } else { using(&[]) }).await;
        yard.write(
            "Tenant",
            &yard.namespace,
            json!({ "config": { "mode": if life % 2 == 0 { "read" } else { "write" } } }),
        )
        .await
        .unwrap();
        let (operator, meter) = yard.operator_until(yard.settings(&format!("life-{life}")), writes).await;
        // One that has nothing more to write lives: then it is killed where it stands.
        let calm = async {
            let mut left = usize::MAX;
            yard.until("calm", async || {
                let now = meter.left.load(std::sync::atomic::Ordering::Relaxed);
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                (std::mem::replace(&mut left, now) == now).then_some(())
            })
            .await;
        };
        tokio::select! {
            _ = operator.ended() => {}
            () = calm => {}
        }
        yard.end_lease().await;
    }
    yard.tool("tool", json!({ "image": "registry.example/tool:last", "port": 7777 })).await;
    yard.agent("agent", using(&["tool"])).await;
    let last = yard.operator_with(yard.settings("last")).await;
    let image = "/spec/template/spec/containers/0/image";
    yard.see("Deployment", "tool", "the last image", |one| {
        one.pointer(image) == Some(&json!("registry.example/tool:last"))
    })
    .await;
    yard.see("Service", "tool", "the last port", |one| {
        one["spec"]["ports"].as_array().unwrap().len() == 1 && one["spec"]["ports"][0]["port"] == 7777
    })
    .await;
    let let_in = "/spec/ingress/0/from/1/podSelector/matchExpressions/0/values";
    yard.see("NetworkPolicy", "tool", "the agent", |one| one.pointer(let_in) == Some(&json!(["agent"]))).await;
    let endpoint = format!("http://tool.{}.svc.cluster.local:7777", yard.namespace);
    let env = "/spec/template/spec/containers/0/env/0/value";
    yard.see("Deployment", "agent", "its endpoint", |one| one.pointer(env) == Some(&json!(endpoint))).await;
    let is_current = |one: &Value| one["status"]["observedGeneration"] == one["metadata"]["generation"];
    yard.see("LanguageTool", "tool", "a status of now", is_current).await;
    yard.see("LanguageAgent", "agent", "a status of now", is_current).await;
    yard.see("Tenant", &yard.namespace, "a status of now", is_current).await;
    assert!(last.stop().await);
}
