//! The beginning of a call and the audit log.

use crate::bench::{Bench, LIVES, call, on_every_backend, opening, principal, session, session_id, tenant};
use domain::{Caller, Code, RateExceeded};
use std::sync::Arc;
use std::time::Duration;
use store::{Actor, ActorKind, AuditEntry, CallBeginning, CallOpening, CallRate, CallStart, CloseFacts, Phase, Store};

on_every_backend!(
    a_call_begins_in_one_round_trip,
    a_call_without_a_session_of_its_own_begins_without_one,
    calls_of_a_tenant_are_counted_together,
    a_call_over_the_rate_writes_nothing,
    a_callers_share_ends_before_the_tenants_rate_once_another_calls,
    refusals_of_a_caller_are_one_entry_a_minute,
    a_closing_entry_names_its_call_and_its_end,
    what_is_queued_is_written_before_the_store_closes,
    a_note_stands_in_the_audit_log_with_its_actor,
    the_audit_log_is_read_in_pages,
);

async fn a_call_begins_in_one_round_trip(bench: Bench) {
    let acme = bench.acme();
    let now = bench.store.now().await.unwrap();
    let opened = acme.sessions().open(&session(1, now), LIVES, &AuditEntry::new(Phase::Transition)).await.unwrap();
    let call = call(1, Some(session_id(1)));
    let before = bench.store.round_trips();

    let CallStart { receipt, session, calls_this_minute, now: begun_at, .. } =
        acme.begin(&opening(&call)).await.unwrap().opened().unwrap();

    assert_eq!(bench.store.round_trips() - before, 1);
    assert_eq!((session, calls_this_minute, receipt.call()), (Some(opened), 1, call.id));
    assert!(begun_at >= now);
    let entry = acme.audit().page(None, 10).await.unwrap().remove(1).entry; // behind the session's own
    for (field, value) in
        [("phase", "open"), ("tenant", "acme"), ("tool", "k8s_get"), ("effect", "read"), ("args", "hmac:abc")]
    {
        assert_eq!(entry[field], value, "{entry}");
    }
    assert_eq!(entry["call"], call.id.to_string());
    assert_eq!(entry["actor"]["scopes"][0], "tools:read");
    assert_eq!(entry["replica"], bench.store.replica());
    assert_eq!(bench.store.open_receipts(), 1);
    acme.audit().close_now(receipt, &CloseFacts::default()).await.unwrap();
    assert_eq!(bench.store.open_receipts(), 0);
}

async fn a_call_without_a_session_of_its_own_begins_without_one(bench: Bench) {
    let acme = bench.acme();
    let now = bench.store.now().await.unwrap();
    let foreign = domain::Session { owner: principal("other"), ..session(1, now) };
    acme.sessions().open(&foreign, LIVES, &AuditEntry::new(Phase::Transition)).await.unwrap();
    for (number, session) in [(1, Some(session_id(1))), (2, Some(session_id(2))), (3, None)] {
        let begun = acme.begin(&opening(&call(number, session))).await.unwrap().opened().unwrap();
        assert_eq!((begun.session, begun.calls_this_minute), (None, u64::from(number)));
        acme.audit().close_now(begun.receipt, &CloseFacts::default()).await.unwrap();
    }
}

async fn calls_of_a_tenant_are_counted_together(bench: Bench) {
    let (acme, bolt) = (bench.acme(), bench.store.of(&tenant("bolt")));
    for (shelf, wanted) in [(&acme, 1), (&acme, 2), (&bolt, 1), (&acme, 3)] {
        let begun = shelf.begin(&opening(&call(1, None))).await.unwrap().opened().unwrap();
        assert_eq!(begun.calls_this_minute, wanted);
        shelf.audit().close_now(begun.receipt, &CloseFacts::default()).await.unwrap();
    }
}

async fn a_call_over_the_rate_writes_nothing(bench: Bench) {
    let acme = bench.acme();
    let rate = CallRate { tenant: 2, caller: 9 };
    for number in [1, 2] {
        let begun = acme.begin(&CallOpening { rate, ..opening(&call(number, None)) }).await.unwrap().opened().unwrap();
        acme.audit().close_now(begun.receipt, &CloseFacts::default()).await.unwrap();
    }
    let entries = acme.audit().page(None, 100).await.unwrap().len();

    for number in 3..40 {
        let (begun, before) = (call(number, None), bench.store.round_trips());
        let refused = acme.begin(&CallOpening { rate, ..opening(&begun) }).await.unwrap();
        let CallBeginning::Exceeded(exceeded, left) = refused else { panic!("call {number} was let through") };
        assert_eq!((exceeded, bench.store.round_trips() - before), (RateExceeded::Tenant(2), 1));
        assert!(left > Duration::from_secs(30) && left <= Duration::from_secs(60), "{left:?}");
    }
    assert_eq!(acme.audit().page(None, 100).await.unwrap().len(), entries);
    assert_eq!(bench.store.open_receipts(), 0);
    let bolt = bench.store.of(&tenant("bolt"));
    let begun = bolt.begin(&CallOpening { rate, ..opening(&call(50, None)) }).await.unwrap().opened().unwrap();
    assert_eq!(begun.calls_this_minute, 1, "another tenant has a rate of its own");
    bolt.audit().close_now(begun.receipt, &CloseFacts::default()).await.unwrap();
}

async fn a_callers_share_ends_before_the_tenants_rate_once_another_calls(bench: Bench) {
    let acme = bench.acme();
    let rate = CallRate { tenant: 9, caller: 1 };
    let mine = call(1, None);
    let other = Caller { principal: principal("other"), ..(*mine.caller).clone() };
    let mut theirs = call(2, None);
    theirs.caller = Arc::new(other);
    for (number, wanted) in [(&mine, true), (&mine, true), (&theirs, true), (&theirs, false), (&mine, false)] {
        match acme.begin(&CallOpening { rate, ..opening(number) }).await.unwrap() {
            CallBeginning::Opened(begun) => {
                assert!(wanted);
                acme.audit().close_now(begun.receipt, &CloseFacts::default()).await.unwrap();
            }
            CallBeginning::Exceeded(exceeded, _) => {
                assert_eq!((wanted, exceeded), (false, RateExceeded::Caller(1)));
            }
        }
    }
}

async fn refusals_of_a_caller_are_one_entry_a_minute(bench: Bench) {
    let acme = bench.acme();
    let call = call(1, None);
    let actor = |subject: &str| Actor {
        principal: principal(subject),
        kind: ActorKind::Agent,
        scopes: call.caller.scopes,
        token: None,
    };
    let tool = Some((call.tool.clone(), call.toolset.clone()));
    for subject in ["ana", "ana", "bo", "ana", "bo"] {
        acme.note_refusal(actor(subject), tool.clone(), Code::RateLimited, "why".into()).await.unwrap();
    }
    let noted = loop {
        let entries = acme.audit().page(None, 100).await.unwrap();
        if entries.len() >= 2 {
            break entries;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(noted.len(), 2);
    let entry = &noted[0].entry;
    assert_eq!((&entry["phase"], &entry["outcome"]["code"]), (&"denied".into(), &"rate_limited".into()));
    assert_eq!((&entry["actor"]["sub"], &noted[1].entry["actor"]["sub"]), (&"ana".into(), &"bo".into()));
    assert_eq!(entry["decision"]["basis"], "why");
}

async fn a_closing_entry_names_its_call_and_its_end(bench: Bench) {
    let acme = bench.acme();
    let call = call(1, Some(session_id(1)));
    let begun = acme.begin(&opening(&call)).await.unwrap().opened().unwrap();
    let facts = CloseFacts { code: Some(Code::Deadline), bytes: 812, ..CloseFacts::default() };
    acme.audit().close_now(begun.receipt, &facts).await.unwrap();
    let entry = acme.audit().page_back(None, 1).await.unwrap().remove(0).entry;
    assert_eq!((&entry["phase"], &entry["call"]), (&"close".into(), &call.id.to_string().into()));
    assert_eq!(entry["outcome"], serde_json::json!({ "code": "deadline", "bytes": 812 }));
    assert_eq!(entry["session"], session_id(1).to_string());
}

async fn what_is_queued_is_written_before_the_store_closes(bench: Bench) {
    let acme = bench.acme();
    let rounds = 600;
    for number in 0..rounds {
        let begun =
            acme.begin(&opening(&call(u8::try_from(number % 200).unwrap(), None))).await.unwrap().opened().unwrap();
        let before = bench.store.round_trips();
        acme.audit().close(begun.receipt, &CloseFacts::default()).await.unwrap();
        assert_eq!(bench.store.round_trips(), before, "nobody waits for a queued close");
    }
    assert_eq!(bench.store.open_receipts(), 0);
    let written = |shelf: store::TenantStore| async move {
        let entries = shelf.audit().page(None, 10_000).await.unwrap();
        entries.iter().filter(|noted| noted.entry["phase"] == "close").count()
    };
    if bench.config.url == "memory:" {
        // Nothing outlives a closed memory store, so there the queue is watched instead.
        while written(acme.clone()).await < rounds {
            tokio::task::yield_now().await;
        }
        bench.store.close().await;
        return;
    }
    bench.store.close().await;
    assert!(acme.begin(&opening(&call(1, None))).await.is_err(), "a closed store begins nothing");
    let again = Store::open(&bench.config).await.unwrap();
    assert_eq!(written(again.of(&tenant("acme"))).await, rounds);
}

async fn a_note_stands_in_the_audit_log_with_its_actor(bench: Bench) {
    let audit = bench.acme().audit();
    let actor = Actor {
        principal: principal("ops"),
        kind: ActorKind::Person,
        scopes: domain::Scopes::parse("tenant:admin"),
        token: Some("hmac:t".into()),
    };
    let id = audit.note(&AuditEntry { actor: Some(actor), ..AuditEntry::new(Phase::Admin) }).await.unwrap();
    let noted = audit.page(None, 1).await.unwrap().remove(0);
    assert_eq!(noted.id, id);
    assert_eq!(noted.entry["at"]["store"], id.item.at.to_string());
    let wanted = serde_json::json!({ "iss": "https://login.example", "sub": "ops", "kind": "person", "scopes": ["tenant:admin"], "token": "hmac:t" });
    assert_eq!(noted.entry["actor"], wanted);
    assert!(domain::AuditId::parse(noted.entry["id"].as_str().unwrap()).is_ok());
}

async fn the_audit_log_is_read_in_pages(bench: Bench) {
    let audit = bench.acme().audit();
    for _ in 0..5 {
        audit.note(&AuditEntry::new(Phase::Denied)).await.unwrap();
    }
    let first = audit.page(None, 3).await.unwrap();
    let second = audit.page(Some(first[2].id), 3).await.unwrap();
    assert_eq!((first.len(), second.len()), (3, 2));
    assert!(first[2].id < second[0].id);
}
