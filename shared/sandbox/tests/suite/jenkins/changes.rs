//! Stopping, replaying and labelling builds.

use std::time::Duration;

use sandbox::jenkins::{BuildScript, JenkinsSeed, Permission, SimulatedJob, StopResistance};
use serde_json::json;

use super::support::{Ci, field};

const DEPLOY: &str = "/job/shop/job/deploy";

async fn running(stubborn: StopResistance) -> Ci {
    let plan = BuildScript::lasting(Duration::from_secs(600)).stubborn(stubborn);
    let ci = Ci::of(JenkinsSeed::empty().still().job(SimulatedJob::pipeline("slow").plan(plan))).await;
    ci.post("/job/slow/build?delay=0sec", "").await;
    ci
}

#[tokio::test]
async fn a_stop_ends_a_build_and_a_stubborn_one_needs_more() {
    for (stubborn, needed) in
        [(StopResistance::Never, "stop"), (StopResistance::UntilTerm, "term"), (StopResistance::UntilKill, "kill")]
    {
        let ci = running(stubborn).await;
        for verb in ["stop", "term", "kill"] {
            let answer = ci.post(&format!("/job/slow/1/{verb}"), "").await.status;
            let build = ci.get("/job/slow/1/api/json?tree=building,result").await;

            assert_eq!(answer, if verb == "stop" { 302 } else { 200 });
            if verb == needed {
                assert_eq!((&build["building"], &build["result"]), (&json!(false), &json!("ABORTED")));
                break;
            }
            assert_eq!(build["building"], true, "{verb}");
        }
    }
}

#[tokio::test]
async fn stopping_what_has_ended_is_no_error_and_changes_nothing() {
    let ci = Ci::shop().await;

    let answer = ci.post("/job/smoke/2/stop", "").await.status;

    assert_eq!(answer, 302);
    assert_eq!(ci.post("/job/smoke/2/term", "").await.status, 404, "only pipelines have it");
    assert_eq!(ci.get("/job/smoke/2/api/json").await["result"], "SUCCESS");
    assert!(ci.jenkins.writes().is_empty());
}

#[tokio::test]
async fn a_replay_takes_parameters_and_commit_along() {
    let ci = Ci::shop().await;

    let page = ci.ask("GET", &format!("{DEPLOY}/3/replay/"), "", &[]).await;
    let unchanged = ci.post(&format!("{DEPLOY}/3/replay/rebuild"), "").await;
    ci.advance(60);
    let script = json!({ "mainScript": "echo 'other'" }).to_string();
    let edited = ci.post(&format!("{DEPLOY}/4/replay/run"), &format!("json={}", field(&script))).await;
    ci.advance(60);

    assert!(page.text().contains("stage(&#039;Render&#039;)"));
    assert_eq!((unchanged.status, edited.status), (302, 302));
    assert_eq!(edited.header("location").unwrap(), format!("{}{DEPLOY}/", ci.jenkins.url()));
    let build =
        ci.get(&format!("{DEPLOY}/5/api/json?tree=actions[causes[shortDescription],parameters[name,value]]")).await;
    assert_eq!(build["actions"][1]["causes"][1]["shortDescription"], "Replayed #4");
    assert_eq!(build["actions"][0]["parameters"][1]["value"], "1.8.2");
    let shown = ci.ask("GET", &format!("{DEPLOY}/5/replay/"), "", &[]).await;
    assert!(shown.text().contains(">\necho &#039;other&#039;</textarea>"));
}

#[tokio::test]
async fn a_replay_can_be_refused_for_several_reasons() {
    let ci = Ci::shop().await;
    let may_not = Ci::of(JenkinsSeed::shop().without(Permission::Replay)).await;
    let script = format!("json={}", field(&json!({ "mainScript": "x" }).to_string()));

    assert_eq!(ci.post("/job/shop/job/publish/1/replay/rebuild", "").await.status, 400, "a password");
    assert_eq!(ci.post("/job/smoke/1/replay/rebuild", "").await.status, 404, "no pipeline");
    assert_eq!(ci.post(&format!("{DEPLOY}/3/replay/run"), "").await.status, 400, "no form");
    assert_eq!(may_not.post(&format!("{DEPLOY}/3/replay/run"), &script).await.status, 403);
    assert!(!may_not.ask("GET", &format!("{DEPLOY}/3/replay/"), "", &[]).await.text().contains("mainScript"));
    assert!(ci.jenkins.writes().is_empty());
}

#[tokio::test]
async fn name_and_description_are_set_together_and_the_flag_is_turned() {
    let ci = Ci::shop().await;
    let form = json!({ "displayName": "1.8.2 to staging", "description": "by hand" }).to_string();
    let half = json!({ "displayName": "alone" }).to_string();

    let updated = ci.post(&format!("{DEPLOY}/3/configSubmit"), &format!("json={}", field(&form))).await.status;
    let refused = ci.post(&format!("{DEPLOY}/3/configSubmit"), &format!("json={}", field(&half))).await.status;
    let kept = ci.post(&format!("{DEPLOY}/3/toggleLogKeep"), "").await.status;

    assert_eq!((updated, refused, kept), (302, 500, 302));
    let build = ci.get(&format!("{DEPLOY}/3/api/json?tree=displayName,description,keepLog")).await;
    assert_eq!(
        (&build["displayName"], &build["description"], &build["keepLog"]),
        (&json!("1.8.2 to staging"), &json!("by hand"), &json!(true))
    );
    ci.post(&format!("{DEPLOY}/3/toggleLogKeep"), "").await;
    assert_eq!(ci.get(&format!("{DEPLOY}/3/api/json?tree=keepLog")).await["keepLog"], false);
}
