//! TLS, our own certificate and a user with a password, in every topology.

use crate::bench::{config, session_id, tenant};
use std::time::Duration;
use store::{
    Commit, Committed, Config, HealthFinding, RecordKey, RecordVersion, SentinelTls, Store, StoreOpenError, Topic,
    WakeUp,
};
use testkit::certificates::Certificates;
use testkit::redis::RedisServer;
use testkit::redis_topology::{ClusterSet, SentinelSet};

/// Settings by which the nodes are reached, and the user they know.
fn secure(url: &str, certificates: &Certificates) -> Config {
    let url = url.replace("redis", "rediss").replace("://", "://robot:p%40ss@");
    Config {
        deadline: Duration::from_secs(5),
        tls_ca_file: certificates.path("ca.pem"),
        tls_cert_file: certificates.path("cert.pem"),
        tls_key_file: certificates.path("key.pem"),
        ..config(url)
    }
}

async fn works(config: &Config) {
    let store = Store::open(config).await.unwrap();
    assert!(store.health().await.ready(), "{:?}", store.health().await);
    // Of more than one shard, where there are any.
    for name in ["acme", "bolt", "cord", "dune"] {
        let shelf = store.of(&tenant(name));
        let mut watch = shelf.watch();
        assert_eq!(watch.next().await, WakeUp::Resync);
        let write = Commit::write(RecordKey::session(session_id(1)), RecordVersion::NONE, b"a".to_vec());
        let commit = Commit { wake: Some(Topic::Catalog), ..write };
        assert!(matches!(shelf.commit(commit).await.unwrap(), Committed::Done(..)));
        assert_eq!(watch.next().await, WakeUp::Topic(Topic::Catalog));
    }
}

async fn is_kept_out(config: &Config) {
    let store = Store::open(config).await.unwrap();
    assert_eq!(store.health().await.reasons, [HealthFinding::StoreUnreachable]);
}

#[tokio::test]
async fn one_node_is_reached_by_tls_as_a_user_of_its_own() {
    let certificates = Certificates::make();
    let server = RedisServer::start_secure(&certificates);
    let config = secure(&format!("redis://127.0.0.1:{}", server.announced_port()), &certificates);
    works(&config).await;
    is_kept_out(&Config { url: config.url.replace("p%40ss", "wrong"), ..config.clone() }).await;
    is_kept_out(&Config { tls_ca_file: "".into(), ..config.clone() }).await;
    is_kept_out(&Config { tls_cert_file: "".into(), tls_key_file: "".into(), ..config.clone() }).await;
    let odd = Config { tls_ca_file: certificates.path("absent"), ..config };
    assert!(matches!(Store::open(&odd).await, Err(StoreOpenError::TlsFile(_))));
}

#[tokio::test]
async fn a_cluster_is_reached_by_tls_as_a_user_of_its_own() {
    let certificates = Certificates::make();
    let set = ClusterSet::secure(&certificates);
    let config = secure(&set.url(), &certificates);
    works(&config).await;
    is_kept_out(&Config { url: config.url.replace("p%40ss", "wrong"), ..config.clone() }).await;
}

#[tokio::test]
async fn nodes_are_reached_by_tls_and_their_sentinels_without_by_another_password() {
    let certificates = Certificates::make();
    let set = SentinelSet::start_secure(&certificates, "requirepass s3cret\nsentinel sentinel-pass s3cret");
    let config = secure(&set.url(), &certificates);
    let config = Config { sentinel_password: "s3cret".into(), sentinel_tls: SentinelTls::Off, ..config };
    works(&config).await;
    is_kept_out(&Config { sentinel_tls: SentinelTls::Same, ..config.clone() }).await;
    is_kept_out(&Config { sentinel_password: "wrong".into(), ..config.clone() }).await;
}
