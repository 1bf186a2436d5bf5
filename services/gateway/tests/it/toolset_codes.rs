//! The codes of all toolsets: how each travels, and that no two tables use one spelling.

use domain::Code;
use mcp::codes::{CodeTransport, rest_status, travel};
use std::collections::HashSet;
use std::fmt::Write as _;

fn tables() -> [&'static [Code]; 6] {
    [
        target::codes::ALL,
        kubernetes::codes::ALL,
        helm::codes::ALL,
        jenkins::codes::ALL,
        memory::codes::ALL,
        external::codes::ALL,
    ]
}

#[tokio::test]
async fn the_service_knows_the_codes_of_all_its_toolsets() {
    let known = gateway::commands::toolsets().await.unwrap().codes();
    // External servers are left alone where tools are only looked at.
    for code in tables()[..5].iter().copied().flatten() {
        assert_eq!(Code::parse(code.as_str(), &known), Some(*code));
    }
}

#[test]
fn no_two_codes_are_spelled_alike() {
    let mut seen = HashSet::new();
    for code in Code::ALL.iter().chain(tables().into_iter().flatten()) {
        assert!(seen.insert(code.as_str()), "{} stands in two tables", code.as_str());
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn the_tables_of_toolsets_are_as_published() {
    let mut table = String::new();
    for code in tables().into_iter().flatten() {
        assert_eq!(travel(*code), CodeTransport::ToolError, "{}", code.as_str());
        let retry = if code.retryable() { " retry" } else { "" };
        writeln!(table, "{:<22} {}{retry}", code.as_str(), rest_status(*code)).unwrap();
    }
    insta::assert_snapshot!(table, @r"
    cursor_expired         410
    cursor_mismatch        400
    forbidden              403
    toolset_not_configured 409
    target_busy            503 retry
    target_unreachable     503 retry
    host_denied            403
    already_finished       409
    unsupported            422
    server_unknown         404
    credentials_refused    403
    unknown_kind           404
    ambiguous_kind         400
    unknown_field          404
    invalid_manifest       400
    cluster_required       400
    cluster_unknown        404
    namespace_denied       403
    protected              403
    image_denied           403
    replicas_denied        403
    denied_by_admission    403
    immutable_field        409
    already_exists         409
    field_conflict         409
    replicas_changed       409
    uid_changed            409
    namespace_conflict     400
    not_scalable           422
    dry_run_unsupported    422
    strategic_unsupported  422
    unsupported_kind       422
    revision_not_found     404
    rollout_paused         409
    container_required     400
    container_not_found    404
    no_previous_logs       404
    too_many_pods          422
    pdb_blocked            409 retry
    emptydir_data          409
    unmanaged_pods         409
    command_not_found      422
    connection_refused     502
    no_endpoints           502
    metrics_unavailable    503
    argo_not_installed     409
    nothing_to_promote     409
    already_stable         409
    not_in_progress        409
    not_aborted            409
    unsupported_workload   422
    release_not_found      404
    release_exists         409
    release_locked         409
    release_busy           409 retry
    hook_failed            422
    timed_out              504
    repo_unreachable       503 retry
    chart_not_found        404
    version_not_found      404
    render_failed          422
    schema_invalid         422
    not_locked             409
    still_running          409
    no_tests               422
    test_failed            422
    job_not_found          404
    build_not_found        404
    plugin_missing         409
    no_test_report         404
    not_text               422
    queue_item_gone        404
    unknown_parameter      400
    invalid_choice         400
    job_disabled           409
    not_a_pipeline         422
    password_parameters    422
    server_required        400
    doc_not_found          404
    doc_exists             409
    memory_conflict        409
    secret_found           422
    unknown_store          404
    unsafe_text            422
    log_dump               422
    edit_not_found         409
    edit_ambiguous         409
    diff_mismatch          409
    read_only_store        403
    type_not_allowed       422
    redacted               410
    upstream_unavailable   503 retry
    upstream_refused       502
    upstream_error         502
    upstream_protocol      502
    ");
}
