//! Audit entries that are written together: what they cost, that each call is still judged by itself, and that whoever
//! gives up or dies takes no other call along.

use crate::bench::{Bench, call, config, on_every_backend, opening, principal, tenant};
use crate::seal::{broken, seal_all, verified};
use domain::{Call, CallId, Caller, Code};
use futures_util::future::join_all;
use serde_json::Value;
use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{
    AuditEntry, AuditLogFlaw, CallBeginning, CallOpening, CallRate, Chain, ChainLink, CloseFacts, Commit, Committed,
    EntryPlace, Phase, RecordKey, RecordVersion, Store, StoreLimits, StreamName, TenantStore,
};
use testkit::redis::RedisServer;

on_every_backend!(
    calls_that_begin_at_the_same_time_share_a_write,
    calls_that_come_turn_by_turn_share_a_write,
    every_call_of_a_batch_is_judged_as_if_it_had_come_alone,
    a_batch_ends_where_the_quota_does,
    whoever_gives_up_takes_no_other_call_along,
    a_page_may_end_in_the_middle_of_an_item,
    an_audit_log_of_an_earlier_release_is_verified_and_goes_on,
    the_tenants_to_be_sealed_are_those_written_to,
);

/// A call with an id of its own.
fn numbered(number: usize) -> Call {
    let mut bits = [0; 16];
    bits[..8].copy_from_slice(&(number as u64).to_be_bytes());
    let mut call = call(0, None);
    call.id = CallId::from_random(bits);
    call
}

/// Begins a call and closes it as a read is closed; tells its id.
async fn make(shelf: &TenantStore, number: usize) -> String {
    let call = numbered(number);
    let begun = shelf.begin(&opening(&call)).await.unwrap().opened().unwrap();
    shelf.audit().close(begun.receipt, &CloseFacts::default()).await.unwrap();
    call.id.to_string()
}

/// The calls whose entry of this phase is in the log; none may be there twice.
async fn calls(shelf: &TenantStore, phase: &str) -> BTreeSet<String> {
    let entries = shelf.audit().page(None, 200_000).await.unwrap();
    let of = |entry: &Value| (entry["phase"] == phase).then(|| entry["call"].as_str().unwrap().to_owned());
    let found: Vec<String> = entries.iter().filter_map(|noted| of(&noted.entry)).collect();
    let calls: BTreeSet<String> = found.iter().cloned().collect();
    assert_eq!(calls.len(), found.len(), "an entry stands twice");
    calls
}

async fn closed(shelf: &TenantStore, count: usize) {
    while calls(shelf, "close").await.len() < count {
        tokio::task::yield_now().await;
    }
}

async fn items(shelf: &TenantStore) -> Vec<usize> {
    let items = shelf.read(&StreamName::audit(), None, 100_000).await.unwrap();
    items.iter().map(|(_, body)| body.split(|byte| *byte == b'\n').count()).collect()
}

async fn calls_that_begin_at_the_same_time_share_a_write(bench: Bench) {
    let acme = bench.acme();
    let before = bench.store.round_trips();
    let made: BTreeSet<String> = join_all((0..100).map(|number| make(&acme, number))).await.into_iter().collect();
    let trips = bench.store.round_trips() - before;
    assert!(trips <= 3, "the first goes at once, the others together: {trips}");
    closed(&acme, 100).await;
    assert_eq!((calls(&acme, "open").await, calls(&acme, "close").await), (made.clone(), made));
    let items = items(&acme).await;
    assert!(items.len() <= 8 && items.iter().sum::<usize>() == 200, "{items:?}");
    seal_all(&acme).await;
    assert_eq!(acme.verify().await.unwrap(), verified(200, 0));
}

/// Each begins one turn of the runtime after the one before it, as requests do that are read one after the other.
async fn calls_that_come_turn_by_turn_share_a_write(bench: Bench) {
    let acme = bench.acme();
    // What a first call reads besides is not counted.
    make(&acme, 100).await;
    closed(&acme, 1).await;
    let before = bench.store.round_trips();
    let made = join_all((0..8).map(async |number| {
        for _ in 0..number {
            tokio::task::yield_now().await;
        }
        let call = numbered(number);
        acme.begin(&opening(&call)).await.unwrap().opened().unwrap().receipt
    }));
    let receipts = made.await;
    assert_eq!(bench.store.round_trips() - before, 1);
    for receipt in receipts {
        acme.audit().close_now(receipt, &CloseFacts::default()).await.unwrap();
    }
}

async fn every_call_of_a_batch_is_judged_as_if_it_had_come_alone(bench: Bench) {
    let acme = bench.acme();
    let rate = CallRate { tenant: 20, caller: 5 };
    let of = |number: usize, subject: &str| {
        let mut call = numbered(number);
        call.caller = Arc::new(Caller { principal: principal(subject), ..(*call.caller).clone() });
        call
    };
    let calls: Vec<Call> = (0..90).map(|n| of(n, ["ana", "bo", "cy"][n % 3])).collect();
    let begun = join_all(calls.iter().map(async |call| acme.begin(&CallOpening { rate, ..opening(call) }).await)).await;
    let (mut numbers, mut refused) = (Vec::new(), 0);
    for begun in begun {
        match begun.unwrap() {
            CallBeginning::Opened(start) => {
                numbers.push(start.calls_this_minute);
                acme.audit().close_now(start.receipt, &CloseFacts::default()).await.unwrap();
            }
            CallBeginning::Exceeded(_, left) => {
                assert!(left > Duration::from_secs(30) && left <= Duration::from_secs(60), "{left:?}");
                refused += 1;
            }
        }
    }
    numbers.sort_unstable();
    assert_eq!((numbers, refused), ((1..=15).collect(), 75), "five of each, and no call counted that was refused");
    assert_eq!(self::calls(&acme, "open").await.len(), 15);
    let dee = of(100, "dee");
    let left = join_all((0..9).map(async |_| acme.begin(&CallOpening { rate, ..opening(&dee) }).await)).await;
    let opened: Vec<_> = left.into_iter().filter_map(|begun| begun.unwrap().opened()).collect();
    assert_eq!(opened.len(), 5, "and then the tenant's twenty are used up");
    for start in opened {
        acme.audit().close_now(start.receipt, &CloseFacts::default()).await.unwrap();
    }
}

async fn a_batch_ends_where_the_quota_does(bench: Bench) {
    let bench = bench.limited(StoreLimits { bytes_per_tenant: 4_000, ..StoreLimits::default() }).await;
    let acme = bench.acme();
    let calls: Vec<Call> = (0..60).map(numbered).collect();
    let begun = join_all(calls.iter().map(async |call| acme.begin(&opening(call)).await)).await;
    let mut opened = 0;
    for begun in begun {
        match begun {
            Ok(begun) => {
                opened += 1;
                acme.audit().close_now(begun.opened().unwrap().receipt, &CloseFacts::default()).await.unwrap();
            }
            Err(error) => assert_eq!(error.code(), Code::QuotaExceeded),
        }
    }
    let bytes: usize = acme.read(&StreamName::audit(), None, 1_000).await.unwrap().iter().map(|(_, b)| b.len()).sum();
    assert_eq!(acme.usage().await.unwrap(), bytes as u64, "what is counted is what was written");
    assert!((4..40).contains(&opened), "{opened} calls in 4,000 bytes");
}

#[expect(clippy::disallowed_methods, reason = "what is tested is several tasks at once")]
async fn whoever_gives_up_takes_no_other_call_along(bench: Bench) {
    let acme = bench.acme();
    let all: Vec<Call> = (0..200).map(numbered).collect();
    let begin = |number: usize| {
        let (acme, call) = (acme.clone(), all[number].clone());
        tokio::spawn(async move { acme.begin(&opening(&call)).await.unwrap().opened().unwrap().receipt })
    };
    let tasks: Vec<_> = (0..200).map(begin).collect();
    tokio::task::yield_now().await;
    tasks.iter().skip(1).step_by(2).for_each(tokio::task::JoinHandle::abort);
    let mut kept = BTreeSet::new();
    for (number, task) in tasks.into_iter().enumerate() {
        if let Ok(receipt) = task.await {
            kept.insert(all[number].id.to_string());
            acme.audit().close(receipt, &CloseFacts::default()).await.unwrap();
        }
    }
    assert!(kept.len() >= 100);
    closed(&acme, kept.len()).await;
    let (opened, closed) = (calls(&acme, "open").await, calls(&acme, "close").await);
    assert!(opened.is_superset(&kept), "an opening that was answered is in the log");
    assert_eq!(closed, kept);
}

async fn a_page_may_end_in_the_middle_of_an_item(bench: Bench) {
    let acme = bench.acme();
    join_all((0..40).map(|number| make(&acme, number))).await;
    closed(&acme, 40).await;
    seal_all(&acme).await;
    assert!(items(&acme).await.iter().any(|count| *count > 7));
    let whole = acme.audit_log(None, 1_000).await.unwrap();
    assert_eq!((whole.entries.len(), whole.next), (80, None));
    let (mut seen, mut place) = (Vec::new(), None);
    loop {
        let page = acme.audit_log(place, 7).await.unwrap();
        assert_eq!((page.seal, page.loose), (whole.seal, vec![]));
        seen.extend(page.entries);
        place = page.next;
        if place.is_none() {
            break;
        }
    }
    assert_eq!(seen, whole.entries, "each entry with its link, once");
    let (mut forth, mut back) = (Vec::new(), Vec::new());
    while let page @ [.., last] = &acme.audit().page(forth.last().copied(), 7).await.unwrap()[..] {
        let last = last.id;
        forth.extend(page.iter().map(|noted| noted.id));
        assert_eq!(forth.last(), Some(&last));
    }
    while let page @ [_, ..] = &acme.audit().page_back(back.last().copied(), 7).await.unwrap()[..] {
        back.extend(page.iter().map(|noted| noted.id));
    }
    back.reverse();
    let places: Vec<EntryPlace> = whole.entries.iter().map(|entry| entry.id).collect();
    assert_eq!((&forth, &back), (&places, &places));
}

/// Writes to streams as a test can: beside a record of its own.
async fn append(shelf: &TenantStore, number: u8, append: Vec<(StreamName, Vec<u8>)>) {
    let record = RecordKey::session(crate::bench::session_id(number));
    let commit = Commit { append, ..Commit::write(record, RecordVersion::NONE, vec![]) };
    assert!(matches!(shelf.commit(commit).await.unwrap(), Committed::Done(..)));
}

async fn an_audit_log_of_an_earlier_release_is_verified_and_goes_on(bench: Bench) {
    let acme = bench.acme();
    for number in 0..4 {
        append(&acme, number, vec![(StreamName::audit(), format!(r#"{{"v":1,"n":{number}}}"#).into_bytes())]).await;
    }
    let mut chain = Chain::of(&tenant("acme"));
    let stored = acme.read(&StreamName::audit(), None, 10).await.unwrap();
    let links: Vec<ChainLink> = stored.iter().take(3).map(|(id, body)| chain.add((*id).into(), body)).collect();
    let body = |link: &ChainLink| (StreamName::links(), serde_json::to_vec(link).unwrap());
    append(&acme, 9, links.iter().map(body).collect()).await;
    let seal = serde_json::to_vec(&serde_json::json!({ "v": 1, "seal": links[2] })).unwrap();
    let sealed = acme.commit(Commit::write(RecordKey::seal(), RecordVersion::NONE, seal)).await.unwrap();
    assert!(matches!(sealed, Committed::Done(..)));
    assert_eq!(acme.verify().await.unwrap(), verified(3, 1));

    join_all((0..10).map(|number| make(&acme, number))).await;
    closed_raw(&acme, 24).await;
    seal_all(&acme).await;
    assert_eq!(acme.verify().await.unwrap(), verified(24, 0));
    let page = acme.audit_log(None, 100).await.unwrap();
    let numbers: Vec<u64> = page.entries.iter().map(|entry| entry.link.unwrap().seq).collect();
    assert_eq!(numbers, (1..=24).collect::<Vec<_>>());
}

/// Waits until the log has that many entries, whatever they are.
async fn closed_raw(shelf: &TenantStore, count: usize) {
    while items(shelf).await.iter().sum::<usize>() < count {
        tokio::task::yield_now().await;
    }
}

async fn the_tenants_to_be_sealed_are_those_written_to(bench: Bench) {
    let (acme, bolt) = (bench.acme(), bench.store.of(&tenant("bolt")));
    assert!(bench.store.take_unsealed().is_empty());
    acme.audit().note(&AuditEntry::new(Phase::Denied)).await.unwrap();
    assert_eq!(bench.store.take_unsealed(), BTreeSet::from([tenant("acme")]));
    seal_all(&acme).await;
    assert!(bench.store.take_unsealed().is_empty(), "to seal is not to write");
    append(&bolt, 1, vec![(StreamName::audit(), b"{}".to_vec())]).await;
    make(&acme, 1).await;
    closed(&acme, 1).await;
    assert_eq!(bench.store.take_unsealed(), BTreeSet::from([tenant("acme"), tenant("bolt")]));
}

/// What a call may cost at load.
const COMMANDS_PER_CALL: f64 = 1.5;
const OVERHEAD_PER_CALL: usize = 250;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_load_a_call_costs_few_commands_and_few_bytes_beside_its_entries() {
    const CALLS: usize = 2_000;
    let server = RedisServer::start();
    let config = config(server.url());
    let store = Store::open(&config).await.unwrap();
    let acme = store.of(&tenant("acme"));
    make(&acme, CALLS).await;
    closed(&acme, 1).await;
    let before = server.commands();
    // A hundred at a time, as many agents as would call at once.
    for hundred in 0..CALLS / 100 {
        join_all((0..100).map(|number| make(&acme, hundred * 100 + number))).await;
    }
    // Closing entries of the last ones may still gather; waiting for them by reading would count as well.
    tokio::time::sleep(Duration::from_millis(200)).await;
    seal_all(&acme).await;
    let commands = (server.commands() - before) as f64 / CALLS as f64;
    assert_eq!(calls(&acme, "close").await.len(), CALLS + 1);
    let bytes = |stream: StreamName| {
        let acme = acme.clone();
        async move { acme.read(&stream, None, 100_000).await.unwrap().iter().map(|(_, b)| b.len()).sum::<usize>() }
    };
    let entries: usize =
        acme.audit_log(None, 100_000).await.unwrap().entries.iter().map(|entry| entry.body.len()).sum();
    let (audit, links) = (bytes(StreamName::audit()).await, bytes(StreamName::links()).await);
    let overhead = (audit + links - entries) / CALLS;
    // What the server itself needs for the two streams, beyond the bytes of the entries.
    let held: usize = ["audit", "links"]
        .map(|name| server.command(&["MEMORY", "USAGE", &format!("{}:{{acme}}:{name}", config.prefix), "SAMPLES", "0"]))
        .iter()
        .map(|line| line.trim_start_matches(':').parse::<usize>().unwrap())
        .sum();
    println!("{commands:.2} commands, {overhead} bytes of chain, {held} bytes held for {entries}");
    assert!(commands <= COMMANDS_PER_CALL, "{commands} commands per call");
    assert!(overhead <= OVERHEAD_PER_CALL, "{overhead} bytes per call");
    assert!(held * 3 < entries * 2, "packed they take less than they have: {held} bytes for {entries}");
}

#[expect(clippy::disallowed_methods, reason = "what is tested is several tasks at once")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn au1_two_replicas_that_append_twenty_thousand_each_give_one_chain() {
    const RECORDS: usize = 20_000;
    let server = RedisServer::start();
    let config = config(server.url());
    let replicas = [Store::open(&config).await.unwrap(), Store::open(&config).await.unwrap()];
    let work = |(replica, store): (usize, &Store)| {
        let acme = store.of(&tenant("acme"));
        tokio::spawn(async move {
            // An opening and a closing for each call, and both replicas seal as they go.
            for round in 0..RECORDS / 2 / 200 {
                let first = replica * RECORDS + round * 200;
                join_all((first..first + 200).map(|number| make(&acme, number))).await;
                acme.seal(100).await.unwrap();
            }
        })
    };
    for task in replicas.iter().enumerate().map(work).collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let acme = replicas[0].of(&tenant("acme"));
    replicas[1].close().await;
    closed_raw(&acme, 2 * RECORDS).await;
    seal_all(&acme).await;
    assert_eq!(acme.verify().await.unwrap(), verified(2 * RECORDS as u64, 0));
    assert_eq!(calls(&acme, "open").await.len(), RECORDS);
    assert_eq!(calls(&acme, "close").await.len(), RECORDS);
}

#[test]
fn a_replica_that_dies_in_a_batch_loses_no_opening_that_was_answered() {
    let server = RedisServer::start();
    let config = config(server.url());
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let answered: Arc<Mutex<HashSet<String>>> = Arc::default();
    let doomed = runtime();
    let (told, settings) = (Arc::clone(&answered), config.clone());
    doomed.spawn(async move {
        let acme = Store::open(&settings).await.unwrap().of(&tenant("acme"));
        let call = |number: usize| {
            let (acme, told) = (acme.clone(), Arc::clone(&told));
            async move {
                let call = numbered(number);
                drop(acme.begin(&opening(&call)).await.unwrap().opened().unwrap().receipt);
                told.lock().unwrap().insert(call.id.to_string());
            }
        };
        // Until it dies.
        for round in 0.. {
            join_all((0..64).map(|number| call(round * 64 + number))).await;
        }
    });
    while answered.lock().unwrap().len() < 500 {
        std::thread::yield_now();
    }
    // Its tasks end wherever they are.
    doomed.shutdown_background();
    let answered = std::mem::take(&mut *answered.lock().unwrap());
    runtime().block_on(async {
        let acme = Store::open(&config).await.unwrap().of(&tenant("acme"));
        let opened = calls(&acme, "open").await;
        assert!(answered.iter().all(|call| opened.contains(call)));
        // What it left unsealed is sealed by whoever comes next.
        make(&acme, 1 << 40).await;
        seal_all(&acme).await;
        assert!(acme.verify().await.unwrap().sealed >= answered.len() as u64);
    });
}

/// Ten entries in a few items, sealed in one batch, with a hand in the store beneath.
struct Tampered {
    server: RedisServer,
    prefix: String,
    acme: TenantStore,
}

impl Tampered {
    /// Changes the lines of the longest item.
    async fn with(change: impl FnOnce(&mut Vec<String>)) -> (store::ChainBreak, usize) {
        let server = RedisServer::start();
        let config = config(server.url());
        let acme = Store::open(&config).await.unwrap().of(&tenant("acme"));
        let notes = (0..10).map(|_| async { acme.audit().note(&AuditEntry::new(Phase::Denied)).await.unwrap() });
        join_all(notes).await;
        acme.audit().note(&AuditEntry::new(Phase::Admin)).await.unwrap();
        seal_all(&acme).await;
        let tampered = Tampered { server, prefix: config.prefix, acme };
        assert_eq!(tampered.acme.verify().await.unwrap(), verified(11, 0));
        let before = tampered.change(change).await;
        (broken(&tampered.acme).await, before)
    }

    /// Tells how many entries stand before the changed item.
    async fn change(&self, change: impl FnOnce(&mut Vec<String>)) -> usize {
        let key = format!("{}:{{acme}}:audit", self.prefix);
        let mut items = self.acme.read(&StreamName::audit(), None, 100).await.unwrap();
        let lines = |body: &[u8]| body.split(|byte| *byte == b'\n').count();
        let longest = (0..items.len()).max_by_key(|at| lines(&items[*at].1)).unwrap();
        let before = items[..longest].iter().map(|(_, body)| lines(body)).sum();
        let text = String::from_utf8(items[longest].1.clone()).unwrap();
        let mut parts: Vec<String> = text.split('\n').map(str::to_owned).collect();
        assert!(parts.len() >= 5, "{parts:?}");
        change(&mut parts);
        items[longest].1 = parts.join("\n").into_bytes();
        assert_eq!(self.server.command(&["DEL", &key]), ":1");
        for (id, body) in items {
            let told = self.server.command(&["XADD", &key, &id.to_string(), "b", std::str::from_utf8(&body).unwrap()]);
            assert!(told.starts_with('$'), "{told}");
        }
        before
    }
}

#[tokio::test]
async fn au1_an_entry_changed_inside_of_an_item_is_named() {
    let flaw = |(found, before): (store::ChainBreak, usize)| (found.seq - before as u64, found.what);
    let edited = Tampered::with(|lines| lines[2] = lines[2].replace("denied", "opened")).await;
    assert_eq!(edited.0.entry.unwrap().index, 2);
    assert_eq!(flaw(edited), (3, AuditLogFlaw::Edited));
    assert_eq!(flaw(Tampered::with(|lines| lines.swap(1, 3)).await), (2, AuditLogFlaw::Reordered));
    assert_eq!(flaw(Tampered::with(|lines| drop(lines.remove(1))).await), (2, AuditLogFlaw::Edited));
    let last = Tampered::with(|lines| drop(lines.pop())).await;
    assert_eq!(last.0.what, AuditLogFlaw::Missing);
    assert_eq!(flaw(Tampered::with(|lines| lines.push("{}".to_owned())).await).1, AuditLogFlaw::Inserted);
    let doubled = Tampered::with(|lines| lines.insert(2, lines[1].clone())).await;
    assert_eq!(flaw(doubled), (3, AuditLogFlaw::Reordered));
}
