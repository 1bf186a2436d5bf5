//! Whom we believe: the audience that must be ours, and each issuer with its algorithms and its keys.

use crate::bounds::{IssuerBounds, TenantPattern, scope_named};
use crate::span;
use domain::TokenScope;
use serde::Deserialize;
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

/// More leeway than this would not forgive a clock, it would prolong tokens.
const MOST_LEEWAY: Duration = Duration::from_secs(5 * 60);
/// Less than this between two fetches would let anybody with a made-up key id hammer the issuer.
const LEAST_REFETCH: Duration = Duration::from_secs(1);
/// Claims that every token has and that say nothing of a human.
const NOT_A_PERSON: [&str; 8] = ["iss", "aud", "exp", "nbf", "iat", "jti", "tenant", "scope"];

/// The identity section of the settings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Our canonical URI, the only audience accepted, compared byte for byte.
    pub resource: String,
    /// How far an issuer's clock may differ from ours.
    #[serde(default = "default_leeway", deserialize_with = "span::deserialize")]
    pub leeway: Duration,
    /// Who may vouch for callers.
    pub issuers: Vec<IssuerConfig>,
}

/// One issuer: its exact name, and exactly one source of keys.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IssuerConfig {
    /// The `iss` of its tokens, compared byte for byte.
    pub issuer: String,
    /// The algorithms its tokens may be signed with.
    pub algorithms: Vec<Algorithm>,
    /// A file with one key: base64url text of the secret for HS256, a PEM public key otherwise.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// Where it publishes its keys.
    #[serde(default)]
    pub jwks_url: Option<String>,
    /// The least time between two fetches of its keys, whatever tokens arrive.
    #[serde(default = "default_refetch_every", deserialize_with = "span::deserialize")]
    pub refetch_every: Duration,
    /// How long keys are believed while the issuer cannot be reached.
    #[serde(default = "default_max_stale", deserialize_with = "span::deserialize")]
    pub max_stale: Duration,
    /// The tenants it may vouch for: names, or `prefix-*`. Absent: all.
    #[serde(default)]
    pub tenants: Option<Vec<String>>,
    /// The most its tokens may be used for. Absent: every scope but `operator:switch`.
    #[serde(default)]
    pub scopes: Option<Vec<String>>,
    /// The claim that names the human behind a token, such as `email`. Accounts of one human count as one person when
    /// runs are decided.
    #[serde(default)]
    pub person_claim: Option<String>,
    /// The longest life of its tokens, from `iat` to `exp`.
    #[serde(default = "default_longest_token", deserialize_with = "span::deserialize")]
    pub longest_token: Duration,
}

/// A way to sign a token. Anything else, `none` included, cannot be configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    #[serde(rename = "RS256")]
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    #[serde(rename = "ES256")]
    Es256,
    /// Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa,
    /// HMAC with SHA-256, for a static key only.
    #[serde(rename = "HS256")]
    Hs256,
}

impl Algorithm {
    /// As it stands in a token's header.
    pub const fn as_str(self) -> &'static str {
        match self {
            Algorithm::Rs256 => "RS256",
            Algorithm::Es256 => "ES256",
            Algorithm::EdDsa => "EdDSA",
            Algorithm::Hs256 => "HS256",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Algorithm> {
        let all = [Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa, Algorithm::Hs256];
        all.into_iter().find(|algorithm| algorithm.as_str() == name)
    }
}

/// What is wrong with the identity settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The audience is not a canonical URI.
    #[error("resource `{0}` is not an absolute http or https address without fragment and trailing slash")]
    Resource(String),
    /// The leeway would prolong tokens.
    #[error("leeway is over {} seconds", MOST_LEEWAY.as_secs())]
    Leeway,
    /// Nobody could ever get in.
    #[error(
        "no issuer is configured: add an [[identity.issuers]] entry (see defaults.toml; `quartermaster init` writes one)"
    )]
    NoIssuer,
    /// Tokens of nobody in particular would be believed.
    #[error("an issuer has no name")]
    Unnamed,
    /// Two entries claim the same tokens.
    #[error("issuer `{0}` is configured twice")]
    Twice(String),
    /// No algorithm, so no token.
    #[error("issuer `{0}` allows no algorithm")]
    NoAlgorithm(String),
    /// Either two sources of keys or none.
    #[error("issuer `{0}` needs exactly one of key_file and jwks_url")]
    KeySource(String),
    /// A shared secret beside public keys invites mistaking one for the other.
    #[error("issuer `{0}` may use HS256 only with a key_file and as its only algorithm")]
    SharedSecret(String),
    /// The address of the keys may not be fetched.
    #[error("issuer `{issuer}` has a jwks_url that is refused")]
    Address {
        /// The issuer's name.
        issuer: String,
        /// What is wrong with the address.
        #[source]
        source: egress::AddressError,
    },
    /// Fetches would not be held back.
    #[error("issuer `{0}` has a refetch_every under a second")]
    Refetch(String),
    /// Keys would run out between two fetches.
    #[error("issuer `{0}` has a max_stale that is not over its refetch_every")]
    Stale(String),
    /// It could vouch for nobody.
    #[error("issuer `{0}` has an empty list of tenants or scopes; leave the key out to allow all")]
    Nothing(String),
    /// A tenant that could not exist.
    #[error("issuer `{issuer}` is bound to `{tenant}`, which is neither a tenant's name nor `prefix-*`")]
    Tenant {
        /// The issuer's name.
        issuer: String,
        /// What stands there.
        tenant: String,
    },
    /// A scope that does not exist.
    #[error("issuer `{issuer}` may grant `{scope}`, which is no scope")]
    Scope {
        /// The issuer's name.
        issuer: String,
        /// What stands there.
        scope: String,
    },
    /// A claim that names no person.
    #[error("issuer `{0}` has a person_claim that names no person")]
    PersonClaim(String),
    /// No token would be good.
    #[error("issuer `{0}` has a longest_token of zero")]
    LongestToken(String),
}

/// What is allowed, and perhaps not meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigWarning {
    /// Each of several issuers may make anybody of any tenant an approver.
    #[error("none of the {0} issuers is bound to tenants, so each may vouch for every tenant")]
    Unbound(usize),
    /// One human may count as two.
    #[error("these issuers name no person, so a human with accounts at two issuers counts as two people: {0}")]
    Unnamed(String),
}

impl Config {
    /// Refuses what could not be served safely; names the first thing that is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.problems().into_iter().next().map_or(Ok(()), Err)
    }

    /// What an operator should look at. With one issuer there is nothing to keep apart.
    pub fn warnings(&self) -> Vec<ConfigWarning> {
        let mut warnings = Vec::new();
        if self.issuers.len() < 2 {
            return warnings;
        }
        if self.issuers.iter().all(|issuer| issuer.tenants.is_none()) {
            warnings.push(ConfigWarning::Unbound(self.issuers.len()));
        }
        let nameless = self.issuers.iter().filter(|issuer| issuer.person_claim.is_none());
        let names: Vec<&str> = nameless.map(|issuer| issuer.issuer.as_str()).collect();
        if !names.is_empty() {
            warnings.push(ConfigWarning::Unnamed(names.join(", ")));
        }
        warnings
    }

    /// Everything that is wrong, in the order of the settings.
    pub fn problems(&self) -> Vec<ConfigError> {
        let mut found = Vec::new();
        if !is_canonical(&self.resource) {
            found.push(ConfigError::Resource(self.resource.clone()));
        }
        if self.leeway > MOST_LEEWAY {
            found.push(ConfigError::Leeway);
        }
        if self.issuers.is_empty() {
            found.push(ConfigError::NoIssuer);
        }
        let mut names = HashSet::new();
        for issuer in &self.issuers {
            if !names.insert(issuer.issuer.as_str()) {
                found.push(ConfigError::Twice(issuer.issuer.clone()));
            }
            issuer.problems(&mut found);
        }
        found
    }
}

impl IssuerConfig {
    fn problems(&self, found: &mut Vec<ConfigError>) {
        let name = || self.issuer.clone();
        if self.issuer.is_empty() {
            found.push(ConfigError::Unnamed);
        }
        if self.algorithms.is_empty() {
            found.push(ConfigError::NoAlgorithm(name()));
        }
        if self.key_file.is_some() == self.jwks_url.is_some() {
            found.push(ConfigError::KeySource(name()));
        }
        let shares_secret = self.algorithms.contains(&Algorithm::Hs256);
        let alone = self.algorithms.iter().all(|algorithm| *algorithm == Algorithm::Hs256);
        if shares_secret && (self.jwks_url.is_some() || !alone) {
            found.push(ConfigError::SharedSecret(name()));
        }
        if let Some(Err(source)) = self.jwks_url.as_deref().map(egress::check_operator_address) {
            found.push(ConfigError::Address { issuer: name(), source });
        }
        if self.refetch_every < LEAST_REFETCH {
            found.push(ConfigError::Refetch(name()));
        }
        if self.max_stale <= self.refetch_every {
            found.push(ConfigError::Stale(name()));
        }
        self.problems_of_bounds(found);
    }

    fn problems_of_bounds(&self, problems: &mut Vec<ConfigError>) {
        let issuer = || self.issuer.clone();
        if [&self.tenants, &self.scopes].into_iter().flatten().any(Vec::is_empty) {
            problems.push(ConfigError::Nothing(issuer()));
        }
        for tenant in self.tenants.iter().flatten().filter(|text| TenantPattern::parse(text).is_none()) {
            problems.push(ConfigError::Tenant { issuer: issuer(), tenant: tenant.clone() });
        }
        for scope in self.scopes.iter().flatten().filter(|name| scope_named(name).is_none()) {
            problems.push(ConfigError::Scope { issuer: issuer(), scope: scope.clone() });
        }
        let nobody = |claim: &String| claim.is_empty() || NOT_A_PERSON.contains(&claim.as_str());
        if self.person_claim.as_ref().is_some_and(nobody) {
            problems.push(ConfigError::PersonClaim(issuer()));
        }
        if self.longest_token.is_zero() {
            problems.push(ConfigError::LongestToken(issuer()));
        }
    }

    /// The bounds of a checked configuration. What could not be read grants nothing.
    pub(crate) fn bounds(&self) -> IssuerBounds {
        let patterns = |texts: &Vec<String>| texts.iter().filter_map(|text| TenantPattern::parse(text)).collect();
        // Who may reach beyond a tenant is for the operator to say, by name.
        let every = || TokenScope::ALL.into_iter().filter(|scope| !scope.is_of_operator()).collect();
        let scopes = |names: &Vec<String>| names.iter().filter_map(|name| scope_named(name)).collect();
        IssuerBounds {
            tenants: self.tenants.as_ref().map(patterns),
            scopes: self.scopes.as_ref().map_or_else(every, scopes),
            person_claim: self.person_claim.clone(),
            longest_token: self.longest_token,
        }
    }
}

fn is_canonical(resource: &str) -> bool {
    let rest = resource.strip_prefix("https://").or_else(|| resource.strip_prefix("http://"));
    let plain = |c: char| c.is_ascii_graphic() && c != '#';
    rest.is_some_and(|rest| !rest.is_empty() && !rest.ends_with('/') && rest.chars().all(plain))
}

fn default_leeway() -> Duration {
    Duration::from_secs(60)
}

fn default_refetch_every() -> Duration {
    Duration::from_secs(10)
}

fn default_max_stale() -> Duration {
    Duration::from_secs(24 * 60 * 60)
}

fn default_longest_token() -> Duration {
    Duration::from_secs(24 * 60 * 60)
}

#[cfg(test)]
mod tests;
