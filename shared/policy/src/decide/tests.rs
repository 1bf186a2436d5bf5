use super::*;
use domain::run::{Answer, Run, RunRequest, Verdict};
use domain::{CallId, LoadedToolsets, Moment, Principal, RunId, Scopes, Tenant, ToolName, ToolUse};
use std::fmt::Write as _;
use std::sync::Arc;

const SCOPES: [&str; 5] = ["", "tools:read", "tools:write", "runs:decide", "tenant:admin"];
const RULES: [&str; 3] = ["-", "ask", "deny"];

fn call(scope: &str, needs: Level, effect: Effect) -> Call {
    Call::new(CallId::from_random([1; 16]), caller(scope), None, used(needs, effect, "{}"))
}

fn caller(scope: &str) -> Arc<Caller> {
    Arc::new(Caller {
        tenant: Tenant::parse("acme").unwrap(),
        principal: Principal::new("i", "s"),
        scopes: Scopes::parse(scope),
        expires_at: Moment::from_secs(9),
        token: None,
        labels: Vec::new(),
    })
}

fn used(needs: Level, effect: Effect, arguments: &str) -> ToolUse<'_> {
    ToolUse {
        tool: ToolName::parse("k8s_get").unwrap(),
        toolset: ToolsetName::parse("k8s").unwrap(),
        needs,
        effect,
        about: Some("secrets".into()),
        schema: "",
        arguments,
    }
}

fn policy(mode: SessionMode, rule: &str) -> Policy {
    let rules = |wanted| if rule == wanted { vec![Pattern::parse("k8s_get:secrets").unwrap()] } else { vec![] };
    let gates = rules("ask").into_iter().map(|pattern| Gate { pattern, on_reject: OnReject::Fail }).collect();
    Policy { mode, deny: rules("deny"), require_approval: gates, calls_per_minute: 10 }
}

struct NoSwitches;

impl domain::KnownSwitches for NoSwitches {
    fn switches(&self) -> &[domain::Switch] {
        &[]
    }
}

fn evidence(level: Option<Level>, mode: SessionMode) -> CallEvidence {
    let loaded: LoadedToolsets = level.map(|level| (ToolsetName::parse("k8s").unwrap(), level)).into_iter().collect();
    let (switches, approved, recorded) = (Vec::new(), None, true);
    CallEvidence { loaded, mode, calls_this_minute: 10, stopped: false, switches, approved, recorded }
}

fn word(decision: &Decision) -> String {
    match decision {
        Decision::Permit(permit) => {
            assert_eq!((permit.extent(), permit.effect(), permit.run()), (PermitMode::Act, Effect::Read, None));
            "permit".into()
        }
        Decision::Ask(Question::Rule, permit) => {
            assert_eq!(permit.extent(), PermitMode::Rehearse);
            "ask (rule)".into()
        }
        Decision::Ask(Question::Effect(_), permit) => {
            assert_eq!(permit.extent(), PermitMode::Rehearse);
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
                    for (session, tenant) in [
                        (SessionMode::Read, SessionMode::Write),
                        (SessionMode::Write, SessionMode::Read),
                        (SessionMode::Write, SessionMode::Write),
                    ] {
                        for rule in RULES {
                            let verdict = |tainted| {
                                let call = call(scope, needs, effect).with_session_facts(tainted, Arc::default());
                                word(&decide(&policy(tenant, rule), call, &evidence(level, session)))
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
                    &policy(SessionMode::Write, "-"),
                    call(scope, Level::Write, effect),
                    &evidence(level, SessionMode::Write),
                );
                assert!(!matches!(decision, Decision::Permit(_)));
            }
        }
    }
}

#[test]
fn the_call_after_the_last_one_of_the_minute_is_refused() {
    let over = CallEvidence { calls_this_minute: 11, ..evidence(Some(Level::Read), SessionMode::Read) };
    let Decision::Deny(reason) =
        decide(&policy(SessionMode::Read, "-"), call("tools:read", Level::Read, Effect::Read), &over)
    else {
        panic!("let through");
    };
    assert_eq!((reason.0.code, reason.0.retry_after_ms), (Code::RateLimited, Some(10_000)));
}

#[test]
fn whose_rate_is_used_up_is_said() {
    for (exceeded, whose) in
        [(RateExceeded::Tenant(10), "tenant's limit of 10"), (RateExceeded::Caller(7), "caller's share")]
    {
        let DenyReason(failure, _) = over_rate(exceeded);
        assert_eq!((failure.code, failure.retry_after_ms), (Code::RateLimited, Some(10_000)));
        assert!(failure.message.contains(whose), "{failure:?}");
    }
}

#[test]
fn a_refusal_to_load_names_what_is_missing() {
    let wanted = [(ToolsetName::parse("k8s").unwrap(), Level::Write)];
    let load = |scope, tenant, session| {
        decide_load(&policy(tenant, "-"), &call(scope, Level::Read, Effect::Read).caller, session, &wanted)
            .map_err(|r| (r.0.code, r.0.message))
    };
    assert_eq!(load("tools:write", SessionMode::Write, SessionMode::Write), Ok(()));
    assert_eq!(load("tools:read", SessionMode::Write, SessionMode::Write).unwrap_err().0, Code::InsufficientScope);
    assert!(load("tools:write", SessionMode::Read, SessionMode::Write).unwrap_err().1.contains("tenant"));
    assert!(load("tools:write", SessionMode::Write, SessionMode::Read).unwrap_err().1.contains("session"));
}

/// The evidence of a run that this person approved, out of as many as it wants.
fn approved(call: &Call, deciders: u32) -> Option<CallEvidence> {
    let at = Moment::from_secs(7);
    let by = Principal::new("i", "ana");
    let answer = Answer { by, verdict: Verdict::Approve, reason: None, at, span: None };
    let asked = RunRequest { deciders, ..RunRequest::new(call, at) };
    CallEvidence::of_approved_run(&Run { answers: vec![answer], ..Run::new(run(), asked) }, &NoSwitches)
}

fn run() -> RunId {
    RunId::from_random([7; 16])
}

#[test]
fn a_yes_opens_exactly_the_call_it_was_given_to() {
    let call = |arguments| {
        let used = used(Level::Write, Effect::Disrupt, arguments);
        Call::new(CallId::from_random([1; 16]), caller("tools:write"), None, used)
    };
    let evidence = approved(&call("{}"), 1).unwrap();
    let Decision::Permit(permit) = decide(&policy(SessionMode::Write, "-"), call("{}"), &evidence) else {
        panic!("the approved call is refused");
    };
    assert_eq!((permit.extent(), permit.run()), (PermitMode::Act, Some(run())));
    let preview = permit.for_preview();
    assert_eq!(
        (preview.extent(), preview.run()),
        (PermitMode::Rehearse, Some(run())),
        "what it gives away can only look"
    );
    assert!(matches!(decide(&policy(SessionMode::Write, "-"), call("{\"a\":1}"), &evidence), Decision::Ask(..)));
    let plain = self::evidence(Some(Level::Write), SessionMode::Write);
    assert!(matches!(decide(&policy(SessionMode::Write, "-"), call("{}"), &plain), Decision::Ask(..)));
}

#[test]
fn a_run_that_too_few_approved_is_no_evidence() {
    let call = call("tools:write", Level::Write, Effect::Change);
    assert!(approved(&call, 1).is_some());
    assert!(approved(&call, 2).is_none());
    let nobody = Run::new(run(), RunRequest { deciders: 0, ..RunRequest::new(&call, Moment::from_secs(7)) });
    assert!(CallEvidence::of_approved_run(&nobody, &NoSwitches).is_none());
}

#[test]
fn a_rule_that_tightened_after_the_yes_still_refuses() {
    let call = || call("tools:write", Level::Write, Effect::Change);
    let evidence = approved(&call(), 1).unwrap();
    assert!(matches!(decide(&policy(SessionMode::Write, "deny"), call(), &evidence), Decision::Deny(_)));
    assert!(matches!(decide(&policy(SessionMode::Read, "-"), call(), &evidence), Decision::Deny(_)));
}

#[test]
fn a_stopped_session_reads_on_and_changes_nothing() {
    let stopped = |effect| {
        let call = call("tools:write", Level::Write, effect);
        let evidence = CallEvidence { stopped: true, ..approved(&call, 1).unwrap() };
        decide(&policy(SessionMode::Write, "-"), call, &evidence)
    };
    assert!(matches!(stopped(Effect::Read), Decision::Permit(_)));
    assert!(matches!(stopped(Effect::Change), Decision::Deny(_)));
    assert!(matches!(stopped(Effect::Disrupt), Decision::Deny(_)));
}

#[test]
fn a_control_tool_is_judged_by_scope_and_rate_and_by_no_rule() {
    let names = || (ToolName::parse("k8s_get").unwrap(), ToolsetName::parse("virtual").unwrap());
    let decided = |scope, evidence: &CallEvidence| {
        let call = Call::of_control_tool(CallId::from_random([1; 16]), caller(scope), None, names(), "{}");
        // Rules that would match the call, whatever it is about.
        let every = || Pattern::parse("*").unwrap();
        let ask = Gate { pattern: every(), on_reject: OnReject::Fail };
        [(vec![every()], vec![]), (vec![], vec![ask]), (vec![], vec![])].map(|(deny, require_approval)| {
            let policy = Policy { deny, require_approval, ..policy(SessionMode::Read, "-") };
            word(&decide(&policy, call.clone(), evidence))
        })
    };
    let nothing = evidence(None, SessionMode::Read);
    assert_eq!(decided("tools:read", &nothing), ["permit"; 3]);
    assert_eq!(decided("runs:decide", &nothing), ["insufficient_scope"; 3]);
    let over = CallEvidence { calls_this_minute: 11, ..nothing };
    assert_eq!(decided("tools:read", &over), ["rate_limited"; 3]);
}

#[test]
fn what_is_explained_is_what_would_be_decided() {
    for scope in SCOPES {
        for effect in [Effect::Read, Effect::Change, Effect::Disrupt] {
            for rule in RULES {
                let (policy, call) = (policy(SessionMode::Write, rule), call(scope, Level::Write, effect));
                let explained = match explain(&policy, &call, SessionMode::Write, &[]) {
                    Explanation::Allowed => "permit".to_owned(),
                    Explanation::Asks(Question::Rule) => "ask (rule)".to_owned(),
                    Explanation::Asks(Question::Effect(_)) => "ask".to_owned(),
                    Explanation::Denied(reason) => reason.0.code.as_str().to_owned(),
                };
                assert_eq!(explained, word(&decide(&policy, call, &evidence(Some(Level::Write), SessionMode::Write))));
            }
        }
    }
}

#[test]
fn of_several_rules_the_strictest_says_what_a_no_means() {
    let gate = |text: &str, on_reject| Gate { pattern: Pattern::parse(text).unwrap(), on_reject };
    let asked = |gates: Vec<Gate>| {
        let policy = Policy { require_approval: gates, ..policy(SessionMode::Write, "-") };
        on_reject(&policy, &call("tools:write", Level::Write, Effect::Change))
    };
    assert_eq!(asked(vec![]), OnReject::Continue);
    assert_eq!(asked(vec![gate("k8s_*", OnReject::Continue), gate("k8s_get", OnReject::Fail)]), OnReject::Fail);
    assert_eq!(asked(vec![gate("helm_*", OnReject::Fail), gate("k8s_get", OnReject::Continue)]), OnReject::Continue);
}

#[test]
fn the_rule_that_asks_or_refuses_is_named() {
    let asked = call("tools:write", Level::Write, Effect::Change);
    let rule = Pattern::parse("k8s_get:secrets").unwrap();
    assert_eq!(asking_rule(&policy(SessionMode::Write, "ask"), &asked), Some(&rule));
    assert_eq!(asking_rule(&policy(SessionMode::Write, "-"), &asked), None);
    let of = |about| asking_rule_of(&policy(SessionMode::Write, "ask"), "k8s_get", about).cloned();
    assert_eq!((of(Some("secrets")), of(Some("pods"))), (Some(rule.clone()), None));
    let refused = |rule| {
        decide(&policy(SessionMode::Write, rule), asked.clone(), &evidence(Some(Level::Write), SessionMode::Write))
    };
    assert!(matches!(refused("deny"), Decision::Deny(DenyReason(_, Some(named))) if named == rule));
    assert!(matches!(refused("-"), Decision::Ask(..)));
}

fn switch(on: &str, mode: domain::SwitchMode, owner: domain::SwitchOwner) -> domain::Switch {
    domain::Switch {
        tenant: None,
        on: domain::SwitchSubject::parse(on).unwrap(),
        mode,
        reason: "the disks are full".into(),
        owner,
        by: domain::Principal::new("i", "olga"),
        from: domain::Tenant::parse("ops").unwrap(),
        at: domain::Moment::from_secs(1),
        until: Some(domain::Moment::from_secs(1_763_280_000)),
    }
}

#[test]
fn a_switch_refuses_and_says_why_by_whom_and_until_when() {
    use domain::{SwitchMode, SwitchOwner};
    let refused = |mode, effect| {
        let switches = vec![switch("toolset:k8s", mode, SwitchOwner::Operator)];
        let evidence = CallEvidence { switches, ..evidence(Some(Level::Write), SessionMode::Write) };
        match decide(&policy(SessionMode::Write, "-"), call("tools:write", Level::Write, effect), &evidence) {
            Decision::Deny(reason) => Some(reason.0),
            Decision::Permit(_) | Decision::Ask(..) => None,
        }
    };
    let stopped = refused(SwitchMode::Stop, Effect::Read).unwrap();
    assert_eq!(stopped.code, Code::SwitchedOff);
    assert_eq!(
        stopped.message,
        "toolset:k8s was switched to stopped by the operator of the service, until 2025-11-16T08:00:00Z: the disks are full"
    );
    assert!(stopped.next.is_some() && !stopped.message.contains("olga"));
    assert_eq!(stopped.details.unwrap()["mode"], "stop");
    let asks = refused(SwitchMode::ReadOnly, Effect::Change).unwrap();
    assert_eq!(asks.code, Code::SwitchedReadOnly, "also what would only have waited for a person");
    assert_eq!(refused(SwitchMode::ReadOnly, Effect::Read), None);
}

#[test]
fn an_approval_does_not_open_what_is_switched() {
    use domain::{SwitchMode, SwitchOwner};
    let call = call("tools:write", Level::Write, Effect::Change);
    let switches = vec![switch("tenant", SwitchMode::ReadOnly, SwitchOwner::TenantAdmin)];
    let evidence = CallEvidence { switches, ..approved(&call, 1).unwrap() };
    let Decision::Deny(reason) = decide(&policy(SessionMode::Write, "-"), call, &evidence) else {
        panic!("let through")
    };
    assert_eq!(reason.0.code, Code::SwitchedReadOnly);
}

#[test]
fn what_nobody_can_record_may_read_and_nothing_else() {
    let loaded: LoadedToolsets = [(ToolsetName::parse("k8s").unwrap(), Level::Write)].into_iter().collect();
    let evidence = CallEvidence::of_unrecorded_read(&NoSwitches, loaded);
    let decided = |needs, effect, rule| {
        word(&decide(&policy(SessionMode::Write, rule), call("tools:read tools:write", needs, effect), &evidence))
    };
    assert_eq!(decided(Level::Read, Effect::Read, "-"), "permit");
    assert_eq!(decided(Level::Read, Effect::Read, "deny"), "policy_denied", "rules hold as ever");
    for rule in RULES {
        assert_ne!(decided(Level::Write, Effect::Read, rule), "permit", "a tool of the write list may write: {rule}");
        for (needs, effect) in [Level::Read, Level::Write]
            .into_iter()
            .flat_map(|needs| [Effect::Change, Effect::Disrupt].map(|effect| (needs, effect)))
        {
            assert_eq!(decided(needs, effect, rule), "store_unavailable", "{needs:?} {effect:?} {rule}");
        }
    }
    assert_eq!(decided(Level::Read, Effect::Read, "ask"), "store_unavailable", "nobody can be asked");
    let tool = (ToolName::parse("load_toolset").unwrap(), ToolsetName::parse("virtual").unwrap());
    let control = Call::of_control_tool(CallId::from_random([1; 16]), caller("tools:read"), None, tool, "{}");
    assert_eq!(word(&decide(&policy(SessionMode::Write, "-"), control, &evidence)), "store_unavailable");
}

#[test]
fn an_approval_opens_nothing_that_nobody_can_record() {
    let call = call("tools:write", Level::Write, Effect::Change);
    let evidence = CallEvidence { recorded: false, ..approved(&call, 1).unwrap() };
    assert_eq!(word(&decide(&policy(SessionMode::Write, "-"), call, &evidence)), "store_unavailable");
}
