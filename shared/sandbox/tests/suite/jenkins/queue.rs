//! Starting builds, and the time between asking and starting.

use sandbox::jenkins::{JenkinsSeed, Permission, SimulatedJob};
use serde_json::json;

use super::support::Ci;

const DEPLOY: &str = "/job/shop/job/deploy";

async fn start(ci: &Ci, path: &str, form: &str) -> String {
    let started = ci.post(path, form).await;
    assert_eq!(started.status, 201, "{}", started.text());
    let location = started.header("location").unwrap().strip_prefix(&ci.jenkins.url()).unwrap();
    format!("{location}api/json")
}

#[tokio::test]
async fn a_build_waits_for_its_quiet_period_and_then_gets_a_number() {
    let ci = Ci::shop().await;

    let item = start(&ci, "/job/smoke/build", "").await;
    let waiting = ci.get(&item).await;
    let job = ci.get("/job/smoke/api/json?tree=inQueue,queueItem[id]").await;
    ci.advance(2);
    let left = ci.get(&item).await;
    ci.advance(301);

    assert_eq!(waiting["_class"], "hudson.model.Queue$WaitingItem");
    assert!(waiting["why"].as_str().unwrap().starts_with("In the quiet period."));
    assert_eq!((&job["inQueue"], &job["queueItem"]["id"]), (&json!(true), &waiting["id"]));
    assert_eq!(left["_class"], "hudson.model.Queue$LeftItem");
    assert_eq!((&left["cancelled"], &left["executable"]["number"]), (&json!(false), &json!(3)));
    assert_eq!(ci.ask("GET", &item, "", &[]).await.status, 404);
}

#[tokio::test]
async fn unknown_parameters_are_dropped_and_missing_ones_get_their_default() {
    let ci = Ci::shop().await;

    start(&ci, &format!("{DEPLOY}/buildWithParameters"), "ENVIRONMENT=production&NOBODY=x&DRY_RUN=true").await;
    ci.advance(60);

    let build =
        ci.get(&format!("{DEPLOY}/lastBuild/api/json?tree=actions[parameters[name,value],causes[userId]]")).await;
    let parameters = build["actions"][0]["parameters"].as_array().unwrap();
    let pairs: Vec<_> = parameters.iter().map(|each| (each["name"].as_str().unwrap(), each["value"].clone())).collect();
    let wanted = [
        ("ENVIRONMENT", json!("production")),
        ("VERSION", json!("1.8.2")),
        ("DRY_RUN", json!(true)),
        ("QM_RUN_ID", json!("")),
    ];
    assert_eq!(pairs, wanted);
    assert_eq!(build["actions"][1]["causes"][0]["userId"], "robot");
}

#[tokio::test]
async fn an_equal_item_is_joined_and_another_is_not() {
    let ci = Ci::shop().await;
    let path = format!("{DEPLOY}/buildWithParameters");

    let first = start(&ci, &path, "VERSION=2").await;
    let same = start(&ci, &path, "VERSION=2").await;
    let other = start(&ci, &path, "VERSION=3").await;

    assert_eq!(first, same);
    assert_ne!(first, other);
    assert_eq!((ci.jenkins.effects("VERSION", "2"), ci.jenkins.effects("VERSION", "3")), (1, 1));
}

#[tokio::test]
async fn a_second_build_waits_for_the_first_unless_both_may_run() {
    let ci = Ci::of(
        JenkinsSeed::empty()
            .still()
            .job(SimulatedJob::freestyle("one"))
            .job(SimulatedJob::freestyle("many").concurrent()),
    )
    .await;

    for job in ["one", "many"] {
        start(&ci, &format!("/job/{job}/build?delay=0sec"), "").await;
        start(&ci, &format!("/job/{job}/build?delay=0sec"), "").await;
    }
    let queue = ci.get("/queue/api/json?tree=items[blocked,why,task[fullName]]").await;
    ci.advance(3);

    let items = queue["items"].as_array().unwrap();
    assert_eq!(items.len(), 1);
    assert_eq!((&items[0]["blocked"], &items[0]["task"]["fullName"]), (&json!(true), &json!("one")));
    assert_eq!(items[0]["why"], "Build #1 is already in progress (ETA: N/A)");
    let second = ci.get("/job/one/2/api/json?tree=timestamp,building").await;
    let first = ci.get("/job/one/1/api/json?tree=timestamp,duration").await;
    assert_eq!(
        second["timestamp"].as_u64().unwrap(),
        first["timestamp"].as_u64().unwrap() + first["duration"].as_u64().unwrap()
    );
}

#[tokio::test]
async fn what_cannot_be_built_is_refused() {
    let ci = Ci::shop().await;
    let may_not = Ci::of(JenkinsSeed::shop().without(Permission::Build)).await;

    let cases = [
        ("/job/shop/job/legacy-sync/build", 409),
        ("/job/smoke/buildWithParameters", 500),
        ("/job/shop/job/deploy/build", 400),
        ("/job/shop/job/nobody/build", 404),
    ];
    for (path, status) in cases {
        assert_eq!(ci.post(path, "").await.status, status, "{path}");
    }
    assert_eq!(ci.post(&format!("{DEPLOY}/buildWithParameters"), "ENVIRONMENT=moon").await.status, 500);
    assert_eq!(ci.ask("GET", "/job/smoke/build", "", &[]).await.status, 405);
    assert_eq!(may_not.post("/job/smoke/build", "").await.status, 403);
    assert!(ci.jenkins.writes().is_empty() && may_not.jenkins.writes().is_empty());
    assert_eq!(ci.get("/queue/api/json").await["items"], json!([]));
}

#[tokio::test]
async fn an_item_is_cancelled_once() {
    let ci = Ci::shop().await;
    let may_not = Ci::of(JenkinsSeed::shop().still().without(Permission::Cancel)).await;
    let item = start(&ci, "/job/platform/job/load-test/build", "").await;
    ci.advance(60);
    let stuck = ci.get(&item).await;
    let cancel = format!("/queue/cancelItem?id={}", stuck["id"]);

    let first = ci.post(&cancel, "").await.status;
    let again = ci.post(&cancel, "").await.status;
    let unknown = ci.post("/queue/cancelItem?id=4711", "").await.status;
    let refused = start(&may_not, "/job/smoke/build", "").await;
    let id = may_not.get(&refused).await["id"].clone();
    let refused = may_not.post(&format!("/queue/cancelItem?id={id}"), "").await.status;

    assert_eq!((&stuck["stuck"], &stuck["buildable"]), (&json!(true), &json!(true)));
    assert_eq!((first, again, unknown, refused), (204, 500, 404, 422));
    let left = ci.get(&item).await;
    assert_eq!((&left["cancelled"], &left["executable"]), (&json!(true), &json!(null)));
}
