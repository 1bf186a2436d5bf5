//! Steering: pause, promote, abort, retry, restart; what is shown, what is sent, and what a second attempt finds.

use crate::argo::world::{World, approval, now, only, run, until};
use catalog::ProbeResult;
use domain::{Code, Moment, RunId};
use policy::PermitApproval;
use sandbox::{ClusterFault, ClusterHarm, Seed};
use serde_json::{Value, json};

const STATUS: &str = "PATCH shop/rollouts/search/status";

fn act(action: &str) -> Value {
    json!({ "action": action, "name": "search" })
}

/// A Rollout that no controller looks after, since it has no template: it stays as a test puts it.
async fn staged(world: &World, status: Value) {
    let steps =
        json!([{ "setWeight": 20 }, { "pause": {} }, { "analysis": { "templates": [{ "templateName": "x" }] } }]);
    let metadata = json!({ "name": "staged", "namespace": "shop" });
    let spec = json!({ "replicas": 2, "strategy": { "canary": { "steps": steps } } });
    world
        .make(json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": metadata, "spec": spec }))
        .await;
    world.change_status("rollouts", "staged", json!({ "status": status })).await;
}

fn on_staged(action: &str) -> Value {
    json!({ "action": action, "name": "staged" })
}

fn held_since(began: &str) -> Value {
    json!({
        "phase": "Paused", "observedGeneration": "1", "currentPodHash": "b", "stableRS": "a", "currentStepIndex": 1,
        "controllerPause": true, "pauseConditions": [{ "reason": "CanaryPauseStep", "startTime": began }],
    })
}

const LONG_AGO: &str = "2026-01-02T03:04:05Z";

fn writes_to_rollouts(world: &World, before: usize) -> Vec<String> {
    let of_rollouts = |write: &String| write.contains("/rollouts/");
    let bare = |write: String| write.split('?').next().unwrap().to_owned();
    world.writes_since(before).into_iter().filter(of_rollouts).map(bare).collect()
}

#[tokio::test]
async fn a_canary_is_promoted_step_by_step_until_it_serves() {
    let world = World::shop().await;
    let before = world.writes();

    let shown = world.preview("argo_rollout", act("promote")).await.unwrap();
    let told = world.run("argo_rollout", act("promote")).await.unwrap();

    for line in
        ["now: Paused", "step: step 3 of 5, pause until promoted", "next: step 4 of 5, set weight 50%", "25% -> 50%"]
    {
        assert!(shown.text.contains(line), "{line} in\n{}", shown.text);
    }
    assert_eq!((&told["step_from"], &told["step_to"], &told["noop"]), (&json!(2), &json!(3), &json!(false)), "{told}");
    assert_eq!(writes_to_rollouts(&world, before), [STATUS]);
    let next = world.becomes("search", "Paused").await;
    assert_eq!((&next["current_step"], &next["weight"]), (&json!(4), &json!(50)), "{next}");

    world.run("argo_rollout", act("promote")).await.unwrap();
    let healthy = world.becomes("search", "Healthy").await;
    assert_eq!((&healthy["step"], &healthy["weight"], &healthy["ready"]), (&json!("5/5"), &json!(100), &json!("4/4")));
    let again = world.run("argo_rollout", act("promote")).await.unwrap_err();
    assert_eq!(again.code, kubernetes::codes::NOTHING_TO_PROMOTE);
    assert!(again.message.contains("serves already"), "{again}");
}

#[tokio::test]
async fn g1_a_promote_while_one_is_under_way_is_already_there() {
    let world = World::shop().await;
    let mut lifted = held_since(LONG_AGO);
    lifted["pauseConditions"] = Value::Null;
    staged(&world, lifted).await;
    let before = world.writes();

    let shown = world.preview("argo_rollout", on_staged("promote")).await.unwrap();
    let told = world.run("argo_rollout", on_staged("promote")).await.unwrap();

    assert!(shown.text.contains("a promote is under way already"), "{}", shown.text);
    assert_eq!((&told["noop"], &told["phase"]), (&json!(true), &json!("Progressing")), "{told}");
    assert_eq!(world.writes(), before, "the step that follows was not skipped");
}

#[tokio::test]
async fn g1_two_promotes_of_one_decision_move_one_step() {
    let world = World::shop().await;
    let decided = approval(run());
    let also = PermitApproval { run: RunId::from_random([5; 16]), ..decided.clone() };

    let first = world.run_by("argo_rollout", act("promote"), decided).await.unwrap();
    let second = world.run_by("argo_rollout", act("promote"), also.clone()).await;
    let at_the_next = world.becomes("search", "Paused").await;
    let late = world.run_by("argo_rollout", act("promote"), also).await.unwrap_err();

    assert_eq!((&first["noop"], &at_the_next["current_step"]), (&json!(false), &json!(4)));
    match second {
        Ok(told) => assert_eq!(told["noop"], true, "{told}"),
        Err(failure) => assert_eq!(failure.code, Code::Stale, "{failure}"),
    }
    assert_eq!(late.code, Code::Stale, "the pause it was decided on is over");
    assert_eq!(world.rollout("search").await["current_step"], 4);
}

#[tokio::test]
async fn what_was_judged_is_another_thing_once_the_step_has_moved() {
    let world = World::shop().await;
    staged(&world, held_since(LONG_AGO)).await;
    let judged = world.preview("argo_rollout", on_staged("promote")).await.unwrap().fingerprint;
    let same = world.preview("argo_rollout", on_staged("promote")).await.unwrap().fingerprint;
    world.change_status("rollouts", "staged", json!({ "status": { "readyReplicas": 1 } })).await;
    let counted = world.preview("argo_rollout", on_staged("promote")).await.unwrap().fingerprint;
    world.change_status("rollouts", "staged", json!({ "status": held_since("2026-01-02T03:04:06Z") })).await;
    let another = world.preview("argo_rollout", on_staged("promote")).await.unwrap().fingerprint;

    assert_eq!((&judged, &judged), (&same, &counted), "what moves by itself is not judged");
    assert_ne!(judged, another, "another pause is another decision");
}

#[tokio::test]
async fn a_version_that_moved_is_read_again_while_the_step_is_the_same() {
    let world = World::shop().await;
    staged(&world, held_since(LONG_AGO)).await;
    let harm = ClusterHarm::Delay(std::time::Duration::from_secs(2));
    world.sandbox().plant(ClusterFault { method: Some("PATCH".into()), path: "staged/status".into(), times: 1, harm });
    let arrived = async || {
        world
            .sandbox()
            .requests()
            .iter()
            .any(|request| request.starts_with("PATCH") && request.contains("staged/status?fieldManager"))
    };
    let begun = world.sandbox().requests().len();
    let meanwhile = async {
        until("the write arrives", async || world.sandbox().requests().len() > begun && arrived().await).await;
        world.change("rollouts", "staged", json!({ "metadata": { "labels": { "touched": "yes" } } })).await;
    };

    let (told, ()) = tokio::join!(world.run("argo_rollout", on_staged("promote")), meanwhile);

    assert_eq!(told.unwrap()["noop"], false);
    let after = world.get("rollouts", "staged").await;
    assert!(after["status"].get("pauseConditions").is_none(), "{}", after["status"]);
}

#[tokio::test]
async fn a_step_that_moved_meanwhile_is_left_alone() {
    let world = World::shop().await;
    staged(&world, held_since(LONG_AGO)).await;
    let harm = ClusterHarm::Delay(std::time::Duration::from_secs(2));
    world.sandbox().plant(ClusterFault { method: Some("PATCH".into()), path: "staged/status".into(), times: 1, harm });
    let meanwhile = async {
        let sent = |request: &String| request.starts_with("PATCH") && request.contains("staged/status");
        let before = world.sandbox().requests().iter().filter(|request| sent(request)).count();
        until("the write arrives", async || {
            world.sandbox().requests().iter().filter(|request| sent(request)).count() > before
        })
        .await;
        world.change_status("rollouts", "staged", json!({ "status": { "currentStepIndex": 2 } })).await;
    };

    let (told, ()) = tokio::join!(world.run("argo_rollout", on_staged("promote")), meanwhile);

    assert_eq!(told.unwrap_err().code, Code::Stale);
    let after = world.get("rollouts", "staged").await;
    assert_eq!(after["status"]["currentStepIndex"], 2);
    assert!(after["status"]["pauseConditions"].is_array(), "nothing was lifted");
}

#[tokio::test]
async fn an_analysis_without_conclusion_is_passed_over_by_a_promote() {
    let world = World::shop().await;
    let mut status = held_since(LONG_AGO);
    status["canary"] = json!({ "currentStepAnalysisRunStatus": { "name": "x", "status": "Inconclusive" } });
    staged(&world, status).await;

    let shown = world.preview("argo_rollout", on_staged("promote")).await.unwrap();
    world.run("argo_rollout", on_staged("promote")).await.unwrap();

    assert!(shown.warnings.iter().any(|warning| warning.contains("no conclusion")), "{:?}", shown.warnings);
    let after = world.get("rollouts", "staged").await;
    assert_eq!((&after["status"]["currentStepIndex"], &after["status"]["controllerPause"]), (&json!(2), &json!(false)));
}

#[tokio::test]
async fn a_pause_by_hand_is_set_lifted_and_left_alone_where_it_is_as_wished() {
    let world = World::shop().await;

    let paused = world.run("argo_rollout", act("pause")).await.unwrap();
    let again = world.run("argo_rollout", act("pause")).await.unwrap();
    let before = world.writes();
    let resumed = world.run("argo_rollout", act("resume")).await.unwrap();

    assert_eq!((&paused["noop"], &again["noop"]), (&json!(false), &json!(true)));
    assert_eq!((&resumed["noop"], &resumed["held_by_step"]), (&json!(false), &json!(true)), "{resumed}");
    assert_eq!(writes_to_rollouts(&world, before), [STATUS.trim_end_matches("/status")]);
    let object = world.get("rollouts", "search").await;
    assert_eq!(object["metadata"]["annotations"]["quartermaster/run"], run().to_string());
}

#[tokio::test]
async fn an_aborted_canary_goes_back_to_stable_and_can_be_tried_again() {
    let world = World::shop().await;
    let early = world.run("argo_rollout", act("retry")).await.unwrap_err();

    let shown = world.preview("argo_rollout", act("abort")).await.unwrap();
    let told = world.run("argo_rollout", act("abort")).await.unwrap();
    let aborted = world.becomes("search", "Degraded").await;
    let again = world.run("argo_rollout", act("abort")).await.unwrap();
    let not_now = world.run("argo_rollout", act("promote")).await.unwrap_err();
    until("the stable version serves alone", async || {
        world.rollout("search").await["replica_sets"][1]["ready"] == "4/4"
    })
    .await;

    assert_eq!(early.code, kubernetes::codes::NOT_ABORTED);
    assert!(
        shown.text.contains("then: revision 1 (") && shown.text.contains("spec.template still holds"),
        "{}",
        shown.text
    );
    assert_eq!((&told["noop"], &again["noop"]), (&json!(false), &json!(true)));
    assert_eq!(
        (&aborted["aborted"], &aborted["weight"], &aborted["current_step"]),
        (&json!(true), &json!(0), &json!(0))
    );
    assert_eq!(aborted["message"], "RolloutAborted: Rollout aborted update to revision 2");
    assert!(not_now.code == kubernetes::codes::NOTHING_TO_PROMOTE && not_now.next.unwrap().contains("action=retry"));

    world.run("argo_rollout", act("retry")).await.unwrap();
    let back = world.becomes("search", "Progressing").await;
    assert_eq!(back["aborted"], false, "{back}");
}

#[tokio::test]
async fn a_full_promotion_names_what_it_skips() {
    let world = World::shop().await;

    let shown = world.preview("argo_rollout", act("promote_full")).await.unwrap();
    world.run("argo_rollout", act("promote_full")).await.unwrap();
    let healthy = world.becomes("search", "Healthy").await;
    let again = world.run("argo_rollout", act("promote_full")).await.unwrap_err();
    let nothing = world.run("argo_rollout", act("abort")).await.unwrap_err();

    for line in ["skipped: step 3, pause until promoted", "skipped: step 5, pause for 10m"] {
        assert!(shown.text.contains(line), "{}", shown.text);
    }
    assert_eq!(shown.warnings, ["3 steps are skipped, 0 of them analyses."]);
    assert_eq!(healthy["step"], "5/5");
    assert_eq!((again.code, nothing.code), (kubernetes::codes::ALREADY_STABLE, kubernetes::codes::NOT_IN_PROGRESS));
}

#[tokio::test]
async fn a_restart_carries_the_time_of_the_decision() {
    let world = World::shop().await;
    let decided = PermitApproval { at: Moment::from_millis(now().millis() + 321), ..approval(run()) };

    let shown = world.preview("argo_rollout", act("restart")).await.unwrap();
    world.run_by("argo_rollout", act("restart"), decided.clone()).await.unwrap();
    let again = world.run_by("argo_rollout", act("restart"), decided.clone()).await.unwrap();

    assert!(shown.text.contains("4 pods are replaced, at most 25%"), "{}", shown.text);
    assert_eq!(again["noop"], true);
    let at = decided.at.to_string();
    assert_eq!(world.get("rollouts", "search").await["spec"]["restartAt"], at);
    assert!(matches!(world.probe("argo_rollout", act("restart"), decided).await, ProbeResult::Done(Some(_))));
    until("every pod is a new one", async || world.get("rollouts", "search").await["status"]["restartedAt"] == at)
        .await;
}

#[tokio::test]
async fn blue_and_green_switch_when_somebody_says_so() {
    let world = World::shop().await;
    let labels = json!({ "app": "colours" });
    let rollout = |tag: &str| {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": { "name": "colours", "namespace": "shop" },
            "spec": {
                "replicas": 2, "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "app", "image": format!("app:{tag}") }] } },
                "strategy": { "blueGreen": { "activeService": "colours", "autoPromotionEnabled": false } },
            },
        })
    };
    let service = json!({ "selector": labels, "ports": [{ "port": 80 }] });
    world.make(json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "colours", "namespace": "shop" }, "spec": service })).await;
    world.make(rollout("blue")).await;
    world.becomes("colours", "Healthy").await;
    world.change("rollouts", "colours", json!({ "spec": { "template": rollout("green")["spec"]["template"] } })).await;
    let waiting = world.becomes("colours", "Paused").await;

    let args = json!({ "action": "promote", "name": "colours" });
    let shown = world.preview("argo_rollout", args.clone()).await.unwrap();
    world.run("argo_rollout", args).await.unwrap();
    world.becomes("colours", "Healthy").await;

    assert_eq!((&waiting["strategy"], &waiting["message"]), (&json!("blue-green"), &json!("BlueGreenPause")));
    assert!(
        shown.text.contains("service colours switches from revision 1 (app:blue) to revision 2 (app:green)"),
        "{}",
        shown.text
    );
    let (service, live) = (world.get("services", "colours").await, world.get("rollouts", "colours").await);
    assert_eq!(service["spec"]["selector"]["rollouts-pod-template-hash"], live["status"]["stableRS"]);
}

#[tokio::test]
async fn a_probe_tells_what_can_be_told() {
    let world = World::shop().await;
    staged(&world, held_since(LONG_AGO)).await;
    let long_before = PermitApproval { at: Moment::parse("2026-01-01T00:00:00Z").unwrap(), ..approval(run()) };

    assert_eq!(world.probe("argo_rollout", on_staged("promote"), approval(run())).await, ProbeResult::NotDone);
    assert!(matches!(world.probe("argo_rollout", on_staged("promote"), long_before).await, ProbeResult::Done(_)));
    for action in ["pause", "abort", "promote_full", "restart"] {
        assert_eq!(
            world.probe("argo_rollout", on_staged(action), approval(run())).await,
            ProbeResult::Unknown,
            "{action}"
        );
    }
    for (action, change) in [("abort", json!({ "abort": true })), ("promote_full", json!({ "promoteFull": true }))] {
        world.change_status("rollouts", "staged", json!({ "status": change })).await;
        assert!(
            matches!(world.probe("argo_rollout", on_staged(action), approval(run())).await, ProbeResult::Done(_)),
            "{action}"
        );
    }
    world.change("rollouts", "staged", json!({ "spec": { "paused": true } })).await;
    assert!(matches!(world.probe("argo_rollout", on_staged("pause"), approval(run())).await, ProbeResult::Done(_)));
}

#[tokio::test]
async fn a_protected_namespace_is_left_alone_before_anybody_is_asked() {
    let world = World::with(Seed::shop(), |config| config.protected = only(&["shop"]).unwrap()).await;
    for action in ["promote", "abort", "undo", "restart"] {
        assert_eq!(
            world.preview("argo_rollout", act(action)).await.unwrap_err().code,
            kubernetes::codes::PROTECTED,
            "{action}"
        );
        assert_eq!(
            world.run("argo_rollout", act(action)).await.unwrap_err().code,
            kubernetes::codes::PROTECTED,
            "{action}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_was_lost_is_unknown_and_the_probe_finds_it() {
    let world = World::shop().await;
    world.sandbox().plant(ClusterFault {
        method: Some("PATCH".into()),
        path: "search/status".into(),
        times: 1,
        harm: ClusterHarm::CutAfter,
    });
    // A little while ago: within one second nobody could tell which came first.
    let decided = PermitApproval { at: Moment::from_millis(now().millis() - 2_000), ..approval(run()) };

    let lost = world.run_by("argo_rollout", act("promote"), decided.clone()).await.unwrap_err();
    world.becomes("search", "Paused").await;

    assert_eq!(lost.code, Code::OutcomeUnknown, "{lost}");
    assert!(matches!(world.probe("argo_rollout", act("promote"), decided).await, ProbeResult::Done(_)));
    assert_eq!(world.rollout("search").await["current_step"], 4, "one step and no more");
}
