//! Runs as records: opened once, folded by version, found when they are due, by whoever asks the same again.

use crate::bench::{Bench, LIVES, call, config, on_every_backend, opening, principal, session, session_id, tenant};
use domain::run::{Answer, Claim, Ending, OnReject, Preview, Run, RunEvent, RunRequest, RunState, Verdict};
use domain::{Effect, Level, Moment, RunId, ToolName, ToolsetName};
use std::time::Duration;
use store::{
    ApprovalLookup, AuditEntry, CallOpening, CloseFacts, Commit, Committed, IndexName, IndexUpdate, Phase, PriorRuns,
    RecordKey, RecordVersion, RunBrief, RunCasOutcome, RunStore, Score, Store, StoreError, Topic, VersionedRun, WakeUp,
};
use testkit::redis::RedisServer;

on_every_backend!(
    a_run_is_opened_once_and_the_second_is_handed_the_first,
    a_run_too_many_of_one_requester_is_not_opened,
    a_run_reads_back_as_it_was_written,
    a_change_names_the_version_it_was_made_on,
    a_late_change_is_judged_by_the_stores_clock_and_leaves_no_trace,
    a_change_of_a_run_that_is_gone_says_so,
    due_runs_come_longest_overdue_first_and_leave_when_nobody_need_look,
    a_look_is_moved_without_changing_the_run,
    a_run_waits_until_a_person_answers_and_then_no_longer_counts,
    a_call_finds_the_newest_run_of_its_digest_and_the_run_of_its_key,
    only_a_gated_call_looks_for_earlier_runs,
    runs_are_paged_newest_first,
    a_list_reads_briefs_and_not_whole_runs,
    what_earlier_builds_did_not_write_of_a_run_is_listed_as_it_was_then,
    a_requesters_list_holds_its_own_runs_alone,
    every_change_of_a_run_is_in_the_audit_log_and_wakes_whoever_watches,
    of_many_deciders_of_one_version_exactly_one_wins,
    one_tenant_does_not_see_the_runs_of_another,
    the_recorded_shape_of_the_first_release_reads_back,
    an_unreadable_run_is_an_error_and_not_an_absence,
    each_step_of_a_run_is_one_round_trip,
    a_rejection_that_ends_the_step_stops_the_session_in_the_same_write,
    what_the_store_has_forgotten_leaves_the_list_of_runs,
    runs_that_are_kept_do_not_stand_before_forgotten_ones,
    what_a_replica_still_holds_is_written_back_and_found_again,
    without_replicas_nobody_is_asked_to_confirm,
    what_is_reviewed_is_counted_apart_until_nothing_more_can_come_of_it,
    a_run_without_brief_and_record_leaves_the_list_too,
    what_a_run_that_is_over_holds_in_words_can_be_taken_out,
    what_is_not_over_is_found_whenever_it_is_due_until_it_is_set_aside,
    a_run_is_listed_for_as_long_as_a_person_may_take_and_longer,
);

/// The server forgets a run by itself: nobody else would ever delete it.
#[tokio::test]
async fn a_run_has_an_end_in_the_store() {
    let server = RedisServer::start();
    let store = Store::open(&config(server.url())).await.unwrap();
    let runs = store.of(&tenant("acme")).runs();
    open(&runs, &run(1, store.now().await.unwrap())).await;
    let key = server.keys().into_iter().find(|key| key.ends_with(&format!(":run:{}", run_id(1)))).unwrap();
    let millis: u64 =
        server.command(&["PTTL", &key]).trim().trim_start_matches(":").parse().expect("the record ends some day");
    let (days, day) = (30, 24 * 60 * 60 * 1_000);
    assert!((days * day..(days + 1) * day).contains(&millis), "{millis} ms");
}

pub(crate) fn run_id(number: u8) -> RunId {
    RunId::from_random([number; 16])
}

fn asked(at: Moment) -> RunRequest {
    RunRequest {
        requester: principal("agent"),
        scopes: "tools:read tools:write".into(),
        session: Some(session_id(1)),
        tool: ToolName::parse("k8s_scale").unwrap(),
        toolset: ToolsetName::parse("k8s").unwrap(),
        needs: Level::Write,
        schema: "5c".into(),
        arguments: r#"{"name":"web","replicas":3}"#.into(),
        effect: Effect::Change,
        about: Some("deployments".into()),
        digest: "d1".into(),
        idempotent: true,
        preview: Preview {
            summary: "scale web".into(),
            text: "replicas 1 -> 3 \u{202e} ä".into(),
            warnings: vec!["w".into()],
            fingerprint: "uid:7".into(),
            arguments: Some(r#"{"name":"web"}"#.into()),
            hidden: vec!["9 characters hidden: a".into()],
        },
        reviewed: false,
        on_reject: OnReject::Fail,
        deciders: 2,
        tainted: true,
        assignment: domain::Assignment::default(),
        asked_at: at,
        expires_at: at.plus(Duration::from_secs(1800)),
        execute_within_ms: 600_000,
        trace: Some("4bf9".into()),
        span: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into()),
        kept_object: None,
    }
}

pub(crate) fn run(number: u8, at: Moment) -> Run {
    Run::new(run_id(number), asked(at))
}

pub(crate) fn entry() -> AuditEntry {
    AuditEntry::new(Phase::Transition)
}

pub(crate) fn said(subject: &str, verdict: Verdict, at: Moment) -> RunEvent {
    RunEvent::Answered(Answer { by: principal(subject), verdict, reason: Some("fine".into()), at, span: None })
}

pub(crate) async fn open(runs: &RunStore, run: &Run) -> VersionedRun {
    match runs.open(run, None, u64::MAX, &entry()).await.unwrap() {
        RunCasOutcome::Done(held) => held,
        refused @ (RunCasOutcome::Conflict(_)
        | RunCasOutcome::Late(_)
        | RunCasOutcome::TooManyWaiting
        | RunCasOutcome::Gone) => {
            panic!("it should be opened: {refused:?}")
        }
    }
}

/// Folds one event that is an edge and wins.
pub(crate) async fn fold(runs: &RunStore, held: &VersionedRun, event: &RunEvent, at: Moment) -> VersionedRun {
    let next = held.run.apply(event, at).unwrap();
    match runs.commit(held, &next, None, &entry()).await.unwrap() {
        RunCasOutcome::Done(held) => held,
        refused @ (RunCasOutcome::Conflict(_)
        | RunCasOutcome::Late(_)
        | RunCasOutcome::TooManyWaiting
        | RunCasOutcome::Gone) => {
            panic!("it should be written: {refused:?}")
        }
    }
}

async fn a_run_too_many_of_one_requester_is_not_opened(bench: Bench) {
    let runs = bench.acme().runs();
    let now = bench.store.now().await.unwrap();
    open(&runs, &run(1, now)).await;
    assert_eq!(runs.open(&run(2, now), None, 1, &entry()).await.unwrap(), RunCasOutcome::TooManyWaiting);
    assert_eq!(runs.find(run_id(2)).await.unwrap().0, None, "nothing is written");
    assert!(matches!(runs.open(&run(2, now), None, 2, &entry()).await.unwrap(), RunCasOutcome::Done(_)));
}

/// What a gated call of this digest and key finds when it begins.
/// The runs that are due by now.
async fn due(runs: &RunStore, limit: usize) -> Vec<RunId> {
    runs.due(limit).await.unwrap().by_now().collect()
}

async fn past(bench: &Bench, digest: &str, key: Option<&str>) -> PriorRuns {
    let (acme, call) = (bench.acme(), call(9, None));
    let gated = Some(ApprovalLookup { digest, key, reviewed: false, most_waiting: 3 });
    let begun = acme.begin(&CallOpening { gated, ..opening(&call) }).await.unwrap().opened().unwrap();
    acme.audit().close_now(begun.receipt, &CloseFacts::default()).await.unwrap();
    begun.past
}

async fn a_run_is_opened_once_and_the_second_is_handed_the_first(bench: Bench) {
    let runs = bench.acme().runs();
    let now = bench.store.now().await.unwrap();
    let first = open(&runs, &run(1, now)).await;
    let mut other = run(1, now.plus(Duration::from_secs(5)));
    other.asked.requester = principal("other");
    assert_eq!(runs.open(&other, Some("k"), u64::MAX, &entry()).await.unwrap(), RunCasOutcome::Conflict(first.clone()));
    assert_eq!(runs.find(run_id(1)).await.unwrap().0, Some(first));
    assert_eq!(past(&bench, "d1", Some("k")).await.same_key, None, "the loser leaves nothing in an index");
}

async fn a_run_reads_back_as_it_was_written(bench: Bench) {
    let runs = bench.acme().runs();
    let now = bench.store.now().await.unwrap();
    let mut full = run(1, now);
    full.state = RunState::ReconciledFailed;
    full.answers = [("ana", Verdict::Approve, Some("go")), ("bo", Verdict::Reject, None)]
        .map(|(by, verdict, why)| Answer {
            by: principal(by),
            verdict,
            reason: why.map(str::to_owned),
            at: now,
            span: None,
        })
        .into();
    full.execute_by = Some(now.plus(Duration::from_secs(7)));
    full.claim = Some(Claim { owner: "rep_1".into(), epoch: 3, lease_until: now });
    full.ending =
        Some(Ending { result: Some(r#"{"a":"ä"}"#.into()), ..Ending::failed(domain::Code::Deadline, "late") });
    full.delivered = true;
    let bare = {
        let mut bare = run(2, now);
        (bare.asked.session, bare.asked.about, bare.asked.trace) = (None, None, None);
        bare
    };
    for mut run in [full, bare] {
        open(&runs, &run).await;
        if run.state.is_final() {
            run.asked.kept_object = run.asked.object();
            run.asked.arguments = r#"{"redacted":true}"#.into();
            run.asked.preview.arguments = None;
        }
        let (found, at) = runs.find(run.id).await.unwrap();
        assert_eq!(found.map(|held| (held.run, held.version)), Some((run, RecordVersion::new(1))));
        assert!(at >= now);
    }
    assert_eq!(runs.find(run_id(3)).await.unwrap().0, None);
}

async fn a_change_names_the_version_it_was_made_on(bench: Bench) {
    let runs = bench.acme().runs();
    let now = bench.store.now().await.unwrap();
    let held = open(&runs, &run(1, now)).await;
    let first = fold(&runs, &held, &said("ana", Verdict::Approve, now), now).await;
    assert_eq!((first.version, first.run.answers.len()), (RecordVersion::new(2), 1));

    let mine = held.run.apply(&said("bo", Verdict::Reject, now), now).unwrap();
    let RunCasOutcome::Conflict(newer) = runs.commit(&held, &mine, None, &entry()).await.unwrap() else {
        panic!("the version is out of date");
    };
    assert_eq!(newer, first, "what is there now comes back, to fold on");
    let folded = fold(&runs, &newer, &said("bo", Verdict::Reject, now), now).await;
    assert_eq!((folded.run.state, folded.run.answers.len()), (RunState::Rejected, 2), "nobody's answer is lost");
}

async fn a_late_change_is_judged_by_the_stores_clock_and_leaves_no_trace(bench: Bench) {
    let (acme, runs) = (bench.acme(), bench.acme().runs());
    let now = bench.store.now().await.unwrap();
    let held = open(&runs, &run(1, now)).await;
    let before = acme.audit().page(None, 10).await.unwrap().len();
    let next = held.run.apply(&said("ana", Verdict::Reject, now), now).unwrap();
    let late = Moment::from_millis(now.millis() - 1);
    assert!(
        matches!(runs.commit(&held, &next, Some(late), &entry()).await.unwrap(), RunCasOutcome::Late(at) if at >= now)
    );
    assert_eq!(runs.find(run_id(1)).await.unwrap().0, Some(held.clone()));
    assert_eq!(acme.audit().page(None, 10).await.unwrap().len(), before);
    assert_eq!(past(&bench, "d1", None).await.waiting, 1, "it still waits");
    let in_time = Some(now.plus(Duration::from_secs(60)));
    assert!(matches!(runs.commit(&held, &next, in_time, &entry()).await.unwrap(), RunCasOutcome::Done(_)));
}

async fn a_change_of_a_run_that_is_gone_says_so(bench: Bench) {
    let (acme, runs) = (bench.acme(), bench.acme().runs());
    let now = bench.store.now().await.unwrap();
    let held = open(&runs, &run(1, now)).await;
    let gone = acme.commit(Commit::delete(RecordKey::run(run_id(1)), RecordVersion::new(1))).await.unwrap();
    assert!(matches!(gone, Committed::Done(..)));
    assert_eq!(runs.commit(&held, &held.run, None, &entry()).await.unwrap(), RunCasOutcome::Gone);
}

async fn due_runs_come_longest_overdue_first_and_leave_when_nobody_need_look(bench: Bench) {
    let runs = bench.acme().runs();
    let now = bench.store.now().await.unwrap();
    let ago = |secs: u64| Moment::from_millis(now.millis() - secs * 1000);
    // Asked long enough ago that a person's time is over; the third still has some.
    for (number, at) in [(1, ago(1_900)), (2, ago(2_000)), (3, ago(10))] {
        open(&runs, &run(number, at)).await;
    }
    assert_eq!(due(&runs, 10).await, [run_id(2), run_id(1)]);
    assert_eq!(due(&runs, 1).await, [run_id(2)]);

    let (held, _) = runs.find(run_id(2)).await.unwrap();
    fold(&runs, &held.unwrap(), &RunEvent::Expired, now).await;
    assert_eq!(due(&runs, 10).await, [run_id(1)]);

    // A yes is due at once; a claim not before its lease is over; an end never again.
    let (held, _) = runs.find(run_id(3)).await.unwrap();
    let one = fold(&runs, &held.unwrap(), &said("ana", Verdict::Approve, now), now).await;
    assert_eq!(due(&runs, 10).await, [run_id(1)], "one of two signatures is no yes");
    let approved = fold(&runs, &one, &said("bo", Verdict::Approve, now), now).await;
    assert_eq!(due(&runs, 10).await, [run_id(1), run_id(3)]);
    let lease_until = now.plus(Duration::from_secs(30));
    let claimed =
        fold(&runs, &approved, &RunEvent::Claimed { owner: "rep_1".into(), lease_until, span: None }, now).await;
    assert_eq!(due(&runs, 10).await, [run_id(1)]);
    let over = RunEvent::Renewed { owner: "rep_1".into(), epoch: 1, lease_until: ago(1) };
    let silent = fold(&runs, &claimed, &over, now).await;
    assert_eq!(due(&runs, 10).await, [run_id(1), run_id(3)]);
    let finished = RunEvent::Finished { owner: "rep_1".into(), epoch: 1, ending: Ending::done(None) };
    fold(&runs, &silent, &finished, now).await;
    assert_eq!(due(&runs, 10).await, [run_id(1)]);
}

async fn a_look_is_moved_without_changing_the_run(bench: Bench) {
    let runs = bench.acme().runs();
    let now = bench.store.now().await.unwrap();
    let held = open(&runs, &run(1, Moment::from_millis(now.millis() - 2_000_000))).await;
    assert_eq!(due(&runs, 10).await, [run_id(1)]);
    let later = Some(now.plus(Duration::from_secs(60)));
    let RunCasOutcome::Done(moved) = runs.look_again(&held, later, &entry()).await.unwrap() else { panic!("it fits") };
    assert_eq!((&moved.run, due(&runs, 10).await), (&held.run, vec![]));
    let stale = runs.look_again(&held, Some(now), &entry()).await.unwrap();
    assert!(matches!(stale, RunCasOutcome::Conflict(_)), "whoever looked at an older version moves nothing");
    assert!(matches!(runs.look_again(&moved, Some(now), &entry()).await.unwrap(), RunCasOutcome::Done(_)));
    assert_eq!(due(&runs, 10).await, [run_id(1)]);
}

async fn a_run_waits_until_a_person_answers_and_then_no_longer_counts(bench: Bench) {
    let runs = bench.acme().runs();
    let now = bench.store.now().await.unwrap();
    let mut held = Vec::new();
    for number in 1..=5 {
        held.push(open(&runs, &run(number, now)).await);
    }
    let mut foreign = run(6, now);
    foreign.asked.requester = principal("other");
    open(&runs, &foreign).await;
    assert_eq!(past(&bench, "d1", None).await.waiting, 3, "counted only as far as anybody asks");

    fold(&runs, &held[0], &said("ana", Verdict::Reject, now), now).await;
    fold(&runs, &held[1], &RunEvent::Cancelled { by: principal("agent") }, now).await;
    let one = fold(&runs, &held[2], &said("ana", Verdict::Approve, now), now).await;
    assert_eq!(past(&bench, "d1", None).await.waiting, 3, "one of two signatures leaves it waiting");
    fold(&runs, &one, &said("bo", Verdict::Approve, now), now).await;
    fold(&runs, &held[3], &RunEvent::Expired, held[3].run.asked.expires_at).await;
    assert_eq!(past(&bench, "d1", None).await.waiting, 1);
}

async fn a_call_finds_the_newest_run_of_its_digest_and_the_run_of_its_key(bench: Bench) {
    let runs = bench.acme().runs();
    let now = bench.store.now().await.unwrap();
    let later = now.plus(Duration::from_millis(1));
    assert_eq!(past(&bench, "d1", Some("k1")).await, PriorRuns::default());
    // The newer one is opened first: what counts is when it was asked.
    assert!(matches!(runs.open(&run(2, later), Some("k2"), u64::MAX, &entry()).await.unwrap(), RunCasOutcome::Done(_)));
    assert!(matches!(runs.open(&run(1, now), Some("k1"), u64::MAX, &entry()).await.unwrap(), RunCasOutcome::Done(_)));

    let found = past(&bench, "d1", Some("k1")).await;
    assert_eq!((found.same_digest, found.same_key), (Some(run_id(2)), Some(run_id(1))));
    let found = past(&bench, "d2", Some("k3")).await;
    assert_eq!((found.same_digest, found.same_key, found.waiting), (None, None, 2));
    assert_eq!(past(&bench, "d1", None).await.same_key, None);

    let mut foreign = run(3, later);
    (foreign.asked.requester, foreign.asked.digest) = (principal("other"), "d3".into());
    assert!(matches!(runs.open(&foreign, Some("k9"), u64::MAX, &entry()).await.unwrap(), RunCasOutcome::Done(_)));
    assert_eq!(past(&bench, "d1", Some("k9")).await.same_key, None, "a key is its owner's own");
}

async fn only_a_gated_call_looks_for_earlier_runs(bench: Bench) {
    let acme = bench.acme();
    let now = bench.store.now().await.unwrap();
    open(&acme.runs(), &run(1, now)).await;
    let call = call(1, None);
    let begun = acme.begin(&opening(&call)).await.unwrap().opened().unwrap();
    assert_eq!(begun.past, PriorRuns::default());
    acme.audit().close_now(begun.receipt, &CloseFacts::default()).await.unwrap();
}

async fn runs_are_paged_newest_first(bench: Bench) {
    let runs = bench.acme().runs();
    let now = bench.store.now().await.unwrap();
    let at = |number: u64| Moment::from_millis(now.millis() + number);
    for number in [3, 1, 5, 2, 4] {
        open(&runs, &run(number, at(u64::from(number)))).await;
    }
    let page = async |before: Option<Moment>, limit| -> Vec<RunId> {
        runs.page(before, limit).await.unwrap().iter().map(|run| run.id).collect()
    };
    assert_eq!(page(None, 2).await, [run_id(5), run_id(4)]);
    assert_eq!(page(Some(at(4)), 2).await, [run_id(4), run_id(3)], "others may have been asked in that moment too");
    assert_eq!(page(Some(at(1)), 9).await, [run_id(1)]);
    assert_eq!(page(Some(at(0)), 9).await, []);
    assert_eq!(page(None, 0).await, []);

    let gone = bench.acme().commit(Commit::delete(RecordKey::run(run_id(4)), RecordVersion::new(1))).await.unwrap();
    assert!(matches!(gone, Committed::Done(..)));
    assert_eq!(page(None, 3).await, [run_id(5), run_id(3)], "a run that is no longer kept is passed over");
}

async fn every_change_of_a_run_is_in_the_audit_log_and_wakes_whoever_watches(bench: Bench) {
    let (acme, runs) = (bench.acme(), bench.acme().runs());
    let mut watch = acme.watch();
    assert_eq!(watch.next().await, WakeUp::Resync, "from here on messages arrive");
    let now = bench.store.now().await.unwrap();
    let held = open(&runs, &run(1, now)).await;
    fold(&runs, &held, &said("ana", Verdict::Reject, now), now).await;
    assert_eq!(acme.audit().page(None, 10).await.unwrap().len(), 2);
    for _ in 0..2 {
        let next = tokio::time::timeout(Duration::from_secs(20), watch.next()).await.expect("a wake-up should come");
        assert_eq!(next, WakeUp::Topic(Topic::Run(run_id(1))));
    }
}

async fn of_many_deciders_of_one_version_exactly_one_wins(bench: Bench) {
    let runs = bench.acme().runs();
    let now = bench.store.now().await.unwrap();
    for number in 1..=10 {
        let held = open(&runs, &run(number, now)).await;
        let deciders = (0..8).map(|decider| {
            let (runs, held) = (runs.clone(), held.clone());
            async move {
                let next = held.run.apply(&said(&format!("p{decider}"), Verdict::Reject, now), now).unwrap();
                runs.commit(&held, &next, None, &entry()).await.unwrap()
            }
        });
        let ends = futures_util::future::join_all(deciders).await;
        let winner = ends.iter().find_map(|end| match end {
            RunCasOutcome::Done(held) => Some(held.clone()),
            RunCasOutcome::Conflict(_)
            | RunCasOutcome::Late(_)
            | RunCasOutcome::TooManyWaiting
            | RunCasOutcome::Gone => None,
        });
        let winner = winner.expect("somebody wins");
        let lost = ends.iter().filter(|end| **end == RunCasOutcome::Conflict(winner.clone())).count();
        assert_eq!(lost, 7, "every loser is handed the winner's: {ends:?}");
    }
}

async fn one_tenant_does_not_see_the_runs_of_another(bench: Bench) {
    let (acme, bolt) = (bench.acme(), bench.store.of(&tenant("bolt")));
    let now = bench.store.now().await.unwrap();
    open(&acme.runs(), &run(1, Moment::from_millis(now.millis() - 2_000_000))).await;
    assert_eq!(bolt.runs().find(run_id(1)).await.unwrap().0, None);
    assert_eq!(due(&bolt.runs(), 10).await, []);
    assert_eq!(bolt.runs().page(None, 10).await.unwrap(), []);
}

/// A run as the first release wrote it. It must be readable for as long as runs are kept.
const FIRST_RELEASE: &str = r#"{
    "v": 1,
    "asked": {
        "requester": { "issuer": "https://login.example", "subject": "agent" },
        "scopes": "tools:read tools:write",
        "session": "ses_0000000000000000000001",
        "tool": "k8s_scale", "toolset": "k8s", "needs": "write", "schema": "5c",
        "arguments": "{\"replicas\":3}", "effect": "disrupt", "about": null, "digest": "d1", "idempotent": false,
        "preview": { "summary": "s", "text": "t", "warnings": ["w"], "fingerprint": "f" },
        "on_reject": "continue", "deciders": 2, "tainted": false,
        "asked_at": 1763280000000, "expires_at": 1763281800000, "execute_within_ms": 600000, "trace": null
    },
    "state": "outcome_unknown",
    "answers": [
        { "by": { "issuer": "https://login.example", "subject": "ana" }, "verdict": "approve", "reason": "go", "at": 1763280001000 },
        { "by": { "issuer": "https://login.example", "subject": "bo" }, "verdict": "approve", "reason": null, "at": 1763280002000 }
    ],
    "execute_by": 1763280602000,
    "claim": { "owner": "rep_1", "epoch": 2, "lease_until": 1763280032000 },
    "ending": { "code": "deadline", "message": "m", "attempted": true, "result": null, "basis": "b" },
    "delivered": false,
    "changed_at": 1763280040000,
    "of_a_later_release": { "is": "passed over" }
}"#;

async fn the_recorded_shape_of_the_first_release_reads_back(bench: Bench) {
    let acme = bench.acme();
    let written = Commit {
        index: vec![IndexUpdate { index: IndexName::runs(), member: run_id(1).to_string(), rank: Score::At(1) }],
        ..Commit::write(RecordKey::run(run_id(1)), RecordVersion::NONE, FIRST_RELEASE.into())
    };
    assert!(matches!(acme.commit(written).await.unwrap(), Committed::Done(..)));
    let run = acme.runs().find(run_id(1)).await.unwrap().0.unwrap().run;
    assert_eq!((run.id, run.state, run.delivered), (run_id(1), RunState::OutcomeUnknown, false));
    assert_eq!(
        (run.asked.effect, run.asked.needs, run.asked.on_reject),
        (Effect::Disrupt, Level::Write, OnReject::Continue)
    );
    assert_eq!(run.asked.requester, principal("agent"));
    assert_eq!((run.yeses(), run.asked.deciders, run.asked.idempotent), (2, 2, false));
    assert_eq!(run.decision().map(|answer| answer.by.subject.as_str()), Some("bo"));
    assert_eq!(
        run.claim,
        Some(Claim { owner: "rep_1".into(), epoch: 2, lease_until: Moment::from_secs(1_763_280_032) })
    );
    assert_eq!(run.execute_by, Some(Moment::from_secs(1_763_280_602)));
    assert_eq!(run.ending.as_ref().and_then(|ending| ending.code.as_deref()), Some("deadline"));
    assert_eq!(run.due(), Some(Moment::from_secs(1_763_280_040)));
    assert_eq!(acme.runs().page(None, 9).await.unwrap(), [run]);
}

async fn an_unreadable_run_is_an_error_and_not_an_absence(bench: Bench) {
    let acme = bench.acme();
    for (number, body) in [(1, "{}"), (2, "not JSON"), (3, "")] {
        let key = RecordKey::run(run_id(number));
        assert!(matches!(
            acme.commit(Commit::write(key, RecordVersion::NONE, body.into())).await.unwrap(),
            Committed::Done(..)
        ));
        let found = acme.runs().find(run_id(number)).await;
        assert!(matches!(found, Err(StoreError::Corrupt { .. })), "{body:?}: {found:?}");
    }
}

async fn each_step_of_a_run_is_one_round_trip(bench: Bench) {
    let runs = bench.acme().runs();
    let now = bench.store.now().await.unwrap();
    let trips = || bench.store.round_trips();
    let before = trips();
    let held = open(&runs, &run(1, now)).await;
    assert_eq!(trips() - before, 1, "opening");
    runs.find(run_id(1)).await.unwrap();
    assert_eq!(trips() - before, 2, "finding, with the time");
    fold(&runs, &held, &said("ana", Verdict::Approve, now), now).await;
    assert_eq!(trips() - before, 3, "changing");
    past(&bench, "d1", Some("k")).await;
    assert_eq!(trips() - before, 5, "a gated call begins in one, and closes in one");
}

async fn a_rejection_that_ends_the_step_stops_the_session_in_the_same_write(bench: Bench) {
    let runs = bench.acme().runs();
    let now = bench.store.now().await.unwrap();
    let stops = async || runs.stopped_by(&session(1, long_before(now)), LIVES).await.unwrap();
    let mut gentle = run(2, now);
    gentle.asked.on_reject = OnReject::Continue;
    let gentle = open(&runs, &gentle).await;
    fold(&runs, &gentle, &said("ana", Verdict::Reject, now), now).await;
    assert_eq!(stops().await, None, "the rule lets the agent go on");

    let held = open(&runs, &run(1, now)).await;
    let before = bench.store.round_trips();
    let rejected = fold(&runs, &held, &said("ana", Verdict::Reject, now), now).await;
    assert_eq!(bench.store.round_trips() - before, 1, "there is no second write to die before");
    assert_eq!(stops().await, Some(run_id(1)));
    let other = session(2, long_before(now));
    assert_eq!(runs.stopped_by(&other, LIVES).await.unwrap(), None, "another session that was open goes on");
    let elsewhere = bench.store.of(&tenant("other")).runs();
    assert_eq!(elsewhere.stopped_by(&session(1, now), LIVES).await.unwrap(), None);
    let call = call(9, Some(session_id(1)));
    let gated = Some(ApprovalLookup { digest: "d9", key: Some("k"), reviewed: false, most_waiting: 3 });
    let opening = CallOpening { gated, session: Some(session_id(1)), ..opening(&call) };
    let begun = bench.acme().begin(&opening).await.unwrap().opened().unwrap();
    assert_eq!(begun.past.stopped_by, Some(run_id(1)), "a call that would change something learns of it at once");
    bench.acme().audit().close_now(begun.receipt, &CloseFacts::default()).await.unwrap();

    let RunCasOutcome::Done(cleared) = runs.clear(&rejected, &entry()).await.unwrap() else {
        panic!("it should be cleared")
    };
    assert_eq!((stops().await, cleared.run.state), (None, RunState::Rejected));
    fold(&runs, &cleared, &RunEvent::Delivered, now).await;
    assert_eq!(stops().await, None, "a later change of the run does not stop the session again");
}

/// Before anything that the test does.
pub(crate) fn long_before(now: Moment) -> Moment {
    Moment::from_millis(now.millis() - 60_000)
}

async fn what_the_store_has_forgotten_leaves_the_list_of_runs(bench: Bench) {
    let (acme, runs) = (bench.acme(), bench.acme().runs());
    let now = bench.store.now().await.unwrap();
    let long_ago = Moment::from_millis(now.millis() - 40 * 24 * 60 * 60 * 1000);
    for (number, at) in [(1, long_ago), (2, long_ago), (3, now)] {
        open(&runs, &run(number, at)).await;
    }
    for number in [1, 3] {
        let version = runs.find(run_id(number)).await.unwrap().0.unwrap().version;
        let gone = Commit::delete(RecordKey::run(run_id(number)), version);
        assert!(matches!(acme.commit(gone).await.unwrap(), Committed::Done(..)));
    }
    let listed = async || acme.range(&IndexName::runs(), 0, u64::MAX >> 11, 9).await.unwrap().len();
    assert_eq!((listed().await, runs.tidy(9).await.unwrap()), (3, 1), "what is young is not looked at");
    assert_eq!((listed().await, runs.tidy(9).await.unwrap()), (2, 0), "what is still there stays");
    assert_eq!(runs.page(None, 9).await.unwrap().len(), 1);
}

async fn runs_that_are_kept_do_not_stand_before_forgotten_ones(bench: Bench) {
    let (acme, runs) = (bench.acme(), bench.acme().runs());
    let now = bench.store.now().await.unwrap();
    let ago = |days: u64| Moment::from_millis(now.millis() - days * 24 * 60 * 60 * 1000);
    let forgotten = open(&runs, &run(1, ago(50))).await;
    for number in 2..6 {
        open(&runs, &Run { changed_at: now, ..run(number, ago(40)) }).await;
    }
    let gone = Commit::delete(RecordKey::run(run_id(1)), forgotten.version);
    assert!(matches!(acme.commit(gone).await.unwrap(), Committed::Done(..)));
    assert_eq!((runs.tidy(1).await.unwrap(), runs.tidy(1).await.unwrap()), (1, 0));
    assert_eq!(runs.ids(None, None, 9).await.unwrap().len(), 4);
    let before = bench.store.round_trips();
    assert_eq!(runs.tidy(9).await.unwrap(), 0);
    assert_eq!(bench.store.round_trips() - before, 3, "the time, the oldest and their briefs: no run is read");
}

async fn a_run_without_brief_and_record_leaves_the_list_too(bench: Bench) {
    let (acme, runs) = (bench.acme(), bench.acme().runs());
    let now = bench.store.now().await.unwrap();
    let long_ago = Moment::from_millis(now.millis() - 40 * 24 * 60 * 60 * 1000);
    let held = open(&runs, &run(1, long_ago)).await;
    for gone in [
        Commit::delete(RecordKey::run(run_id(1)), held.version),
        Commit::delete(RecordKey::run_brief(run_id(1)), RecordVersion::new(1)),
    ] {
        assert!(matches!(acme.commit(gone).await.unwrap(), Committed::Done(..)));
    }
    assert_eq!((runs.tidy(9).await.unwrap(), runs.tidy(9).await.unwrap()), (1, 0));
    assert_eq!(runs.ids(None, None, 9).await.unwrap(), []);
}

async fn what_a_run_that_is_over_holds_in_words_can_be_taken_out(bench: Bench) {
    let runs = bench.acme().runs();
    let now = bench.store.now().await.unwrap();
    let held = open(&runs, &run(1, now)).await;
    runs.scrub(run_id(1), &entry()).await.unwrap();
    assert_eq!(runs.find(run_id(1)).await.unwrap().0.unwrap(), held, "a run that is not over is left as it is");
    let ending = Some(Ending::done(Some(r#"{"secret":1}"#.to_owned())));
    let over = Run { state: RunState::Succeeded, ending, ..held.run.clone() };
    let RunCasOutcome::Done(held) = runs.commit(&held, &over, None, &entry()).await.unwrap() else { panic!() };
    runs.scrub(run_id(1), &entry()).await.unwrap();
    let scrubbed = runs.find(run_id(1)).await.unwrap().0.unwrap();
    assert!(scrubbed.version > held.version);
    let Run { asked, state, ending, .. } = &scrubbed.run;
    assert_eq!((asked.arguments.as_str(), asked.preview.text.as_str()), (r#"{"redacted":true}"#, "[redacted]"));
    assert_eq!((&asked.preview.warnings, &asked.preview.arguments, &asked.preview.hidden), (&vec![], &None, &vec![]));
    assert_eq!((*state, ending.as_ref().unwrap().result.as_deref()), (RunState::Succeeded, None));
    assert_eq!((&asked.digest, &asked.tool), (&over.asked.digest, &over.asked.tool), "who asked for what stays");
    runs.scrub(run_id(1), &entry()).await.unwrap();
    assert_eq!(runs.find(run_id(1)).await.unwrap().0.unwrap().version, scrubbed.version, "once is enough");
}

async fn what_is_not_over_is_found_whenever_it_is_due_until_it_is_set_aside(bench: Bench) {
    let runs = bench.acme().runs();
    let now = bench.store.now().await.unwrap();
    let later = now.plus(Duration::from_secs(60));
    let held = open(&runs, &run(1, now)).await;
    open(&runs, &run(2, later)).await;
    assert_eq!(due(&runs, 9).await, [], "nobody has to look yet");
    assert_eq!(runs.open_ones(9).await.unwrap(), [run_id(1), run_id(2)]);
    fold(&runs, &held, &said("ana", Verdict::Reject, now), now).await;
    assert_eq!(runs.open_ones(9).await.unwrap(), [run_id(2)]);
    runs.set_aside(run_id(2)).await.unwrap();
    assert_eq!(runs.open_ones(9).await.unwrap(), []);
}

async fn a_run_is_listed_for_as_long_as_a_person_may_take_and_longer(bench: Bench) {
    let runs = bench.acme().runs();
    let now = bench.store.now().await.unwrap();
    let ago = |days: u64| Moment::from_millis(now.millis() - days * 24 * 60 * 60 * 1000);
    let mut patient = run(1, ago(40));
    patient.asked.expires_at = now.plus(Duration::from_secs(60));
    open(&runs, &patient).await;
    open(&runs, &run(2, ago(40))).await;
    let briefs = runs.briefs(&[run_id(1), run_id(2)]).await.unwrap();
    assert_eq!(briefs, [RunBrief::of(&patient)], "the other one is over since ten days");
}

async fn a_list_reads_briefs_and_not_whole_runs(bench: Bench) {
    let (acme, runs) = (bench.acme(), bench.acme().runs());
    let now = bench.store.now().await.unwrap();
    let held = open(&runs, &run(1, now)).await;
    let approved = fold(&runs, &held, &said("ana", Verdict::Approve, now), now).await;
    let ids = runs.ids(None, None, 10).await.unwrap();
    assert_eq!(ids, [run_id(1)]);
    let before = bench.store.round_trips();
    let briefs = runs.briefs(&ids).await.unwrap();
    assert_eq!(briefs, [RunBrief::of(&approved.run)]);
    assert_eq!(bench.store.round_trips() - before, 1);

    // Whoever lists does not even look at the run itself.
    let broken = Commit::write(RecordKey::run(run_id(1)), approved.version, b"broken".to_vec());
    assert!(matches!(acme.commit(broken).await.unwrap(), Committed::Done(..)));
    assert_eq!(runs.briefs(&ids).await.unwrap(), briefs);
    assert!(runs.page(None, 10).await.is_err());

    // An earlier release wrote no briefs; then the run is read.
    let other = open(&runs, &run(2, now)).await;
    let gone = Commit::delete(RecordKey::run_brief(run_id(2)), RecordVersion::new(1));
    assert!(matches!(acme.commit(gone).await.unwrap(), Committed::Done(..)));
    assert_eq!(runs.briefs(&[run_id(2), run_id(3)]).await.unwrap(), [RunBrief::of(&other.run)]);
    let third = open(&runs, &run(3, now)).await;
    let gone = Commit::delete(RecordKey::run_brief(run_id(3)), RecordVersion::new(1));
    assert!(matches!(acme.commit(gone).await.unwrap(), Committed::Done(..)));
    let both = [RunBrief::of(&third.run), RunBrief::of(&other.run)];
    assert_eq!(runs.briefs(&[run_id(3), run_id(2)]).await.unwrap(), both, "in the order that was asked for");
}

/// What lists show of a run, as builds wrote it that knew nothing of its object, its deciders and its last change.
const EARLIER_BRIEF: &str = r#"{
    "v": 1, "state": "pending_approval", "tool": "k8s_scale", "effect": "change", "summary": "scale web",
    "requested": "k8s_scale: name=web", "requester": { "issuer": "https://login.example", "subject": "agent" },
    "session": null, "asked_at": 1763280000000, "expires_at": 1763281800000, "kept_until": 32503680000000
}"#;

async fn what_earlier_builds_did_not_write_of_a_run_is_listed_as_it_was_then(bench: Bench) {
    let acme = bench.acme();
    let written = Commit::write(RecordKey::run_brief(run_id(1)), RecordVersion::NONE, EARLIER_BRIEF.into());
    assert!(matches!(acme.commit(written).await.unwrap(), Committed::Done(..)));
    let brief = acme.runs().briefs(&[run_id(1)]).await.unwrap().remove(0);
    assert_eq!((brief.deciders, brief.yeses, brief.decided_by), (1, 0, None), "one person decided then");
    assert_eq!((brief.object, brief.tainted, brief.changed_at), (None, false, brief.asked_at));
}

async fn a_requesters_list_holds_its_own_runs_alone(bench: Bench) {
    let runs = bench.acme().runs();
    let now = bench.store.now().await.unwrap();
    open(&runs, &run(1, now)).await;
    let mut theirs = run(2, now.plus(Duration::from_secs(1)));
    theirs.asked.requester = principal("other");
    open(&runs, &theirs).await;
    let ids = async |of: Option<&str>| runs.ids(of.map(principal).as_ref(), None, 10).await.unwrap();
    assert_eq!(ids(None).await, [run_id(2), run_id(1)], "newest first");
    assert_eq!((ids(Some("agent")).await, ids(Some("other")).await), (vec![run_id(1)], vec![run_id(2)]));
    assert_eq!(ids(Some("nobody")).await, []);
}

async fn what_a_replica_still_holds_is_written_back_and_found_again(bench: Bench) {
    let (acme, runs) = (bench.acme(), bench.acme().runs());
    let now = bench.store.now().await.unwrap();
    let held = open(&runs, &run(1, now)).await;
    let unknown = Run { state: RunState::OutcomeUnknown, changed_at: now, ..held.run.clone() };
    let newer = VersionedRun { version: RecordVersion::new(9), ..held.clone() };
    let refused = runs.write_back(&unknown, Some(&newer), &entry()).await.unwrap();
    assert_eq!(refused, RunCasOutcome::Conflict(held.clone()), "only over what was seen");
    assert_eq!(runs.write_back(&unknown, None, &entry()).await.unwrap(), RunCasOutcome::Conflict(held.clone()));
    assert!(matches!(runs.write_back(&unknown, Some(&held), &entry()).await.unwrap(), RunCasOutcome::Done(_)));

    let gone = acme.commit(Commit::delete(RecordKey::run(run_id(1)), RecordVersion::new(2))).await.unwrap();
    assert!(matches!(gone, Committed::Done(..)));
    let index = |index, rank: Option<u64>| IndexUpdate { index, member: run_id(1).to_string(), rank: rank.into() };
    let emptied = Commit {
        index: vec![index(IndexName::runs(), None), index(IndexName::same_digest("d1"), None)],
        ..Commit::write(RecordKey::seal(), RecordVersion::NONE, b"x".to_vec())
    };
    assert!(matches!(acme.commit(emptied).await.unwrap(), Committed::Done(..)));
    assert_eq!(past(&bench, "d1", None).await.same_digest, None);
    let back = runs.write_back(&unknown, None, &entry()).await.unwrap();
    assert!(matches!(back, RunCasOutcome::Done(held) if held.version == RecordVersion::new(1)));
    assert_eq!(runs.find(run_id(1)).await.unwrap().0.unwrap().run, unknown);
    assert_eq!(runs.page(None, 10).await.unwrap(), [unknown]);
    assert_eq!(past(&bench, "d1", None).await.same_digest, Some(run_id(1)));
}

async fn without_replicas_nobody_is_asked_to_confirm(bench: Bench) {
    let runs = bench.acme().runs();
    let held = open(&runs, &run(1, bench.store.now().await.unwrap())).await;
    let before = bench.store.round_trips();
    let confirmed = runs.confirm(held.run.id, Duration::from_millis(100)).await.unwrap();
    if bench.is_replicated() {
        assert!(confirmed.is_some_and(|standing| standing.held == Some(held)));
        return;
    }
    assert_eq!(confirmed, None);
    assert_eq!(bench.store.round_trips(), before);
    assert_eq!(bench.store.lineages().now().since, None);
}

async fn what_is_reviewed_is_counted_apart_until_nothing_more_can_come_of_it(bench: Bench) {
    let runs = bench.acme().runs();
    let now = bench.store.now().await.unwrap();
    let mut proposal = run(1, now);
    (proposal.asked.reviewed, proposal.asked.deciders, proposal.asked.digest) = (true, 1, "d2".into());
    let under_review = |session, owner: &'static str| {
        let runs = runs.clone();
        async move { runs.is_under_review(session_id(session), &principal(owner)).await.unwrap() }
    };
    assert!(!under_review(1, "agent").await);
    let held = open(&runs, &proposal).await;
    open(&runs, &run(2, now)).await;
    assert_eq!(past(&bench, "d3", None).await.waiting, 1, "only what is urgent counts there");
    assert!(under_review(1, "agent").await);
    assert!(!under_review(2, "agent").await && !under_review(1, "other").await);

    let approved = fold(&runs, &held, &said("ana", Verdict::Approve, now), now).await;
    assert!(under_review(1, "agent").await, "it is still to be carried out");
    let lease_until = now.plus(Duration::from_secs(30));
    let claimed =
        fold(&runs, &approved, &RunEvent::Claimed { owner: "rep".into(), lease_until, span: None }, now).await;
    assert!(under_review(1, "agent").await);
    let done = RunEvent::Finished { owner: "rep".into(), epoch: 1, ending: Ending::done(None) };
    fold(&runs, &claimed, &done, now).await;
    assert!(!under_review(1, "agent").await);
}
