//! Of several operators one acts, and another takes over.

use crate::on_a_cluster::yard::Yard;
use operator::context::OperatorSettings;
use serde_json::json;
use std::time::{Duration, Instant};

fn tool() -> serde_json::Value {
    json!({ "image": "registry.example/tool:1" })
}

/// Long enough that nobody loses it by being slow, short enough to wait for its end.
const LEASE: Duration = Duration::from_secs(30);

fn settings(yard: &Yard, identity: &str) -> OperatorSettings {
    OperatorSettings { lease: LEASE, ..yard.settings(identity) }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_operators_one_acts_and_the_other_takes_over_when_it_is_silent() {
    let Some(yard) = Yard::open().await else { return };
    let one = yard.operator_with(settings(&yard, "one")).await;
    let holds = |name: &'static str| move |lease: &serde_json::Value| lease["spec"]["holderIdentity"] == name;
    yard.see("Lease", "quartermaster-operator", "one", holds("one")).await;
    let two = yard.operator_with(settings(&yard, "two")).await;
    yard.tool("first", tool()).await;
    yard.see_condition("LanguageTool", "first", "Ready", ("True", "ReplicasReady")).await;
    assert!(!yard.writes(&yard.user("one")).is_empty());
    let idle = yard.writes(&yard.user("two"));
    assert!(idle.is_empty(), "the one that waits writes nothing: {idle:?}");

    one.kill();
    let began = Instant::now();
    yard.see("Lease", "quartermaster-operator", "two", holds("two")).await;
    assert!(began.elapsed() >= LEASE / 3, "a lease that was renewed a moment ago is not taken");
    yard.tool("second", tool()).await;
    yard.see_condition("LanguageTool", "second", "Ready", ("True", "ReplicasReady")).await;
    // What the first one made was found as it should be.
    let again: Vec<_> = yard.writes(&yard.user("two")).into_iter().filter(|write| write.name == "first").collect();
    assert!(again.is_empty(), "{again:?}");

    // An operator that is stopped in order lets go of the lease at once.
    assert!(two.stop().await);
    let lease = yard.find("Lease", "quartermaster-operator").await.unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], serde_json::Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_whose_lease_was_taken_stops_acting() {
    let Some(yard) = Yard::open().await else { return };
    let operator = yard.operator_with(settings(&yard, "one")).await;
    yard.see("Lease", "quartermaster-operator", "a holder", |lease| lease["spec"]["holderIdentity"] == "one").await;
    let api = yard.dynamic("Lease");
    yard.until("the lease to be taken", async || {
        let mut lease = api.get("quartermaster-operator").await.unwrap();
        lease.data["spec"]["holderIdentity"] = json!("thief");
        let taken = api.replace("quartermaster-operator", &kube::api::PostParams::default(), &lease).await;
        taken.is_ok().then_some(())
    })
    .await;
    assert!(!operator.ended().await, "it ends, to begin anew");
    yard.tool("late", tool()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(yard.find("Deployment", "late").await.is_none());
}
