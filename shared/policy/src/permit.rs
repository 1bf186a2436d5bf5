//! The proof of a yes. What touches the outside asks for one in its signature, and takes the tenant from it.

use domain::{Call, Effect, Moment, Principal, RunId, Tenant};

/// How far a permit reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
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
    Run(Approval),
}

/// What people said yes to, who they were, and when the last of them did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The run.
    pub run: RunId,
    /// Those who said yes.
    pub by: Vec<Principal>,
    /// When it was decided, by the store's clock: the same for every attempt to carry the run out.
    pub at: Moment,
}

/// Proof that one call may run, and how far it may reach. Only [`decide`](crate::decide()) makes one.
#[derive(Debug)]
pub struct Permit {
    call: Call,
    extent: Extent,
    basis: Basis,
}

impl Permit {
    /// The only place a permit comes from. It takes the decision's own inputs, so that no other module can call it
    /// with less than a judged call.
    pub(crate) fn grant(call: Call, extent: Extent, basis: Basis) -> Permit {
        Permit { call, extent, basis }
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
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// The run that allowed it, if a person did.
    pub fn run(&self) -> Option<RunId> {
        self.approval().map(|approval| approval.run)
    }

    /// The approval that allowed it, if people gave one.
    pub fn approval(&self) -> Option<&Approval> {
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
