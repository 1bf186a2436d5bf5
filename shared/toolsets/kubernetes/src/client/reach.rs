//! Where a kubeconfig that somebody else wrote may lead, judged twice.
//!
//! What is written is judged when the kubeconfig is read, and what a name resolves to when it is dialled: only what was
//! let through is dialled, so a name cannot be one thing when it is checked and another when it is connected to.

use egress::{AddressClass, AddressGuard, Url};
use hyper_util::client::legacy::connect::dns::Name;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use tower::Service;

/// The port of an API server where nobody put a load balancer before it.
const API_SERVER_PORT: u16 = 6443;

/// Which addresses are dialled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterReach {
    /// Whether private networks are.
    private: bool,
    /// Whether this very machine is, and that without TLS.
    loopback: bool,
    /// Which ports are; `None`: all.
    ports: Option<Vec<u16>>,
}

/// Why an address is not dialled. Says nothing about what answers there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(in crate::client) struct NotReached(pub(in crate::client) &'static str);

impl ClusterReach {
    /// Of a kubeconfig that the operator has provided: clusters are in private networks. They are on this machine only if
    /// the operator says so.
    pub fn of_operator(loopback: bool) -> ClusterReach {
        ClusterReach { private: true, loopback, ports: None }
    }

    /// Of a kubeconfig that a tenant has set over HTTP: what the guard lets tenants name, and the port of API servers.
    pub fn of_tenant(guard: &AddressGuard, loopback: bool) -> ClusterReach {
        let ports = guard.ports.iter().copied().chain([API_SERVER_PORT]).collect();
        ClusterReach { private: guard.private, loopback: loopback && guard.private, ports: Some(ports) }
    }

    /// Whether it is that of a tenant's own kubeconfig.
    pub(in crate::client) fn is_of_tenant(&self) -> bool {
        self.ports.is_some()
    }

    /// Judges what is written. The parser brings short, octal and hexadecimal spellings of an address into one form.
    pub(in crate::client) fn check(&self, server: &str) -> Result<(), NotReached> {
        let url = Url::parse(server).map_err(|_| NotReached("no address as its server"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(NotReached("a name or password in its server's address"));
        }
        let host = url.host_str().unwrap_or_default();
        let literal: Option<IpAddr> = host.trim_start_matches('[').trim_end_matches(']').parse().ok();
        // Resolvers take it with a dot at the end as well.
        let name = host.trim_end_matches('.');
        let is_here = match literal {
            Some(address) => {
                self.vet(address)?;
                address.to_canonical().is_loopback()
            }
            None if name == "localhost" || name.ends_with(".localhost") => {
                self.vet(IpAddr::from([127, 0, 0, 1]))?;
                true
            }
            None => false,
        };
        match url.scheme() {
            "https" => {}
            "http" if is_here => {}
            _ => return Err(NotReached("a server without TLS")),
        }
        let port = url.port_or_known_default().unwrap_or_default();
        match &self.ports {
            Some(ports) if !is_here && !ports.contains(&port) => {
                Err(NotReached("a port that the operator does not allow"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Judges an address that is about to be dialled.
    pub(in crate::client) fn vet(&self, address: IpAddr) -> Result<(), NotReached> {
        if address.to_canonical().is_loopback() {
            return if self.loopback { Ok(()) } else { Err(NotReached("this machine as its server")) };
        }
        match AddressClass::of(address) {
            AddressClass::Public => Ok(()),
            AddressClass::Private if self.private => Ok(()),
            AddressClass::Private => Err(NotReached("an address in a private network")),
            AddressClass::Nowhere => Err(NotReached("an address no cluster has")),
        }
    }

    /// What a name resolves to, if all of it may be dialled: one bad address among good ones is an attempt.
    pub(in crate::client) async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let addresses: Vec<IpAddr> = lookup(name).await?.iter().map(SocketAddr::ip).collect();
        match addresses.iter().try_for_each(|address| self.vet(*address)) {
            Ok(()) => Ok(addresses),
            Err(refused) => {
                let why = refused.0;
                tracing::warn!(why, "the server of a kubeconfig resolves to what may not be dialled");
                Err(io::Error::other(refused))
            }
        }
    }
}

async fn lookup(name: &str) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((name, 0)).await?.collect())
}

/// The resolver given to the connector. Without a reach, it resolves for the operator's own kubeconfig.
#[derive(Debug, Clone)]
pub(in crate::client) struct VettedResolver(pub(in crate::client) Option<ClusterReach>);

impl Service<Name> for VettedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let reach = self.0.clone();
        Box::pin(async move {
            let addresses = match reach {
                // The connector puts the port of the address in.
                Some(reach) => {
                    reach.resolve(name.as_str()).await?.into_iter().map(|address| SocketAddr::new(address, 0)).collect()
                }
                None => lookup(name.as_str()).await?,
            };
            Ok(addresses.into_iter())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_same_in_every_spelling() {
        let (operator, tenant) =
            (ClusterReach::of_operator(false), ClusterReach::of_tenant(&AddressGuard::default(), true));
        for here in [
            "127.0.0.1",
            "127.1",
            "0x7f000001",
            "2130706433",
            "0177.0.0.1",
            "localhost",
            "LOCALHOST",
            "localhost.",
            "a.localhost",
            "[::1]",
            "[::ffff:127.0.0.1]",
        ] {
            let server = format!("https://{here}:6443");
            assert_eq!(operator.check(&server), Err(NotReached("this machine as its server")), "{here}");
            assert!(tenant.check(&server).is_err(), "{here}");
            assert_eq!(ClusterReach::of_operator(true).check(&server), Ok(()), "{here}");
        }
        for nowhere in
            ["169.254.169.254", "0.0.0.0", "0", "[fe80::1]", "[::]", "224.0.0.1", "255.255.255.255", "[fd00:ec2::254]"]
        {
            for reach in [&operator, &tenant, &ClusterReach::of_operator(true)] {
                assert!(reach.check(&format!("https://{nowhere}")).is_err(), "{nowhere}");
            }
        }
    }

    #[test]
    fn a_tenant_reaches_the_public_network_on_the_ports_of_api_servers() {
        let guard = AddressGuard::default();
        let tenant = ClusterReach::of_tenant(&guard, false);
        assert_eq!(tenant.check("https://k8s.example"), Ok(()));
        assert_eq!(tenant.check("https://8.8.8.8:6443"), Ok(()));
        for (server, why) in [
            ("https://k8s.example:22", "a port that the operator does not allow"),
            ("https://10.0.0.1:6443", "an address in a private network"),
            ("https://192.168.1:443", "an address in a private network"),
            ("http://k8s.example", "a server without TLS"),
            ("https://me:sesame@k8s.example", "a name or password in its server's address"),
            ("k8s.example", "no address as its server"),
        ] {
            assert_eq!(tenant.check(server), Err(NotReached(why)), "{server}");
        }
        assert_eq!(ClusterReach::of_operator(false).check("https://10.0.0.1:16443"), Ok(()));
        assert_eq!(ClusterReach::of_operator(true).check("http://10.0.0.1"), Err(NotReached("a server without TLS")));
        let private = ClusterReach::of_tenant(&AddressGuard { private: true, ports: vec![443, 8443] }, true);
        assert_eq!(private.check("https://10.0.0.1:8443"), Ok(()));
        assert_eq!(private.check("http://127.0.0.1:1234"), Ok(()));
    }

    #[tokio::test]
    async fn a_name_is_judged_by_what_it_resolves_to() {
        let refused = ClusterReach::of_operator(false).resolve("localhost").await.unwrap_err();
        assert_eq!(refused.to_string(), "this machine as its server");
        assert!(!ClusterReach::of_operator(true).resolve("localhost").await.unwrap().is_empty());
        let mut resolver = VettedResolver(Some(ClusterReach::of_operator(false)));
        // A short spelling is no literal address for the connector; the system's resolver makes it one.
        assert!(resolver.call("127.1".parse().unwrap()).await.is_err());
        assert!(VettedResolver(None).call("localhost".parse().unwrap()).await.is_ok());
    }
}
