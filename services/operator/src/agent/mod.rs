//! The controller of `LanguageAgent`: the agent's Deployment, with the endpoints of its tools and its sidecars.
//!
//! Reading order: [`objects`] (what an agent becomes), [`reconcile`](mod@reconcile).

pub mod objects;
pub mod reconcile;
