//! The secret of a server, read when it is used: a new one counts from the next request on, without a restart.

use crate::client::config::{JenkinsServerConfig, SecretSource};
use crate::client::path;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use egress::GuardedResponse;
use egress::header::{HeaderName, HeaderValue};

/// The longest token, and the longest bundle of certificates.
const TOKEN_MAX: u64 = 4 * 1024;
const CA_MAX: u64 = 256 * 1024;

/// Why a secret cannot be used. Says nothing of what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in crate::client) enum BadSecret {
    #[error("its token cannot be read")]
    Unreadable,
    #[error("its token is empty, too long, or not one line of plain letters")]
    NotAToken,
    #[error("its certificates cannot be read")]
    Certificates,
}

/// What goes into the `Authorization` header. Neither printed nor logged.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::client) struct Credential {
    pub(in crate::client) header: String,
    /// Every form in which it could be echoed.
    forms: Vec<String>,
}

/// A secret shorter than this would be found in innocent text.
const SHORTEST: usize = 8;

impl Credential {
    /// Reads the token as it is now.
    pub(in crate::client) async fn read(config: &JenkinsServerConfig) -> Result<Credential, BadSecret> {
        let text = text(&config.token, TOKEN_MAX).await.ok_or(BadSecret::Unreadable)?;
        let token = text.trim();
        if token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(BadSecret::NotAToken);
        }
        let pair = STANDARD.encode(format!("{}:{token}", config.user));
        let mut encoded = String::new();
        path::encode(&mut encoded, token);
        let header = format!("Basic {pair}");
        let forms = [token.to_owned(), encoded, pair, STANDARD.encode(token)];
        Ok(Credential { header, forms: forms.into_iter().filter(|form| form.len() >= SHORTEST).collect() })
    }

    /// Takes the secret out of what came back, wherever the server or a build echoed it. Lengths stay as they are,
    /// because places in a log are counted in bytes.
    pub(in crate::client) fn scrub(&self, answer: &mut GuardedResponse) {
        for form in &self.forms {
            blot(&mut answer.body, form.as_bytes());
        }
        let echoes =
            |value: &HeaderValue| self.forms.iter().any(|form| find(value.as_bytes(), form.as_bytes()).is_some());
        let named: Vec<HeaderName> =
            answer.headers.iter().filter(|(_, value)| echoes(value)).map(|(name, _)| name.clone()).collect();
        for name in named {
            answer.headers.remove(name);
        }
    }
}

/// The certificates that are trusted besides the public ones, as they are now.
pub(in crate::client) async fn authorities(config: &JenkinsServerConfig) -> Result<Option<String>, BadSecret> {
    match &config.ca {
        Some(source) => text(source, CA_MAX).await.map(Some).ok_or(BadSecret::Certificates),
        None => Ok(None),
    }
}

/// Overwrites every occurrence.
fn blot(text: &mut [u8], secret: &[u8]) {
    let mut from = 0;
    while let Some(at) = find(&text[from..], secret) {
        text[from + at..from + at + secret.len()].fill(b'*');
        from += at + secret.len();
    }
}

fn find(text: &[u8], secret: &[u8]) -> Option<usize> {
    let (first, rest) = secret.split_first()?;
    let mut from = 0;
    while let Some(at) = text[from..].iter().position(|byte| byte == first) {
        if text[from + at + 1..].starts_with(rest) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

async fn text(source: &SecretSource, most: u64) -> Option<String> {
    match source {
        SecretSource::Text(text) => Some(text.expose().to_owned()),
        SecretSource::Kept(secret) => {
            let text = secret.read().ok()?;
            (text.expose().len() as u64 <= most).then(|| text.expose().to_owned())
        }
        SecretSource::File(path) => {
            let length = tokio::fs::metadata(path).await.ok()?.len();
            if length > most {
                return None;
            }
            tokio::fs::read_to_string(path).await.ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::config::{KeptSecret, SecretText};
    use egress::Url;
    use redact::NotAtHand;
    use std::sync::{Arc, Mutex};

    fn config(token: SecretSource) -> JenkinsServerConfig {
        JenkinsServerConfig::new("ci", Url::parse("https://ci.example/").unwrap(), "robot", token)
    }

    #[tokio::test]
    async fn a_token_is_read_anew_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "first\n").unwrap();
        let config = config(SecretSource::File(file.clone()));
        let read = async || Credential::read(&config).await.map(|credential| credential.header);
        assert_eq!(read().await.unwrap(), format!("Basic {}", STANDARD.encode("robot:first")));
        std::fs::write(&file, "second").unwrap();
        assert_eq!(read().await.unwrap(), format!("Basic {}", STANDARD.encode("robot:second")));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(read().await.unwrap_err(), BadSecret::Unreadable);
    }

    #[tokio::test]
    async fn a_kept_token_is_asked_for_each_time_and_never_outlives_its_keeper() {
        let kept = Arc::new(Mutex::new(Some("first")));
        let keeper = Arc::clone(&kept);
        let secret =
            KeptSecret::new("token", move || keeper.lock().unwrap().map(SecretText::new).ok_or(NotAtHand::Gone));
        let config = config(SecretSource::Kept(secret.clone()));
        let read = async || Credential::read(&config).await.map(|credential| credential.header);
        assert_eq!(read().await.unwrap(), format!("Basic {}", STANDARD.encode("robot:first")));
        *kept.lock().unwrap() = Some("second");
        assert_eq!(read().await.unwrap(), format!("Basic {}", STANDARD.encode("robot:second")));
        *kept.lock().unwrap() = None;
        assert_eq!(read().await.unwrap_err(), BadSecret::Unreadable);
        let large = KeptSecret::new("token", || Ok(SecretText::new("x".repeat(5000))));
        assert_eq!(text(&SecretSource::Kept(large), TOKEN_MAX).await, None);
        // What is described again by the same name is the same server, and keeps its connections.
        let other = KeptSecret::new("other", || Err(NotAtHand::Gone));
        assert_eq!(SecretSource::Kept(KeptSecret::new("token", || Err(NotAtHand::Gone))), SecretSource::Kept(secret));
        assert_ne!(SecretSource::Kept(other), config.token);
    }

    #[tokio::test]
    async fn an_echo_is_blotted_out_in_every_form_and_lengths_stay() {
        let credential = Credential::read(&config(SecretSource::Text(SecretText::new("t0ken/secret")))).await.unwrap();
        let pair = STANDARD.encode("robot:t0ken/secret");
        let body = format!("a t0ken/secret b t0ken%2Fsecret c {pair} t0ken/secrett0ken/secret t0ken");
        let length = body.len();
        let mut answer =
            GuardedResponse { status: 200, headers: Default::default(), body: body.into_bytes(), cut: false };
        answer.headers.insert("x-error", HeaderValue::from_static("no t0ken/secret here"));
        answer.headers.insert("x-jenkins", HeaderValue::from_static("2.1"));
        credential.scrub(&mut answer);
        let shown = String::from_utf8(answer.body).unwrap();
        assert!(!shown.contains("secret") && !shown.contains(&pair) && shown.ends_with(" t0ken"), "{shown}");
        assert_eq!((shown.len(), answer.headers.len()), (length, 1));
    }

    #[tokio::test]
    async fn what_is_no_token_goes_into_no_header() {
        for bad in ["", " \n", "a b", "a\r\nX-Evil: 1", "é"] {
            let config = config(SecretSource::Text(SecretText::new(bad)));
            assert_eq!(Credential::read(&config).await.err(), Some(BadSecret::NotAToken), "{bad:?}");
        }
    }
}
