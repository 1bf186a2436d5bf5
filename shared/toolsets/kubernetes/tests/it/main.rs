//! The Kubernetes client and the tools on it: against a scripted API server, and against a simulated cluster.
//!
//! The modules are marked as tests one by one, so that their helpers may fail a test by `unwrap`.

#[cfg(test)]
mod argo;
#[cfg(test)]
mod border;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod k8s;
#[cfg(test)]
mod k8s_write_objects;
#[cfg(test)]
mod k8s_write_workloads;
