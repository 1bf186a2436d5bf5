//! How the toolset `memory` joins a tenant: its section `memory` becomes the stores its tools and its people write to.

use crate::configured;
use crate::documents::Documents;
use crate::section::{self, MemoryConfig};
use crate::tools::MemoryDeps;
use crate::{codes, tools};
use catalog::{CatalogEntry, CompiledTools};
use domain::Code;
use std::sync::Arc;
use std::time::Duration;
use target::Cursors;
use tenancy::{Section, TenantConfig};
use toolset::{AttachContext, AttachError, AttachedToolset, Toolset};

/// The toolset `memory`.
pub struct MemoryToolset {
    notebook: Documents,
    cursors: Cursors,
    shapes: CompiledTools,
}

/// The documents of one tenant and the tools on them.
pub struct TenantMemory {
    notebook: Documents,
    review: Option<Duration>,
    entries: Vec<Arc<CatalogEntry>>,
}

impl TenantMemory {
    /// The tenant's documents, for people.
    pub fn notebook(&self) -> &Documents {
        &self.notebook
    }

    /// How long people may take to review what agents propose; `None` leaves it to the product.
    pub fn review(&self) -> Option<Duration> {
        self.review
    }
}

impl MemoryToolset {
    /// For all tenants of the process.
    pub fn new(notebook: Documents, cursors: Cursors) -> MemoryToolset {
        MemoryToolset { notebook, cursors, shapes: CompiledTools::default() }
    }

    fn entries(&self, notebook: &Documents) -> Result<Vec<Arc<CatalogEntry>>, AttachError> {
        let kit = MemoryDeps { notebook: notebook.clone(), cursors: self.cursors.clone() };
        tools::list(&kit, &self.shapes).map_err(AttachError::new)
    }
}

impl Toolset for MemoryToolset {
    fn names(&self) -> &'static [&'static str] {
        &[tools::TOOLSET]
    }

    fn sections(&self) -> Vec<Section> {
        vec![section::section()]
    }

    fn tools(&self, _several: bool) -> Result<Vec<Arc<CatalogEntry>>, AttachError> {
        self.entries(&self.notebook)
    }

    fn is_configured(&self, _: &TenantConfig) -> bool {
        // The service's own store is the target, and every tenant has it.
        true
    }

    fn attach(&self, attach: &AttachContext<'_>) -> Result<Arc<dyn AttachedToolset>, AttachError> {
        let config = attach.config.section::<MemoryConfig>(section::KEY).map_err(AttachError::new)?;
        let config = config.cloned().unwrap_or_default();
        let stores = configured::stores(&config.stores).map_err(AttachError::new)?;
        let notebook = self.notebook.with_stores(stores);
        let entries = self.entries(&notebook)?;
        Ok(Arc::new(TenantMemory { notebook, review: config.review, entries }))
    }

    fn codes(&self) -> &'static [Code] {
        codes::ALL
    }
}

impl AttachedToolset for TenantMemory {
    fn entries(&self) -> Vec<Arc<CatalogEntry>> {
        self.entries.clone()
    }
}
