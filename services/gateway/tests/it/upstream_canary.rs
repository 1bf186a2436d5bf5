//! Secrets planted wherever a secret can be, then a full run in which every target echoes what it was sent: none of them
//! is found in a log, a span, a metric, the audit log as it is opened, what each kind of sink was sent of it, a result, an
//! error, the store or a command line.

use crate::here::processes;
use crate::runs_desk::{approve, ended, pending};
use crate::upstream_yard::{Shelf, admin, draw, ours, put_secret};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use testkit::upstream::{Era, Harm, McpServer};
use testkit::{Collector, Legacy, Plan, Process, Request, World, until};

/// The places a secret can come from, and what lies there.
const CANARIES: [(&str, &str); 5] = [
    ("file", "canary-in-a-file-7Qm2VtX9cK4h"),
    ("environment", "canary-in-the-environment-8rLwEa"),
    ("store", "canary-sealed-in-the-store-T1bN8r"),
    ("kubeconfig", "canary-in-a-kubeconfig-2VtX9cK4hT"),
    ("jenkins", "canary-of-a-jenkins-user-c4hT1bN8"),
];

fn canary(place: &str) -> &'static str {
    CANARIES.iter().find(|(known, _)| *known == place).map(|(_, text)| *text).expect("a place that is planted")
}

/// Every way in which a canary would be recognised: as it is, percent-encoded, and in base64 wherever it begins.
pub(crate) fn spellings(canary: &str) -> Vec<String> {
    let percent: String = canary.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let mut all = vec![canary.to_owned(), percent.clone(), percent.to_lowercase()];
    for before in ["", "x", "xx"] {
        let packed = STANDARD.encode(format!("{before}{canary}"));
        // The letters that hold nothing but the canary.
        let inside = &packed[before.len().div_ceil(3) * 4..packed.len() - 4];
        all.extend([inside.to_owned(), inside.replace('+', "-").replace('/', "_")]);
    }
    all
}

/// What of all canaries stands in some bytes.
fn found(bytes: &[u8]) -> Vec<String> {
    let holds = |text: &String| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    CANARIES.iter().flat_map(|(_, canary)| spellings(canary)).filter(holds).collect()
}

#[test]
fn a_canary_is_found_in_every_spelling() {
    let canary = canary("file");
    for before in ["", "robot:", "a", "ab", "abc"] {
        let text = STANDARD.encode(format!("{before}{canary}"));
        assert!(!found(text.as_bytes()).is_empty(), "{before}");
    }
    assert!(!found(format!("x{canary}y").as_bytes()).is_empty());
    assert_eq!(found(b"nothing of the kind"), Vec::<String>::new());
}

/// The targets, all of which answer with what they were sent.
struct Targets {
    servers: Vec<(&'static str, McpServer)>,
    jenkins: McpServer,
}

impl Targets {
    async fn start() -> Targets {
        let mut servers = Vec::new();
        for (place, era) in [("file", Era::Legacy), ("environment", Era::Modern), ("store", Era::Both)] {
            let server = McpServer::start(era).await;
            server.require("Authorization", &format!("Bearer {}", canary(place)));
            servers.push((place, server));
        }
        let jenkins = McpServer::start(Era::Both).await;
        for on in ["GET", "POST"] {
            jenkins.plant(on, Harm::EchoInStatus);
        }
        Targets { servers, jenkins }
    }

    fn shelf(&self) -> Shelf {
        let entry = "deadline: 2s\ntrust_annotations: true\nparams: { key: { secret: true } }\n\
                     auth: { secret: \"{{ params.key }}\" }";
        self.servers.iter().fold(Shelf::new(), |shelf, (place, server)| shelf.of(place, server, entry))
    }

    fn file(&self) -> String {
        let servers: String = (self.servers.iter())
            .map(|(place, _)| format!("- {{ use: {place}, params: {{ key: \"{{{{ params.{place} }}}}\" }} }}\n"))
            .collect();
        format!(
            "limits: {{ calls_per_minute: 1000000 }}\ndefault_toolsets: [k8s, jenkins]\n\
             clusters: [{{ name: main, kubeconfig: {{ secret: kubeconfig }} }}]\n\
             toolsets:\n  jenkins: {{ url: \"http://{}\", user: robot, token: {{ secret: jenkins }} }}\n\
             params: {{ file: {{ secret: true }}, environment: {{ secret: true }}, store: {{ secret: true }} }}\n\
             servers:\n{servers}",
            self.jenkins.address()
        )
    }
}

/// A cluster that nobody serves, and a credential for it.
fn kubeconfig() -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{{ name: a, context: {{ cluster: a, user: a }} }}]\n\
         clusters: [{{ name: a, cluster: {{ server: \"https://127.0.0.1:9\" }} }}]\n\
         users: [{{ name: a, user: {{ token: {} }} }}]\n",
        canary("kubeconfig")
    )
}

/// Calls everything with every harm, and gives all that came back.
async fn run(world: &World<Process>, targets: &Targets) -> String {
    let acme = world.tenant("acme");
    let (client, ana) = (acme.agent().legacy().await, acme.approver());
    let mut told = String::new();
    for (place, server) in &targets.servers {
        draw(&client, &format!("{place}:write")).await;
        for harm in [None, Some(Harm::EchoInError), Some(Harm::EchoInResult), Some(Harm::EchoInStatus)] {
            server.cure();
            if let Some(harm) = harm {
                server.plant("tools/call", harm);
            }
            told.push_str(&client.call(&ours(place, "whoami"), json!({})).await.answer.text());
            let run = pending(&client.call(&ours(place, "keep"), json!({ "text": "hi" })).await);
            approve(&ana, &run).await;
            told.push_str(&ended(&ana, &run).await.to_string());
            told.push_str(&client.call("await_run", json!({ "run_id": run, "wait_ms": 0 })).await.answer.text());
        }
        server.cure();
        server.plant("tools/list", Harm::EchoInError);
        server.announce();
    }
    told.push_str(&others(&client).await);
    let paul = admin(&acme.agent());
    for path in ["/v1/tenant/servers", "/v1/tenant/secrets", "/v1/tenant/config", "/v1/catalog"] {
        told.push_str(&paul.send(&paul.request("GET", path)).await.text());
    }
    told
}

/// The other targets that hold a secret: a cluster and a Jenkins.
async fn others(client: &Legacy) -> String {
    let mut told = String::new();
    let calls = [
        ("k8s_get", json!({ "kind": "Pod" })),
        ("jenkins_whoami", json!({})),
        ("jenkins_jobs", json!({})),
        ("jenkins_build", json!({ "job": "a" })),
    ];
    for (tool, arguments) in calls {
        told.push_str(&client.call(tool, arguments).await.answer.text());
    }
    told
}

pub(crate) async fn audit_log(world: &World<Process>) -> String {
    let auditor = world.tenant("acme").approver().scoped("audit:read");
    let (mut told, mut path) = (String::new(), "/v1/audit?limit=1000".to_owned());
    loop {
        let page = auditor.send(&auditor.request("GET", &path)).await;
        assert_eq!(page.status, 200, "{}", page.text());
        told.push_str(&page.text());
        match page.json()["next_cursor"].as_str() {
            Some(cursor) => path = format!("/v1/audit?limit=1000&after={cursor}"),
            None => return told,
        }
    }
}

/// What every process of this machine says it was started with, and what of it can be read.
fn command_lines() -> Vec<u8> {
    let processes = std::fs::read_dir("/proc").expect("the list of processes").flatten();
    processes.filter_map(|each| std::fs::read(each.path().join("cmdline")).ok()).flatten().collect()
}

/// Where the audit log is exported to, with its contents opened: a sink of each kind.
struct Sinks {
    folder: tempfile::TempDir,
    takers: Vec<(&'static str, Collector)>,
}

impl Sinks {
    async fn start() -> Sinks {
        let folder = tempfile::tempdir().expect("a folder for the sinks");
        for key in ["key.id", "key.secret"] {
            std::fs::write(folder.path().join(key), "not-a-real-key").expect("a key of the bucket");
        }
        let mut takers = Vec::new();
        for kind in ["http", "otlp", "s3"] {
            takers.push((kind, Collector::start().await));
        }
        Sinks { folder, takers }
    }

    fn setting(&self) -> String {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let opened = r#"every = "1s", contents = "opened""#;
        let mut all = vec![format!(r#"{{ name = "disk", kind = "folder", path = "{}", {opened} }}"#, path("audit"))];
        for (kind, taker) in &self.takers {
            let more = match *kind {
                "s3" => format!(
                    r#"bucket = "audit-1", region = "eu-1", access_key_file = "{}", secret_key_file = "{}", "#,
                    path("key.id"),
                    path("key.secret")
                ),
                _ => String::new(),
            };
            all.push(format!(r#"{{ name = "{kind}", kind = "{kind}", url = "{}/x", {more}{opened} }}"#, taker.url()));
        }
        format!("[{}]", all.join(", "))
    }

    /// What a sink has got so far.
    fn taken(&self) -> Vec<(&'static str, Vec<u8>)> {
        let (mut files, mut folders) = (Vec::new(), vec![self.folder.path().join("audit")]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
                match entry.path() {
                    path if path.is_dir() => folders.push(path),
                    path => files.extend(std::fs::read(path).unwrap_or_default()),
                }
            }
        }
        let takers = self.takers.iter().map(|(kind, taker)| (*kind, taker.taken()));
        std::iter::once(("folder", files)).chain(takers).collect()
    }

    /// Waits until every sink has this text.
    async fn have(&self, text: &str) {
        until("every sink to have the audit log", async || {
            let holds = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
            self.taken().iter().all(|(_, bytes)| holds(bytes)).then_some(())
        })
        .await;
    }
}

/// The metrics of a process, as Prometheus reads them.
async fn metrics(process: &Process) -> String {
    let address = until("the metrics", async || {
        let log = process.log();
        let line = log.lines().find(|line| line.contains("metrics can be read"))?;
        let line: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
        Some(line["address"].as_str()?.parse().expect("an address"))
    })
    .await;
    Request::new("GET", "/metrics").send(address).await.text()
}

/// A full run in a world that holds its state as `stored` reads it back.
async fn no_planted_secret_is_found(plan: Plan, stored: impl FnOnce(&mut World<Process>) -> Vec<u8>) {
    let (targets, collector, sinks) = (Targets::start().await, Collector::start().await, Sinks::start().await);
    let shelf = targets.shelf();
    let plan = (shelf.under(plan))
        .setting("QM_UPSTREAMS__PRIVATE", "true")
        .setting("QM_UPSTREAMS__PORTS", &format!("[{}]", targets.jenkins.port()))
        .setting("QM_TELEMETRY__OTLP_ENDPOINT", &collector.url())
        .setting("QM_TELEMETRY__SAMPLE_RATIO", "1.0")
        .setting("QM_TELEMETRY__LOG", "debug")
        .setting("QM_TELEMETRY__METRICS_LISTEN", "127.0.0.1:0")
        .setting("QM_AUDIT__SINKS", &sinks.setting())
        .setting("QUARTERMASTER_SECRET__ACME__ENVIRONMENT", canary("environment"))
        .tenant("acme", &targets.file())
        .secret("acme", "file", canary("file"))
        .secret("acme", "kubeconfig", &kubeconfig())
        .secret("acme", "jenkins", canary("jenkins"));
    let mut world = plan.start(processes()).await;
    let paul = admin(&world.tenant("acme").agent());
    let put = put_secret(&paul, "store", canary("store")).await;
    assert!((200..300).contains(&put.status), "{}", put.text());
    assert_eq!(found(put.text().as_bytes()), Vec::<String>::new(), "a secret is only ever written");

    let told = run(&world, &targets).await;
    for (place, server) in &targets.servers {
        let echoed = server.requests().iter().any(|seen| seen.text().contains(canary(place)));
        assert!(echoed, "the secret of the {place} was really sent, or nothing is proven");
    }
    let sent = targets.jenkins.requests().iter().any(|seen| !found(seen.text().as_bytes()).is_empty());
    assert!(sent, "and so was the one of Jenkins");

    let audit_log = audit_log(&world).await;
    assert!(audit_log.contains(r#""contents":{"text":"{"#), "the contents are opened, or nothing is proven");
    let last = world.tenant("acme").agent().legacy().await;
    last.load("memory").await;
    last.call("memory_search", json!({ "query": LAST_WORDS })).await.ok();
    sinks.have(LAST_WORDS).await;
    let process = world.part(0).clone();
    let (lines, metrics) = (command_lines(), metrics(&process).await);
    let stored_live = stored(&mut world);
    let stored_live = if stored_live.is_empty() {
        let folder = world.settings_file().parent().expect("the folder of the settings").to_owned();
        world.stop(0).await;
        std::fs::read(folder.join("state.redb")).expect("the store's file")
    } else {
        world.stop(0).await;
        stored_live
    };
    until("the spans", async || (!collector.taken().is_empty()).then_some(())).await;
    let mut places = vec![
        ("results and errors", told.into_bytes()),
        ("the log", process.log().into_bytes()),
        ("spans", collector.taken()),
        ("the audit log", audit_log.into_bytes()),
        ("the store", stored_live),
        ("command lines", lines),
        ("metrics", metrics.into_bytes()),
    ];
    places.extend(sinks.taken());
    for (place, bytes) in places {
        assert!(bytes.len() > 1_000, "there is something to search in {place}");
        assert_eq!(found(&bytes), Vec::<String>::new(), "in {place}");
    }
}

/// What the last call of a run asks for, so that it is known when everything was exported.
const LAST_WORDS: &str = "the end of the whole run";

#[tokio::test(flavor = "multi_thread")]
async fn se6_se7_no_planted_secret_is_found_anywhere_after_a_full_run() {
    // The file can only be read whole when nobody writes to it.
    no_planted_secret_is_found(Plan::file(), |_| Vec::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn se6_se7_no_planted_secret_is_found_in_redis_after_a_full_run() {
    no_planted_secret_is_found(Plan::redis(1), |world| {
        let redis = world.redis();
        let dump = redis.dump();
        assert!(String::from_utf8_lossy(&dump).contains(":{acme}:audit"), "streams are in it");
        // And everything that was ever written.
        [dump, redis.written()].concat()
    })
    .await;
}
