//! Finding out the era, listing, calling.

use super::super::{ServerEra, ServerToolList};
use super::double::{Double, Reply, Speaks, tool};
use super::world::*;
use crate::codes;
use catalog::Progress;
use domain::{Code, Effect};
use serde_json::{Map, json};
use std::sync::{Arc, Mutex};

fn names(listed: &ServerToolList) -> Vec<&str> {
    listed.tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_legacy_server_is_asked_for_its_era_once_and_opened_by_initialize() {
    let double = Double::plain(Speaks::Legacy).await;
    let (links, target) = (links(), target(&double));

    let listed = links.list(&key(), &target, &limits()).await.unwrap();
    links.list(&key(), &target, &limits()).await.unwrap();

    assert_eq!((names(&listed), listed.era), (vec!["echo", "put"], ServerEra::Legacy));
    // The stream of notices is opened beside, at any time.
    let methods: Vec<_> = double.methods().into_iter().filter(|method| method != "GET").collect();
    assert_eq!(methods, ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/list"]);
    let listed: Vec<_> = double.asked().into_iter().filter(|asked| asked.method() == "tools/list").collect();
    assert!(listed.iter().all(|asked| asked.header("mcp-session-id") == Some("ses-1")), "{listed:?}");
}

#[tokio::test]
async fn the_era_is_remembered_after_a_session_ended() {
    let double = Double::plain(Speaks::Legacy).await;
    let (links, target) = (links(), target(&double));

    links.list(&key(), &target, &limits()).await.unwrap();
    double.forget_sessions();
    links.list(&key(), &target, &limits()).await.unwrap();

    assert_eq!((double.count("server/discover"), double.count("initialize")), (1, 2));
}

#[tokio::test]
async fn a_modern_server_is_never_initialized_and_gets_its_headers() {
    let double = Double::plain(Speaks::Modern).await;
    let (links, target) = (links(), target(&double));

    let listed = links.list(&key(), &target, &limits()).await.unwrap();
    call(&links, &target, Effect::Change).await.unwrap();

    assert_eq!((names(&listed), listed.era), (vec!["echo", "put"], ServerEra::Modern));
    assert_eq!(double.count("initialize"), 0);
    let asked = double.asked();
    let called = asked.iter().find(|asked| asked.method() == "tools/call").unwrap();
    assert_eq!((called.header("mcp-method"), called.header("mcp-name")), (Some("tools/call"), Some("echo")));
    assert_eq!(called.header("mcp-session-id"), None);
}

#[tokio::test]
async fn a_server_that_hangs_on_the_question_for_its_era_is_taken_for_a_legacy_one() {
    let double = Double::start(Speaks::Legacy, |asked| {
        (asked.method() == "server/discover").then(|| Reply::hanging("application/json"))
    })
    .await;

    let listed = links().list(&key(), &target(&double), &limits()).await.unwrap();

    assert_eq!(listed.era, ServerEra::Legacy);
}

#[tokio::test]
async fn a_server_that_knows_the_question_but_not_the_era_is_opened_as_a_legacy_one() {
    let double = Double::start(Speaks::Legacy, |asked| {
        let versions = json!({ "supportedVersions": ["2025-11-25"], "capabilities": {} });
        (asked.method() == "server/discover").then(|| Reply::result(asked, &versions))
    })
    .await;

    let listed = links().list(&key(), &target(&double), &limits()).await.unwrap();

    assert_eq!(listed.era, ServerEra::Legacy);
}

#[tokio::test]
async fn what_a_server_writes_arrives_as_it_wrote_it() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        let double = Double::plain(speaks).await;
        let (links, target) = (links(), target(&double));

        let listed = links.list(&key(), &target, &limits()).await.unwrap();
        let called = call(&links, &target, Effect::Read).await.unwrap();

        assert_eq!(listed.tools, [tool("echo"), tool("put")], "{speaks:?}");
        assert_eq!(called.content, [json!({ "type": "text", "text": r#"{"text":"hello"}"#, "x-unknown": 1 })]);
        assert_eq!((called.structured, called.is_error), (Some(json!({ "ok": true })), false));
    }
}

#[tokio::test]
async fn parameters_travel_with_each_request_and_secrets_in_headers_only() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        let double = Double::plain(speaks).await;
        let (links, target) = (links(), target(&double));

        links.list(&key(), &target, &limits()).await.unwrap();
        call(&links, &target, Effect::Read).await.unwrap();

        for asked in double.asked() {
            assert_eq!(asked.header("authorization"), Some(CANARY), "{}", asked.method());
            assert_eq!(asked.header("accept-encoding"), Some("identity"), "{}", asked.method());
            assert!(!asked.body.to_string().contains("canary"), "{}", asked.body);
            if asked.id().is_number() {
                let params = &asked.body["params"]["_meta"]["quartermaster/params"];
                assert_eq!(*params, json!({ "project": "blue" }), "{}", asked.body);
            }
        }
    }
}

#[tokio::test]
async fn pages_are_followed_to_the_last() {
    let double = Double::start(Speaks::Modern, |asked| {
        let cursor = &asked.body["params"]["cursor"];
        let page = match cursor.as_str() {
            None => json!({ "tools": [tool("a")], "nextCursor": "2" }),
            Some("2") => json!({ "tools": [tool("b")], "nextCursor": "3" }),
            Some(_) => json!({ "tools": [tool("c")] }),
        };
        (asked.method() == "tools/list").then(|| Reply::result(asked, &page))
    })
    .await;

    let listed = links().list(&key(), &target(&double), &limits()).await.unwrap();

    assert_eq!(names(&listed), ["a", "b", "c"]);
}

#[tokio::test]
async fn lists_without_end_are_refused() {
    let round = |asked: &super::double::Asked| {
        let page = json!({ "tools": [tool("a")], "nextCursor": "again" });
        (asked.method() == "tools/list").then(|| Reply::result(asked, &page))
    };
    let onwards = |asked: &super::double::Asked| {
        let at = asked.body["params"]["cursor"].as_str().map_or(0, |text| text.parse::<u64>().unwrap());
        let page = json!({ "tools": [], "nextCursor": (at + 1).to_string() });
        (asked.method() == "tools/list").then(|| Reply::result(asked, &page))
    };
    let many = |asked: &super::double::Asked| {
        let tools: Vec<_> = (0..201).map(|at| tool(&format!("t{at}"))).collect();
        (asked.method() == "tools/list").then(|| Reply::result(asked, &json!({ "tools": tools })))
    };
    let round = Double::start(Speaks::Legacy, round).await;
    let onwards = Double::start(Speaks::Legacy, onwards).await;
    let many = Double::start(Speaks::Legacy, many).await;
    let links = links();
    for (double, code, pages) in
        [(&round, codes::UPSTREAM_PROTOCOL, 2), (&onwards, Code::ResultTooLarge, 20), (&many, Code::ResultTooLarge, 1)]
    {
        let failure = links.list(&key(), &target(double), &limits()).await.unwrap_err();

        assert_eq!(failure.code, code, "{failure}");
        assert_eq!(double.count("tools/list"), pages);
    }
}

#[tokio::test]
async fn an_answer_among_events_is_found_and_progress_is_heard() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        let double = Double::start(speaks, |asked| {
            let token = &asked.body["params"]["_meta"]["progressToken"];
            let progress = |token: serde_json::Value, done: u64| {
                let params = json!({ "progressToken": token, "progress": done, "total": 3, "message": "on\nit" });
                json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
            };
            let result = json!({ "content": [{ "type": "text", "text": "done" }] });
            let answer = |id: &serde_json::Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
            let log = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": 1 } });
            (asked.method() == "tools/call").then(|| {
                Reply::events(&[
                    log,
                    progress(json!("another"), 9),
                    progress(token.clone(), 1),
                    answer(&json!(4711)),
                    answer(asked.id()),
                    answer(asked.id()),
                ])
            })
        })
        .await;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&heard);
        let progress = Progress::to(move |done, total, words| {
            sink.lock().unwrap().push((done, total, words.map(str::to_owned)));
        });
        let (links, target) = (links(), target(&double));

        let called = call_of(&links, &target, &permit(Effect::Read), &Map::new(), &limits(), &progress).await.unwrap();

        assert_eq!(called.content, [json!({ "type": "text", "text": "done" })]);
        assert_eq!(*heard.lock().unwrap(), [(1, Some(3), Some("on it".to_owned()))]);
    }
}

#[tokio::test]
async fn an_error_keeps_its_code_and_a_tool_error_its_words() {
    let error = Double::start(Speaks::Modern, |asked| {
        let error = json!({ "code": -32001, "message": "no: password = correcthorsebattery" });
        let body = json!({ "jsonrpc": "2.0", "id": asked.id(), "error": error });
        (asked.method() == "tools/call").then(|| Reply::whole(400, "application/json", body.to_string()))
    })
    .await;
    let unwell = Double::start(Speaks::Modern, |asked| {
        let result = json!({ "content": [{ "type": "text", "text": "no such file" }], "isError": true });
        (asked.method() == "tools/call").then(|| Reply::result(asked, &result))
    })
    .await;
    let links = links();

    let failure = call(&links, &target(&error), Effect::Change).await.unwrap_err();
    let called = call(&links, &target(&unwell), Effect::Change).await.unwrap();

    assert_eq!((failure.code, failure.details), (codes::UPSTREAM_ERROR, Some(json!({ "code": -32001 }))));
    assert!(!failure.message.contains("correcthorse"), "{}", failure.message);
    assert!(called.is_error);
}

#[tokio::test]
async fn one_line_serves_many_calls_at_once_and_each_gets_its_own_answer() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        let double = Double::plain(speaks).await;
        let (links, target) = (links(), target(&double));
        let calls = (0..64).map(|at| {
            let (links, target) = (links.clone(), target.clone());
            async move {
                let serde_json::Value::Object(arguments) = json!({ "at": at }) else { unreachable!() };
                let permit = permit(Effect::Read);
                let called =
                    call_of(&links, &target, &permit, &arguments, &limits(), &Progress::default()).await.unwrap();
                assert_eq!(called.content[0]["text"], format!("{{\"at\":{at}}}"));
            }
        });

        futures_util::future::join_all(calls).await;

        assert_eq!(
            double.count("initialize") + double.count("server/discover"),
            if speaks == Speaks::Legacy { 2 } else { 1 }
        );
        assert_eq!(double.count("tools/call"), 64);
    }
}

#[tokio::test]
async fn arguments_that_a_tool_wants_repeated_in_headers_are_repeated() {
    let schema =
        json!({ "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } });
    let double = Double::start(Speaks::Modern, move |asked| {
        let tools = json!({ "tools": [{ "name": "echo", "inputSchema": schema }] });
        let error = json!({ "code": -32020, "message": "Mcp-Param-Region is missing" });
        match (asked.method(), asked.header("mcp-param-region")) {
            ("tools/list", _) => Some(Reply::result(asked, &tools)),
            ("tools/call", None) => {
                let body = json!({ "jsonrpc": "2.0", "id": asked.id(), "error": error });
                Some(Reply::whole(400, "application/json", body.to_string()))
            }
            _ => None,
        }
    })
    .await;
    let (links, target) = (links(), target(&double));
    let serde_json::Value::Object(arguments) = json!({ "region": "north" }) else { unreachable!() };

    for _ in 0..2 {
        let permit = permit(Effect::Change);
        call_of(&links, &target, &permit, &arguments, &limits(), &Progress::default()).await.unwrap();
    }

    let methods: Vec<_> = double.methods().into_iter().filter(|method| method.starts_with("tools/")).collect();
    assert_eq!(methods, ["tools/call", "tools/list", "tools/call", "tools/call"]);
}
