//! The tools that steer workloads and reach into pods, against a simulated cluster at the HTTP border: real client, real
//! permits, real schemas, and effects counted where they land.

mod exec;
mod hostile;
mod node;
mod probe;
mod rollout;
mod run;
