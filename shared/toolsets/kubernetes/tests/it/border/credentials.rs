//! Who we are to a cluster, and when that changes.

use crate::border::support::*;
use domain::Effect;
use egress::AddressGuard;
use kubernetes::client::{
    ClusterConfig, ClusterEndpoint, ClusterReach, Impersonation, KeptKubeconfig, KeptSecret, MaskDetail, ObjectPatch,
    SecretText,
};
use redact::NotAtHand;
use serde_json::json;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn kubeconfig(address: std::net::SocketAddr, token: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{ "name": "c", "context": { "cluster": "k", "user": "u" } }],
        "clusters": [{ "name": "k", "cluster": { "server": format!("http://{address}") } }],
        "users": [{ "name": "u", "user": { "token": token } }],
    })
    .to_string()
}

/// Replaced as a mounted Secret is: by a rename, never half.
fn replace(path: &Path, text: &str) {
    let next = path.with_extension("next");
    std::fs::write(&next, text).unwrap();
    std::fs::rename(next, path).unwrap();
}

fn token_of(seen: &Seen) -> String {
    seen.headers["authorization"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_credential_rotated_under_us_costs_one_more_request_and_no_restart() {
    let home = tempfile::tempdir().unwrap();
    let path = Arc::new(home.path().join("kubeconfig"));
    let file = Arc::clone(&path);
    let api = Api::start(move |seen, before| {
        if before == 0 {
            // The operator rotates it just as we come with the old one.
            let server = seen.headers["host"].to_str().unwrap().parse().unwrap();
            replace(&file, &kubeconfig(server, "new"));
        }
        match token_of(seen).as_str() {
            "Bearer new" => Reply::Json(200, deployment("web", 1)),
            _ => status(401, "Unauthorized", "Unauthorized", json!([])),
        }
    })
    .await;
    replace(&path, &kubeconfig(api.address, "old"));
    let clusters = clusters_of(vec![ClusterConfig::new("main", ClusterEndpoint::Kubeconfig(path.to_path_buf()))]);
    let permit = acting();
    let cluster = clusters.of(&permit, None).unwrap();
    let web = target(&cluster, "Deployment", "web").await;

    cluster.write().unwrap().patch(&web, ObjectPatch::Merge(json!({}).into()), None).await.unwrap();
    assert_eq!(api.seen().iter().map(token_of).collect::<Vec<_>>(), ["Bearer old", "Bearer new"]);
}

#[tokio::test]
async fn a_credential_that_is_simply_wrong_is_tried_once() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("kubeconfig");
    let api = Api::start(|_, _| status(401, "Unauthorized", "Unauthorized", json!([]))).await;
    replace(&path, &kubeconfig(api.address, "wrong"));
    let clusters = clusters_of(vec![ClusterConfig::new("main", ClusterEndpoint::Kubeconfig(path))]);
    let permit = reading();
    let cluster = clusters.of(&permit, None).unwrap();
    let web = target(&cluster, "Deployment", "web").await;

    let failure = cluster.get(&web, MaskDetail::Clean).await.unwrap_err();
    assert_eq!(failure.code, target::codes::FORBIDDEN);
    assert!(failure.message.contains("credential"));
    assert_eq!(api.seen().len(), 1);
}

#[tokio::test]
async fn a_changed_file_is_noticed_before_anybody_refuses_the_old_one() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("kubeconfig");
    let api = Api::start(|_, _| Reply::Json(200, deployment("web", 1))).await;
    replace(&path, &kubeconfig(api.address, "one"));
    let clusters = clusters_of(vec![ClusterConfig::new("main", ClusterEndpoint::Kubeconfig(path.clone()))]);
    let permit = reading();
    let cluster = clusters.of(&permit, None).unwrap();
    let web = target(&cluster, "Deployment", "web").await;
    cluster.get(&web, MaskDetail::Clean).await.unwrap();

    replace(&path, &kubeconfig(api.address, "number-two"));
    let noticed = async {
        while token_of(api.seen().last().unwrap()) != "Bearer number-two" {
            clusters.of(&permit, None).unwrap().get(&web, MaskDetail::Clean).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), noticed).await.expect("the new token is used");

    // A file that is gone for a moment does not take the cluster away.
    std::fs::remove_file(&path).unwrap();
    tokio::time::sleep(Duration::from_millis(1100)).await;
    clusters.of(&permit, None).unwrap().get(&web, MaskDetail::Clean).await.unwrap();
}

#[tokio::test]
async fn a_kept_credential_serves_while_it_is_kept_and_its_successor_after_it() {
    let api = Api::start(|_, _| Reply::Json(200, deployment("web", 1))).await;
    let kept = Arc::new(Mutex::new(Ok(SecretText::new(kubeconfig(api.address, "one")))));
    let keeper = Arc::clone(&kept);
    let secret = KeptSecret::new("main", move || keeper.lock().unwrap().clone());
    let kubeconfig_secret = KeptKubeconfig { secret, reach: ClusterReach::of_operator(true) };
    let clusters = clusters_of(vec![ClusterConfig::new("main", ClusterEndpoint::Kept(vec![kubeconfig_secret]))]);
    let permit = reading();
    let web = target(&clusters.of(&permit, None).unwrap(), "Deployment", "web").await;
    let get = async || clusters.of(&permit, None).unwrap().get(&web, MaskDetail::Clean).await;
    get().await.unwrap();
    assert_eq!(token_of(api.seen().last().unwrap()), "Bearer one");

    *kept.lock().unwrap() = Ok(SecretText::new(kubeconfig(api.address, "two")));
    let noticed = async {
        while token_of(api.seen().last().unwrap()) != "Bearer two" {
            get().await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), noticed).await.expect("the new token is used");

    // One that cannot be read for a moment does not take the cluster away; one that was taken away does.
    *kept.lock().unwrap() = Err(NotAtHand::Unreadable);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    get().await.unwrap();
    *kept.lock().unwrap() = Err(NotAtHand::Gone);
    let refused = async {
        loop {
            if let Err(failure) = get().await {
                return failure;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let failure = tokio::time::timeout(Duration::from_secs(30), refused).await.expect("it is used no longer");
    assert_eq!(failure.code, target::codes::TOOLSET_NOT_CONFIGURED);
    let sent = api.seen().len();
    get().await.unwrap_err();
    assert_eq!(api.seen().len(), sent);
}

#[tokio::test]
async fn a_name_that_leads_to_this_machine_is_not_dialled() {
    let api = Api::start(|_, _| Reply::Json(200, deployment("web", 1))).await;
    // The connector takes this for a name, and the system's resolver makes an address of it.
    let text = kubeconfig(api.address, "one").replace("127.0.0.1", "localhost");
    assert!(text.contains("localhost"));
    for (reach, reached) in [(ClusterReach::of_operator(true), true), (ClusterReach::of_operator(false), false)] {
        let kept = SecretText::new(text.clone());
        let secret = KeptSecret::new("main", move || Ok(kept.clone()));
        let source = ClusterEndpoint::Kept(vec![KeptKubeconfig { secret, reach }]);
        let clusters = clusters_of(vec![ClusterConfig::new("main", source)]);
        let permit = reading();
        let cluster = clusters.of(&permit, None).unwrap();
        assert_eq!(cluster.version().await.is_ok(), reached);
    }
}

#[tokio::test]
async fn what_a_tenant_set_itself_counts_first_and_is_held_to_its_own_reach() {
    let api = Api::start(|_, _| Reply::Json(200, deployment("web", 1))).await;
    let kept = |text: Result<String, NotAtHand>| {
        let text = text.map(SecretText::new);
        KeptSecret::new("main", move || text.clone())
    };
    let version = async |tenants: Result<String, NotAtHand>| {
        let tenants =
            KeptKubeconfig { secret: kept(tenants), reach: ClusterReach::of_tenant(&AddressGuard::default(), true) };
        let operators = KeptKubeconfig {
            secret: kept(Ok(kubeconfig(api.address, "operators"))),
            reach: ClusterReach::of_operator(true),
        };
        let clusters = clusters_of(vec![ClusterConfig::new("main", ClusterEndpoint::Kept(vec![tenants, operators]))]);
        let permit = reading();
        let answer = clusters.of(&permit, None).unwrap().version().await;
        answer.map(drop).map_err(|failure| failure.code)
    };
    assert_eq!(version(Err(NotAtHand::Gone)).await, Ok(()), "the operator's serves where the tenant has set none");
    assert_eq!(api.seen().len(), 1);
    // The guard of a tenant's own addresses lets none lead to this machine, whatever is allowed for the operator's.
    assert!(version(Ok(kubeconfig(api.address, "tenants"))).await.is_err());
    assert!(version(Err(NotAtHand::Unreadable)).await.is_err(), "nobody knows whether the tenant has set one");
    assert_eq!(api.seen().len(), 1);
}

#[tokio::test]
async fn requests_act_as_whom_the_configuration_says() {
    let api = Api::start(|_, _| Reply::Json(200, deployment("web", 1))).await;
    let mut config = api.config();
    config.impersonate = Some(Impersonation { user: "agents".into(), groups: vec!["team-a".into(), "team-b".into()] });
    let clusters = clusters_of(vec![config]);
    let permit = reading();
    let cluster = clusters.of(&permit, None).unwrap();
    let web = target(&cluster, "Deployment", "web").await;
    cluster.get(&web, MaskDetail::Clean).await.unwrap();

    let headers = &api.seen()[0].headers;
    assert_eq!(headers["impersonate-user"], "agents");
    let groups: Vec<_> = headers.get_all("impersonate-group").iter().collect();
    assert_eq!(groups, ["team-a", "team-b"]);
}

#[tokio::test]
async fn a_tenant_sees_its_own_clusters_and_no_others() {
    let api = Api::start(|_, _| Reply::Json(200, deployment("web", 1))).await;
    let ours = api.clusters();
    let mut config = api.config();
    config.name = "theirs".into();
    let theirs = clusters_for("globex", vec![config]);

    let (acme, globex) = (reading(), permit("globex", Effect::Read, None));
    assert_eq!(ours.of(&acme, None).unwrap().name(), "main");
    assert_eq!(theirs.of(&globex, None).unwrap().name(), "theirs");
    assert_eq!(ours.of(&acme, Some("theirs")).unwrap_err().code, kubernetes::codes::CLUSTER_UNKNOWN);
    // A tool holds its own tenant's clusters; a permit of another one opens none of them, by whatever name.
    for name in [None, Some("main"), Some("theirs")] {
        assert_eq!(ours.of(&globex, name).unwrap_err().code, domain::Code::Internal);
        assert_eq!(theirs.of(&acme, name).unwrap_err().code, domain::Code::Internal);
    }
    let none = clusters_for("initech", Vec::new());
    let nobody = permit("initech", Effect::Read, None);
    assert_eq!(none.of(&nobody, Some("main")).unwrap_err().code, target::codes::TOOLSET_NOT_CONFIGURED);
}

#[tokio::test]
async fn where_there_are_several_a_write_names_one_and_a_read_may_have_a_default() {
    let api = Api::start(|_, _| Reply::Silence).await;
    let (mut east, mut west) = (api.config(), api.config());
    (east.name, west.name) = ("east".into(), "west".into());
    let clusters = clusters_of(vec![east.clone(), west.clone()]);
    let (read, write) = (reading(), acting());
    assert_eq!(clusters.of(&read, None).unwrap_err().code, kubernetes::codes::CLUSTER_REQUIRED);

    west.default = true;
    let clusters = clusters_of(vec![east, west]);
    assert_eq!(clusters.of(&read, None).unwrap().name(), "west");
    let failure = clusters.of(&write, None).unwrap_err();
    assert_eq!(failure.code, kubernetes::codes::CLUSTER_REQUIRED);
    assert!(failure.next.unwrap().contains("east, west"));
    assert_eq!(clusters.of(&write, Some("weste")).unwrap_err().did_you_mean, ["west"]);
}

#[tokio::test]
async fn a_kubeconfig_that_may_not_be_used_is_refused_before_anything_is_sent() {
    let api = Api::start(|_, _| Reply::Json(200, deployment("web", 1))).await;
    // Without TLS, and this machine: neither is for a tenant to say.
    let text = SecretText::new(kubeconfig(api.address, "sesame-open"));
    let clusters = clusters_of(vec![ClusterConfig::new("main", ClusterEndpoint::KubeconfigText(text))]);
    let permit = reading();
    let failure = clusters.of(&permit, None).unwrap().kind("pods").await.unwrap_err();
    assert_eq!(failure.code, target::codes::TOOLSET_NOT_CONFIGURED);
    assert!(failure.message.contains("this machine") && !failure.message.contains("sesame"), "{failure}");
    assert_eq!((api.seen().len(), api.discoveries()), (0, 0));
}
