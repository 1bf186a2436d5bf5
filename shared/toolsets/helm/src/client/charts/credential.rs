//! What opens a repository: a secret with one line `user:password`, read when needed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::{Code, Failure};
use redact::SecretText;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The longest secret.
const MOST_BYTES: u64 = 16 * 1024;

/// Where a tenant's secrets are.
#[derive(Clone, Default)]
pub enum SecretsFolder {
    /// It has none.
    #[default]
    Nowhere,
    /// In a folder, one file each.
    Folder(PathBuf),
    /// In its own keeping: asked for at each use, by name and by the address of the repository that it opens.
    Kept(Arc<SecretLookup>),
}

/// What gives a secret by its name for the repository at an address, or says why not.
pub type SecretLookup = dyn Fn(&str, &str) -> Result<SecretText, Failure> + Send + Sync;

impl SecretsFolder {
    fn find(&self, name: &str, url: &str) -> Result<SecretText, Failure> {
        if !is_secret_name(name) {
            return Err(unknown(name));
        }
        match self {
            SecretsFolder::Nowhere => Err(unknown(name)),
            SecretsFolder::Folder(folder) => read(&folder.join(name)).ok_or_else(|| unknown(name)),
            SecretsFolder::Kept(find) => find(name, url),
        }
    }
}

/// Two keepers are the same only if they are one.
impl PartialEq for SecretsFolder {
    fn eq(&self, other: &SecretsFolder) -> bool {
        match (self, other) {
            (SecretsFolder::Nowhere, SecretsFolder::Nowhere) => true,
            (SecretsFolder::Folder(one), SecretsFolder::Folder(other)) => one == other,
            (SecretsFolder::Kept(one), SecretsFolder::Kept(other)) => Arc::ptr_eq(one, other),
            (SecretsFolder::Nowhere | SecretsFolder::Folder(_) | SecretsFolder::Kept(_), _) => false,
        }
    }
}

impl Eq for SecretsFolder {}

impl std::fmt::Debug for SecretsFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SecretsFolder::Nowhere => f.write_str("Nowhere"),
            SecretsFolder::Folder(folder) => write!(f, "Folder({})", folder.display()),
            SecretsFolder::Kept(_) => f.write_str("Kept(..)"),
        }
    }
}

/// The value of an `Authorization` header. Does not print.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::client) struct Basic(String);

impl Basic {
    /// Reads the secret of this name, for the repository at this address.
    pub(in crate::client) fn read(secrets: &SecretsFolder, name: &str, url: &str) -> Result<Basic, Failure> {
        let secret = secrets.find(name, url)?;
        let line = secret.expose().trim_end_matches(['\r', '\n']);
        let fits = line.len() as u64 <= MOST_BYTES && line.contains(':') && !line.chars().any(char::is_control);
        if !fits {
            let message = format!("the secret {name} is not one line user:password");
            return Err(Failure::new(Code::UnknownCredential, message).next("ask an admin of the tenant to correct it"));
        }
        Ok(Basic(format!("Basic {}", STANDARD.encode(line))))
    }

    /// As the header wants it.
    pub(in crate::client) fn header(&self) -> &str {
        &self.0
    }
}

/// The name of a secret is no path.
fn is_secret_name(text: &str) -> bool {
    (1..=253).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && text.as_bytes()[0].is_ascii_alphanumeric()
}

fn read(path: &Path) -> Option<SecretText> {
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(MOST_BYTES + 1).read_to_string(&mut text).ok()?;
    Some(SecretText::new(text))
}

fn unknown(name: &str) -> Failure {
    Failure::new(Code::UnknownCredential, format!("the tenant has no secret {name}"))
        .next("ask an admin of the tenant to set it")
}

impl std::fmt::Debug for Basic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Basic(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    const URL: &str = "https://charts.example";

    #[test]
    fn one_line_of_user_and_password_becomes_a_header_that_does_not_print() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("pull"), "me:canary\n").unwrap();
        std::fs::write(folder.path().join("bare"), "canary").unwrap();
        std::fs::write(folder.path().join("lines"), "me:a\r\nX: y").unwrap();

        let secrets = SecretsFolder::Folder(folder.path().to_owned());
        let basic = Basic::read(&secrets, "pull", URL).unwrap();

        assert_eq!(basic.header(), "Basic bWU6Y2FuYXJ5");
        assert_eq!(format!("{basic:?}"), "Basic(..)");
        for bad in ["bare", "lines", "none", "../pull", "/etc/passwd", ".", "..", "", "a/b", "-x"] {
            let failure = Basic::read(&secrets, bad, URL).unwrap_err();
            assert_eq!(failure.code, Code::UnknownCredential, "{bad:?}");
            assert!(!failure.message.contains("canary"));
        }
        assert!(Basic::read(&SecretsFolder::Nowhere, "pull", URL).is_err());
    }

    #[test]
    fn what_a_tenant_keeps_is_asked_for_each_time_by_a_checked_name() {
        let kept = Arc::new(Mutex::new("me:first".to_owned()));
        let keeper = Arc::clone(&kept);
        let secrets = SecretsFolder::Kept(Arc::new(move |name: &str, url: &str| match name {
            "pull" if url == URL => Ok(SecretText::new(keeper.lock().unwrap().as_str())),
            _ => Err(Failure::new(Code::StoreUnavailable, "not known yet")),
        }));
        let read = |name: &str| Basic::read(&secrets, name, URL).map(|basic| basic.header().to_owned());
        assert_eq!(read("pull").unwrap(), format!("Basic {}", STANDARD.encode("me:first")));
        *kept.lock().unwrap() = "me:second\n".to_owned();
        assert_eq!(read("pull").unwrap(), format!("Basic {}", STANDARD.encode("me:second")));
        *kept.lock().unwrap() = "canary".to_owned();
        let failure = read("pull").unwrap_err();
        assert_eq!(failure.code, Code::UnknownCredential);
        assert!(!failure.message.contains("canary"));
        // What the keeper says is passed on, but it is not asked for what is no name.
        assert_eq!(read("other").unwrap_err().code, Code::StoreUnavailable);
        assert_eq!(read("../pull").unwrap_err().code, Code::UnknownCredential);
        assert_eq!(format!("{secrets:?}"), "Kept(..)");
        assert_eq!(secrets, secrets.clone());
        assert_ne!(secrets, SecretsFolder::Nowhere);
    }
}
