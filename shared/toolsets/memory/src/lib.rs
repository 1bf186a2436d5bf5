//! The toolset `memory`: documents that agents keep and people adopt.
//!
//! Reading order: [`documents`] (what may be kept where, how it is changed, found and promoted), [`tools`] (the tools, one
//! file each), [`section`] (what a tenant says about its memory).
//!
//! Not here: how documents are stored (see `store`), how they are ranked (see `recall`), and who may call what (see
//! `policy`).

pub mod codes;
mod configured;
pub mod documents;
pub mod section;
pub mod tools;
mod toolset;

pub use toolset::{MemoryToolset, TenantMemory};
