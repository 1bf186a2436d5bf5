//! `helm_repo`: repositories a tenant adds and removes.

use crate::charts::server::{Answer, Server};
use crate::charts::world::{World, repository};
use catalog::ProbeResult;
use domain::Code;
use helm::client::charts::ChartRepository;
use serde_json::{Value, json};

async fn names(world: &World) -> Vec<String> {
    let answer = world.call("helm_search", json!({})).await.unwrap();
    answer["repositories"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

fn add(name: &str, url: &str) -> Value {
    json!({ "action": "add", "name": name, "url": url })
}

#[tokio::test]
async fn an_added_repository_is_asked_once_kept_and_gone_when_removed() {
    let world = World::new().await;
    world.publish("web", "1.0.0", &[]);
    world.server.put("/more/index.yaml", Answer::ok("entries:\n  db:\n  - {version: 1.0.0, urls: [a]}\n"));
    let args = add("more", &world.server.url("/more"));

    let drawn = world.preview("helm_repo", args.clone()).await.unwrap();
    assert!(drawn.text.contains("host: 127.0.0.1") && drawn.text.contains("charts: 1"), "{}", drawn.text);
    assert_eq!(world.probe("helm_repo", args.clone()).await, ProbeResult::NotDone);
    assert_eq!(names(&world).await, ["stable"], "a preview keeps nothing");

    let answer = world.call("helm_repo", args.clone()).await.unwrap();
    assert_eq!((&answer["name"], &answer["charts"]), (&json!("more"), &json!(1)));
    assert_eq!(names(&world).await, ["stable", "more"]);
    assert_eq!(world.probe("helm_repo", args.clone()).await, ProbeResult::Done(None));
    world.call("helm_repo", args.clone()).await.expect("the same again changes nothing");
    assert_eq!(names(&world).await, ["stable", "more"]);
    assert!(world.preview("helm_repo", args).await.unwrap().warnings[0].contains("there already"));

    let remove = json!({ "action": "remove", "name": "more" });
    assert!(world.preview("helm_repo", remove.clone()).await.unwrap().text.contains("/more"));
    world.call("helm_repo", remove.clone()).await.unwrap();
    assert_eq!(names(&world).await, ["stable"]);
    assert_eq!(world.probe("helm_repo", remove.clone()).await, ProbeResult::Done(None));
    world.call("helm_repo", remove.clone()).await.expect("gone is gone");
    assert_eq!(world.preview("helm_repo", remove).await.unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn what_one_tenant_adds_another_does_not_have() {
    let mut world = World::new().await;
    world.server.put("/more/index.yaml", Answer::ok("entries: {}\n"));
    world.call("helm_repo", add("more", &world.server.url("/more"))).await.unwrap();

    world.as_tenant("beta");

    assert_eq!(names(&world).await, Vec::<String>::new());
    world.call("helm_repo", json!({ "action": "remove", "name": "more" })).await.unwrap();
    world.as_tenant("acme");
    world.configure(vec![repository("stable", &world.server.url("/stable"))]);
    assert_eq!(names(&world).await, ["stable", "more"]);
}

#[tokio::test]
async fn the_tenants_file_is_not_changed_by_calls() {
    let world = World::new().await;
    world.publish("web", "1.0.0", &[]);

    let removed = world.refused("helm_repo", json!({ "action": "remove", "name": "stable" })).await;
    assert_eq!(removed.code, kubernetes::codes::PROTECTED);
    let other = world.refused("helm_repo", add("stable", &world.server.url("/more"))).await;
    assert_eq!(other.code, kubernetes::codes::ALREADY_EXISTS);
    world.call("helm_repo", add("stable", &world.server.url("/stable"))).await.expect("it is there, exactly so");
    assert_eq!(names(&world).await, ["stable"]);
}

#[tokio::test]
async fn a_credential_is_the_configurations_to_name_and_goes_to_its_own_host_alone() {
    let mut world = World::new().await;
    let guarded = Answer::ok(
        "entries:\n  web:\n  - {version: 1.0.0, urls: [web-1.0.0.tgz]}\n  far:\n  - {version: 1.0.0, urls: [",
    );
    let far = format!("{}]}}\n", world.other.url("/far-1.0.0.tgz"));
    let body = [guarded.body.clone(), far.into_bytes()].concat();
    world
        .server
        .put("/own/index.yaml", Answer::ok(body).only_with("Basic cm9ib3Q6Y2FuYXJ5LXNlY3JldA==", "Basic realm=x"));
    world.server.put("/own/web-1.0.0.tgz", Answer::ok(crate::charts::archives::chart("web", "1.0.0", &[])));
    world.other.put("/far-1.0.0.tgz", Answer::ok(crate::charts::archives::chart("far", "1.0.0", &[])));
    let url = world.server.url("/own");

    // A call names no credential, and what it adds is opened without one.
    for named in ["nobody", "pull"] {
        let args = json!({ "action": "add", "name": "own", "url": url, "credential": named });
        assert_eq!(world.refused("helm_repo", args).await.code, Code::UnknownArgument);
    }
    assert_eq!(world.server.requests().len(), 0, "nobody was asked");
    assert_eq!(world.refused("helm_repo", add("own", &url)).await.code, target::codes::CREDENTIALS_REFUSED);
    assert!(world.server.requests().iter().all(|request| !request.contains("authorization")));

    let credential = Some("pull".to_owned());
    world.configure(vec![ChartRepository { name: "own".into(), url, credential }]);
    world.call("helm_show", json!({ "chart": "own/web" })).await.unwrap();
    world.call("helm_show", json!({ "chart": "own/far" })).await.unwrap();
    assert!(
        world
            .server
            .requests()
            .iter()
            .filter(|r| r.contains("web-1.0.0.tgz"))
            .all(|r| r.contains("authorization: Basic"))
    );
    assert!(
        world.other.requests().iter().all(|request| !request.contains("authorization")),
        "{:?}",
        world.other.requests()
    );
}

#[tokio::test]
async fn cve_2026_44430_no_address_beyond_the_operators_hosts_can_be_added() {
    let (server, other) = (Server::start().await, Server::at("127.0.0.2").await);
    let world = World::with(server, other, &["charts.example", "127.0.0.1"]).await;
    let port = world.server.port;
    for url in [
        format!("http://127.0.0.2:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://169.254.169.254:{port}/latest/meta-data"),
        format!("http://metadata.google.internal:{port}/"),
        format!("https://charts.example.evil.example:{port}/"),
        format!("https://me:secret@charts.example:{port}/"),
        format!("https://charts.example@evil.example:{port}/"),
        format!("https://xn--bcher-kva.example:{port}/"),
        format!("http://1.1.1.1:{port}/"),
        "https://charts.example:6379/".to_owned(),
        "https://charts.example:10250/".to_owned(),
        "https://charts.example:2375/".to_owned(),
        format!("oci://127.0.0.2:{port}/x"),
        format!("oci://2130706434:{port}/x"),
        "oci://localhost/x".to_owned(),
    ] {
        let code = world.refused("helm_repo", add("evil", &url)).await.code;
        assert_eq!(code, target::codes::HOST_DENIED, "{url}");
    }
    for url in [
        "file:///etc/passwd",
        "gopher://x/",
        "foo://x/",
        "--repository-config=/x",
        "charts.example",
        "https://a b/",
        "https://x/\n",
        "/etc",
    ] {
        let code = world.refused("helm_repo", add("evil", url)).await.code;
        assert_eq!(code, Code::InvalidArgument, "{url}");
    }
    assert_eq!((world.server.paths().len(), world.other.paths().len()), (0, 0), "nobody was asked");
    assert_eq!(names(&world).await, Vec::<String>::new());
}

#[tokio::test]
async fn contradictions_and_too_many_are_refused() {
    let mut world = World::new().await;
    for bad in [
        json!({ "action": "add", "name": "x" }),
        json!({ "action": "remove", "name": "x", "url": "https://charts.example/" }),
        json!({ "action": "add", "name": "--x", "url": "https://x.example/" }),
        json!({ "action": "update", "name": "x" }),
    ] {
        assert_eq!(world.refused("helm_repo", bad.clone()).await.code, Code::InvalidArgument, "{bad}");
    }
    let many = (0..32).map(|n| repository(&format!("r{n}"), &world.server.url("/stable"))).collect();
    world.configure(many);
    world.index("  web: []\n");
    assert_eq!(world.refused("helm_repo", add("more", &world.server.url("/stable"))).await.code, Code::QuotaExceeded);
}

#[tokio::test]
async fn charts_of_the_same_name_are_pointed_out() {
    let world = World::new().await;
    world.publish("web", "1.0.0", &[]);
    world.call("helm_search", json!({ "query": "web" })).await.unwrap();
    world.server.put("/more/index.yaml", Answer::ok("entries:\n  web:\n  - {version: 9.0.0, urls: [a]}\n"));

    let drawn = world.preview("helm_repo", add("more", &world.server.url("/more"))).await.unwrap();

    assert_eq!(drawn.warnings, ["Other repositories have charts of the same name: stable/web"]);
}
