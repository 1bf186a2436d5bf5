//! World, actors and doubles at the HTTP border; for tests only.
//!
//! Reading order: [`plan`] (what a world is made of), [`world`] (replicas that run, and are tidy when they stop),
//! [`actor`] (who speaks), then the ways to speak: [`legacy`], [`modern`], [`rest`]. Below them stand [`http`], [`sse`]
//! and [`outcome`], which read what came back, [`process`], [`redis`] and [`redis_topology`] with [`certificates`], which are real programs like [`prometheus`] and [`jaeger`], [`mod@line`] between them, and [`patience`].
//! [`upstream`] is an MCP server that does as it is told, harm included, and [`collector`] takes the spans.
//!
//! Not here: the gateway. Whoever builds a world hands in how a replica is started.

pub mod actor;
pub mod bench;
pub mod certificates;
pub mod collector;
pub mod http;
pub mod jaeger;
pub mod legacy;
pub mod line;
pub mod modern;
pub mod outcome;
pub mod patience;
pub mod plan;
pub mod process;
pub mod prometheus;
pub mod redis;
pub mod redis_topology;
pub mod rest;
pub mod sse;
pub mod upstream;
pub mod world;

pub use actor::{Actor, TenantActors};
pub use collector::{CollectedLog, CollectedMetric, CollectedSpan, Collector};
pub use http::{Answer, Request};
pub use jaeger::{Jaeger, JaegerSpan};
pub use legacy::Legacy;
pub use line::Line;
pub use modern::Modern;
pub use outcome::Outcome;
pub use patience::until;
pub use plan::Plan;
pub use process::Process;
pub use prometheus::Prometheus;
pub use rest::Rest;
pub use sse::Stream;
pub use world::{Leftovers, Replica, Setup, Start, World};
