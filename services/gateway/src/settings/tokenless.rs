//! The second listener, which asks for no token: where it listens, for which tenant, and what stands in front of it.

use super::SettingsError;
use domain::Tenant;
use serde::Deserialize;
use std::net::SocketAddr;

/// The issuer of the one principal that everybody is who comes in without a token. No issuer of tokens may have its name.
pub const ISSUER: &str = "urn:quartermaster:tokenless";

/// The second listener.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenlessSettings {
    /// Where it listens; empty: nowhere.
    pub listen: String,
    /// The tenant it serves.
    pub tenant: String,
    /// Host names it answers to, besides loopback ones if it listens there.
    pub hosts: Vec<String>,
    /// Whether the operator says that a NetworkPolicy decides who reaches it.
    pub behind_network_policy: bool,
}

/// The same, read and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenlessListener {
    /// Where it listens.
    pub address: SocketAddr,
    /// The tenant it serves.
    pub tenant: Tenant,
}

impl TokenlessSettings {
    /// The listener, or `None` if there is none. Every mistake names its key and what to write there.
    pub fn listener(&self) -> Result<Option<TokenlessListener>, SettingsError> {
        let wrong = |why: String| Err(SettingsError::Wrong(why));
        if self.listen.is_empty() {
            return Ok(None);
        }
        let Ok(address) = self.listen.parse::<SocketAddr>() else {
            return wrong("tokenless.listen is no address with a port, such as 127.0.0.1:8081".to_owned());
        };
        let Ok(tenant) = Tenant::parse(&self.tenant) else {
            return wrong("tokenless.tenant must name the one tenant that tokenless.listen serves".to_owned());
        };
        if !address.ip().is_loopback() {
            if !self.behind_network_policy {
                return wrong(format!(
                    "tokenless.listen {address} is not on loopback, and whoever reaches it may read as the tenant \
                     {tenant}: listen on loopback, or put a NetworkPolicy in front of it and set \
                     tokenless.behind_network_policy = true"
                ));
            }
            if self.hosts.is_empty() {
                return wrong(
                    "tokenless.hosts is empty: name the hosts that agents use, such as \
                     \"quartermaster.agents.svc.cluster.local:8080\""
                        .to_owned(),
                );
            }
        }
        Ok(Some(TokenlessListener { address, tenant }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(listen: &str, tenant: &str, hosts: &[&str], policy: bool) -> TokenlessSettings {
        TokenlessSettings {
            listen: listen.to_owned(),
            tenant: tenant.to_owned(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            behind_network_policy: policy,
        }
    }

    #[test]
    fn it_is_off_by_default_and_on_loopback_without_more_words() {
        assert_eq!(settings("", "", &[], false).listener().unwrap(), None);
        let listener = settings("127.0.0.1:8081", "acme", &[], false).listener().unwrap().unwrap();
        assert_eq!((listener.address.port(), listener.tenant.as_str()), (8081, "acme"));
    }

    #[test]
    fn off_loopback_it_needs_the_operators_word_and_its_hosts() {
        let open = |hosts: &[&str], policy| settings("0.0.0.0:8080", "acme", hosts, policy).listener();
        let why = open(&["a"], false).unwrap_err().to_string();
        assert!(why.contains("behind_network_policy") && why.contains("acme"), "{why}");
        assert!(open(&[], true).unwrap_err().to_string().contains("tokenless.hosts"));
        assert!(open(&["a"], true).unwrap().is_some());
    }

    #[test]
    fn a_mistake_names_its_key() {
        for (listen, tenant, key) in [("8081", "acme", "tokenless.listen"), ("127.0.0.1:1", "", "tokenless.tenant")] {
            let why = settings(listen, tenant, &[], false).listener().unwrap_err().to_string();
            assert!(why.contains(key), "{why}");
        }
    }
}
