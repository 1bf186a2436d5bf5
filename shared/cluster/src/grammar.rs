//! What may become part of an address or a selector. Nothing reaches a request that did not pass here.

use crate::kinds::Kind;
use domain::{Code, Failure};

/// A DNS-1123 label: namespaces, containers, clusters.
pub(crate) fn is_label(text: &str) -> bool {
    (1..=63).contains(&text.len()) && is_dns(text)
}

/// A DNS-1123 subdomain: most object names.
pub(crate) fn is_subdomain(text: &str) -> bool {
    (1..=253).contains(&text.len()) && text.split('.').all(is_dns)
}

fn is_dns(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|b| inner(*b))
        && bytes.last().is_some_and(|b| inner(*b))
        && bytes.iter().all(|b| inner(*b) || *b == b'-')
}

/// What the kinds of access control allow besides: colons, capitals, underscores; still one path segment.
fn is_segment(text: &str) -> bool {
    (1..=253).contains(&text.len())
        && !text.starts_with('-')
        && !text.contains("..")
        && text != "."
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':'))
}

/// Checks the name of an object of this kind.
pub(crate) fn object_name(kind: &Kind, name: &str) -> Result<(), Failure> {
    let wide = kind.group() == "rbac.authorization.k8s.io";
    if is_subdomain(name) || (wide && is_segment(name)) {
        return Ok(());
    }
    let message = format!("that is no name of a {}", kind.kind());
    Err(Failure::new(Code::InvalidArgument, message)
        .next("give the bare name: 1 to 253 of a-z, 0-9, '-' and '.', without a kind, a slash or a flag"))
}

/// Checks the name of a container.
pub(crate) fn container(name: &str) -> Result<(), Failure> {
    if is_label(name) {
        return Ok(());
    }
    Err(Failure::new(Code::InvalidArgument, "that is no name of a container").next("give a DNS label"))
}

/// How long a label selector may be.
const LABELS_MAX: usize = 1024;
/// How long a field selector may be.
const FIELDS_MAX: usize = 512;

/// Checks a label selector: `a=b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a`, `!a`, joined by commas.
pub(crate) fn label_selector(text: &str) -> Result<(), Failure> {
    let fits = text.len() <= LABELS_MAX && requirements(text).is_some_and(|all| all.into_iter().all(is_requirement));
    if fits {
        return Ok(());
    }
    Err(Failure::new(Code::InvalidArgument, "the selector is not a label selector")
        .next("write it like app=web,tier!=db,env in (a,b); at most 1024 bytes"))
}

/// Checks a field selector: `path=value`, `path==value`, `path!=value`, joined by commas.
pub(crate) fn field_selector(text: &str) -> Result<(), Failure> {
    let term = |term: &str| {
        let parts = term.split_once("!=").or_else(|| term.split_once("==")).or_else(|| term.split_once('='));
        parts.is_some_and(|(path, value)| {
            let word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
            !path.is_empty()
                && path.bytes().all(|b| word(b) || matches!(b, b'/' | b'[' | b']'))
                && value.bytes().all(|b| word(b) || matches!(b, b'/' | b':'))
        })
    };
    if !text.is_empty() && text.len() <= FIELDS_MAX && text.split(',').all(term) {
        return Ok(());
    }
    Err(Failure::new(Code::InvalidArgument, "the field selector is not one")
        .next("write it like status.phase=Running,spec.nodeName!=n1; at most 512 bytes"))
}

/// Splits at commas outside of parentheses; nothing if the parentheses do not fit.
fn requirements(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut from, mut inside) = (Vec::new(), 0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' if !inside => inside = true,
            ')' if inside => inside = false,
            '(' | ')' => return None,
            ',' if !inside => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    if inside {
        return None;
    }
    parts.push(&text[from..]);
    Some(parts)
}

fn is_requirement(text: &str) -> bool {
    let text = text.trim_matches(' ');
    for set in [" notin ", " in "] {
        if let Some((key, rest)) = text.split_once(set) {
            let values = rest.trim_matches(' ').strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
            return is_key(key.trim_matches(' '))
                && values.is_some_and(|v| v.split(',').all(|v| is_value(v.trim_matches(' '))));
        }
    }
    if let Some(key) = text.strip_prefix('!') {
        return is_key(key.trim_matches(' '));
    }
    match text.split_once("!=").or_else(|| text.split_once("==")).or_else(|| text.split_once('=')) {
        Some((key, value)) => is_key(key.trim_matches(' ')) && is_value(value.trim_matches(' ')),
        None => is_key(text),
    }
}

fn is_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && !name.is_empty() && is_value(name),
        None => !text.is_empty() && is_value(text),
    }
}

fn is_value(text: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
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

        /// Whatever passes as a selector cannot begin another parameter.
        #[test]
        fn a_selector_is_one_parameter(text in "\\PC{0,40}|[-a-z0-9=!,&()/ ]{0,40}") {
            if label_selector(&text).is_ok() || field_selector(&text).is_ok() {
                prop_assert!(!text.contains(['&', '?', '#', '%', '\n']), "{text}");
            }
        }
    }

    #[test]
    fn selectors_in_use_pass() {
        for good in ["app=web", "app==web,x!=y", "a in (b,c)", "a notin (b, c),d", "!a", "x.y/z=1", "a="] {
            assert!(label_selector(good).is_ok(), "{good}");
        }
        for good in ["status.phase=Running", "spec.nodeName!=n1,metadata.name==x", "involvedObject.uid=a-b", "spec.x="]
        {
            assert!(field_selector(good).is_ok(), "{good}");
        }
        assert!(label_selector(&"a=b,".repeat(300)).is_err());
    }
}
