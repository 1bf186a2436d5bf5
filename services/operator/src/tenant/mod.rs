//! The controllers of `Tenant` and `ServerEntry`: they write nothing but status.
//!
//! Reading order: [`text`] (what a tenant becomes: the text of its file), [`sources`] (what that is made of), [`replicas`]
//! (what the gateway's replicas report), [`reconcile`](mod@reconcile) and [`entry`] (the status of both).
//!
//! What is in force does not depend on any of this: each replica of the gateway has a [`sync`](crate::sync) beside it,
//! which writes the same text into its folder.

pub mod entry;
pub mod reconcile;
pub mod replicas;
pub mod sources;
pub mod text;

/// The tenant of a namespace: what its name says after the prefix; `None` for a namespace of something else.
///
/// No two namespaces have the same tenant, so nobody takes over somebody else's by naming it.
pub fn tenant_of<'n>(namespace: &'n str, prefix: &str) -> Option<&'n str> {
    let name = namespace.strip_prefix(prefix)?;
    let is_good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_label = (1..=63).contains(&name.len()) && name.bytes().all(is_good);
    (is_label && !name.starts_with('-') && !name.ends_with('-')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::tenant_of;

    #[test]
    fn a_namespace_has_one_tenant_and_a_tenant_one_namespace() {
        assert_eq!(tenant_of("shop", ""), Some("shop"));
        assert_eq!(tenant_of("team-shop", "team-"), Some("shop"));
        assert_eq!(tenant_of("shop", "team-"), None);
        assert_eq!(tenant_of("team-", "team-"), None);
        assert_eq!(tenant_of("team--x", "team-"), None);
        assert_eq!(tenant_of("../x", ""), None);
    }
}
