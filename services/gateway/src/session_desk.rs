//! What people do with the sessions of their tenant: the REST API and the console call these and nothing else.
//!
//! Whoever reads the audit log, or administers the tenant, sees all sessions; ending one is for administrators. What a session
//! was last used for stands in the audit log, and how often it was used in the usage of the last days; the record
//! itself is not written at each call.

use crate::app::Gateway;
use crate::http::caller::{AuthedRequest, administers, audits};
use crate::protocol::list::{self, ListForm};
use catalog::ListAudience;
use domain::usage::{UsageDay, UsageGroup};
use domain::{Code, Failure, Moment, Session, SessionId};
use std::collections::HashMap;
use store::{StoreError, UsageDate};

/// Sessions on one page.
const PAGE: usize = 50;
/// How many of the newest entries of the audit log are looked through for the last use.
const LOOKED_AT: usize = 1_000;
const DAY_MILLIS: u64 = 24 * 60 * 60 * 1_000;

/// A session, and what it is used for.
pub(crate) struct SessionInUse {
    /// The session.
    pub(crate) session: Session,
    /// What its list of tools costs a model.
    pub(crate) tokens: u32,
    /// When the audit log last mentions it, among its newest entries.
    pub(crate) last_used: Option<Moment>,
    /// Its calls of today and yesterday; `None` if they were counted together with others.
    pub(crate) calls: Option<u64>,
}

/// One page of sessions.
pub(crate) struct SessionsInUse {
    /// The sessions, those that were opened last first.
    pub(crate) sessions: Vec<SessionInUse>,
    /// Behind which session the next page begins.
    pub(crate) next: Option<SessionId>,
    /// Whether there are more than the list goes through.
    pub(crate) cut: bool,
}

/// Checks that the caller may see the sessions of others.
pub(crate) fn may_look(authed: &AuthedRequest) -> Result<(), Failure> {
    administers(authed).or_else(|_| audits(authed))
}

/// A page of the open sessions of the tenant.
pub(crate) async fn list(
    gateway: &Gateway,
    authed: &AuthedRequest,
    after: Option<&str>,
) -> Result<SessionsInUse, Failure> {
    may_look(authed)?;
    let unknown = |_| Failure::new(Code::BadCursor, "after is no next_cursor of an earlier page");
    let after = after.map(SessionId::parse).transpose().map_err(unknown)?;
    let store = gateway.store.of(&authed.caller.tenant);
    let page = store.sessions().list(after, gateway.lives, PAGE).await.map_err(|error| unread(&error))?;
    let last_used = last_used(gateway, authed).await;
    let usage = usage(gateway, authed, page.now).await;
    let catalog = &authed.snapshot.catalog;
    let in_use = |session: Session| {
        let id = session.id.to_string();
        let view = ListAudience::Growing { grown: session.grown };
        let rows = usage.as_ref().map(|day| day.rows(UsageGroup::Session));
        let row = rows.and_then(|rows| rows.get(&id));
        let together = rows.is_some_and(|rows| rows.contains_key(domain::usage::OTHER));
        SessionInUse {
            tokens: list::whole(gateway, catalog, &session.loaded, view, ListForm::RestMcp).tokens,
            last_used: last_used.get(&id).copied(),
            calls: row.map(|count| count.calls).or((rows.is_some() && !together).then_some(0)),
            session,
        }
    };
    Ok(SessionsInUse { sessions: page.sessions.into_iter().map(in_use).collect(), next: page.next, cut: page.cut })
}

/// When the newest entries of the audit log mention which session. What cannot be read tells nothing.
async fn last_used(gateway: &Gateway, authed: &AuthedRequest) -> HashMap<String, Moment> {
    let audit = gateway.store.of(&authed.caller.tenant).audit();
    let entries = audit.page_back(None, LOOKED_AT).await.unwrap_or_default();
    let mut last = HashMap::new();
    for noted in entries {
        if let Some(session) = noted.entry["session"].as_str() {
            last.entry(session.to_owned()).or_insert(noted.id.item.at);
        }
    }
    last
}

/// What was used today and yesterday.
async fn usage(gateway: &Gateway, authed: &AuthedRequest, now: Moment) -> Option<UsageDay> {
    gateway.usage.write(gateway).await;
    let yesterday = Moment::from_millis(now.millis().saturating_sub(DAY_MILLIS));
    let days = [UsageDate::of(yesterday), UsageDate::of(now)];
    let found = gateway.store.of(&authed.caller.tenant).used().days(&days).await.ok()?;
    Some(found.iter().fold(UsageDay::default(), |mut all, day| {
        all.merge(day);
        all
    }))
}

/// Ends a session of anybody in the tenant. Its agent opens another one, or is told to.
pub(crate) async fn end(gateway: &Gateway, authed: &AuthedRequest, id: &str) -> Result<(), Failure> {
    administers(authed)?;
    let id = SessionId::parse(id).map_err(|_| Failure::new(Code::NotFound, "no such session; it may be over"))?;
    gateway.executor.end_session(&authed.caller, id).await?;
    tracing::info!(session = %id, "a person ended a session");
    Ok(())
}

fn unread(error: &StoreError) -> Failure {
    Failure::new(error.code(), "the sessions cannot be read at the moment").retry_after_ms(1_000)
}
