//! Requests are bounded per address before a token is verified: whoever has no good token costs next to nothing.
//!
//! A request whose token is new takes one out of its address's bucket and puts it back once the token is verified, so only
//! those without a good token count. An address that has used them up is refused until the bucket fills again. Tokens that
//! were verified before are not counted.

use crate::network::ProxyNetwork;
use crate::settings::Listen;
use actix_web::HttpRequest;
use actix_web::http::header::HeaderMap;
use executor::TokenBuckets;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::time::Instant;

/// How many addresses are remembered at once.
const MOST_ADDRESSES: usize = 20_000;
const FORWARDED_FOR: &str = "x-forwarded-for";

/// What is left to each address, and whose word about addresses counts.
pub struct AddressLimit {
    buckets: TokenBuckets<IpAddr>,
    per_minute: u64,
    proxies: Vec<ProxyNetwork>,
}

impl AddressLimit {
    /// As the settings say.
    pub fn of(listen: &Listen) -> AddressLimit {
        let buckets = TokenBuckets::new(MOST_ADDRESSES);
        AddressLimit { buckets, per_minute: listen.refused_per_address, proxies: listen.trusted_proxies.clone() }
    }

    /// The address a request is counted under.
    pub fn address_of(&self, request: &HttpRequest) -> IpAddr {
        let peer = request.peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip());
        counted(self.client(peer.to_canonical(), request.headers()))
    }

    /// Where the client is, as far as its proxies can be trusted. Its port is known only without one.
    pub fn client_of(&self, request: &HttpRequest) -> Option<SocketAddr> {
        let peer = request.peer_addr()?;
        let client = self.client(peer.ip().to_canonical(), request.headers());
        Some(SocketAddr::new(client, if client == peer.ip().to_canonical() { peer.port() } else { 0 }))
    }

    /// Takes one of the address's; `false` if none is left.
    pub fn admit(&self, address: IpAddr) -> bool {
        self.buckets.take(&address, self.per_minute, Instant::now())
    }

    /// The request had a good token, so it does not count.
    pub fn give_back(&self, address: IpAddr) {
        self.buckets.give_back(&address, self.per_minute, Instant::now());
    }

    /// The last address that no trusted proxy has. What stands before it in the header is anybody's claim.
    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let trusted = |address: IpAddr| self.proxies.iter().any(|network| network.contains(address));
        let mut client = peer;
        let hops: Vec<&str> =
            headers.get_all(FORWARDED_FOR).filter_map(|v| v.to_str().ok()).flat_map(|v| v.split(',')).collect();
        for hop in hops.into_iter().rev() {
            if !trusted(client) {
                break;
            }
            // A word that is no address ends the walk at the proxy that passed it on.
            let Ok(address) = hop.trim().parse::<IpAddr>() else { break };
            client = address.to_canonical();
        }
        client
    }
}

/// One customer has a whole /64 of IPv6, so that is what is counted.
fn counted(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::{HeaderName, HeaderValue};

    fn limit(proxies: &[&str]) -> AddressLimit {
        let proxies = proxies.iter().map(|text| ProxyNetwork::parse(text).unwrap()).collect();
        AddressLimit { buckets: TokenBuckets::new(4), per_minute: 2, proxies }
    }

    fn client(proxies: &[&str], peer: &str, forwarded: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for text in forwarded {
            headers.append(HeaderName::from_static(FORWARDED_FOR), HeaderValue::from_str(text).unwrap());
        }
        limit(proxies).client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn nobody_is_believed_about_addresses_unless_the_operator_trusts_them() {
        assert_eq!(client(&[], "9.9.9.9", &["1.1.1.1"]), "9.9.9.9");
        assert_eq!(client(&["10.0.0.0/8"], "9.9.9.9", &["1.1.1.1"]), "9.9.9.9");
        assert_eq!(client(&["10.0.0.0/8"], "10.1.2.3", &["1.1.1.1"]), "1.1.1.1");
        assert_eq!(client(&["10.0.0.0/8"], "10.1.2.3", &["8.8.8.8, 1.1.1.1"]), "1.1.1.1", "the last word counts");
        assert_eq!(client(&["10.0.0.0/8"], "10.1.2.3", &["8.8.8.8", "1.1.1.1, 10.9.9.9"]), "1.1.1.1");
        assert_eq!(client(&["10.0.0.0/8"], "10.1.2.3", &["1.1.1.1, nonsense"]), "10.1.2.3");
        assert_eq!(client(&["10.0.0.0/8"], "10.1.2.3", &[]), "10.1.2.3");
    }

    #[test]
    fn an_address_without_a_good_token_is_soon_refused_and_others_are_not() {
        let limit = limit(&[]);
        let (foul, fine): (IpAddr, IpAddr) = ("9.9.9.9".parse().unwrap(), "1.1.1.1".parse().unwrap());
        assert!(limit.admit(foul) && limit.admit(foul) && !limit.admit(foul));
        for _ in 0..50 {
            assert!(limit.admit(fine));
            limit.give_back(fine);
        }
    }

    #[test]
    fn a_whole_sixty_four_is_one_address() {
        let of = |text: &str| counted(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:aaaa::1"), of("2001:db8:1:2:bbbb::2"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("9.9.9.9"), "9.9.9.9");
    }
}
