//! What waits for a person: in order, page by page, counted, and at the price of one page.

use crate::bench::{Bench, on_every_backend, principal, tenant};
use crate::runs::{entry, fold, open, run, said};
use domain::RunId;
use domain::run::{Run, Verdict};
use std::time::Duration;
use store::RunCasOutcome;

on_every_backend!(
    what_waits_is_paged_by_its_expiry_and_counted,
    many_waiting_runs_cost_what_ten_do,
    what_a_person_put_off_is_theirs_alone_and_comes_back,
);

fn numbered(seed: &Run, number: u64) -> Run {
    let mut bits = [0; 16];
    bits[..8].copy_from_slice(&number.to_be_bytes());
    let mut run = Run { id: RunId::from_random(bits), ..seed.clone() };
    // Three of them expire in the same moment.
    run.asked.expires_at = seed.asked.expires_at.plus(Duration::from_secs(number / 3));
    run.asked.deciders = 1;
    run
}

async fn what_waits_is_paged_by_its_expiry_and_counted(bench: Bench) {
    let (runs, now) = (bench.acme().runs(), bench.store.now().await.unwrap());
    assert_eq!(runs.waiting(None, 5, &[]).await.unwrap().runs, []);
    let seed = run(1, now);
    let mut held = Vec::new();
    for number in 0..13 {
        held.push(open(&runs, &numbered(&seed, number)).await);
    }
    assert_eq!(runs.waiting_count().await.unwrap().0, 13);
    let decided = fold(&runs, &held[4], &said("ana", Verdict::Reject, now), now).await;
    fold(&runs, &held[5], &said("ana", Verdict::Approve, now), now).await;
    assert_eq!(runs.waiting_count().await.unwrap().0, 11);
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = runs.waiting(after, 4, &[]).await.unwrap();
        assert_eq!(page.waiting, 11);
        seen.extend(page.runs.iter().map(|run| (run.expires_at, run.id.to_string())));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert!(seen.is_sorted() && seen.len() == 11, "{seen:?}");
    let last = runs.briefs(&[decided.run.id]).await.unwrap().remove(0);
    // What it was done to outlives its arguments.
    assert_eq!((last.decided_by.as_deref(), last.object.as_deref(), last.yeses), (Some("ana"), Some("web"), 0));
    let whole = runs.find(decided.run.id).await.unwrap().0.unwrap().run.asked;
    assert_eq!((whole.arguments.as_str(), whole.object().as_deref()), (r#"{"redacted":true}"#, Some("web")));
    let first = runs.briefs(&[held[0].run.id]).await.unwrap().remove(0);
    assert_eq!((first.decided_by.as_deref(), first.object.as_deref()), (None, Some("web")));
}

async fn many_waiting_runs_cost_what_ten_do(bench: Bench) {
    let (runs, now) = (bench.acme().runs(), bench.store.now().await.unwrap());
    let seed = run(1, now);
    let fill = async |from: u64, to: u64| {
        let all: Vec<Run> = (from..to).map(|number| numbered(&seed, number)).collect();
        let entry = entry();
        let opened = futures_util::future::join_all(all.iter().map(|run| runs.open(run, None, u64::MAX, &entry))).await;
        assert!(opened.iter().all(|opened| matches!(opened, Ok(RunCasOutcome::Done(_)))));
    };
    let cost = async || {
        let before = bench.store.round_trips();
        let page = runs.waiting(None, 10, &[]).await.unwrap();
        assert_eq!(page.runs.len(), 10);
        (bench.store.round_trips() - before, page.waiting)
    };
    fill(0, 10).await;
    let few = cost().await;
    fill(10, 400).await;
    let many = cost().await;
    assert_eq!((few, many), ((2, 10), (2, 400)));
}

async fn what_a_person_put_off_is_theirs_alone_and_comes_back(bench: Bench) {
    let (acme, now) = (bench.acme(), bench.store.now().await.unwrap());
    let (runs, off) = (acme.runs(), acme.put_off());
    let (ana, bob) = (principal("ana"), principal("bob"));
    let seed = run(1, now);
    let mut ids = Vec::new();
    for number in 0..6 {
        ids.push(open(&runs, &numbered(&seed, number)).await.run.id);
    }
    assert_eq!(off.of(&ana).await.unwrap(), []);
    off.put_off(&ana, ids[0], Duration::from_secs(600)).await.unwrap();
    off.put_off(&ana, ids[2], Duration::from_secs(60)).await.unwrap();
    off.put_off(&ana, ids[1], Duration::from_millis(1)).await.unwrap();
    bench.pass(bench.store.now().await.unwrap().plus(Duration::from_millis(2))).await;
    let hidden: Vec<RunId> = off.of(&ana).await.unwrap().iter().map(|run| run.id).collect();
    assert_eq!(hidden, [ids[2], ids[0]], "the soonest first");
    assert_eq!(off.of(&bob).await.unwrap(), []);
    assert_eq!(bench.store.of(&tenant("other")).put_off().of(&ana).await.unwrap(), []);
    let page = runs.waiting(None, 4, &hidden).await.unwrap();
    let shown: Vec<RunId> = page.runs.iter().map(|run| run.id).collect();
    assert_eq!((shown, page.next, page.waiting), (vec![ids[1], ids[3], ids[4], ids[5]], None, 6));
    off.put_off(&ana, ids[0], Duration::ZERO).await.unwrap();
    off.put_off(&ana, ids[2], Duration::ZERO).await.unwrap();
    off.put_off(&ana, ids[2], Duration::ZERO).await.unwrap();
    assert_eq!(off.of(&ana).await.unwrap(), []);
    // Whoever puts everything off is not given unbounded room.
    for number in 0..=100 {
        off.put_off(&bob, numbered(&seed, 1_000 + number).id, Duration::from_secs(600)).await.unwrap();
    }
    assert_eq!(off.of(&bob).await.unwrap().len(), 100);
}
