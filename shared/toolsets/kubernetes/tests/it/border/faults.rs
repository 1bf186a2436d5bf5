//! A target that is busy, slow, broken or gone.

use crate::border::support::*;
use domain::{Code, Failure};
use kubernetes::client::{ClusterConfig, ClusterEndpoint, MaskDetail, ObjectPatch};
use serde_json::json;
use std::net::TcpListener;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(600);

async fn patch(api: &Api, within: Duration) -> Result<(), Failure> {
    let permit = acting();
    let clusters = api.clusters();
    let cluster = clusters.of(&permit, None).unwrap().within(within);
    let web = target(&cluster, "Deployment", "web").await;
    let patch = ObjectPatch::Merge(json!({ "spec": { "paused": true } }).into());
    cluster.write().unwrap().patch(&web, patch, None).await.map(drop)
}

async fn get(api: &Api, within: Duration) -> Result<(), Failure> {
    let permit = reading();
    let clusters = api.clusters();
    let cluster = clusters.of(&permit, None).unwrap().within(within);
    let web = target(&cluster, "Deployment", "web").await;
    cluster.get(&web, MaskDetail::Clean).await.map(drop)
}

#[tokio::test]
async fn a_write_that_may_have_happened_is_unknown_and_sent_once() {
    let ambiguous = [
        Reply::Later(504, 0),
        status(500, "InternalError", "etcdserver: request timed out", json!([])),
        Reply::Text(502, "bad gateway".into()),
        Reply::Reset,
        Reply::Silence,
    ];
    for reply in ambiguous {
        let api = Api::start(move |_, _| reply.clone()).await;
        let failure = patch(&api, SHORT).await.unwrap_err();
        assert_eq!(failure.code, Code::OutcomeUnknown, "{failure:?}");
        assert_eq!(api.lines(), ["PATCH /apis/apps/v1/namespaces/default/deployments/web"]);
    }
}

#[tokio::test]
async fn a_write_on_a_connection_that_was_kept_is_not_sent_again_when_it_breaks() {
    let api = Api::start(|seen, _| match seen.method.as_str() {
        "GET" => Reply::Json(200, deployment("web", 1)),
        _ => Reply::Reset,
    })
    .await;
    let (permit, clusters) = (acting(), api.clusters());
    let cluster = clusters.of(&permit, None).unwrap();
    let web = target(&cluster, "Deployment", "web").await;
    let writer = cluster.write().unwrap();
    for _ in 0..3 {
        cluster.get(&web, MaskDetail::Clean).await.unwrap();
        let patch = ObjectPatch::Merge(json!({}).into());
        assert_eq!(writer.patch(&web, patch, None).await.unwrap_err().code, Code::OutcomeUnknown);
    }
    assert_eq!(api.lines().iter().filter(|line| line.starts_with("PATCH")).count(), 3);
}

#[tokio::test]
async fn a_busy_target_is_told_to_the_writer_and_not_asked_again() {
    for code in [429, 503] {
        let api = Api::start(move |_, _| Reply::Later(code, 7)).await;
        let failure = patch(&api, Duration::from_secs(30)).await.unwrap_err();
        assert_eq!((failure.code, failure.retry_after_ms), (target::codes::TARGET_BUSY, Some(7000)));
        assert_eq!(api.seen().len(), 1);
    }
}

#[tokio::test]
async fn a_read_waits_as_long_as_the_target_asks_if_the_deadline_allows() {
    let api = Api::start(|_, before| match before {
        0 => Reply::Later(429, 1),
        _ => Reply::Json(200, deployment("web", 1)),
    })
    .await;
    get(&api, Duration::from_secs(20)).await.unwrap();
    assert_eq!(api.seen().len(), 2);
}

#[tokio::test]
async fn a_read_that_cannot_wait_that_long_says_how_long() {
    let api = Api::start(|_, _| Reply::Later(429, 60)).await;
    let failure = get(&api, Duration::from_secs(10)).await.unwrap_err();
    assert_eq!((failure.code, failure.retry_after_ms), (target::codes::TARGET_BUSY, Some(60_000)));
    assert_eq!(api.seen().len(), 1);
}

#[tokio::test]
async fn a_read_is_repeated_twice_and_no_more() {
    let api = Api::start(|_, _| Reply::Json(504, json!({}))).await;
    let failure = get(&api, Duration::from_secs(20)).await.unwrap_err();
    assert_eq!(failure.code, Code::Deadline);
    assert_eq!(api.seen().len(), 3);
}

#[tokio::test]
async fn a_target_that_never_answers_costs_a_read_its_deadline() {
    let api = Api::start(|_, _| Reply::Silence).await;
    assert_eq!(get(&api, SHORT).await.unwrap_err().code, Code::Deadline);
}

/// An address nobody listens at.
fn nobody() -> ClusterConfig {
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap();
    drop(port);
    ClusterConfig::new("gone", ClusterEndpoint::Loopback(address))
}

#[tokio::test]
async fn without_a_connection_nothing_was_sent_and_a_write_is_no_mystery() {
    let api = Api::start(|_, _| Reply::Json(200, deployment("web", 1))).await;
    let (permit, clusters) = (acting(), clusters_of(vec![api.config(), nobody()]));
    let known = clusters.of(&permit, Some("main")).unwrap();
    let web = target(&known, "Deployment", "web").await;

    let gone = clusters.of(&permit, Some("gone")).unwrap();
    let failure = gone.write().unwrap().patch(&web, ObjectPatch::Merge(json!({}).into()), None).await.unwrap_err();
    assert_eq!(failure.code, target::codes::TARGET_UNREACHABLE);
    assert_eq!(gone.get(&web, MaskDetail::Clean).await.unwrap_err().code, target::codes::TARGET_UNREACHABLE);
    assert!(api.seen().is_empty());
}

#[tokio::test]
async fn a_target_that_keeps_breaking_is_left_alone_and_its_neighbour_is_not() {
    let broken = Api::start(|_, _| Reply::Reset).await;
    let well = Api::start(|_, _| Reply::Json(200, deployment("web", 1))).await;
    let mut second = broken.config();
    second.name = "broken".into();
    let (permit, clusters) = (reading(), clusters_of(vec![well.config(), second]));
    let well_one = clusters.of(&permit, Some("main")).unwrap();
    let web = target(&well_one, "Deployment", "web").await;

    let cluster = clusters.of(&permit, Some("broken")).unwrap();
    for _ in 0..8 {
        assert_eq!(cluster.get(&web, MaskDetail::Clean).await.unwrap_err().code, target::codes::TARGET_UNREACHABLE);
    }
    assert_eq!(broken.seen().len(), 5);
    well_one.get(&web, MaskDetail::Clean).await.unwrap();
}

#[tokio::test]
async fn refusals_are_told_by_code_and_their_words_are_masked_cut_and_marked() {
    let long = format!("no: password=hunter2hunter2 {}", "x".repeat(900));
    let manager = json!([{ "reason": "FieldManagerConflict", "field": ".spec.replicas",
        "message": "conflict with \"kubectl-client-side-apply\" using apps/v1" }]);
    let budget = json!([{ "reason": "DisruptionBudget", "message": "needs 2" }]);
    let table = [
        (
            status(400, "BadRequest", "strict decoding error: unknown field \"spec.foo\"", json!([])),
            kubernetes::codes::UNKNOWN_FIELD,
        ),
        (
            status(400, "BadRequest", "admission webhook \"w\" does not support dry run", json!([])),
            kubernetes::codes::DENIED_BY_ADMISSION,
        ),
        (status(403, "Forbidden", &long, json!([])), target::codes::FORBIDDEN),
        (status(403, "Forbidden", "exceeded quota: pods", json!([])), Code::QuotaExceeded),
        (
            status(403, "Forbidden", "admission webhook \"w\" denied the request: no", json!([])),
            kubernetes::codes::DENIED_BY_ADMISSION,
        ),
        (
            status(500, "InternalError", "failed calling webhook \"w\"", json!([])),
            kubernetes::codes::DENIED_BY_ADMISSION,
        ),
        (status(404, "NotFound", "not found", json!([])), Code::NotFound),
        (status(409, "AlreadyExists", "there", json!([])), kubernetes::codes::ALREADY_EXISTS),
        (status(409, "Conflict", "the object has been modified", json!([])), Code::Conflict),
        (status(409, "Conflict", "Apply failed", manager), kubernetes::codes::FIELD_CONFLICT),
        (
            status(409, "Conflict", "Precondition failed: UID in precondition: a", json!([])),
            kubernetes::codes::UID_CHANGED,
        ),
        (status(422, "Invalid", "field is immutable", json!([])), kubernetes::codes::IMMUTABLE_FIELD),
        (status(422, "Invalid", "spec.x: Required", json!([])), Code::InvalidArgument),
        (status(415, "UnsupportedMediaType", "no", json!([])), kubernetes::codes::STRATEGIC_UNSUPPORTED),
        (status(429, "TooManyRequests", "Cannot evict", budget), kubernetes::codes::PDB_BLOCKED),
        (status(401, "Unauthorized", "Unauthorized", json!([])), target::codes::FORBIDDEN),
    ];
    for (reply, code) in table {
        let api = Api::start(move |_, _| reply.clone()).await;
        let failure = patch(&api, Duration::from_secs(20)).await.unwrap_err();
        assert_eq!(failure.code, code, "{failure:?}");
        assert!(failure.next.is_some());
        let details = failure.details.unwrap();
        assert_eq!((&details["verb"], &details["resource"]), (&json!("patch"), &json!("deployments.apps")));
        assert_eq!(details["untrusted"], true);
        let message = details["message"].as_str().unwrap();
        assert!(message.chars().count() <= 500 && !message.contains("hunter2"), "{message}");
        assert!(!failure.message.contains("hunter2"));
        if code == kubernetes::codes::FIELD_CONFLICT {
            assert_eq!(details["managers"], json!(["kubectl-client-side-apply"]));
        }
        assert_eq!(api.seen().len(), 1, "{code:?}");
    }
}

#[tokio::test]
async fn health_needs_no_permit_and_asks_for_the_version_once() {
    let api = Api::start(|_, _| Reply::Json(200, json!({ "gitVersion": "v1.34.1" }))).await;
    let clusters = api.clusters();
    assert_eq!(clusters.health("main", SHORT).await, Ok(Some("v1.34.1".to_owned())));
    assert_eq!(api.lines(), ["GET /version"], "and for nothing else");
    let code = async |reply: Reply| {
        let api = Api::start(move |_, _| reply.clone()).await;
        api.clusters().health("main", SHORT).await.unwrap_err().code
    };
    assert_eq!(code(status(401, "Unauthorized", "Unauthorized", json!([]))).await, target::codes::FORBIDDEN);
    assert_eq!(code(Reply::Text(200, "<html>".into())).await, target::codes::TARGET_UNREACHABLE);
    assert_eq!(code(Reply::Silence).await, Code::Deadline);
    let elsewhere = clusters.health("other", SHORT).await.unwrap_err();
    assert_eq!(elsewhere.code, kubernetes::codes::CLUSTER_UNKNOWN);
}

#[tokio::test]
async fn a_target_is_named_as_it_would_be_chosen() {
    let api = Api::start(|_, _| Reply::Silence).await;
    let named = |name: &str| ClusterConfig { name: name.to_owned(), ..api.config() };
    let one = clusters_of(vec![named("a")]);
    assert_eq!(one.meant(None).as_deref(), Some("a"), "the only one");
    assert_eq!(one.meant(Some("b")), None);
    let several = clusters_of(vec![named("a"), ClusterConfig { default: true, ..named("b") }]);
    assert_eq!(several.meant(None).as_deref(), Some("b"), "the default");
    assert_eq!(several.meant(Some("a")).as_deref(), Some("a"));
}
