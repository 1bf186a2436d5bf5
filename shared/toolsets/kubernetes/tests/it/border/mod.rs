//! What the handles do at the HTTP border, against a scripted API server: what is sent, how often, and what comes back.
//!
//! The modules are marked as tests one by one, so that their helpers may fail a test by `unwrap`.

mod credentials;
mod faults;
mod kinds;
mod masking;
mod places;
mod support;
mod watches;
mod whole_cluster;
mod writes;
