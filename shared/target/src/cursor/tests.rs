use super::*;
use crate::codes;
use domain::{
    Call, CallId, Caller, Effect, Level, OpenedCall, Principal, Scopes, Session, SessionId, SessionMode, Tenant,
    ToolName, ToolUse, ToolsetName,
};
use policy::{CallEvidence, Decision, Policy, decide};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

struct Who {
    tenant: &'static str,
    subject: &'static str,
    session: u8,
    tool: &'static str,
}

const WHO: Who = Who { tenant: "acme", subject: "agent", session: 1, tool: "k8s_get" };

fn permit(who: &Who) -> Permit {
    let toolset = ToolsetName::parse("k8s").unwrap();
    let caller = Caller {
        tenant: Tenant::parse(who.tenant).unwrap(),
        principal: Principal::new("https://login.example", who.subject),
        scopes: Scopes::parse("tools:read"),
        expires_at: Moment::from_secs(9),
        token: None,
        labels: Vec::new(),
    };
    let used = ToolUse {
        tool: ToolName::parse(who.tool).unwrap(),
        toolset: toolset.clone(),
        needs: Level::Read,
        effect: Effect::Read,
        about: None,
        schema: "",
        arguments: "{}",
    };
    let session = Some(SessionId::from_random([who.session; 16]));
    let call = Call::new(CallId::from_random([1; 16]), Arc::new(caller), session, used);
    let evidence = CallEvidence::of_address(&Opened, [(toolset, Level::Read)].into_iter().collect());
    let policy = Policy { mode: SessionMode::Read, deny: vec![], require_approval: vec![], calls_per_minute: 10 };
    match decide(&policy, call, &evidence) {
        Decision::Permit(permit) => permit,
        other @ (Decision::Ask(..) | Decision::Deny(_)) => panic!("{other:?}"),
    }
}

/// A call whose audit entry counts as open: the first of its minute, without a session.
struct Opened;

impl domain::KnownSwitches for Opened {
    fn switches(&self) -> &[domain::Switch] {
        &[]
    }
}

impl OpenedCall for Opened {
    fn session(&self) -> Option<&Session> {
        None
    }

    fn calls_this_minute(&self) -> u64 {
        1
    }

    fn is_stopped(&self) -> bool {
        false
    }
}

fn cursors() -> (Cursors, Arc<AtomicU64>) {
    let now = Arc::new(AtomicU64::new(1_000_000));
    let clock = Arc::clone(&now);
    (Cursors::with_clock([7; 32], Arc::new(move || Moment::from_millis(clock.load(Ordering::Relaxed)))), now)
}

fn cursor(text: &str) -> Cursor {
    Cursor::try_from(text.to_owned()).unwrap()
}

#[test]
fn a_cursor_leads_its_own_caller_on_and_does_not_count_itself() {
    let (cursors, _) = cursors();
    let place = json!({ "c": "native-token", "o": 7 });
    let text = cursors.seal(&permit(&WHO), &json!({ "kind": "Pod", "name": null }), &place).unwrap();
    let again = json!({ "kind": "Pod", "cursor": text });
    assert_eq!(cursors.open::<Value>(&permit(&WHO), &again, &cursor(&text)).unwrap(), place);
}

#[test]
fn nobody_else_and_no_other_call_can_go_on_with_it() {
    let (cursors, _) = cursors();
    let args = json!({ "kind": "Pod" });
    let text = cursors.seal(&permit(&WHO), &args, &1).unwrap();
    let code =
        |who: &Who, args: &Value, text: &str| cursors.open::<u8>(&permit(who), args, &cursor(text)).unwrap_err().code;
    for other in [
        Who { tenant: "bolt", ..WHO },
        Who { subject: "other", ..WHO },
        Who { session: 2, ..WHO },
        Who { tool: "k8s_logs", ..WHO },
    ] {
        assert_eq!(code(&other, &args, &text), codes::CURSOR_MISMATCH);
    }
    assert_eq!(code(&WHO, &json!({ "kind": "Secret" }), &text), codes::CURSOR_MISMATCH);
    assert_eq!(code(&WHO, &args, "AAAA"), codes::CURSOR_MISMATCH);
    let foreign = Cursors::with_clock([8; 32], Arc::new(|| Moment::from_millis(1_000_000)));
    let theirs = foreign.seal(&permit(&WHO), &args, &1).unwrap();
    assert_eq!(code(&WHO, &args, &theirs), codes::CURSOR_MISMATCH);
}

#[test]
fn no_changed_byte_goes_unnoticed() {
    let (cursors, _) = cursors();
    let args = json!({ "kind": "Pod" });
    let bytes = URL_SAFE_NO_PAD.decode(cursors.seal(&permit(&WHO), &args, &"place").unwrap()).unwrap();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        let text = URL_SAFE_NO_PAD.encode(changed);
        let opened = cursors.open::<String>(&permit(&WHO), &args, &cursor(&text));
        assert_eq!(opened.unwrap_err().code, codes::CURSOR_MISMATCH, "byte {at}");
    }
}

#[test]
fn it_ends_after_ten_minutes_by_the_given_clock() {
    let (cursors, now) = cursors();
    let args = json!({});
    let text = cursors.seal(&permit(&WHO), &args, &1).unwrap();
    now.fetch_add(600_000, Ordering::Relaxed);
    assert_eq!(cursors.open::<u8>(&permit(&WHO), &args, &cursor(&text)), Ok(1));
    now.fetch_add(1, Ordering::Relaxed);
    assert_eq!(cursors.open::<u8>(&permit(&WHO), &args, &cursor(&text)).unwrap_err().code, codes::CURSOR_EXPIRED);
}

#[test]
fn what_is_no_cursor_is_refused_before_it_is_read() {
    for bad in ["", "a b", "a=", "../x", "a\n", &"a".repeat(MOST_BYTES + 1)] {
        assert!(Cursor::try_from(bad.to_owned()).is_err(), "{bad:.10}");
    }
}
