//! Where a call may go.

use crate::border::support::*;
use domain::{Code, Failure};
use kubernetes::client::{ClusterConfig, Clusters, ListQuery, MaskDetail, NamespacePattern, Wildcard};
use serde_json::{Value, json};

fn with_list(api: &Api, patterns: &[&str]) -> Clusters {
    let namespaces = patterns.iter().map(|text| NamespacePattern::parse(text).unwrap()).collect();
    let default_namespace = "shop".into();
    clusters_of(vec![ClusterConfig { namespaces: Some(namespaces), default_namespace, ..api.config() }])
}

fn named(names: &[&str]) -> Value {
    json!({ "kind": "List", "items": names.iter().map(|name| json!({ "metadata": { "name": name } })).collect::<Vec<_>>() })
}

#[tokio::test]
async fn a_namespace_outside_the_list_is_denied_before_anything_is_sent() {
    let api = Api::start(|_, _| Reply::Json(200, named(&[]))).await;
    let (permit, clusters) = (reading(), with_list(&api, &["shop", "team-*"]));
    let cluster = clusters.of(&permit, None).unwrap();
    let pod = cluster.kind("Pod").await.unwrap();
    let at = async |namespace: Option<&str>| -> Result<Option<String>, Failure> {
        Ok(cluster.place(&pod, namespace, Wildcard::Refused).await?.namespace().map(str::to_owned))
    };

    assert_eq!(at(None).await.unwrap().as_deref(), Some("shop"));
    assert_eq!(at(Some("team-a")).await.unwrap().as_deref(), Some("team-a"));
    for denied in ["kube-system", "sho", "shop2", "team", "default"] {
        assert_eq!(at(Some(denied)).await.unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED, "{denied}");
    }
    for strange in ["", "../x", "shop/pods", "Shop", "-a", "a%2fb", "*"] {
        assert_eq!(at(Some(strange)).await.unwrap_err().code, Code::InvalidArgument, "{strange}");
    }
    assert!(api.seen().is_empty());
}

#[tokio::test]
async fn a_star_under_a_list_asks_each_namespace_and_never_the_cluster() {
    let api = Api::start(|seen, _| match seen.path.as_str() {
        "/api/v1/namespaces" => Reply::Json(200, named(&["kube-system", "shop", "team-a", "team-b", "zeta"])),
        "/api/v1/namespaces/team-a/pods" => status(403, "Forbidden", "no", json!([])),
        path => Reply::Json(200, named(&[path.split('/').nth(4).unwrap()])),
    })
    .await;
    let (permit, clusters) = (reading(), with_list(&api, &["shop", "team-*"]));
    let cluster = clusters.of(&permit, None).unwrap();
    let place = place(&cluster, "Pod", Some("*")).await;

    let page = cluster.list(&place, &ListQuery::default(), MaskDetail::Clean).await.unwrap();
    let names: Vec<&str> = page.items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["shop", "team-b"]);
    assert_eq!(page.warnings, ["not allowed in namespace team-a"]);
    let asked = api.lines();
    assert_eq!(asked[1..], ["shop", "team-a", "team-b"].map(|ns| format!("GET /api/v1/namespaces/{ns}/pods")));
}

#[tokio::test]
async fn pages_over_several_namespaces_go_on_where_they_ended() {
    let api = Api::start(|seen, _| {
        let mut list = named(&[&seen.path.replace('/', "-")]);
        if seen.path.contains("/shop/") && !seen.query.contains("continue") {
            list["metadata"] = json!({ "continue": "more" });
        }
        Reply::Json(200, list)
    })
    .await;
    let (permit, clusters) = (reading(), with_list(&api, &["shop", "tools"]));
    let cluster = clusters.of(&permit, None).unwrap();
    let place = place(&cluster, "Pod", Some("*")).await;
    let mut query = ListQuery { limit: 1, ..ListQuery::default() };
    let mut pages = 0;
    loop {
        let page = cluster.list(&place, &query, MaskDetail::Clean).await.unwrap();
        pages += 1;
        match page.cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => break,
        }
    }
    assert_eq!(pages, 3);
    let asked: Vec<String> = api.seen().iter().map(|seen| format!("{}?{}", seen.path, seen.query)).collect();
    assert_eq!(
        asked,
        [
            "/api/v1/namespaces/shop/pods?limit=1",
            "/api/v1/namespaces/shop/pods?limit=1&continue=more",
            "/api/v1/namespaces/tools/pods?limit=1",
        ]
    );
    let foreign = ListQuery { cursor: Some("kube-system/x".into()), ..query };
    assert_eq!(
        cluster.list(&place, &foreign, MaskDetail::Clean).await.unwrap_err().code,
        target::codes::CURSOR_MISMATCH
    );
}

#[tokio::test]
async fn under_a_list_other_namespaces_are_hidden_and_nothing_cluster_wide_is_changed() {
    let api = Api::start(|seen, _| match seen.path.as_str() {
        "/api/v1/namespaces" => Reply::Json(200, named(&["kube-system", "shop", "other"])),
        _ => Reply::Json(200, json!({ "kind": "Node", "metadata": { "name": "n1" } })),
    })
    .await;
    let (permit, clusters) = (acting(), with_list(&api, &["shop"]));
    let cluster = clusters.of(&permit, None).unwrap();

    let namespaces = place(&cluster, "Namespace", None).await;
    let page = cluster.list(&namespaces, &ListQuery::default(), MaskDetail::Clean).await.unwrap();
    assert_eq!(page.items.len(), 1);
    assert_eq!(namespaces.object("other").unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED);
    let node = target(&cluster, "Node", "n1").await;
    cluster.get(&node, MaskDetail::Clean).await.unwrap();
    let before = api.seen().len();
    let patch = || kubernetes::client::ObjectPatch::Merge(json!({}).into());
    let writer = cluster.write().unwrap();
    assert_eq!(writer.patch(&node, patch(), None).await.unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED);
    let shop = namespaces.object("shop").unwrap();
    assert_eq!(writer.patch(&shop, patch(), None).await.unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED);
    assert_eq!(api.seen().len(), before);
}

#[tokio::test]
async fn names_and_selectors_that_could_bend_an_address_are_refused() {
    let api = Api::start(|_, _| Reply::Json(200, named(&[]))).await;
    let (permit, clusters) = (reading(), api.clusters());
    let cluster = clusters.of(&permit, None).unwrap();
    let pods = place(&cluster, "Pod", Some("shop")).await;
    let roles = place(&cluster, "ClusterRole", None).await;
    for name in [
        "../../secrets/x",
        "a/b",
        "a%2fb",
        "..",
        ".",
        "a?x=1",
        "-x",
        "--all",
        "a b",
        "a\n",
        "",
        "A",
        "a:b",
        "a;id",
        "$(id)",
    ] {
        assert_eq!(pods.object(name).unwrap_err().code, Code::InvalidArgument, "{name:?}");
    }
    assert_eq!(roles.object("system:node-Proxier").unwrap().name(), "system:node-Proxier");
    for name in ["system:..", "-x", "a/b", "a%b", "."] {
        assert_eq!(roles.object(name).unwrap_err().code, Code::InvalidArgument, "{name:?}");
    }
    let bad = |labels: &str| ListQuery { labels: Some(labels.into()), ..ListQuery::default() };
    for labels in ["", "a=b&watch=true", "a in (b", "a=b)", "=b", "a=b c", "a;b", "a=b\n"] {
        let failure = cluster.list(&pods, &bad(labels), MaskDetail::Clean).await.unwrap_err();
        assert_eq!(failure.code, Code::InvalidArgument, "{labels:?}");
    }
    let fields = ListQuery { fields: Some("a=b&c".into()), ..ListQuery::default() };
    assert_eq!(cluster.list(&pods, &fields, MaskDetail::Clean).await.unwrap_err().code, Code::InvalidArgument);
    assert!(api.seen().is_empty());

    let good = bad("app=web,tier!=db,env in (a, b),!old,x.example/y");
    cluster.list(&pods, &good, MaskDetail::Clean).await.unwrap();
    let node = cluster.kind("Node").await.unwrap();
    let failure = cluster.place(&node, Some("shop"), Wildcard::Refused).await.unwrap_err();
    assert_eq!(failure.code, Code::InvalidArgument);
}
