//! A namespace, an operator for it, and hands to write resources with.

use egress::Lookup;
use http::{Request, Response};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::client::{Body, ClientBuilder};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use operator::context::OperatorSettings;
use operator::resources::definitions;
use operator::run::run;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Service};

/// How long a controller of the cluster may take.
const PATIENCE: Duration = Duration::from_secs(60);
static YARDS: AtomicU32 = AtomicU32::new(0);

/// The cluster's kubeconfig; `None`, and loudly, without a cluster.
fn kubeconfig() -> Option<Kubeconfig> {
    let Some(path) = std::env::var_os("QUARTERMASTER_TEST_KUBECONFIG").filter(|path| !path.is_empty()) else {
        eprintln!("SKIPPED: QUARTERMASTER_TEST_KUBECONFIG names no cluster; see `deploy/testbed up`");
        return None;
    };
    // Somebody else may have installed it first.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    Some(Kubeconfig::read_from(path).unwrap())
}

/// A namespace of the cluster with the resources defined, and a user for the operator.
pub struct Yard {
    pub admin: Client,
    pub namespace: String,
    kubeconfig: Kubeconfig,
}

/// An operator that runs in the test's own process.
pub struct RunningOperator {
    task: JoinSet<Result<bool, kube::Error>>,
    stopping: CancellationToken,
}

impl Yard {
    /// Opens a namespace of its own, `None` without a cluster.
    pub async fn open() -> Option<Yard> {
        let kubeconfig = kubeconfig()?;
        let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &KubeConfigOptions::default()).await.unwrap();
        let admin = Client::try_from(config).unwrap();
        let number = YARDS.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("yard-{}-{number}", std::process::id());
        let yard = Yard { admin, namespace, kubeconfig };
        yard.define().await;
        let space: Namespace = object(json!({ "metadata": { "name": yard.namespace } }));
        Api::<Namespace>::all(yard.admin.clone()).create(&PostParams::default(), &space).await.unwrap();
        yard.grant().await;
        Some(yard)
    }

    async fn define(&self) {
        let api: Api<CustomResourceDefinition> = Api::all(self.admin.clone());
        for (_, definition) in definitions() {
            let (name, params) = (definition.name_any(), PatchParams::apply("yard").force());
            api.patch(&name, &params, &Patch::Apply(&definition)).await.unwrap();
            self.until("a definition to be established", async || {
                let status = api.get(&name).await.ok()?.status?;
                let is_so = |kind: &str| {
                    status.conditions.iter().flatten().any(|one| one.type_ == kind && one.status == "True")
                };
                is_so("Established").then_some(())
            })
            .await;
        }
    }

    /// Gives the operator's users the rights of the chart, and nothing else.
    async fn grant(&self) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/chart/files/operator-rules.json");
        let rules: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let params = PatchParams::apply("yard").force();
        let role: ClusterRole = object(json!({ "metadata": { "name": "yard:operator" }, "rules": rules["cluster"] }));
        Api::<ClusterRole>::all(self.admin.clone()).patch("yard:operator", &params, &Patch::Apply(role)).await.unwrap();
        let role: Role = object(json!({ "metadata": { "name": "operator" }, "rules": rules["namespace"] }));
        self.api::<Role>().create(&PostParams::default(), &role).await.unwrap();
        let group = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": self.group() });
        for (name, kind, role) in [("operator", "ClusterRole", "yard:operator"), ("leader", "Role", "operator")] {
            let binding: RoleBinding = object(json!({
                "metadata": { "name": name },
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role },
                "subjects": [group],
            }));
            self.api::<RoleBinding>().create(&PostParams::default(), &binding).await.unwrap();
        }
    }

    fn group(&self) -> String {
        format!("operators-of-{}", self.namespace)
    }

    /// What an operator of this yard is called in the cluster's audit log.
    pub fn user(&self, identity: &str) -> String {
        format!("operator-{identity}-of-{}", self.namespace)
    }

    pub fn settings(&self, identity: &str) -> OperatorSettings {
        // Nothing routes to Services here: whatever a name says, the process is on this machine.
        let lookup: Lookup = Arc::new(|_| Box::pin(async { Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]) }));
        OperatorSettings {
            watch: Some(self.namespace.clone()),
            namespace: self.namespace.clone(),
            identity: identity.to_owned(),
            cluster_domain: "cluster.local".to_owned(),
            resync: Duration::from_secs(600),
            lease: Duration::from_secs(3),
            lookup: Some(lookup),
        }
    }

    /// Starts an operator with the rights of the chart.
    pub async fn operator(&self) -> RunningOperator {
        self.operator_with(self.settings("one")).await
    }

    pub async fn operator_with(&self, settings: OperatorSettings) -> RunningOperator {
        self.operator_until(settings, usize::MAX).await.0
    }

    /// Starts one whose process dies right after so many writes, and counts them.
    pub async fn operator_until(&self, settings: OperatorSettings, writes: usize) -> (RunningOperator, Arc<Meter>) {
        let mut kubeconfig = self.kubeconfig.clone();
        let info = kubeconfig.auth_infos[0].auth_info.get_or_insert_default();
        info.impersonate = Some(self.user(&settings.identity));
        info.impersonate_groups = Some(vec![self.group(), "system:authenticated".to_owned()]);
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let meter = Arc::new(Meter { left: AtomicUsize::new(writes), died: CancellationToken::new() });
        let layer = {
            let meter = Arc::clone(&meter);
            tower::layer::layer_fn(move |inner| Metered { inner, meter: Arc::clone(&meter) })
        };
        let client = ClientBuilder::try_from(config).unwrap().with_layer(&layer).build();
        let stopping = CancellationToken::new();
        let (stop, died) = (stopping.clone(), meter.died.clone());
        let mut task = JoinSet::new();
        task.spawn(async move {
            let reached = Arc::default();
            tokio::select! {
                outcome = run(client, settings, &reached, stop) => outcome,
                () = died.cancelled() => Ok(false),
            }
        });
        (RunningOperator { task, stopping }, meter)
    }

    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.admin.clone(), &self.namespace)
    }

    pub fn dynamic(&self, kind: &str) -> Api<DynamicObject> {
        let (group, version) = match kind {
            "LanguageTool" | "LanguageAgent" => ("langop.io", "v1alpha1"),
            "Deployment" => ("apps", "v1"),
            "NetworkPolicy" => ("networking.k8s.io", "v1"),
            "Lease" => ("coordination.k8s.io", "v1"),
            _ => ("", "v1"),
        };
        let mut resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        if kind == "NetworkPolicy" {
            "networkpolicies".clone_into(&mut resource.plural);
        }
        Api::namespaced_with(self.admin.clone(), &self.namespace, &resource)
    }

    /// Writes a resource as a person would.
    pub async fn write(&self, kind: &str, name: &str, spec: Value) -> Result<DynamicObject, kube::Error> {
        let resource = json!({
            "apiVersion": "langop.io/v1alpha1", "kind": kind, "metadata": { "name": name }, "spec": spec,
        });
        let params = PatchParams::apply("person").force();
        self.dynamic(kind).patch(name, &params, &Patch::Apply(&resource)).await
    }

    pub async fn tool(&self, name: &str, spec: Value) {
        self.write("LanguageTool", name, spec).await.unwrap();
    }

    pub async fn agent(&self, name: &str, spec: Value) {
        self.write("LanguageAgent", name, spec).await.unwrap();
    }

    pub async fn delete(&self, kind: &str, name: &str) {
        self.dynamic(kind).delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// An object as it is, if it is there.
    pub async fn find(&self, kind: &str, name: &str) -> Option<Value> {
        let found = self.dynamic(kind).get_opt(name).await.unwrap();
        found.map(|found| serde_json::to_value(found).unwrap())
    }

    /// Waits until an object is as the test wants it.
    pub async fn see(&self, kind: &str, name: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            last = self.find(kind, name).await.unwrap_or_default();
            if !last.is_null() && is(&last) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        last["metadata"]["managedFields"].take();
        panic!("waited for {kind} {name} {what}: {last:#}");
    }

    pub async fn see_gone(&self, kind: &str, name: &str) {
        self.until(&format!("{kind} {name} to be gone"), async || self.find(kind, name).await.is_none().then_some(()))
            .await;
    }

    /// Waits until a condition has this status and reason.
    pub async fn see_condition(&self, kind: &str, name: &str, condition: &str, want: (&str, &str)) -> Value {
        let what = format!("{condition} {want:?}");
        self.see(kind, name, &what, |object| {
            let found = condition_of(object, condition);
            (found["status"].as_str(), found["reason"].as_str()) == (Some(want.0), Some(want.1))
        })
        .await
    }

    pub async fn until<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("waited for {what}");
    }

    /// What a user of this yard did, by the cluster's audit log: verb, resource, and whether it was let.
    pub fn audited(&self, user: &str) -> Vec<Audited> {
        let file = std::env::var_os("QUARTERMASTER_TEST_AUDIT_LOG").expect("the testbed names its audit log");
        let text = std::fs::read_to_string(file).unwrap();
        let entries = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        entries
            .filter(|entry| entry["impersonatedUser"]["username"] == user && entry["stage"] == "ResponseComplete")
            .map(|entry| {
                let part = |key: &str| entry["objectRef"][key].as_str().unwrap_or_default().to_owned();
                let resource = match part("subresource").as_str() {
                    "" => part("resource"),
                    sub => format!("{}/{sub}", part("resource")),
                };
                Audited {
                    verb: entry["verb"].as_str().unwrap_or_default().to_owned(),
                    group: part("apiGroup"),
                    resource,
                    name: part("name"),
                    status: entry["responseStatus"]["code"].as_u64().unwrap_or_default(),
                }
            })
            .collect()
    }

    /// Writes among them, besides those of the lease.
    pub fn writes(&self, user: &str) -> Vec<Audited> {
        let is_write =
            |one: &Audited| !["get", "list", "watch"].contains(&one.verb.as_str()) && one.resource != "leases";
        self.audited(user).into_iter().filter(is_write).collect()
    }
}

/// One request in the audit log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Audited {
    pub verb: String,
    pub group: String,
    pub resource: String,
    pub name: String,
    pub status: u64,
}

impl RunningOperator {
    /// Stops it in order.
    pub async fn stop(self) -> bool {
        self.stopping.cancel();
        self.ended().await
    }

    /// Ends it in the middle of whatever it does.
    pub fn kill(mut self) {
        self.task.abort_all();
    }

    /// Waits until it has ended by itself.
    pub async fn ended(mut self) -> bool {
        self.task.join_next().await.unwrap().unwrap().unwrap()
    }
}

/// How many writes are left to an operator.
pub struct Meter {
    pub left: AtomicUsize,
    died: CancellationToken,
}

/// Counts what is written, and ends the process after the last write that it may see answered.
#[derive(Clone)]
struct Metered<S> {
    inner: S,
    meter: Arc<Meter>,
}

impl<S, B> Service<Request<Body>> for Metered<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Send + 'static,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let is_write = request.method() != "GET" && !request.uri().path().contains("/leases");
        let (answer, meter) = (self.inner.call(request), Arc::clone(&self.meter));
        Box::pin(async move {
            let answer = answer.await;
            if is_write && meter.left.fetch_sub(1, Ordering::Relaxed) == 1 {
                meter.died.cancel();
                // Nobody reads this answer.
                std::future::pending::<()>().await;
            }
            answer
        })
    }
}

pub fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A condition of a resource, or nothing.
pub fn condition_of(object: &Value, condition: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|one| one["type"] == condition).cloned().unwrap_or_default()
}

/// A template with one container.
pub fn template() -> Value {
    json!({ "spec": { "containers": [{ "name": "agent", "image": "registry.example/agent:1" }] } })
}

/// An agent of that template with these tools.
pub fn using(tools: &[&str]) -> Value {
    let tools: Vec<Value> = tools.iter().map(|name| json!({ "name": name })).collect();
    json!({ "tools": tools, "template": template() })
}
