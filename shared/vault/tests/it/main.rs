//! What the vault promises, asked of every store: memory, file and a real Redis.
//!
//! The modules are marked as tests one by one, so that their helpers may fail a test by `unwrap`.

#[cfg(test)]
mod bench;
#[cfg(test)]
mod changes;
#[cfg(test)]
mod places;
#[cfg(test)]
mod replicas;
#[cfg(test)]
mod rollback;
#[cfg(test)]
mod rotation;
#[cfg(test)]
mod scrubbing;
