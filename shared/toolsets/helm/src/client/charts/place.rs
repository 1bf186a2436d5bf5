//! Where a repository or registry is, checked against the operator's hosts and the guard.

use super::hosts::Hosts;
use super::reference::{is_authority, is_path_part};
use domain::{Code, Failure};
use egress::{AddressClass, AddressGuard, AddressRefused, Url};

/// Where charts come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::client) enum ChartSource {
    /// A repository: a folder with an index; the address ends with a slash.
    Index(Url),
    /// A registry, and the part of it that counts.
    Registry(Registry),
}

/// A registry by its API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::client) struct Registry {
    /// Host and port, as they were written.
    pub(in crate::client) authority: String,
    /// The path charts are below; may be empty.
    pub(in crate::client) path: String,
    /// The root of its API.
    pub(in crate::client) api: Url,
}

/// What may be reached at all.
#[derive(Debug, Clone)]
pub(in crate::client) struct ChartLimits {
    pub(in crate::client) guard: AddressGuard,
    pub(in crate::client) hosts: Hosts,
}

impl ChartLimits {
    /// Reads the address of a repository or registry.
    pub(in crate::client) fn place(&self, text: &str) -> Result<ChartSource, Failure> {
        match text.strip_prefix("oci://") {
            Some(rest) => {
                let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
                let path = path.strip_suffix('/').unwrap_or(path);
                if !is_authority(authority) || !(path.is_empty() || path.split('/').all(is_path_part)) {
                    return Err(not_an_address());
                }
                Ok(ChartSource::Registry(self.registry(authority, path)?))
            }
            None => {
                let mut url = self.guard.parse(text).map_err(denied)?;
                if url.query().is_some() || url.fragment().is_some() {
                    return Err(not_an_address());
                }
                if !url.path().ends_with('/') {
                    url.set_path(&format!("{}/", url.path()));
                }
                self.check(&url)?;
                Ok(ChartSource::Index(url))
            }
        }
    }

    /// A registry by its parts. In the clear only on this very machine, where an operator allows that.
    pub(in crate::client) fn registry(&self, authority: &str, path: &str) -> Result<Registry, Failure> {
        let host = authority.split_once(':').map_or(authority, |(host, _)| host);
        let at_home = host
            .parse()
            .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback() && AddressClass::of(ip) == AddressClass::Private);
        let scheme = if at_home && self.guard.private { "http" } else { "https" };
        let api = self.guard.parse(&format!("{scheme}://{authority}/v2/")).map_err(denied)?;
        self.check(&api)?;
        Ok(Registry { authority: authority.to_owned(), path: path.to_owned(), api })
    }

    /// Wants the address to be at one of the operator's hosts and past the guard.
    pub(in crate::client) fn check(&self, url: &Url) -> Result<(), Failure> {
        self.guard.check(url).map_err(denied)?;
        if self.hosts.allow(url) {
            return Ok(());
        }
        let message = format!("the host {} is not one that charts may come from", url.host_str().unwrap_or_default());
        Err(Failure::new(target::codes::HOST_DENIED, message).next("ask the operator to allow the host; do not retry"))
    }
}

impl Registry {
    /// Whether a chart at this path belongs to it.
    pub(in crate::client) fn covers(&self, authority: &str, path: &str) -> bool {
        let below = || path.strip_prefix(&self.path).is_some_and(|rest| rest.starts_with('/'));
        self.authority == authority && (self.path.is_empty() || below())
    }
}

fn denied(refused: AddressRefused) -> Failure {
    match refused {
        AddressRefused::NotAnAddress => not_an_address(),
        AddressRefused::Insecure
        | AddressRefused::Credentials
        | AddressRefused::Port(_)
        | AddressRefused::Name
        | AddressRefused::Range => {
            Failure::new(target::codes::HOST_DENIED, format!("the address cannot be used: {refused}"))
                .next("use an https:// or oci:// address at a host the operator allows")
        }
    }
}

fn not_an_address() -> Failure {
    Failure::new(Code::InvalidArgument, "the address of a repository is https://host/path or oci://host/path")
        .next("correct url")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(private: bool) -> ChartLimits {
        let hosts = Hosts::new(["charts.example", "127.0.0.1", "10.0.0.1", "169.254.169.254"]);
        ChartLimits { guard: AddressGuard { private, ports: vec![443, 5000] }, hosts }
    }

    fn code(text: &str) -> Code {
        limits(false).place(text).expect_err(text).code
    }

    #[test]
    fn repositories_and_registries_are_read() {
        let Ok(ChartSource::Index(url)) = limits(false).place("https://charts.example/stable") else {
            panic!("an index")
        };
        assert_eq!(url.as_str(), "https://charts.example/stable/");
        let Ok(ChartSource::Registry(registry)) = limits(false).place("oci://charts.example:5000/team/charts/") else {
            panic!("a registry")
        };
        assert_eq!((registry.api.as_str(), registry.path.as_str()), ("https://charts.example:5000/v2/", "team/charts"));
        assert!(registry.covers("charts.example:5000", "team/charts/web"));
        for (authority, path) in [
            ("charts.example", "team/charts/web"),
            ("charts.example:5000", "team/chartsweb"),
            ("charts.example:5000", "team/charts"),
            ("charts.example:5000", "other/web"),
        ] {
            assert!(!registry.covers(authority, path), "{authority}/{path}");
        }
    }

    #[test]
    fn plain_http_is_for_this_machine_alone() {
        let scheme = |private, text: &str| match limits(private).place(text) {
            Ok(ChartSource::Registry(registry)) => registry.api.scheme().to_owned(),
            Ok(ChartSource::Index(url)) => url.scheme().to_owned(),
            Err(failure) => failure.code.as_str().to_owned(),
        };
        assert_eq!(scheme(true, "oci://127.0.0.1:5000/x"), "http");
        assert_eq!(scheme(true, "oci://10.0.0.1:5000/x"), "https");
        assert_eq!(scheme(true, "oci://charts.example/x"), "https");
        assert_eq!(scheme(false, "oci://127.0.0.1:5000/x"), "host_denied");
        assert_eq!(scheme(false, "http://charts.example/"), "host_denied");
    }

    #[test]
    fn cve_2026_44430_no_repository_leads_to_private_or_unlisted_places() {
        for denied in [
            "https://other.example/",
            "oci://other.example/x",
            "https://127.0.0.1/",
            "https://2130706433/",
            "https://[::1]/",
            "https://169.254.169.254/latest",
            "oci://169.254.169.254/x",
            "oci://2130706433/x",
            "oci://0x7f000001/x",
            "oci://localhost/x",
            "https://charts.example:6379/",
            "oci://charts.example:2375/x",
            "https://a:b@charts.example/",
            "https://charts.example@evil.example/",
            "https://charts.example.evil.example/",
            "https://xn--bcher-kva.example/",
            "https://charts.example./",
        ] {
            assert_eq!(code(denied), target::codes::HOST_DENIED, "{denied}");
        }
        for invalid in [
            "",
            "charts.example",
            "file:///etc",
            "ftp://charts.example/",
            "https://charts.example/?x=1",
            "https://charts.example/#x",
            "oci://",
            "oci:///x",
            "oci://user@charts.example/x",
            "oci://charts.example/x?y",
            "oci://charts.example/../x",
            "oci://[::1]/x",
            "--repository-config=/etc/x",
            "https://charts.example/\n",
            "oci://charts.example/x:1",
            "oci://charts.example/x@sha256:0",
        ] {
            assert_eq!(code(invalid), Code::InvalidArgument, "{invalid}");
        }
    }
}
