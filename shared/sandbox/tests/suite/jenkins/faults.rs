//! Planted trouble, and what is remembered of the requests.

use std::time::Duration;

use sandbox::jenkins::{JenkinsFault, JenkinsHarm};
use serde_json::json;

use super::support::{Ci, basic};

#[tokio::test]
async fn a_build_can_be_started_without_an_answer() {
    let ci = Ci::shop().await;
    ci.jenkins.plant(JenkinsFault::once("buildWithParameters", JenkinsHarm::CutAfter).on("POST"));
    let credential = basic(&ci.jenkins.user(), &ci.jenkins.token());
    let headers = [("Authorization", credential.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];

    let lost = ci.send("POST", "/job/shop/job/deploy/buildWithParameters", "QM_RUN_ID=run_1", &headers).await;

    assert!(lost.is_none());
    assert_eq!(ci.jenkins.effects("QM_RUN_ID", "run_1"), 1);
    assert_eq!(ci.jenkins.writes(), ["POST /job/shop/job/deploy/buildWithParameters"]);
}

#[tokio::test]
async fn refusals_do_nothing_and_hit_as_often_as_planted() {
    let ci = Ci::shop().await;
    let cases = [
        (JenkinsHarm::Answer(503, Some(7)), 503),
        (JenkinsHarm::Answer(429, None), 429),
        (JenkinsHarm::NoCrumb, 403),
        (JenkinsHarm::Redirect("http://elsewhere.example/".to_owned()), 302),
    ];
    for (harm, status) in cases {
        ci.jenkins.plant(JenkinsFault::once("/job/smoke/build", harm));
        assert_eq!(ci.post("/job/smoke/build", "").await.status, status);
    }

    ci.jenkins.plant(JenkinsFault::once("api/json", JenkinsHarm::Answer(500, None)).times(2));
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(ci.ask("GET", "/api/json", "", &[]).await.status);
    }

    assert_eq!(statuses, [500, 500, 200]);
    assert!(ci.jenkins.writes().is_empty());
}

#[tokio::test]
async fn bodies_can_be_wrong_in_many_ways() {
    let ci = Ci::shop().await;
    let planted = async |harm: JenkinsHarm| {
        ci.jenkins.plant(JenkinsFault::once("api/json", harm));
        ci.ask("GET", "/api/json", "", &[]).await
    };

    let page = planted(JenkinsHarm::NotJson).await;
    let huge = planted(JenkinsHarm::Huge(1_000_000)).await;
    let half = planted(JenkinsHarm::CutMidway).await;
    let packed = planted(JenkinsHarm::Gzip).await;
    let late = planted(JenkinsHarm::LateAnswer(504)).await;

    assert!(page.header("content-type").unwrap().starts_with("application/json") && page.text().starts_with('<'));
    assert!(huge.body.len() > 1_000_000 && huge.json().is_object());
    assert!(half.body.len() < half.header("content-length").unwrap().parse().unwrap());
    assert_eq!((packed.header("content-encoding"), &packed.body[..2]), (Some("gzip"), &[0x1f, 0x8b][..]));
    assert_eq!(late.status, 504);
}

#[tokio::test]
async fn an_answer_can_be_late_or_never_end() {
    let ci = Ci::shop().await;
    let credential = basic(&ci.jenkins.user(), &ci.jenkins.token());
    let headers = [("Authorization", credential.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
    let soon = Duration::from_millis(200);

    for harm in [JenkinsHarm::Silence, JenkinsHarm::SilenceAfter, JenkinsHarm::Endless] {
        ci.jenkins.plant(JenkinsFault::once("smoke/build", harm));
        let answer = tokio::time::timeout(soon, ci.send("POST", "/job/smoke/build", "", &headers)).await;
        assert!(answer.is_err());
    }
    ci.jenkins.plant(JenkinsFault::once("api/json", JenkinsHarm::Delay(Duration::from_millis(50))));
    assert_eq!(ci.ask("GET", "/api/json", "", &[]).await.status, 200);

    assert_eq!(ci.jenkins.writes(), ["POST /job/smoke/build"], "only the one that acted before it fell silent");
}

#[tokio::test]
async fn every_request_is_remembered_without_its_credential() {
    let ci = Ci::shop().await;

    ci.post("/job/smoke/build?delay=0sec", "a=b").await;
    ci.send("GET", "/whoAmI/api/json", "", &[("X-Mark", "one")]).await.unwrap();

    let requests = ci.jenkins.requests();
    assert_eq!(requests[0].line(), "POST /job/smoke/build?delay=0sec");
    assert_eq!((requests[0].authorized, requests[0].body.as_str()), (true, "a=b"));
    assert_eq!((requests[1].authorized, requests[1].header("x-mark")), (false, Some("one")));
    assert!(!format!("{requests:?}").contains(&basic(&ci.jenkins.user(), &ci.jenkins.token())));
    assert_eq!(json!(requests.len()), 2);
}
