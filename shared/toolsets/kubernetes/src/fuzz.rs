//! What the parsers of this crate are held to, whatever bytes they are given. For `shared/fuzz`, and in no other build.

pub use crate::client::fuzz_kubeconfig as kubeconfig;
pub use crate::k8s::{fuzz_manifest as manifest, fuzz_patch as patch};

use crate::selector::{is_field_selector, is_label_selector};

/// A selector is nothing but its parts: what is accepted whole is accepted part by part, and the other way round. So
/// nothing can hide behind a comma.
pub fn selector(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let one_parameter = |text: &str| text.bytes().all(|b| (b' '..=b'~').contains(&b) && !b"&?#%".contains(&b));
    if text.len() <= 1_024 {
        let accepted = is_label_selector(text);
        assert_eq!(accepted, label_parts(text).into_iter().all(is_label_selector), "{text:?}");
        assert!(!accepted || one_parameter(text), "{text:?}");
    }
    if text.len() <= 512 {
        let accepted = is_field_selector(text);
        assert_eq!(accepted, field_parts(text).into_iter().all(is_field_selector), "{text:?}");
        assert!(!accepted || one_parameter(text), "{text:?}");
    }
}

/// The text at each comma outside brackets.
fn label_parts(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .collect()
}

/// The text at each comma that no backslash protects.
fn field_parts(text: &str) -> Vec<&str> {
    let mut protected = false;
    text.split(|c| {
        let splits = c == ',' && !protected;
        protected = c == '\\' && !protected;
        splits
    })
    .collect()
}
