//! What a tenant's server is: a name, where it is, who we are there, and what the operator lets us reach.

use crate::client::path;
use domain::text::is_label;
use egress::{AddressGuard, Url};
pub use redact::{KeptSecret, SecretText};
use std::path::PathBuf;

/// The parameter that carries the run's id, unless the tenant names another.
pub const RUN_ID_PARAMETER: &str = "QM_RUN_ID";

/// One server of one tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JenkinsServerConfig {
    /// What callers call it: a DNS label.
    pub name: String,
    /// Its base address; a path is kept, as for a server behind `/jenkins`.
    pub url: Url,
    /// Whose API token it is.
    pub user: String,
    /// The API token.
    pub token: SecretSource,
    /// Certificates (PEM) that are trusted besides the public ones.
    pub ca: Option<SecretSource>,
    /// A parameter of this name is filled with the run's id wherever a job declares it.
    pub run_id_parameter: String,
    /// What the operator lets a tenant reach.
    pub guard: AddressGuard,
    /// Whether a read that names no server means this one, where there are several.
    pub default: bool,
    /// Whether this is the sandbox; results say so.
    pub simulated: bool,
}

impl JenkinsServerConfig {
    /// A server with nothing set but where it is and who we are there.
    pub fn new(name: impl Into<String>, url: Url, user: impl Into<String>, token: SecretSource) -> JenkinsServerConfig {
        JenkinsServerConfig {
            name: name.into(),
            url,
            user: user.into(),
            token,
            ca: None,
            run_id_parameter: RUN_ID_PARAMETER.to_owned(),
            guard: AddressGuard::default(),
            default: false,
            simulated: false,
        }
    }

    /// Whether the configuration can mean something. Called by [`JenkinsServers::build`](crate::client::JenkinsServers::build).
    pub(in crate::client) fn check(&self) -> Result<(), BadServer> {
        let bad = |what: &str| Err(BadServer { name: self.name.clone(), what: what.to_owned() });
        if !is_label(&self.name) {
            return bad("a server is named by a DNS label");
        }
        if let Err(refused) = self.guard.check(&self.url) {
            return bad(&format!("its address cannot be used: {refused}"));
        }
        if self.url.query().is_some() || self.url.fragment().is_some() {
            return bad("its address ends with a path, not with a query or a fragment");
        }
        // A colon would end the name in the header that carries it.
        if self.user.is_empty() || self.user.contains(':') || !self.user.chars().all(path::is_plain) {
            return bad("the user is empty or holds a colon or control characters");
        }
        if self.run_id_parameter.is_empty() || !self.run_id_parameter.chars().all(path::is_plain) {
            return bad("the run-id parameter is empty or holds control characters");
        }
        Ok(())
    }
}

/// Where a secret lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// A file that is read at each use, so that a new secret counts from the next request on.
    File(PathBuf),
    /// In the tenant's own keeping, asked for at each use.
    Kept(KeptSecret),
    /// The secret itself.
    Text(SecretText),
}

/// A configuration that cannot mean anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Jenkins server `{name}`: {what}")]
pub struct BadServer {
    /// The server.
    pub name: String,
    /// What is wrong with it.
    pub what: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str) -> JenkinsServerConfig {
        JenkinsServerConfig::new("ci", Url::parse(url).unwrap(), "robot", SecretSource::Text(SecretText::new("t0ken")))
    }

    /// Addresses that lead to this machine, its network or a metadata service, or that read as something else.
    const ELSEWHERE: [&str; 25] = [
        "https://127.0.0.1/",
        "https://127.1/",
        "https://0/",
        "https://0x7f000001/",
        "https://017700000001/",
        "https://2130706433/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:169.254.169.254]/",
        "https://169.254.169.254/",
        "https://[fd00:ec2::254]/",
        "https://100.64.0.1/",
        "https://[2002:7f00:1::]/",
        "https://[64:ff9b::a9fe:a9fe]/",
        "https://[64:ff9b:1::]/",
        "https://[fec0::1]/",
        "https://metadata.google.internal/",
        "https://localhost./",
        "https://localhost/",
        "https://ok@127.0.0.1/",
        "https://127.0.0.1#@ci.example/",
        "https://robot:secret@ci.example/",
        "https://ci.example:6379/",
        "https://ci.example:10250/",
        "http://ci.example/",
    ];

    #[test]
    fn an_address_that_leads_elsewhere_is_refused_when_it_is_configured() {
        for url in ELSEWHERE {
            assert!(config(url).check().is_err(), "{url}");
        }
        for url in ["file:///etc/passwd", "gopher://ci.example/", "unix:/run/x", "data:,x"] {
            assert!(config(url).check().is_err(), "{url}");
        }
        assert_eq!(config("https://ci.example/jenkins").check(), Ok(()));
    }

    #[test]
    fn what_could_bend_a_request_is_refused() {
        let with = |change: fn(&mut JenkinsServerConfig)| {
            let mut config = config("https://ci.example/");
            change(&mut config);
            config.check()
        };
        assert!(with(|c| c.name = "CI".into()).is_err());
        assert!(with(|c| c.user = "ro:bot".into()).is_err());
        assert!(with(|c| c.user = "ro\nbot".into()).is_err());
        assert!(with(|c| c.user = String::new()).is_err());
        assert!(with(|c| c.run_id_parameter = "a\rb".into()).is_err());
        assert!(with(|c| c.url.set_query(Some("token=x"))).is_err());
    }

    #[test]
    fn a_secret_does_not_print() {
        let printed = format!("{:?}", config("https://ci.example/"));
        assert!(!printed.contains("t0ken"), "{printed}");
    }
}
