//! What a text may say beside the file: tables, and texts at random of which none that is let through grants more.

use super::*;
use crate::check::{KnownNames, parse};
use domain::call::ToolUse;
use domain::{
    Call, CallId, Caller, Effect, Level, Moment, Principal, Scopes, SessionMode, Tenant, ToolName, ToolsetName,
};
use policy::{Explanation, Policy, explain, on_reject};
use proptest::prelude::*;
use std::sync::Arc;

const TOOLS: [&str; 5] = ["k8s_exec", "k8s_get", "k8s_apply", "helm_list", "memory_read"];

fn config(text: &str) -> TenantConfig {
    let known = KnownNames { tools: &TOOLS, ..KnownNames::only(&[]) };
    parse("acme.yaml", text, &known).unwrap_or_else(|problems| panic!("{text}\n{problems:?}"))
}

fn beyond(file: &str, text: &str) -> Vec<String> {
    let (file, text) = (format!("tenant: acme\n{file}"), format!("tenant: acme\n{text}"));
    let problems = exceeding("config", &text, &[], &config(&file), &config(&text));
    problems.iter().map(|p| format!("{}:{} {}", p.line, p.column, p.message)).collect()
}

const FILE: &str = "mode: read
policy:
  deny: [k8s_exec, 'helm_*']
  require_approval: [k8s_get:secrets, { name: memory_read, on_reject: fail }]
  approval: { expires: 1h, execute_within: 5m, deciders: 2, most_waiting: 10 }
limits: { calls_in_flight: 8, calls_per_minute: 100, result_bytes: 65536 }
";

#[test]
fn the_same_and_less_is_let_through() {
    let none = [] as [&str; 0];
    assert_eq!(beyond(FILE, FILE), none);
    assert_eq!(beyond("", ""), none);
    let stricter = "mode: read
policy:
  deny: ['k8s_*', '*:x', 'helm_*', memory_read]
  approval: { expires: 30m, execute_within: 1m, deciders: 3, most_waiting: 1 }
limits: { calls_in_flight: 1, calls_per_minute: 1, result_bytes: 4096 }
";
    assert_eq!(beyond(FILE, stricter), none, "what is refused needs no approval");
}

#[test]
fn each_key_is_told_with_what_the_file_gives_and_what_was_asked_for() {
    let wider = "mode: write
policy:
  deny: [k8s_exec:x, helm_list]
  require_approval: [memory_read]
  approval: { expires: 2h, execute_within: 6m, deciders: 1, most_waiting: 11 }
limits: { calls_in_flight: 9, calls_per_minute: 101, result_bytes: 65537 }
";
    insta::assert_snapshot!(beyond(FILE, wider).join("\n"), @r"
    2:7 `mode`: the tenant's file gives read, and this asks for write
    4:9 `deny`: the tenant's file gives the rule `k8s_exec`, and this asks for k8s_exec:x, helm_list
    4:9 `deny`: the tenant's file gives the rule `helm_*`, and this asks for k8s_exec:x, helm_list
    5:21 `require_approval`: the tenant's file gives the rule `k8s_get:secrets`, and this asks for `memory_read`
    5:21 `require_approval`: the tenant's file gives the rule `memory_read` with `on_reject: fail`, and this asks for `memory_read`
    6:24 `expires`: the tenant's file gives 3600 s, and this asks for 7200 s
    6:44 `execute_within`: the tenant's file gives 300 s, and this asks for 360 s
    6:58 `deciders`: the tenant's file gives 2, and this asks for 1
    6:75 `most_waiting`: the tenant's file gives 10, and this asks for 11
    7:28 `calls_in_flight`: the tenant's file gives 8, and this asks for 9
    7:49 `calls_per_minute`: the tenant's file gives 100, and this asks for 101
    7:68 `result_bytes`: the tenant's file gives 65536, and this asks for 65537
    ");
}

#[test]
fn what_a_text_leaves_out_is_asked_for_as_the_product_has_it() {
    let told = beyond(FILE, "");
    assert_eq!(told.len(), 10, "{told:#?}");
    assert!(told.iter().all(|line| !line.contains("`mode`") && !line.contains("`expires`")), "{told:#?}");
}

/// A call of a tool that only reads, about something or nothing.
fn call(tool: &str, about: Option<&str>) -> Call {
    let caller = Caller {
        tenant: Tenant::parse("acme").unwrap(),
        principal: Principal::new("https://login.example", "agent"),
        scopes: Scopes::parse("tools:read tools:write"),
        expires_at: Moment::from_secs(9),
        token: None,
        labels: Vec::new(),
    };
    let used = ToolUse {
        tool: ToolName::parse(tool).unwrap(),
        toolset: ToolsetName::parse("k8s").unwrap(),
        needs: if tool == "k8s_exec" { Level::Write } else { Level::Read },
        effect: if tool == "k8s_exec" { Effect::Change } else { Effect::Read },
        about: about.map(str::to_owned),
        schema: "",
        arguments: "{}",
    };
    Call::new(CallId::from_random([1; 16]), Arc::new(caller), None, used)
}

/// How much is let through: nothing, what a person has approved, everything.
fn freedom(config: &TenantConfig, call: &Call) -> u8 {
    let policy = Policy {
        mode: config.mode,
        deny: config.deny.clone(),
        require_approval: config.gates(),
        calls_per_minute: u64::from(config.limits.calls_per_minute),
    };
    match explain(&policy, call, SessionMode::Write, &[]) {
        Explanation::Denied(_) => 0,
        Explanation::Asks(_) if on_reject(&policy, call) == domain::run::OnReject::Fail => 1,
        Explanation::Asks(_) => 2,
        Explanation::Allowed => 3,
    }
}

fn rule() -> impl Strategy<Value = String> {
    let tool = prop::sample::select(vec!["k8s_exec", "k8s_get", "k8s_*", "helm_list", "'*", "memory_read"]);
    let about = prop::sample::select(vec!["", "", ":secrets", ":x"]);
    (tool, about).prop_map(|(tool, about)| format!("'{}{about}'", tool.trim_start_matches('\'')))
}

fn text() -> impl Strategy<Value = String> {
    let gate = (rule(), any::<bool>())
        .prop_map(|(rule, fail)| format!("{{ name: {rule}, on_reject: {} }}", if fail { "fail" } else { "continue" }));
    let rules = (prop::collection::vec(rule(), 0..3), prop::collection::vec(gate, 0..3));
    let numbers = (1..4_u32, 1..4_u32, 1..4_u32, 1..4_u32, 1..4_u32, 1..4_u32);
    (any::<bool>(), rules, numbers).prop_map(|(write, (deny, gates), (a, b, c, d, e, f))| {
        let mode = if write { "write" } else { "read" };
        format!(
            "tenant: acme\nmode: {mode}\npolicy:\n  deny: [{}]\n  require_approval: [{}]\n  \
             approval: {{ expires: {a}h, execute_within: {b}m, deciders: {c}, most_waiting: {d} }}\n\
             limits: {{ calls_in_flight: {e}, calls_per_minute: {f} }}\n",
            deny.join(", "),
            gates.join(", ")
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn a_text_that_is_let_through_never_grants_more_than_the_file(file in text(), narrowed in text(), same in 0..4_u8) {
        // A text of its own seldom fits; one that shares the rules of the file fits more often.
        let narrowed = if same == 0 { narrowed } else { format!("{}{}", file.split("  approval").next().unwrap(), &narrowed[narrowed.find("  approval").unwrap()..]) };
        let (given, asked) = (config(&file), config(&narrowed));
        if exceeding("config", &narrowed, &[], &given, &asked).is_empty() {
            for tool in TOOLS {
                for about in [None, Some("secrets"), Some("x"), Some("y"), Some("x,secrets")] {
                    let call = call(tool, about);
                    prop_assert!(freedom(&asked, &call) <= freedom(&given, &call), "{tool} {about:?}\n{file}\n{narrowed}");
                }
            }
            prop_assert!(asked.approval.deciders >= given.approval.deciders);
            prop_assert!(asked.approval.expires <= given.approval.expires);
            prop_assert!(asked.approval.execute_within <= given.approval.execute_within);
            prop_assert!(asked.approval.most_waiting <= given.approval.most_waiting);
            prop_assert!(asked.limits.calls_in_flight <= given.limits.calls_in_flight);
            prop_assert!(asked.limits.calls_per_minute <= given.limits.calls_per_minute);
        }
    }
}

#[test]
fn what_is_recorded_is_not_for_a_text_over_http_to_lessen() {
    let file = "audit: { contents: full, keep: 90d }";
    let none = [] as [&str; 0];
    assert_eq!(beyond(file, file), none);
    assert_eq!(beyond(file, "audit: { keep: 91d }"), none, "longer is no less");
    assert_eq!(
        beyond(file, "audit: { contents: digests, keep: 30d }"),
        [
            "2:20 `contents`: the tenant's file gives full, and this asks for digests",
            "2:35 `keep`: the tenant's file gives 7776000 s, and this asks for 2592000 s",
        ]
    );
    assert_eq!(
        beyond("audit: {}", "audit: { unwritable: allow_reads }"),
        ["2:22 `unwritable`: the tenant's file gives refuse, and this asks for allow_reads"]
    );
    let reads = "audit: { unwritable: allow_reads }";
    assert_eq!((beyond(reads, reads), beyond(reads, "")), (vec![], vec![]), "only where the file has it");
    let kept = beyond("audit: { contents: digests }", "");
    assert_eq!(kept, ["1:1 `contents`: the tenant's file gives digests, and this asks for full"]);
}
