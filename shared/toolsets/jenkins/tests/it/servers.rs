//! Several servers, no server, and servers at addresses nobody may reach.

use crate::world::{World, config};
use egress::{AddressGuard, Url};
use jenkins::client::SecretSource;
use sandbox::jenkins::{JenkinsSeed, SimulatedJenkins};
use serde_json::json;

#[tokio::test]
async fn a_server_is_named_where_there_are_several() {
    let mut world = World::shop().await;
    let second = SimulatedJenkins::start(JenkinsSeed::empty()).await.unwrap();
    let main = config("main", &world.jenkins);
    let both = || vec![main.clone(), config("other", &second)];
    world.set(both()).unwrap();
    assert_eq!(world.kit.servers.names(), ["main", "other"]);

    let failure = world.run("jenkins_jobs", json!({})).await.unwrap_err();
    assert_eq!(
        (failure.code, failure.next.as_deref()),
        (jenkins::codes::SERVER_REQUIRED, Some("set server to one of: main, other"))
    );
    let failure = world.run("jenkins_jobs", json!({ "server": "othr" })).await.unwrap_err();
    assert_eq!((failure.code, &failure.did_you_mean[..]), (target::codes::SERVER_UNKNOWN, &["other".to_owned()][..]));
    let empty = world.run("jenkins_jobs", json!({ "server": "other" })).await.unwrap();
    assert_eq!((&empty["jobs"], empty.get("target")), (&json!([]), None));

    let mut with_default = both();
    with_default[0].default = true;
    world.set(with_default).unwrap();
    world.run("jenkins_jobs", json!({})).await.unwrap();
    let failure = world.run("jenkins_trigger", json!({ "job": "smoke" })).await.unwrap_err();
    assert_eq!(failure.code, jenkins::codes::SERVER_REQUIRED, "a write names its server");

    world.set(vec![]).unwrap();
    assert_eq!(world.run("jenkins_jobs", json!({})).await.unwrap_err().code, target::codes::TOOLSET_NOT_CONFIGURED);
}

#[tokio::test]
async fn a_server_may_live_below_a_path() {
    let world = World::of(JenkinsSeed::shop().under("/ci")).await;
    assert!(world.jenkins.url().ends_with("/ci"));
    let told = world.run("jenkins_trigger", json!({ "job": "smoke", "wait_s": 20 })).await.unwrap();
    assert_eq!(told["url"], format!("{}/job/smoke/3/", world.jenkins.url()));
    assert!(world.jenkins.requests().iter().all(|request| request.path.starts_with("/ci/")));
}

#[tokio::test]
async fn an_address_that_leads_elsewhere_is_refused_when_configured_and_when_dialled() {
    let mut world = World::shop().await;
    let port = world.jenkins.address().port();
    let closed = AddressGuard { private: false, ports: vec![443, port] };
    for url in [
        format!("http://127.0.0.1:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        format!("https://127.1:{port}/"),
        format!("https://0x7f000001:{port}/"),
        format!("https://2130706433:{port}/"),
        format!("https://[::ffff:127.0.0.1]:{port}/"),
        "https://localhost/".to_owned(),
        "https://169.254.169.254/".to_owned(),
        "https://metadata.google.internal/".to_owned(),
        format!("https://ci.example@127.0.0.1:{port}/"),
        "https://ci.example:6379/".to_owned(),
    ] {
        let mut config = config("main", &world.jenkins);
        config.url = Url::parse(&url).unwrap();
        config.guard = closed.clone();
        assert!(world.set(vec![config]).is_err(), "{url}");
    }
    // What was refused did not take the place of what was there.
    world.run("jenkins_whoami", json!({})).await.unwrap();

    // A public name that resolves to this machine is caught when it is dialled: the token never leaves.
    let mut named = config("main", &world.jenkins);
    named.url = Url::parse(&format!("https://localhost.quartermaster-test.invalid:{port}/")).unwrap();
    named.guard = closed;
    world.set(vec![named]).unwrap();
    let before = world.jenkins.requests().len();
    let failure = world.run("jenkins_whoami", json!({})).await.unwrap_err();
    assert!(matches!(failure.code, target::codes::TARGET_UNREACHABLE | target::codes::HOST_DENIED), "{failure}");
    assert_eq!(world.jenkins.requests().len(), before);
}

#[tokio::test]
async fn a_trusted_certificate_that_is_none_is_told_without_its_text() {
    let mut world = World::shop().await;
    let mut config = config("main", &world.jenkins);
    config.ca = Some(SecretSource::Text(jenkins::client::SecretText::new(
        "-----BEGIN CERTIFICATE-----\nhunter2\n-----END CERTIFICATE-----\n",
    )));
    world.set(vec![config]).unwrap();
    let failure = world.run("jenkins_whoami", json!({})).await.unwrap_err();
    assert_eq!(failure.code, target::codes::TOOLSET_NOT_CONFIGURED);
    assert!(!format!("{failure:?}").contains("hunter2"));
}
