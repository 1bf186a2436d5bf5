//! Policy: rules, call and evidence in, a [`Decision`] out. Pure, and the only maker of [`Permit`].
//!
//! Reading order: [`rule`] (what a tenant may say), [`evidence`] (what is known), [`decide()`], [`permit`] (the proof),
//! [`external`] (what is laid down about servers of others).
//! Rules only tighten: there is no way to write one that lets more through than the product's own defaults.
//!
//! Not here: clocks, stores, HTTP, and what the tools do.

pub mod decide;
pub mod evidence;
pub mod external;
pub mod permit;
pub mod rule;

pub use decide::{
    Decision, DenyReason, Explanation, Policy, Question, asking_rule, asking_rule_of, decide, decide_load, explain,
    on_reject, over_rate, question,
};
pub use evidence::CallEvidence;
pub use external::{Accept, ServerLimits, TrustedEffects};
pub use permit::{Basis, Permit, PermitApproval, PermitMode};
pub use rule::{Gate, NotAPattern, Pattern};
