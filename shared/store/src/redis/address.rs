//! What `store.url` means for Redis: one node, a primary that sentinels name, or a cluster.
//!
//! The forms are those that other clients of Redis know: `redis://` and `rediss://` for one node,
//! `redis+sentinel://SENTINEL,SENTINEL/MASTER` and `redis+cluster://NODE,NODE`, each with `rediss` for TLS. User and
//! password in the address are those of the nodes.

use crate::Config;
use crate::config::SentinelTls;
use crate::error::StoreOpenError;
use redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisError,
    TlsCertificates,
};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

const SENTINEL_PORT: u16 = 26_379;
const NODE_PORT: u16 = 6_379;

/// Where a node or a sentinel listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct NodeAddress {
    pub(super) host: String,
    pub(super) port: u16,
}

impl NodeAddress {
    /// Reads `host:port` as servers write it: an IPv6 host may stand in brackets or not. An empty host is the node that
    /// said so.
    pub(super) fn parse(text: &str, said_by: &str) -> Option<NodeAddress> {
        let (host, port) = text.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let host = if host.is_empty() || host == "?" { said_by } else { host };
        Some(NodeAddress { host: host.to_owned(), port: port.parse().ok().filter(|port| *port != 0)? })
    }
}

impl fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// How nodes are reached, whatever their addresses: credentials, TLS and the number of the database.
#[derive(Clone)]
pub(super) struct NodeSettings(Arc<ConnectionInfo>);

impl NodeSettings {
    /// A client of the node at an address.
    #[expect(clippy::disallowed_methods, reason = "the door: every Redis connection of the service begins here")]
    pub(super) fn client(&self, address: &NodeAddress, protocol: ProtocolVersion) -> Result<Client, RedisError> {
        let (host, port) = (address.host.clone(), address.port);
        let addr = match self.0.addr() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: tls_params.clone() }
            }
            // The settings of the store name no other kinds.
            ConnectionAddr::Tcp(..) | ConnectionAddr::Unix(_) | _ => ConnectionAddr::Tcp(host, port),
        };
        let settings = self.0.redis_settings().clone().set_protocol(protocol);
        Client::open(ConnectionInfo::clone(&self.0).set_addr(addr).set_redis_settings(settings))
    }
}

/// What stands behind the store's address.
pub(super) enum Topology {
    Single { address: NodeAddress, nodes: NodeSettings },
    Sentinel { sentinels: Vec<NodeAddress>, asked: NodeSettings, master: String, nodes: NodeSettings },
    Cluster { seeds: Vec<NodeAddress>, nodes: NodeSettings },
}

impl Topology {
    pub(super) fn of(config: &Config) -> Result<Topology, StoreOpenError> {
        let (scheme, rest) = config.url.split_once("://").ok_or(StoreOpenError::Address)?;
        let (secure, kind) = match scheme.split_once('+').unwrap_or((scheme, "")) {
            ("redis", kind) => (false, kind),
            ("rediss", kind) => (true, kind),
            (_, _) => return Err(StoreOpenError::Address),
        };
        if kind != "sentinel" && config.names_sentinel_settings() {
            return Err(wrong(
                "store.sentinel_user, sentinel_password and sentinel_tls are for redis+sentinel:// alone",
            ));
        }
        let tls = TlsFiles::read(config)?;
        let sentinels_are_secure = config.sentinel_tls.applies(secure);
        if tls.any() && !secure && !(kind == "sentinel" && sentinels_are_secure) {
            return Err(wrong("store.tls_ca_file, tls_cert_file and tls_key_file need an address with rediss"));
        }
        match kind {
            "" => {
                if rest.split('/').next().is_some_and(|hosts| hosts.contains(',')) {
                    return Err(wrong("store.url names several nodes: write redis+cluster:// or redis+sentinel://"));
                }
                let info = config.url.as_str().into_connection_info().map_err(refused)?;
                Ok(Topology::Single { address: address_of(&info)?, nodes: tls.apply(info)? })
            }
            "sentinel" => sentinel(rest, secure, sentinels_are_secure, config, &tls),
            "cluster" => cluster(rest, secure, &tls),
            _ => Err(StoreOpenError::Address),
        }
    }
}

fn sentinel(
    rest: &str,
    secure: bool,
    sentinels_are_secure: bool,
    config: &Config,
    tls: &TlsFiles,
) -> Result<Topology, StoreOpenError> {
    let Authority { user, hosts, path } = Authority::parse(rest)?;
    let (master, database) = path.split_once('/').unwrap_or((path, "0"));
    if master.is_empty() || !master.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_')) {
        return Err(wrong("store.url names no master: write redis+sentinel://HOST:PORT,HOST:PORT/MASTER"));
    }
    let sentinels = addresses(hosts, SENTINEL_PORT)?;
    let nodes = tls.settings(secure, user, &sentinels[0], database)?;
    let asked = tls.settings(sentinels_are_secure, "", &sentinels[0], "0")?;
    let mut settings = asked.0.redis_settings().clone();
    if !config.sentinel_user.is_empty() {
        if config.sentinel_password.is_empty() {
            return Err(wrong("store.sentinel_user needs store.sentinel_password"));
        }
        settings = settings.set_username(&config.sentinel_user);
    }
    if !config.sentinel_password.is_empty() {
        settings = settings.set_password(&config.sentinel_password);
    }
    let asked = NodeSettings(Arc::new(ConnectionInfo::clone(&asked.0).set_redis_settings(settings)));
    Ok(Topology::Sentinel { sentinels, asked, master: master.to_owned(), nodes })
}

fn cluster(rest: &str, secure: bool, tls: &TlsFiles) -> Result<Topology, StoreOpenError> {
    let Authority { user, hosts, path } = Authority::parse(rest)?;
    if !matches!(path, "" | "0") {
        return Err(wrong("a Redis Cluster has one database: leave the number out of store.url"));
    }
    let seeds = addresses(hosts, NODE_PORT)?;
    let nodes = tls.settings(secure, user, &seeds[0], "0")?;
    Ok(Topology::Cluster { seeds, nodes })
}

/// The parts of an address that may name several hosts.
struct Authority<'a> {
    user: &'a str,
    hosts: &'a str,
    path: &'a str,
}

impl Authority<'_> {
    fn parse(rest: &str) -> Result<Authority<'_>, StoreOpenError> {
        if rest.contains(['?', '#']) {
            return Err(wrong("store.url of several nodes takes no options behind ? or #"));
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        Ok(Authority { user, hosts, path: path.trim_end_matches('/') })
    }
}

fn addresses(hosts: &str, default_port: u16) -> Result<Vec<NodeAddress>, StoreOpenError> {
    let address = |host: &str| {
        // A port stands behind the last colon, unless that is inside of the brackets of an IPv6 address.
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        let url = if has_port { format!("redis://{host}") } else { format!("redis://{host}:{default_port}") };
        address_of(&url.into_connection_info().map_err(refused)?)
    };
    hosts.split(',').map(|host| address(host.trim())).collect()
}

fn address_of(info: &ConnectionInfo) -> Result<NodeAddress, StoreOpenError> {
    match info.addr() {
        ConnectionAddr::Tcp(host, port) => Ok(NodeAddress { host: host.clone(), port: *port }),
        ConnectionAddr::TcpTls { host, port, .. } => Ok(NodeAddress { host: host.clone(), port: *port }),
        ConnectionAddr::Unix(_) | _ => Err(StoreOpenError::Address),
    }
}

/// The certificates named in the settings; `None` where the system's are used.
struct TlsFiles(Option<TlsCertificates>);

impl TlsFiles {
    fn read(config: &Config) -> Result<TlsFiles, StoreOpenError> {
        let read = |path: &Path| match path.as_os_str().is_empty() {
            true => Ok(None),
            false => std::fs::read(path).map(Some).map_err(|error| StoreOpenError::TlsFile(error.into())),
        };
        let root_cert = read(&config.tls_ca_file)?;
        let client_tls = match (read(&config.tls_cert_file)?, read(&config.tls_key_file)?) {
            (Some(client_cert), Some(client_key)) => Some(ClientTlsConfig { client_cert, client_key }),
            (None, None) => None,
            (_, _) => return Err(wrong("store.tls_cert_file and store.tls_key_file go together")),
        };
        let any = root_cert.is_some() || client_tls.is_some();
        Ok(TlsFiles(any.then_some(TlsCertificates { client_tls, root_cert })))
    }

    fn any(&self) -> bool {
        self.0.is_some()
    }

    fn settings(
        &self,
        secure: bool,
        user: &str,
        first: &NodeAddress,
        database: &str,
    ) -> Result<NodeSettings, StoreOpenError> {
        let (scheme, at) = (if secure { "rediss" } else { "redis" }, if user.is_empty() { "" } else { "@" });
        let info = format!("{scheme}://{user}{at}{first}/{database}").into_connection_info().map_err(refused)?;
        self.apply(info)
    }

    fn apply(&self, info: ConnectionInfo) -> Result<NodeSettings, StoreOpenError> {
        let (Some(files), ConnectionAddr::TcpTls { .. }) = (&self.0, info.addr()) else {
            return Ok(NodeSettings(Arc::new(info)));
        };
        let client =
            Client::build_with_tls(info, files.clone()).map_err(|error| StoreOpenError::TlsFile(error.into()))?;
        Ok(NodeSettings(Arc::new(client.get_connection_info().clone())))
    }
}

impl SentinelTls {
    fn applies(self, nodes: bool) -> bool {
        match self {
            SentinelTls::Same => nodes,
            SentinelTls::On => true,
            SentinelTls::Off => false,
        }
    }
}

fn refused(error: RedisError) -> StoreOpenError {
    StoreOpenError::RedisAddress(error.into())
}

fn wrong(what: &'static str) -> StoreOpenError {
    StoreOpenError::Topology(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(addresses: &[NodeAddress]) -> Vec<String> {
        addresses.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_address_names_its_topology_its_nodes_and_who_asks() {
        let Topology::Single { address, nodes } = Topology::of(&Config::at("rediss://robot:p%40ss@h:7/3")).unwrap()
        else {
            panic!("one node")
        };
        assert_eq!(address.to_string(), "h:7");
        assert_eq!((nodes.0.redis_settings().username(), nodes.0.redis_settings().db()), (Some("robot"), 3));
        let config =
            Config { sentinel_password: "s".into(), ..Config::at("redis+sentinel://u:p@a:1,b,[::1]:3/my-db/2") };
        let Topology::Sentinel { sentinels, asked, master, nodes } = Topology::of(&config).unwrap() else {
            panic!("sentinels")
        };
        assert_eq!(names(&sentinels), ["a:1", "b:26379", "[::1]:3"]);
        assert_eq!((master.as_str(), nodes.0.redis_settings().db()), ("my-db", 2));
        assert_eq!(nodes.0.redis_settings().password(), Some("p"));
        assert_eq!((asked.0.redis_settings().username(), asked.0.redis_settings().password()), (None, Some("s")));
        let Topology::Cluster { seeds, nodes } = Topology::of(&Config::at("rediss+cluster://:p@a,b:2")).unwrap() else {
            panic!("a cluster")
        };
        assert_eq!(names(&seeds), ["a:6379", "b:2"]);
        assert!(matches!(nodes.0.addr(), ConnectionAddr::TcpTls { .. }));
        assert_eq!(nodes.0.redis_settings().password(), Some("p"));
    }

    #[test]
    fn sentinels_may_be_reached_otherwise_than_the_nodes() {
        let config = Config { sentinel_tls: SentinelTls::Off, ..Config::at("rediss+sentinel://a/m") };
        let Topology::Sentinel { asked, nodes, .. } = Topology::of(&config).unwrap() else { panic!("sentinels") };
        assert!(matches!(asked.0.addr(), ConnectionAddr::Tcp(..)));
        assert!(matches!(nodes.0.addr(), ConnectionAddr::TcpTls { .. }));
    }

    #[test]
    fn combinations_that_make_no_sense_are_refused_with_what_to_do() {
        let refusal = |config: Config| match Topology::of(&config) {
            Err(StoreOpenError::Topology(what)) => what,
            Err(other) => panic!("{}: {other}", config.url),
            Ok(_) => panic!("{} is taken", config.url),
        };
        for (url, says) in [
            ("redis+sentinel://a,b", "names no master"),
            ("redis+sentinel://a,b/", "names no master"),
            ("redis+sentinel://a/m m", "names no master"),
            ("redis+cluster://a/3", "one database"),
            ("redis+cluster://a?protocol=resp3", "no options"),
            ("redis://a,b", "several nodes"),
        ] {
            let told = refusal(Config::at(url));
            assert!(told.contains(says), "{url}: {told}");
        }
        let lonely = Config { sentinel_password: "s".into(), ..Config::at("redis://a") };
        assert!(refusal(lonely).contains("redis+sentinel"));
        let nameless = Config { sentinel_user: "s".into(), ..Config::at("redis+sentinel://a/m") };
        assert!(refusal(nameless).contains("needs store.sentinel_password"));
        for url in ["redis+cluster://", "redis+cluster://a,,b", "redis+sentinel://a:x/m", "redis+cluster://0.0.0.0"] {
            assert!(matches!(Topology::of(&Config::at(url)), Err(StoreOpenError::RedisAddress(_))), "{url}");
        }
        assert!(matches!(Topology::of(&Config::at("redis+ring://a")), Err(StoreOpenError::Address)));
    }

    #[test]
    fn certificates_need_tls_and_go_together() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pem");
        std::fs::write(&file, "none").unwrap();
        let with = |url: &str| Config { tls_ca_file: file.clone(), ..Config::at(url) };
        assert!(matches!(Topology::of(&with("redis://a")), Err(StoreOpenError::Topology(_))));
        let half = Config { tls_cert_file: file.clone(), ..Config::at("rediss://a") };
        assert!(matches!(Topology::of(&half), Err(StoreOpenError::Topology(_))));
        let absent = Config { tls_ca_file: folder.path().join("absent"), ..Config::at("rediss://a") };
        assert!(matches!(Topology::of(&absent), Err(StoreOpenError::TlsFile(_))));
    }

    #[test]
    fn a_node_that_names_no_host_means_itself() {
        let parse = |text| NodeAddress::parse(text, "here").map(|address| address.to_string());
        assert_eq!(parse(":7001").as_deref(), Some("here:7001"));
        assert_eq!(parse("::1:7001").as_deref(), Some("[::1]:7001"));
        assert_eq!(parse("[::1]:7001").as_deref(), Some("[::1]:7001"));
        assert_eq!((parse("h"), parse("h:0"), parse("h:x")), (None, None, None));
    }
}
