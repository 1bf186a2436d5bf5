//! What the validator of tenants' configurations needs to know of the rest of the service.

use crate::reach::EgressPolicy;
use crate::toolsets::Toolsets;
use catalog::CatalogEntry;
use domain::Tenant;
use std::sync::Arc;
use tenancy::{KnownNames, ServerCatalog};

/// The names of toolsets and of tools.
pub fn names_of(tools: &[Arc<CatalogEntry>]) -> (Vec<&str>, Vec<&str>) {
    let mut toolsets: Vec<&str> = tools.iter().map(|e| e.definition().toolset.as_str()).collect();
    toolsets.dedup();
    (toolsets, tools.iter().map(|e| e.name().as_str()).collect())
}

/// Calls `work` with everything the validator needs to know.
pub(crate) fn with_known_names<T>(
    available: &Toolsets,
    reach: &EgressPolicy,
    curated: &ServerCatalog,
    work: impl FnOnce(&KnownNames<'_>) -> T,
) -> T {
    let (toolsets, names) = names_of(available.tools());
    let sections = available.sections();
    let (server, charts) = (|address: &str| reach.server(address), |address: &str| reach.charts(address));
    let own_server = |tenant: &Tenant, address: &str| reach.own_server(tenant, address);
    work(&KnownNames {
        toolsets: &toolsets,
        tools: &names,
        sections: &sections,
        server: &server,
        charts: &charts,
        curated,
        own_server: &own_server,
    })
}
