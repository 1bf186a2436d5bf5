//! The web console: whether it is served, where, and who lets people in.

use super::{Settings, SettingsError, span};
use domain::{Scopes, Tenant, TokenScope};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The web console.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsoleSettings {
    /// Whether it is served.
    pub enabled: bool,
    /// A listener of its own; empty: it is served beside the tools.
    pub listen: String,
    /// Where browsers reach it; empty: where the tools are.
    pub address: String,
    /// How long somebody stays signed in without a request.
    #[serde(deserialize_with = "span")]
    pub idle: Duration,
    /// How long somebody stays signed in at most.
    #[serde(deserialize_with = "span")]
    pub longest: Duration,
    /// How long ago somebody may have proved who they are when they approve something disruptive.
    #[serde(deserialize_with = "span")]
    pub step_up: Duration,
    /// Who lets people in.
    pub issuers: Vec<ConsoleIssuer>,
}

/// An issuer of `[identity]` that people sign in to with a browser.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsoleIssuer {
    /// What its button says.
    pub name: String,
    /// Its name under `[[identity.issuers]]`.
    pub issuer: String,
    /// The service's name there.
    pub client_id: String,
    /// A file with the service's secret there; absent: the client is a public one.
    #[serde(default)]
    pub client_secret_file: Option<PathBuf>,
    /// What is asked for.
    #[serde(default = "default_scopes")]
    pub scopes: Vec<String>,
    /// The claim that names the tenant.
    #[serde(default = "default_tenant_claim")]
    pub tenant_claim: String,
    /// The claim with the scopes of this service.
    #[serde(default = "default_scope_claim")]
    pub scope_claim: String,
    /// The claim with the person's groups.
    #[serde(default = "default_groups_claim")]
    pub groups_claim: String,
    /// What groups stand for.
    #[serde(default)]
    pub groups: Vec<GroupGrant>,
}

/// What a group stands for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupGrant {
    /// The group, exactly.
    pub group: String,
    /// The tenant its members work in.
    pub tenant: String,
    /// What they may do there.
    pub scopes: Vec<String>,
}

impl ConsoleSettings {
    /// What is wrong, if anything.
    pub(super) fn check(&self, settings: &Settings) -> Result<(), SettingsError> {
        let wrong = |why: String| Err(SettingsError::Wrong(format!("console: {why}")));
        if !self.listen.is_empty() && self.listen.parse::<SocketAddr>().is_err() {
            return wrong("listen is no address with a port, such as 127.0.0.1:8443".to_owned());
        }
        if self.idle.is_zero() || self.idle > self.longest {
            return wrong("idle is zero or longer than longest".to_owned());
        }
        if self.longest > Duration::from_secs(24 * 60 * 60) {
            return wrong("longest is over 24h".to_owned());
        }
        if !self.address.is_empty() {
            if let Err(error) = egress::check_operator_address(&self.address) {
                return wrong(format!("address: {error}"));
            }
            if self.address.matches('/').count() != 2 {
                return wrong(
                    "address is a scheme and a host, such as https://desk.example.com, without a path".to_owned(),
                );
            }
        } else if self.enabled && !self.listen.is_empty() {
            return wrong("a listener of its own needs address, where browsers reach it".to_owned());
        }
        self.issuers.iter().try_for_each(|issuer| issuer.check(settings))
    }

    /// The address that browsers see, without a path.
    pub fn origin(&self, resource: &str) -> String {
        if !self.address.is_empty() {
            return self.address.clone();
        }
        let after_scheme = resource.find("://").map_or(0, |at| at + 3);
        let path = resource[after_scheme..].find('/').map_or(resource.len(), |at| after_scheme + at);
        resource[..path].to_owned()
    }
}

impl ConsoleIssuer {
    fn check(&self, settings: &Settings) -> Result<(), SettingsError> {
        let wrong = |why: String| Err(SettingsError::Wrong(format!("console: issuer `{}`: {why}", self.name)));
        if self.name.is_empty() || self.client_id.is_empty() {
            return wrong("name and client_id are needed".to_owned());
        }
        if !settings.identity.issuers.iter().any(|known| known.issuer == self.issuer) {
            return wrong(format!(
                "`{}` is not among [[identity.issuers]], whose keys and bounds hold here",
                self.issuer
            ));
        }
        if let Err(error) = egress::check_operator_address(&self.issuer) {
            return wrong(format!("issuer: {error}"));
        }
        if !self.scopes.iter().any(|scope| scope == "openid") {
            return wrong("scopes need openid".to_owned());
        }
        for grant in &self.groups {
            if Tenant::parse(&grant.tenant).is_err() {
                return wrong(format!("group `{}` names no tenant", grant.group));
            }
            for scope in &grant.scopes {
                if Scopes::parse(scope).iter().next().is_none() || scope == TokenScope::RunnerWork.as_str() {
                    return wrong(format!("group `{}` has `{scope}`, which is no scope of people", grant.group));
                }
            }
        }
        Ok(())
    }
}

fn default_scopes() -> Vec<String> {
    ["openid", "profile", "email"].map(str::to_owned).to_vec()
}

fn default_tenant_claim() -> String {
    "tenant".to_owned()
}

fn default_scope_claim() -> String {
    "scope".to_owned()
}

fn default_groups_claim() -> String {
    "groups".to_owned()
}
