//! The hosts charts may come from, as the operator lists them: `charts.example.com`, or `*.example.com` for all below.

use egress::Url;

/// The operator's list. Empty: none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hosts(Vec<String>);

impl Hosts {
    /// Takes the list; case does not matter.
    pub fn new(hosts: impl IntoIterator<Item = impl Into<String>>) -> Hosts {
        Hosts(hosts.into_iter().map(|host| host.into().to_ascii_lowercase()).collect())
    }

    /// Whether the address is at one of them.
    pub fn allow(&self, url: &Url) -> bool {
        url.host_str().is_some_and(|host| self.0.iter().any(|pattern| matches(pattern, host)))
    }
}

fn matches(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix("*.") {
        // The dot before the ending counts, and so does what stands before it.
        Some(ending) => host.strip_suffix(ending).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        None => pattern == host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_hosts_and_those_below_a_star_are_allowed() {
        let hosts = Hosts::new(["Charts.Example.com", "*.cdn.example", "127.0.0.1"]);
        let allow = |host: &str| hosts.allow(&Url::parse(&format!("https://{host}/x")).unwrap());
        for good in
            ["charts.example.com", "CHARTS.example.com", "a.cdn.example", "a.b.cdn.example", "127.0.0.1", "127.1"]
        {
            assert!(allow(good), "{good}");
        }
        for bad in [
            "example.com",
            "x.charts.example.com",
            "cdn.example",
            "evilcdn.example",
            "charts.example.com.evil.example",
            "charts.example.com.",
            "127.0.0.2",
            "a.cdn.example.evil.example",
        ] {
            assert!(!allow(bad), "{bad}");
        }
        assert!(!Hosts::default().allow(&Url::parse("https://charts.example.com/").unwrap()));
    }
}
