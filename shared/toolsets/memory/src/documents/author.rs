//! Who reads and who writes. Keys of scopes and the trust of a version come from here, and from nothing a caller says.

use crate::documents::stores::{StoreRules, WriteAccess};
use crate::documents::{DocPath, DocumentScope};
use domain::{Caller, Code, Failure, Principal, RunId, Scopes, SessionId, Tenant};
use policy::{Permit, PermitApproval, PermitMode};
use store::{Actor, ActorKind, AuditEntry, DocScope, Phase, Trust};

/// Whose documents can be read: those of a tenant, of one principal in it, and of the session at hand.
#[derive(Debug, Clone)]
pub struct DocumentReader {
    tenant: Tenant,
    principal: Principal,
    session: Option<SessionId>,
}

impl DocumentReader {
    /// The agent a permit was given to.
    pub fn of(permit: &Permit) -> DocumentReader {
        let call = permit.call();
        DocumentReader {
            tenant: permit.tenant().clone(),
            principal: call.caller.principal.clone(),
            session: call.session,
        }
    }

    /// A person with a token of their own. People have no session here.
    pub fn person(caller: &Caller) -> DocumentReader {
        DocumentReader { tenant: caller.tenant.clone(), principal: caller.principal.clone(), session: None }
    }

    /// The tenant.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    pub(in crate::documents) fn principal(&self) -> &Principal {
        &self.principal
    }

    pub(in crate::documents) fn session(&self) -> Option<SessionId> {
        self.session
    }

    /// The key of a scope, from who it is alone.
    pub(in crate::documents) fn scope(&self, scope: DocumentScope) -> Result<DocScope, Failure> {
        match scope {
            DocumentScope::Tenant => Ok(DocScope::Tenant),
            DocumentScope::User => Ok(DocScope::User(self.principal.clone())),
            DocumentScope::Session => self.session.map(DocScope::Session).ok_or_else(|| {
                Failure::new(
                    Code::SessionRequired,
                    "documents under session/ belong to a session, and this call has none",
                )
                .next("call load_toolset with toolset=memory; it gives a session handle to pass along")
            }),
        }
    }
}

/// Who writes, and on whose word.
#[derive(Debug, Clone)]
pub struct DocumentAuthor {
    reader: DocumentReader,
    kind: ActorKind,
    scopes: Scopes,
    tainted: bool,
    approval: Option<PermitApproval>,
    /// Whether the permit may write at all; a rehearsal only looks.
    acts: bool,
    call: Option<Box<domain::Call>>,
}

impl DocumentAuthor {
    /// The agent a permit was given to.
    pub fn of(permit: &Permit) -> DocumentAuthor {
        let call = permit.call();
        DocumentAuthor {
            reader: DocumentReader::of(permit),
            kind: ActorKind::Agent,
            scopes: call.caller.scopes,
            tainted: call.tainted,
            approval: permit.approval().cloned(),
            acts: permit.extent() == PermitMode::Act,
            call: Some(Box::new(call.clone())),
        }
    }

    /// A person with a token of their own.
    pub fn person(caller: &Caller) -> DocumentAuthor {
        DocumentAuthor {
            reader: DocumentReader::person(caller),
            kind: ActorKind::Person,
            scopes: caller.scopes,
            tainted: false,
            approval: None,
            acts: true,
            call: None,
        }
    }

    /// The same, as somebody who reads.
    pub fn reader(&self) -> &DocumentReader {
        &self.reader
    }

    pub(in crate::documents) fn kind(&self) -> ActorKind {
        self.kind
    }

    pub(in crate::documents) fn tainted(&self) -> bool {
        self.tainted
    }

    pub(in crate::documents) fn run(&self) -> Option<RunId> {
        self.approval.as_ref().map(|approval| approval.run)
    }

    /// Who said yes; of several, the one who came last, since that made it count.
    pub(in crate::documents) fn approver(&self) -> Option<Principal> {
        self.approval.as_ref().and_then(|approval| approval.by.last().cloned())
    }

    /// How far what is written now can be relied on.
    pub(in crate::documents) fn trust(&self) -> Trust {
        match (self.kind, &self.approval) {
            (_, Some(_)) => Trust::Approved,
            (ActorKind::Person, None) => Trust::Authored,
            (ActorKind::Agent | ActorKind::Service | ActorKind::Runner, None) => Trust::Draft,
        }
    }

    /// The trust a version will have once it is written: what an agent asks for outside its session is approved first.
    pub(in crate::documents) fn trust_then(&self, scope: DocumentScope) -> Trust {
        match (self.kind, scope) {
            (
                ActorKind::Agent | ActorKind::Service | ActorKind::Runner,
                DocumentScope::User | DocumentScope::Tenant,
            ) => Trust::Approved,
            (ActorKind::Person, _) | (_, DocumentScope::Session) => self.trust(),
        }
    }

    /// Wants this author to be one that the store takes documents from.
    pub(in crate::documents) fn may_write(&self, rules: &StoreRules, path: &DocPath) -> Result<(), Failure> {
        match (self.kind, rules.writable) {
            (ActorKind::Person, _) | (_, WriteAccess::Agents) => Ok(()),
            (ActorKind::Agent | ActorKind::Service | ActorKind::Runner, WriteAccess::People) => {
                let store = format!("{}/{}", path.scope().as_str(), path.store());
                Err(Failure::new(crate::codes::READ_ONLY_STORE, format!("only people write to {store}"))
                    .next("keep it in another store, and propose it with memory_propose_promotion"))
            }
        }
    }

    /// Wants a permit that may write, and beyond the session one that people approved. The gate is elsewhere; whoever
    /// comes here without having passed it is a fault of ours, and writes nothing.
    pub(in crate::documents) fn must_act(&self, scope: DocumentScope) -> Result<(), Failure> {
        let asked = match (self.kind, scope) {
            (ActorKind::Person, _)
            | (ActorKind::Agent | ActorKind::Service | ActorKind::Runner, DocumentScope::Session) => true,
            (
                ActorKind::Agent | ActorKind::Service | ActorKind::Runner,
                DocumentScope::User | DocumentScope::Tenant,
            ) => self.approval.is_some(),
        };
        match self.acts && asked {
            true => Ok(()),
            false => Err(Failure::new(Code::Internal, "this write was not approved, so nothing was written")),
        }
    }

    /// What the audit log says of a write.
    pub(in crate::documents) fn entry(&self, path: &DocPath) -> AuditEntry {
        let actor =
            Actor { principal: self.reader.principal.clone(), kind: self.kind, scopes: self.scopes, token: None };
        let call = self.call.as_deref();
        AuditEntry {
            actor: Some(actor),
            session: self.reader.session,
            call: call.map(|call| call.id),
            tool: call.map(|call| call.tool.clone()),
            toolset: call.map(|call| call.toolset.clone()),
            effect: call.map(|call| call.effect),
            target: Some(format!("memory/{path}")),
            ..AuditEntry::new(Phase::Transition)
        }
    }
}
