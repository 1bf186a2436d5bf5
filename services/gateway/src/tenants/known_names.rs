//! What the validator of tenants' configurations needs to know of the rest of the service.

use crate::reach::EgressPolicy;
use crate::toolsets::Toolsets;
use catalog::CatalogEntry;
use external::ServerCatalog;
use external::section::SERVERS;
use std::sync::Arc;
use tenancy::{AddressUse, KnownNames};

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
    catalog: &ServerCatalog,
    work: impl FnOnce(&KnownNames<'_>) -> T,
) -> T {
    let (toolsets, names) = names_of(available.tools());
    let sections = available.sections(catalog);
    let addresses = |used: &AddressUse<'_>| match (used.section, used.tenant) {
        (helm::section::KEY, _) => reach.charts(used.address),
        (SERVERS, Some(tenant)) => reach.own_server(tenant, used.address),
        // Without its tenant a file is not used, whatever its servers are.
        (SERVERS, None) => Ok(()),
        // What it names is no address: a runbook of its own that only reads.
        (runbooks::section::KEY, Some(tenant)) => reach.read_runbook(tenant, used.address),
        (runbooks::section::KEY, None) => Ok(()),
        (_, _) => reach.server(used.address),
    };
    work(&KnownNames { toolsets: &toolsets, tools: &names, sections: &sections, addresses: &addresses })
}
