//! The MCP wire in both protocol eras: bytes to request, outcome to bytes.
//!
//! In reading order:
//! - inwards: [`headers`], [`era`], [`id`], the envelope, [`decode`](mod@decode), the header checks in
//!   [`ladder`], [`request`], [`meta`], [`stdio`];
//! - passed on: [`forward`] (what stdio brought and HTTP takes further);
//! - what can go wrong: [`codes`] (the one table), [`refusal`];
//! - outwards: [`encode`], [`list`], [`frames`], [`sse`], [`cursor`], [`instructions`].
//!
//! Everything is a pure function of its arguments. Not here: HTTP types, streams, sessions, tokens and time
//! (see the gateway), which tools exist (see the catalog), what a call does (see the executor).

pub mod codes;
pub mod cursor;
pub mod decode;
pub mod encode;
mod envelope;
pub mod era;
pub mod forward;
pub mod frames;
pub mod headers;
pub mod id;
pub mod instructions;
mod json;
pub mod ladder;
pub mod list;
pub mod meta;
pub mod refusal;
pub mod request;
pub mod sse;
pub mod stdio;

pub use codes::MessageFault;
pub use decode::{Incoming, Notification, RequestEnvelope, decode};
pub use era::{Era, LegacyRevision, MODERN};
pub use headers::ProtocolHeaders;
pub use id::{Id, ProgressToken};
pub use meta::{ClientInfo, Meta};
pub use refusal::{FinishedReply, Refusal, WireError};
pub use request::Request;
pub use stdio::decode_line;
