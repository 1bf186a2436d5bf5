//! What the service does with a request, whichever transport brought it: MCP in both eras, and the REST turn.
//!
//! Reading order: [`exchange`] (what a transport hands over and gets back), [`sink`] (where frames go), [`dispatch`]
//! (MCP, method by method), [`selection`], [`list`], [`call`], `method_span`, [`cancel`], `pace`, [`stream`], then [`turn`] (the REST
//! turn's logic).
//!
//! A transport is an adapter: it finds out who calls, makes an [`McpExchange`], and writes the [`McpAnswer`] and the frames
//! of a stream in its own form. HTTP is `http::mcp` and `http::sessions`; lines on stdin and stdout are `stdio::local`. So nothing in this folder names a web framework, which a
//! test checks.
//!
//! It is a folder and not a crate, because a request needs the tenants of this process and those are the gateway's
//! ([`TenantRegistry`](crate::tenants::TenantRegistry)): a crate would need a trait for them, and it would have one implementation.

pub mod call;
pub mod cancel;
pub mod dispatch;
pub mod exchange;
pub mod list;
mod method_span;
mod operation;
mod pace;
pub mod selection;
pub mod sink;
pub mod stream;
pub mod turn;

pub use dispatch::{answer, answer_decoded};
pub use exchange::{Instructions, McpAnswer, McpExchange, McpMessage, McpRequest};
pub use method_span::ClientConnection;
pub use sink::Frame;
