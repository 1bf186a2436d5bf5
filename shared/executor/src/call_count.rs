//! What is counted of a call, once, however it ends: a call whose client vanished is dropped and counted too. The same
//! facts are noted on its span.

use crate::open_call::OpenCall;
use crate::perform::tool_type;
use domain::{Caller, Code, Outcome};
use std::sync::Arc;
use telemetry::metrics::{self, GaugeGuard};
use telemetry::names;

/// A call that is under way.
pub(crate) struct CallCount<'s> {
    caller: Arc<Caller>,
    toolset: &'s str,
    effect: &'static str,
    decision: &'static str,
    code: &'static str,
    in_flight: Option<GaugeGuard<1>>,
}

impl<'s> CallCount<'s> {
    /// A call of which nothing is known yet.
    pub(crate) fn new(caller: &Arc<Caller>) -> CallCount<'s> {
        let (toolset, effect, decision, code) = ("", "", "", Code::Cancelled.as_str());
        CallCount { caller: Arc::clone(caller), toolset, effect, decision, code, in_flight: None }
    }

    /// It is of a tool of this toolset.
    pub(crate) fn of_toolset(&mut self, toolset: &'s str) {
        self.toolset = toolset;
        telemetry::note(|span| {
            span.set(names::TOOLSET, toolset);
        });
        self.in_flight = Some(metrics::CALLS_IN_FLIGHT.enter([toolset]));
    }

    /// It would do this.
    pub(crate) fn effect(&mut self, effect: domain::Effect) {
        self.effect = effect.as_str();
    }

    /// This was decided: permit, ask or deny.
    pub(crate) fn decided(&mut self, decision: &policy::Decision, open: &OpenCall) {
        self.decision = match decision {
            policy::Decision::Permit(_) => "permit",
            policy::Decision::Ask(..) => "ask",
            policy::Decision::Deny(_) => "deny",
        };
        telemetry::note(|span| {
            span.set(names::EFFECT, self.effect).set(names::DECISION, self.decision);
            span.set(names::GEN_AI_TOOL_TYPE, tool_type(self.toolset)).show(names::GEN_AI_TOOL_CALL_ID, open.call());
            if let Some(held) = &open.held {
                span.set(names::SESSION_MODE, held.session.mode.as_str());
                span.set(names::SESSION_TAINTED, held.session.tainted);
            }
            if let Some(basis) = open.basis() {
                span.set(names::BASIS, basis);
            }
        });
    }

    /// It ended.
    pub(crate) fn ended(&mut self, outcome: &Outcome) {
        self.code = outcome.failure().map_or("ok", |failure| failure.code.as_str());
    }
}

impl Drop for CallCount<'_> {
    fn drop(&mut self) {
        let tenant = metrics::tenant_label(self.caller.tenant.as_str());
        metrics::CALLS.add([self.toolset, self.effect, self.decision, self.code, tenant], 1);
    }
}
