//! What is due in all tenants: hints that only lower, lines that are set and taken out, and who is there.

use crate::bench::*;
use crate::runs::{entry, run};
use domain::Moment;
use std::time::Duration;
use store::{Duty, RecordVersion, RunCasOutcome, TenantAtRest, VersionedRun};

on_every_backend!(
    a_hint_only_lowers_and_what_is_set_holds,
    what_is_due_comes_first_and_what_is_not_due_is_not_told,
    a_look_that_is_moved_is_hinted_at_its_own_time,
    an_entry_that_nobody_sealed_is_seen_at_rest,
);

const PRESENT_FOR: Duration = Duration::from_secs(60);

fn runs(name: &str) -> [Duty; 1] {
    [Duty::Runs(tenant(name))]
}

async fn due(bench: &Bench) -> Vec<Duty> {
    bench.store.duties().look(None, PRESENT_FOR, 99).await.unwrap().due
}

async fn a_hint_only_lowers_and_what_is_set_holds(bench: Bench) {
    let (duties, now) = (bench.store.duties(), bench.store.now().await.unwrap());
    let (soon, later) = (now, now.plus(Duration::from_secs(3600)));
    duties.hint(&runs("acme"), later).await.unwrap();
    assert_eq!(due(&bench).await, []);
    duties.hint(&runs("acme"), soon).await.unwrap();
    duties.hint(&runs("acme"), later).await.unwrap();
    assert_eq!(due(&bench).await, runs("acme"), "the earlier time stays");
    duties.set(&runs("acme"), later).await.unwrap();
    assert_eq!(due(&bench).await, []);
    assert_eq!(duties.tenants_with_runs().await.unwrap(), [tenant("acme")], "due or not");
    duties.remove(&runs("acme")).await.unwrap();
    assert_eq!(duties.tenants_with_runs().await.unwrap(), []);
}

async fn what_is_due_comes_first_and_what_is_not_due_is_not_told(bench: Bench) {
    let (duties, now) = (bench.store.duties(), bench.store.now().await.unwrap());
    let audit = [Duty::Audit(tenant("beta"), "rep_dead".into())];
    duties.set(&audit, now).await.unwrap();
    duties.set(&runs("acme"), Moment::from_millis(0)).await.unwrap();
    duties.set(&runs("late"), now.plus(Duration::from_secs(3600))).await.unwrap();
    let first = duties.look(Some(now), PRESENT_FOR, 99).await.unwrap();
    assert_eq!(first.due, [runs("acme"), audit.clone()].concat());
    assert!(first.now >= now);
    assert_eq!(first.replicas, [bench.store.replica()], "whoever looks is there");
    duties.leave().await.unwrap();
    assert_eq!(duties.tenants_with_runs().await.unwrap(), [tenant("acme"), tenant("late")]);
}

async fn a_look_that_is_moved_is_hinted_at_its_own_time(bench: Bench) {
    let now = bench.store.now().await.unwrap();
    let asked_at = Moment::from_millis(now.millis() - 10_000);
    // Of a run that is gone nothing is written but the hint beside the commit.
    let gone = VersionedRun { run: run(1, asked_at), version: RecordVersion::new(9) };
    let acme = bench.acme().runs();
    assert_eq!(acme.look_again(&gone, None, &entry()).await.unwrap(), RunCasOutcome::Gone);
    assert_eq!(due(&bench).await, [], "the run itself says later");
    assert_eq!(acme.look_again(&gone, Some(now), &entry()).await.unwrap(), RunCasOutcome::Gone);
    assert_eq!(due(&bench).await, runs("acme"));
}

async fn an_entry_that_nobody_sealed_is_seen_at_rest(bench: Bench) {
    let (acme, now) = (bench.acme(), bench.store.now().await.unwrap());
    assert_eq!(acme.at_rest(now).await.unwrap(), TenantAtRest::default());
    let entry = store::AuditEntry::new(store::Phase::Admin);
    acme.audit().note(&entry).await.unwrap();
    let rest = acme.at_rest(now).await.unwrap();
    assert!(rest.unsealed && rest.oldest_entry.is_some_and(|at| at >= now), "{rest:?}");
    while acme.seal(99).await.unwrap().behind {}
    assert!(!acme.at_rest(now).await.unwrap().unsealed);
}
