//! The tools about charts, against real servers on this machine: real requests, real archives, real permits, real schemas.

pub(crate) mod archives;
mod hostile;
mod oci;
mod repo;
mod search;
pub(crate) mod server;
mod show;
mod template;
mod world;
