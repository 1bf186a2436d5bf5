//! What opens a repository: a file with one line `user:password` in the tenant's folder of secrets, read when needed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::{Code, Failure};
use std::io::Read;
use std::path::Path;

/// The longest secret.
const MOST_BYTES: u64 = 16 * 1024;

/// The value of an `Authorization` header. Does not print.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Basic(String);

impl Basic {
    /// Reads the secret of this name.
    pub(crate) fn read(secrets: Option<&Path>, name: &str) -> Result<Basic, Failure> {
        let path = secrets.filter(|_| is_secret_name(name)).map(|folder| folder.join(name));
        let mut line = String::new();
        let read =
            path.and_then(|path| std::fs::File::open(path).ok()?.take(MOST_BYTES + 1).read_to_string(&mut line).ok());
        if read.is_none() {
            return Err(unknown(name));
        }
        let line = line.trim_end_matches(['\r', '\n']);
        let fits = line.len() as u64 <= MOST_BYTES && line.contains(':') && !line.chars().any(char::is_control);
        if !fits {
            let message = format!("the secret {name} is not one line user:password");
            return Err(Failure::new(Code::UnknownCredential, message).next("ask an admin of the tenant to correct it"));
        }
        Ok(Basic(format!("Basic {}", STANDARD.encode(line))))
    }

    /// As the header wants it.
    pub(crate) fn header(&self) -> &str {
        &self.0
    }
}

/// The name of a secret is no path.
pub fn is_secret_name(text: &str) -> bool {
    (1..=253).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && text.as_bytes()[0].is_ascii_alphanumeric()
}

fn unknown(name: &str) -> Failure {
    Failure::new(Code::UnknownCredential, format!("the tenant has no secret {name}"))
        .next("ask an admin of the tenant to add it, or leave credential out")
}

impl std::fmt::Debug for Basic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Basic(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_of_user_and_password_becomes_a_header_that_does_not_print() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("pull"), "me:canary\n").unwrap();
        std::fs::write(folder.path().join("bare"), "canary").unwrap();
        std::fs::write(folder.path().join("lines"), "me:a\r\nX: y").unwrap();

        let basic = Basic::read(Some(folder.path()), "pull").unwrap();

        assert_eq!(basic.header(), "Basic bWU6Y2FuYXJ5");
        assert_eq!(format!("{basic:?}"), "Basic(..)");
        for bad in ["bare", "lines", "none", "../pull", "/etc/passwd", ".", "..", "", "a/b", "-x"] {
            let failure = Basic::read(Some(folder.path()), bad).unwrap_err();
            assert_eq!(failure.code, Code::UnknownCredential, "{bad:?}");
            assert!(!failure.message.contains("canary"));
        }
        assert!(Basic::read(None, "pull").is_err());
    }
}
