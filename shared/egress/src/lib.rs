//! The guarded HTTP clients everything outward is built from.
//!
//! Two kinds of address, two clients. What an operator wrote into the settings is asked by [`client`]: [`address`] says
//! where it may go, [`fetch`] reads a bounded answer, [`ask`](mod@ask) puts an authenticated question. The user of a command
//! names an address as well, and a proxy may stand before it ([`service_client`]). What a tenant can
//! influence is asked by [`guarded`] alone: [`guard`] judges what is written and what it resolves to, by [`reach`];
//! [`streaming`] reads an answer as it comes.
//!
//! Not here: retries, caching and what the bytes mean (see whoever asked for them).

pub mod address;
pub mod ask;
pub mod client;
pub mod fetch;
pub mod guard;
pub mod guarded;
pub mod reach;
pub mod streaming;

pub use address::{AddressError, check_operator_address};
pub use ask::{FetchRequest, ask, ask_if, post, telemetry_sender, upload};
pub use client::{ClientError, Config, HttpClient, operator_client, service_client};
pub use fetch::{FetchError, get_capped};
pub use guard::{AddressGuard, AddressRefused};
pub use guarded::{Guarded, GuardedRequest, GuardedResponse, Lookup, LookupFuture, SendError, trace_headers};
pub use reach::AddressClass;
pub use reqwest::{Method, Url, header};
pub use streaming::{StreamBounds, Streaming};
