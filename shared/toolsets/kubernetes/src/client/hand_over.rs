//! A kubeconfig for one other program: helm. It has the identity our own clients have, and nothing of the source besides.
//!
//! Its text goes into a file and nowhere else. Certificates and tokens are inside, so that whoever reads the file needs no
//! other; a token that is renewed on disk is good for longer than the one call the file is made for.

use crate::client::cluster::Cluster;
use crate::client::connection::NoClusterAnswer;
use crate::client::fault;
use crate::client::kubeconfig::{self, BadSource};
use crate::client::reach::{ClusterReach, NotReached};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::{Code, Failure};
use egress::Url;
use kube::config::AuthInfo;
use serde_json::{Map, Value, json};
use std::path::Path;
use tokio::io::AsyncWriteExt as _;

impl Cluster<'_> {
    /// Writes a kubeconfig for this cluster, as this identity, to a new file that only we can read.
    pub async fn hand_over(&self, file: &Path) -> Result<(), Failure> {
        let text = self.written_out().await.map_err(|bad| fault::of_read(&NoClusterAnswer::Credential(bad)))?;
        let written = async {
            let mut file = tokio::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).await?;
            file.write_all(text.as_bytes()).await?;
            file.flush().await
        };
        written.await.map_err(|error| {
            tracing::warn!(%error, "a kubeconfig cannot be written");
            Failure::new(Code::Internal, "the credential cannot be handed to helm")
        })
    }

    async fn written_out(&self) -> Result<String, BadSource> {
        let loaded = kubeconfig::load(self.config()).await?;
        let mut config = loaded.config;
        let mut user = identity(&config.auth_info).await?;
        if let Some(reach) = &loaded.reach {
            within_reach(&mut config, reach).await?;
        }
        let mut server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        if config.cluster_url.scheme_str() == Some("http")
            && self.simulated()
            && let Some(Value::String(token)) = user.remove("token")
        {
            // Go's client sends no token over plain HTTP; the sandbox, which is on this machine, takes it in the path.
            server = format!("{server}/{token}");
        }
        let mut cluster = Map::from_iter([("server".to_owned(), json!(server))]);
        if let Some(authorities) = &config.root_cert {
            let bundle: String = authorities.iter().map(|der| pem(der)).collect();
            cluster.insert("certificate-authority-data".to_owned(), json!(STANDARD.encode(bundle)));
        }
        if let Some(name) = &config.tls_server_name {
            cluster.insert("tls-server-name".to_owned(), json!(name));
        }
        // JSON is YAML, so this is a kubeconfig.
        Ok(json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "one", "cluster": cluster }],
            "users": [{ "name": "one", "user": user }],
            "contexts": [{ "name": "one", "context": {
                "cluster": "one", "user": "one", "namespace": config.default_namespace,
            } }],
            "current-context": "one",
        })
        .to_string())
    }
}

/// Judges what the server's name resolves to, for helm does not. If a tenant wrote the kubeconfig, an address takes the
/// place of the name, since helm would resolve it once more and might get another answer; the certificate must still be
/// the name's. The operator's keep their names, by which proxies before a cluster tell their requests apart.
async fn within_reach(config: &mut kube::Config, reach: &ClusterReach) -> Result<(), BadSource> {
    let mut url = Url::parse(&config.cluster_url.to_string()).map_err(|_| BadSource::NotAKubeconfig)?;
    let Some(name) = url.domain().map(str::to_owned) else { return Ok(()) };
    let addresses = reach.resolve(&name).await.map_err(|error| {
        let refused = error.get_ref().and_then(|inner| inner.downcast_ref::<NotReached>());
        refused.map_or(BadSource::Unresolved, |refused| BadSource::Refused(refused.0))
    })?;
    let address = addresses.first().ok_or(BadSource::Unresolved)?;
    if reach.is_of_tenant() {
        url.set_ip_host(*address).map_err(|()| BadSource::NotAKubeconfig)?;
        config.cluster_url = url.as_str().parse().map_err(|_| BadSource::NotAKubeconfig)?;
        config.tls_server_name.get_or_insert(name);
    }
    Ok(())
}

/// Who we are there, with the contents of files instead of their names.
async fn identity(auth: &AuthInfo) -> Result<Map<String, Value>, BadSource> {
    let Ok(Value::Object(mut user)) = serde_json::to_value(auth) else { return Err(BadSource::NotAKubeconfig) };
    user.retain(|_, value| !value.is_null());
    if let Some(Value::String(file)) = user.remove("tokenFile") {
        let token = String::from_utf8(read(&file).await?).map_err(|_| BadSource::Unreadable)?;
        user.insert("token".to_owned(), json!(token.trim()));
    }
    for (name, data) in [("client-certificate", "client-certificate-data"), ("client-key", "client-key-data")] {
        if let Some(Value::String(file)) = user.remove(name) {
            user.insert(data.to_owned(), json!(STANDARD.encode(read(&file).await?)));
        }
    }
    Ok(user)
}

async fn read(file: &str) -> Result<Vec<u8>, BadSource> {
    tokio::fs::read(file).await.map_err(|_| BadSource::Unreadable)
}

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = (0..text.len()).step_by(64).map(|at| &text[at..text.len().min(at + 64)]).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use egress::AddressGuard;

    fn config(server: &str) -> kube::Config {
        kube::Config::new(server.parse().expect("an address"))
    }

    /// Server and name of the certificate, as helm gets them.
    async fn handed(server: &str, reach: &ClusterReach) -> Result<(String, Option<String>), BadSource> {
        let mut config = config(server);
        within_reach(&mut config, reach).await?;
        Ok((config.cluster_url.to_string(), config.tls_server_name))
    }

    #[tokio::test]
    async fn helm_is_handed_the_address_that_was_judged_and_the_name_only_for_the_certificate() {
        let guard = AddressGuard { private: true, ports: vec![443] };
        let tenant = ClusterReach::of_tenant(&guard, true);
        let (server, name) = handed("https://localhost:6443/prefix", &tenant).await.expect("it is within reach");
        let here = ["https://127.0.0.1:6443/prefix", "https://[::1]:6443/prefix"];
        assert!(here.contains(&server.as_str()), "{server}");
        assert_eq!(name.as_deref(), Some("localhost"));

        let mut named = config("https://localhost:6443/");
        named.tls_server_name = Some("api.example".to_owned());
        within_reach(&mut named, &tenant).await.expect("it is within reach");
        assert_eq!(named.tls_server_name.as_deref(), Some("api.example"), "what the kubeconfig says counts");

        // An address is what it is, and was judged when the kubeconfig was read.
        let address = "https://192.0.2.1:6443/";
        assert_eq!(handed(address, &tenant).await.expect("an address"), (address.to_owned(), None));
    }

    #[tokio::test]
    async fn helm_is_handed_no_name_that_leads_to_what_may_not_be_dialled() {
        let guard = AddressGuard { private: true, ports: vec![443] };
        for reach in [ClusterReach::of_tenant(&guard, false), ClusterReach::of_operator(false)] {
            let refused = handed("https://localhost:6443/", &reach).await;
            assert!(matches!(refused, Err(BadSource::Refused(_))), "{refused:?}");
        }
        // The operator's keep their names: proxies before a cluster tell requests apart by them.
        let kept = handed("https://localhost:6443/", &ClusterReach::of_operator(true)).await;
        assert_eq!(kept.expect("it is within reach"), ("https://localhost:6443/".to_owned(), None));
    }
}
