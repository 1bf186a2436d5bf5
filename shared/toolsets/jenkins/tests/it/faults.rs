//! What a server in trouble does to a call: reads may be repeated, writes never, and nothing lasts longer than it may.

use crate::world::{World, config};
use domain::Code;
use egress::AddressGuard;
use jenkins::client::SecretSource;
use sandbox::jenkins::{JenkinsFault, JenkinsHarm, JenkinsSeed};
use serde_json::json;

const JOB: &str = "shop/deploy";

/// One sound call of each write tool, and a part of the address it posts to.
fn writes() -> [(&'static str, serde_json::Value, &'static str); 5] {
    [
        ("jenkins_trigger", json!({ "job": "smoke" }), "/job/smoke/build"),
        ("jenkins_replay", json!({ "job": JOB, "build": 2 }), "replay/rebuild"),
        ("jenkins_replay", json!({ "job": JOB, "build": 2, "script": "x" }), "replay/run"),
        ("jenkins_update_build", json!({ "job": JOB, "build": 3, "display_name": "x" }), "configSubmit"),
        ("jenkins_update_build", json!({ "job": JOB, "build": 3, "keep": true }), "toggleLogKeep"),
    ]
}

#[tokio::test]
async fn a_write_goes_out_once_whatever_comes_back() {
    for (tool, args, path) in writes() {
        for harm in [
            JenkinsHarm::Cut,
            JenkinsHarm::CutAfter,
            JenkinsHarm::CutMidway,
            JenkinsHarm::Answer(502, None),
            JenkinsHarm::Answer(504, None),
            JenkinsHarm::LateAnswer(502),
            JenkinsHarm::LateAnswer(504),
        ] {
            let world = World::shop().await;
            world.jenkins.plant(JenkinsFault::once(path, harm.clone()).on("POST"));
            let ended = world.run(tool, args.clone()).await;
            // An answer that broke off in its empty body was still an answer.
            match (&harm, &ended) {
                (JenkinsHarm::CutMidway, Ok(_)) => {}
                (_, Err(failure)) => assert_eq!(failure.code, Code::OutcomeUnknown, "{tool} {harm:?}"),
                (_, Ok(told)) => panic!("{tool} {harm:?}: {told}"),
            }
            assert_eq!(world.sent("POST"), 1, "{tool} {harm:?}");
        }
        for (status, code) in [
            (429, target::codes::TARGET_BUSY),
            (503, target::codes::TARGET_BUSY),
            (403, target::codes::FORBIDDEN),
            (401, target::codes::CREDENTIALS_REFUSED),
        ] {
            let world = World::shop().await;
            world.jenkins.plant(JenkinsFault::once(path, JenkinsHarm::Answer(status, None)).on("POST"));
            assert_eq!(world.run(tool, args.clone()).await.unwrap_err().code, code, "{tool} {status}");
            assert_eq!((world.sent("POST"), world.jenkins.writes().len()), (1, 0), "{tool} {status}");
        }
    }
}

#[tokio::test]
async fn a_write_that_is_sent_elsewhere_is_not_taken_for_done() {
    for (tool, args, path) in writes() {
        for (to, code) in [
            ("https://evil.example/", Code::OutcomeUnknown),
            ("//evil.example/job/smoke/", Code::OutcomeUnknown),
            ("https://sso.example/oauth2/authorize", target::codes::CREDENTIALS_REFUSED),
            ("/login?from=%2F", target::codes::CREDENTIALS_REFUSED),
        ] {
            let world = World::shop().await;
            world.jenkins.plant(JenkinsFault::once(path, JenkinsHarm::Redirect(to.to_owned())).on("POST"));
            assert_eq!(world.run(tool, args.clone()).await.unwrap_err().code, code, "{tool} {to}");
            assert_eq!((world.sent("POST"), world.jenkins.writes().len()), (1, 0), "{tool} {to}");
        }
    }
}

#[tokio::test]
async fn a_read_is_repeated_while_the_server_is_busy() {
    let world = World::shop().await;
    for status in [429, 503, 504] {
        world.jenkins.plant(JenkinsFault::once("/api/json", JenkinsHarm::Answer(status, None)).times(2));
        world.run("jenkins_jobs", json!({})).await.unwrap();
        world.jenkins.plant(JenkinsFault::once("/api/json", JenkinsHarm::Answer(status, Some(0))).times(3));
        let failure = world.run("jenkins_jobs", json!({})).await.unwrap_err();
        assert_eq!(failure.code, target::codes::TARGET_BUSY);
    }
    let before = world.sent("GET");
    world.jenkins.plant(JenkinsFault::once("/api/json", JenkinsHarm::Answer(502, None)));
    assert_eq!(world.run("jenkins_jobs", json!({})).await.unwrap_err().code, target::codes::TARGET_BUSY);
    assert_eq!(world.sent("GET"), before + 1, "what says nothing about being busy is not repeated");
    world.jenkins.plant(JenkinsFault::once("/api/json", JenkinsHarm::Answer(503, Some(600))));
    let failure = world.run("jenkins_jobs", json!({})).await.unwrap_err();
    assert_eq!(
        (failure.code, failure.retry_after_ms),
        (target::codes::TARGET_BUSY, Some(600_000)),
        "nobody waits beyond the deadline"
    );
}

#[tokio::test]
async fn what_is_not_an_answer_of_jenkins_is_not_taken_for_one() {
    let world = World::shop().await;
    for (harm, code) in [
        (JenkinsHarm::NotJson, target::codes::TARGET_UNREACHABLE),
        (JenkinsHarm::Gzip, target::codes::TARGET_UNREACHABLE),
        (JenkinsHarm::Huge(9 * 1024 * 1024), Code::ResultTooLarge),
        (JenkinsHarm::Endless, Code::ResultTooLarge),
        (JenkinsHarm::CutMidway, target::codes::TARGET_UNREACHABLE),
        (JenkinsHarm::Cut, target::codes::TARGET_UNREACHABLE),
        (JenkinsHarm::Redirect("https://evil.example/".to_owned()), target::codes::TARGET_UNREACHABLE),
        (JenkinsHarm::Redirect("/login?from=x".to_owned()), target::codes::CREDENTIALS_REFUSED),
        (JenkinsHarm::Answer(401, None), target::codes::CREDENTIALS_REFUSED),
        (JenkinsHarm::Answer(403, None), target::codes::FORBIDDEN),
    ] {
        world.jenkins.plant(JenkinsFault::once("/api/json", harm.clone()));
        let before = world.jenkins.requests().len();
        let failure = world.run("jenkins_jobs", json!({})).await.unwrap_err();
        assert_eq!(failure.code, code, "{harm:?}: {failure}");
        assert_eq!(world.jenkins.requests().len(), before + 1, "{harm:?} was followed");
    }
}

#[tokio::test]
async fn a_crumb_is_fetched_when_it_is_asked_for_and_kept_until_it_expires() {
    let world = World::of(JenkinsSeed::shop().with_crumbs()).await;
    let keep = |build: u32, keep: bool| json!({ "job": JOB, "build": build, "keep": keep });
    let paths = |from: usize| -> Vec<String> {
        let sent = world.jenkins.requests();
        let of_interest = |path: &String| path.contains("toggleLogKeep") || path.contains("crumb");
        sent[from..].iter().map(|request| request.path.clone()).filter(of_interest).collect()
    };
    world.run("jenkins_update_build", keep(3, true)).await.unwrap();
    let toggle = "/job/shop/job/deploy/3/toggleLogKeep".to_owned();
    assert_eq!(
        paths(0),
        [toggle.clone(), "/crumbIssuer/api/json".to_owned(), toggle.clone()],
        "refused, fetched, sent again"
    );
    assert_eq!(world.jenkins.writes(), ["POST /job/shop/job/deploy/3/toggleLogKeep"], "the refused one had no effect");

    let before = world.jenkins.requests().len();
    world.run("jenkins_update_build", keep(3, false)).await.unwrap();
    assert_eq!(paths(before), std::slice::from_ref(&toggle), "a crumb is good for more than one request");

    world.jenkins.expire_sessions();
    let before = world.jenkins.requests().len();
    world.run("jenkins_update_build", keep(3, true)).await.unwrap();
    assert_eq!(
        paths(before),
        [toggle.clone(), "/crumbIssuer/api/json".to_owned(), toggle.clone()],
        "one refresh, one retry"
    );

    world.jenkins.plant(JenkinsFault::once("toggleLogKeep", JenkinsHarm::NoCrumb).times(5));
    let before = world.jenkins.requests().len();
    let failure = world.run("jenkins_update_build", keep(3, false)).await.unwrap_err();
    assert_eq!(failure.code, target::codes::FORBIDDEN);
    assert_eq!(paths(before).len(), 3, "and no more than one");
}

#[tokio::test]
async fn a_token_is_replaced_without_a_restart() {
    let mut world = World::shop().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, world.jenkins.token()).unwrap();
    let mut config = config("main", &world.jenkins);
    config.token = SecretSource::File(file.clone());
    world.set(vec![config]).unwrap();
    world.run("jenkins_whoami", json!({})).await.unwrap();
    let fresh = world.jenkins.rotate_token();
    assert_eq!(world.run("jenkins_whoami", json!({})).await.unwrap_err().code, target::codes::CREDENTIALS_REFUSED);
    std::fs::write(&file, fresh).unwrap();
    world.run("jenkins_whoami", json!({})).await.unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(world.run("jenkins_whoami", json!({})).await.unwrap_err().code, target::codes::TOOLSET_NOT_CONFIGURED);
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_left_alone_and_a_write_to_it_did_not_happen() {
    let mut world = World::shop().await;
    let mut gone = config("main", &world.jenkins);
    // Nothing listens on the port that was just given back.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    gone.url.set_port(Some(port)).unwrap();
    gone.guard = AddressGuard { private: true, ports: vec![port] };
    world.set(vec![gone]).unwrap();
    for _ in 0..5 {
        assert_eq!(world.run("jenkins_jobs", json!({})).await.unwrap_err().code, target::codes::TARGET_UNREACHABLE);
    }
    let failure = world.run("jenkins_jobs", json!({})).await.unwrap_err();
    assert!(failure.message.contains("left alone"), "{failure}");
    let failure = world.run("jenkins_trigger", json!({ "job": "smoke" })).await.unwrap_err();
    assert_eq!(failure.code, target::codes::TARGET_UNREACHABLE);
}
