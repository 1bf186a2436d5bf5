//! Answers that are too large, too deep, too long or packed.

use super::super::{LinkLimits, ServerLinks};
use super::double::{Asked, Double, Reply, Speaks};
use super::world::*;
use crate::codes;
use domain::{Code, Effect};
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use std::time::Duration;

/// A server that answers calls in its own way.
async fn calling(speaks: Speaks, reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Double {
    Double::start(speaks, move |asked| (asked.method() == "tools/call").then(|| reply(asked))).await
}

async fn code(links: &ServerLinks, double: &Double, limits: LinkLimits) -> Code {
    let failure = call_within(links, &target(double), Effect::Read, limits).await.unwrap_err();
    for secret in ["canary", "127.0.0.1", "authorization", &double.port.to_string()] {
        assert!(!format!("{failure:?}").contains(secret), "{failure:?}");
    }
    failure.code
}

fn small() -> LinkLimits {
    LinkLimits { bytes: 20_000, nodes: 500, depth: 8, ..limits() }
}

fn result_with(asked: &Asked, structured: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": asked.id(), "result": { "content": [], "structuredContent": structured } })
}

#[tokio::test]
async fn an_answer_is_bounded_in_bytes_values_and_depth_as_json_and_as_events() {
    let wide = |asked: &Asked| result_with(asked, &json!(vec![0; 1000]));
    let deep = |asked: &Asked| result_with(asked, &(0..20).fold(json!(1), |inner, _| json!([inner])));
    let long = |asked: &Asked| result_with(asked, &json!("x".repeat(30_000)));
    let fits = |asked: &Asked| result_with(asked, &json!(vec![0; 400]));
    let links = links();
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        for make in [wide, deep, long] {
            let whole = calling(speaks, move |asked| Reply::json(&make(asked))).await;
            let events = calling(speaks, move |asked| Reply::events(&[make(asked)])).await;

            assert_eq!(code(&links, &whole, small()).await, Code::ResultTooLarge);
            assert_eq!(code(&links, &events, small()).await, Code::ResultTooLarge);
        }
        let double = calling(speaks, move |asked| Reply::json(&fits(asked))).await;
        assert!(call_within(&links, &target(&double), Effect::Read, small()).await.is_ok());
    }
}

#[tokio::test]
async fn a_body_without_end_is_left_at_the_bound() {
    let endless = || stream::repeat(vec![b' '; 1000]);
    let double = calling(Speaks::Modern, move |_| Reply::pieces("application/json", endless())).await;

    assert_eq!(code(&links(), &double, small()).await, Code::ResultTooLarge);
}

#[tokio::test]
async fn events_without_end_are_left_at_the_bound_and_at_the_deadline() {
    let chatter = b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n".to_vec();
    let comments = || stream::repeat(b": still here\n\n".to_vec());
    let fast =
        calling(Speaks::Legacy, move |_| Reply::pieces("text/event-stream", stream::repeat(chatter.clone()))).await;
    let silent = calling(Speaks::Legacy, move |_| Reply::pieces("text/event-stream", comments())).await;
    let slow = calling(Speaks::Modern, |_| {
        let ticking = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Some((b": still here\n\n".to_vec(), ()))
        });
        Reply::pieces("text/event-stream", ticking.boxed())
    })
    .await;
    let links = links();

    assert_eq!(code(&links, &fast, small()).await, Code::ResultTooLarge);
    assert_eq!(code(&links, &silent, small()).await, Code::ResultTooLarge);
    let short = LinkLimits { deadline: tokio::time::Instant::now() + Duration::from_millis(700), ..small() };
    assert_eq!(code(&links, &slow, short).await, Code::Deadline);
}

#[tokio::test]
async fn what_is_compressed_is_refused_without_being_unpacked() {
    for encoding in ["gzip", "br", "deflate", "zstd", "x-unknown"] {
        let double = calling(Speaks::Legacy, move |asked| {
            Reply::json(&result_with(asked, &json!(1))).with("content-encoding", encoding)
        })
        .await;

        let failure = call(&links(), &target(&double), Effect::Read).await.unwrap_err();

        assert_eq!(failure.code, codes::UPSTREAM_PROTOCOL, "{encoding}");
        assert!(failure.message.contains("compressed although not asked for"), "{failure}");
    }
    let plain = calling(Speaks::Legacy, |asked| {
        Reply::json(&result_with(asked, &json!(1))).with("content-encoding", "identity")
    })
    .await;
    assert!(call(&links(), &target(&plain), Effect::Read).await.is_ok());
}

#[tokio::test]
async fn what_is_not_the_protocol_is_said_to_be_that() {
    type Make = fn(&Asked) -> Reply;
    let strange: [(&str, Make); 9] = [
        ("html", |_| Reply::whole(200, "text/html", "<html>")),
        ("no json", |_| Reply::whole(200, "application/json", "{\"jsonrpc\":")),
        ("no rpc", |_| Reply::whole(200, "application/json", "{}")),
        ("a batch", |asked| Reply::json(&json!([result_with(asked, &json!(1))]))),
        ("another id", |_| Reply::json(&json!({ "jsonrpc": "2.0", "id": 4711, "result": { "content": [] } }))),
        ("no content", |asked| Reply::result(asked, &json!({}))),
        ("no object", |asked| Reply::result(asked, &json!([1]))),
        ("a question", |asked| Reply::result(asked, &json!({ "resultType": "input_required", "content": [] }))),
        ("accepted", |_| Reply::whole(202, "text/plain", "")),
    ];
    let links = links();
    for (what, reply) in strange {
        let double = calling(Speaks::Legacy, reply).await;

        assert_eq!(code(&links, &double, limits()).await, codes::UPSTREAM_PROTOCOL, "{what}");
    }
}

#[tokio::test]
async fn answers_to_nobody_are_ignored_until_the_deadline() {
    let double = calling(Speaks::Legacy, |asked| {
        let other = json!({ "jsonrpc": "2.0", "id": asked.id().as_i64().unwrap() + 1, "result": { "content": [] } });
        let text = format!("data: {other}\n\n").into_bytes();
        Reply::pieces("text/event-stream", stream::iter([text.clone(), text]).chain(stream::pending()))
    })
    .await;

    assert_eq!(code(&links(), &double, limits_of(Duration::from_millis(700))).await, Code::Deadline);
}

#[tokio::test]
async fn the_answer_that_opens_a_line_is_bounded_too() {
    let double = Double::start(Speaks::Legacy, |asked| {
        (asked.method() == "initialize").then(|| Reply::pieces("application/json", stream::repeat(vec![b' '; 1000])))
    })
    .await;

    assert_eq!(code(&links(), &double, small()).await, Code::ResultTooLarge);
}
