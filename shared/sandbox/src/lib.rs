//! A simulated Kubernetes API in the process.
//!
//! `quartermaster dev` acts on it when no cluster is named, and tests use it at the HTTP border with a real client.
//! It speaks the wire of Kubernetes 1.33 on a loopback port and says of itself that it is simulated.
//! Nothing is started, pulled or stored: nodes, images and programs are stories told by tick-driven controllers.
//!
//! In reading order: `server` and `route` (HTTP), `resources`, `list` and `watch` (verbs), `write` and `patch`
//! (changes), `objects` and `world` (state), `schema` and `kinds` (what is known), `controllers` (what moves), `seed`.
//!
//! [`jenkins`] is a second server of the same kind, a simulated Jenkins; the two share nothing but how they answer.
//!
//! Not here: admission webhooks, API aggregation, attach and port-forward, TLS. The wire is plain HTTP on loopback.

mod access;
mod clock;
mod controllers;
mod defaults;
mod discovery;
mod fault;
mod fields;
mod images;
pub mod jenkins;
mod json;
mod kinds;
mod list;
mod logs;
mod managers;
mod objects;
mod openapi;
mod patch;
mod program;
mod protobuf;
mod query;
mod reply;
mod resources;
mod route;
mod schema;
mod seed;
mod selector;
mod server;
mod status;
mod subresources;
mod table;
mod validate;
mod watch;
mod world;
mod write;

pub use self::fault::{ClusterFault, ClusterHarm};
pub use self::seed::Seed;
pub use self::server::Sandbox;
pub use self::world::SimulationPace;
