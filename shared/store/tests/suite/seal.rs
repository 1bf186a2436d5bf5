//! Sealing the audit log, reading it with its links, and finding out that somebody meddled with it.

use crate::bench::{Bench, config, on_every_backend, principal, tenant};
use domain::json::hex;
use serde_json::{Value, json};
use std::collections::HashSet;
use store::{
    Actor, ActorKind, AuditEntry, AuditLogFlaw, AuditLogPage, Chain, ChainBreak, ChainLink, Commit, Committed, Config,
    Phase,
};
use store::{
    AuditLogPosition, EntryPlace, RecordKey, RecordVersion, SealedBatch, Store, StoreError, StreamId, StreamName,
    TenantStore, VerifiedAuditLog, VerifyError,
};
use testkit::redis::RedisServer;

on_every_backend!(
    an_audit_log_is_sealed_batch_by_batch,
    an_audit_log_with_nothing_new_costs_one_round_trip,
    links_are_computed_over_the_bytes_that_are_stored,
    of_many_sealers_each_entry_is_sealed_by_one,
    an_audit_log_is_in_order_while_it_is_written_and_sealed,
    a_page_shows_each_entry_with_its_link,
    links_made_after_a_page_was_read_do_not_disturb_the_next_page,
    each_tenant_has_a_chain_of_its_own,
    a_forged_link_behind_the_seal_is_found,
    a_seal_that_was_taken_away_is_found,
    a_seal_that_cannot_be_read_is_an_error_and_stays,
    whatever_a_caller_is_called_an_entry_is_one_line,
);

async fn note(shelf: &TenantStore, count: usize) -> Vec<EntryPlace> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(shelf.audit().note(&AuditEntry::new(Phase::Denied)).await.unwrap());
    }
    ids
}

/// Seals until nothing is behind.
pub(crate) async fn seal_all(shelf: &TenantStore) {
    while shelf.seal(100).await.unwrap().behind {}
}

pub(crate) fn verified(sealed: u64, unsealed: u64) -> VerifiedAuditLog {
    VerifiedAuditLog { entries: sealed + unsealed, sealed, unsealed }
}

pub(crate) async fn broken(shelf: &TenantStore) -> ChainBreak {
    match shelf.verify().await {
        Err(VerifyError::Broken(found)) => found,
        other => panic!("a broken chain should be found: {other:?}"),
    }
}

async fn an_audit_log_is_sealed_batch_by_batch(bench: Bench) {
    let acme = bench.acme();
    note(&acme, 5).await;
    assert_eq!(acme.verify().await.unwrap(), verified(0, 5));
    assert_eq!(acme.seal(3).await.unwrap(), SealedBatch { count: 3, behind: true });
    assert_eq!(acme.verify().await.unwrap(), verified(3, 2));
    assert_eq!(acme.seal(3).await.unwrap(), SealedBatch { count: 2, behind: false });
    assert_eq!(acme.seal(3).await.unwrap(), SealedBatch { count: 0, behind: false });
    note(&acme, 1).await;
    assert_eq!(acme.seal(0).await.unwrap(), SealedBatch { count: 1, behind: false }, "a batch is never empty");
    assert_eq!(acme.verify().await.unwrap(), verified(6, 0));
}

async fn an_audit_log_with_nothing_new_costs_one_round_trip(bench: Bench) {
    let acme = bench.acme();
    let trips = async || {
        let before = bench.store.round_trips();
        acme.seal(100).await.unwrap();
        bench.store.round_trips() - before
    };
    assert_eq!(trips().await, 1, "an empty audit log");
    note(&acme, 2).await;
    assert_eq!(trips().await, 3, "a batch");
    assert_eq!(trips().await, 1, "a sealed audit log");
}

async fn links_are_computed_over_the_bytes_that_are_stored(bench: Bench) {
    let acme = bench.acme();
    note(&acme, 3).await;
    seal_all(&acme).await;
    let stored = acme.read(&StreamName::audit(), None, 10).await.unwrap();
    let links = acme.read(&StreamName::links(), None, 10).await.unwrap();
    let mut chain = Chain::of(&tenant("acme"));
    let wanted: Vec<ChainLink> = stored.iter().map(|(id, body)| chain.add((*id).into(), body)).collect();
    let [(_, made)] = links.as_slice() else { panic!("one record of links for a batch: {links:?}") };
    let items: Vec<_> = wanted.iter().map(|link| (link.entry.to_string(), hex(&link.link[..8]))).collect();
    let record = json!({ "v": 2, "seq": 3, "link": format!("sha256:{}", hex(&wanted[2].link)), "items": items });
    assert_eq!(serde_json::from_slice::<Value>(made).unwrap(), record);
    let seal: Value = serde_json::from_slice(&acme.get(&RecordKey::seal()).await.unwrap().unwrap().body).unwrap();
    assert_eq!(seal, json!({ "v": 2, "seal": wanted[2] }));
}

async fn of_many_sealers_each_entry_is_sealed_by_one(bench: Bench) {
    let acme = bench.acme();
    note(&acme, 60).await;
    let sealers = (0..8).map(|_| {
        let acme = acme.clone();
        async move {
            let mut count = 0;
            for _ in 0..10 {
                count += acme.seal(7).await.unwrap().count;
            }
            count
        }
    });
    let counts = futures_util::future::join_all(sealers).await;
    assert_eq!(counts.iter().sum::<usize>(), 60, "{counts:?}");
    let records = acme.read(&StreamName::links(), None, 100).await.unwrap().len();
    assert!((9..=60).contains(&records), "at most seven items in a record: {records}");
    assert_eq!(acme.verify().await.unwrap(), verified(60, 0));
}

async fn an_audit_log_is_in_order_while_it_is_written_and_sealed(bench: Bench) {
    let acme = bench.acme();
    let writing = note(&acme, 150);
    let sealing = async {
        let mut count = 0;
        while count < 150 {
            count += acme.seal(4).await.unwrap().count;
            // A look that finds nothing may end at once, and the writer wants its turn.
            tokio::task::yield_now().await;
        }
    };
    let doubting = async {
        while acme.verify().await.unwrap().sealed < 150 {
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(writing, sealing, doubting);
    assert_eq!(acme.verify().await.unwrap(), verified(150, 0));
}

async fn a_page_shows_each_entry_with_its_link(bench: Bench) {
    let acme = bench.acme();
    let ids = note(&acme, 7).await;
    acme.seal(5).await.unwrap();
    let (mut place, mut seen) = (None, Vec::new());
    loop {
        let before = bench.store.round_trips();
        let page = acme.audit_log(place, 2).await.unwrap();
        assert_eq!(bench.store.round_trips() - before, 1, "a page is one round trip");
        assert_eq!((page.seal.unwrap().seq, page.loose), (5, vec![]));
        seen.extend(page.entries);
        // What a client is handed is text.
        place = page.next.map(|next| AuditLogPosition::parse(&next.to_string()).unwrap());
        if place.is_none() {
            break;
        }
    }
    assert_eq!(seen.iter().map(|entry| entry.id).collect::<Vec<_>>(), ids);
    let numbers: Vec<Option<u64>> = seen.iter().map(|entry| entry.link.map(|link| link.seq)).collect();
    assert_eq!(numbers, [Some(1), Some(2), Some(3), Some(4), Some(5), None, None]);
    assert!(seen.iter().all(|entry| entry.link.is_none_or(|link| link.entry == entry.id)));
}

async fn links_made_after_a_page_was_read_do_not_disturb_the_next_page(bench: Bench) {
    let acme = bench.acme();
    note(&acme, 9).await;
    let first = acme.audit_log(None, 6).await.unwrap();
    assert!(first.entries.iter().all(|entry| entry.link.is_none()) && first.seal.is_none());
    seal_all(&acme).await;
    let second = acme.audit_log(first.next, 6).await.unwrap();
    let numbers: Vec<u64> = second.entries.iter().map(|entry| entry.link.unwrap().seq).collect();
    assert_eq!((numbers, second.loose, second.next), (vec![7, 8, 9], vec![], None));
    let nothing = acme.audit_log(AuditLogPosition::parse("18446744073709551615-0.0-0"), 6).await.unwrap();
    assert_eq!((nothing.entries, nothing.loose, nothing.next), (vec![], vec![], None));
}

async fn each_tenant_has_a_chain_of_its_own(bench: Bench) {
    let (acme, bolt) = (bench.acme(), bench.store.of(&tenant("bolt")));
    note(&acme, 2).await;
    note(&bolt, 1).await;
    seal_all(&acme).await;
    assert_eq!(acme.verify().await.unwrap(), verified(2, 0));
    assert_eq!(bolt.verify().await.unwrap(), verified(0, 1));
    seal_all(&bolt).await;
    let first = async |shelf: &TenantStore| shelf.audit_log(None, 1).await.unwrap().entries[0].link.unwrap();
    assert_eq!((first(&acme).await.seq, first(&bolt).await.seq), (1, 1));
}

async fn a_forged_link_behind_the_seal_is_found(bench: Bench) {
    let acme = bench.acme();
    let ids = note(&acme, 3).await;
    acme.seal(2).await.unwrap();
    let page = acme.audit_log(None, 3).await.unwrap();
    let forged = Chain::behind(&page.seal.unwrap()).link(ids[2], &page.entries[2].body);
    let append = vec![(StreamName::links(), serde_json::to_vec(&forged).unwrap())];
    let beside = Commit {
        append,
        ..Commit::write(RecordKey::session(crate::bench::session_id(1)), RecordVersion::NONE, vec![])
    };
    assert!(matches!(acme.commit(beside).await.unwrap(), Committed::Done(..)));
    assert_eq!(broken(&acme).await, ChainBreak { seq: 3, entry: Some(ids[2]), what: AuditLogFlaw::Inserted });
}

async fn a_seal_that_was_taken_away_is_found(bench: Bench) {
    let acme = bench.acme();
    let ids = note(&acme, 3).await;
    seal_all(&acme).await;
    let record = acme.get(&RecordKey::seal()).await.unwrap().unwrap();
    let gone = acme.commit(Commit::delete(RecordKey::seal(), record.version)).await.unwrap();
    assert!(matches!(gone, Committed::Done(..)));
    let wanted = ChainBreak { seq: 1, entry: Some(ids[0]), what: AuditLogFlaw::Inserted };
    assert_eq!(broken(&acme).await, wanted);
    seal_all(&acme).await;
    assert_eq!(broken(&acme).await, wanted, "sealing anew does not hide it");
}

async fn a_seal_that_cannot_be_read_is_an_error_and_stays(bench: Bench) {
    let acme = bench.acme();
    note(&acme, 1).await;
    let bodies: [&[u8]; 4] = [b"", b"{}", br#"{"v":3,"seal":null}"#, br#"{"v":1,"seal":{"seq":1,"entry":"1-0"}}"#];
    for (version, body) in bodies.into_iter().enumerate() {
        let expect = RecordVersion::new(version as u64);
        let written = acme.commit(Commit::write(RecordKey::seal(), expect, body.to_vec())).await.unwrap();
        assert!(matches!(written, Committed::Done(..)));
        assert!(matches!(acme.seal(10).await, Err(StoreError::Corrupt { .. })));
        assert!(matches!(acme.audit_log(None, 10).await, Err(StoreError::Corrupt { .. })));
        assert!(matches!(acme.verify().await, Err(VerifyError::Unread(StoreError::Corrupt { .. }))));
        assert_eq!(acme.get(&RecordKey::seal()).await.unwrap().unwrap().body, body);
    }
}

async fn whatever_a_caller_is_called_an_entry_is_one_line(bench: Bench) {
    let acme = bench.acme();
    let evil = "a\n{\"seq\":1}\r\u{1b}[31m\u{85}\",\"phase\":\"close";
    let actor =
        Actor { principal: principal(evil), kind: ActorKind::Agent, scopes: domain::Scopes::default(), token: None };
    acme.audit().note(&AuditEntry { actor: Some(actor), ..AuditEntry::new(Phase::Denied) }).await.unwrap();
    let body = acme.audit_log(None, 1).await.unwrap().entries.remove(0).body;
    assert!(body.iter().all(|byte| *byte >= b' '), "{}", String::from_utf8_lossy(&body));
    let read = domain::json::read(&body).unwrap();
    assert_eq!((&read["actor"]["sub"], &read["phase"]), (&evil.into(), &"denied".into()));
}

/// Somebody with a hand in the store beneath.
struct Meddler {
    server: RedisServer,
    config: Config,
    acme: TenantStore,
    ids: Vec<EntryPlace>,
}

impl Meddler {
    /// With an audit log of eight entries, six of them sealed one by one.
    async fn at_work() -> Meddler {
        let server = RedisServer::start();
        let config = config(server.url());
        let acme = Store::open(&config).await.unwrap().of(&tenant("acme"));
        let mut ids = note(&acme, 6).await;
        while acme.seal(1).await.unwrap().behind {}
        ids.extend(note(&acme, 2).await);
        assert_eq!(acme.verify().await.unwrap(), verified(6, 2));
        Meddler { server, config, acme, ids }
    }

    fn key(&self, name: &str) -> String {
        format!("{}:{{acme}}:{name}", self.config.prefix)
    }

    fn delete(&self, entry: usize) {
        let done = self.server.command(&["XDEL", &self.key("audit"), &self.ids[entry].to_string()]);
        assert_eq!(done, ":1");
    }

    /// Writes a stream anew with other contents.
    async fn rewrite(&self, name: &str, stream: &StreamName, change: impl FnOnce(&mut Vec<(StreamId, Vec<u8>)>)) {
        let mut entries = self.acme.read(stream, None, 100).await.unwrap();
        change(&mut entries);
        assert_eq!(self.server.command(&["DEL", &self.key(name)]), ":1");
        for (id, body) in entries {
            let body = String::from_utf8(body).unwrap();
            let told = self.server.command(&["XADD", &self.key(name), &id.to_string(), "b", &body]);
            assert!(told.starts_with('$'), "{told}");
        }
    }

    async fn found(&self) -> (u64, Option<usize>, AuditLogFlaw) {
        let ChainBreak { seq, entry, what } = broken(&self.acme).await;
        (seq, entry.map(|entry| self.ids.iter().position(|id| *id == entry).unwrap()), what)
    }
}

#[tokio::test]
async fn an_entry_edited_beneath_the_store_is_named() {
    let meddler = Meddler::at_work().await;
    meddler
        .rewrite("audit", &StreamName::audit(), |entries| {
            let text = String::from_utf8(entries[3].1.clone()).unwrap().replace("denied", "opened");
            entries[3].1 = text.into_bytes();
        })
        .await;
    assert_eq!(meddler.found().await, (4, Some(3), AuditLogFlaw::Edited));
    assert_eq!(meddler.acme.seal(10).await.unwrap().count, 2, "sealing goes on behind it");
    assert_eq!(meddler.found().await, (4, Some(3), AuditLogFlaw::Edited));
}

#[tokio::test]
async fn an_entry_deleted_beneath_the_store_is_named_and_its_link_is_shown() {
    let meddler = Meddler::at_work().await;
    meddler.delete(2);
    assert_eq!(meddler.found().await, (3, Some(2), AuditLogFlaw::Missing));
    let AuditLogPage { entries, loose, .. } = meddler.acme.audit_log(None, 10).await.unwrap();
    assert_eq!((entries.len(), loose.len(), loose[0].entry), (7, 1, meddler.ids[2]));
}

#[tokio::test]
async fn entries_that_changed_places_beneath_the_store_are_named() {
    let meddler = Meddler::at_work().await;
    meddler
        .rewrite("audit", &StreamName::audit(), |entries| {
            let body = entries[1].1.clone();
            entries[1].1 = std::mem::replace(&mut entries[4].1, body);
        })
        .await;
    assert_eq!(meddler.found().await, (2, Some(1), AuditLogFlaw::Reordered));
}

#[tokio::test]
async fn an_audit_log_whose_end_was_cut_off_beneath_the_store_is_truncated() {
    let meddler = Meddler::at_work().await;
    (4..8).for_each(|entry| meddler.delete(entry));
    assert_eq!(meddler.found().await, (5, Some(4), AuditLogFlaw::Truncated));
    let page = meddler.acme.audit_log(None, 10).await.unwrap();
    let loose: HashSet<u64> = page.loose.iter().map(|link| link.seq).collect();
    assert_eq!(loose, HashSet::from([5, 6]));
    note(&meddler.acme, 1).await;
    assert_eq!(
        meddler.found().await,
        (5, Some(4), AuditLogFlaw::Missing),
        "what is written later does not fill the gap"
    );
}

#[tokio::test]
async fn links_edited_or_taken_away_beneath_the_store_are_named() {
    let meddler = Meddler::at_work().await;
    let links = meddler.acme.read(&StreamName::links(), None, 100).await.unwrap();
    let put_back = async || meddler.rewrite("links", &StreamName::links(), |entries| entries.clone_from(&links)).await;
    meddler.rewrite("links", &StreamName::links(), |links| drop(links.remove(2))).await;
    assert_eq!(meddler.found().await, (3, Some(2), AuditLogFlaw::Unlinked));
    put_back().await;
    meddler.rewrite("links", &StreamName::links(), |links| links[2].1 = b"{}".to_vec()).await;
    assert_eq!(meddler.found().await, (3, Some(2), AuditLogFlaw::Unlinked));
    put_back().await;
    meddler.rewrite("links", &StreamName::links(), |links| links.truncate(4)).await;
    assert_eq!(meddler.found().await, (5, Some(4), AuditLogFlaw::Truncated));
    put_back().await;
    assert_eq!(meddler.acme.verify().await.unwrap(), verified(6, 2));
    assert_eq!(meddler.server.command(&["DEL", &meddler.key("audit")]), ":1");
    assert_eq!(meddler.found().await, (1, Some(0), AuditLogFlaw::Truncated));
}
