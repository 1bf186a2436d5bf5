//! What a text cites, as far as the audit log knows it.

use crate::bench::{Bench, call, on_every_backend, opening, principal, session_id};
use crate::runs::{open, run};
use domain::{CallId, Code, RunId};
use store::{CloseFacts, EvidenceCitation, TenantStore};

on_every_backend!(
    calls_of_the_session_and_runs_of_the_principal_are_known_and_nothing_else_is,
    a_call_that_lies_too_far_back_is_unknown,
    a_text_that_cites_nothing_costs_nothing,
);

async fn made(shelf: &TenantStore, number: u8, session: u8, code: Option<Code>) -> String {
    let call = call(number, Some(session_id(session)));
    let begun = shelf.begin(&opening(&call)).await.unwrap().opened().unwrap();
    shelf.audit().close_now(begun.receipt, &CloseFacts { code, bytes: 1, ..CloseFacts::default() }).await.unwrap();
    call.id.to_string()
}

async fn calls_of_the_session_and_runs_of_the_principal_are_known_and_nothing_else_is(bench: Bench) {
    let acme = bench.acme();
    let now = bench.store.now().await.unwrap();
    let (fine, failed) = (made(&acme, 1, 1, None).await, made(&acme, 2, 1, Some(Code::Deadline)).await);
    let elsewhere = made(&acme, 3, 2, None).await;
    let open_call = call(4, Some(session_id(1)));
    let begun = acme.begin(&opening(&open_call)).await.unwrap().opened().unwrap();
    let mine = open(&acme.runs(), &run(1, now)).await.run;
    let mut theirs = run(2, now);
    theirs.asked.requester = principal("other");
    let theirs = open(&acme.runs(), &theirs).await.run;
    let never = CallId::from_random([9; 16]);

    let text = format!("{}: {failed}, {fine}; {elsewhere} {} {never} {} {fine}", mine.id, theirs.id, open_call.id);
    let EvidenceCitation { known, unknown } =
        acme.references(Some(session_id(1)), &principal("agent"), &text).await.unwrap();

    let told: Vec<_> =
        known.iter().map(|known| (known.id.as_str(), known.tool.as_str(), known.outcome.as_str())).collect();
    let (mine, still_open) = (mine.id.to_string(), open_call.id.to_string());
    assert_eq!(
        told,
        [
            (mine.as_str(), "k8s_scale", "pending_approval"),
            (failed.as_str(), "k8s_get", "deadline"),
            (fine.as_str(), "k8s_get", "ok"),
            (still_open.as_str(), "k8s_get", "open"),
        ]
    );
    assert!(known.iter().all(|known| known.at >= now));
    assert_eq!(unknown, [elsewhere, theirs.id.to_string(), never.to_string()]);

    let stranger = acme.references(Some(session_id(1)), &principal("other"), &fine).await.unwrap();
    assert_eq!(stranger, EvidenceCitation { known: Vec::new(), unknown: vec![fine.clone()] });
    let without = acme.references(None, &principal("agent"), &format!("{fine} {mine}")).await.unwrap();
    assert_eq!((without.known.len(), without.unknown), (1, vec![fine.clone()]));
    let abroad = bench.store.of(&crate::bench::tenant("bolt"));
    assert!(abroad.references(Some(session_id(1)), &principal("agent"), &text).await.unwrap().known.is_empty());
    acme.audit().close_now(begun.receipt, &CloseFacts::default()).await.unwrap();
}

async fn a_call_that_lies_too_far_back_is_unknown(bench: Bench) {
    let acme = bench.acme();
    let old = made(&acme, 1, 1, None).await;
    let entry = store::AuditEntry::new(store::Phase::Admin);
    // All at once, so that a store on a disk can write many in one go.
    let mut notes = tokio::task::JoinSet::new();
    for _ in 0..4_096 {
        let (acme, entry) = (acme.clone(), entry.clone());
        notes.spawn(async move { acme.audit().note(&entry).await.map(|_| ()) });
    }
    notes.join_all().await.into_iter().for_each(Result::unwrap);
    let new = made(&acme, 2, 1, None).await;
    let cited = acme.references(Some(session_id(1)), &principal("agent"), &format!("{old} {new}")).await.unwrap();
    assert_eq!((cited.known[0].id.clone(), cited.unknown), (new, vec![old]));
}

async fn a_text_that_cites_nothing_costs_nothing(bench: Bench) {
    let before = bench.store.round_trips();
    let cited =
        bench.acme().references(Some(session_id(1)), &principal("agent"), "call_tool said run_id").await.unwrap();
    assert_eq!((cited, bench.store.round_trips()), (EvidenceCitation::default(), before));
    let many: String = (0..100).map(|n| format!("{} ", RunId::from_random([n; 16]))).collect();
    let cited = bench.acme().references(None, &principal("agent"), &many).await.unwrap();
    assert_eq!((cited.unknown.len(), bench.store.round_trips() - before), (100, 1));
}
