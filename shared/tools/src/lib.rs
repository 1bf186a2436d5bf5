//! The built-in tools, one file each, and one list per toolset.
//!
//! A new tool is its file and one line in the list of its toolset. Nothing here decides who may call what.

mod cursor;
pub mod k8s;
pub mod memory;

use catalog::Entry;
use catalog::validate::BadSchema;
use cluster::Clusters;
pub use cursor::{Clock, Cursors};
use std::sync::Arc;

/// What the built-in tools reach, all of it.
#[derive(Debug, Clone)]
pub struct Kit {
    /// The documents of all tenants.
    pub notebook: ::memory::Notebook,
    /// The clusters of all tenants.
    pub clusters: Clusters,
    /// Where long results go on, and the clock of ages.
    pub cursors: Cursors,
}

/// Every built-in tool, in the product's order. `many_clusters` lists the argument that names one.
pub fn all(kit: &Kit, many_clusters: bool) -> Result<Vec<Arc<Entry>>, BadSchema> {
    let k8s = k8s::K8sKit { clusters: kit.clusters.clone(), cursors: kit.cursors.clone() };
    let mut tools = k8s::list(&k8s, many_clusters)?;
    let memory = memory::MemoryKit { notebook: kit.notebook.clone(), cursors: kit.cursors.clone() };
    tools.extend(memory::list(&memory)?);
    Ok(tools)
}

/// Toolsets that are announced but not built yet, so that people know what to expect.
pub const TO_COME: [&str; 3] = ["helm", "argo", "jenkins"];
