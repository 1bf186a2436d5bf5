//! The pages of the web console: typed views in, HTML out.
//!
//! One page is one file. Reading order: [`layout`] (what surrounds every page), [`parts`] (what several pages show, and
//! how text of strangers is shown), [`assets`]; then the pages: [`sign_in`], [`inbox`], [`run`] with its [`decide`] forms,
//! [`runs`], [`message`].
//!
//! A page is a pure function: no clock, no store, no rights. Whoever calls it has decided what may be seen. Nothing here
//! writes script or style into a page, and every text is escaped by `maud`; what agents wrote goes through
//! [`parts::untrusted`] besides.
//!
//! Not here: addresses, sessions and decisions (see the gateway's console).

pub mod assets;
pub mod decide;
pub mod inbox;
pub mod layout;
pub mod message;
pub mod parts;
pub mod run;
pub mod runs;
pub mod sign_in;

pub use layout::{NavCounts, PageFrame, PersonView, Screen};
pub use maud::Markup;

/// Where the console begins.
pub const BASE: &str = "/console";
