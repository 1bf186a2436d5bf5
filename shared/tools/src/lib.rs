//! The built-in tools, one file each, and one list per toolset.
//!
//! A new tool is its file and one line in the list of its toolset. Nothing here decides who may call what.

pub mod memory;

use catalog::Entry;
use catalog::validate::BadSchema;
use std::sync::Arc;
use store::Store;

/// Every built-in tool, in the product's order.
pub fn all(store: &Store) -> Result<Vec<Arc<Entry>>, BadSchema> {
    memory::list(store)
}

/// Toolsets that are announced but not built yet, so that people know what to expect.
pub const TO_COME: [&str; 4] = ["k8s", "helm", "argo", "jenkins"];
