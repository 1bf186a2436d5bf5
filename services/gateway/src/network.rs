//! Networks of addresses, as an operator writes them.

use serde::Deserialize;
use std::net::IpAddr;

/// An address, or all that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ProxyNetwork {
    base: IpAddr,
    bits: u32,
}

impl ProxyNetwork {
    /// Reads `10.0.0.0/8`, `::1` and the like.
    pub fn parse(text: &str) -> Option<ProxyNetwork> {
        let (base, bits) = match text.split_once('/') {
            Some((base, bits)) => (base.parse().ok()?, Some(bits.parse().ok()?)),
            None => (text.parse().ok()?, None),
        };
        let longest = match base {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        let bits = bits.unwrap_or(longest);
        (bits <= longest).then_some(ProxyNetwork { base, bits })
    }

    /// Whether an address is one of these.
    pub fn contains(&self, address: IpAddr) -> bool {
        let same = |a: u128, b: u128, longest: u32| (a ^ b).checked_shr(longest - self.bits).unwrap_or(0) == 0;
        match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => same(base.to_bits().into(), address.to_bits().into(), 32),
            (IpAddr::V6(base), IpAddr::V6(address)) => same(base.to_bits(), address.to_bits(), 128),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl TryFrom<String> for ProxyNetwork {
    type Error = String;

    fn try_from(text: String) -> Result<ProxyNetwork, String> {
        ProxyNetwork::parse(&text).ok_or_else(|| format!("`{text}` is neither an address nor a network"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_what_begins_with_the_same_bits() {
        let contains =
            |network: &str, address: &str| ProxyNetwork::parse(network).unwrap().contains(address.parse().unwrap());
        assert!(contains("10.1.0.0/16", "10.1.255.255") && !contains("10.1.0.0/16", "10.2.0.0"));
        assert!(contains("0.0.0.0/0", "203.0.113.9") && !contains("0.0.0.0/0", "::1"));
        assert!(contains("::1", "::1") && !contains("::1", "::2") && contains("::/0", "2001:db8::1"));
        for foul in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "proxy", "10.0.0.0/-1"] {
            assert_eq!(ProxyNetwork::parse(foul), None, "{foul}");
        }
    }
}
