//! Where a secret comes from: the store, then a file, then the operator's environment.
//!
//! What the store holds is kept in memory, sealed, and brought up to date by [`Vault::refresh`], so that reading waits
//! for nobody. Until the first refresh of a tenant has succeeded nothing of it can be read: the store may hold the name,
//! and the file below it may be what was meant to be replaced. A refresh that fails later leaves what was known.

use crate::environment::Environment;
use crate::facts::SecretLocation;
use crate::files::Files;
use crate::missing::Missing;
use crate::scrubbers::Scrubbers;
use crate::sealer::Sealer;
use domain::Tenant;
use redact::{KeptSecret, NotAtHand, SecretText};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use store::{SealedSecret, Store, StoreError};

/// All tenants' secrets. A clone is another handle to the same.
#[derive(Clone)]
pub struct Vault {
    pub(crate) parts: Arc<VaultParts>,
}

pub(crate) struct VaultParts {
    pub(crate) store: Store,
    pub(crate) sealer: Sealer,
    pub(crate) files: Files,
    pub(crate) environment: Environment,
    drawers: RwLock<HashMap<Tenant, Arc<TenantSecretCache>>>,
}

/// What is known of one tenant.
#[derive(Default)]
pub(crate) struct TenantSecretCache {
    known: RwLock<Option<Arc<TenantSecrets>>>,
    /// Held while `known` is worked out anew, so that what was read earlier never replaces what was read later.
    changing: tokio::sync::Mutex<()>,
    pub(crate) scrubbers: Scrubbers,
}

/// What the store holds of one tenant.
#[derive(Clone, Default)]
pub(crate) struct TenantSecrets {
    marks: BTreeMap<String, u64>,
    /// `None`: there is one, but its record says nothing to this build.
    pub(crate) secrets: BTreeMap<String, Option<Arc<SealedSecret>>>,
}

impl Vault {
    /// A vault over these places. Nothing can be read before a tenant's first [`Vault::refresh`].
    pub fn new(store: Store, sealer: Sealer, files: PathBuf, environment: Environment) -> Vault {
        let (files, drawers) = (Files::at(files), RwLock::default());
        Vault { parts: Arc::new(VaultParts { store, sealer, files, environment, drawers }) }
    }

    /// A secret as it is now. Reads memory and files, and waits for no one.
    pub fn read(&self, tenant: &Tenant, name: &str) -> Result<SecretText, Missing> {
        if !crate::is_secret_name(name) {
            return Err(Missing::NotAName);
        }
        let (value, source) = self.find(tenant, name)?;
        match source {
            // Files change unseen: what is used from now on has to be searched for from now on.
            SecretLocation::File => self.drawer(tenant).scrubbers.given_out(&value),
            SecretLocation::Store | SecretLocation::Environment => {}
        }
        Ok(value)
    }

    /// A secret and where it lies. The name has been checked.
    pub(crate) fn find(&self, tenant: &Tenant, name: &str) -> Result<(SecretText, SecretLocation), Missing> {
        let known = self.known(tenant).ok_or_else(|| Missing::NotKnownYet { name: name.to_owned() })?;
        let parts = &self.parts;
        if let Some(kept) = known.secrets.get(name) {
            let opened = kept.as_ref().and_then(|kept| parts.sealer.open(tenant, name, &kept.sealed).ok());
            let opened = opened.ok_or_else(|| Missing::Sealed { name: name.to_owned() })?;
            return Ok((opened.value, SecretLocation::Store));
        }
        match parts.files.find(tenant, name) {
            Ok(Some(value)) => return Ok((value, SecretLocation::File)),
            Ok(None) => {}
            Err(_) => return Err(Missing::File { name: name.to_owned() }),
        }
        let value = parts.environment.find(tenant, name);
        value
            .map(|value| (value, SecretLocation::Environment))
            .ok_or_else(|| Missing::Unknown { name: name.to_owned() })
    }

    /// The secret for a client that reads it at each use. Of one tenant, two of a name are equal.
    pub fn kept(&self, tenant: &Tenant, name: &str) -> KeptSecret {
        let (vault, tenant, asked) = (self.clone(), tenant.clone(), name.to_owned());
        KeptSecret::new(name, move || vault.read(&tenant, &asked).map_err(|missing| not_at_hand(&tenant, &missing)))
    }

    /// The same for what was set over HTTP; that an operator brings one of that name is no mistake.
    pub fn kept_over_http(&self, tenant: &Tenant, name: &str) -> KeptSecret {
        let (vault, tenant, asked) = (self.clone(), tenant.clone(), name.to_owned());
        let kept = self.kept(&tenant, name);
        let over_http = KeptSecret::new(name, move || match vault.known(&tenant) {
            Some(known) if known.secrets.contains_key(&asked) => kept.read(),
            Some(_) => Err(NotAtHand::Gone),
            None => Err(NotAtHand::Unreadable),
        });
        over_http.only("http")
    }

    /// The same for what only an operator may bring, as a file or in the environment. A secret of that name that was set
    /// over HTTP hides it, and is not given out either.
    pub fn kept_by_operator(&self, tenant: &Tenant, name: &str) -> KeptSecret {
        let (vault, tenant, asked) = (self.clone(), tenant.clone(), name.to_owned());
        let kept = self.kept(&tenant, name);
        let by_operator = KeptSecret::new(name, move || {
            if vault.known(&tenant).is_some_and(|known| known.secrets.contains_key(&asked)) {
                let (tenant, secret) = (tenant.as_str(), asked.as_str());
                tracing::warn!(
                    quartermaster.tenant = tenant,
                    secret,
                    "a secret that was set over HTTP may not be used here"
                );
                return Err(NotAtHand::Gone);
            }
            kept.read()
        });
        by_operator.only("operator")
    }

    /// The same for a use that the operator has not granted: only what was set over HTTP is given out.
    pub fn kept_by_tenant(&self, tenant: &Tenant, name: &str) -> KeptSecret {
        let (vault, tenant, asked) = (self.clone(), tenant.clone(), name.to_owned());
        let by_tenant = KeptSecret::new(name, move || {
            vault.read_by_tenant(&tenant, &asked).map_err(|missing| not_at_hand(&tenant, &missing))
        });
        by_tenant.only("tenant")
    }

    /// A secret that was set over HTTP, as it is now. One that the operator brought is not given out.
    pub fn read_by_tenant(&self, tenant: &Tenant, name: &str) -> Result<SecretText, Missing> {
        if !crate::is_secret_name(name) {
            return Err(Missing::NotAName);
        }
        match self.find(tenant, name)? {
            (value, SecretLocation::Store) => Ok(value),
            (_, SecretLocation::File | SecretLocation::Environment) => {
                Err(Missing::NotGranted { name: name.to_owned() })
            }
        }
    }

    /// Brings what is known of the store up to date: one look, and one more at what has changed. Tells whether anything
    /// has. If the store cannot be read, what was known stays.
    pub async fn refresh(&self, tenant: &Tenant) -> Result<bool, StoreError> {
        let drawer = self.drawer(tenant);
        let _one = drawer.changing.lock().await;
        let secrets = self.parts.store.of(tenant).secrets();
        let marks = secrets.marks().await?;
        let before = drawer.known();
        if before.as_ref().is_some_and(|before| before.marks == marks) {
            return Ok(false);
        }
        let mut next = before.as_deref().cloned().unwrap_or_default();
        let moved = marks.iter().filter(|(name, mark)| next.marks.get(*name) != Some(mark));
        let moved = moved.map(|(name, _)| name.clone());
        // Marks are not sealed: that one is gone does not prove that somebody has forgotten the secret. Its record does.
        let gone = next.secrets.keys().filter(|name| !marks.contains_key(*name)).cloned();
        let moved: Vec<String> = moved.chain(gone).collect();
        next.marks = marks;
        for (name, found) in moved.iter().zip(secrets.get_many(&moved).await?) {
            match found {
                Ok(Some(secret)) => next.secrets.insert(name.clone(), Some(Arc::new(secret))),
                // It was forgotten, before the marks were read or since.
                Ok(None) => next.secrets.remove(name),
                // Told by the store. What this process knows holds; where it knows nothing, there is no value.
                Err(StoreError::NotAuthentic { .. }) => {
                    next.secrets.entry(name.clone()).or_default();
                    continue;
                }
                Err(error) => {
                    tracing::warn!(quartermaster.tenant = tenant.as_str(), secret = name, %error, "a secret is unreadable");
                    next.secrets.insert(name.clone(), None)
                }
            };
        }
        drawer.set(next);
        Ok(true)
    }

    /// Forgets what is known of a tenant.
    pub fn drop_tenant(&self, tenant: &Tenant) {
        self.parts.drawers.write().unwrap_or_else(PoisonError::into_inner).remove(tenant);
    }

    /// Notes what was set here, before anybody wakes us.
    pub(crate) async fn note_set(&self, tenant: &Tenant, secret: SealedSecret) {
        let name = secret.name.clone();
        self.note(tenant, &name, secret.version, Some(secret)).await;
    }

    /// Notes what was forgotten here; this was its last version.
    pub(crate) async fn note_forgotten(&self, tenant: &Tenant, name: &str, version: u64) {
        self.note(tenant, name, version, None).await;
    }

    async fn note(&self, tenant: &Tenant, name: &str, version: u64, secret: Option<SealedSecret>) {
        let drawer = self.drawer(tenant);
        let _one = drawer.changing.lock().await;
        // Before the first refresh the others are not known, and one alone would make it seem so.
        let Some(known) = drawer.known() else { return };
        let newer = known.secrets.get(name).and_then(Option::as_ref).is_some_and(|kept| kept.version >= version);
        if newer {
            return;
        }
        let mut next = TenantSecrets::clone(&known);
        // Its mark is not known here, so the next refresh reads it again.
        next.marks.remove(name);
        match secret {
            Some(secret) => next.secrets.insert(name.to_owned(), Some(Arc::new(secret))),
            None => next.secrets.remove(name),
        };
        drawer.set(next);
    }

    pub(crate) fn known(&self, tenant: &Tenant) -> Option<Arc<TenantSecrets>> {
        self.parts.drawers.read().unwrap_or_else(PoisonError::into_inner).get(tenant)?.known()
    }

    pub(crate) fn drawer(&self, tenant: &Tenant) -> Arc<TenantSecretCache> {
        if let Some(drawer) = self.parts.drawers.read().unwrap_or_else(PoisonError::into_inner).get(tenant) {
            return Arc::clone(drawer);
        }
        let mut drawers = self.parts.drawers.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(drawers.entry(tenant.clone()).or_default())
    }
}

/// Why a client cannot have a secret. The log says more.
fn not_at_hand(tenant: &Tenant, missing: &Missing) -> NotAtHand {
    tracing::warn!(quartermaster.tenant = tenant.as_str(), %missing, "a secret cannot be had");
    match missing {
        Missing::NotAName | Missing::Unknown { .. } | Missing::NotGranted { .. } => NotAtHand::Gone,
        Missing::NotKnownYet { .. } | Missing::Sealed { .. } | Missing::File { .. } => NotAtHand::Unreadable,
    }
}

impl TenantSecretCache {
    pub(crate) fn known(&self) -> Option<Arc<TenantSecrets>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, known: TenantSecrets) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(known));
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drawers = self.parts.drawers.read().unwrap_or_else(PoisonError::into_inner);
        write!(f, "Vault of {} tenants", drawers.len())
    }
}
