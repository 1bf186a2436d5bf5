use super::*;
use crate::Approved;
use domain::{CallId, Loaded, Moment, Principal, Scopes, Tenant, ToolName};
use std::fmt::Write as _;
use std::sync::Arc;

const SCOPES: [&str; 5] = ["", "tools:read", "tools:write", "runs:decide", "tenant:admin"];
const RULES: [&str; 3] = ["-", "ask", "deny"];

fn call(scope: &str, needs: Level, effect: Effect) -> Call {
    Call {
        id: CallId::from_random([1; 16]),
        caller: Arc::new(Caller {
            tenant: Tenant::parse("acme").unwrap(),
            principal: Principal { issuer: "i".into(), subject: "s".into() },
            scopes: Scopes::parse(scope),
            expires_at: Moment::from_secs(9),
        }),
        session: None,
        tainted: false,
        assignment: std::sync::Arc::default(),
        tool: ToolName::parse("k8s_get").unwrap(),
        toolset: ToolsetName::parse("k8s").unwrap(),
        needs,
        effect,
        about: Some("secrets".into()),
        digest: String::new(),
    }
}

fn policy(mode: Mode, rule: &str) -> Policy {
    let rules = |wanted| if rule == wanted { vec![Pattern::parse("k8s_get:secrets").unwrap()] } else { vec![] };
    let gates = rules("ask").into_iter().map(|pattern| Gate { pattern, on_reject: OnReject::Fail }).collect();
    Policy { mode, deny: rules("deny"), require_approval: gates, calls_per_minute: 10 }
}

fn evidence(level: Option<Level>, mode: Mode, tainted: bool) -> Evidence {
    let loaded: Loaded = level.map(|level| (ToolsetName::parse("k8s").unwrap(), level)).into_iter().collect();
    Evidence { loaded, mode, tainted, calls_this_minute: 10, stopped: false, approved: None }
}

fn word(decision: &Decision) -> String {
    match decision {
        Decision::Permit(permit) => {
            assert_eq!((permit.extent(), permit.effect(), permit.run()), (Extent::Act, Effect::Read, None));
            "permit".into()
        }
        Decision::Ask(Question::Rule, permit) => {
            assert_eq!(permit.extent(), Extent::Rehearse);
            "ask (rule)".into()
        }
        Decision::Ask(Question::Effect(_), permit) => {
            assert_eq!(permit.extent(), Extent::Rehearse);
            "ask".into()
        }
        Decision::Deny(reason) => reason.0.code.as_str().into(),
    }
}

/// Every combination, one line each. A change here is a change of what the product lets through: read it as such.
#[test]
fn the_matrix_is_as_reviewed() {
    let mut table = String::from("scope | list | effect | loaded | session | tenant | rule -> plain / tainted\n");
    for scope in SCOPES {
        for needs in [Level::Read, Level::Write] {
            for effect in [Effect::Read, Effect::Change, Effect::Disrupt] {
                for level in [None, Some(Level::Read), Some(Level::Write)] {
                    for (session, tenant) in
                        [(Mode::Read, Mode::Write), (Mode::Write, Mode::Read), (Mode::Write, Mode::Write)]
                    {
                        for rule in RULES {
                            let verdict = |tainted| {
                                word(&decide(
                                    &policy(tenant, rule),
                                    call(scope, needs, effect),
                                    &evidence(level, session, tainted),
                                ))
                            };
                            let loaded = level.map_or("-", Level::as_str);
                            writeln!(
                                table,
                                "{:12} | {:5} | {:7} | {:5} | {:5} | {:5} | {:4} -> {} / {}",
                                if scope.is_empty() { "-" } else { scope },
                                needs.as_str(),
                                effect.as_str(),
                                loaded,
                                session.as_str(),
                                tenant.as_str(),
                                rule,
                                verdict(false),
                                verdict(true),
                            )
                            .unwrap();
                        }
                    }
                }
            }
        }
    }
    insta::assert_snapshot!("matrix", table);
}

#[test]
fn nothing_that_changes_anything_is_ever_permitted_outright() {
    for scope in SCOPES {
        for effect in [Effect::Change, Effect::Disrupt] {
            for level in [None, Some(Level::Read), Some(Level::Write)] {
                let decision = decide(
                    &policy(Mode::Write, "-"),
                    call(scope, Level::Write, effect),
                    &evidence(level, Mode::Write, false),
                );
                assert!(!matches!(decision, Decision::Permit(_)));
            }
        }
    }
}

#[test]
fn the_call_after_the_last_one_of_the_minute_is_refused() {
    let over = Evidence { calls_this_minute: 11, ..evidence(Some(Level::Read), Mode::Read, false) };
    let Decision::Deny(reason) = decide(&policy(Mode::Read, "-"), call("tools:read", Level::Read, Effect::Read), &over)
    else {
        panic!("let through");
    };
    assert_eq!((reason.0.code, reason.0.retry_after_ms), (Code::RateLimited, Some(10_000)));
}

#[test]
fn a_refusal_to_load_names_what_is_missing() {
    let wanted = [(ToolsetName::parse("k8s").unwrap(), Level::Write)];
    let load = |scope, tenant, session| {
        decide_load(&policy(tenant, "-"), &call(scope, Level::Read, Effect::Read).caller, session, &wanted)
            .map_err(|r| (r.0.code, r.0.message))
    };
    assert_eq!(load("tools:write", Mode::Write, Mode::Write), Ok(()));
    assert_eq!(load("tools:read", Mode::Write, Mode::Write).unwrap_err().0, Code::InsufficientScope);
    assert!(load("tools:write", Mode::Read, Mode::Write).unwrap_err().1.contains("tenant"));
    assert!(load("tools:write", Mode::Write, Mode::Read).unwrap_err().1.contains("session"));
}

fn yes(digest: &str) -> Option<Approved> {
    Some(Approved { approval: approval(domain::RunId::from_random([7; 16])), digest: digest.into() })
}

#[test]
fn a_yes_opens_exactly_the_call_it_was_given_to() {
    let call = || Call { digest: "d1".into(), ..call("tools:write", Level::Write, Effect::Disrupt) };
    let with = |approved| Evidence { approved, ..evidence(Some(Level::Write), Mode::Write, true) };
    let Decision::Permit(permit) = decide(&policy(Mode::Write, "-"), call(), &with(yes("d1"))) else {
        panic!("the approved call is refused");
    };
    assert_eq!((permit.extent(), permit.run()), (Extent::Act, Some(domain::RunId::from_random([7; 16]))));
    assert!(matches!(decide(&policy(Mode::Write, "-"), call(), &with(yes("d2"))), Decision::Ask(..)));
    assert!(matches!(decide(&policy(Mode::Write, "-"), call(), &with(None)), Decision::Ask(..)));
}

#[test]
fn a_rule_that_tightened_after_the_yes_still_refuses() {
    let call = || Call { digest: "d1".into(), ..call("tools:write", Level::Write, Effect::Change) };
    let evidence = Evidence { approved: yes("d1"), ..evidence(Some(Level::Write), Mode::Write, false) };
    assert!(matches!(decide(&policy(Mode::Write, "deny"), call(), &evidence), Decision::Deny(_)));
    assert!(matches!(decide(&policy(Mode::Read, "-"), call(), &evidence), Decision::Deny(_)));
}

#[test]
fn a_stopped_session_reads_on_and_changes_nothing() {
    let stopped = |effect| {
        let evidence =
            Evidence { stopped: true, approved: yes(""), ..evidence(Some(Level::Write), Mode::Write, false) };
        decide(&policy(Mode::Write, "-"), call("tools:write", Level::Write, effect), &evidence)
    };
    assert!(matches!(stopped(Effect::Read), Decision::Permit(_)));
    assert!(matches!(stopped(Effect::Change), Decision::Deny(_)));
    assert!(matches!(stopped(Effect::Disrupt), Decision::Deny(_)));
}

#[test]
fn of_several_rules_the_strictest_says_what_a_no_means() {
    let gate = |text: &str, on_reject| Gate { pattern: Pattern::parse(text).unwrap(), on_reject };
    let asked = |gates: Vec<Gate>| {
        let policy = Policy { require_approval: gates, ..policy(Mode::Write, "-") };
        on_reject(&policy, &call("tools:write", Level::Write, Effect::Change))
    };
    assert_eq!(asked(vec![]), OnReject::Continue);
    assert_eq!(asked(vec![gate("k8s_*", OnReject::Continue), gate("k8s_get", OnReject::Fail)]), OnReject::Fail);
    assert_eq!(asked(vec![gate("helm_*", OnReject::Fail), gate("k8s_get", OnReject::Continue)]), OnReject::Continue);
}

/// A yes by nobody in particular.
fn approval(run: domain::RunId) -> Approval {
    Approval { run, by: Vec::new(), at: domain::Moment::from_secs(1_763_280_000) }
}
