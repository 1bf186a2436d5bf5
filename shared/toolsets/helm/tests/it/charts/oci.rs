//! Charts in a registry, by the distribution API.

use crate::charts::archives::{chart, sha256};
use crate::charts::server::{Answer, Server};
use crate::charts::world::World;
use domain::Code;
use helm::client::charts::ChartRepository;
use serde_json::json;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Puts a chart into the registry; the manifest and the archive are for whoever shows the authorization.
fn push(server: &Server, path: &str, version: &str, archive: &[u8], guard: Option<(&str, &str)>) {
    let digest = sha256(archive);
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": { "mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": format!("sha256:{digest}"), "size": 2 },
        "layers": [{ "mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "digest": format!("sha256:{digest}"), "size": archive.len() }],
    });
    let put = |path: String, answer: Answer| match guard {
        Some((authorization, challenge)) => server.put(&path, answer.only_with(authorization, challenge)),
        None => server.put(&path, answer),
    };
    put(format!("/v2/{path}/manifests/{version}"), Answer::ok(manifest.to_string()));
    put(format!("/v2/{path}/blobs/sha256:{digest}"), Answer::ok(archive));
    put(
        format!("/v2/{path}/tags/list?n=1000"),
        Answer::ok(json!({ "name": path, "tags": ["1.0.0", "latest", version] }).to_string()),
    );
}

async fn world(credential: Option<&str>) -> World {
    let mut world = World::new().await;
    let url = format!("oci://{}/team/charts", world.server.authority());
    world.configure(vec![ChartRepository { name: "own".into(), url, credential: credential.map(str::to_owned) }]);
    world
}

#[tokio::test]
async fn a_chart_is_found_by_address_by_name_and_by_range() {
    let world = world(None).await;
    let archive = chart("web", "1.2.0", &[("values.yaml", "a: 1\n")]);
    push(&world.server, "team/charts/web", "1.2.0", &archive, None);
    let by_address = format!("oci://{}/team/charts/web", world.server.authority());

    for (chart, version) in
        [(by_address.as_str(), "1.2.0"), ("own/web", "1.2.0"), ("own/web", "^1.1"), (&by_address, ">1")]
    {
        let args = json!({ "chart": chart, "version": version });
        let answer = world.call("helm_show", args).await;
        if version == ">1" {
            // Above 1 altogether, and there is none.
            let failure = answer.unwrap_err();
            assert_eq!(
                (failure.code, failure.did_you_mean),
                (helm::codes::VERSION_NOT_FOUND, vec!["1.2.0".to_owned(), "1.0.0".to_owned()])
            );
            continue;
        }
        let answer = answer.unwrap();
        assert_eq!(
            (answer["text"].as_str(), answer["version"].as_str()),
            (Some("a: 1\n"), Some("1.2.0")),
            "{chart} {version}"
        );
    }
    let newest = world.call("helm_show", json!({ "chart": "own/web" })).await.unwrap();
    assert_eq!(newest["version"], "1.2.0");
    assert_eq!(world.server.paths().iter().filter(|path| path.contains("/blobs/")).count(), 1, "fetched once");
    assert!(world.server.requests()[0].contains(&format!("accept: {MANIFEST}\r\n")));
}

#[tokio::test]
async fn a_build_is_found_by_the_tag_that_stands_for_it() {
    let world = world(None).await;
    let archive = chart("web", "1.2.0+b7", &[]);
    push(&world.server, "team/charts/web", "1.2.0_b7", &archive, None);

    let answer = world.call("helm_show", json!({ "chart": "own/web", "version": "1.2.0+b7" })).await.unwrap();

    assert_eq!(answer["version"], "1.2.0+b7");
}

#[tokio::test]
async fn a_token_is_fetched_with_the_credential_and_used_for_everything() {
    let world = world(Some("pull")).await;
    let archive = chart("web", "1.2.0", &[]);
    let realm = world.server.url("/token");
    let challenge = format!("Bearer realm=\"{realm}\",service=\"registry\",scope=\"repository:other:pull,push\"");
    push(&world.server, "team/charts/web", "1.2.0", &archive, Some(("Bearer t0ken", &challenge)));
    world.server.put(
        "/token?service=registry&scope=repository%3Ateam%2Fcharts%2Fweb%3Apull",
        Answer::ok(r#"{"token":"t0ken"}"#).only_with("Basic cm9ib3Q6Y2FuYXJ5LXNlY3JldA==", "Basic realm=x"),
    );

    world.call("helm_show", json!({ "chart": "own/web", "version": "1.2.0" })).await.unwrap();

    let requests = world.server.requests();
    let basic: Vec<&String> = requests.iter().filter(|request| request.contains("authorization: Basic")).collect();
    assert!(basic.len() == 1 && basic[0].starts_with("GET /token?"), "{requests:?}");
}

#[tokio::test]
async fn a_registry_that_wants_the_credential_itself_gets_it() {
    let world = world(Some("pull")).await;
    let archive = chart("web", "1.2.0", &[]);
    let guard = Some(("Basic cm9ib3Q6Y2FuYXJ5LXNlY3JldA==", "Basic realm=\"x\""));
    push(&world.server, "team/charts/web", "1.2.0", &archive, guard);

    world.call("helm_show", json!({ "chart": "own/web", "version": "1.2.0" })).await.unwrap();
}

#[tokio::test]
async fn cve_2026_104850_the_credential_does_not_go_where_the_registry_points() {
    let world = world(Some("pull")).await;
    let archive = chart("web", "1.2.0", &[]);
    let challenge = format!("Bearer realm=\"{}\"", world.other.url("/token"));
    push(&world.server, "team/charts/web", "1.2.0", &archive, Some(("Bearer t0ken", &challenge)));
    world.other.put("/token?scope=repository%3Ateam%2Fcharts%2Fweb%3Apull", Answer::ok(r#"{"access_token":"t0ken"}"#));

    world
        .call("helm_show", json!({ "chart": "own/web", "version": "1.2.0" }))
        .await
        .expect("a token for nobody is enough");
    assert_eq!(world.other.paths().len(), 1);
    assert!(
        world.other.requests().iter().all(|request| !request.contains("authorization")),
        "{:?}",
        world.other.requests()
    );
}

#[tokio::test]
async fn a_realm_beyond_the_operators_hosts_is_not_asked() {
    let world = world(Some("pull")).await;
    for realm in ["https://evil.example/token", "http://169.254.169.254/token", "file:///etc/passwd", "not an address"]
    {
        let challenge = format!("Bearer realm=\"{realm}\"");
        push(&world.server, "team/charts/web", "1.2.0", b"x", Some(("Bearer t0ken", &challenge)));

        let failure = world.refused("helm_show", json!({ "chart": "own/web", "version": "1.2.0" })).await;

        assert!(
            matches!(failure.code, target::codes::CREDENTIALS_REFUSED | target::codes::HOST_DENIED),
            "{realm}: {failure}"
        );
    }
}

#[tokio::test]
async fn an_archive_elsewhere_is_fetched_from_listed_hosts_without_the_credential() {
    let world = world(Some("pull")).await;
    let archive = chart("web", "1.2.0", &[]);
    let guard = Some(("Basic cm9ib3Q6Y2FuYXJ5LXNlY3JldA==", "Basic realm=\"x\""));
    push(&world.server, "team/charts/web", "1.2.0", &archive, guard);
    let blob = format!("/v2/team/charts/web/blobs/sha256:{}", sha256(&archive));
    world.server.put(&blob, Answer::moved(&world.other.url("/blob")));
    world.other.put("/blob", Answer::ok(archive));

    world.call("helm_show", json!({ "chart": "own/web", "version": "1.2.0" })).await.unwrap();

    assert!(
        world.other.requests().iter().all(|request| !request.contains("authorization")),
        "{:?}",
        world.other.requests()
    );
}

#[tokio::test]
async fn only_charts_below_what_the_tenant_has_are_reached() {
    let world = world(None).await;
    let archive = chart("web", "1.2.0", &[]);
    push(&world.server, "secret/web", "1.2.0", &archive, None);
    for chart in ["secret/web", "team/chartsx/web", "team/charts"] {
        let chart = format!("oci://{}/{chart}", world.server.authority());
        assert_eq!(
            world.refused("helm_show", json!({ "chart": chart, "version": "1.2.0" })).await.code,
            target::codes::HOST_DENIED
        );
    }
    assert_eq!(world.server.paths(), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_no_chart_or_another_one_is_refused() {
    let world = world(None).await;
    let archive = chart("web", "1.2.0", &[]);
    let show = || world.refused("helm_show", json!({ "chart": "own/web", "version": "1.2.0" }));
    let blob = format!("/v2/team/charts/web/blobs/sha256:{}", sha256(&archive));
    push(&world.server, "team/charts/web", "1.2.0", &archive, None);

    world.server.put(&blob, Answer::ok(chart("web", "1.2.0", &[("values.yaml", "evil: true\n")])));
    assert_eq!(show().await.code, helm::codes::CHART_NOT_FOUND, "another digest");

    push(&world.server, "team/charts/web", "1.2.0", &chart("other", "1.2.0", &[]), None);
    assert_eq!(show().await.code, helm::codes::CHART_NOT_FOUND, "another name inside");

    for manifest in [
        json!({ "config": { "mediaType": "application/vnd.oci.image.config.v1+json", "digest": "x", "size": 1 }, "layers": [] }).to_string(),
        r#"{"config":{"mediaType":"application/vnd.cncf.helm.config.v1+json","digest":"x","size":1},"layers":[{"mediaType":"application/vnd.cncf.helm.chart.content.v1.tar+gzip","digest":"sha256:../../etc","size":1}]}"#.to_owned(),
        r#"{"config":{"mediaType":"application/vnd.cncf.helm.config.v1+json","digest":"x","size":1},"layers":[{"mediaType":"application/vnd.cncf.helm.chart.content.v1.tar+gzip","digest":"sha256:00","size":99999999999}]}"#.to_owned(),
    ] {
        world.server.put("/v2/team/charts/web/manifests/1.2.0", Answer::ok(manifest.clone()));
        assert_eq!(show().await.code, helm::codes::CHART_NOT_FOUND, "{manifest}");
    }
    for junk in ["", "[]", "{}", "not json", &"[".repeat(100_000)] {
        world.server.put("/v2/team/charts/web/manifests/1.2.0", Answer::ok(junk));
        assert_eq!(show().await.code, helm::codes::REPO_UNREACHABLE);
    }
    world.server.put("/v2/team/charts/web/manifests/1.2.0", Answer::ok(vec![b' '; 2 << 20]));
    assert_eq!(show().await.code, Code::TooLarge);
}

#[tokio::test]
async fn adding_a_registry_greets_it_without_a_credential() {
    let world = World::new().await;
    world.server.put("/v2/", Answer::ok("{}").only_with("Basic cm9ib3Q6Y2FuYXJ5LXNlY3JldA==", "Basic realm=\"x\""));
    let url = format!("oci://{}/team", world.server.authority());
    let bare = json!({ "action": "add", "name": "team", "url": url });
    assert_eq!(world.refused("helm_repo", bare.clone()).await.code, target::codes::CREDENTIALS_REFUSED);
    assert!(world.server.requests().iter().all(|request| !request.contains("authorization")));

    world.server.put("/v2/", Answer::ok("{}"));
    let drawn = world.preview("helm_repo", bare.clone()).await.unwrap();
    assert!(drawn.text.contains(&format!("host: {}", world.server.authority())), "{}", drawn.text);
    world.call("helm_repo", bare).await.unwrap();
}
