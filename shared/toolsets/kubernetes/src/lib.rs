//! The toolsets `k8s` and `argo`: looking at Kubernetes clusters and changing them, through their API.
//!
//! Reading order: [`client`] (narrow handles that need a permit; all that touches a cluster), [`k8s`] and [`argo`] (the
//! tools, one file each), [`section`] (what a tenant says about its clusters).
//!
//! Not here: helm, which is another program (see `helm`), and who may call what (see `policy`).

pub mod argo;
pub mod client;
pub mod codes;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod k8s;
pub mod risks;
pub mod section;
mod selector;
mod toolset;

pub use section::{ClusterEntry, ClusterSource, ImpersonateConfig};
pub use toolset::{
    Argo, Kubernetes, KubernetesConfig, SimulateCluster, SimulatedCluster, TenantArgo, TenantKubernetes,
};
