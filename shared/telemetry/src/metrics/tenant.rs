//! Whether tenants are told apart in metrics. By default they are not: a series per tenant is a cost that grows with
//! them, and who is a customer is not everybody's business who may see a dashboard.

use super::family::OTHER;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, PoisonError, RwLock};

/// How many tenants get a name of their own.
const MOST_TENANTS: usize = 50;

static LABELLED: AtomicBool = AtomicBool::new(false);
static TENANTS: LazyLock<RwLock<HashSet<Box<str>>>> = LazyLock::new(RwLock::default);

/// Switches the label of tenants on or off.
pub fn label_tenants(on: bool) {
    LABELLED.store(on, Ordering::Relaxed);
}

/// The value of the label `tenant`: empty unless it is switched on; then the tenant's name for the first 50 tenants that
/// call, and `_other` for the rest. First come keeps its name, because a counter whose tenant changes would go backwards.
pub fn tenant_label(tenant: &str) -> &str {
    if LABELLED.load(Ordering::Relaxed) { among(&TENANTS, tenant) } else { "" }
}

fn among<'t>(tenants: &RwLock<HashSet<Box<str>>>, tenant: &'t str) -> &'t str {
    if tenants.read().unwrap_or_else(PoisonError::into_inner).contains(tenant) {
        return tenant;
    }
    let mut named = tenants.write().unwrap_or_else(PoisonError::into_inner);
    if named.contains(tenant) || (named.len() < MOST_TENANTS && named.insert(tenant.into())) { tenant } else { OTHER }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifty_tenants_have_a_name_and_keep_it() {
        let tenants = RwLock::default();
        for number in 0..MOST_TENANTS {
            let name = format!("tenant-{number}");
            assert_eq!(among(&tenants, &name), name);
        }
        assert_eq!(among(&tenants, "one-more"), OTHER);
        assert_eq!(among(&tenants, "tenant-0"), "tenant-0");
    }

    #[test]
    fn by_default_no_tenant_is_named() {
        assert_eq!(tenant_label("acme"), "");
    }
}
