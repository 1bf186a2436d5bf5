//! What a tenant's file may say, and exactly how each mistake is told.

use super::*;
use crate::config::ApprovalConfig;
use insta::assert_snapshot;
use proptest::prelude::*;
use std::time::Duration;

mod bombs;
mod params;

const KNOWN: KnownNames<'static> = KnownNames {
    toolsets: &["helm", "k8s", "memory"],
    tools: &["helm_list", "helm_upgrade", "k8s_exec", "k8s_get", "memory_read"],
    sections: &[],
    addresses: &|used| if used.address.contains("169.254") { Err("it is private".to_owned()) } else { Ok(()) },
};

fn config(text: &str) -> TenantConfig {
    parse("acme.yaml", text, &KNOWN).expect("a configuration without problems")
}

/// Every problem as it is printed.
fn told(text: &str) -> String {
    let problems = parse("acme.yaml", text, &KNOWN).expect_err("problems");
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

fn codes(text: &str) -> Vec<&'static str> {
    parse("acme.yaml", text, &KNOWN).expect_err("problems").iter().map(|problem| problem.code).collect()
}

#[test]
fn a_full_file_is_read_as_written() {
    let read = config(
        "# a comment\n\
         tenant: acme\n\
         mode: write\n\
         default_toolsets: [k8s, 'memory']\n\
         policy:\n  \
           deny: [\"k8s_exec\"]\n  \
           require_approval:\n  \
           - k8s_get:secrets\n  \
           - helm_*\n\
         limits: { calls_in_flight: 1, calls_per_minute: 1000000, result_bytes: 4096 }\n",
    );

    assert_eq!((read.tenant.as_str(), read.mode), ("acme", SessionMode::Write));
    assert_eq!(read.default_toolsets.iter().map(ToolsetName::as_str).collect::<Vec<_>>(), ["k8s", "memory"]);
    assert_eq!(read.deny, [Pattern::parse("k8s_exec").unwrap()]);
    let gate = |text: &str| Gate { pattern: Pattern::parse(text).unwrap(), on_reject: OnReject::Continue };
    assert_eq!(read.require_approval, ["k8s_get:secrets", "helm_*"].map(gate));
    assert_eq!(read.limits, TenantLimits { calls_in_flight: 1, calls_per_minute: 1_000_000, result_bytes: 4096 });
}

#[test]
fn a_tenant_that_says_nothing_may_only_read_within_the_defaults() {
    let read = config("tenant: acme");

    assert_eq!((read.mode, read.limits), (SessionMode::Read, TenantLimits::default()));
    assert!(read.default_toolsets.is_empty() && read.deny.is_empty() && read.require_approval.is_empty());
}

#[test]
fn a_tenant_must_be_named() {
    assert_snapshot!(told("mode: read"), @"
        acme.yaml:1:1: missing_key: the key `tenant` is missing
            hint: add `tenant:` with the tenant's name
    ");
    assert_snapshot!(told("tenant: Acme Inc"), @"acme.yaml:1:9: bad_value: `Acme Inc` is no tenant: a tenant is named with 1 to 63 of a-z, 0-9 and '-', neither first nor last a dash");
}

#[test]
fn an_unknown_key_is_refused_with_the_one_that_was_meant() {
    assert_snapshot!(told("tenant: acme\nmod: read\nlimit: {}"), @"
        acme.yaml:2:1: unknown_key: the file has no key `mod`
            hint: did you mean `mode`? known keys here: tenant, mode, default_toolsets, params, toolsets, policy, limits, audit
        acme.yaml:3:1: unknown_key: the file has no key `limit`
            hint: did you mean `limits`? known keys here: tenant, mode, default_toolsets, params, toolsets, policy, limits, audit
    ");
    assert_snapshot!(told("tenant: acme\nlimits: { calls_per_minut: 5 }"), @"
        acme.yaml:2:11: unknown_key: `limits` has no key `calls_per_minut`
            hint: did you mean `calls_per_minute`? known keys here: calls_in_flight, calls_per_minute, result_bytes
    ");
}

#[test]
fn policy_only_tightens() {
    assert_snapshot!(told("tenant: acme\npolicy:\n  allow: [k8s_exec]\n  approval: { deciders: 0 }"), @"
        acme.yaml:3:3: unknown_key: `policy` has no key `allow`
            hint: a tenant's policy only tightens; known keys here: deny, require_approval, approval
        acme.yaml:4:25: out_of_range: `deciders` is `0`, which is out of range
            hint: choose from 1 to 10
    ");
}

#[test]
fn a_mode_is_read_or_write() {
    assert_snapshot!(told("tenant: acme\nmode: admin"), @"
        acme.yaml:2:7: bad_value: `admin` is no mode
            hint: use `read` or `write`
    ");
}

#[test]
fn toolsets_must_exist_and_be_named_once() {
    assert_snapshot!(told("tenant: acme\ndefault_toolsets: [k8, zzz, K8S, helm, helm]"), @"
        acme.yaml:2:20: unknown_toolset: there is no toolset `k8`
            hint: did you mean `k8s`? known toolsets: helm, k8s, memory
        acme.yaml:2:24: unknown_toolset: there is no toolset `zzz`
            hint: known toolsets: helm, k8s, memory
        acme.yaml:2:29: bad_value: `K8S` is no toolset: a toolset is named with 1 to 64 of a-z, 0-9, '_' and '-', beginning with a letter
        acme.yaml:2:40: repeated_value: the toolset `helm` is named twice
            hint: remove one of them
    ");
}

#[test]
fn a_rule_must_be_a_pattern_and_match_a_tool() {
    assert_snapshot!(told("tenant: acme\npolicy: { deny: ['*_get', k8s_exce, zzz], require_approval: ['helmm_*'] }"), @"
        acme.yaml:2:18: bad_value: `*_get` is no rule: `*` is only understood at the end of the tool's name
        acme.yaml:2:27: matches_no_tool: `k8s_exce` matches no tool
            hint: did you mean `k8s_exec`?
        acme.yaml:2:37: matches_no_tool: `zzz` matches no tool
            hint: `quartermaster tools` lists the names
        acme.yaml:2:62: matches_no_tool: `helmm_*` matches no tool
            hint: did you mean `helm_*`?
    ");
}

#[test]
fn a_limit_is_a_whole_number_in_its_range() {
    assert_snapshot!(
        told("tenant: acme\nlimits:\n  calls_in_flight: 0\n  calls_per_minute: 99999999999\n  result_bytes: -1"), @"
        acme.yaml:3:20: out_of_range: `calls_in_flight` is `0`, which is out of range
            hint: choose from 1 to 10000
        acme.yaml:4:21: out_of_range: `calls_per_minute` is `99999999999`, which is out of range
            hint: choose from 1 to 1000000
        acme.yaml:5:17: out_of_range: `result_bytes` is `-1`, which is out of range
            hint: choose from 4096 to 1048576
    ");
    assert_snapshot!(told("tenant: acme\nlimits:\n  calls_in_flight: '32'\n  calls_per_minute: 1e3\n  result_bytes: 0x1000"), @"
        acme.yaml:3:20: wrong_type: `calls_in_flight` must be a whole number, and quoted text stands here
        acme.yaml:4:21: wrong_type: `calls_per_minute` must be a whole number, and a plain value stands here
        acme.yaml:5:17: wrong_type: `result_bytes` must be a whole number, and a plain value stands here
    ");
}

#[test]
fn a_value_of_another_kind_is_named() {
    assert_snapshot!(told("- tenant"), @"acme.yaml:1:1: wrong_type: the file must be a mapping, and a list stands here");
    assert_snapshot!(told("tenant: [acme]\nmode:\ndefault_toolsets: k8s\npolicy: 'none'\nlimits: []\n? [a]\n: b"), @"
        acme.yaml:1:9: wrong_type: `tenant` must be text, and a list stands here
        acme.yaml:2:5: wrong_type: `mode` must be text, and nothing stands here
        acme.yaml:3:19: wrong_type: `default_toolsets` must be a list, and a plain value stands here
        acme.yaml:4:9: wrong_type: `policy` must be a mapping, and quoted text stands here
        acme.yaml:5:9: wrong_type: `limits` must be a mapping, and a list stands here
        acme.yaml:6:3: wrong_type: a key is text, not a list or a mapping
    ");
}

#[test]
fn text_that_others_read_as_something_else_must_be_quoted() {
    assert_snapshot!(told("tenant: no"), @"
        acme.yaml:1:9: ambiguous_text: `tenant` must be text, and `no` without quotes may be read otherwise
            hint: put it in quotes if that is what you mean
    ");
    assert_snapshot!(told("tenant: 12"), @"
        acme.yaml:1:9: ambiguous_text: `tenant` must be text, and `12` without quotes may be read otherwise
            hint: put it in quotes if that is what you mean
    ");
    assert_eq!(config("tenant: 'no'").tenant.as_str(), "no");
    assert_eq!(config("tenant: \"12\"").tenant.as_str(), "12");
}

#[test]
fn a_key_stands_once() {
    assert_snapshot!(told("tenant: acme\nmode: read\ntenant: other"), @"
        acme.yaml:3:1: duplicate_key: the key `tenant` stands here a second time
            hint: the first one is in line 1; keep one of them
    ");
}

#[test]
fn yaml_beyond_the_subset_is_refused_where_it_stands() {
    assert_snapshot!(told("tenant: !!python/object:os.system acme"), @"
        acme.yaml:1:9: yaml_tag: the tag `!!python/object:os.system` is not allowed
            hint: remove it; types follow from the keys
    ");
    assert_snapshot!(told("tenant: &a acme\nmode: *a\n<<: *b"), @"
        acme.yaml:1:12: yaml_alias: an anchor (`&name`) is not allowed
            hint: write the value out where it is used
        acme.yaml:2:7: yaml_alias: an alias (`*name`) is not allowed
            hint: write the value out where it is used
        acme.yaml:3:1: unknown_key: the file has no key `<<`
            hint: known keys here: tenant, mode, default_toolsets, params, toolsets, policy, limits, audit
        acme.yaml:3:5: yaml_alias: an alias (`*name`) is not allowed
            hint: write the value out where it is used
    ");
    assert_snapshot!(told("%YAML 1.2\n---\ntenant: acme"), @"acme.yaml:1:1: yaml_syntax: YAML directives are disallowed");
    assert_snapshot!(told("tenant: acme\n---\ntenant: other"), @"
        acme.yaml:2:1: second_document: a second document begins
            hint: keep one document in a file, without `---` after it
    ");
}

#[test]
fn a_text_that_is_no_yaml_says_where() {
    assert_snapshot!(told("tenant: acme\nlimits: { calls_in_flight: 3"), @"acme.yaml:2:9: yaml_syntax: unclosed bracket '{'");
    assert_snapshot!(told("tenant: acme\nlimits:\n\tcalls_in_flight: 3"), @"acme.yaml:3:2: yaml_syntax: tabs disallowed within this context (block indentation)");
}

#[test]
fn an_empty_file_is_told_how_to_begin() {
    for empty in ["", "# only a comment\n"] {
        assert_eq!(codes(empty), ["empty_file"], "{empty:?}");
    }
    assert_snapshot!(told("\n"), @"
        acme.yaml:1:1: empty_file: the file holds no configuration
            hint: begin with `tenant:` and the tenant's name
    ");
}

#[test]
fn a_file_with_eight_errors_reports_eight() {
    let eight = "tenant: Acme\n\
                 mode: admin\n\
                 default_toolsets: [k8s, hlm]\n\
                 polcy: {}\n\
                 policy:\n  \
                   deny: [k8s_exce]\n  \
                   allow: ['*']\n\
                 limits: { calls_in_flight: 0, result_bytes: lots }\n";

    assert_snapshot!(told(eight), @"
        acme.yaml:1:9: bad_value: `Acme` is no tenant: a tenant is named with 1 to 63 of a-z, 0-9 and '-', neither first nor last a dash
        acme.yaml:2:7: bad_value: `admin` is no mode
            hint: use `read` or `write`
        acme.yaml:3:25: unknown_toolset: there is no toolset `hlm`
            hint: did you mean `helm`? known toolsets: helm, k8s, memory
        acme.yaml:4:1: unknown_key: the file has no key `polcy`
            hint: did you mean `policy`? known keys here: tenant, mode, default_toolsets, params, toolsets, policy, limits, audit
        acme.yaml:6:10: matches_no_tool: `k8s_exce` matches no tool
            hint: did you mean `k8s_exec`?
        acme.yaml:7:3: unknown_key: `policy` has no key `allow`
            hint: a tenant's policy only tightens; known keys here: deny, require_approval, approval
        acme.yaml:8:28: out_of_range: `calls_in_flight` is `0`, which is out of range
            hint: choose from 1 to 10000
        acme.yaml:8:45: wrong_type: `result_bytes` must be a whole number, and a plain value stands here
    ");
    assert_eq!(codes(eight).len(), 8);
}

#[test]
fn hostile_names_are_shown_harmless() {
    assert_snapshot!(told("tenant: acme\n\"\\e[2J\\u202e\": 1"), @r"
        acme.yaml:2:1: unknown_key: the file has no key `\u{1b}[2J\u{202e}`
            hint: known keys here: tenant, mode, default_toolsets, params, toolsets, policy, limits, audit
    ");
}

#[test]
fn a_problem_is_machine_readable() {
    let problems = parse("acme.yaml", "tenant: acme\nmode: admin", &KNOWN).unwrap_err();
    assert_snapshot!(serde_json::to_string(&problems).unwrap(), @r#"[{"file":"acme.yaml","line":2,"column":7,"code":"bad_value","message":"`admin` is no mode","hint":"use `read` or `write`"}]"#);
}

proptest! {
    #[test]
    fn any_text_ends_in_a_configuration_or_in_problems(text in "\\PC*|[ -~\\n\\t]*|([\\[\\]{}:,&*!|>'\"%@`#?~\\- \\n\\ta-c]){0,200}") {
        if let Err(problems) = parse("acme.yaml", &text, &KNOWN) {
            prop_assert!(!problems.is_empty());
            prop_assert!(problems.iter().all(|problem| problem.line >= 1 && problem.column >= 1));
            prop_assert!(problems.is_sorted_by_key(|problem| (problem.line, problem.column)));
        }
    }

    #[test]
    fn any_value_under_any_key_is_read_or_refused(key in 0..ROOT.len(), value in "[ -~]{0,40}") {
        let text = format!("tenant: acme\n{}: {value}\n", ROOT[key]);
        if let Ok(read) = parse("acme.yaml", &text, &KNOWN) {
            prop_assert_eq!(read.tenant.as_str(), "acme");
        }
    }
}

#[test]
fn a_tenant_says_how_people_are_asked() {
    let text = "tenant: acme\npolicy:\n  approval: { expires: 2h, execute_within: 5m, deciders: 2, most_waiting: 3 }\n  require_approval:\n    - name: helm_*\n      on_reject: fail\n    - k8s_get\n";
    let read = parse("acme.yaml", text, &KNOWN).unwrap();
    let hours = |n: u64| Duration::from_secs(n * 3600);
    assert_eq!(
        read.approval,
        ApprovalConfig { expires: hours(2), execute_within: Duration::from_secs(300), deciders: 2, most_waiting: 3 }
    );
    assert_eq!(
        read.require_approval.iter().map(|gate| gate.on_reject).collect::<Vec<_>>(),
        [OnReject::Fail, OnReject::Continue]
    );
}

#[test]
fn no_way_of_asking_is_no_asking_at_all() {
    let text = "tenant: acme\npolicy:\n  approval: { expires: 0s, execute_within: soon, deciders: 0, self_approval: true }\n  require_approval:\n    - { name: helm_*, on_reject: ignore }\n    - { on_reject: fail }\n";
    let problems = parse("acme.yaml", text, &KNOWN).unwrap_err();
    let codes: Vec<&str> = problems.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, ["out_of_range", "out_of_range", "out_of_range", "unknown_key", "bad_value", "missing_key"]);
}

#[test]
fn what_the_audit_log_keeps_is_read_and_every_mistake_in_it_is_told() {
    let days = |number: u64| std::time::Duration::from_secs(number * 86_400);
    let plain = config("tenant: acme\n").audit;
    assert_eq!((plain.contents, plain.keep), (crate::AuditContents::Full, days(90)));
    let read = config("tenant: acme\naudit: { contents: digests, keep: 7d }\n").audit;
    assert_eq!((read.contents, read.keep), (crate::AuditContents::Digests, days(7)));
    assert_eq!(plain.unwritable, crate::UnwritableAudit::Refuse);
    let reads = config("tenant: acme\naudit: { unwritable: allow_reads }\n").audit;
    assert_eq!(reads.unwritable, crate::UnwritableAudit::AllowReads);
    let wrong = told("tenant: acme\naudit:\n  contents: some\n  keep: 5m\n  more: 1\n  unwritable: allow");
    for (line, code) in [("3:13", "bad_value"), ("4:9", "out_of_range"), ("5:3", "unknown_key"), ("6:15", "bad_value")]
    {
        assert!(wrong.contains(&format!("acme.yaml:{line}: {code}")), "{line} {code}: {wrong}");
    }
}
