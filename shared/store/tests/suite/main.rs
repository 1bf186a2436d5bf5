//! What the store promises, asked of every backend: memory, file and a real Redis on one node, behind sentinels and as a
//! cluster.
//!
//! The modules are marked as tests one by one, so that their helpers may fail a test by `unwrap`.

#[cfg(test)]
mod audit;
#[cfg(test)]
mod batches;
#[cfg(test)]
mod bench;
#[cfg(test)]
mod browsers;
#[cfg(test)]
mod carried;
#[cfg(test)]
mod cluster_faults;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod duties;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod files;
#[cfg(test)]
mod forgetting;
#[cfg(test)]
mod histories;
#[cfg(test)]
mod jobs;
#[cfg(test)]
mod promotion;
#[cfg(test)]
mod quotas;
#[cfg(test)]
mod records;
#[cfg(test)]
mod references;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod seal;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod sentinel_faults;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod switches;
#[cfg(test)]
mod tenant_text;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod trimming;
#[cfg(test)]
mod usage;
#[cfg(test)]
mod waiting;
#[cfg(test)]
mod wakes;
#[cfg(test)]
mod writers;
