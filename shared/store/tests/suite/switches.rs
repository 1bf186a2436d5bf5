//! Kill switches: set, lifted, ended, and what another handle of the same store sees of them.

use crate::bench::*;
use domain::{KnownSwitches, Switch, SwitchMode, SwitchOwner, SwitchSubject, Tenant};
use std::time::Duration;
use store::{SwitchChange, Topic, WakeUp};

on_every_backend!(
    a_switch_is_in_force_for_its_tenant_until_it_is_lifted,
    one_that_has_ended_is_taken_out_once,
    a_change_wakes_whoever_watches,
);

fn tenant(name: &str) -> Tenant {
    Tenant::parse(name).unwrap()
}

fn switch(whose: Option<&str>, on: &str) -> Switch {
    Switch {
        tenant: whose.map(tenant),
        on: SwitchSubject::parse(on).unwrap(),
        mode: SwitchMode::Stop,
        reason: "because".into(),
        owner: SwitchOwner::Operator,
        by: principal("olga"),
        from: tenant("acme"),
        at: domain::Moment::from_secs(1),
        until: None,
    }
}

async fn a_switch_is_in_force_for_its_tenant_until_it_is_lifted(bench: Bench) {
    let (switches, now) = (bench.store.switches(), bench.store.now().await.unwrap());
    let count = |name: &str| switches.in_force(&tenant(name), now).switches().len();
    assert_eq!(
        switches.in_force(&tenant("acme"), now).switches()[0].mode,
        SwitchMode::ReadOnly,
        "nobody has looked yet"
    );
    switches.ensure_read().await.unwrap();
    assert_eq!(count("acme"), 0);
    let own = switch(Some("acme"), "toolset:k8s");
    assert_eq!(switches.set(own.clone(), false).await.unwrap(), SwitchChange::Done);
    assert_eq!(switches.set(switch(None, "tenant"), false).await.unwrap(), SwitchChange::Done);
    assert_eq!((count("acme"), count("bolt")), (2, 1));
    let again = Switch { mode: SwitchMode::ReadOnly, ..own.clone() };
    assert_eq!(switches.set(again.clone(), false).await.unwrap(), SwitchChange::Done);
    assert_eq!(count("acme"), 2, "it took the place of the other");
    assert_eq!(switches.in_force(&tenant("acme"), now).stops().switches().len(), 1);
    assert!(!switches.refresh().await.unwrap(), "what is read is what was written");
    assert_eq!(switches.lift(&own.id(), false).await.unwrap(), SwitchChange::Done);
    assert_eq!(switches.lift(&own.id(), false).await.unwrap(), SwitchChange::Absent);
    assert_eq!((count("acme"), count("bolt")), (1, 1));
}

async fn one_that_has_ended_is_taken_out_once(bench: Bench) {
    let (switches, now) = (bench.store.switches(), bench.store.now().await.unwrap());
    let ended = Switch { until: Some(now), ..switch(None, "tenant") };
    let later = Switch { until: Some(now.plus(Duration::from_secs(3600))), ..switch(None, "tool:a") };
    for switch in [&ended, &later] {
        assert_eq!(switches.set(switch.clone(), false).await.unwrap(), SwitchChange::Done);
    }
    let in_force = switches.in_force(&tenant("acme"), now);
    assert_eq!(in_force.switches(), std::slice::from_ref(&later), "its end is its end");
    assert_eq!(switches.take_ended().await.unwrap(), [ended]);
    assert!(switches.take_ended().await.unwrap().is_empty());
    assert_eq!(switches.all(), [later]);
}

async fn a_change_wakes_whoever_watches(bench: Bench) {
    let switches = bench.store.switches();
    let mut watch = switches.watch();
    assert_eq!(watch.next().await, WakeUp::Resync);
    assert_eq!(switches.set(switch(None, "tenant"), false).await.unwrap(), SwitchChange::Done);
    assert_eq!(watch.next().await, WakeUp::Topic(Topic::Switches));
}
