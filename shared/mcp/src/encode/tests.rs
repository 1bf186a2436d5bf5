use super::*;
use domain::run::RunState;
use domain::{Code, RunId, WaitingRun};
use proptest::prelude::*;
use serde_json::{Value, json};

const LEGACY: Era = Era::Legacy(LegacyRevision::V2025_11_25);

/// The bytes as text, the same in every release.
fn text(bytes: &[u8]) -> String {
    str::from_utf8(bytes).unwrap().replace(VERSION, "VERSION")
}

fn value(bytes: &[u8]) -> Value {
    domain::json::read(bytes).unwrap()
}

fn not_loaded() -> Failure {
    Failure::new(Code::WriteNotLoaded, "helm_upgrade is not loaded for writing")
        .next("call load_toolset with toolset=helm, include_write_tools=true")
}

#[test]
fn a_legacy_result_has_structure_and_the_same_as_text_and_nothing_modern() {
    let output = ToolOutput::structured(r#"{"a":"\"x\"","n":1}"#.to_owned());
    insta::assert_snapshot!(text(&call_output(LEGACY, &output, None)), @r#"{"content":[{"type":"text","text":"{\"a\":\"\\\"x\\\"\",\"n\":1}"}],"structuredContent":{"a":"\"x\"","n":1}}"#);
    insta::assert_snapshot!(text(&call_output(LEGACY, &output, Some("4bf9"))), @r#"{"content":[{"type":"text","text":"{\"a\":\"\\\"x\\\"\",\"n\":1}"}],"structuredContent":{"a":"\"x\"","n":1},"_meta":{"quartermaster/trace_id":"4bf9"}}"#);
}

#[test]
fn a_modern_result_says_that_it_is_complete_and_who_answers() {
    let output = ToolOutput::structured(r#"{"n":1}"#.to_owned());
    insta::assert_snapshot!(text(&call_output(Era::Modern, &output, Some("4bf9"))), @r#"{"resultType":"complete","content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"quartermaster","version":"VERSION"},"quartermaster/trace_id":"4bf9"}}"#);
}

#[test]
fn blocks_are_passed_through_instead_of_the_text_of_the_structure() {
    let image = json!({ "type": "image", "data": "aGk=", "mimeType": "image/png" });
    let content = vec![Content::Text("see:\n".into()), Content::Block(image.clone())];
    let output = ToolOutput { structured: Some("{}".into()), content, tainting: false };

    let result = value(&call_output(LEGACY, &output, None));

    assert_eq!(result, json!({ "content": [{ "type": "text", "text": "see:\n" }, image], "structuredContent": {} }));
}

#[test]
fn an_output_of_nothing_still_has_content() {
    assert_eq!(text(&call_output(LEGACY, &ToolOutput::default(), None)), r#"{"content":[]}"#);
}

#[test]
fn a_run_that_waits_is_told_as_the_result_it_is() {
    let json = r#"{"run":{"id":"r","state":"approved"}}"#.to_owned();
    let (id, done) = (Id::Text("9".into()), Outcome::Done(ToolOutput::structured(json.clone())));
    let waiting = WaitingRun { id: RunId::from_random([1; 16]), state: RunState::Approved, json };
    assert_eq!(outcome(LEGACY, &id, &Outcome::Waiting(waiting), None), outcome(LEGACY, &id, &done, None));
}

#[test]
fn a_tool_error_is_text_and_meta_and_never_structure() {
    let body = outcome(LEGACY, &Id::Text("9".into()), &Outcome::Failed(not_loaded()), None);
    assert_eq!(body.status, 200);
    insta::assert_snapshot!(text(&body.body), @r#"{"jsonrpc":"2.0","id":"9","result":{"content":[{"type":"text","text":"{\"code\":\"write_not_loaded\",\"message\":\"helm_upgrade is not loaded for writing\",\"next\":\"call load_toolset with toolset=helm, include_write_tools=true\",\"retryable\":false}"}],"isError":true,"_meta":{"quartermaster/error":{"code":"write_not_loaded","message":"helm_upgrade is not loaded for writing","next":"call load_toolset with toolset=helm, include_write_tools=true","retryable":false}}}}"#);
}

#[test]
fn a_tool_error_carries_all_that_is_known_and_the_same_in_text_and_meta() {
    let failure = Failure::new(Code::RateLimited, "too many calls")
        .did_you_mean(vec!["k8s_get".into()])
        .retry_after_ms(1500)
        .details(json!({ "limit": 600 }));

    let result = value(&call_failure(Era::Modern, &failure, Some("4bf9")));

    let told = &result["_meta"]["quartermaster/error"];
    assert_eq!(
        *told,
        json!({ "code": "rate_limited", "message": "too many calls", "did_you_mean": ["k8s_get"], "retryable": true,
                "retry_after_ms": 1500, "details": { "limit": 600 }, "trace_id": "4bf9" })
    );
    assert_eq!(value(result["content"][0]["text"].as_str().unwrap().as_bytes()), *told);
    assert_eq!((&result["isError"], &result["resultType"]), (&json!(true), &json!("complete")));
    assert_eq!(result["_meta"]["quartermaster/trace_id"], "4bf9");
    assert!(result.get("structuredContent").is_none());
}

#[test]
fn what_only_the_host_can_mend_is_a_json_rpc_error_with_the_status_of_its_era() {
    let id = Id::read(json!(9)).unwrap();
    let unknown = Failure::new(Code::UnknownTool, "Unknown tool: k8s_gett").did_you_mean(vec!["k8s_get".into()]);
    let legacy = failure(LEGACY, &id, &unknown, None);
    let modern = failure(Era::Modern, &id, &unknown, None);
    assert_eq!((legacy.status, modern.status), (200, 400));
    assert_eq!(legacy.body, modern.body);
    insta::assert_snapshot!(text(&legacy.body), @r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"Unknown tool: k8s_gett","data":{"code":"unknown_tool","retryable":false,"did_you_mean":["k8s_get"]}}}"#);

    let down = Failure::new(Code::StoreUnavailable, "State store unavailable")
        .details(json!({ "reason": "connection refused" }));
    let reply = failure(LEGACY, &id, &down, Some("4bf9"));
    assert_eq!(reply.status, 200);
    insta::assert_snapshot!(text(&reply.body), @r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32603,"message":"State store unavailable","data":{"code":"store_unavailable","retryable":true,"reason":"connection refused","trace_id":"4bf9"}}}"#);

    let internal = failure(Era::Modern, &id, &Failure::new(Code::Internal, "Internal error"), None);
    assert_eq!(value(&internal.body)["error"]["data"]["reason"], "internal");
}

#[test]
fn the_openings_of_both_eras_are_as_documented() {
    insta::assert_snapshot!(text(&initialize_result(LegacyRevision::V2025_06_18, Some("Say \"hello\"."))), @r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"quartermaster","title":"Quartermaster","version":"VERSION"},"instructions":"Say \"hello\"."}"#);
    insta::assert_snapshot!(text(&discover_result(Some("Say \"hello\"."))), @r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"instructions":"Say \"hello\".","ttlMs":300000,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"quartermaster","version":"VERSION"}}}"#);
}

#[test]
fn ids_are_echoed_exactly() {
    for id in [json!(0), json!(-1), json!(u64::MAX), json!(i64::MIN), json!(""), json!("a\"\u{7f}\n\u{e9}")] {
        let body = result(&Id::read(id.clone()).unwrap(), empty_result());
        assert_eq!(value(&body), json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
    }
}

proptest! {
    #[test]
    fn the_text_block_is_the_structured_text_for_any_content(key in any::<String>(), inner in any::<String>()) {
        let structured = json!({ key: inner }).to_string();
        let result = value(&call_output(Era::Modern, &ToolOutput::structured(structured.clone()), None));
        prop_assert_eq!(result["content"][0]["text"].as_str(), Some(structured.as_str()));
        prop_assert_eq!(&result["structuredContent"], &value(structured.as_bytes()));
    }

    #[test]
    fn any_failure_is_valid_json(message in any::<String>(), near in any::<Vec<String>>(), trace in any::<Option<String>>()) {
        for code in Code::ALL {
            let failed = Failure::new(code, message.clone()).did_you_mean(near.clone()).next(message.clone());
            let reply = failure(Era::Modern, &Id::Text(message.clone()), &failed, trace.as_deref());
            let told = value(&reply.body);
            prop_assert_eq!(told["id"].as_str(), Some(message.as_str()));
        }
    }
}
