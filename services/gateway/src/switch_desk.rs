//! What people do with kill switches, whichever door they come in by: the REST API and the console call these and nothing
//! else. A tenant's admin has those of the tenant; the operator has those of every tenant. Neither lifts what the other
//! has set.
//!
//! The audit log has the entry before the switch is set or lifted, so that none is set unrecorded.

use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use crate::http::switches::{SwitchList, SwitchRequest, SwitchView};
use crate::switches::{entry, record};
use catalog::{NameMatch, ToolSource};
use domain::switch::LONGEST_REASON;
use domain::{Code, Failure, Moment, Switch, SwitchOwner, SwitchSubject, Tenant, TokenScope, text::is_tricky};
use executor::Snapshot;
use serde_json::json;
use store::{StoreError, SwitchChange};

/// Names all tenants.
const EVERY_TENANT: &str = "*";

/// On whose side a caller may act.
struct SwitchRights {
    admin: bool,
    operator: bool,
}

impl SwitchRights {
    fn of(authed: &AuthedRequest) -> Result<SwitchRights, Failure> {
        let scopes = authed.caller.scopes;
        let (admin, operator) = (scopes.allow(TokenScope::TenantAdmin), scopes.allow(TokenScope::OperatorSwitch));
        let message = if !admin && !operator {
            "the token has neither the scope tenant:admin nor operator:switch"
        } else if scopes.allow(TokenScope::ToolsRead) {
            "a token that may call tools is no person's, and only people set kill switches"
        } else {
            return Ok(SwitchRights { admin, operator });
        };
        let scope = json!({ "scope": TokenScope::TenantAdmin.as_str() });
        Err(Failure::new(Code::InsufficientScope, message).details(scope))
    }

    fn sees(&self, switch: &Switch, authed: &AuthedRequest) -> bool {
        self.operator || switch.tenant.as_ref().is_none_or(|tenant| *tenant == authed.caller.tenant)
    }

    fn lifts(&self, owner: SwitchOwner, tenant: &str, authed: &AuthedRequest) -> bool {
        match owner {
            SwitchOwner::Operator => self.operator,
            SwitchOwner::TenantAdmin => self.admin && tenant == authed.caller.tenant.as_str(),
            SwitchOwner::Service => false,
        }
    }
}

/// The switches that the caller may see.
pub(crate) async fn list(gateway: &Gateway, authed: &AuthedRequest) -> Result<SwitchList, Failure> {
    let rights = SwitchRights::of(authed)?;
    let switches = gateway.store.switches();
    switches.refresh().await.map_err(|error| stored(&error))?;
    let mut seen: Vec<Switch> = switches.all().into_iter().filter(|switch| rights.sees(switch, authed)).collect();
    seen.sort_by_key(|switch| (switch.tenant.clone(), switch.on.clone(), switch.owner));
    let shown = seen.iter().map(|switch| view(switch, &rights)).collect();
    Ok(SwitchList { switches: shown, authentic: switches.is_good() })
}

/// Whether the caller may lift a switch; that is judged again when it is lifted.
pub(crate) fn may_lift(authed: &AuthedRequest, switch: &SwitchView) -> bool {
    SwitchRights::of(authed).is_ok_and(|rights| rights.lifts(switch.by, &switch.tenant, authed))
}

/// Checks that the caller may set switches.
pub(crate) fn may_set(authed: &AuthedRequest) -> Result<(), Failure> {
    SwitchRights::of(authed).map(drop)
}

/// Sets a switch, in the place of the caller's own on the same thing.
pub(crate) async fn set(
    gateway: &Gateway,
    authed: &AuthedRequest,
    wanted: SwitchRequest,
) -> Result<SwitchView, Failure> {
    let rights = SwitchRights::of(authed)?;
    let switch = made(gateway, authed, &rights, wanted).await?;
    note(gateway, authed, &switch, "set").await?;
    let changed = gateway.store.switches().set(switch.clone(), rights.operator).await;
    finished(gateway, authed, &switch, changed).await?;
    tracing::warn!(switch = switch.id(), on = %switch.on, mode = switch.mode.as_str(), "a kill switch was set");
    let warnings = unmatched(&authed.snapshot, &switch, &authed.caller.tenant);
    Ok(SwitchView { warnings, ..view(&switch, &rights) })
}

/// Lifts a switch.
pub(crate) async fn lift(gateway: &Gateway, authed: &AuthedRequest, id: &str) -> Result<SwitchView, Failure> {
    let rights = SwitchRights::of(authed)?;
    let switches = gateway.store.switches();
    switches.refresh().await.map_err(|error| stored(&error))?;
    let found = switches.all().into_iter().find(|switch| switch.id() == id && rights.sees(switch, authed));
    let switch = found.ok_or_else(absent)?;
    if !rights.lifts(switch.owner, tenant_of(&switch), authed) {
        let message = format!("this switch was set by {}, and only that side lifts it", switch.owner.in_words());
        let scope = match switch.owner {
            SwitchOwner::Operator | SwitchOwner::Service => TokenScope::OperatorSwitch,
            SwitchOwner::TenantAdmin => TokenScope::TenantAdmin,
        };
        return Err(Failure::new(Code::InsufficientScope, message).details(json!({ "scope": scope.as_str() })));
    }
    note(gateway, authed, &switch, "lift").await?;
    let changed = switches.lift(id, rights.operator).await;
    finished(gateway, authed, &switch, changed).await?;
    tracing::warn!(switch = switch.id(), on = %switch.on, "a kill switch was lifted");
    Ok(view(&switch, &rights))
}

/// The switch that is wanted, if the caller may have it and it means something.
async fn made(
    gateway: &Gateway,
    authed: &AuthedRequest,
    rights: &SwitchRights,
    wanted: SwitchRequest,
) -> Result<Switch, Failure> {
    let invalid = |message: String| Failure::new(Code::InvalidRequest, message);
    let SwitchRequest { on, mode, reason, tenant, until, lasts } = wanted;
    let on = SwitchSubject::parse(&on).map_err(|error| invalid(error.to_string()))?;
    let reason = reason.trim().to_owned();
    if !(1..=LONGEST_REASON).contains(&reason.len()) || reason.chars().any(|c| c.is_control() || is_tricky(c)) {
        return Err(invalid(format!("a reason has 1 to {LONGEST_REASON} bytes in one line of visible characters")));
    }
    let own = &authed.caller.tenant;
    let tenant = match tenant.as_deref() {
        None => Some(own.clone()),
        Some(EVERY_TENANT) => None,
        Some(name) => Some(Tenant::parse(name).map_err(|error| invalid(error.to_string()))?),
    };
    if !rights.operator && tenant.as_ref() != Some(own) {
        let message = "only the operator sets switches for other tenants";
        let scope = json!({ "scope": TokenScope::OperatorSwitch.as_str() });
        return Err(Failure::new(Code::InsufficientScope, message).details(scope));
    }
    if tenant.as_ref().is_some_and(|tenant| !gateway.tenants.knows(tenant)) {
        return Err(Failure::new(Code::NotFound, "no tenant of that name is served here"));
    }
    let now = gateway.store.now().await.map_err(|error| stored(&error))?;
    let until = match (until, lasts) {
        (None, None) => None,
        (Some(text), None) => {
            Some(Moment::parse(&text).ok_or_else(|| invalid("until is a time in RFC 3339".to_owned()))?)
        }
        (None, Some(lasts)) => Some(now.plus(lasts)),
        (Some(_), Some(_)) => return Err(invalid("until and for cannot both be meant".to_owned())),
    };
    if until.is_some_and(|until| until <= now) {
        return Err(invalid("the switch would have ended already".to_owned()));
    }
    let owner = if rights.operator { SwitchOwner::Operator } else { SwitchOwner::TenantAdmin };
    let (by, from) = (authed.caller.principal.clone(), own.clone());
    Ok(Switch { tenant, on, mode, reason, owner, by, from, at: now, until })
}

/// Puts what is about to happen into the audit logs that it concerns.
async fn note(
    gateway: &Gateway,
    authed: &AuthedRequest,
    switch: &Switch,
    verdict: &'static str,
) -> Result<(), Failure> {
    let entry = entry(gateway.executor.person(&authed.caller), switch, verdict, Some(&authed.trace_id));
    record(gateway, switch, &authed.caller.tenant, &entry).await.map_err(|error| stored(&error))
}

/// What became of a change. One that did not happen is said so in the audit logs, which have that it was about to.
async fn finished(
    gateway: &Gateway,
    authed: &AuthedRequest,
    switch: &Switch,
    changed: Result<SwitchChange, StoreError>,
) -> Result<(), Failure> {
    let failure = match changed {
        Ok(SwitchChange::Done) => return Ok(()),
        Ok(SwitchChange::Absent) => absent(),
        Ok(SwitchChange::TooMany) => {
            Failure::new(Code::QuotaExceeded, "as many kill switches are set as may be").next("lift one of them")
        }
        Err(error) => stored(&error),
    };
    if note(gateway, authed, switch, "failed").await.is_err() {
        tracing::error!(
            switch = switch.id(),
            "a kill switch was not changed, and the audit log says that it was about to"
        );
    }
    Err(failure)
}

fn absent() -> Failure {
    Failure::new(Code::NotFound, "there is no such switch").next("list the switches")
}

fn stored(error: &StoreError) -> Failure {
    let message = if matches!(error, StoreError::NotAuthentic { .. }) {
        "the record of the kill switches is not authentic; only the operator writes over it"
    } else {
        "the kill switches cannot be read or changed at the moment"
    };
    Failure::new(error.code(), message).retry_after_ms(1_000)
}

/// What a person should know who switched something that is not there.
fn unmatched(snapshot: &Snapshot, switch: &Switch, own: &Tenant) -> Vec<&'static str> {
    let mut entries = snapshot.catalog.entries().iter();
    let is_there = match &switch.on {
        // Neither are targets listed here, nor the tools of others.
        _ if switch.tenant.as_ref() != Some(own) => true,
        SwitchSubject::Tenant | SwitchSubject::Target(_) => true,
        SwitchSubject::Toolset(set) => entries.any(|entry| entry.definition().toolset == *set),
        SwitchSubject::Tool(tool) => !matches!(snapshot.catalog.find(tool.as_str()), NameMatch::Nothing),
        SwitchSubject::Server(id) => entries.any(|entry| match &entry.definition().source {
            ToolSource::Server { id: server, .. } => server.as_str() == id,
            ToolSource::BuiltIn => false,
        }),
    };
    if is_there { Vec::new() } else { vec!["no tool of the tenant is concerned at the moment"] }
}

fn tenant_of(switch: &Switch) -> &str {
    switch.tenant.as_ref().map_or(EVERY_TENANT, Tenant::as_str)
}

fn view(switch: &Switch, rights: &SwitchRights) -> SwitchView {
    let told = rights.operator || switch.owner != SwitchOwner::Operator;
    SwitchView {
        id: switch.id(),
        tenant: tenant_of(switch).to_owned(),
        on: switch.on.to_string(),
        mode: switch.mode,
        reason: switch.reason.clone(),
        by: switch.owner,
        set_by: told.then(|| switch.by.subject.clone()),
        set_at: switch.at.to_string(),
        until: switch.until.map(|until| until.to_string()),
        warnings: Vec::new(),
    }
}
