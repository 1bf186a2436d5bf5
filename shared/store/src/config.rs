//! The settings of the store, and which backend an address means.

use crate::error::StoreOpenError;
use serde::Deserialize;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The section `store` of the service's settings.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the state lives: `redis://…`, `redis+sentinel://…`, `redis+cluster://…`, each with `rediss` for TLS,
    /// `file:PATH` or `memory:`.
    pub url: String,
    /// Whom sentinels know us as, if they ask. The user and the password of the nodes stand in the address.
    #[serde(default)]
    pub sentinel_user: String,
    /// The password for sentinels.
    #[serde(default)]
    pub sentinel_password: String,
    /// Whether sentinels are reached by TLS.
    #[serde(default)]
    pub sentinel_tls: SentinelTls,
    /// The certificate of the authority that signed those of the nodes; the system's authorities without one.
    #[serde(default)]
    pub tls_ca_file: PathBuf,
    /// Our certificate, where nodes ask for one.
    #[serde(default)]
    pub tls_cert_file: PathBuf,
    /// Its key.
    #[serde(default)]
    pub tls_key_file: PathBuf,
    /// What every key begins with, so that several installations can share a server.
    pub prefix: String,
    /// The longest anybody waits for one answer of the store.
    #[serde(deserialize_with = "crate::duration::deserialize")]
    pub deadline: Duration,
    /// Serve although Redis may evict or forget what it holds; the operator's word in writing.
    pub accept_unsafe: bool,
    /// How many replicas of Redis must have what somebody is told before it counts.
    pub confirm_replicas: Confirm,
    /// How much of its file the embedded store keeps in memory.
    pub cache_bytes: usize,
}

/// Whether sentinels are reached by TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SentinelTls {
    /// As the nodes are.
    #[default]
    Same,
    /// Yes.
    On,
    /// No.
    Off,
}

/// How many replicas must have what may not be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Confirm {
    /// All that may be promoted: those that sentinels or the cluster know, or else those that the server was seen with.
    #[default]
    Auto,
    /// That many, whatever the server says it has.
    Exactly(u8),
}

impl<'de> Deserialize<'de> for Confirm {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Confirm, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "store.confirm_replicas must be \"auto\" or a number up to 255")]
        enum ConfiguredValue {
            Number(u8),
            Word(String),
        }
        match ConfiguredValue::deserialize(deserializer)? {
            ConfiguredValue::Number(many) => Ok(Confirm::Exactly(many)),
            ConfiguredValue::Word(word) if word == "auto" => Ok(Confirm::Auto),
            ConfiguredValue::Word(_) => {
                Err(serde::de::Error::custom("store.confirm_replicas must be \"auto\" or a number"))
            }
        }
    }
}

/// The address may hold a password, so only its kind is printed.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.url.split_once(':').map_or("?", |(kind, _)| kind);
        f.debug_struct("Config")
            .field("url", &format_args!("{kind}:…"))
            .field("sentinel_tls", &self.sentinel_tls)
            .field("tls_ca_file", &self.tls_ca_file)
            .field("prefix", &self.prefix)
            .field("deadline", &self.deadline)
            .field("accept_unsafe", &self.accept_unsafe)
            .field("confirm_replicas", &self.confirm_replicas)
            .field("cache_bytes", &self.cache_bytes)
            .finish()
    }
}

/// What an address means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StoreLocation {
    Redis,
    File(PathBuf),
    Memory,
}

impl Config {
    /// A store at this address, as most tests want it. It waits longer than in production: what they test is not how fast a
    /// busy machine is.
    pub fn at(url: &str) -> Config {
        Config {
            url: url.to_owned(),
            sentinel_user: String::new(),
            sentinel_password: String::new(),
            sentinel_tls: SentinelTls::Same,
            tls_ca_file: PathBuf::new(),
            tls_cert_file: PathBuf::new(),
            tls_key_file: PathBuf::new(),
            prefix: "qm".to_owned(),
            deadline: Duration::from_secs(10),
            accept_unsafe: false,
            confirm_replicas: Confirm::Auto,
            cache_bytes: 32 * 1024 * 1024,
        }
    }

    /// Whether anything is said on how to reach sentinels.
    pub(crate) fn names_sentinel_settings(&self) -> bool {
        !self.sentinel_user.is_empty() || !self.sentinel_password.is_empty() || self.sentinel_tls != SentinelTls::Same
    }

    fn names_tls_files(&self) -> bool {
        [&self.tls_ca_file, &self.tls_cert_file, &self.tls_key_file].iter().any(|path| !path.as_os_str().is_empty())
    }

    /// Checks address, prefix and deadline before anything is opened.
    pub(crate) fn place(&self) -> Result<StoreLocation, StoreOpenError> {
        let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-');
        if !(1..=32).contains(&self.prefix.len()) || !self.prefix.bytes().all(letter) {
            return Err(StoreOpenError::Prefix);
        }
        if self.deadline.is_zero() {
            return Err(StoreOpenError::Deadline);
        }
        match self.url.split_once(':') {
            Some((scheme, _)) if matches!(scheme.split('+').next(), Some("redis" | "rediss")) => {
                Ok(StoreLocation::Redis)
            }
            Some(_) if self.names_sentinel_settings() || self.names_tls_files() => Err(StoreOpenError::Topology(
                "the store's settings of sentinels and of TLS are for Redis, and store.url names none",
            )),
            Some(("memory", "")) => Ok(StoreLocation::Memory),
            Some(("file", path)) if !path.is_empty() => Ok(StoreLocation::File(PathBuf::from(path))),
            Some(_) | None => Err(StoreOpenError::Address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str, prefix: &str) -> Config {
        Config { prefix: prefix.into(), ..Config::at(url) }
    }

    #[test]
    fn an_address_names_its_backend() {
        assert_eq!(config("redis://h:1/0", "qm").place().unwrap(), StoreLocation::Redis);
        assert_eq!(config("rediss://h", "qm").place().unwrap(), StoreLocation::Redis);
        assert_eq!(config("rediss+sentinel://h/m", "qm").place().unwrap(), StoreLocation::Redis);
        assert_eq!(config("redis+cluster://h", "qm").place().unwrap(), StoreLocation::Redis);
        assert_eq!(config("memory:", "qm").place().unwrap(), StoreLocation::Memory);
        assert_eq!(config("file:a/b.redb", "qm").place().unwrap(), StoreLocation::File("a/b.redb".into()));
    }

    #[test]
    fn other_addresses_and_prefixes_are_refused() {
        for url in ["", "file:", "memory", "memory:x", "http://h", "/a/b"] {
            assert!(matches!(config(url, "qm").place(), Err(StoreOpenError::Address)), "{url}");
        }
        for prefix in ["", "a:b", "{x}", "Q", "a b", &"x".repeat(33)] {
            assert!(matches!(config("memory:", prefix).place(), Err(StoreOpenError::Prefix)), "{prefix}");
        }
    }

    #[test]
    fn a_file_has_no_sentinels_and_no_tls() {
        let odd = Config { sentinel_tls: SentinelTls::On, ..config("memory:", "qm") };
        assert!(matches!(odd.place(), Err(StoreOpenError::Topology(_))));
        let odd = Config { tls_ca_file: "a".into(), ..config("file:a", "qm") };
        assert!(matches!(odd.place(), Err(StoreOpenError::Topology(_))));
    }

    #[test]
    fn settings_are_read_strictly() {
        let text = r#"{"url":"memory:","prefix":"qm","deadline":"250ms","accept_unsafe":false,"cache_bytes":1,"confirm_replicas":2}"#;
        let config: Config = serde_json::from_str(text).unwrap();
        assert_eq!((config.deadline, config.confirm_replicas), (Duration::from_millis(250), Confirm::Exactly(2)));
        let auto: Config = serde_json::from_str(&text.replace(":2}", ":\"auto\"}")).unwrap();
        assert_eq!(auto.confirm_replicas, Confirm::Auto);
        for bad in [
            text.replace("250ms", "soon"),
            text.replace("prefix", "prefixes"),
            text.replace("{", "{\"x\":1,"),
            text.replace(":2}", ":\"all\"}"),
            text.replace(":2}", ":-1}"),
        ] {
            assert!(serde_json::from_str::<Config>(&bad).is_err(), "{bad}");
        }
        assert!(matches!(Config { deadline: Duration::ZERO, ..config }.place(), Err(StoreOpenError::Deadline)));
    }

    #[test]
    fn a_password_in_the_address_is_not_printed() {
        let shown = format!("{:?}", config("redis://robot:hunter2@h:1", "qm"));
        assert!(!shown.contains("hunter2") && shown.contains("redis:"), "{shown}");
        let told = Config { sentinel_password: "hunter2".into(), ..config("redis+sentinel://h/m", "qm") };
        assert!(!format!("{told:?}").contains("hunter2"));
    }
}
