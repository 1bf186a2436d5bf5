//! What the handles do at the HTTP border, against a scripted API server: what is sent, how often, and what comes back.
//!
//! The modules are marked as tests one by one, so that their helpers may fail a test by `unwrap`.

#[cfg(test)]
mod credentials;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod kinds;
#[cfg(test)]
mod masking;
#[cfg(test)]
mod places;
#[cfg(test)]
mod support;
#[cfg(test)]
mod watches;
#[cfg(test)]
mod whole_cluster;
#[cfg(test)]
mod writes;
