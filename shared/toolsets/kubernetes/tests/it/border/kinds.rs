//! How a caller's spelling finds a kind.

use crate::border::support::*;
use serde_json::json;

#[tokio::test]
async fn a_kind_is_found_by_every_spelling_people_use() {
    let api = Api::start(|_, _| Reply::Silence).await;
    let (permit, clusters) = (reading(), api.clusters());
    let cluster = clusters.of(&permit, None).unwrap();
    let table = [
        ("Deployment", "deployments.apps"),
        ("deployments", "deployments.apps"),
        ("deployment", "deployments.apps"),
        ("deploy", "deployments.apps"),
        ("Deployment.apps", "deployments.apps"),
        ("apps/v1/Deployment", "deployments.apps"),
        ("rollouts.argoproj.io", "rollouts.argoproj.io"),
        ("argoproj.io/v1alpha1/Rollout", "rollouts.argoproj.io"),
        ("v1/Pod", "pods"),
        ("po", "pods"),
        ("secrets", "secrets"),
        ("widgets.two.example", "widgets.two.example"),
    ];
    for (wanted, found) in table {
        assert_eq!(cluster.kind(wanted).await.unwrap().full_name(), found, "{wanted}");
    }
    assert_eq!(api.discoveries(), 1, "discovery is kept");
}

#[tokio::test]
async fn what_is_no_kind_is_told_with_what_may_have_been_meant() {
    let api = Api::start(|_, _| Reply::Silence).await;
    let (permit, clusters) = (reading(), api.clusters());
    let cluster = clusters.of(&permit, None).unwrap();

    let failure = cluster.kind("Deploymnet").await.unwrap_err();
    assert_eq!(failure.code, kubernetes::codes::UNKNOWN_KIND);
    assert_eq!(failure.did_you_mean, ["Deployment"]);
    let failure = cluster.kind("Widget").await.unwrap_err();
    assert_eq!(failure.code, kubernetes::codes::AMBIGUOUS_KIND);
    assert_eq!(failure.details.unwrap()["candidates"], json!(["widgets.one.example", "widgets.two.example"]));
    for strange in ["pods/exec", "nodes/n1/proxy", "../secrets", "Evil", "", "--all", "apps/v2/Deployment", "v1/", "/"]
    {
        assert_eq!(cluster.kind(strange).await.unwrap_err().code, kubernetes::codes::UNKNOWN_KIND, "{strange}");
    }
}

#[tokio::test]
async fn an_unknown_kind_is_looked_for_once_more_because_it_may_be_new() {
    let api = Api::start(|_, _| Reply::Silence).await;
    let (permit, clusters) = (reading(), api.clusters());
    let cluster = clusters.of(&permit, None).unwrap();
    cluster.kind("Newcomer").await.unwrap_err();
    assert_eq!(api.discoveries(), 1, "what was asked just now is not asked again");
    cluster.kind("Newcomer").await.unwrap_err();
    assert_eq!(api.discoveries(), 2);
}
