//! What the validator of tenants' texts is told about the rest of the service.

use crate::targets::Reach;
use catalog::Entry;
use domain::Tenant;
use std::sync::Arc;
use tenancy::{Curated, Known};

/// Names the validator knows.
pub fn known(tools: &[Arc<Entry>]) -> (Vec<&str>, Vec<&str>) {
    let mut toolsets: Vec<&str> = tools.iter().map(|e| e.definition().toolset.as_str()).collect();
    toolsets.dedup();
    (toolsets, tools.iter().map(|e| e.name().as_str()).collect())
}

/// Does something with all there is to know.
pub(crate) fn with<T>(tools: &[Arc<Entry>], reach: &Reach, curated: &Curated, work: impl FnOnce(&Known<'_>) -> T) -> T {
    let (toolsets, names) = known(tools);
    let (server, charts) = (|address: &str| reach.server(address), |address: &str| reach.charts(address));
    let own_server = |tenant: &Tenant, address: &str| reach.own_server(tenant, address);
    work(&Known {
        toolsets: &toolsets,
        tools: &names,
        server: &server,
        charts: &charts,
        curated,
        own_server: &own_server,
    })
}
