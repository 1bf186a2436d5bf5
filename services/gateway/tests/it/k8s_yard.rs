//! A yard: a tenant with a cluster, a namespace of the test's own in it, an agent that asks and a person who decides.
//!
//! The cluster is a sandbox, unless `QUARTERMASTER_TEST_KUBECONFIG` names the kubeconfig of a real one; then the folder
//! it lies in holds those of other identities. What a test needs there it makes with the tools themselves, so the same
//! lines run against both. Every answer is held to the schema its tool is listed with, and is kept to be searched.

use crate::here::in_process;
use crate::runs_desk::{approve, ended, pending};
use catalog::validate::Arguments;
use gateway::app::Gateway;
use sandbox::{Sandbox, Seed};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use testkit::{Actor, Legacy, Outcome, Plan, Start, World, until};

/// The most JSON in one answer of a tool.
pub(crate) const MOST_BYTES: usize = 24 * 1024;
/// The tenant whose credential may do everything.
pub(crate) const TENANT: &str = "acme";
/// The secret every tenant's kubeconfig is.
pub(crate) const SECRET: &str = "kubeconfig";
/// Stands for the yard's namespace in what a tenant's file says.
const NAMESPACE: &str = "NAMESPACE";

/// The kubeconfig of a real cluster, if there is one.
fn real() -> Option<PathBuf> {
    std::env::var_os("QUARTERMASTER_TEST_KUBECONFIG").filter(|name| *name != OsString::new()).map(PathBuf::from)
}

/// Whether the cluster is a real one.
pub(crate) fn is_real() -> bool {
    real().is_some()
}

/// A yard that is about to be.
pub(crate) struct Draft {
    plan: Plan,
    namespace: String,
    sandbox: Option<Sandbox>,
}

impl Draft {
    /// The cluster under test.
    pub(crate) async fn new() -> Draft {
        match real() {
            Some(_) => Draft::on(None),
            None => Draft::simulated(Seed::empty()).await,
        }
    }

    /// A sandbox, whatever is under test otherwise: for what cannot be had of a real cluster at will.
    pub(crate) async fn simulated(seed: Seed) -> Draft {
        Draft::on(Some(Sandbox::start(seed).await.unwrap()))
    }

    fn on(sandbox: Option<Sandbox>) -> Draft {
        let namespace = format!("yard-{:016x}", RandomState::new().hash_one(0));
        let plan = Plan::embedded().setting("QM_APPROVALS__SWEEP_EVERY", "50ms");
        Draft { plan, namespace, sandbox }.tenant(TENANT, "admin", "")
    }

    /// Adds a tenant that uses the cluster as this identity. `more` goes on with what its file says of the cluster, and
    /// `NAMESPACE` in it is the yard's.
    pub(crate) fn tenant(mut self, name: &str, identity: &str, more: &str) -> Draft {
        let kubeconfig = match (&self.sandbox, real()) {
            (Some(sandbox), _) => sandbox.kubeconfig(),
            (None, Some(file)) => std::fs::read_to_string(file.with_file_name(identity)).unwrap(),
            (None, None) => unreachable!("without a real cluster there is a sandbox"),
        };
        let fenced = if more.contains("default_namespace") { "" } else { ", default_namespace: NAMESPACE" };
        let cluster = format!("name: main, kubeconfig: {{ secret: {SECRET} }}{fenced}{more}");
        let file = file_of(&cluster.replace(NAMESPACE, &self.namespace));
        self.plan = self.plan.tenant(name, &file).secret(name, SECRET, &kubeconfig);
        self
    }

    /// Sets one setting.
    pub(crate) fn setting(mut self, key: &str, value: &str) -> Draft {
        self.plan = self.plan.setting(key, value);
        self
    }

    /// Starts the service inside the test.
    pub(crate) async fn start(self) -> Yard {
        self.start_as(in_process()).await
    }

    /// Starts the service, and makes the namespace.
    pub(crate) async fn start_as<P>(self, start: Start<P>) -> Yard<P> {
        let mut yard = Yard::of(self.plan.start(start).await, self.namespace).await;
        yard.sandbox = self.sandbox;
        yard.make(&[json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": yard.namespace } })]).await;
        yard.stays = yard.sandbox.is_none();
        yard
    }

    /// A tenant with the service's own simulated cluster and what is seeded there, and a neighbour with another one.
    pub(crate) async fn built_in() -> Yard {
        let file = file_of("name: sandbox, sandbox: true, default_namespace: shop");
        let plan = Plan::embedded().tenant(TENANT, &file).tenant("neighbour", &file);
        Yard::of(plan.start(in_process()).await, "shop".to_owned()).await
    }
}

/// A tenant's file with one cluster.
pub(crate) fn file_of(cluster: &str) -> String {
    format!("default_toolsets: [k8s]\nlimits: {{ calls_per_minute: 1000000 }}\nclusters:\n- {{ {cluster} }}")
}

/// An agent that may ask for everything.
pub(crate) async fn loaded(agent: &Actor) -> Legacy {
    let client = agent.legacy().await;
    client.load("k8s:write").await;
    client.load("argo:write").await;
    client
}

/// What a tool promises about its answers.
struct Promise {
    schema: Arguments,
    fields: Vec<String>,
}

/// What each listed tool promises.
fn promises(list: &Value) -> HashMap<String, Promise> {
    let tools = list["tools"].as_array().unwrap().iter().filter(|tool| tool["outputSchema"].is_object());
    let promises: HashMap<String, Promise> = tools
        .map(|tool| {
            let (name, schema) = (tool["name"].as_str().unwrap(), &tool["outputSchema"]);
            let fields = schema["properties"].as_object().unwrap().keys().cloned().collect();
            (name.to_owned(), Promise { schema: Arguments::compile(name, schema).unwrap(), fields })
        })
        .collect();
    assert_eq!(promises.keys().filter(|name| name.starts_with("k8s_")).count(), 16, "every tool has a schema");
    promises
}

/// A tenant, its cluster, and a namespace in it.
pub(crate) struct Yard<P = Arc<Gateway>> {
    pub(crate) namespace: String,
    pub(crate) agent: Legacy,
    pub(crate) ana: Actor,
    pub(crate) world: World<P>,
    sandbox: Option<Sandbox>,
    /// The cluster is there after the test, and the namespace must not be.
    stays: bool,
    promises: HashMap<String, Promise>,
    heard: Mutex<Vec<String>>,
}

impl Yard {
    /// The cluster under test and nothing more.
    pub(crate) async fn open() -> Yard {
        Draft::new().await.start().await
    }
}

impl<P> Yard<P> {
    async fn of(world: World<P>, namespace: String) -> Yard<P> {
        let (agent, ana) = (loaded(&world.tenant(TENANT).agent()).await, world.tenant(TENANT).approver());
        let promises = promises(agent.ask("tools/list", json!({})).await.result());
        Yard { namespace, agent, ana, world, sandbox: None, stays: false, promises, heard: Mutex::default() }
    }

    /// The sandbox under this yard.
    pub(crate) fn sandbox(&self) -> &Sandbox {
        self.sandbox.as_ref().expect("this yard has a sandbox")
    }

    /// Calls a tool, and holds its answer to the tool's schema.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        let outcome = self.agent.call(tool, arguments).await;
        self.heard.lock().unwrap().push(outcome.answer.text());
        let structured = &outcome.message["result"]["structuredContent"];
        if structured.is_object() {
            self.fits(tool, structured);
        }
        outcome
    }

    fn fits(&self, tool: &str, answer: &Value) {
        let Some(Promise { schema, fields }) = self.promises.get(tool) else { return };
        let told = answer.as_object().unwrap();
        let checked = schema.check(told.clone());
        assert!(checked.is_ok(), "{tool} broke its schema: {:?}\n{answer}", checked.unwrap_err());
        let unknown: Vec<&String> = told.keys().filter(|key| !fields.contains(key)).collect();
        assert!(unknown.is_empty(), "{tool} tells what its schema does not know: {unknown:?}");
        let bytes = answer.to_string().len();
        assert!(bytes <= MOST_BYTES, "{tool} answered {bytes} bytes");
    }

    /// Calls a tool that only looks.
    pub(crate) async fn read(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).await.ok().clone()
    }

    /// Calls a tool that must refuse.
    pub(crate) async fn refused(&self, tool: &str, arguments: Value) -> Value {
        let refusal = self.call(tool, arguments).await.refusal().clone();
        assert!(refusal["next"].is_string() || refusal["code"] == "invalid_argument", "no next step: {refusal}");
        refusal
    }

    /// Calls a tool that would have to ask a person and cannot show what it is about; gives the reason.
    pub(crate) async fn not_shown(&self, tool: &str, arguments: Value) -> String {
        let refusal = self.refused(tool, arguments).await;
        assert_eq!(refusal["code"], "preview_unavailable", "{refusal}");
        refusal["message"].as_str().unwrap().to_owned()
    }

    /// Calls a tool that must ask a person, and gives the run.
    pub(crate) async fn ask(&self, tool: &str, arguments: Value) -> String {
        pending(&self.call(tool, arguments).await)
    }

    /// The run as a person sees it.
    pub(crate) async fn shown(&self, run: &str) -> Value {
        let answer = self.ana.rest().get(&format!("/v1/runs/{run}")).await;
        self.heard.lock().unwrap().push(answer.text());
        answer.json()
    }

    /// Says yes, waits for the end, and gives the run as a person sees it.
    pub(crate) async fn sign(&self, run: &str) -> Value {
        approve(&self.ana, run).await;
        let told = ended(&self.ana, run).await;
        self.heard.lock().unwrap().push(told.to_string());
        told
    }

    /// Asks, has it signed, and gives how it ended.
    pub(crate) async fn signed(&self, tool: &str, arguments: Value) -> Value {
        let run = self.ask(tool, arguments).await;
        self.sign(&run).await
    }

    /// Asks, has it signed, wants it to work, and gives what the tool told the agent.
    pub(crate) async fn act(&self, tool: &str, arguments: Value) -> Value {
        let run = self.ask(tool, arguments).await;
        let told = self.sign(&run).await;
        assert_eq!(told["state"], "succeeded", "{tool}: {told:#}");
        let outcome = self.call("await_run", json!({ "run_id": run, "wait_ms": 0 })).await;
        let result = outcome.ok()["result"].clone();
        self.fits(tool, &result);
        result
    }

    /// Has these objects applied.
    pub(crate) async fn make(&self, objects: &[Value]) {
        let applied = self.act("k8s_apply", json!({ "manifest": manifest(objects) })).await;
        assert_eq!((&applied["applied"], &applied["failed"]), (&json!(objects.len()), &json!(0)), "{applied}");
    }

    /// Makes a deployment and waits until it runs.
    pub(crate) async fn runs(&self, name: &str, replicas: u32) {
        self.make(&[deployment(name, replicas)]).await;
        self.rolled_out(name).await;
    }

    /// Waits until a deployment is rolled out.
    pub(crate) async fn rolled_out(&self, name: &str) {
        self.awaits(json!({ "kind": "Deployment", "name": name, "until": "rollout" })).await;
    }

    /// Waits for what `k8s_wait` is asked for, in spans short enough to be answered at once.
    pub(crate) async fn awaits(&self, mut goal: Value) {
        goal["timeout_s"] = json!(4);
        let met = async || (self.read("k8s_wait", goal.clone()).await["met"] == true).then_some(());
        until(&format!("{goal}"), met).await;
    }

    /// One field of an object.
    pub(crate) async fn field(&self, kind: &str, name: &str, path: &str) -> Value {
        self.read("k8s_get", json!({ "kind": kind, "name": name, "path": path, "view": "full" })).await["value"].take()
    }

    /// Waits until that many pods of an app are left, and gives their names.
    pub(crate) async fn settled(&self, app: &str, count: usize) -> Vec<String> {
        until("pods to come and go", async || Some(self.pods(app).await).filter(|pods| pods.len() == count)).await
    }

    /// The names of the pods of an app.
    pub(crate) async fn pods(&self, app: &str) -> Vec<String> {
        let listed = self.read("k8s_get", json!({ "kind": "pods", "selector": format!("app={app}") })).await;
        let rows = listed["items"].as_array().unwrap();
        rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Everything that was heard so far: answers to the agent and what a person was shown.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    /// Takes the namespace away from a cluster that stays.
    async fn tidy(&self) {
        let told = self.signed("k8s_delete", json!({ "kind": "Namespace", "name": self.namespace })).await;
        assert_eq!(told["state"], "succeeded", "{told:#}");
    }
}

impl<P> Drop for Yard<P> {
    fn drop(&mut self) {
        // A test that has failed leaves what it made, to be looked at.
        if std::thread::panicking() || !self.stays {
            return;
        }
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(self.tidy()));
    }
}

/// Several objects as one manifest.
pub(crate) fn manifest(objects: &[Value]) -> String {
    objects.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n")
}

/// A deployment of one container.
pub(crate) fn deployment(name: &str, replicas: u32) -> Value {
    let labels = json!({ "app": name });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name, "labels": labels },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "app", "image": "registry.example/app:1.0", "ports": [{ "containerPort": 8080 }] }] },
            },
        },
    })
}

/// A service in front of it.
pub(crate) fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
        "spec": { "selector": { "app": name }, "ports": [{ "name": "http", "port": 80, "targetPort": 8080 }] },
    })
}

/// A map of settings.
pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "greeting": value } })
}
