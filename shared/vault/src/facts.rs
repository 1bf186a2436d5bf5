//! What may be told of a secret.

use crate::vault::Vault;
use domain::{Moment, Principal, Tenant};
use std::collections::{BTreeMap, BTreeSet};
use store::{SealedSecret, StoreError};

/// Where a secret lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretLocation {
    /// Sealed in the store, set over HTTP.
    Store,
    /// In a file of the operator's.
    File,
    /// In the operator's environment.
    Environment,
}

impl SecretLocation {
    /// As it is shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            SecretLocation::Store => "store",
            SecretLocation::File => "file",
            SecretLocation::Environment => "environment",
        }
    }
}

/// How a secret in the store is sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealState {
    /// Under the current key.
    Current,
    /// Under an older key; to be sealed anew before that key goes.
    Older,
    /// Under a key this service does not have, or it is damaged.
    Unopenable,
}

impl SealState {
    /// As it is shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            SealState::Current => "current",
            SealState::Older => "older",
            SealState::Unopenable => "unopenable",
        }
    }
}

/// What the store says of a secret, besides its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSecretFacts {
    /// Counts its changes; sealing it anew is one.
    pub version: u64,
    /// Who set it.
    pub by: Principal,
    /// When, by the store's clock.
    pub at: Moment,
    /// How it is sealed.
    pub standing: SealState,
}

/// What may be told of a secret: everything but the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretFacts {
    /// What it is called. One that is in the environment alone is told in lower case, with `_` for what is no letter.
    pub name: String,
    /// Where it lies; the first is the one that counts.
    pub sources: Vec<SecretLocation>,
    /// What the store says of it, if it is there and its record can be read.
    pub kept: Option<StoredSecretFacts>,
}

impl Vault {
    /// All secrets of a tenant, by name. Asks the store.
    pub async fn list(&self, tenant: &Tenant) -> Result<Vec<SecretFacts>, StoreError> {
        self.refresh(tenant).await?;
        let known = self.known(tenant).unwrap_or_default();
        let kept = |name: &str| known.secrets.get(name)?.as_ref().map(|secret| self.told(tenant, secret));
        let places = self.places(tenant).into_iter();
        Ok(places.map(|(name, sources)| SecretFacts { kept: kept(&name), name, sources }).collect())
    }

    /// The names of all secrets of a tenant, as far as they are known.
    pub fn names(&self, tenant: &Tenant) -> Vec<String> {
        self.places(tenant).into_keys().collect()
    }

    pub(crate) fn told(&self, tenant: &Tenant, secret: &SealedSecret) -> StoredSecretFacts {
        let standing = match self.parts.sealer.open(tenant, &secret.name, &secret.sealed) {
            Ok(opened) if opened.current => SealState::Current,
            Ok(_) => SealState::Older,
            Err(_) => SealState::Unopenable,
        };
        StoredSecretFacts { version: secret.version, by: secret.by.clone(), at: secret.at, standing }
    }

    /// Every name, and where there is a secret of it.
    fn places(&self, tenant: &Tenant) -> BTreeMap<String, Vec<SecretLocation>> {
        let known = self.known(tenant).unwrap_or_default();
        let environment = &self.parts.environment;
        let mut places: BTreeMap<String, Vec<SecretLocation>> = BTreeMap::new();
        for name in known.secrets.keys() {
            places.entry(name.clone()).or_default().push(SecretLocation::Store);
        }
        for name in self.parts.files.names(tenant) {
            places.entry(name).or_default().push(SecretLocation::File);
        }
        let mut told = BTreeSet::new();
        for (name, sources) in &mut places {
            if environment.find(tenant, name).is_some() {
                sources.push(SecretLocation::Environment);
                told.insert(crate::environment::spelled(name));
            }
        }
        for name in environment.names(tenant) {
            if !told.contains(&crate::environment::spelled(&name)) {
                places.insert(name, vec![SecretLocation::Environment]);
            }
        }
        places
    }
}
