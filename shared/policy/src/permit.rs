//! The proof of a yes. What touches the outside asks for one in its signature, and takes the tenant from it.

use domain::{Call, Effect, Moment, Principal, RunId, Tenant};

/// How far a permit reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermitMode {
    /// May look and dry-run, nothing more.
    Rehearse,
    /// May do what the call says.
    Act,
}

/// What allowed the call; goes into the audit entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Basis {
    /// The call only reads.
    ReadOnly,
    /// A person is to be asked; the permit is for the preview.
    Asking,
    /// People approved this run.
    Run(PermitApproval),
}

/// What people said yes to, who they were, and when the last of them did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermitApproval {
    /// The run.
    pub run: RunId,
    /// Those who said yes.
    pub by: Vec<Principal>,
    /// When it was decided, by the store's clock: the same for every attempt to carry the run out.
    pub at: Moment,
}

/// Proof that one call may run, and how far it may reach. Only [`decide`](crate::decide()) makes one, and
/// [`Permit::for_preview`] makes a lesser one of it.
#[derive(Debug)]
pub struct Permit {
    call: Call,
    extent: PermitMode,
    basis: Basis,
}

impl Permit {
    /// The only place a permit comes from. It takes the decision's own inputs, so that no other module can call it
    /// with less than a judged call.
    pub(crate) fn grant(call: Call, extent: PermitMode, basis: Basis) -> Permit {
        Permit { call, extent, basis }
    }

    /// The same permit, good for a preview or a probe only: it may look and dry-run, and can never act.
    #[must_use]
    pub fn for_preview(&self) -> Permit {
        Permit { call: self.call.clone(), extent: PermitMode::Rehearse, basis: self.basis.clone() }
    }

    /// The tenant everything is done for.
    pub fn tenant(&self) -> &Tenant {
        &self.call.caller.tenant
    }

    /// The call that was judged.
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// What the call would do.
    pub fn effect(&self) -> Effect {
        self.call.effect
    }

    /// How far it reaches.
    pub fn extent(&self) -> PermitMode {
        self.extent
    }

    /// The run that allowed it, if a person did.
    pub fn run(&self) -> Option<RunId> {
        self.approval().map(|approval| approval.run)
    }

    /// The approval that allowed it, if people gave one.
    pub fn approval(&self) -> Option<&PermitApproval> {
        match &self.basis {
            Basis::Run(approval) => Some(approval),
            Basis::ReadOnly | Basis::Asking => None,
        }
    }

    /// What allowed it.
    pub fn basis(&self) -> &Basis {
        &self.basis
    }
}
