//! A secret in our own hands.

use std::fmt;
use std::sync::Arc;

/// A text that is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(Arc<str>);

impl SecretText {
    /// Takes the text.
    pub fn new(text: impl Into<Arc<str>>) -> SecretText {
        SecretText(text.into())
    }

    /// The text, for whoever sends it to where it belongs.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretText({} bytes)", self.0.len())
    }
}
