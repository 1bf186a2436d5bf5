//! What the validator of tenants' texts is told about the rest of the service.

use crate::reach::EgressPolicy;
use crate::toolsets::Toolsets;
use catalog::CatalogEntry;
use external::ServerCatalog;
use external::section::SERVERS;
use std::sync::Arc;
use tenancy::{AddressUse, KnownNames};

/// Names the validator knows.
pub fn known(tools: &[Arc<CatalogEntry>]) -> (Vec<&str>, Vec<&str>) {
    let mut toolsets: Vec<&str> = tools.iter().map(|e| e.definition().toolset.as_str()).collect();
    toolsets.dedup();
    (toolsets, tools.iter().map(|e| e.name().as_str()).collect())
}

/// Does something with all there is to know.
pub(crate) fn with<T>(
    available: &Toolsets,
    reach: &EgressPolicy,
    catalog: &ServerCatalog,
    work: impl FnOnce(&KnownNames<'_>) -> T,
) -> T {
    let (toolsets, names) = known(available.tools());
    let sections = available.sections(catalog);
    let addresses = |used: &AddressUse<'_>| match (used.section, used.tenant) {
        (helm::section::KEY, _) => reach.charts(used.address),
        (SERVERS, Some(tenant)) => reach.own_server(tenant, used.address),
        // Without its tenant a file is not used, whatever its servers are.
        (SERVERS, None) => Ok(()),
        (_, _) => reach.server(used.address),
    };
    work(&KnownNames { toolsets: &toolsets, tools: &names, sections: &sections, addresses: &addresses })
}
