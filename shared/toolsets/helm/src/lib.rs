//! The toolset `helm`: releases looked at and changed by the real helm binary.
//!
//! Reading order: [`client`] (how helm is started, and the charts it is given), [`tools`] (the tools, one file each),
//! [`section`] (where a tenant's charts come from).
//!
//! Not here: clusters and what is masked in what they hold (see `kubernetes`), and who may call what (see `policy`).

pub mod client;
pub mod codes;
pub mod section;
pub mod tools;
mod toolset;

pub use toolset::{HelmToolset, TenantHelm};
