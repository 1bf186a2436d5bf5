//! Who asks: the user's token, permissions, sessions and crumbs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, header};
use sha2::{Digest as _, Sha256};

use crate::world::random;

/// The header that carries a crumb.
pub(super) const CRUMB_FIELD: &str = "Jenkins-Crumb";
/// How many sessions are kept.
const SESSIONS: usize = 100;

/// What a user may be without. Reading is always allowed to who is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// See how a job is set up.
    ExtendedRead,
    /// Start builds.
    Build,
    /// Stop builds and take items out of the queue.
    Cancel,
    /// Run a pipeline again with another script.
    Replay,
    /// Change name and description of a build, and keep it.
    Update,
    /// Delete builds, or let them be deleted.
    Delete,
}

impl Permission {
    /// Jenkins' own name of it, and of the group people see it in.
    pub(super) fn name(self) -> (&'static str, &'static str) {
        match self {
            Permission::ExtendedRead => ("hudson.model.Item.ExtendedRead", "Job"),
            Permission::Build => ("hudson.model.Item.Build", "Job"),
            Permission::Cancel => ("hudson.model.Item.Cancel", "Job"),
            Permission::Replay => ("hudson.model.Run.Replay", "Run"),
            Permission::Update => ("hudson.model.Run.Update", "Run"),
            Permission::Delete => ("hudson.model.Run.Delete", "Run"),
        }
    }
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JenkinsCaller {
    User,
    Anonymous,
    /// A credential that opens nothing.
    Wrong,
}

/// The one user there is, and what the server asks of it.
#[derive(Debug)]
pub(super) struct Access {
    pub(super) user: String,
    pub(super) token: String,
    pub(super) missing: Vec<Permission>,
    /// Whether a request with a token needs a crumb too. A real server asks for that only behind some proxies.
    pub(super) crumbs: bool,
    sessions: Vec<String>,
    salt: String,
}

impl Access {
    pub(super) fn new(user: String, missing: Vec<Permission>) -> Access {
        // Tokens of Jenkins begin with the version of their form.
        let token = format!("11{}", hex(&random::<16>()));
        Access { user, token, missing, crumbs: false, sessions: Vec::new(), salt: hex(&random::<16>()) }
    }

    pub(super) fn rotate_token(&mut self) {
        self.token = format!("11{}", hex(&random::<16>()));
    }

    pub(super) fn caller(&self, headers: &HeaderMap) -> JenkinsCaller {
        let Some(sent) = headers.get(header::AUTHORIZATION) else { return JenkinsCaller::Anonymous };
        let basic = sent.to_str().ok().and_then(|sent| sent.strip_prefix("Basic "));
        let pair = basic.and_then(|basic| STANDARD.decode(basic.trim()).ok());
        let wanted = format!("{}:{}", self.user, self.token);
        if pair.is_some_and(|pair| pair == wanted.as_bytes()) { JenkinsCaller::User } else { JenkinsCaller::Wrong }
    }

    pub(super) fn may(&self, permission: Permission) -> bool {
        !self.missing.contains(&permission)
    }

    /// A crumb for the session of this request, and the cookie to set if it had none.
    pub(super) fn crumb(&mut self, headers: &HeaderMap) -> (String, Option<String>) {
        if let Some(session) = self.session(headers) {
            return (self.crumb_of(&session), None);
        }
        let session = format!("node0{}", hex(&random::<12>()));
        if self.sessions.len() == SESSIONS {
            self.sessions.remove(0);
        }
        self.sessions.push(session.clone());
        let cookie = format!("JSESSIONID.{}={session}; Path=/; HttpOnly; SameSite=Lax", &self.salt[..8]);
        (self.crumb_of(&session), Some(cookie))
    }

    /// Whether this request may change something, as far as crumbs go.
    pub(super) fn has_crumb(&self, headers: &HeaderMap, caller: JenkinsCaller) -> bool {
        if caller == JenkinsCaller::User && !self.crumbs {
            return true;
        }
        let sent = headers.get(CRUMB_FIELD).and_then(|value| value.to_str().ok());
        self.session(headers).is_some_and(|session| sent == Some(self.crumb_of(&session).as_str()))
    }

    pub(super) fn forget_sessions(&mut self) {
        self.sessions.clear();
    }

    fn crumb_of(&self, session: &str) -> String {
        hex(&Sha256::digest(format!("{};{session};{}", self.user, self.salt)))
    }

    fn session(&self, headers: &HeaderMap) -> Option<String> {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut values = cookies.flat_map(|line| line.split(';')).filter_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            name.starts_with("JSESSIONID").then(|| value.to_owned())
        });
        values.find(|value| self.sessions.contains(value))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
