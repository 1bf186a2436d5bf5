//! Host and Origin, checked before anything else: a web page must not reach the service through a rebound name.

use crate::app::Gateway;
use actix_web::HttpRequest;
use actix_web::http::header::{HOST, HeaderMap, ORIGIN};

/// Which hosts and origins are answered.
#[derive(Debug, Clone)]
pub struct OriginPolicy {
    hosts: Vec<String>,
    origins: Vec<String>,
    /// Any port of a loopback host is ours too: development and tests, where proxies stand in between.
    loopback: bool,
}

impl OriginPolicy {
    /// The service's own address, what the operator added, and loopback if the listener is there.
    pub fn new(resource: &str, hosts: &[String], origins: &[String], loopback: bool) -> OriginPolicy {
        let own = authority(resource);
        let scheme = resource.split_once("://").map_or("https", |(scheme, _)| scheme);
        let mut all_hosts: Vec<String> = hosts.iter().map(|h| h.to_ascii_lowercase()).collect();
        let mut all_origins: Vec<String> =
            origins.iter().map(|o| o.trim_end_matches('/').to_ascii_lowercase()).collect();
        all_hosts.push(own.clone());
        all_origins.push(format!("{scheme}://{own}"));
        OriginPolicy { hosts: all_hosts, origins: all_origins, loopback }
    }

    /// Whether the request may come in.
    pub fn admit(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(HOST);
        let host = match (hosts.next().and_then(|h| h.to_str().ok()), hosts.next()) {
            (Some(host), None) => host.to_ascii_lowercase(),
            _ => return false,
        };
        let host_is_ours = self.hosts.contains(&host) || (self.loopback && is_loopback(&host));
        let mut origins = headers.get_all(ORIGIN);
        let origin_is_ours = match (origins.next(), origins.next()) {
            (None, _) => true,
            (Some(origin), None) => origin.to_str().is_ok_and(|origin| self.knows(&origin.to_ascii_lowercase())),
            (Some(_), Some(_)) => false,
        };
        host_is_ours && origin_is_ours
    }

    fn knows(&self, origin: &str) -> bool {
        let loopback = || origin.strip_prefix("http://").is_some_and(is_loopback);
        self.origins.iter().any(|allowed| allowed == origin) || (self.loopback && loopback())
    }
}

/// Host and port of an address.
fn authority(address: &str) -> String {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default().to_ascii_lowercase()
}

fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix("[::1]") {
        Some(rest) => return rest.is_empty() || port(rest),
        None => host,
    };
    let (name, rest) = name.find(':').map_or((name, ""), |at| name.split_at(at));
    matches!(name, "localhost" | "127.0.0.1") && (rest.is_empty() || port(rest))
}

fn port(text: &str) -> bool {
    text.strip_prefix(':').is_some_and(|digits| digits.parse::<u16>().is_ok())
}

/// Whether this request may come in at all.
pub fn admits(gateway: &Gateway, request: &HttpRequest) -> bool {
    gateway.doors.admit(request.headers())
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::HeaderValue;

    fn admit(doors: &OriginPolicy, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        doors.admit(&headers)
    }

    #[test]
    fn cve_2026_42559_host_and_origin_matrix() {
        let doors =
            OriginPolicy::new("https://qm.example.com/mcp", &[], &["https://console.example.com".into()], false);
        for (host, origin, fine) in [
            ("qm.example.com", None, true),
            ("QM.example.com", Some("https://qm.example.com"), true),
            ("qm.example.com", Some("https://console.example.com"), true),
            ("qm.example.com", Some("http://qm.example.com"), false),
            ("qm.example.com", Some("https://evil.example"), false),
            ("qm.example.com", Some("null"), false),
            ("evil.example", None, false),
            ("qm.example.com.evil", None, false),
            ("localhost:8080", None, false),
            ("127.0.0.1", None, false),
        ] {
            assert_eq!(admit(&doors, host, origin), fine, "{host} {origin:?}");
        }
    }

    #[test]
    fn loopback_is_any_port_and_nothing_that_only_looks_like_it() {
        let doors = OriginPolicy::new("http://127.0.0.1:8080/mcp", &[], &[], true);
        for fine in ["localhost", "localhost:9", "127.0.0.1:8080", "[::1]:8091"] {
            assert!(admit(&doors, fine, Some(&format!("http://{fine}"))), "{fine}");
        }
        for foul in ["localhost.evil", "127.0.0.1.evil:80", "127.0.0.1:80:80", "localhost:x", "[::1]x", "127.0.0.2"] {
            assert!(!admit(&doors, foul, None), "{foul}");
        }
        assert!(!admit(&doors, "localhost:1", Some("https://localhost.evil")));
    }
}
