//! Usage: a day to which several add, each batch once.

use crate::bench::*;
use domain::usage::{UsageCount, UsageDay, UsageGroup, UsagePlace};
use store::{UsageBatch, UsageDate};

on_every_backend!(batches_are_added_up_and_each_counts_once, days_are_apart_and_one_without_usage_is_empty);

fn batch(day: &str, number: u64) -> UsageBatch {
    let mut usage = UsageDay::default();
    let place = UsagePlace { tool: Some(("k8s_get", "k8s")), principal: "ana", session: None };
    usage.note(place, &UsageCount { calls: 2, ..UsageCount::default() });
    UsageBatch { day: UsageDate::parse(day).unwrap(), number, usage }
}

async fn calls(bench: &Bench, day: &str) -> u64 {
    let days = bench.acme().used().days(&[UsageDate::parse(day).unwrap()]).await.unwrap();
    assert_eq!(days[0].rows(UsageGroup::Tool).values().map(|row| row.calls).sum::<u64>(), days[0].total.calls);
    days[0].total.calls
}

async fn batches_are_added_up_and_each_counts_once(bench: Bench) {
    let used = bench.acme().used();
    let before = bench.acme().usage().await.unwrap();
    for number in [1, 2, 2, 1, 3] {
        used.add(&batch("2026-11-18", number)).await.unwrap();
    }
    assert_eq!(calls(&bench, "2026-11-18").await, 6, "what was sent again counts once");
    assert_eq!(bench.acme().usage().await.unwrap(), before, "it counts against no quota");
}

async fn days_are_apart_and_one_without_usage_is_empty(bench: Bench) {
    let used = bench.acme().used();
    used.add(&batch("2026-11-17", 1)).await.unwrap();
    used.add(&batch("2026-11-18", 2)).await.unwrap();
    assert_eq!([calls(&bench, "2026-11-17").await, calls(&bench, "2026-11-18").await], [2, 2]);
    assert_eq!(calls(&bench, "2026-11-19").await, 0);
}
