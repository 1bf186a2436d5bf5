//! The Kubernetes tools against a simulated cluster at the HTTP border: real client, real permits, real schemas.

mod discover;
mod get;
mod large;
mod logs;
mod others;
mod secrets;
mod world;
