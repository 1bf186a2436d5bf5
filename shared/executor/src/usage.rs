//! What callers use, added up in this process until somebody writes it down.

use catalog::{Catalog, ControlTool};
use domain::usage::{UsageCount, UsageDay, UsagePlace};
use domain::{Call, Caller, Principal, SessionId, Tenant};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What was used since it was last taken. A tenant that is idle has nothing here.
#[derive(Default)]
pub struct UsageRecorder(Mutex<HashMap<Tenant, UsageDay>>);

impl UsageRecorder {
    /// Notes a call that was carried out, or an executed run: the tokens of its result, or none if it failed.
    pub(crate) fn call(&self, call: &Call, tokens: Option<u64>, took: Duration) {
        let (tokens, errors) = (tokens.unwrap_or(0), u64::from(tokens.is_none()));
        // What `load_toolset` answers is schemas.
        let loads = call.is_control() && call.tool.as_str() == ControlTool::LoadToolset.name();
        let (schema_tokens, result_tokens) = if loads { (tokens, 0) } else { (0, tokens) };
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let count = UsageCount { calls: 1, errors, millis, result_tokens, schema_tokens, ..UsageCount::default() };
        let tool = Some((call.tool.as_str(), call.toolset.as_str()));
        self.note(&call.caller, call.session, tool, &count);
    }

    /// Notes a list of tools that was handed out; the pages behind the first one belong to the same list.
    pub fn list(&self, caller: &Caller, session: Option<SessionId>, catalog: &Catalog, listed: u32, first: bool) {
        let whole = if first { catalog.entries().iter().map(|entry| u64::from(entry.tokens())).sum() } else { 0 };
        let count = UsageCount {
            lists: u64::from(first),
            schema_tokens: u64::from(listed),
            whole_tokens: whole,
            ..UsageCount::default()
        };
        self.note(caller, session, None, &count);
    }

    /// Takes what was noted.
    pub fn take(&self) -> HashMap<Tenant, UsageDay> {
        std::mem::take(&mut *self.lock())
    }

    /// Puts back what could not be written down.
    pub fn put_back(&self, tenant: &Tenant, usage: &UsageDay) {
        self.lock().entry(tenant.clone()).or_default().merge(usage);
    }

    fn note(&self, caller: &Caller, session: Option<SessionId>, tool: Option<(&str, &str)>, count: &UsageCount) {
        let (principal, session) = (shown(&caller.principal), session.map(|id| id.to_string()));
        let place = UsagePlace { tool, principal: &principal, session: session.as_deref() };
        let mut tenants = self.lock();
        match tenants.get_mut(&caller.tenant) {
            Some(day) => day.note(place, count),
            None => tenants.entry(caller.tenant.clone()).or_default().note(place, count),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Tenant, UsageDay>> {
        // Sums are whole after every statement, so a panic elsewhere leaves them usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Issuer and subject, as the audit log names them.
fn shown(principal: &Principal) -> String {
    format!("{} {}", principal.issuer, principal.subject)
}
