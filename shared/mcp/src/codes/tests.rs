use super::*;
use std::collections::HashSet;
use std::fmt::Write;

fn spell(Rpc { code, legacy, modern }: Rpc) -> String {
    format!("{code:>6}  {legacy}/{modern}")
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn the_table_of_codes_is_as_published() {
    let mut table = String::new();
    for code in Code::ALL {
        let way = match travel(code) {
            Travel::ToolError => "tool error".to_owned(),
            Travel::Rpc(rpc) => spell(rpc),
        };
        writeln!(table, "{:<21} {way:<17} rest {}", code.as_str(), rest_status(code)).unwrap();
    }
    for fault in Fault::ALL {
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
    doc_not_found         tool error        rest 404
    doc_exists            tool error        rest 409
    memory_conflict       tool error        rest 409
    secret_found          tool error        rest 422
    unknown_store         tool error        rest 404
    too_large             tool error        rest 413
    quota_exceeded        tool error        rest 409
    policy_denied         tool error        rest 403
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
    unauthenticated         1001  401/401   rest 401
    rate_limited          tool error        rest 429
    bad_cursor            -32602  200/400   rest 400
    deadline              tool error        rest 504
    cancelled             tool error        rest 409
    result_too_large      tool error        rest 422
    store_unavailable     -32603  200/200   rest 503
    store_full            tool error        rest 503
    decision_not_durable  -32603  200/200   rest 503
    draining              -32603  200/200   rest 503
    invalid_request       -32600  400/400   rest 400
    bad_origin              1003  403/403   rest 403
    keys_unavailable        1001  401/401   rest 503
    unknown_kind          tool error        rest 404
    ambiguous_kind        tool error        rest 400
    unknown_field         tool error        rest 404
    invalid_manifest      tool error        rest 400
    cursor_expired        tool error        rest 410
    cursor_mismatch       tool error        rest 400
    cluster_required      tool error        rest 400
    cluster_unknown       tool error        rest 404
    namespace_denied      tool error        rest 403
    protected             tool error        rest 403
    image_denied          tool error        rest 403
    forbidden             tool error        rest 403
    denied_by_admission   tool error        rest 403
    immutable_field       tool error        rest 409
    already_exists        tool error        rest 409
    conflict              tool error        rest 409
    field_conflict        tool error        rest 409
    replicas_changed      tool error        rest 409
    uid_changed           tool error        rest 409
    namespace_conflict    tool error        rest 400
    not_scalable          tool error        rest 422
    strategic_unsupported tool error        rest 422
    unsupported_kind      tool error        rest 422
    revision_not_found    tool error        rest 404
    rollout_paused        tool error        rest 409
    container_required    tool error        rest 400
    container_not_found   tool error        rest 404
    no_previous_logs      tool error        rest 404
    too_many_pods         tool error        rest 422
    pdb_blocked           tool error        rest 409
    emptydir_data         tool error        rest 409
    unmanaged_pods        tool error        rest 409
    command_not_found     tool error        rest 422
    connection_refused    tool error        rest 502
    no_endpoints          tool error        rest 502
    metrics_unavailable   tool error        rest 503
    toolset_not_configured tool error        rest 409
    target_busy           tool error        rest 503
    target_unreachable    tool error        rest 503
    unsafe_text           tool error        rest 422
    log_dump              tool error        rest 422
    edit_not_found        tool error        rest 409
    edit_ambiguous        tool error        rest 409
    diff_mismatch         tool error        rest 409
    read_only_store       tool error        rest 403
    type_not_allowed      tool error        rest 422
    redacted              tool error        rest 410
    release_not_found     tool error        rest 404
    release_exists        tool error        rest 409
    release_locked        tool error        rest 409
    release_busy          tool error        rest 409
    hook_failed           tool error        rest 422
    timed_out             tool error        rest 504
    repo_unreachable      tool error        rest 503
    chart_not_found       tool error        rest 404
    version_not_found     tool error        rest 404
    render_failed         tool error        rest 422
    schema_invalid        tool error        rest 422
    not_locked            tool error        rest 409
    still_running         tool error        rest 409
    no_tests              tool error        rest 422
    test_failed           tool error        rest 422
    host_denied           tool error        rest 403
    unknown_credential    tool error        rest 404
    argo_not_installed    tool error        rest 409
    nothing_to_promote    tool error        rest 409
    already_stable        tool error        rest 409
    not_in_progress       tool error        rest 409
    not_aborted           tool error        rest 409
    unsupported_workload  tool error        rest 422
    already_finished      tool error        rest 409
    unsupported           tool error        rest 422
    job_not_found         tool error        rest 404
    build_not_found       tool error        rest 404
    plugin_missing        tool error        rest 409
    no_test_report        tool error        rest 404
    not_text              tool error        rest 422
    queue_item_gone       tool error        rest 404
    unknown_parameter     tool error        rest 400
    invalid_choice        tool error        rest 400
    job_disabled          tool error        rest 409
    not_a_pipeline        tool error        rest 422
    password_parameters   tool error        rest 422
    server_required       tool error        rest 400
    server_unknown        tool error        rest 404
    credentials_refused   tool error        rest 403
    upstream_unavailable  tool error        rest 503
    upstream_refused      tool error        rest 502
    upstream_error        tool error        rest 502
    upstream_protocol     tool error        rest 502
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
    "#);
}

#[test]
fn no_code_is_used_that_the_specification_keeps_for_itself() {
    let codes = Code::ALL.iter().filter_map(|code| match travel(*code) {
        Travel::ToolError => None,
        Travel::Rpc(rpc) => Some(rpc.code),
    });
    for code in codes.chain(Fault::ALL.iter().map(|fault| fault.rpc().code)) {
        let of_json_rpc = [-32700, -32600, -32601, -32602, -32603].contains(&code);
        let of_mcp = [-32020, -32021, -32022].contains(&code);
        assert!(of_json_rpc || of_mcp || code > 0, "{code}");
    }
}

#[test]
fn mcp_is_never_answered_with_a_server_error() {
    for code in Code::ALL {
        if let Travel::Rpc(rpc) = travel(code) {
            assert!(rpc.legacy < 500 && rpc.modern < 500, "{}", code.as_str());
        }
        assert!((400..600).contains(&rest_status(code)), "{}", code.as_str());
    }
}

#[test]
fn faults_have_names_of_their_own() {
    let names: HashSet<_> = Fault::ALL.iter().map(|fault| fault.as_str()).collect();
    assert_eq!(names.len(), Fault::ALL.len());
}
