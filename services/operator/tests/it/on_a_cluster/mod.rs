//! The operator on a real control plane (`deploy/testbed up`): what people write, and what becomes of it.
//!
//! Each test has a namespace of its own and an operator that looks at no other, which acts with exactly the rights that the
//! chart gives it. `QUARTERMASTER_TEST_KUBECONFIG` names the cluster; without one the tests are left out, loudly, and the
//! ring `operator` always has one.

mod agents;
mod checklist;
mod faults;
mod fields;
mod gateways;
mod leading;
mod leaving;
mod policies;
mod quiet;
mod rights;
mod schemas;
mod tenants;
mod yard;
