//! Where a server is and what is said to it: the whole of what two calls must agree on to share a connection.

use crate::server::HttpTransport;
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
        self.guard.ports.iter().for_each(|port| part(&port.to_be_bytes()));
        TargetDigest(hash.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(url: &str, transport: HttpTransport) -> TargetReach {
        TargetReach::Http { url: Url::parse(url).unwrap(), transport }
    }

    fn target() -> LinkTarget {
        LinkTarget {
            reach: at("https://tools.example/mcp", HttpTransport::Streamable),
            headers: vec![(HeaderName::from_static("authorization"), SecretText::new("Bearer a"))],
            params: BTreeMap::from([("org".to_owned(), "acme".to_owned())]),
            guard: AddressGuard::default(),
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
    }

    #[test]
    fn a_value_cannot_move_from_one_part_to_the_next() {
        let process = |args: &[&str], env: &[(&str, &str)]| {
            let args = args.iter().map(|&arg| arg.to_owned()).collect();
            let env = env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
            let reach = TargetReach::Process { command: "run".into(), args, env };
            LinkTarget { reach, headers: Vec::new(), params: BTreeMap::new(), guard: AddressGuard::default() }.digest()
        };
        assert!(process(&["a", "b"], &[]) != process(&["ab"], &[]));
        assert!(process(&["a", "b"], &[]) != process(&[], &[("a", "b")]));
    }
}
