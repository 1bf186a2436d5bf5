//! Looking at jobs, builds, the queue and the server.

use crate::world::World;
use domain::Code;
use sandbox::jenkins::{BuildResult, BuildScript, JenkinsSeed, Permission, SimulatedJob};
use serde_json::{Value, json};
use std::time::Duration;

fn column<'a>(rows: &'a Value, field: &str) -> Vec<&'a str> {
    rows.as_array().unwrap().iter().map(|row| row[field].as_str().unwrap_or_default()).collect()
}

#[tokio::test]
async fn folders_and_branches_are_listed_with_how_they_are() {
    let world = World::shop().await;
    let root = world.run("jenkins_jobs", json!({})).await.unwrap();
    assert_eq!(column(&root["jobs"], "job"), ["platform", "shop", "smoke"]);
    assert_eq!(column(&root["jobs"], "type"), ["folder", "folder", "freestyle"]);
    assert_eq!(root["jobs"][2]["last_build"], 2);
    assert_eq!((&root["target"]["server"], &root["untrusted"]), (&json!("main"), &json!(true)));

    let shop = world.run("jenkins_jobs", json!({ "folder": "shop" })).await.unwrap();
    let of = |job: &str| shop["jobs"].as_array().unwrap().iter().find(|row| row["job"] == job).unwrap().clone();
    assert_eq!(of("shop/checkout")["type"], "multibranch");
    assert_eq!((&of("shop/deploy")["type"], &of("shop/deploy")["status"]), (&json!("pipeline"), &json!("success")));
    assert_eq!(of("shop/legacy-sync")["status"], "disabled");

    let deep = world.run("jenkins_jobs", json!({ "depth": 3, "query": "GIFT" })).await.unwrap();
    assert_eq!(column(&deep["jobs"], "job"), ["shop/checkout/feature%2Fgift-cards"]);
}

#[tokio::test]
async fn a_long_list_is_paged_and_no_job_is_lost_or_told_twice() {
    let seed = (0..230).fold(JenkinsSeed::empty(), |seed, n| seed.job(SimulatedJob::freestyle(&format!("job-{n:03}"))));
    let world = World::of(seed).await;
    let (mut args, mut seen) = (json!({}), Vec::new());
    loop {
        let page = world.run("jenkins_jobs", args.clone()).await.unwrap();
        seen.extend(column(&page["jobs"], "job").into_iter().map(str::to_owned));
        match page["next_cursor"].as_str() {
            Some(cursor) => args["cursor"] = json!(cursor),
            None => break,
        }
    }
    assert_eq!(seen, (0..230).map(|n| format!("job-{n:03}")).collect::<Vec<_>>());

    let found = world.run("jenkins_jobs", json!({ "query": "job-229" })).await.unwrap();
    assert_eq!(column(&found["jobs"], "job"), ["job-229"], "a search goes through the pages itself");
    let other = world.run("jenkins_jobs", json!({ "query": "x", "cursor": args["cursor"] })).await.unwrap_err();
    assert_eq!(other.code, target::codes::CURSOR_MISMATCH);
}

#[tokio::test]
async fn a_job_that_is_not_there_names_near_ones() {
    let world = World::shop().await;
    for (tool, args) in [
        ("jenkins_job", json!({ "job": "shop/deplyo" })),
        ("jenkins_job", json!({ "job": "shop/deplyo", "show": "builds" })),
        ("jenkins_job", json!({ "job": "shop/deplyo", "show": "scm" })),
        ("jenkins_build", json!({ "job": "shop/deplyo" })),
        ("jenkins_log", json!({ "job": "shop/deplyo" })),
    ] {
        let failure = world.run(tool, args.clone()).await.unwrap_err();
        assert_eq!(
            (failure.code, &failure.did_you_mean[..]),
            (jenkins::codes::JOB_NOT_FOUND, &["shop/deploy".to_owned()][..]),
            "{tool} {args}"
        );
    }
    let failure = world.run("jenkins_jobs", json!({ "folder": "shp/checkout" })).await.unwrap_err();
    assert_eq!((failure.code, &failure.did_you_mean[..]), (jenkins::codes::JOB_NOT_FOUND, &["shop".to_owned()][..]));
    let failure = world.run("jenkins_jobs", json!({ "folder": "smoke" })).await.unwrap_err();
    assert_eq!(failure.code, Code::InvalidArgument);
    let failure = world.run("jenkins_job", json!({ "job": "shop", "show": "builds" })).await.unwrap_err();
    assert_eq!(failure.code, Code::InvalidArgument);
}

#[tokio::test]
async fn a_job_is_shown_from_four_sides() {
    let world = World::shop().await;
    let job = "shop/deploy";
    let summary = world.run("jenkins_job", json!({ "job": job })).await.unwrap();
    assert_eq!(
        (&summary["type"], &summary["buildable"], &summary["next_build"]),
        (&json!("pipeline"), &json!(true), &json!(4))
    );
    assert_eq!(summary["last"], json!({ "build": 3, "success": 3, "failure": 2 }));

    let told = world.run("jenkins_job", json!({ "job": job, "show": "parameters" })).await.unwrap();
    assert_eq!(column(&told["parameters"], "name"), ["ENVIRONMENT", "VERSION", "DRY_RUN"], "ours is not the caller's");
    assert_eq!(told["parameters"][0]["choices"], json!(["staging", "production"]));
    assert_eq!(told["parameters"][2]["default"], "false");

    let builds = world.run("jenkins_job", json!({ "job": job, "show": "builds" })).await.unwrap();
    assert_eq!(column(&builds["builds"], "result"), ["SUCCESS", "FAILURE", "SUCCESS"]);
    assert_eq!((&builds["builds"][0]["number"], builds.get("next_cursor")), (&json!(3), None));

    let scm = world.run("jenkins_job", json!({ "job": "shop/checkout/main", "show": "scm" })).await.unwrap();
    let source = &scm["scm"][0];
    assert_eq!(
        (&source["type"], &source["branches"], &source["has_credentials"]),
        (&json!("git"), &json!(["*/main"]), &json!(true))
    );
    assert_eq!(source["script_path"], "Jenkinsfile");
}

#[tokio::test]
async fn without_the_permission_the_last_build_tells_where_sources_come_from() {
    let world = World::of(JenkinsSeed::shop().without(Permission::ExtendedRead)).await;
    let scm = world.run("jenkins_job", json!({ "job": "shop/checkout/main", "show": "scm" })).await.unwrap();
    assert_eq!(
        (&scm["source"], &scm["scm"][0]["url"]),
        (&json!("last_build"), &json!("https://git.shop.example/shop/checkout.git"))
    );
    assert_eq!(scm["scm"][0].get("has_credentials"), None);
}

#[tokio::test]
async fn old_builds_are_paged_also_beyond_the_newest_hundred() {
    let day = Duration::from_secs(86_400);
    let plan = BuildScript::lasting(Duration::from_secs(1));
    let job = (0..130).fold(SimulatedJob::freestyle("old"), |job, n| job.past(day * (200 - n), plan.clone()));
    let world = World::of(JenkinsSeed::empty().job(job)).await;
    let (mut args, mut seen) = (json!({ "job": "old", "show": "builds" }), Vec::new());
    loop {
        let page = world.run("jenkins_job", args.clone()).await.unwrap();
        seen.extend(page["builds"].as_array().unwrap().iter().map(|row| row["number"].as_u64().unwrap()));
        match page["next_cursor"].as_str() {
            Some(cursor) => args["cursor"] = json!(cursor),
            None => break,
        }
    }
    assert_eq!(seen, (1..=130).rev().collect::<Vec<u64>>());
}

#[tokio::test]
async fn a_build_is_shown_from_every_side() {
    let world = World::shop().await;
    let show = async |show: &str| {
        world.run("jenkins_build", json!({ "job": "shop/checkout/main", "show": show })).await.unwrap()
    };
    let summary = show("summary").await;
    assert_eq!(
        (&summary["number"], &summary["result"], &summary["running"]),
        (&json!(3), &json!("UNSTABLE"), &json!(false))
    );
    assert!(summary["started"].as_str().unwrap().ends_with('Z') && summary["duration_s"].as_u64().unwrap() > 0);
    assert!(!summary["causes"].as_array().unwrap().is_empty());
    let changes = show("changes").await;
    assert_eq!(
        (&changes["changes"][0]["author"], &changes["changes"][0]["message"]),
        (&json!("Mina Hart"), &json!("Round refunds to the cent"))
    );
    assert_eq!(changes["changes"][0]["paths"], json!(["src/main/java/shop/Refunds.java"]));
    let scm = show("scm").await;
    assert_eq!(scm["scm"][0]["url"], "https://git.shop.example/shop/checkout.git");
    assert_eq!(column(&show("stages").await["stages"], "name"), ["Checkout", "Build", "Test"]);
    let tests = show("tests").await;
    assert_eq!((&tests["total"], &tests["failed"], &tests["skipped"]), (&json!(4), &json!(1), &json!(1)));
    assert_eq!(tests["cases"][0]["name"], "shop.RefundsTest.roundsToTheCent");
    let artifacts = show("artifacts").await;
    assert_eq!(column(&artifacts["artifacts"], "path"), ["build/libs/checkout.txt", "build/reports/summary.json"]);
    assert_eq!(artifacts["artifacts"][0]["size"], 15);
    assert!(show("script").await["text"].as_str().unwrap().contains("stage('Build')"));

    let text = world
        .run("jenkins_build", json!({ "job": "shop/checkout/main", "artifact": "build/libs/checkout.txt" }))
        .await
        .unwrap();
    assert_eq!(text["text"], "checkout 1.8.2\n");
    let first = world.run("jenkins_build", json!({ "job": "shop/deploy", "build": "lastFailed" })).await.unwrap();
    assert_eq!((&first["number"], &first["result"]), (&json!(2), &json!("FAILURE")));
    let branch = world.run("jenkins_build", json!({ "job": "shop/checkout/feature%2Fgift-cards" })).await.unwrap();
    assert_eq!(branch["number"], 1);
}

#[tokio::test]
async fn what_a_build_does_not_have_is_told_as_such() {
    let world = World::shop().await;
    for (args, code) in [
        (json!({ "job": "smoke", "build": "99" }), jenkins::codes::BUILD_NOT_FOUND),
        (json!({ "job": "platform/load-test" }), jenkins::codes::BUILD_NOT_FOUND),
        (json!({ "job": "smoke", "show": "tests" }), jenkins::codes::NO_TEST_REPORT),
        (json!({ "job": "smoke", "show": "stages" }), jenkins::codes::NOT_A_PIPELINE),
        (json!({ "job": "smoke", "show": "script" }), jenkins::codes::NOT_A_PIPELINE),
        (json!({ "job": "smoke", "artifact": "a.txt" }), Code::NotFound),
        (json!({ "job": "smoke", "artifact": "a.txt", "show": "tests" }), Code::InvalidArgument),
    ] {
        let failure = world.run("jenkins_build", args.clone()).await.unwrap_err();
        assert_eq!(failure.code, code, "{args}: {failure}");
        assert!(failure.next.is_some());
    }
    let failure = world.run("jenkins_build", json!({ "job": "smoke", "build": "99" })).await.unwrap_err();
    assert_eq!(failure.next.as_deref(), Some("its newest build is 2"));

    let bare = World::of(JenkinsSeed::shop().without_plugins()).await;
    for show in ["stages", "script"] {
        let failure = bare.run("jenkins_build", json!({ "job": "shop/deploy", "show": show })).await.unwrap_err();
        assert_eq!(failure.code, jenkins::codes::PLUGIN_MISSING, "{show}");
    }
    let closed = World::of(JenkinsSeed::shop().without(Permission::Replay)).await;
    let failure = closed.run("jenkins_build", json!({ "job": "shop/deploy", "show": "script" })).await.unwrap_err();
    assert_eq!(failure.code, target::codes::FORBIDDEN);
}

#[tokio::test]
async fn an_artifact_that_is_no_text_is_refused_and_a_long_one_is_paged() {
    let long: String = (0..5_000).map(|n| format!("line {n}\n")).collect();
    let plan = BuildScript::lasting(Duration::from_secs(1))
        .artifact("picture.png", vec![0x89, b'P', 0, 0xff])
        .artifact("long.txt", long.clone())
        .ending(BuildResult::Success);
    let job = SimulatedJob::freestyle("made").past(Duration::from_secs(900), plan);
    let world = World::of(JenkinsSeed::empty().job(job)).await;
    let failure = world.run("jenkins_build", json!({ "job": "made", "artifact": "picture.png" })).await.unwrap_err();
    assert_eq!(failure.code, jenkins::codes::NOT_TEXT);
    let (mut args, mut seen) = (json!({ "job": "made", "artifact": "long.txt" }), String::new());
    loop {
        let page = world.run("jenkins_build", args.clone()).await.unwrap();
        seen.push_str(page["text"].as_str().unwrap());
        match page["next_cursor"].as_str() {
            Some(cursor) => args["cursor"] = json!(cursor),
            None => break,
        }
    }
    assert_eq!(seen, long);
}

#[tokio::test]
async fn the_queue_tells_why_and_what_became_of_an_item() {
    let world = World::shop().await;
    let started = world.run("jenkins_trigger", json!({ "job": "platform/load-test", "wait_s": 0 })).await.unwrap();
    world.jenkins.advance(Duration::from_secs(30));
    let queue = world.run("jenkins_queue", json!({})).await.unwrap();
    assert_eq!(column(&queue["items"], "job"), ["platform/load-test"]);
    assert!(queue["items"][0]["why"].as_str().unwrap().contains("gpu") && queue["items"][0]["stuck"] == true);
    let item = world.run("jenkins_queue", json!({ "id": started["queue_id"] })).await.unwrap();
    assert_eq!(item["item"]["job"], "platform/load-test");
    let failure = world.run("jenkins_queue", json!({ "id": 999_999 })).await.unwrap_err();
    assert_eq!(failure.code, jenkins::codes::QUEUE_ITEM_GONE);
}

#[tokio::test]
async fn the_server_tells_who_we_are() {
    let world = World::shop().await;
    let who = world.run("jenkins_whoami", json!({})).await.unwrap();
    assert_eq!((&who["user"], &who["anonymous"]), (&json!("robot"), &json!(false)));
    assert!(who["version"].as_str().unwrap().starts_with("2."));
    assert!(who["agents"].as_array().unwrap().iter().any(|agent| agent["online"] == true));
}
