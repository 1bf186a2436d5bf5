use super::*;
use crate::{Assignment, Effect, Level};
use proptest::prelude::*;

const T0: u64 = 1_000_000;
const EXPIRES: u64 = T0 + 10_000;

fn at(millis: u64) -> Moment {
    Moment::from_millis(millis)
}

fn person(n: usize) -> Principal {
    Principal::new("i", ["agent", "ana", "bob", "cho"][n % 4])
}

fn run(idempotent: bool, deciders: u32) -> Run {
    let asked = RunRequest {
        requester: person(0),
        scopes: "tools:write".into(),
        session: None,
        tool: ToolName::parse("k8s_scale").unwrap(),
        toolset: ToolsetName::parse("k8s").unwrap(),
        needs: Level::Write,
        schema: "s".into(),
        arguments: "{}".into(),
        effect: Effect::Change,
        about: None,
        digest: "d".into(),
        idempotent,
        preview: Preview {
            summary: "x".into(),
            text: "x".into(),
            warnings: vec![],
            fingerprint: "f".into(),
            arguments: None,
            hidden: Vec::new(),
        },
        reviewed: false,
        on_reject: OnReject::Continue,
        deciders,
        tainted: false,
        assignment: Assignment::default(),
        asked_at: at(T0),
        expires_at: at(EXPIRES),
        execute_within_ms: 5_000,
        trace: None,
        span: None,
        kept_object: None,
    };
    Run::new(RunId::from_random([1; 16]), asked)
}

fn answer(n: usize, verdict: Verdict, millis: u64) -> RunEvent {
    RunEvent::Answered(Answer { by: person(n), verdict, reason: None, at: at(millis), span: None })
}

fn claim(owner: &str, until: u64) -> RunEvent {
    RunEvent::Claimed { owner: owner.into(), lease_until: at(until), span: None }
}

fn finish(owner: &str, epoch: u64) -> RunEvent {
    RunEvent::Finished { owner: owner.into(), epoch, ending: Ending::done(None) }
}

fn lost(by: Option<(&str, u64)>) -> RunEvent {
    RunEvent::Lost { by: by.map(|(o, e)| (o.into(), e)), ending: Ending::failed(Code::Deadline, "late") }
}

fn reconciled(succeeded: bool) -> RunEvent {
    RunEvent::Reconciled { succeeded, ending: Ending::done(None) }
}

fn approved() -> Run {
    run(false, 1).apply(&answer(1, Verdict::Approve, T0), at(T0)).unwrap()
}

#[test]
fn the_happy_path_has_four_steps() {
    let run = approved();
    assert_eq!((run.state, run.execute_by), (RunState::Approved, Some(at(T0 + 5_000))));
    let run = run.apply(&claim("a", T0 + 300), at(T0 + 1)).unwrap();
    assert_eq!((run.state, run.due()), (RunState::Executing, Some(at(T0 + 300))));
    assert_eq!(run.changed_at, at(T0 + 1));
    let run = run.apply(&finish("a", 1), at(T0 + 2)).unwrap();
    assert_eq!((run.state, run.due()), (RunState::Succeeded, None));
    assert_eq!((run.changed_at, run.ending.clone()), (at(T0 + 2), Some(Ending::done(None))));
    let failed = RunEvent::Finished { owner: "a".into(), epoch: 1, ending: Ending::failed(Code::Internal, "no") };
    let held = approved().apply(&claim("a", T0 + 300), at(T0 + 1)).unwrap();
    assert_eq!(held.apply(&failed, at(T0 + 2)).unwrap().state, RunState::Failed);
}

#[test]
fn every_state_has_its_name_and_knows_whether_it_is_over() {
    let table: Vec<(&str, bool, bool)> =
        RunState::ALL.iter().map(|s| (s.as_str(), s.is_final(), s.is_settled())).collect();
    assert_eq!(
        table,
        [
            ("pending_approval", false, false),
            ("approved", false, false),
            ("rejected", true, true),
            ("expired", true, true),
            ("cancelled", true, true),
            ("executing", false, false),
            ("succeeded", true, true),
            ("failed", true, true),
            ("outcome_unknown", false, true),
            ("reconciled_succeeded", true, true),
            ("reconciled_failed", true, true),
        ]
    );
}

#[test]
fn what_was_asked_for_is_told_in_one_line() {
    let requested = |arguments: serde_json::Value| {
        let mut run = run(false, 1);
        run.asked.arguments = arguments.to_string();
        run.asked.requested()
    };
    assert_eq!(requested(serde_json::json!({})), "k8s_scale");
    assert_eq!(
        requested(serde_json::json!({ "name": "web", "replicas": 3, "dry": null, "list": [1, 2], "map": { "a": 1 } })),
        "k8s_scale: dry=null, list (2 items), map (1 fields), name=web, replicas=3"
    );
    assert_eq!(requested(serde_json::json!({ "text": "a\nb" })), "k8s_scale: text (3 characters)", "no second line");
    assert_eq!(requested(serde_json::json!({ "text": "x".repeat(80) })), format!("k8s_scale: text={}", "x".repeat(80)));
    assert_eq!(requested(serde_json::json!({ "text": "x".repeat(81) })), "k8s_scale: text (81 characters)");
}

#[test]
fn what_a_run_is_done_to_is_told_by_the_names_in_its_arguments() {
    let object = |arguments: serde_json::Value| {
        let mut run = run(false, 1);
        run.asked.arguments = arguments.to_string();
        run.asked.object()
    };
    let named =
        serde_json::json!({ "name": "web", "kind": "Deployment", "namespace": "shop", "cluster": "", "to": "x" });
    assert_eq!(object(named).as_deref(), Some("shop/Deployment/web"));
    assert_eq!(object(serde_json::json!({ "cluster": "prod", "namespace": "shop" })), None, "only a place");
    assert_eq!(object(serde_json::json!({ "name": "x".repeat(200) })), Some("x".repeat(200)));
    assert_eq!(object(serde_json::json!({ "name": "x".repeat(201) })), None);
}

#[test]
fn an_ending_says_whether_anything_was_sent_and_how_that_is_known() {
    let told = |ending: Ending| (ending.code, ending.attempted, ending.basis);
    let stale = || Some(Code::Stale.as_str().to_owned());
    assert_eq!(told(Ending::done(None)), (None, true, "the tool's answer".into()));
    assert_eq!(told(Ending::failed(Code::Stale, "no")), (stale(), true, "the tool's answer".into()));
    assert_eq!(told(Ending::not_attempted(Code::Stale, "no")), (stale(), false, "checked before sending".into()));
}

#[test]
fn the_requester_never_answers_its_own_request() {
    for verdict in [Verdict::Approve, Verdict::Reject] {
        assert_eq!(run(true, 1).apply(&answer(0, verdict, T0), at(T0)), Err(NotAnEdge::OwnRequest));
    }
}

#[test]
fn a_second_account_is_no_second_person() {
    let account = |issuer: &str| Principal { person: Some("ana@acme".into()), ..Principal::new(issuer, "x") };
    let yes = |by: Principal| {
        RunEvent::Answered(Answer { by, verdict: Verdict::Approve, reason: None, at: at(T0), span: None })
    };
    let mut own = run(true, 1);
    own.asked.requester = account("home");
    assert_eq!(own.apply(&yes(account("work")), at(T0)), Err(NotAnEdge::OwnRequest));

    let once = run(true, 2).apply(&yes(account("home")), at(T0)).unwrap();
    assert_eq!(once.apply(&yes(account("work")), at(T0)), Err(NotAnEdge::Repeated));
    let no = Answer { by: account("work"), verdict: Verdict::Reject, reason: None, at: at(T0), span: None };
    let withdrawn = once.apply(&RunEvent::Answered(no), at(T0)).unwrap();
    assert_eq!((withdrawn.state, withdrawn.yeses()), (RunState::Rejected, 0));
    let twice = once.apply(&answer(2, Verdict::Approve, T0), at(T0)).unwrap();
    assert_eq!(twice.state, RunState::Approved);
}

#[test]
fn one_decision_wins_and_the_loser_learns_who() {
    let decided = approved();
    let Err(NotAnEdge::AlreadyDecided(winner)) = decided.apply(&answer(2, Verdict::Reject, T0 + 1), at(T0 + 1)) else {
        panic!("a second decision");
    };
    assert_eq!((winner.by, winner.at), (person(1), at(T0)));
    assert_eq!(decided.apply(&answer(1, Verdict::Approve, T0 + 1), at(T0 + 1)), Err(NotAnEdge::Repeated));
    let rejected = run(true, 1).apply(&answer(1, Verdict::Reject, T0), at(T0)).unwrap();
    assert_eq!(rejected.state, RunState::Rejected);
}

#[test]
fn what_ended_undecided_names_no_winner() {
    let first = run(true, 2).apply(&answer(1, Verdict::Approve, T0), at(T0)).unwrap();
    let cancelled = first.apply(&RunEvent::Cancelled { by: person(0) }, at(T0 + 1)).unwrap();
    assert!(cancelled.delivered, "whoever took it back knows");
    let late = cancelled.apply(&answer(2, Verdict::Approve, T0 + 2), at(T0 + 2));
    assert_eq!(late, Err(NotAnEdge::State(RunState::Cancelled)));
}

#[test]
fn a_quorum_counts_people_and_not_clicks() {
    let first = run(true, 2).apply(&answer(1, Verdict::Approve, T0), at(T0)).unwrap();
    assert_eq!((first.state, first.yeses()), (RunState::PendingApproval, 1));
    assert_eq!(first.apply(&answer(1, Verdict::Approve, T0), at(T0)), Err(NotAnEdge::Repeated));
    let second = first.apply(&answer(2, Verdict::Approve, T0 + 1), at(T0 + 1)).unwrap();
    assert_eq!(second.state, RunState::Approved);
    let changed_mind = first.apply(&answer(1, Verdict::Reject, T0 + 1), at(T0 + 1)).unwrap();
    assert_eq!((changed_mind.state, changed_mind.yeses()), (RunState::Rejected, 0));
}

#[test]
fn the_clocks_are_exact() {
    let yes = answer(1, Verdict::Approve, EXPIRES);
    assert!(run(true, 1).apply(&yes, at(EXPIRES - 1)).is_ok());
    assert_eq!(run(true, 1).apply(&yes, at(EXPIRES)), Err(NotAnEdge::Late));
    assert_eq!(run(true, 1).apply(&RunEvent::Expired, at(EXPIRES - 1)), Err(NotAnEdge::Early));
    assert_eq!(run(true, 1).apply(&RunEvent::Expired, at(EXPIRES)).unwrap().state, RunState::Expired);
    let by = T0 + 5_000;
    assert!(approved().apply(&claim("a", by + 9), at(by - 1)).is_ok());
    assert_eq!(approved().apply(&claim("a", by + 9), at(by)), Err(NotAnEdge::Late));
    assert_eq!(approved().apply(&RunEvent::Expired, at(by - 1)), Err(NotAnEdge::Early));
    assert_eq!(approved().apply(&RunEvent::Expired, at(by)).unwrap().state, RunState::Expired);
}

#[test]
fn a_lost_lease_fences_the_old_owner() {
    let yes = run(true, 1).apply(&answer(1, Verdict::Approve, T0), at(T0)).unwrap();
    let held = yes.apply(&claim("a", T0 + 100), at(T0)).unwrap();
    assert_eq!(held.apply(&claim("b", T0 + 200), at(T0 + 99)), Err(NotAnEdge::Early));
    let taken = held.apply(&claim("b", T0 + 200), at(T0 + 100)).unwrap();
    assert_eq!(taken.claim, Some(Claim { owner: "b".into(), epoch: 2, lease_until: at(T0 + 200) }));
    for zombie in [
        finish("a", 1),
        lost(Some(("a", 1))),
        RunEvent::Renewed { owner: "a".into(), epoch: 1, lease_until: at(T0 + 900) },
    ] {
        assert_eq!(taken.apply(&zombie, at(T0 + 101)), Err(NotAnEdge::Fenced));
    }
    assert_eq!(taken.apply(&finish("b", 1), at(T0 + 101)), Err(NotAnEdge::Fenced), "an old epoch of the same owner");
    assert_eq!(taken.apply(&finish("b", 2), at(T0 + 101)).unwrap().state, RunState::Succeeded);
}

#[test]
fn what_is_not_idempotent_is_never_taken_over() {
    let held = approved().apply(&claim("a", T0 + 100), at(T0)).unwrap();
    assert_eq!(held.apply(&claim("b", T0 + 300), at(T0 + 200)), Err(NotAnEdge::NotIdempotent));
    assert_eq!(held.apply(&lost(None), at(T0 + 99)), Err(NotAnEdge::Early));
    let unknown = held.apply(&lost(None), at(T0 + 100)).unwrap();
    assert_eq!(unknown.state, RunState::OutcomeUnknown);
    assert_eq!(unknown.apply(&reconciled(true), at(T0 + 101)).unwrap().state, RunState::ReconciledSucceeded);
    assert_eq!(unknown.apply(&reconciled(false), at(T0 + 101)).unwrap().state, RunState::ReconciledFailed);
}

#[test]
fn renewing_moves_the_lease_and_nothing_else() {
    let held = approved().apply(&claim("a", T0 + 100), at(T0)).unwrap();
    let renewed =
        held.apply(&RunEvent::Renewed { owner: "a".into(), epoch: 1, lease_until: at(T0 + 500) }, at(T0 + 50)).unwrap();
    assert_eq!((renewed.state, renewed.due()), (RunState::Executing, Some(at(T0 + 500))));
    assert_eq!(renewed.changed_at, at(T0 + 50));
    assert_eq!(renewed.claim.as_ref().map(|c| c.epoch), Some(1));
}

#[test]
fn only_a_final_run_is_delivered_and_only_once() {
    assert!(approved().apply(&RunEvent::Delivered, at(T0)).is_err());
    let done = approved().apply(&claim("a", T0 + 9), at(T0)).unwrap().apply(&finish("a", 1), at(T0)).unwrap();
    let delivered = done.apply(&RunEvent::Delivered, at(T0)).unwrap();
    assert!(delivered.delivered && delivered.state == RunState::Succeeded);
    assert!(delivered.apply(&RunEvent::Delivered, at(T0)).is_err());
}

fn event() -> impl Strategy<Value = (RunEvent, u64)> {
    let time = T0..EXPIRES + 20_000;
    let kind = prop_oneof![
        (0..4usize, any::<bool>()).prop_map(|(n, yes)| answer(
            n,
            if yes { Verdict::Approve } else { Verdict::Reject },
            T0
        )),
        Just(RunEvent::Expired),
        Just(RunEvent::Cancelled { by: person(0) }),
        (0..2usize, T0..EXPIRES + 20_000).prop_map(|(n, until)| claim(["a", "b"][n], until)),
        (0..2usize, 0..4u64, T0..EXPIRES + 20_000).prop_map(|(n, epoch, until)| RunEvent::Renewed {
            owner: ["a", "b"][n].into(),
            epoch,
            lease_until: at(until)
        }),
        (0..2usize, 0..4u64).prop_map(|(n, epoch)| finish(["a", "b"][n], epoch)),
        (0..3usize, 0..4u64).prop_map(|(n, epoch)| lost((n < 2).then(|| (["a", "b"][n], epoch)))),
        any::<bool>().prop_map(reconciled),
        Just(RunEvent::Delivered),
    ];
    (kind, time)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn no_sequence_of_events_goes_around_the_edges(
        steps in prop::collection::vec(event(), 0..40), idempotent in any::<bool>(), deciders in 1..3u32,
    ) {
        let mut now = run(idempotent, deciders);
        let first = now.clone();
        let mut log = Vec::new();
        let mut was_approved = false;
        for (event, time) in steps {
            let Ok(next) = now.apply(&event, at(time)) else { continue };
            prop_assert!(!now.state.is_final() || (next.delivered && next.state == now.state), "a final state changed");
            was_approved |= next.state == RunState::Approved;
            if next.state == RunState::Executing {
                prop_assert!(was_approved, "executing without approval");
                prop_assert!(next.yeses() >= deciders as usize);
                prop_assert!(next.answers.iter().all(|a| a.by != next.asked.requester));
            }
            if next.state == RunState::Executing && now.state == RunState::Executing && next.claim.as_ref().map(|c| c.epoch) != now.claim.as_ref().map(|c| c.epoch) {
                prop_assert!(idempotent, "taken over though not idempotent");
            }
            let (old, new) = (now.claim.as_ref().map_or(0, |c| c.epoch), next.claim.as_ref().map_or(0, |c| c.epoch));
            prop_assert!(new >= old, "an epoch went back");
            prop_assert_eq!(&next.asked, &first.asked);
            log.push((event, time));
            now = next;
        }
        let folded = log.iter().try_fold(first, |run, (event, time)| run.apply(event, at(*time)));
        prop_assert_eq!(folded, Ok(now));
    }
}
