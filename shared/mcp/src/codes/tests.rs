use super::*;
use std::collections::HashSet;
use std::fmt::Write;

fn spell(Rpc { code, legacy, modern }: Rpc) -> String {
    format!("{code:>6}  {legacy}/{modern}")
}

#[test]
fn the_table_of_codes_is_as_published() {
    let mut table = String::new();
    for code in Code::ALL {
        let way = match travel(code) {
            CodeTransport::ToolError => "tool error".to_owned(),
            CodeTransport::Rpc(rpc) => spell(rpc),
        };
        writeln!(table, "{:<21} {way:<17} rest {}", code.as_str(), rest_status(code)).unwrap();
    }
    for fault in MessageFault::ALL {
        let line = format!("{:<25} {}", fault.as_str(), spell(fault.rpc()));
        writeln!(table, "{line}").unwrap();
    }
    insta::assert_snapshot!(table, @r#"
    invalid_argument      tool error        rest 400
    unknown_argument      tool error        rest 400
    unknown_tool          -32602  200/400   rest 404
    unknown_toolset       tool error        rest 404
    not_loaded            tool error        rest 409
    write_not_loaded      tool error        rest 409
    session_required      tool error        rest 400
    session_expired       tool error        rest 404
    session_not_found       1004  404/404   rest 404
    not_found             tool error        rest 404
    too_large             tool error        rest 413
    quota_exceeded        tool error        rest 409
    policy_denied         tool error        rest 403
    switched_off          tool error        rest 403
    switched_read_only    tool error        rest 403
    rejected              tool error        rest 409
    expired               tool error        rest 410
    run_cancelled         tool error        rest 409
    stale                 tool error        rest 409
    preview_unavailable   tool error        rest 422
    outcome_unknown       tool error        rest 409
    too_many_pending      tool error        rest 429
    key_reused            tool error        rest 409
    already_decided       tool error        rest 409
    own_request           tool error        rest 403
    not_possible          tool error        rest 409
    insufficient_scope      1003  403/403   rest 403
    forbidden_tenant        1003  403/403   rest 403
    forbidden_scope         1003  403/403   rest 403
    unauthenticated         1001  401/401   rest 401
    rate_limited          tool error        rest 429
    bad_cursor            -32602  200/400   rest 400
    deadline              tool error        rest 504
    cancelled             tool error        rest 409
    result_too_large      tool error        rest 422
    store_unavailable     -32603  200/200   rest 503
    store_full            tool error        rest 503
    record_not_authentic  tool error        rest 409
    decision_not_durable  -32603  200/200   rest 503
    draining              -32603  200/200   rest 503
    invalid_request       -32600  400/400   rest 400
    bad_origin              1003  403/403   rest 403
    keys_unavailable        1001  401/401   rest 503
    conflict              tool error        rest 409
    unknown_credential    tool error        rest 404
    tool_changed          tool error        rest 409
    config_invalid        tool error        rest 422
    config_conflict       tool error        rest 412
    config_locked         tool error        rest 409
    internal              -32603  200/200   rest 500
    parse_error               -32700  400/400
    invalid_request           -32600  400/400
    method_not_found          -32601  200/404
    invalid_envelope          -32602  400/400
    invalid_params            -32602  200/400
    header_mismatch           -32020  400/400
    missing_client_capability -32021  400/400
    unsupported_version       -32022  400/400
    bad_origin                  1003  403/403
    unknown_toolset           -32602  404/404
    malformed_selection       -32600  400/400
    rate_limited                1029  429/429
    service_unreachable       -32603  200/200
    bad_service_answer        -32603  200/200
    "#);
}

#[test]
fn no_code_is_used_that_the_specification_keeps_for_itself() {
    let codes = Code::ALL.iter().filter_map(|code| match travel(*code) {
        CodeTransport::ToolError => None,
        CodeTransport::Rpc(rpc) => Some(rpc.code),
    });
    for code in codes.chain(MessageFault::ALL.iter().map(|fault| fault.rpc().code)) {
        let of_json_rpc = [-32700, -32600, -32601, -32602, -32603].contains(&code);
        let of_mcp = [-32020, -32021, -32022].contains(&code);
        assert!(of_json_rpc || of_mcp || code > 0, "{code}");
    }
}

#[test]
fn mcp_is_never_answered_with_a_server_error() {
    for code in Code::ALL {
        if let CodeTransport::Rpc(rpc) = travel(code) {
            assert!(rpc.legacy < 500 && rpc.modern < 500, "{}", code.as_str());
        }
        assert!((400..600).contains(&rest_status(code)), "{}", code.as_str());
    }
}

#[test]
fn faults_have_names_of_their_own() {
    let names: HashSet<_> = MessageFault::ALL.iter().map(|fault| fault.as_str()).collect();
    assert_eq!(names.len(), MessageFault::ALL.len());
}
