//! Where a server is and what is said to it: the whole of what two calls must agree on to share a connection.

use crate::server::{ClientAuthMethod, HttpTransport};
use egress::header::HeaderName;
use egress::{AddressGuard, Url};
use redact::SecretText;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum TargetReach {
    /// Over HTTP.
    Http {
        /// The address that is configured.
        url: Url,
        /// How it is spoken to there.
        transport: HttpTransport,
    },
    /// As a child process that speaks on its standard streams. Only an operator's entry may ask for one.
    Process {
        /// The program, by path or by name.
        command: String,
        /// Its arguments, each as it is.
        args: Vec<String>,
        /// All of its environment: nothing is inherited.
        env: BTreeMap<String, String>,
    },
}

/// One server as one assignment sees it, with everything filled in.
#[derive(Debug, Clone)]
pub struct LinkTarget {
    /// How it is reached.
    pub reach: TargetReach,
    /// Headers of every request; the only place a secret travels in.
    pub headers: Vec<(HeaderName, SecretText)>,
    /// Parameters that are no secrets; the server reads them in `_meta["quartermaster/params"]`.
    pub params: BTreeMap<String, String>,
    /// What may be dialled for it.
    pub guard: AddressGuard,
    /// How a token for it is fetched, if it wants one.
    pub credentials: Option<ClientCredentials>,
}

/// How a token is fetched from an authorization server.
#[derive(Debug, Clone)]
pub struct ClientCredentials {
    /// Where tokens are given.
    pub token_url: Url,
    /// What may be dialled for it.
    pub guard: AddressGuard,
    /// Who we are there.
    pub client_id: String,
    /// What proves it.
    pub client_secret: SecretText,
    /// What the token is to allow.
    pub scope: Option<String>,
    /// Whom the token is for, as `audience`.
    pub audience: Option<String>,
    /// Whom the token is for, as `resource`.
    pub resource: Option<String>,
    /// How the secret is sent.
    pub method: ClientAuthMethod,
}

impl ClientCredentials {
    /// Everything but the secret, in words that differ where two of them do.
    pub(crate) fn place(&self) -> serde_json::Value {
        let ClientCredentials { token_url, guard, client_id, scope, audience, resource, method, .. } = self;
        let method = match method {
            ClientAuthMethod::Basic => "basic",
            ClientAuthMethod::Post => "post",
        };
        let guard = (guard.private, &guard.ports);
        serde_json::json!([token_url.as_str(), client_id, scope, audience, resource, method, guard])
    }

    /// The digest over all of it.
    pub(super) fn digest(&self) -> TargetDigest {
        let place = self.place().to_string();
        let mut hash = Sha256::new();
        hash.update((place.len() as u64).to_be_bytes());
        hash.update(place);
        hash.update(self.client_secret.expose());
        TargetDigest(hash.finalize().into())
    }
}

/// What tells two targets apart. Made of secrets, so it is never shown or stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TargetDigest([u8; 32]);

impl LinkTarget {
    /// The digest over all of it. Every part is preceded by its length, so that no two targets can read alike.
    pub(crate) fn digest(&self) -> TargetDigest {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        };
        match &self.reach {
            TargetReach::Http { url, transport } => {
                part(match transport {
                    HttpTransport::Streamable => b"http",
                    HttpTransport::Sse => b"sse",
                });
                part(url.as_str().as_bytes());
            }
            TargetReach::Process { command, args, env } => {
                part(b"process");
                part(command.as_bytes());
                part(&(args.len() as u64).to_be_bytes());
                args.iter().for_each(|arg| part(arg.as_bytes()));
                part(&(env.len() as u64).to_be_bytes());
                env.iter().for_each(|(name, value)| [name, value].iter().for_each(|text| part(text.as_bytes())));
            }
        }
        part(&(self.headers.len() as u64).to_be_bytes());
        self.headers.iter().for_each(|(name, value)| {
            part(name.as_str().as_bytes());
            part(value.expose().as_bytes());
        });
        part(&(self.params.len() as u64).to_be_bytes());
        self.params.iter().for_each(|(name, value)| [name, value].iter().for_each(|text| part(text.as_bytes())));
        part(&[u8::from(self.guard.private)]);
        part(&(self.guard.ports.len() as u64).to_be_bytes());
        self.guard.ports.iter().for_each(|port| part(&port.to_be_bytes()));
        self.credentials.iter().for_each(|credentials| part(&credentials.digest().0));
        TargetDigest(hash.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(url: &str, transport: HttpTransport) -> TargetReach {
        TargetReach::Http { url: Url::parse(url).unwrap(), transport }
    }

    fn credentials() -> ClientCredentials {
        ClientCredentials {
            token_url: Url::parse("https://login.example/token").unwrap(),
            guard: AddressGuard::default(),
            client_id: "robot".into(),
            client_secret: SecretText::new("a"),
            scope: Some("read".into()),
            audience: None,
            resource: None,
            method: ClientAuthMethod::Basic,
        }
    }

    fn target() -> LinkTarget {
        LinkTarget {
            reach: at("https://tools.example/mcp", HttpTransport::Streamable),
            headers: vec![(HeaderName::from_static("authorization"), SecretText::new("Bearer a"))],
            params: BTreeMap::from([("org".to_owned(), "acme".to_owned())]),
            guard: AddressGuard::default(),
            credentials: Some(credentials()),
        }
    }

    fn differs(change: impl FnOnce(&mut LinkTarget)) -> bool {
        let mut other = target();
        change(&mut other);
        other.digest() != target().digest()
    }

    #[test]
    fn every_part_of_a_target_tells_it_apart() {
        assert!(!differs(|_| {}));
        assert!(differs(|t| t.reach = at("https://tools.example/mcp2", HttpTransport::Streamable)));
        assert!(differs(|t| t.reach = at("https://tools.example/mcp", HttpTransport::Sse)));
        assert!(differs(|t| t.headers[0].1 = SecretText::new("Bearer b")));
        assert!(differs(|t| t.headers.clear()));
        assert!(differs(|t| {
            t.params.insert("org".into(), "other".into());
        }));
        assert!(differs(|t| t.guard.private = true));
        assert!(differs(|t| t.guard.ports.push(8443)));
        assert!(differs(|t| t.credentials = None));
    }

    #[test]
    fn every_part_of_the_credentials_tells_them_apart() {
        let changes: [fn(&mut ClientCredentials); 8] = [
            |c| c.token_url = Url::parse("https://login.example/other").unwrap(),
            |c| c.guard.ports.push(8443),
            |c| c.client_id = "other".into(),
            |c| c.client_secret = SecretText::new("b"),
            |c| c.scope = None,
            |c| c.audience = Some("read".into()),
            |c| c.resource = Some("read".into()),
            |c| c.method = ClientAuthMethod::Post,
        ];
        for (n, change) in changes.into_iter().enumerate() {
            assert!(differs(|t| change(t.credentials.as_mut().unwrap())), "change {n}");
        }
    }

    #[test]
    fn a_value_cannot_move_from_one_part_to_the_next() {
        let process = |args: &[&str], env: &[(&str, &str)]| {
            let args = args.iter().map(|&arg| arg.to_owned()).collect();
            let env = env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
            let reach = TargetReach::Process { command: "run".into(), args, env };
            LinkTarget { reach, headers: Vec::new(), params: BTreeMap::new(), credentials: None, ..target() }.digest()
        };
        assert!(process(&["a", "b"], &[]) != process(&["ab"], &[]));
        assert!(process(&["a", "b"], &[]) != process(&[], &[("a", "b")]));
    }
}
