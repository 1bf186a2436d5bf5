//! Setting and forgetting secrets in the store, and sealing them anew.
//!
//! Every change carries its entry in the audit log: who, which name, never a value or a digest of one. By the effect it is
//! told whether the secret was set (a change) or forgotten (a disruption); what the service seals anew it does in the name
//! of whoever had set it.

use crate::facts::StoredSecretFacts;
use crate::vault::Vault;
use domain::{Caller, Code, Effect, Failure, Principal, Scopes, Tenant};
use redact::SecretText;
use store::{
    Actor, ActorKind, AuditEntry, MOST_SECRETS, Phase, SealedSecret, SecretForgotten, SecretPut, StoreError,
    WritePrecondition,
};

/// The largest value the store keeps.
pub const MOST_BYTES: usize = 64 * 1024;

impl Vault {
    /// Sets a secret in the place of what `base` names, or of whatever stands there. On this replica it counts at once, on
    /// others when they have refreshed.
    pub async fn set(
        &self,
        tenant: &Tenant,
        name: &str,
        value: SecretText,
        by: &Caller,
        base: Option<WritePrecondition>,
    ) -> Result<StoredSecretFacts, Failure> {
        checked(name)?;
        if value.expose().is_empty() {
            return Err(Failure::new(Code::InvalidArgument, "a secret is not empty").next("remove it instead"));
        }
        if value.expose().len() > MOST_BYTES {
            return Err(Failure::new(Code::TooLarge, format!("a secret has at most {MOST_BYTES} bytes")));
        }
        let sealed = self.parts.sealer.seal(tenant, name, &value).map_err(|error| {
            tracing::error!(%error, "the system gave no randomness");
            Failure::new(Code::Internal, "the secret cannot be sealed, so it was not set")
        })?;
        let entry = entry(person(by), Some(Effect::Change));
        let secrets = self.parts.store.of(tenant).secrets();
        match secrets.put(name, sealed, &by.principal, base, &entry).await.map_err(|error| unwritten(&error))? {
            SecretPut::Done(secret) => {
                let kept = self.told(tenant, &secret);
                self.note_set(tenant, secret).await;
                Ok(kept)
            }
            SecretPut::Conflict(stands) => Err(conflict(name, stands)),
            SecretPut::TooMany => {
                let failure =
                    Failure::new(Code::QuotaExceeded, format!("a tenant keeps at most {MOST_SECRETS} secrets"));
                Err(failure.next("remove one that is no longer used"))
            }
        }
    }

    /// Forgets a secret of the store, of this version or of any. What lies in a file or the environment under the name
    /// counts from then on.
    pub async fn forget(&self, tenant: &Tenant, name: &str, by: &Caller, version: Option<u64>) -> Result<(), Failure> {
        checked(name)?;
        let entry = entry(person(by), Some(Effect::Disrupt));
        let secrets = self.parts.store.of(tenant).secrets();
        match secrets.forget(name, version, &entry).await.map_err(|error| unwritten(&error))? {
            SecretForgotten::Done(version) => {
                self.note_forgotten(tenant, name, version).await;
                Ok(())
            }
            SecretForgotten::Conflict(stands) => Err(conflict(name, Some(stands))),
            SecretForgotten::Absent => Err(Failure::new(Code::NotFound, format!("no secret {name} was set over HTTP"))
                .next("list the secrets; those of the operator are removed where they lie")),
        }
    }

    /// Seals everything of a tenant that is under an older key anew, and tells how many that were. What does not open, and
    /// what somebody changes meanwhile, is left as it is.
    pub async fn reseal(&self, tenant: &Tenant) -> Result<usize, Failure> {
        self.refresh(tenant).await.map_err(|error| unwritten(&error))?;
        let known = self.known(tenant).unwrap_or_default();
        let mut anew = 0;
        for secret in known.secrets.values().flatten() {
            anew += usize::from(self.reseal_one(tenant, secret).await?);
        }
        Ok(anew)
    }

    async fn reseal_one(&self, tenant: &Tenant, secret: &SealedSecret) -> Result<bool, Failure> {
        let sealer = &self.parts.sealer;
        let opened = match sealer.open(tenant, &secret.name, &secret.sealed) {
            Ok(opened) if opened.current => return Ok(false),
            Ok(opened) => opened,
            Err(error) => {
                let (tenant, name) = (tenant.as_str(), secret.name.as_str());
                tracing::warn!(quartermaster.tenant = tenant, secret = name, %error, "a secret has to be set again");
                return Ok(false);
            }
        };
        let sealed = sealer
            .seal(tenant, &secret.name, &opened.value)
            .map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        let entry = entry(service(&secret.by), None);
        let secrets = self.parts.store.of(tenant).secrets();
        let anew = secrets.reseal(secret, sealed, &entry).await.map_err(|error| unwritten(&error))?;
        if let Some(anew) = &anew {
            self.note_set(tenant, anew.clone()).await;
        }
        Ok(anew.is_some())
    }
}

fn checked(name: &str) -> Result<(), Failure> {
    let refused = || Failure::new(Code::InvalidArgument, crate::Missing::NotAName.to_string());
    crate::is_secret_name(name).then_some(()).ok_or_else(refused)
}

fn person(by: &Caller) -> Actor {
    Actor { principal: by.principal.clone(), kind: ActorKind::Person, scopes: by.scopes, token: None }
}

fn service(setter: &Principal) -> Actor {
    Actor { principal: setter.clone(), kind: ActorKind::Service, scopes: Scopes::default(), token: None }
}

fn entry(actor: Actor, effect: Option<Effect>) -> AuditEntry {
    AuditEntry { actor: Some(actor), effect, ..AuditEntry::new(Phase::Admin) }
}

fn conflict(name: &str, stands: Option<u64>) -> Failure {
    let message = match stands {
        Some(version) => format!("the secret {name} is at version {version} by now"),
        None => format!("no secret {name} is set by now"),
    };
    Failure::new(Code::ConfigConflict, message).next("list the secrets and try again with the version that stands")
}

fn unwritten(error: &StoreError) -> Failure {
    tracing::warn!(%error, "the tenants' secrets cannot be changed");
    Failure::new(error.code(), error.to_string()).next("list the secrets before trying again: it may have been written")
}
