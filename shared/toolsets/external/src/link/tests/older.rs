//! The older transport: one stream of events for all answers, and what a server can do with it.

use super::super::{LinkTarget, LinksConfig, TargetReach};
use super::world::*;
use crate::codes;
use crate::server::HttpTransport;
use domain::{Code, Effect};
use egress::Url;
use serde_json::json;
use std::time::Duration;
use testkit::upstream::{Era, McpServer, SseHarm, SseServer};

fn target_of(server: &SseServer) -> LinkTarget {
    LinkTarget {
        reach: TargetReach::Http { url: Url::parse(&server.url()).unwrap(), transport: HttpTransport::Sse },
        ..target_at(&server.url(), server.port())
    }
}

#[tokio::test]
async fn tools_are_listed_and_called_over_one_stream() {
    let server = SseServer::start().await;
    let (links, target) = (links(), target_of(&server));

    let listed = links.list(&key(), &target, &limits()).await.unwrap();
    let called = call(&links, &target, Effect::Change).await.unwrap();

    assert_eq!(listed.tools.len(), 6);
    assert_eq!(called.structured, Some(json!({ "arguments": { "text": "hello" } })));
    assert_eq!(server.opened(), 1);
    let requests = server.requests();
    assert!(requests.iter().all(|seen| seen.header("authorization") == Some(CANARY)));
    assert!(requests.iter().all(|seen| seen.header("accept-encoding") == Some("identity")));
    let sent = requests.iter().find(|seen| seen.rpc() == "tools/call").unwrap();
    assert_eq!(sent.path, "/messages?session=1", "where the stream said");
    assert_eq!(sent.message()["params"]["_meta"]["quartermaster/params"], json!({ "project": "blue" }));
}

#[tokio::test]
async fn every_answer_over_a_shared_stream_reaches_its_own_caller() {
    let server = SseServer::start().await;
    let (links, target) = (links(), target_of(&server));

    let calls = (0..40).map(|n| {
        let (links, target) = (links.clone(), target.clone());
        async move {
            let serde_json::Value::Object(arguments) = json!({ "text": n.to_string() }) else { unreachable!() };
            let (permit, progress) = (permit(Effect::Read), catalog::Progress::default());
            let called = call_of(&links, &target, &permit, &arguments, &limits(), &progress).await.unwrap();
            assert_eq!(called.structured, Some(json!({ "arguments": { "text": n.to_string() } })));
        }
    });
    futures_util::future::join_all(calls).await;

    assert_eq!((server.opened(), server.count("tools/call")), (1, 40));
}

#[tokio::test]
async fn an_endpoint_elsewhere_is_not_followed_and_gets_nothing() {
    let elsewhere = McpServer::start(Era::Both).await;
    for named in [
        elsewhere.url(),
        format!("//{}/messages", elsewhere.address()),
        format!("http://localhost:{}/messages", elsewhere.port()),
        "https://127.0.0.1/messages".to_owned(),
    ] {
        let server = SseServer::start().await;
        server.plant(SseHarm::Endpoint(named.clone()));
        let mut target = target_of(&server);
        target.guard.ports.extend([elsewhere.port(), 443]);

        let failure = call(&links(), &target, Effect::Read).await.unwrap_err();

        assert_eq!(failure.code, codes::UPSTREAM_PROTOCOL, "{named}: {failure}");
        assert!(!format!("{failure:?}").contains("127.0.0.1"), "{failure:?}");
        assert_eq!(server.requests().len(), 1, "the stream was opened and nothing else was sent");
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn an_endpoint_that_is_named_anew_is_not_followed() {
    let (server, elsewhere) = (SseServer::start().await, McpServer::start(Era::Both).await);
    server.plant(SseHarm::AnotherEndpoint(elsewhere.url()));
    let (links, mut target) = (links(), target_of(&server));
    target.guard.ports.push(elsewhere.port());

    for _ in 0..2 {
        call(&links, &target, Effect::Change).await.unwrap();
    }

    assert_eq!((server.count("tools/call"), elsewhere.connections()), (2, 0));
}

#[tokio::test]
async fn a_stream_that_does_not_begin_as_it_must_opens_no_line() {
    let elsewhere = McpServer::start(Era::Both).await;
    for (harm, code) in [
        (SseHarm::NoEndpoint, Code::Deadline),
        (SseHarm::EndlessComments, Code::ResultTooLarge),
        (SseHarm::MessageFirst, codes::UPSTREAM_PROTOCOL),
        (SseHarm::NotEvents, codes::UPSTREAM_PROTOCOL),
        (SseHarm::Redirect(elsewhere.url()), codes::UPSTREAM_PROTOCOL),
    ] {
        let server = SseServer::start().await;
        server.plant(harm.clone());
        let mut target = target_of(&server);
        target.guard.ports.push(elsewhere.port());

        let limits = limits_of(Duration::from_millis(500));
        let failure = call_within(&links(), &target, Effect::Change, limits).await.unwrap_err();

        assert_eq!(failure.code, code, "{harm:?}: {failure}");
        assert_eq!(server.requests().len(), 1, "{harm:?}");
        assert!(server.sent() < 16 << 20, "{harm:?}: reading stops");
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn a_lost_stream_ends_a_call_as_what_it_is_and_nothing_is_sent_again() {
    for (effect, code) in [
        (Effect::Read, codes::UPSTREAM_UNAVAILABLE),
        (Effect::Change, Code::OutcomeUnknown),
        (Effect::Disrupt, Code::OutcomeUnknown),
    ] {
        let server = SseServer::start().await;
        let (links, target) = (links(), target_of(&server));
        links.list(&key(), &target, &limits()).await.unwrap();
        server.plant(SseHarm::Cut);

        let failure = call(&links, &target, effect).await.unwrap_err();

        assert_eq!((failure.code, server.count("tools/call")), (code, 1), "{effect:?}: {failure}");
        server.cure();
        call(&links, &target, effect).await.unwrap();
        assert_eq!((server.opened(), server.count("tools/call")), (2, 2), "the next call opens another stream");
    }
}

#[tokio::test]
async fn a_stream_that_ended_between_two_calls_is_opened_again() {
    let server = SseServer::start().await;
    let (links, target) = (links(), target_of(&server));
    call(&links, &target, Effect::Change).await.unwrap();

    server.cut_streams();
    // Whether the end is noticed before or after the next call is sent, nothing is done twice.
    let called = call(&links, &target, Effect::Change).await;
    if let Err(failure) = &called {
        assert!([Code::OutcomeUnknown, codes::UPSTREAM_PROTOCOL].contains(&failure.code), "{failure}");
    }
    call(&links, &target, Effect::Change).await.unwrap();

    let answered = server.requests().into_iter().filter(|seen| seen.path == "/messages?session=2");
    let answered = answered.filter(|seen| seen.rpc() == "tools/call").count();
    assert_eq!(answered, if called.is_ok() { 2 } else { 1 });
}

#[tokio::test]
async fn what_comes_over_the_stream_is_bounded_and_each_harm_has_its_code() {
    let not_mcp = |text: &str| (SseHarm::Text(text.to_owned()), codes::UPSTREAM_PROTOCOL);
    for (harm, code) in [
        (SseHarm::Silence, Code::Deadline),
        (SseHarm::EndlessEvent, Code::ResultTooLarge),
        (SseHarm::EndlessNotices, Code::ResultTooLarge),
        (SseHarm::EndlessAnswers, Code::ResultTooLarge),
        (SseHarm::Huge(3 << 20), Code::ResultTooLarge),
        (SseHarm::Nodes(300_000), Code::ResultTooLarge),
        not_mcp("<html>"),
        not_mcp("{\"hello\":\"world\"}"),
        (SseHarm::Status(500), codes::UPSTREAM_UNAVAILABLE),
        (SseHarm::Status(404), codes::UPSTREAM_PROTOCOL),
        (SseHarm::Status(307), codes::UPSTREAM_PROTOCOL),
        (SseHarm::Status(401), target::codes::CREDENTIALS_REFUSED),
    ] {
        let server = SseServer::start().await;
        let (links, target) = (links(), target_of(&server));
        links.list(&key(), &target, &limits()).await.unwrap();
        server.plant(harm.clone());
        let mut limits = limits_of(Duration::from_secs(if harm == SseHarm::Silence { 1 } else { 20 }));
        limits.bytes = 8 << 20;

        // The line was opened with the bounds of the list; a smaller bound opens another.
        links.drop_links(&tenant(), None);
        limits.bytes = 1 << 20;
        let failure = call_within(&links, &target, Effect::Read, limits).await.unwrap_err();

        assert_eq!(failure.code, code, "{harm:?}: {failure}");
        assert_eq!(server.count("tools/call"), 1, "{harm:?}");
        assert!(server.sent() < 16 << 20, "{harm:?}: reading stops, {} bytes were taken", server.sent());
    }
}

#[tokio::test]
async fn a_second_answer_changes_nothing() {
    let server = SseServer::start().await;
    let (links, target) = (links(), target_of(&server));
    server.plant(SseHarm::Twice);

    for _ in 0..5 {
        let called = call(&links, &target, Effect::Change).await.unwrap();
        assert_eq!(called.structured, Some(json!({ "arguments": { "text": "hello" } })));
    }

    assert_eq!((server.opened(), server.count("tools/call")), (1, 5));
}

#[tokio::test]
async fn a_message_that_is_turned_down_is_not_repeated_and_the_next_opens_another_stream() {
    let server = SseServer::start().await;
    let (links, target) = (links(), target_of(&server));
    call(&links, &target, Effect::Change).await.unwrap();
    server.plant(SseHarm::Status(404));

    let failure = call(&links, &target, Effect::Change).await.unwrap_err();
    assert_eq!((failure.code, server.count("tools/call")), (codes::UPSTREAM_PROTOCOL, 2));

    server.cure();
    call(&links, &target, Effect::Change).await.unwrap();
    assert_eq!(server.opened(), 2);
}

#[tokio::test]
async fn a_deadline_is_an_unknown_outcome_for_a_change_and_the_server_of_a_stream_is_told() {
    let server = SseServer::start().await;
    let (links, target) = (links(), target_of(&server));
    links.list(&key(), &target, &limits()).await.unwrap();
    server.plant(SseHarm::Silence);

    let soon = || limits_of(Duration::from_millis(300));
    let read = call_within(&links, &target, Effect::Read, soon()).await.unwrap_err();
    let change = call_within(&links, &target, Effect::Change, soon()).await.unwrap_err();

    assert_eq!((read.code, change.code), (Code::Deadline, Code::OutcomeUnknown));
    server.until_asked("notifications/cancelled", 2).await;
    assert_eq!((server.count("tools/call"), server.opened()), (2, 1), "the stream is used on");
}

#[tokio::test]
async fn what_a_server_asks_over_its_stream_is_answered_and_a_flood_is_not() {
    let server = SseServer::start().await;
    let (links, target) = (links(), target_of(&server));
    server.plant(SseHarm::Asks(100));

    call(&links, &target, Effect::Read).await.unwrap();

    let replies = || {
        let replies = server.requests().into_iter().map(|seen| seen.message());
        replies.filter(|message| message.get("method").is_none() && message.is_object()).collect::<Vec<_>>()
    };
    until("the answers", || replies().len() >= 8).await;
    call(&links, &target, Effect::Read).await.unwrap();
    assert_eq!(replies().len(), 8);
    assert!(replies().iter().all(|reply| reply["result"] == json!({})), "{:?}", replies());
}

#[tokio::test]
async fn a_notice_on_the_stream_is_heard_and_an_idle_stream_is_closed() {
    let server = SseServer::start().await;
    let links = links_with(LinksConfig { idle: Duration::from_millis(200), ..LinksConfig::default() });
    let mut changes = links.changes();
    links.list(&key(), &target_of(&server), &limits()).await.unwrap();

    assert_eq!(server.announce(), 1);

    assert_eq!(changes.recv().await.unwrap(), key());
    until("the stream is closed", || server.announce() == 0).await;
}
