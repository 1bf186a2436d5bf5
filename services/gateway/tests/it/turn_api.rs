//! The REST turn API: sessions, this turn's tools in three formats, calls, and one shape of errors.

use crate::here::{DEFAULT, GROWN, embedded, in_process};
use serde_json::{Value, json};
use testkit::Plan;

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_opened_shown_and_closed() {
    let world = embedded().await;
    let rest = world.tenant("acme").agent().rest();
    let opened = rest.post("/v1/sessions", &json!({ "mode": "write" })).await;
    assert_eq!((opened.status, opened.header("content-type")), (201, Some("application/json")));
    let session = opened.json();
    let id = session["id"].as_str().unwrap();
    assert_eq!((&session["mode"], &session["loaded_toolsets"]), (&json!("write"), &json!({ "memory": "read" })));
    assert_eq!(session["tainted"], false);

    let shown = rest.get(&format!("/v1/sessions/{id}")).await;
    assert_eq!(shown.status, 200);
    for key in ["id", "mode", "loaded_toolsets", "opened_at"] {
        assert_eq!(shown.json()[key], session[key], "{key}");
    }
    assert!(shown.json()["expires_at"].as_str().unwrap() > session["opened_at"].as_str().unwrap());

    let closed = rest.delete(&format!("/v1/sessions/{id}")).await;
    assert_eq!((closed.status, closed.text().as_str()), (204, ""));
    assert_eq!(rest.get(&format!("/v1/sessions/{id}")).await.status, 404);
    assert_eq!(rest.delete(&format!("/v1/sessions/{id}")).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_for_reading_unless_it_says_otherwise_and_may() {
    let world = Plan::embedded().tenant("library", "mode: read").start(in_process()).await;
    let plain = world.tenant("acme").agent().rest().post("/v1/sessions", &json!({})).await;
    assert_eq!((plain.status, &plain.json()["mode"]), (201, &json!("read")));
    let reader = world.tenant("acme").reader().rest().post("/v1/sessions", &json!({ "mode": "write" })).await;
    assert_eq!((reader.status, &reader.json()["error"]["code"]), (403, &json!("insufficient_scope")));
    assert!(reader.header("www-authenticate").unwrap().contains(r#"scope="tools:write""#));
    let library = world.tenant("library").agent().rest().post("/v1/sessions", &json!({ "mode": "write" })).await;
    assert_eq!((library.status, &library.json()["error"]["code"]), (403, &json!("policy_denied")));
    let approver = world.tenant("acme").approver().rest().post("/v1/sessions", &json!({})).await;
    assert_eq!((approver.status, &approver.json()["error"]["code"]), (403, &json!("insufficient_scope")));
}

#[tokio::test(flavor = "multi_thread")]
async fn this_turns_tools_come_in_three_formats_with_their_cost() {
    let world = embedded().await;
    let rest = world.tenant("acme").agent().rest();
    let session = rest.open("write").await;
    let names = |tools: &Value, at: &str| -> Vec<String> {
        let name = |tool: &Value| tool.pointer(at).and_then(Value::as_str).unwrap().to_owned();
        tools["tools"].as_array().unwrap().iter().map(name).collect()
    };

    let mcp = rest.tools(&session, "mcp").await;
    assert_eq!(names(&mcp.json(), "/name"), DEFAULT);
    assert!(mcp.json()["tools"][0]["inputSchema"].is_object());
    let openai = rest.tools(&session, "openai").await;
    assert_eq!(names(&openai.json(), "/function/name"), DEFAULT);
    let first = &openai.json()["tools"][0];
    assert_eq!(first["type"], "function");
    assert!(first["function"]["parameters"].is_object() && first["function"]["description"].is_string());
    let anthropic = rest.tools(&session, "anthropic").await;
    assert_eq!(names(&anthropic.json(), "/name"), DEFAULT);
    assert!(anthropic.json()["tools"][0]["input_schema"].is_object());

    let cost: u32 = mcp.header("x-quartermaster-tokens").unwrap().parse().unwrap();
    assert!(cost > 0 && cost < 1_500, "{cost}");
    for other in [&openai, &anthropic] {
        assert_eq!(other.header("x-quartermaster-tokens"), mcp.header("x-quartermaster-tokens"));
    }
    let without = rest.get(&format!("/v1/sessions/{session}/tools")).await;
    assert_eq!(without.body, mcp.body, "mcp is what is meant when nothing is said");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unchanged_set_is_not_sent_again_and_a_grown_one_is() {
    let world = embedded().await;
    let rest = world.tenant("acme").agent().rest();
    let session = rest.open("write").await;
    let first = rest.tools(&session, "openai").await;
    let tag = first.header("etag").unwrap().to_owned();
    let path = format!("/v1/sessions/{session}/tools?format=openai");
    let again = |tag: String| {
        let rest = rest.clone();
        let request = rest.prepare("GET", &path).header("If-None-Match", tag);
        async move { rest.send(&request).await }
    };

    let unchanged = again(tag.clone()).await;
    assert_eq!((unchanged.status, unchanged.text().as_str()), (304, ""));
    assert_eq!(unchanged.header("etag"), Some(tag.as_str()));
    assert_eq!(again(format!("\"x\", {tag}")).await.status, 304);
    assert_ne!(rest.tools(&session, "mcp").await.header("etag"), Some(tag.as_str()), "each format has its own");

    let wanted = json!({ "toolset": "memory", "include_write_tools": true });
    assert_eq!(rest.call(&session, "load_toolset", wanted).await.status, 200);
    let grown = again(tag.clone()).await;
    assert_eq!(grown.status, 200);
    assert_ne!(grown.header("etag"), Some(tag.as_str()));
    assert_eq!(grown.json()["tools"].as_array().unwrap().len(), GROWN.len());
    let cost = |answer: &testkit::Answer| answer.header("x-quartermaster-tokens").unwrap().parse::<u32>().unwrap();
    assert!(cost(&grown) > cost(&first));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_answers_its_result_and_a_refusal_its_status() {
    let world = embedded().await;
    let rest = world.tenant("acme").agent().rest();
    let session = rest.open("write").await;
    let listed = rest.call(&session, "memory_list", json!({})).await;
    assert_eq!(listed.status, 200);
    assert!(listed.json()["result"]["stores"].is_array());
    assert_eq!(listed.json()["trace_id"].as_str(), listed.header("x-trace-id"));

    for (tool, arguments, status, code) in [
        ("memory_read", json!({ "path": "session/notes/none" }), 404, "doc_not_found"),
        ("memory_read", json!({ "path": 1 }), 400, "invalid_argument"),
        ("memory_read", json!({ "paht": "x" }), 400, "unknown_argument"),
        ("memory_raed", json!({}), 404, "unknown_tool"),
        (
            "memory_remember",
            json!({ "path": "session/notes/a", "type": "note", "content": "a", "evidence": "b" }),
            409,
            "write_not_loaded",
        ),
        ("load_toolset", json!({ "toolset": "nope" }), 404, "unknown_toolset"),
    ] {
        let refused = rest.call(&session, tool, arguments).await;
        let error = &refused.json()["error"];
        assert_eq!((refused.status, &error["code"]), (status, &json!(code)), "{tool}");
        assert!(error["message"].is_string() && error["retryable"] == false, "{error}");
        assert_eq!(error["trace_id"].as_str(), refused.header("x-trace-id"));
    }
    let hint = rest.call(&session, "memory_raed", json!({})).await;
    assert_eq!(hint.json()["error"]["did_you_mean"], json!(["memory_read"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn identity_fields_in_bodies_are_refused() {
    let world = embedded().await;
    let rest = world.tenant("acme").agent().rest();
    let session = rest.open("read").await;
    for field in ["tenant", "sub", "subject", "scope", "scopes", "role", "owner", "issuer", "id", "loaded_toolsets"] {
        let opening = rest.post("/v1/sessions", &json!({ "mode": "read", field: "other" })).await;
        assert_eq!((opening.status, &opening.json()["error"]["code"]), (400, &json!("invalid_request")), "{field}");
        let calling = json!({ "tool": "memory_list", "arguments": {}, field: "other" });
        let calling = rest.post(&format!("/v1/sessions/{session}/calls"), &calling).await;
        assert_eq!((calling.status, &calling.json()["error"]["code"]), (400, &json!("invalid_request")), "{field}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_cannot_be_read_is_the_callers_fault() {
    let world = embedded().await;
    let rest = world.tenant("acme").agent().rest();
    let send = |text: Vec<u8>, kind: &'static str| {
        let rest = rest.clone();
        let request = rest.prepare("POST", "/v1/sessions").header("Content-Type", kind).body(text);
        async move { rest.send(&request).await }
    };
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)).into_bytes();
    for text in [
        b"".to_vec(),
        b"{".to_vec(),
        br#"{"mode":"admin"}"#.to_vec(),
        br#"{"mode":"read","mode":"write"}"#.to_vec(),
        deep,
    ] {
        let answer = send(text, "application/json").await;
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!("invalid_request")));
    }
    assert_eq!(send(b"{}".to_vec(), "text/plain").await.status, 400);
    let large = send(vec![b' '; 5 << 20], "application/json").await;
    assert_eq!((large.status, &large.json()["error"]["code"]), (413, &json!("too_large")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_in_the_place_of_an_object_is_not_read_field_by_field() {
    let world = embedded().await;
    let rest = world.tenant("acme").agent().rest();
    let session = rest.open("read").await;
    for body in [json!([]), json!(["write"])] {
        let answer = rest.post("/v1/sessions", &body).await;
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!("invalid_request")), "{body}");
    }
    let call = rest.post(&format!("/v1/sessions/{session}/calls"), &json!(["memory_list", {}, 0, null])).await;
    assert_eq!((call.status, &call.json()["error"]["code"]), (400, &json!("invalid_request")));
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_one_shape_wherever_they_come_from() {
    let world = embedded().await;
    let rest = world.tenant("acme").agent().rest();
    let session = rest.open("read").await;
    for (path, status, code) in [
        ("/v1/nothing".to_owned(), 404, "not_found"),
        ("/".to_owned(), 404, "not_found"),
        ("/v1/sessions/ses_0000000000000000000000".to_owned(), 404, "session_not_found"),
        (format!("/v1/sessions/{session}/tools?format=yaml"), 400, "invalid_request"),
        (format!("/v1/sessions/{session}/tools?formats=mcp"), 400, "invalid_request"),
        (format!("/v1/sessions/{session}/tools?format=mcp&format=openai"), 400, "invalid_request"),
    ] {
        let answer = rest.get(&path).await;
        assert_eq!(answer.status, status, "{path}");
        let error = serde_json::from_slice::<Value>(&answer.body).unwrap_or_default();
        assert_eq!(error["error"]["code"], code, "{path}: {}", answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_elses_session_answers_like_one_that_never_was() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let session = agent.rest().open("write").await;
    let never_was = "ses_0000000000000000000000";
    for intruder in [agent.named("mallory").rest(), world.tenant("other").agent().rest()] {
        let mut pairs = Vec::new();
        for id in [session.as_str(), never_was] {
            pairs.push([
                rest_answer(intruder.get(&format!("/v1/sessions/{id}")).await),
                rest_answer(intruder.tools(id, "mcp").await),
                rest_answer(intruder.call(id, "memory_list", json!({})).await),
                rest_answer(intruder.call(id, "load_toolset", json!({ "toolset": "memory" })).await),
                rest_answer(intruder.delete(&format!("/v1/sessions/{id}")).await),
            ]);
        }
        assert_eq!(pairs[0], pairs[1]);
        assert!(pairs[0].iter().all(|(status, _)| *status == 404), "{pairs:?}");
    }
    assert_eq!(agent.rest().get(&format!("/v1/sessions/{session}")).await.status, 200);
}

fn rest_answer(answer: testkit::Answer) -> (u16, String) {
    answer.anonymous()
}
