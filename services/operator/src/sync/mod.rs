//! `quartermaster-operator sync`: stands beside one replica of the gateway and keeps its folder of tenants.
//!
//! It reads Tenants, ServerEntries and the tools they name, writes the text of each tenant and its secrets, and reads in the
//! gateway's report what became of them. A text that the gateway finds faulty is replaced by the last good one, which a
//! replica that starts then serves as well. It writes nothing to the cluster but its own lease.
//!
//! Reading order: [`offer`] (which text stands in the folder), [`folder`] (files), [`report`] (what the gateway says),
//! [`presence`] (the lease), [`run`](mod@run).

pub mod folder;
pub mod offer;
pub mod presence;
pub mod report;
pub mod run;

pub use run::{SyncSettings, run};
