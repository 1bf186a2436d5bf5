//! How far an address reaches: the public network, somebody's own network, or nowhere a request should go.
//!
//! IPv4 lists what is refused, because nearly all of it is public. IPv6 lists what is accepted, because nearly none of
//! it is: one eighth of the space is handed out, and what tunnels or translates (6to4, NAT64, Teredo) is an IPv4
//! address in disguise whose far end nobody here can judge.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where packets to an address end up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressClass {
    /// The public network.
    Public,
    /// This machine or a private network; an operator may allow it.
    Private,
    /// Metadata services, link-local, broadcast, multicast, documentation, tunnels: nobody may allow it.
    Nowhere,
}

impl AddressClass {
    /// Judges one address.
    pub fn of(address: IpAddr) -> AddressClass {
        match address {
            IpAddr::V4(v4) => of_v4(v4),
            IpAddr::V6(v6) => of_v6(v6),
        }
    }
}

/// Refused whatever an operator allows. The last three are metadata or host services of clouds on ordinary addresses.
const NOWHERE_V4: [([u8; 4], u32); 14] = [
    ([0, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 31, 196, 0], 24),
    ([192, 52, 193, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 175, 48, 0], 24),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
    ([100, 100, 100, 200], 32),
    ([168, 63, 129, 16], 32),
];

/// What belongs to this machine or to its own network.
const PRIVATE_V4: [([u8; 4], u32); 6] = [
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([172, 16, 0, 0], 12),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
];

fn of_v4(address: Ipv4Addr) -> AddressClass {
    let within = |&(net, bits): &([u8; 4], u32)| {
        let mask = u32::MAX << (32 - bits);
        u32::from(address) & mask == u32::from(Ipv4Addr::from(net)) & mask
    };
    if NOWHERE_V4.iter().any(within) {
        AddressClass::Nowhere
    } else if PRIVATE_V4.iter().any(within) {
        AddressClass::Private
    } else {
        AddressClass::Public
    }
}

fn of_v6(address: Ipv6Addr) -> AddressClass {
    // The kernel dials a mapped address as the IPv4 address inside it.
    if let Some(mapped) = address.to_ipv4_mapped() {
        return of_v4(mapped);
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Private,
        // The metadata services of two clouds, inside the private range.
        [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254] | [0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254] => AddressClass::Nowhere,
        [first, ..] if first & 0xfe00 == 0xfc00 => AddressClass::Private,
        // Protocol assignments with Teredo among them, documentation (twice), 6to4, the AS 112 servers.
        [0x2001, second, ..] if second < 0x0200 || second == 0x0db8 => AddressClass::Nowhere,
        [0x3fff, second, ..] if second < 0x1000 => AddressClass::Nowhere,
        [0x2002, ..] | [0x2620, 0x004f, 0x8000, ..] => AddressClass::Nowhere,
        [first, ..] if first & 0xe000 == 0x2000 => AddressClass::Public,
        [..] => AddressClass::Nowhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(addresses: &[&str], want: AddressClass) {
        for address in addresses {
            assert_eq!(AddressClass::of(address.parse().expect("an address")), want, "{address}");
        }
    }

    #[test]
    fn the_public_network_is_what_is_left() {
        all(
            &["1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255"],
            AddressClass::Public,
        );
        all(&["128.0.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0"], AddressClass::Public);
        all(&["198.17.255.255", "198.20.0.0", "223.255.255.255", "168.63.129.15"], AddressClass::Public);
        all(&["2606:4700::1111", "2001:200::1", "2a00::1", "3ffe::1", "::ffff:1.1.1.1"], AddressClass::Public);
    }

    #[test]
    fn what_an_operator_may_allow() {
        all(&["127.0.0.1", "127.255.255.255", "10.0.0.0", "10.255.255.255", "172.16.0.0"], AddressClass::Private);
        all(
            &["172.31.255.255", "192.168.0.0", "100.64.0.1", "100.127.255.255", "198.19.255.255"],
            AddressClass::Private,
        );
        all(&["::1", "fc00::", "fdff:ffff::1", "::ffff:127.0.0.1", "::ffff:10.1.2.3"], AddressClass::Private);
    }

    #[test]
    fn what_nobody_may_allow() {
        all(&["0.0.0.0", "0.255.255.255", "169.254.169.254", "169.254.0.0", "255.255.255.255"], AddressClass::Nowhere);
        all(
            &["224.0.0.1", "239.1.1.1", "240.0.0.1", "192.0.0.192", "192.0.2.1", "198.51.100.7"],
            AddressClass::Nowhere,
        );
        all(&["203.0.113.9", "192.88.99.1", "100.100.100.200", "168.63.129.16"], AddressClass::Nowhere);
        all(&["::", "::127.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1", "fe80::1"], AddressClass::Nowhere);
        all(&["fec0::1", "ff02::1", "2002:7f00:1::", "2002:808:808::", "64:ff9b::a9fe:a9fe"], AddressClass::Nowhere);
        all(&["64:ff9b::808:808", "64:ff9b:1::", "2001::1", "2001:1ff::", "2001:db8::1"], AddressClass::Nowhere);
        all(&["3fff::1", "3fff:fff::1", "100::1", "5f00::1", "4000::1", "fd00:ec2::254"], AddressClass::Nowhere);
        all(&["fd20:ce::254", "2620:4f:8000::1", "1fff::1"], AddressClass::Nowhere);
    }
}
