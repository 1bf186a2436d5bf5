//! The tools of Argo Rollouts, against a simulated cluster at the HTTP border: real client, real permits, real schemas,
//! a controller that moves what is written, and effects counted where they land.

mod analysis;
mod hostile;
mod incoming;
mod read;
mod steer;
mod template;
mod walk;
mod world;
