//! The guarded HTTP client everything outward is built from.
//!
//! Reading order: [`client`] builds it, [`address`] says where it may go, [`fetch`] reads a bounded answer,
//! [`ask`](mod@ask) puts an authenticated question.
//!
//! So far it serves one purpose: addresses an operator wrote into the settings. Addresses a tenant can influence
//! need their resolved address vetted as well and must not be fetched with this client.
//!
//! Not here: retries, caching and what the bytes mean (see whoever asked for them).

pub mod address;
pub mod ask;
pub mod client;
pub mod fetch;

pub use address::{AddressError, check_operator_address};
pub use ask::{Ask, ask, ask_if, post};
pub use client::{BuildError, Client, Config, operator_client};
pub use fetch::{FetchError, get_capped};
