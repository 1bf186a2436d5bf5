//! A namespace, an operator for it, and hands to write resources with.

use egress::Lookup;
use http::{Request, Response};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::client::{Body, ClientBuilder};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use operator::context::OperatorSettings;
use operator::resources::{LanguageTool, definitions};
use operator::run::run;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Service};

/// How long anything may take before a test gives up. Much more than it takes, so that a busy machine is no failure.
const PATIENCE: Duration = Duration::from_secs(240);
/// How long a lease lasts in tests that are not about leases: a process that gets no time for a while keeps it.
const LONG_LEASE: Duration = Duration::from_secs(300);
static YARDS: AtomicU32 = AtomicU32::new(0);
/// Definitions and roles are the whole cluster's: the first test writes them.
static DEFINED: OnceCell<()> = OnceCell::const_new();

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

/// The rights that the chart gives to the operator.
pub(crate) fn rules() -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/chart/files/operator-rules.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// A namespace of the cluster with the resources defined, and a user for the operator.
pub(crate) struct Yard {
    pub(crate) admin: Client,
    pub(crate) namespace: String,
    kubeconfig: Kubeconfig,
}

/// An operator that runs in the test's own process.
pub(crate) struct RunningOperator {
    task: JoinSet<Result<bool, kube::Error>>,
    stopping: CancellationToken,
}

impl Yard {
    /// Opens a namespace of its own, `None` without a cluster.
    pub(crate) async fn open() -> Option<Yard> {
        let kubeconfig = kubeconfig()?;
        let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &KubeConfigOptions::default()).await.unwrap();
        let admin = Client::try_from(config).unwrap();
        let number = YARDS.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("yard-{}-{number}", std::process::id());
        let yard = Yard { admin, namespace, kubeconfig };
        DEFINED.get_or_init(|| yard.define()).await;
        yard.make_namespace().await;
        yard.grant().await;
        // The API server takes a moment to know of rights.
        let leases = async |program: &str| -> Api<Lease> {
            Api::namespaced(yard.client_as(program, "probe", None).await, &yard.namespace)
        };
        let (operator, sync) = (leases("operator").await, leases("sync").await);
        yard.until("the operator's rights", async || operator.get_opt("nothing").await.ok()).await;
        yard.until("the rights of sync", async || match sync.delete("nothing", &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Some(()),
            _ => None,
        })
        .await;
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
        let params = PatchParams::apply("yard").force();
        for (name, part) in [("yard:operator", "cluster"), ("yard:sync", "sync")] {
            let role: ClusterRole = object(json!({ "metadata": { "name": name }, "rules": rules()[part] }));
            Api::<ClusterRole>::all(self.admin.clone()).patch(name, &params, &Patch::Apply(role)).await.unwrap();
        }
    }

    /// Gives the operator's users the rights of the chart, and nothing else.
    async fn grant(&self) {
        let rules = rules();
        for (program, own) in [("operator", "namespace"), ("sync", "syncNamespace")] {
            let role: Role = object(json!({ "metadata": { "name": program }, "rules": rules[own] }));
            self.api::<Role>().create(&PostParams::default(), &role).await.unwrap();
            let group =
                json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": self.group(program) });
            let wide = format!("yard:{program}");
            for (kind, role) in [("ClusterRole", wide.as_str()), ("Role", program)] {
                let binding: RoleBinding = object(json!({
                    "metadata": { "name": format!("{program}-{}", kind.to_lowercase()) },
                    "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role },
                    "subjects": [group],
                }));
                self.api::<RoleBinding>().create(&PostParams::default(), &binding).await.unwrap();
            }
        }
    }

    fn group(&self, program: &str) -> String {
        format!("{program}s-of-{}", self.namespace)
    }

    /// What an operator of this yard is called in the cluster's audit log.
    pub(crate) fn user(&self, identity: &str) -> String {
        format!("operator-{identity}-of-{}", self.namespace)
    }

    pub(crate) fn settings(&self, identity: &str) -> OperatorSettings {
        // Nothing routes to Services here: whatever a name says, the process is on this machine.
        let lookup: Lookup = Arc::new(|_| Box::pin(async { Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]) }));
        OperatorSettings {
            watch: Some(self.namespace.clone()),
            namespace: self.namespace.clone(),
            identity: identity.to_owned(),
            cluster_domain: "cluster.local".to_owned(),
            namespace_prefix: String::new(),
            resync: Duration::from_secs(600),
            lease: LONG_LEASE,
            lookup: Some(lookup),
        }
    }

    /// Starts an operator with the rights of the chart.
    pub(crate) async fn operator(&self) -> RunningOperator {
        self.operator_with(self.settings("one")).await
    }

    pub(crate) async fn operator_with(&self, settings: OperatorSettings) -> RunningOperator {
        self.operator_until(settings, usize::MAX).await.0
    }

    /// Starts one whose process dies right after so many writes, and counts them.
    pub(crate) async fn operator_until(
        &self,
        settings: OperatorSettings,
        writes: usize,
    ) -> (RunningOperator, Arc<Meter>) {
        let meter = Arc::new(Meter { left: AtomicUsize::new(writes), died: CancellationToken::new() });
        let client = self.client_as("operator", &settings.identity, Some(Arc::clone(&meter))).await;
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

    /// Gives the programs of this yard their rights in every namespace, as the chart does by default.
    pub(crate) async fn grant_everywhere(&self) {
        for program in ["operator", "sync"] {
            let group =
                json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": self.group(program) });
            let binding: ClusterRoleBinding = object(json!({
                "metadata": { "name": self.group(program) },
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": format!("yard:{program}") },
                "subjects": [group],
            }));
            Api::<ClusterRoleBinding>::all(self.admin.clone()).create(&PostParams::default(), &binding).await.unwrap();
            let tools: Api<LanguageTool> = Api::all(self.client_as(program, "probe", None).await);
            self.until("rights everywhere", async || tools.list(&ListParams::default().limit(1)).await.ok()).await;
        }
    }

    /// Makes the namespace, which may have been there before.
    pub(crate) async fn make_namespace(&self) {
        let space: Namespace = object(json!({ "metadata": { "name": self.namespace } }));
        Api::<Namespace>::all(self.admin.clone()).create(&PostParams::default(), &space).await.unwrap();
    }

    /// A client with the rights that the chart gives to a `sync`.
    pub(crate) async fn sync_client(&self, identity: &str) -> Client {
        self.client_as("sync", identity, None).await
    }

    /// A client with the rights of the chart; its writes are counted if somebody wants that.
    pub(crate) async fn client_as(&self, program: &str, identity: &str, meter: Option<Arc<Meter>>) -> Client {
        let mut kubeconfig = self.kubeconfig.clone();
        let info = kubeconfig.auth_infos[0].auth_info.get_or_insert_default();
        info.impersonate = Some(self.user(identity));
        info.impersonate_groups = Some(vec![self.group(program), "system:authenticated".to_owned()]);
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let builder = ClientBuilder::try_from(config).unwrap();
        match meter {
            Some(meter) => {
                let layer = tower::layer::layer_fn(move |inner| Metered { inner, meter: Arc::clone(&meter) });
                builder.with_layer(&layer).build()
            }
            None => builder.build(),
        }
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.admin.clone(), &self.namespace)
    }

    pub(crate) fn dynamic(&self, kind: &str) -> Api<DynamicObject> {
        let (group, version) = match kind {
            "LanguageTool" | "LanguageAgent" => ("langop.io", "v1alpha1"),
            "Tenant" | "ServerEntry" => ("quartermaster.dev", "v1alpha1"),
            "Deployment" => ("apps", "v1"),
            "NetworkPolicy" => ("networking.k8s.io", "v1"),
            "Lease" => ("coordination.k8s.io", "v1"),
            _ => ("", "v1"),
        };
        let mut resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match kind {
            "NetworkPolicy" => "networkpolicies".clone_into(&mut resource.plural),
            "ServerEntry" => "serverentries".clone_into(&mut resource.plural),
            _ => {}
        }
        Api::namespaced_with(self.admin.clone(), &self.namespace, &resource)
    }

    /// Writes a resource as a person would.
    pub(crate) async fn write(&self, kind: &str, name: &str, spec: Value) -> Result<DynamicObject, kube::Error> {
        let group = if kind.starts_with("Language") { "langop.io" } else { "quartermaster.dev" };
        let version = format!("{group}/v1alpha1");
        let resource = json!({ "apiVersion": version, "kind": kind, "metadata": { "name": name }, "spec": spec });
        let params = PatchParams::apply("person").force();
        self.dynamic(kind).patch(name, &params, &Patch::Apply(&resource)).await
    }

    pub(crate) async fn tool(&self, name: &str, spec: Value) {
        self.write("LanguageTool", name, spec).await.unwrap();
    }

    pub(crate) async fn agent(&self, name: &str, spec: Value) {
        self.write("LanguageAgent", name, spec).await.unwrap();
    }

    pub(crate) async fn delete(&self, kind: &str, name: &str) {
        self.dynamic(kind).delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// An object as it is, if it is there.
    pub(crate) async fn find(&self, kind: &str, name: &str) -> Option<Value> {
        let found = self.dynamic(kind).get_opt(name).await.unwrap();
        found.map(|found| serde_json::to_value(found).unwrap())
    }

    /// Waits until an object is as the test wants it.
    pub(crate) async fn see(&self, kind: &str, name: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
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

    /// Takes the lease away from an operator that was killed, as if its time were over.
    pub(crate) async fn end_lease(&self) {
        if self.find("Lease", "quartermaster-operator").await.is_some() {
            self.delete("Lease", "quartermaster-operator").await;
        }
    }

    pub(crate) async fn see_gone(&self, kind: &str, name: &str) {
        self.until(&format!("{kind} {name} to be gone"), async || self.find(kind, name).await.is_none().then_some(()))
            .await;
    }

    /// Waits until a condition has this status and reason, and is about the resource as it is now.
    pub(crate) async fn see_condition(&self, kind: &str, name: &str, condition: &str, want: (&str, &str)) -> Value {
        let what = format!("{condition} {want:?}");
        self.see(kind, name, &what, |object| {
            let found = condition_of(object, condition);
            let is_of_now = found["observedGeneration"] == object["metadata"]["generation"];
            is_of_now && (found["status"].as_str(), found["reason"].as_str()) == (Some(want.0), Some(want.1))
        })
        .await
    }

    pub(crate) async fn until<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
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
    pub(crate) fn audited(&self, user: &str) -> Vec<Audited> {
        let file = std::env::var_os("QUARTERMASTER_TEST_AUDIT_LOG").expect("the testbed names its audit log");
        let text = std::fs::read_to_string(file).unwrap();
        let entries = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        entries
            .filter(|entry| entry["impersonatedUser"]["username"] == user)
            // A watch is answered as long as it lasts.
            .filter(|entry| entry["stage"] == "ResponseComplete" || entry["verb"] == "watch")
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
    pub(crate) fn writes(&self, user: &str) -> Vec<Audited> {
        let is_write =
            |one: &Audited| !["get", "list", "watch"].contains(&one.verb.as_str()) && one.resource != "leases";
        self.audited(user).into_iter().filter(is_write).collect()
    }
}

/// What a test made goes when it is over; one that failed leaves it to be looked at.
impl Drop for Yard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let namespaces: Api<Namespace> = Api::all(self.admin.clone());
        let deleting = async { namespaces.delete(&self.namespace, &DeleteParams::default()).await };
        let deleted = tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(deleting));
        if let Err(error) = deleted {
            eprintln!("the namespace {} stays: {error}", self.namespace);
        }
    }
}

/// One request in the audit log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Audited {
    pub(crate) verb: String,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) name: String,
    pub(crate) status: u64,
}

impl RunningOperator {
    /// Stops it in order.
    pub(crate) async fn stop(self) -> bool {
        self.stopping.cancel();
        self.ended().await
    }

    /// Ends it in the middle of whatever it does.
    pub(crate) fn kill(mut self) {
        self.task.abort_all();
    }

    /// Waits until it has ended by itself.
    pub(crate) async fn ended(mut self) -> bool {
        self.task.join_next().await.unwrap().unwrap().unwrap()
    }
}

/// How many writes are left to an operator.
pub(crate) struct Meter {
    pub(crate) left: AtomicUsize,
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

pub(crate) fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A condition of a resource, or nothing.
pub(crate) fn condition_of(object: &Value, condition: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|one| one["type"] == condition).cloned().unwrap_or_default()
}

/// A template with one container.
pub(crate) fn template() -> Value {
    json!({ "spec": { "containers": [{ "name": "agent", "image": "registry.example/agent:1" }] } })
}

/// An agent of that template with these tools.
pub(crate) fn using(tools: &[&str]) -> Value {
    let tools: Vec<Value> = tools.iter().map(|name| json!({ "name": name })).collect();
    json!({ "tools": tools, "template": template() })
}
