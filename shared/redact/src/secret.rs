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

/// Why a secret that is kept elsewhere cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAtHand {
    /// There is none of that name: it was never set, or taken away.
    Gone,
    /// It cannot be read just now.
    Unreadable,
}

/// A secret that is kept elsewhere and asked for at each use, so that a new one counts from then on.
#[derive(Clone)]
pub struct KeptSecret {
    name: Arc<str>,
    only: &'static str,
    read: Arc<dyn Fn() -> Result<SecretText, NotAtHand> + Send + Sync>,
}

impl KeptSecret {
    /// A secret of this name, had by this function.
    pub fn new(
        name: impl Into<Arc<str>>,
        read: impl Fn() -> Result<SecretText, NotAtHand> + Send + Sync + 'static,
    ) -> KeptSecret {
        KeptSecret { name: name.into(), only: "", read: Arc::new(read) }
    }

    /// The same, from one kind of source only. It is another secret than one of that name from elsewhere.
    #[must_use]
    pub fn only(self, source: &'static str) -> KeptSecret {
        KeptSecret { only: source, ..self }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The secret as it is now.
    pub fn read(&self) -> Result<SecretText, NotAtHand> {
        (self.read)()
    }
}

/// By name and source: within one tenant that is the same secret, whoever wrapped it up.
impl PartialEq for KeptSecret {
    fn eq(&self, other: &KeptSecret) -> bool {
        (&self.name, self.only) == (&other.name, other.only)
    }
}

impl Eq for KeptSecret {}

impl fmt::Debug for KeptSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeptSecret({})", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_secret_is_the_same_by_name_and_source() {
        let kept = |name: &str| KeptSecret::new(name, || Err(NotAtHand::Gone));
        assert_eq!(kept("db").name(), "db");
        assert!(kept("db") == kept("db") && kept("db") != kept("web"));
        assert!(kept("db") != kept("db").only("file") && kept("db").only("file") == kept("db").only("file"));
    }
}
