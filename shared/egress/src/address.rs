//! Where a request may go: https anywhere, plain http only to this machine.

use reqwest::Url;
use std::net::IpAddr;

/// Why an address from the settings is not fetched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It does not read as an absolute address.
    #[error("not an absolute http or https address")]
    NotAnAddress,
    /// It would travel in the clear.
    #[error("https is required except for a loopback host")]
    Insecure,
    /// It carries a name or password, which would end up in logs.
    #[error("a name or password in an address is refused")]
    Credentials,
}

/// Checks an address an operator wrote, without any look-up.
pub fn check_operator_address(address: &str) -> Result<(), AddressError> {
    parse(address).map(drop)
}

pub(crate) fn parse(address: &str) -> Result<Url, AddressError> {
    let url = Url::parse(address).map_err(|_| AddressError::NotAnAddress)?;
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or(AddressError::NotAnAddress)?;
    match url.scheme() {
        "https" => {}
        "http" if is_loopback(host) => {}
        "http" => return Err(AddressError::Insecure),
        _ => return Err(AddressError::NotAnAddress),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(AddressError::Credentials);
    }
    Ok(url)
}

/// Whether an address names this very machine. One that cannot be read names nothing.
pub(crate) fn is_on_this_machine(address: &str) -> bool {
    parse(address).is_ok_and(|url| url.host_str().is_some_and(is_loopback))
}

/// The URL parser has already turned every spelling of an IPv4 address into the usual one.
fn is_loopback(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_goes_anywhere_and_http_stays_at_home() {
        for good in [
            "https://login.example/jwks",
            "https://10.0.0.1/jwks",
            "http://127.0.0.1:8080/jwks",
            "http://127.9.9.9/",
            "http://[::1]:80/jwks",
            "http://localhost:1/",
        ] {
            assert_eq!(check_operator_address(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn plain_http_beyond_this_machine_is_refused() {
        for bad in [
            "http://login.example/jwks",
            "http://localhost.evil.example/",
            "http://127.0.0.1.evil.example/",
            "http://localhost./",
            "http://10.0.0.1/",
            "http://[::ffff:10.0.0.1]/",
            "http://0.0.0.0/",
            "http://127.0.0.1@evil.example/",
        ] {
            assert_eq!(check_operator_address(bad), Err(AddressError::Insecure), "{bad}");
        }
    }

    #[test]
    fn what_is_no_web_address_is_refused() {
        for bad in ["", "jwks", "/jwks", "file:///etc/passwd", "gopher://x/", "data:,x", "unix:/run/x", "https://"] {
            assert_eq!(check_operator_address(bad), Err(AddressError::NotAnAddress), "{bad}");
        }
    }

    #[test]
    fn credentials_in_an_address_are_refused() {
        for bad in ["https://me@login.example/", "https://me:secret@login.example/", "https://:secret@login.example/"] {
            assert_eq!(check_operator_address(bad), Err(AddressError::Credentials), "{bad}");
        }
    }
}
