//! What is sent, how often, and what is said when no answer comes.

use super::super::LinksConfig;
use super::double::{Asked, Double, Reply, Speaks};
use super::world::*;
use crate::codes;
use domain::{Code, Effect};
use redact::SecretText;
use serde_json::Map;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

async fn calling(speaks: Speaks, reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Double {
    Double::start(speaks, move |asked| (asked.method() == "tools/call").then(|| reply(asked))).await
}

#[tokio::test]
async fn a_rehearsal_and_a_foreign_permit_send_nothing() {
    let double = Double::plain(Speaks::Modern).await;
    let (links, target) = (links(), target(&double));
    let call = super::super::ToolCall { tool: "echo", arguments: &Map::new(), progress: &catalog::Progress::default() };
    let foreign = super::super::LinkKey { tenant: domain::Tenant::parse("bolt").unwrap(), server: "double".into() };

    let rehearsed = links.call(&rehearsal(), &key(), &target, call, &limits()).await.unwrap_err();
    let crossed = links.call(&permit(Effect::Read), &foreign, &target, call, &limits()).await.unwrap_err();

    assert_eq!((rehearsed.code, crossed.code), (Code::PolicyDenied, Code::PolicyDenied));
    assert_eq!(double.methods(), Vec::<String>::new());
}

#[tokio::test]
async fn a_broken_line_is_an_unknown_outcome_for_a_change_and_nothing_is_sent_again() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        for (effect, code) in [
            (Effect::Read, codes::UPSTREAM_UNAVAILABLE),
            (Effect::Change, Code::OutcomeUnknown),
            (Effect::Disrupt, Code::OutcomeUnknown),
        ] {
            let double = calling(speaks, |_| Reply::broken()).await;

            let failure = call(&links(), &target(&double), effect).await.unwrap_err();

            assert_eq!(failure.code, code, "{speaks:?} {effect:?}");
            assert_eq!(double.count("tools/call"), 1);
        }
    }
}

#[tokio::test]
async fn a_stream_that_ends_before_its_answer_is_a_broken_line() {
    let double = calling(Speaks::Modern, |_| Reply::events(&[])).await;

    let failure = call(&links(), &target(&double), Effect::Change).await.unwrap_err();

    assert_eq!(failure.code, Code::OutcomeUnknown);
    assert_eq!(double.count("tools/call"), 1);
}

#[tokio::test]
async fn a_failing_server_is_unavailable_and_its_pause_is_passed_on() {
    for (status, effect, code, pause) in [
        (503, Effect::Read, codes::UPSTREAM_UNAVAILABLE, Some(7_000)),
        (500, Effect::Read, codes::UPSTREAM_UNAVAILABLE, Some(7_000)),
        (429, Effect::Change, codes::UPSTREAM_UNAVAILABLE, Some(7_000)),
        (502, Effect::Change, Code::OutcomeUnknown, None),
    ] {
        let double =
            calling(Speaks::Legacy, move |_| Reply::whole(status, "text/plain", "").with("retry-after", "7")).await;

        let failure = call(&links(), &target(&double), effect).await.unwrap_err();

        assert_eq!((failure.code, failure.retry_after_ms), (code, pause), "{status}");
        assert_eq!(double.count("tools/call"), 1);
    }
}

#[tokio::test]
async fn a_call_to_an_ended_session_is_sent_once_more_because_the_server_did_nothing() {
    let double = Double::plain(Speaks::Legacy).await;
    let (links, target) = (links(), target(&double));
    call(&links, &target, Effect::Change).await.unwrap();

    double.forget_sessions();
    call(&links, &target, Effect::Change).await.unwrap();

    let sessions: Vec<_> = double.asked().into_iter().filter(|asked| asked.method() == "tools/call").collect();
    let sessions: Vec<_> = sessions.iter().map(|asked| asked.header("mcp-session-id").unwrap()).collect();
    assert_eq!(sessions, ["ses-1", "ses-1", "ses-2"]);
}

#[tokio::test]
async fn a_server_that_forgets_every_session_is_asked_twice_and_no_more() {
    let double = calling(Speaks::Legacy, |_| Reply::whole(404, "text/plain", "")).await;

    let failure = call(&links(), &target(&double), Effect::Change).await.unwrap_err();

    assert_eq!(failure.code, codes::UPSTREAM_UNAVAILABLE);
    assert_eq!(double.count("tools/call"), 2);
}

#[tokio::test]
async fn a_session_turned_down_otherwise_is_replaced_but_the_call_is_not_repeated() {
    let turns = AtomicUsize::new(0);
    let double = Double::start(Speaks::Legacy, move |asked| {
        let first = asked.method() == "tools/call" && turns.fetch_add(1, Ordering::SeqCst) == 0;
        first.then(|| Reply::whole(400, "text/plain", "no valid session"))
    })
    .await;
    let (links, target) = (links(), target(&double));

    let failure = call(&links, &target, Effect::Change).await.unwrap_err();
    assert_eq!((failure.code, double.count("tools/call")), (codes::UPSTREAM_PROTOCOL, 1));

    call(&links, &target, Effect::Change).await.unwrap();
    assert_eq!(double.count("initialize"), 2);
}

#[tokio::test]
async fn a_deadline_is_an_unknown_outcome_for_a_change_and_the_server_is_told() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        let double = calling(speaks, |_| Reply::hanging("application/json")).await;
        let (links, target) = (links(), target(&double));
        links.list(&key(), &target, &limits()).await.unwrap();

        let soon = || limits_of(Duration::from_millis(300));
        let read = call_within(&links, &target, Effect::Read, soon()).await.unwrap_err();
        let change = call_within(&links, &target, Effect::Change, soon()).await.unwrap_err();

        assert_eq!((read.code, change.code), (Code::Deadline, Code::OutcomeUnknown), "{speaks:?}");
        assert_eq!(double.count("tools/call"), 2);
        if speaks == Speaks::Legacy {
            until("the server is told", || double.count("notifications/cancelled") == 2).await;
        }
    }
}

#[tokio::test]
async fn a_caller_who_leaves_takes_the_request_back() {
    let double = calling(Speaks::Legacy, |_| Reply::hanging("text/event-stream")).await;
    let (links, target) = (links(), target(&double));

    let calling = call(&links, &target, Effect::Read);
    tokio::select! {
        called = calling => panic!("{called:?}"),
        () = until("the call arrives", || double.count("tools/call") == 1) => {}
    }

    until("the server is told", || double.count("notifications/cancelled") == 1).await;
}

#[tokio::test]
async fn credentials_that_are_not_taken_are_said_to_be_that() {
    for status in [401, 403] {
        let challenge = "Bearer resource_metadata=\"http://127.0.0.1:1/.well-known/oauth-protected-resource\"";
        let double = Double::start(Speaks::Modern, move |_| {
            Some(Reply::whole(status, "text/plain", "").with("www-authenticate", challenge))
        })
        .await;

        let failure = links().list(&key(), &target(&double), &limits()).await.unwrap_err();

        assert_eq!(failure.code, target::codes::CREDENTIALS_REFUSED);
        assert_eq!(double.methods(), ["server/discover"], "nothing else is fetched");
    }
}

#[tokio::test]
async fn different_targets_never_share_a_line_and_the_least_used_goes_first() {
    let double = Double::plain(Speaks::Modern).await;
    let links = links_with(LinksConfig { per_server: 2, ..LinksConfig::default() });
    let target_of = |secret: &str| {
        let mut target = target(&double);
        target.headers[0].1 = SecretText::new(format!("Bearer {secret}"));
        target
    };

    for secret in ["a", "b", "a", "c", "a", "b"] {
        call(&links, &target_of(secret), Effect::Read).await.unwrap();
    }

    let asked = double.asked();
    let opened: Vec<_> = asked.iter().filter(|asked| asked.method() == "server/discover").collect();
    let opened: Vec<_> = opened.iter().map(|asked| asked.header("authorization").unwrap()).collect();
    assert_eq!(opened, ["Bearer a", "Bearer b", "Bearer c", "Bearer b"]);
    let calls: Vec<_> = asked.iter().filter(|asked| asked.method() == "tools/call").collect();
    assert_eq!(calls[3].header("authorization"), Some("Bearer c"));
}

#[tokio::test]
async fn a_line_nobody_uses_is_closed_and_opened_again_when_needed() {
    let double = Double::plain(Speaks::Legacy).await;
    let links = links_with(LinksConfig { idle: Duration::from_millis(50), ..LinksConfig::default() });
    let target = target(&double);
    call(&links, &target, Effect::Read).await.unwrap();

    until("the session is ended", || double.count("DELETE") == 1).await;
    until("the stream is closed", || double.listeners() == 0).await;

    call(&links, &target, Effect::Read).await.unwrap();
    assert_eq!((double.count("initialize"), double.count("server/discover")), (2, 1));
}

#[tokio::test]
async fn a_line_is_opened_once_however_many_want_it() {
    let gate = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&gate);
    let double = Double::start(Speaks::Modern, move |asked| {
        if asked.method() == "server/discover" {
            seen.fetch_add(1, Ordering::SeqCst);
        }
        None
    })
    .await;
    let (links, target) = (links(), target(&double));

    let calls = (0..20).map(|_| call(&links, &target, Effect::Read));
    let called = futures_util::future::join_all(calls).await;

    assert!(called.iter().all(Result::is_ok));
    assert_eq!(gate.load(Ordering::SeqCst), 1);
    assert_eq!(double.count("tools/call"), 20);
}
