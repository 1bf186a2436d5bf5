//! A real cluster, by its API server: who it is, and pods to read.

use crate::http::KeptConnection;
use anyhow::{Context, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// How many pods are read: as many as a small team's namespace has.
pub(super) const PODS: usize = 40;
pub(super) const NAMESPACE: &str = "loadtests";
const PATIENCE: Duration = Duration::from_secs(90);

/// The API server of a testbed, with pods.
pub(super) struct RealCluster {
    pub(super) address: SocketAddr,
    pub(super) tls: TlsConnector,
    pub(super) token: String,
    pub(super) kubeconfig: PathBuf,
}

impl RealCluster {
    /// Reads the kubeconfig, and makes the pods if they are not there.
    pub(super) async fn fill(kubeconfig: &Path) -> anyhow::Result<RealCluster> {
        let text = std::fs::read_to_string(kubeconfig).context("the kubeconfig cannot be read")?;
        let config: Value = serde_json::from_str(&text).context("the kubeconfig of a testbed is JSON")?;
        let word = |pointer: &str| config.pointer(pointer).and_then(Value::as_str).with_context(|| pointer.to_owned());
        let server = word("/clusters/0/cluster/server")?;
        let address = server.trim_start_matches("https://").parse().context("the server is an address and a port")?;
        let authority = STANDARD.decode(word("/clusters/0/cluster/certificate-authority-data")?);
        let authority = CertificateDer::from_pem_slice(&authority.context("the authority is no base64")?);
        let mut roots = RootCertStore::empty();
        roots.add(authority.context("the authority is no certificate")?).context("the authority cannot be used")?;
        let tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let (tls, token) = (TlsConnector::from(Arc::new(tls)), word("/users/0/user/token")?.to_owned());
        let cluster = RealCluster { address, tls, token, kubeconfig: kubeconfig.to_owned() };
        cluster.make_pods().await?;
        Ok(cluster)
    }

    /// The bare list, as any client would ask for it.
    pub(super) fn list(&self) -> Vec<u8> {
        self.request("GET", &format!("/api/v1/namespaces/{NAMESPACE}/pods?limit=100"), None)
    }

    fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Vec<u8> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let (address, token, length) = (self.address, &self.token, body.len());
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Accept: application/json\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }

    async fn make_pods(&self) -> anyhow::Result<()> {
        let mut connection = KeptConnection::open_tls(self.address, &self.tls).await?;
        let labels = json!({ "app": "loadtests" });
        let container =
            json!({ "name": "app", "image": "registry.example/app:1", "env": [{ "name": "MODE", "value": "a" }] });
        let template = json!({ "metadata": { "labels": labels }, "spec": { "containers": [container] } });
        let spec = json!({ "replicas": PODS, "selector": { "matchLabels": labels }, "template": template });
        for (path, object) in [
            ("/api/v1/namespaces".to_owned(), json!({ "metadata": { "name": NAMESPACE } })),
            (
                format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments"),
                json!({ "metadata": { "name": "app" }, "spec": spec }),
            ),
        ] {
            let answer = connection.send(&self.request("POST", &path, Some(&object))).await?;
            let status = answer.status;
            ensure!([201, 409].contains(&status), "{path}: {status} {}", crate::load::start_of(answer.body));
        }
        let until = Instant::now() + PATIENCE;
        loop {
            let list: Value = serde_json::from_slice(connection.send(&self.list()).await?.body)?;
            let running = |pod: &&Value| pod["status"]["phase"] == "Running";
            let count = list["items"].as_array().map_or(0, |pods| pods.iter().filter(running).count());
            if count == PODS {
                return Ok(());
            }
            ensure!(Instant::now() < until, "{count} of {PODS} pods run after {} s", PATIENCE.as_secs());
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }
}
