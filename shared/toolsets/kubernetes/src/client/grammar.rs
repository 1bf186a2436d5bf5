//! What may become part of an address or a selector. Nothing reaches a request that did not pass here.

use crate::client::kinds::Kind;
use crate::selector::{is_field_selector, is_label_selector};
pub(in crate::client) use domain::text::{is_label, is_subdomain};
use domain::{Code, Failure};

/// What the kinds of access control allow besides: colons, capitals, underscores; still one path segment.
fn is_segment(text: &str) -> bool {
    (1..=253).contains(&text.len())
        && !text.starts_with('-')
        && !text.contains("..")
        && text != "."
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':'))
}

/// Checks the name of an object of this kind.
pub(in crate::client) fn object_name(kind: &Kind, name: &str) -> Result<(), Failure> {
    let wide = kind.group() == "rbac.authorization.k8s.io";
    if is_subdomain(name) || (wide && is_segment(name)) {
        return Ok(());
    }
    let message = format!("that is no name of a {}", kind.kind());
    Err(Failure::new(Code::InvalidArgument, message)
        .next("give the bare name: 1 to 253 of a-z, 0-9, '-' and '.', without a kind, a slash or a flag"))
}

/// Checks the name of a container.
pub(in crate::client) fn container(name: &str) -> Result<(), Failure> {
    if is_label(name) {
        return Ok(());
    }
    Err(Failure::new(Code::InvalidArgument, "that is no name of a container").next("give a DNS label"))
}

/// Checks a label selector.
pub(in crate::client) fn label_selector(text: &str) -> Result<(), Failure> {
    if is_label_selector(text) {
        return Ok(());
    }
    Err(Failure::new(Code::InvalidArgument, "the selector is not a label selector")
        .next("write it like app=web,tier!=db,env in (a,b); at most 1024 bytes"))
}

/// Checks a field selector.
pub(in crate::client) fn field_selector(text: &str) -> Result<(), Failure> {
    if is_field_selector(text) {
        return Ok(());
    }
    Err(Failure::new(Code::InvalidArgument, "the field selector is not one")
        .next("write it like status.phase=Running,spec.nodeName!=n1; at most 512 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever passes as a name is one path segment that means itself.
        #[test]
        fn a_name_is_one_segment(text in "\\PC{0,40}|[-a-zA-Z0-9._:/%]{0,40}") {
            if is_subdomain(&text) || is_segment(&text) || is_label(&text) {
                prop_assert!(!text.contains(['/', '%', '?', '#', '\\', ' ']) && !text.contains("..") && text != ".");
                prop_assert!(!text.starts_with('-') && text.is_ascii());
            }
        }
    }
}
