//! A kill switch: a person stops something, or lets it only read, for a reason and until a time.
//!
//! Not here: who may set one (see the gateway), where they are kept (see the store), and what a call is answered that meets
//! one (see `policy`).

use crate::json::sha256_hex;
use crate::{Call, Effect, Moment, Principal, Tenant, ToolName, ToolsetName};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How long a reason may be, in bytes.
pub const LONGEST_REASON: usize = 300;
/// How long the name of a target may be, in bytes.
const LONGEST_TARGET: usize = 128;

/// What a switch is on, within its tenants.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SwitchSubject {
    /// Everything.
    Tenant,
    /// The tools of a toolset.
    Toolset(ToolsetName),
    /// One tool.
    Tool(ToolName),
    /// Whatever is aimed at a target, named as in the audit log: `cluster/prod`, `jenkins/ci`.
    Target(String),
    /// The tools of an external server.
    Server(String),
}

/// The text names nothing that a switch could be on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a switch is on tenant, toolset:NAME, tool:NAME, target:KIND/NAME or server:ID")]
pub struct NotASwitchSubject;

impl SwitchSubject {
    /// Reads `tenant`, `toolset:k8s`, `tool:k8s_exec`, `target:cluster/prod` or `server:wiki`.
    pub fn parse(text: &str) -> Result<SwitchSubject, NotASwitchSubject> {
        let name = |text: &str| {
            let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/');
            (1..=LONGEST_TARGET).contains(&text.len()) && text.bytes().all(plain)
        };
        match text.split_once(':') {
            None if text == "tenant" => Ok(SwitchSubject::Tenant),
            Some(("toolset", set)) => {
                ToolsetName::parse(set).map(SwitchSubject::Toolset).map_err(|_| NotASwitchSubject)
            }
            Some(("tool", tool)) => ToolName::parse(tool).map(SwitchSubject::Tool).map_err(|_| NotASwitchSubject),
            Some(("target", at)) if name(at) && at.contains('/') => Ok(SwitchSubject::Target(at.to_owned())),
            Some(("server", id)) if name(id) && !id.contains('/') => Ok(SwitchSubject::Server(id.to_owned())),
            _ => Err(NotASwitchSubject),
        }
    }

    fn covers(&self, call: &Call) -> bool {
        match self {
            SwitchSubject::Tenant => true,
            SwitchSubject::Toolset(set) => call.toolset == *set,
            SwitchSubject::Tool(tool) => call.tool == *tool,
            SwitchSubject::Target(target) => call.target.as_deref() == Some(target),
            SwitchSubject::Server(id) => call.target.as_deref().and_then(|at| at.strip_prefix("server/")) == Some(id),
        }
    }

    /// Whether it is on everything that is asked of an external server, its list of tools included.
    pub fn covers_server(&self, server: &str) -> bool {
        match self {
            SwitchSubject::Tenant => true,
            SwitchSubject::Server(id) => id == server,
            SwitchSubject::Target(target) => target.strip_prefix("server/") == Some(server),
            SwitchSubject::Toolset(_) | SwitchSubject::Tool(_) => false,
        }
    }
}

impl fmt::Display for SwitchSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SwitchSubject::Tenant => f.write_str("tenant"),
            SwitchSubject::Toolset(set) => write!(f, "toolset:{set}"),
            SwitchSubject::Tool(tool) => write!(f, "tool:{tool}"),
            SwitchSubject::Target(target) => write!(f, "target:{target}"),
            SwitchSubject::Server(id) => write!(f, "server:{id}"),
        }
    }
}

impl TryFrom<String> for SwitchSubject {
    type Error = NotASwitchSubject;
    fn try_from(text: String) -> Result<SwitchSubject, NotASwitchSubject> {
        SwitchSubject::parse(&text)
    }
}

impl From<SwitchSubject> for String {
    fn from(subject: SwitchSubject) -> String {
        subject.to_string()
    }
}

/// What a switch leaves. Ordered: the higher, the less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchMode {
    /// Calls that only read.
    ReadOnly,
    /// Nothing.
    Stop,
}

impl SwitchMode {
    /// As it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            SwitchMode::ReadOnly => "read-only",
            SwitchMode::Stop => "stop",
        }
    }

    fn refuses(self, effect: Effect) -> bool {
        match self {
            SwitchMode::ReadOnly => effect > Effect::Read,
            SwitchMode::Stop => true,
        }
    }
}

/// On whose side a switch was set. Nobody lifts what the other side set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SwitchOwner {
    /// An admin of the tenant.
    TenantAdmin,
    /// Whoever operates the service.
    Operator,
    /// The service itself, because it cannot tell which switches are set.
    Service,
}

impl SwitchOwner {
    /// Who it is, in words for the caller.
    pub const fn in_words(self) -> &'static str {
        match self {
            SwitchOwner::TenantAdmin => "an admin of the tenant",
            SwitchOwner::Operator => "the operator of the service",
            SwitchOwner::Service => "the service itself",
        }
    }
}

/// One switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// In which tenant; `None` is every one.
    pub tenant: Option<Tenant>,
    /// On what.
    pub on: SwitchSubject,
    /// What is left.
    pub mode: SwitchMode,
    /// Why.
    pub reason: String,
    /// On whose side it was set.
    pub owner: SwitchOwner,
    /// By whom.
    pub by: Principal,
    /// In which tenant's name they acted: that tenant's audit log has it, besides those it is on.
    pub from: Tenant,
    /// When, by the store's clock.
    pub at: Moment,
    /// When it ends by itself.
    pub until: Option<Moment>,
}

impl Switch {
    /// Its name: each side has at most one on the same thing in the same tenant.
    pub fn id(&self) -> String {
        let tenant = self.tenant.as_ref().map_or("*", Tenant::as_str);
        let parts = format!("{tenant}\n{:?}\n{}", self.owner, self.on);
        format!("sw_{}", &sha256_hex(parts.as_bytes())[..16])
    }

    /// Whether it holds in a tenant at a moment.
    pub fn is_in_force(&self, tenant: &Tenant, now: Moment) -> bool {
        self.tenant.as_ref().is_none_or(|own| own == tenant) && !self.has_ended(now)
    }

    /// Whether its end has passed.
    pub fn has_ended(&self, now: Moment) -> bool {
        self.until.is_some_and(|until| now >= until)
    }

    /// Whether it refuses a call of its tenant.
    pub fn refuses(&self, call: &Call) -> bool {
        self.on.covers(call) && self.mode.refuses(call.effect)
    }
}

/// Of several switches the one whose end opens the least: the strictest, then the one of the higher side, then the one
/// that lasts longest.
pub fn strictest<'a>(switches: &'a [Switch], call: &Call) -> Option<&'a Switch> {
    let rank = |switch: &&Switch| (switch.mode, switch.owner, switch.until.map_or(u64::MAX, Moment::millis));
    switches.iter().filter(|switch| switch.refuses(call)).max_by_key(rank)
}

/// Proof of which switches are in force for a tenant now.
///
/// The store implements it for what it read and found authentic, and nothing else outside of tests does: an empty list by
/// somebody else would be a switch that does not hold.
pub trait KnownSwitches {
    /// Those of the tenant, and those of all tenants, that have not ended.
    fn switches(&self) -> &[Switch];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallId, Caller, Level, Scopes, ToolUse};
    use std::sync::Arc;

    fn call(effect: Effect, target: Option<&str>) -> Call {
        let caller = Caller {
            tenant: Tenant::parse("acme").unwrap(),
            principal: Principal::new("i", "agent"),
            scopes: Scopes::parse("tools:write"),
            expires_at: Moment::from_secs(9),
            token: None,
            labels: Vec::new(),
        };
        let used = ToolUse {
            tool: ToolName::parse("k8s_scale").unwrap(),
            toolset: ToolsetName::parse("k8s").unwrap(),
            needs: Level::Write,
            effect,
            about: None,
            schema: "",
            arguments: "{}",
        };
        Call::new(CallId::from_random([1; 16]), Arc::new(caller), None, used).aimed_at(target.map(str::to_owned))
    }

    fn switch(on: &str, mode: SwitchMode, owner: SwitchOwner, until: Option<u64>) -> Switch {
        Switch {
            tenant: None,
            on: SwitchSubject::parse(on).unwrap(),
            mode,
            reason: "because".into(),
            owner,
            by: Principal::new("i", "olga"),
            from: Tenant::parse("ops").unwrap(),
            at: Moment::from_secs(1),
            until: until.map(Moment::from_secs),
        }
    }

    #[test]
    fn a_subject_reads_back_as_itself_and_nothing_else_is_one() {
        for text in ["tenant", "toolset:k8s", "tool:k8s_exec", "target:cluster/prod", "server:wiki"] {
            assert_eq!(SwitchSubject::parse(text).unwrap().to_string(), text);
        }
        for bad in
            ["", "tenants", "tenant:", "toolset:", "tool:a b", "target:prod", "server:a/b", "target:a/\u{1b}", "x:y"]
        {
            assert_eq!(SwitchSubject::parse(bad), Err(NotASwitchSubject), "{bad:?}");
        }
    }

    #[test]
    fn a_switch_refuses_what_it_is_on_and_read_only_leaves_reads() {
        let hit = |on: &str, mode, call: &Call| switch(on, mode, SwitchOwner::Operator, None).refuses(call);
        let (change, read) = (call(Effect::Change, Some("cluster/prod")), call(Effect::Read, Some("cluster/prod")));
        for on in ["tenant", "toolset:k8s", "tool:k8s_scale", "target:cluster/prod"] {
            assert!(hit(on, SwitchMode::Stop, &change) && hit(on, SwitchMode::Stop, &read), "{on}");
            assert!(hit(on, SwitchMode::ReadOnly, &change) && !hit(on, SwitchMode::ReadOnly, &read), "{on}");
        }
        for on in ["toolset:helm", "tool:k8s_get", "target:cluster/test", "server:prod", "target:cluster/pro"] {
            assert!(!hit(on, SwitchMode::Stop, &change), "{on}");
        }
        let (foreign, nowhere) = (call(Effect::Read, Some("server/wiki")), call(Effect::Read, None));
        assert!(hit("server:wiki", SwitchMode::Stop, &foreign) && !hit("server:wik", SwitchMode::Stop, &foreign));
        assert!(!hit("target:cluster/prod", SwitchMode::Stop, &nowhere));
    }

    #[test]
    fn a_switch_holds_in_its_tenant_until_its_end() {
        let (acme, bolt) = (Tenant::parse("acme").unwrap(), Tenant::parse("bolt").unwrap());
        let all = switch("tenant", SwitchMode::Stop, SwitchOwner::Operator, Some(10));
        let own = Switch { tenant: Some(acme.clone()), until: None, ..all.clone() };
        let at = Moment::from_secs;
        assert!(all.is_in_force(&acme, at(9)) && all.is_in_force(&bolt, at(9)) && !all.is_in_force(&acme, at(10)));
        assert!(own.is_in_force(&acme, at(99)) && !own.is_in_force(&bolt, at(1)));
        assert_ne!(all.id(), own.id());
        assert_eq!(
            own.id(),
            Switch { mode: SwitchMode::ReadOnly, ..own.clone() }.id(),
            "set again, it is the same one"
        );
    }

    #[test]
    fn the_strictest_of_several_counts() {
        let (stop, read_only) = (SwitchMode::Stop, SwitchMode::ReadOnly);
        let (tenant, operator) = (SwitchOwner::TenantAdmin, SwitchOwner::Operator);
        let all = [
            switch("tenant", read_only, operator, None),
            switch("toolset:k8s", stop, tenant, Some(5)),
            switch("tool:k8s_scale", stop, operator, Some(3)),
        ];
        assert_eq!(strictest(&all, &call(Effect::Change, None)), Some(&all[2]));
        assert_eq!(strictest(&all[..2], &call(Effect::Change, None)), Some(&all[1]));
        assert_eq!(strictest(&all[..1], &call(Effect::Read, None)), None);
    }
}
