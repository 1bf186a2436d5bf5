//! The pages of the web console: typed views in, HTML out.
//!
//! One page is one file. Reading order: [`layout`] (what surrounds every page), [`parts`] (what several pages show, and
//! how text of strangers is shown), [`assets`]; then the pages: [`sign_in`], [`inbox`], [`run`] with its [`decide`] forms,
//! [`runs`], [`audit`] with [`audit_entry`], [`sessions`], [`usage`], [`operations`], [`catalog`], [`message`]; for people
//! who administer a tenant: [`config`] with [`config_history`] and [`config_keys`], [`explain`], [`servers`], [`secrets`],
//! [`memory`].
//!
//! A page is a pure function: no clock, no store, no rights. Whoever calls it has decided what may be seen. Nothing here
//! writes script or style into a page, and every text is escaped by `maud`; what agents wrote goes through
//! [`parts::untrusted`] besides.
//!
//! Not here: addresses, sessions and decisions (see the gateway's console).

pub mod assets;
pub mod audit;
pub mod audit_entry;
pub mod catalog;
pub mod config;
pub mod config_history;
pub mod config_keys;
pub mod decide;
pub mod explain;
pub mod inbox;
pub mod layout;
pub mod memory;
pub mod message;
pub mod operations;
pub mod parts;
pub mod run;
pub mod runs;
pub mod secrets;
pub mod servers;
pub mod sessions;
pub mod sign_in;
pub mod usage;

pub use layout::{NavCounts, PageFrame, PersonView, Screen};
pub use maud::Markup;

/// Where the console begins.
pub const BASE: &str = "/console";
