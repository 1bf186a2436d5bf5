//! The guard before every address a tenant can influence: repositories, registries, Jenkins servers, upstreams.
//!
//! It looks twice. [`AddressGuard::check`] judges what is written, when the address is configured and again before each
//! request. `AddressGuard::vet` judges what a name resolves to, at the moment of dialling, and only what it let through is
//! dialled: a name cannot be one thing when checked and another when connected to.
//!
//! Not here: which hosts a tenant may name (whoever owns the list), and the sending (see [`guarded`](crate::guarded)).

use crate::reach::AddressClass;
use reqwest::Url;
use std::net::IpAddr;

/// What an operator allows for addresses that tenants name. The default is https to public addresses on port 443.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressGuard {
    /// Whether loopback and private networks may be reached, and those over plain http as well.
    pub private: bool,
    /// The ports that may be dialled.
    pub ports: Vec<u16>,
}

/// Why an address is not dialled. Says nothing about what answers there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressRefused {
    /// It does not read as an absolute web address.
    #[error("not an absolute https address")]
    NotAnAddress,
    /// It would travel in the clear.
    #[error("https is required")]
    Insecure,
    /// It carries a name or password, which would end up in logs and in front of other eyes.
    #[error("a name or password in an address is refused")]
    Credentials,
    /// The port is not one the operator allows.
    #[error("port {0} is not allowed")]
    Port(u16),
    /// The name stands for this machine, its network or a metadata service, or can be mistaken for another.
    #[error("a host of this name is not allowed")]
    Name,
    /// The address is private, special or a disguise of such a one.
    #[error("an address in this range is not allowed")]
    Range,
}

impl Default for AddressGuard {
    fn default() -> AddressGuard {
        AddressGuard { private: false, ports: vec![443] }
    }
}

impl AddressGuard {
    /// Reads and checks an address in one step.
    pub fn parse(&self, address: &str) -> Result<Url, AddressRefused> {
        // The parser would quietly drop line breaks, turn backslashes round and supply or drop slashes before the
        // host; what was meant is then anybody's guess.
        let host_follows = address.split_once("://").is_some_and(|(_, rest)| !rest.starts_with('/'));
        if !host_follows || address.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
            return Err(AddressRefused::NotAnAddress);
        }
        let url = Url::parse(address).map_err(|_| AddressRefused::NotAnAddress)?;
        self.check(&url)?;
        Ok(url)
    }

    /// Judges what is written: scheme, user part, port, name, and literal addresses in every spelling.
    ///
    /// The parser has already brought decimal, octal, hexadecimal, shortened and full-width IPv4 into one form.
    pub fn check(&self, url: &Url) -> Result<(), AddressRefused> {
        match url.scheme() {
            "https" => {}
            "http" if self.private => {}
            "http" => return Err(AddressRefused::Insecure),
            _ => return Err(AddressRefused::NotAnAddress),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(AddressRefused::Credentials);
        }
        let host = url.host_str().ok_or(AddressRefused::NotAnAddress)?;
        match literal(host) {
            Some(address) => self.vet(address, url.scheme() == "http")?,
            None => self.check_name(host)?,
        }
        match url.port_or_known_default() {
            Some(port) if self.ports.contains(&port) => Ok(()),
            Some(port) => Err(AddressRefused::Port(port)),
            None => Err(AddressRefused::NotAnAddress),
        }
    }

    /// Judges an address that is about to be dialled. In the clear, only a private network will do.
    pub(crate) fn vet(&self, address: IpAddr, in_the_clear: bool) -> Result<(), AddressRefused> {
        match AddressClass::of(address) {
            AddressClass::Public if in_the_clear => Err(AddressRefused::Insecure),
            AddressClass::Public => Ok(()),
            AddressClass::Private if self.private => Ok(()),
            AddressClass::Private | AddressClass::Nowhere => Err(AddressRefused::Range),
        }
    }

    /// Judges a name before anybody is asked for its addresses.
    pub(crate) fn check_name(&self, name: &str) -> Result<(), AddressRefused> {
        let proper = name.len() <= 253 && name.split('.').all(is_label) && !METADATA.contains(&name);
        let at_home = !name.contains('.') || HOME.iter().any(|suffix| name.ends_with(suffix));
        if proper && (self.private || !at_home) { Ok(()) } else { Err(AddressRefused::Name) }
    }
}

/// Names by which clouds offer their metadata services; their addresses are refused as well.
const METADATA: [&str; 6] = [
    "instance-data",
    "instance-data.ec2.internal",
    "metadata",
    "metadata.azure.internal",
    "metadata.goog",
    "metadata.google.internal",
];

/// Endings that only ever mean a network of one's own.
const HOME: [&str; 9] =
    [".localhost", ".localdomain", ".local", ".internal", ".intranet", ".lan", ".home.arpa", ".svc", ".in-addr.arpa"];

/// One part of a name. An empty one is a trailing or a doubled dot; an encoded one can look like any other name.
fn is_label(label: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    (1..=63).contains(&label.len())
        && label.bytes().all(plain)
        && !label.starts_with('-')
        && !label.ends_with('-')
        && !label.starts_with("xn--")
}

fn literal(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    bare.parse().ok()
}

#[cfg(test)]
mod tests;
