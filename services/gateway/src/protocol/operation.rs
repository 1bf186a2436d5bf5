//! How long a message of an MCP client took, and how it ended: one value of a histogram.

use crate::protocol::exchange::{McpAnswer, McpMessage};
use crate::protocol::method_span::method;
use mcp::{Era, Request};
use std::time::Instant;
use telemetry::metrics;

/// A message that is being answered.
pub(super) struct McpOperation {
    began: Instant,
    method: &'static str,
    version: &'static str,
    transport: &'static str,
    /// Whether its end is noted elsewhere, because it may come after the answer has begun.
    noted_elsewhere: bool,
}

impl McpOperation {
    /// One that begins now; whoever sends headers sends them over a network.
    pub(super) fn begin(has_headers: bool) -> McpOperation {
        let transport = if has_headers { "tcp" } else { "pipe" };
        McpOperation { began: Instant::now(), method: "", version: "", transport, noted_elsewhere: false }
    }

    /// What is asked, and in which revision of the protocol.
    pub(super) fn is(&mut self, request: &Request, era: Era) {
        self.method = method(request);
        self.version = era.as_str();
    }

    /// The same operation, for the call that notes its own end.
    pub(super) fn of_call(&mut self) -> McpOperation {
        self.noted_elsewhere = true;
        McpOperation { ..*self }
    }

    /// Notes how it was answered. What was no request is not counted.
    pub(super) fn end(&self, answer: &McpAnswer) {
        let code = match answer {
            McpAnswer::Message(McpMessage { rpc_code, .. }) => rpc_code.map(|code| code.to_string()),
            McpAnswer::Streaming(_) | McpAnswer::Accepted | McpAnswer::Cancelled | McpAnswer::NeedsStream => None,
        };
        if !self.noted_elsewhere && !self.method.is_empty() {
            self.note(self.method, "", code.as_deref().unwrap_or_default());
        }
    }

    /// Notes how the call of a tool ended; `tool` is empty for a name that is not in the catalog.
    pub(super) fn end_call(&self, tool: &str, error: &str) {
        self.note("tools/call", tool, error);
    }

    fn note(&self, method: &str, tool: &str, error: &str) {
        let labels = [method, tool, error, self.version, self.transport];
        metrics::MCP_SERVER_OPERATION.observe_since(labels, self.began);
    }
}
