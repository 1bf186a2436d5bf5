//! Jobs, folders and what is said of them.

use sandbox::jenkins::{BuildScript, JenkinsSeed, Permission, SimulatedJob};
use serde_json::json;
use std::time::Duration;

use super::support::Ci;

#[tokio::test]
async fn folders_are_walked_by_a_nested_tree() {
    let ci = Ci::shop().await;

    let root = ci.get("/api/json?tree=jobs[fullName,color,jobs[fullName]]{0,2}").await;

    assert_eq!(
        root,
        json!({ "_class": "hudson.model.Hudson", "jobs": [
            { "_class": "com.cloudbees.hudson.plugins.folder.Folder", "fullName": "platform", "jobs": [
                { "_class": "com.cloudbees.hudson.plugins.folder.Folder", "fullName": "platform/images" },
                { "_class": "org.jenkinsci.plugins.workflow.job.WorkflowJob", "fullName": "platform/load-test" },
            ] },
            { "_class": "com.cloudbees.hudson.plugins.folder.Folder", "fullName": "shop", "jobs": [
                { "_class": "org.jenkinsci.plugins.workflow.multibranch.WorkflowMultiBranchProject", "fullName": "shop/checkout" },
                { "_class": "org.jenkinsci.plugins.workflow.job.WorkflowJob", "fullName": "shop/deploy" },
                { "_class": "hudson.model.FreeStyleProject", "fullName": "shop/legacy-sync" },
                { "_class": "org.jenkinsci.plugins.workflow.job.WorkflowJob", "fullName": "shop/publish" },
            ] },
        ] })
    );
}

#[tokio::test]
async fn without_a_tree_an_inner_object_shows_little_and_depth_shows_more() {
    let ci = Ci::shop().await;

    let flat = ci.get("/job/smoke/api/json").await;
    let deep = ci.get("/job/smoke/api/json?depth=1").await;

    assert_eq!(flat["nextBuildNumber"], 3);
    let build = json!({ "_class": "hudson.model.FreeStyleBuild", "number": 2, "url": format!("{}/job/smoke/2/", ci.jenkins.url()) });
    assert_eq!(flat["lastBuild"], build);
    assert_eq!(deep["lastBuild"]["result"], "SUCCESS");
}

#[tokio::test]
async fn the_slash_of_a_branch_is_encoded_twice_in_a_path() {
    let ci = Ci::shop().await;
    let path = "/job/shop/job/checkout/job/feature%252Fgift-cards";

    let branch = ci.get(&format!("{path}/api/json")).await;
    let wrong = ci.ask("GET", "/job/shop/job/checkout/job/feature%2Fgift-cards/api/json", "", &[]).await;

    assert_eq!(branch["fullName"], "shop/checkout/feature%2Fgift-cards");
    assert_eq!(branch["displayName"], "feature/gift-cards");
    assert_eq!(branch["url"], format!("{}{path}/", ci.jenkins.url()));
    assert_eq!(wrong.status, 404);
}

#[tokio::test]
async fn parameters_are_described_and_a_password_is_never_shown() {
    let ci = Ci::shop().await;
    let tree = "tree=property[parameterDefinitions[*[*]]]";

    let deploy = ci.get(&format!("/job/shop/job/deploy/api/json?{tree}")).await;
    let publish = ci.ask("GET", &format!("/job/shop/job/publish/api/json?{tree}"), "", &[]).await;

    let definitions = &deploy["property"][0]["parameterDefinitions"];
    assert_eq!(definitions[0]["choices"], json!(["staging", "production"]));
    assert_eq!(definitions[2]["defaultParameterValue"]["value"], false);
    assert_eq!(publish.json()["property"][0]["parameterDefinitions"][0]["type"], "PasswordParameterDefinition");
    assert!(!publish.text().contains("not-for-eyes"));
}

#[tokio::test]
async fn the_configuration_needs_a_permission() {
    let may = Ci::shop().await;
    let may_not = Ci::of(JenkinsSeed::shop().without(Permission::ExtendedRead)).await;
    let path = "/job/shop/job/checkout/job/main/config.xml";

    let shown = may.ask("GET", path, "", &[]).await;
    let refused = may_not.ask("GET", path, "", &[]).await;

    assert_eq!(shown.header("content-type"), Some("application/xml"));
    for wanted in ["<url>https://git.shop.example/shop/checkout.git</url>", "<name>*/main</name>", "<credentialsId>"] {
        assert!(shown.text().contains(wanted), "{wanted}");
    }
    assert_eq!(refused.status, 403);
    assert_eq!(refused.header("x-required-permission"), Some("hudson.model.Item.ExtendedRead"));
}

#[tokio::test]
async fn a_job_shows_its_newest_hundred_builds_and_all_of_them_on_request() {
    let long = (0..130).rev().fold(SimulatedJob::freestyle("long"), |job, ago| {
        job.past(Duration::from_secs(3_600 + ago * 60), BuildScript::lasting(Duration::from_secs(1)))
    });
    let ci = Ci::of(JenkinsSeed::empty().job(long)).await;

    let newest = ci.get("/job/long/api/json?tree=builds[number]").await;
    let page = ci.get("/job/long/api/json?tree=allBuilds[number]{100,103}").await;

    assert_eq!(newest["builds"].as_array().unwrap().len(), 100);
    let numbers: Vec<u64> =
        page["allBuilds"].as_array().unwrap().iter().map(|build| build["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [30, 29, 28]);
}

#[tokio::test]
async fn what_is_not_there_is_not_found_and_a_broken_tree_is_refused() {
    let ci = Ci::shop().await;

    for path in [
        "/job/nobody/api/json",
        "/job/shop/job/deploy/99/api/json",
        "/job/shop/build",
        "/elsewhere",
        "/job/smoke/lastFailedBuild/api/json",
    ] {
        assert_eq!(ci.ask("GET", path, "", &[]).await.status, 404, "{path}");
    }
    let broken = ci.ask("GET", "/api/json?tree=jobs[name", "", &[]).await;
    assert_eq!((broken.status, broken.text().contains("Malformed tree expression")), (500, true));
}

#[tokio::test]
async fn a_server_may_live_under_a_path() {
    let ci = Ci::of(JenkinsSeed::shop().under("/ci")).await;

    let job = ci.get("/ci/job/smoke/api/json?tree=url").await;

    assert!(ci.jenkins.url().ends_with("/ci"));
    assert_eq!(job["url"], format!("{}/job/smoke/", ci.jenkins.url()));
    assert_eq!(ci.ask("GET", "/job/smoke/api/json", "", &[]).await.status, 404);
    let started = ci.post("/ci/job/smoke/build", "").await;
    assert!(started.header("location").unwrap().starts_with(&format!("{}/queue/item/", ci.jenkins.url())));
}
