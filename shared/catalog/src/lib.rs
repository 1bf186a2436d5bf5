//! The catalog: what a tool is, and the ordered immutable set of tools one tenant can be issued.
//!
//! Reading order: [`tool`] (what a tool's author writes), [`preview`] (what an approver is shown of a call), [`schema`]
//! (the two schemas of one type), [`entry`] (a tool with its type erased, its bytes ready), [`virtuals`] (the tools the
//! service answers itself), [`catalog`](mod@catalog) (all of them for one tenant), [`sheet`] (what people see when they
//! choose), [`tools_cache`] (finished list bytes), [`tokens`] (what it costs a model to read).
//!
//! Not here: who may call what (see `policy`), and the wire's envelopes (see `mcp`).

pub mod catalog;
pub mod entry;
pub mod preview;
pub mod schema;
mod shared;
pub mod sheet;
pub mod tokens;
pub mod tool;
pub mod tools_cache;
pub mod validate;
pub mod virtuals;

pub use catalog::{Catalog, CatalogParts, CatalogRules, ListAudience, NameMatch, ToolsetFacts};
pub use entry::{
    CatalogEntry, CompiledTool, CompiledTools, ErasedCall, ErasedTool, ParseResult, ParsedCall, TargetName,
    TargetNames, ToolDefinition, ToolSource,
};
pub use preview::PreviewBuilder;
pub use sheet::{ToolSheet, VirtualSheet};
pub use tool::{BoxedFuture, ProbeResult, Progress, Tool, ToolFuture, ToolPreview, ToolSpec};
pub use tools_cache::{CachedToolsPage, ListKey, ToolsCache};
pub use virtuals::ControlTool;
