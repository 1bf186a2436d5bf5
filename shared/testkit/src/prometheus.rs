//! A real Prometheus of one's own: reads the metrics of the replicas each second, and judges the rules that are shipped.
//!
//! The rules wait for minutes and look back for hours. A test shortens both by a table of what stands for what, and each
//! entry of the table must occur, so a rule that changes is noticed here.

use crate::http::Request;
use crate::patience::in_time;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Names the program. Without it tests that need a Prometheus end at once; the ring `monitoring` sets it.
const PROGRAM: &str = "QUARTERMASTER_TEST_PROMETHEUS";
/// How long a fault may take to become an alert.
const PATIENCE: Duration = Duration::from_secs(90);

/// A running Prometheus.
pub struct Prometheus {
    address: SocketAddr,
    process: Child,
    folder: TempDir,
}

impl Prometheus {
    /// The program, if the machine has one.
    pub fn program() -> Option<PathBuf> {
        std::env::var_os(PROGRAM).filter(|path| !path.is_empty()).map(PathBuf::from)
    }

    /// Starts it on the metrics of these addresses, with these rules.
    #[expect(clippy::disallowed_methods, reason = "a test's own process, never part of the service")]
    pub async fn start(program: &Path, targets: &[SocketAddr], rules: &str) -> Prometheus {
        let folder = tempfile::tempdir().expect("a temporary folder should be made");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port should be free");
        let address = listener.local_addr().expect("a bound port should be known");
        drop(listener);
        let targets: Vec<String> = targets.iter().map(|target| format!("'{target}'")).collect();
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [rules.yaml]\nscrape_configs:\n\
             - job_name: quartermaster\n  static_configs: [{{targets: [{}]}}]\n",
            targets.join(", ")
        );
        std::fs::write(folder.path().join("prometheus.yaml"), config).expect("the settings should be written");
        std::fs::write(folder.path().join("rules.yaml"), rules).expect("the rules should be written");
        let at = |name: &str| folder.path().join(name).display().to_string();
        let process = Command::new(program)
            .arg(format!("--config.file={}", at("prometheus.yaml")))
            .arg(format!("--storage.tsdb.path={}", at("data")))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(at("log")).expect("a log should be made"))
            .spawn()
            .expect("Prometheus should start");
        let prometheus = Prometheus { address, process, folder };
        prometheus.until("Prometheus to be ready", async || prometheus.get("/-/ready").await.map(|_| ())).await;
        prometheus
    }

    /// The series that a query gives now.
    pub async fn query(&self, query: &str) -> Result<Vec<Value>, String> {
        let path = format!("/api/v1/query?query={}", escaped(query));
        let answer = self.get(&path).await.ok_or("Prometheus does not answer")?;
        match answer["status"].as_str() {
            Some("success") => Ok(answer["data"]["result"].as_array().cloned().unwrap_or_default()),
            _ => Err(answer["error"].to_string()),
        }
    }

    /// The alerts that fire now, and what is wrong with a rule if something is.
    pub async fn firing(&self) -> BTreeSet<String> {
        let Some(answer) = self.get("/api/v1/rules").await else { return BTreeSet::new() };
        let mut firing = BTreeSet::new();
        let groups = answer["data"]["groups"].as_array().into_iter().flatten();
        for rule in groups.flat_map(|group| group["rules"].as_array().into_iter().flatten()) {
            let name = rule["name"].as_str().unwrap_or_default();
            assert_ne!(rule["health"], "err", "the rule {name} cannot be evaluated: {}", rule["lastError"]);
            if rule["state"] == "firing" {
                firing.insert(name.to_owned());
            }
        }
        firing
    }

    /// Waits until an alert fires.
    pub async fn fires(&self, alert: &str) {
        self.until(alert, async || self.firing().await.contains(alert).then_some(())).await;
    }

    async fn until<T>(&self, what: &str, look: impl AsyncFn() -> Option<T>) -> T {
        let looking = async {
            loop {
                if let Some(found) = look().await {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        let log = || std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        match tokio::time::timeout(PATIENCE, looking).await {
            Ok(found) => found,
            Err(_) => panic!("waited {} s for {what}; Prometheus said:\n{}", PATIENCE.as_secs(), log()),
        }
    }

    async fn get(&self, path: &str) -> Option<Value> {
        let answer = in_time("Prometheus", Request::new("GET", path).try_send(self.address)).await?;
        // 400 says what is wrong with a query; 503 that it is not up yet.
        (answer.status < 500).then(|| serde_json::from_slice(&answer.body).unwrap_or(Value::Null))
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // Both fail only if it has ended by itself, which is what we want.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// The shipped rules with shorter times: each pair must stand in them.
pub fn hurried(rules: &str, shorter: &[(&str, &str)]) -> String {
    let mut hurried = rules.to_owned();
    for (from, to) in shorter {
        assert!(rules.contains(from), "no rule says `{from}` any more");
        hurried = hurried.replace(from, to);
    }
    hurried
}

/// Everything but letters and digits as `%` and two hexadecimal digits.
fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
