//! A release from its first revision to its last, through the service and by the real helm: an agent asks, a person
//! sees what helm would do and decides. Two agents on two replicas, a helm that is killed, a host nobody allowed.
//!
//! The chart is made here and served on loopback. `QUARTERMASTER_TEST_HELM` names the binary (`deploy/testbed helm`
//! prints it). The cluster is a sandbox, or the real one that `QUARTERMASTER_TEST_KUBECONFIG` names.

#[path = "../../../../shared/toolsets/helm/tests/it/charts/server.rs"]
#[expect(dead_code, reason = "the tests of charts use more of it")]
pub(crate) mod server;

use crate::here::{World, in_process};
use crate::k8s_yard::file_of;
use crate::runs_desk::{PENDING, approve, pending, show};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::json::sha256_hex;
use sandbox::{Sandbox, Seed};
use serde_json::{Value, json};
use server::{Answer, Server};
use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use testkit::{Actor, Legacy, Plan, until};

/// What the chart's Secret holds, and nobody is ever shown.
const PASSWORD: &str = "canary-hunter2";
/// An image that is never there, so that what uses it never becomes ready.
const MISSING: &str = "registry.example/web:does-not-exist";

const VALUES: &str = "replicas: 1\nimage: registry.example/web:1.0\npassword: canary-hunter2\n";

const OBJECTS: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata: { name: {{ .Release.Name }}-web }
spec:
  replicas: {{ .Values.replicas }}
  selector: { matchLabels: { app: {{ .Release.Name }} } }
  template:
    metadata: { labels: { app: {{ .Release.Name }} } }
    spec: { containers: [{ name: web, image: {{ .Values.image | quote }} }] }
---
apiVersion: v1
kind: Secret
metadata: { name: {{ .Release.Name }}-auth }
stringData: { password: {{ .Values.password | quote }} }
"#;

const HOOK: &str = r#"apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-migrate
  annotations: { "helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-delete-policy": before-hook-creation }
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{ name: migrate, image: registry.example/tools:1, command: [echo, migrated] }]
"#;

/// Shows a Secret as the cluster holds it: how the test reads a record of helm's, which no tool of ours would show.
const PEEK: &str = r#"kind: ConfigMap
apiVersion: v1
metadata: { name: peek }
data: { record: {{ (lookup "v1" "Secret" .Release.Namespace .Values.record).data.release | quote }} }
"#;

fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|name| *name != OsString::new()).map(PathBuf::from)
}

/// The helm binary. Without one the test is left out, loudly; where everything must be tested that is a failure.
pub(crate) fn binary() -> Option<PathBuf> {
    let found = named("QUARTERMASTER_TEST_HELM");
    if found.is_none() {
        let told = "SKIPPED: QUARTERMASTER_TEST_HELM names no helm binary; see `deploy/testbed helm`";
        assert!(named("CI").is_none(), "{told}");
        eprintln!("{told}");
    }
    found
}

/// Runs a program of the test's own and gives what it prints.
#[expect(clippy::disallowed_methods, reason = "the test's own hand, never part of the service")]
fn run(program: &Path, words: &[&str], input: &[u8]) -> Vec<u8> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{program:?} {words:?}: {}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}

/// Writes a chart into a folder.
fn write_chart(folder: &Path, name: &str, templates: &[(&str, &str)], values: &str) -> String {
    let chart = folder.join(name);
    std::fs::create_dir_all(chart.join("templates")).unwrap();
    let head = format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\nappVersion: '7.0'\ndescription: A shop window\n");
    std::fs::write(chart.join("Chart.yaml"), head).unwrap();
    std::fs::write(chart.join("values.yaml"), values).unwrap();
    templates.iter().for_each(|(file, text)| std::fs::write(chart.join("templates").join(file), text).unwrap());
    chart.display().to_string()
}

/// A tenant with a cluster and a chart repository, an agent that asks and a person who decides.
struct Bench {
    helm: PathBuf,
    /// Where the service's helms work, and where the test keeps its charts.
    folder: TempDir,
    /// The sha256 of the archive that is served.
    digest: String,
    server: Server,
    namespace: String,
    agent: Legacy,
    ana: Actor,
    world: World,
    sandbox: Option<Sandbox>,
}

impl Bench {
    /// Nothing at all without a helm binary.
    async fn open(plan: fn() -> Plan) -> Option<Bench> {
        let (helm, folder, server) = (binary()?, TempDir::new().unwrap(), Server::start().await);
        let digest = publish(&helm, folder.path(), &server);
        let namespace = format!("helm-{:016x}", RandomState::new().hash_one(0));
        let (kubeconfig, sandbox) = match named("QUARTERMASTER_TEST_KUBECONFIG") {
            Some(file) => (std::fs::read_to_string(file).unwrap(), None),
            None => {
                let sandbox = Sandbox::start(Seed::empty()).await.unwrap();
                (sandbox.kubeconfig_for_go(), Some(sandbox))
            }
        };
        let plan = plan()
            .setting("QM_APPROVALS__SWEEP_EVERY", "50ms")
            .setting("QM_UPSTREAMS__PRIVATE", "true")
            .setting("QM_UPSTREAMS__PORTS", &format!("[{}]", server.port))
            .setting("QM_UPSTREAMS__CHART_HOSTS", "[\"127.0.0.1\"]")
            .setting("QM_UPSTREAMS__HELM", &helm.display().to_string())
            .setting("QM_UPSTREAMS__CACHE", &folder.path().join("cache").display().to_string())
            .tenant("acme", &tenant_file(&namespace, &server.url("/stable")))
            .secret("acme", "kubeconfig", &kubeconfig);
        let world = plan.start(in_process()).await;
        let (agent, ana) = (loaded(&world.tenant("acme").agent()).await, world.tenant("acme").approver());
        let bench = Bench { helm, folder, digest, server, namespace, agent, ana, world, sandbox };
        let made = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": bench.namespace } });
        bench.act("k8s_apply", json!({ "manifest": made.to_string() })).await;
        Some(bench)
    }

    /// Calls a tool that only looks.
    async fn read(&self, tool: &str, arguments: Value) -> Value {
        let told = self.agent.call(tool, arguments).await.ok().clone();
        assert!(!told.to_string().contains(PASSWORD), "{tool} tells a secret: {told}");
        told
    }

    /// The code and the details of a call that nobody can be asked about.
    async fn not_shown(&self, who: &Legacy, tool: &str, arguments: Value) -> Value {
        let outcome = who.call(tool, arguments).await;
        let refusal = outcome.refusal().clone();
        assert_eq!(refusal["code"], "preview_unavailable", "{refusal:#}");
        refusal
    }

    async fn ask(&self, tool: &str, arguments: Value) -> String {
        pending(&self.agent.call(tool, arguments).await)
    }

    /// What the person is shown: the whole run, and the preview's text.
    async fn shown(&self, run: &str) -> (Value, String) {
        let told = show(&self.ana, run).await;
        assert!(!told.to_string().contains(PASSWORD), "a secret is shown: {told:#}");
        let text = told["preview"]["text"].as_str().unwrap().to_owned();
        (told, text)
    }

    /// Has it signed, wants it to work, and gives what the tool told the agent.
    async fn sign(&self, run: &str) -> Value {
        approve(&self.ana, run).await;
        let told = ended(&self.ana, run).await;
        assert_eq!(told["state"], "succeeded", "{told:#}");
        let outcome = self.agent.call("await_run", json!({ "run_id": run, "wait_ms": 0 })).await;
        assert!(!outcome.answer.text().contains(PASSWORD), "a secret is told: {outcome:?}");
        outcome.ok()["result"].clone()
    }

    async fn act(&self, tool: &str, arguments: Value) -> Value {
        let run = self.ask(tool, arguments).await;
        self.sign(&run).await
    }

    async fn installed(&self) {
        let made = self.act("helm_install", release(json!({}))).await;
        assert_eq!((&made["revision"], &made["status"]), (&json!(1), &json!("deployed")), "{made:#}");
    }

    /// Every pod of the release runs this image.
    async fn healthy(&self, image: &str) {
        assert_eq!(self.read("helm_get", json!({ "release": "shop" })).await["status"], "deployed");
        let goal = json!({ "kind": "Deployment", "name": "shop-web", "until": "rollout", "timeout_s": 4 });
        until("the rollout", async || (self.read("k8s_wait", goal.clone()).await["met"] == true).then_some(())).await;
        assert_eq!(self.image().await, image);
    }

    /// The image its Deployment asks for.
    async fn image(&self) -> Value {
        let path = "spec.template.spec.containers[0].image";
        let asked = json!({ "kind": "Deployment", "name": "shop-web", "path": path, "view": "full" });
        self.read("k8s_get", asked).await["value"].take()
    }

    /// The statuses of its revisions, newest first.
    async fn history(&self) -> Vec<(u64, String)> {
        let told = self.read("helm_get", json!({ "release": "shop", "show": "history" })).await;
        let one = |line: &Value| (line["revision"].as_u64().unwrap(), line["status"].as_str().unwrap().to_owned());
        told["revisions"].as_array().unwrap().iter().map(one).collect()
    }

    /// Begins an upgrade that cannot end by itself, and waits until helm is in the middle of it.
    async fn stuck(&self, who: &Legacy, decider: &Actor) -> String {
        let upgrade = release(json!({ "values": { "image": MISSING }, "timeout_s": 300 }));
        let run = pending(&who.call("helm_upgrade", upgrade).await);
        approve(decider, &run).await;
        // The hook is over by then, and helm waits for pods.
        until("helm to be in the middle", async || (self.image().await == MISSING).then_some(())).await;
        assert_eq!(self.history().await[0], (2, "pending-upgrade".to_owned()));
        run
    }

    /// The helm processes of this service that are about a subcommand.
    fn children(&self, subcommand: &str) -> Vec<u32> {
        let ours = self.folder.path().join("cache").canonicalize().unwrap().display().to_string();
        let about = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
            words.get(1).is_some_and(|word| word == subcommand) && words.iter().any(|word| word.contains(&ours))
        };
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(about).collect()
    }

    /// Lets an hour go by for a revision: its record says that it began that much earlier.
    async fn an_hour_passes(&self, revision: u32) {
        let record = format!("sh.helm.release.v1.shop.v{revision}");
        let config = self.folder.path().join("kubeconfig");
        let text = match (&self.sandbox, named("QUARTERMASTER_TEST_KUBECONFIG")) {
            (Some(sandbox), _) => sandbox.kubeconfig_for_go(),
            (None, file) => std::fs::read_to_string(file.unwrap()).unwrap(),
        };
        std::fs::write(&config, text).unwrap();
        let chart = write_chart(self.folder.path(), "peek", &[("peek.yaml", PEEK)], &format!("record: {record}\n"));
        let (config, namespace) = (format!("--kubeconfig={}", config.display()), format!("-n={}", self.namespace));
        let words = ["template", "peek", &chart, "--dry-run=server", &config, &namespace];
        let shown = String::from_utf8(run(&self.helm, &words, b"")).unwrap();
        let packed = shown.split("record: \"").nth(1).and_then(|rest| rest.split('"').next()).expect("a record");
        let packed = STANDARD.decode(STANDARD.decode(packed).unwrap()).unwrap();
        let mut record_now: Value = serde_json::from_slice(&run(Path::new("gzip"), &["-dc"], &packed)).unwrap();
        let began = record_now["info"]["last_deployed"].as_str().unwrap();
        let began = domain::Moment::parse(began).unwrap().millis() - 3_600_000;
        record_now["info"]["last_deployed"] = json!(domain::Moment::from_millis(began).to_string());
        // helm reads a record that is not compressed as well.
        let written = STANDARD.encode(STANDARD.encode(record_now.to_string()));
        let patch = json!({ "data": { "release": written } }).to_string();
        self.act("k8s_patch", json!({ "kind": "Secret", "name": record, "patch": patch, "type": "merge" })).await;
    }

    /// Takes the namespace away from a cluster that is there after the test.
    async fn close(self) {
        if self.sandbox.is_none() {
            self.act("k8s_delete", json!({ "kind": "Namespace", "name": self.namespace })).await;
        }
    }
}

/// Has helm pack the chart and write the index, and serves both; gives the archive's digest.
fn publish(helm: &Path, folder: &Path, server: &Server) -> String {
    let templates = [("objects.yaml", OBJECTS), ("hook.yaml", HOOK), ("NOTES.txt", "{{ .Release.Name }} is open.\n")];
    let chart = write_chart(folder, "web", &templates, VALUES);
    let shelf = folder.join("shelf").display().to_string();
    run(helm, &["package", &chart, "--destination", &shelf], b"");
    run(helm, &["repo", "index", &shelf], b"");
    for file in ["index.yaml", "web-1.0.0.tgz"] {
        server.put(&format!("/stable/{file}"), Answer::ok(std::fs::read(format!("{shelf}/{file}")).unwrap()));
    }
    sha256_hex(&std::fs::read(format!("{shelf}/web-1.0.0.tgz")).unwrap())
}

fn tenant_file(namespace: &str, repository: &str) -> String {
    let cluster = file_of(&format!("name: main, kubeconfig: {{ secret: kubeconfig }}, default_namespace: {namespace}"));
    format!("{cluster}\ntoolsets:\n  helm:\n    repositories:\n    - {{ name: stable, url: \"{repository}\" }}")
}

/// An agent that may ask for everything.
async fn loaded(agent: &Actor) -> Legacy {
    let client = agent.legacy().await;
    client.load("k8s:write").await;
    client.load("helm:write").await;
    client
}

/// Arguments about the one release there is, with more.
fn release(more: Value) -> Value {
    let mut arguments = json!({ "release": "shop", "chart": "stable/web", "timeout_s": 60 });
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    arguments
}

/// Waits for the end of a run. helm waits for pods that come and go, so it takes its time.
async fn ended(who: &Actor, run: &str) -> Value {
    for _ in 0..30 {
        let answer = who.rest().get(&format!("/v1/runs/{run}?wait_ms=4000")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let told = answer.json();
        if ![PENDING, "approved", "executing"].iter().any(|state| told["state"] == *state) {
            return told;
        }
    }
    panic!("it should have ended: {}", show(who, run).await)
}

fn holds(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "{part} in\n{text}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_installed_upgraded_rolled_back_and_removed_by_signatures() {
    let Some(bench) = Bench::open(Plan::embedded).await else { return };
    let found = bench.read("helm_search", json!({ "query": "window" })).await;
    assert_eq!((&found["charts"][0]["chart"], &found["charts"][0]["version"]), (&json!("stable/web"), &json!("1.0.0")));
    let chart = bench.read("helm_show", json!({ "chart": "stable/web", "show": "chart" })).await;
    assert!(chart["digest"].as_str().unwrap().ends_with(&bench.digest), "{chart:#}");

    let run = bench.ask("helm_install", release(json!({}))).await;
    let (shown, text) = bench.shown(&run).await;
    holds(&text, &["create Deployment shop-web", "create Secret shop-auth", "image: registry.example/web:1.0"]);
    holds(&text, &[&bench.digest, "hook: Job shop-migrate (pre-install, pre-upgrade)"]);
    assert_eq!(shown["effect"], "change");
    assert_eq!(bench.read("helm_list", json!({})).await["releases"], json!([]), "nothing before somebody has signed");
    let made = bench.sign(&run).await;
    assert_eq!((&made["status"], &made["digest"]), (&json!("deployed"), &json!(bench.digest)), "{made:#}");
    bench.healthy("registry.example/web:1.0").await;

    let values = json!({ "replicas": 3, "image": "registry.example/web:2.0" });
    let run = bench.ask("helm_upgrade", release(json!({ "values": values }))).await;
    let (_, text) = bench.shown(&run).await;
    holds(&text, &["now: revision 1, deployed", "change Deployment shop-web", "-  replicas: 1", "+  replicas: 3"]);
    let upgraded = bench.sign(&run).await;
    assert_eq!((&upgraded["from_revision"], &upgraded["revision"]), (&json!(1), &json!(2)), "{upgraded:#}");
    bench.healthy("registry.example/web:2.0").await;
    let diff = bench.read("helm_get", json!({ "release": "shop", "show": "diff", "revision": 1 })).await;
    holds(diff["diff"].as_str().unwrap(), &["web:1.0", "web:2.0"]);

    let run = bench.ask("helm_rollback", json!({ "release": "shop", "timeout_s": 60 })).await;
    let (shown, text) = bench.shown(&run).await;
    holds(&text, &["back to revision 1", "+  replicas: 1"]);
    assert_eq!(shown["effect"], "disrupt");
    let back = bench.sign(&run).await;
    assert_eq!((&back["from_revision"], &back["to_revision"], &back["revision"]), (&json!(2), &json!(1), &json!(3)));
    bench.healthy("registry.example/web:1.0").await;
    let told = [(3, "deployed"), (2, "superseded"), (1, "superseded")].map(|(n, status)| (n, status.to_owned()));
    assert_eq!(bench.history().await, told);

    let run = bench.ask("helm_uninstall", json!({ "release": "shop", "timeout_s": 60 })).await;
    let (shown, text) = bench.shown(&run).await;
    holds(&text, &["remove Deployment shop-web"]);
    assert_eq!(shown["effect"], "disrupt");
    bench.sign(&run).await;
    assert_eq!(bench.read("helm_list", json!({})).await["releases"], json!([]));
    let gone = bench.agent.call("k8s_get", json!({ "kind": "Deployment", "name": "shop-web" })).await;
    assert_eq!(gone.code(), "not_found", "{gone:?}");
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn h3_the_second_agent_is_told_by_another_replica_which_run_is_at_work() {
    let Some(bench) = Bench::open(|| Plan::redis(2)).await else { return };
    bench.installed().await;
    let other = loaded(&bench.world.tenant("acme").agent().on(1)).await;
    // Asked while nobody is at work, decided while somebody is.
    let early = pending(&other.call("helm_uninstall", json!({ "release": "shop" })).await);
    let first = bench.stuck(&bench.agent, &bench.ana.on(0)).await;

    let upgrade = release(json!({ "values": { "replicas": 2 } }));
    let asks = [("helm_upgrade", upgrade), ("helm_rollback", json!({ "release": "shop" }))];
    for (tool, arguments) in asks.into_iter().chain([("helm_uninstall", json!({ "release": "shop", "wait": false }))]) {
        let told = bench.not_shown(&other, tool, arguments).await;
        let (cause, run) = (&told["details"]["cause"], &told["details"]["run"]);
        assert_eq!((cause, run), (&json!("release_busy"), &json!(first)), "{tool}: {told:#}");
    }
    let told = bench.not_shown(&other, "helm_recover", json!({ "release": "shop" })).await;
    assert_eq!((&told["details"]["cause"], &told["details"]["run"]), (&json!("still_running"), &json!(first)));
    approve(&bench.ana.on(1), &early).await;
    let told = ended(&bench.ana.on(1), &early).await;
    let outcome = &told["outcome"];
    assert_eq!((&outcome["code"], &outcome["attempted"]), (&json!("stale"), &json!(false)), "{told:#}");
    holds(outcome["message"].as_str().unwrap(), &[&first, "at work on this release"]);
    assert_eq!(show(&bench.ana, &first).await["state"], "executing", "the first goes on undisturbed");

    let image = json!({ "name": "web", "image": "registry.example/web:1.0" });
    let patch = json!({ "spec": { "template": { "spec": { "containers": [image] } } } }).to_string();
    let mended = json!({ "kind": "Deployment", "name": "shop-web", "patch": patch, "type": "strategic" });
    bench.act("k8s_patch", mended).await;
    assert_eq!(ended(&bench.ana, &first).await["state"], "succeeded");
    let after = json!({ "release": "shop", "timeout_s": 60 });
    let run = pending(&other.call("helm_uninstall", after).await);
    approve(&bench.ana.on(1), &run).await;
    assert_eq!(ended(&bench.ana, &run).await["state"], "succeeded", "whoever comes afterwards is served");
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn h2_a_helm_killed_midway_leaves_a_locked_release_that_another_signature_frees() {
    let Some(bench) = Bench::open(Plan::embedded).await else { return };
    bench.installed().await;
    let first = bench.stuck(&bench.agent, &bench.ana).await;
    let pids = bench.children("upgrade");
    assert_eq!(pids.len(), 1, "{pids:?}");
    run(Path::new("kill"), &["-KILL", &pids[0].to_string()], b"");
    let told = ended(&bench.ana, &first).await;
    assert_eq!(told["state"], "outcome_unknown", "{told:#}");

    let fine = release(json!({ "values": { "replicas": 2 } }));
    let locked = bench.not_shown(&bench.agent, "helm_upgrade", fine.clone()).await;
    let details = &locked["details"];
    assert_eq!((&details["cause"], &details["revision"]), (&json!("release_locked"), &json!(2)), "{locked:#}");
    assert!(details["age_s"].is_u64() && locked["next"].as_str().unwrap().contains("helm_recover"), "{locked:#}");
    let recover = json!({ "release": "shop" });
    let soon = bench.not_shown(&bench.agent, "helm_recover", recover.clone()).await;
    assert_eq!(soon["details"]["cause"], "still_running", "{soon:#}");

    bench.an_hour_passes(2).await;
    let run = bench.ask("helm_recover", recover).await;
    let (shown, text) = bench.shown(&run).await;
    holds(&text, &["stuck: revision 2 is pending-upgrade", &format!("begun by run {first}")]);
    assert_eq!((&shown["effect"], bench.history().await.len()), (&json!("disrupt"), 2), "freed by nothing but a yes");
    let freed = bench.sign(&run).await;
    assert_eq!((&freed["was"], &freed["action"]), (&json!("pending-upgrade"), &json!("rollback")), "{freed:#}");
    bench.healthy("registry.example/web:1.0").await;

    let upgraded = bench.act("helm_upgrade", fine).await;
    assert_eq!((&upgraded["status"], &upgraded["revision"]), (&json!("deployed"), &json!(4)), "{upgraded:#}");
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_on_a_host_the_operator_does_not_list_is_refused_wherever_it_is_named() {
    let Some(bench) = Bench::open(Plan::embedded).await else { return };
    let elsewhere = format!("https://localhost:{}/stable", bench.server.port);
    let add = json!({ "action": "add", "name": "elsewhere", "url": elsewhere });
    let told = bench.not_shown(&bench.agent, "helm_repo", add).await;
    assert_eq!(told["details"]["cause"], "host_denied", "{told:#}");

    let text = tenant_file(&bench.namespace, &elsewhere);
    bench.world.configure("acme", &text);
    let tenants = &bench.world.part(0).tenants;
    let problem = until("the problem", async || tenants.problems().first().map(ToString::to_string)).await;
    holds(&problem, &["acme.yaml:", "chart_hosts"]);
    let found = bench.read("helm_search", json!({})).await;
    assert_eq!(found["repositories"][0]["url"], bench.server.url("/stable"), "what was there before still counts");

    let (settings, file) = (bench.folder.path().join("settings.toml"), bench.folder.path().join("acme.yaml"));
    let issuer = "issuer = \"https://login.example\"\nalgorithms = [\"HS256\"]\nkey_file = \"/dev/null\"";
    let identity = format!("[identity]\nresource = \"https://tools.example\"\n[[identity.issuers]]\n{issuer}");
    std::fs::write(&settings, format!("{identity}\n[upstreams]\nchart_hosts = [\"charts.example\"]\n")).unwrap();
    std::fs::write(&file, format!("tenant: acme\n{}\n", tenant_file("shop", "https://other.example/stable"))).unwrap();
    let (line, told) = checked(&settings, &file);
    let wanted = std::fs::read_to_string(&file).unwrap().lines().position(|line| line.contains("other.example"));
    assert_eq!(Some(line), wanted.map(|n| n + 1), "{told}");
    holds(&told, &["chart_hosts"]);
    bench.close().await;
}

/// The line and the words of the one problem `check` finds in a tenant's file.
#[expect(clippy::disallowed_methods, reason = "the program as an operator starts it")]
fn checked(settings: &Path, file: &Path) -> (usize, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quartermaster"));
    let done = command.args(["--output", "json", "check"]).args([settings, file]).output().unwrap();
    assert!(!done.status.success(), "{done:?}");
    let problems: Vec<Value> = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
    assert_eq!(problems.len(), 1, "{problems:#?}");
    (usize::try_from(problems[0]["line"].as_u64().unwrap()).unwrap(), problems[0].to_string())
}
