//! Starts the controllers, while the lease is ours.

use crate::context::{Context, OperatorSettings};
use crate::lease::Candidate;
use crate::names;
use crate::resources::{LanguageAgent, LanguageTool, ServerEntry, TenantResource};
use crate::serve::Reached;
use crate::tenant::replicas::{REPLICA_LABEL, ReplicaReport, report_of};
use crate::tenant::tenant_of;
use crate::tool::reconcile::ReconcileError;
use crate::{agent, tenant, tool};
use futures_util::StreamExt;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::Api;
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Client, Resource, ResourceExt};
use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use telemetry::{metrics, names as attributes};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// Resources that are looked at at once.
const AT_ONCE: u16 = 8;
/// Several changes in a row are one look.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Acts while the lease is ours, until told to stop. `false`: the lease was lost, and the process should begin anew.
pub async fn run(
    client: Client,
    settings: OperatorSettings,
    reached: &Reached,
    stopping: CancellationToken,
) -> Result<bool, kube::Error> {
    let mut candidate = Candidate::new(&client, &settings.namespace, &settings.identity, settings.lease);
    candidate.reach().await?;
    reached.store(true, Ordering::Relaxed);
    tracing::info!(identity = settings.identity, "waiting for the lease");
    if !candidate.win(&stopping).await {
        return Ok(true);
    }
    metrics::OPERATOR_LEADER.set([], 1.0);
    tracing::info!(identity = settings.identity, "acting");
    let acting = controllers(client, settings, stopping.clone());
    let kept = tokio::select! {
        () = acting => true,
        () = candidate.keep() => false,
    };
    metrics::OPERATOR_LEADER.set([], 0.0);
    if kept {
        candidate.release().await?;
    } else {
        tracing::error!("the lease was lost");
    }
    Ok(kept)
}

/// All controllers, until told to stop; what is under way is finished then.
async fn controllers(client: Client, settings: OperatorSettings, stopping: CancellationToken) {
    let context = Arc::new(Context::new(client, settings));
    tokio::join!(
        agents(&context, stopping.clone()),
        tools(&context, stopping.clone()),
        tenants(&context, stopping.clone()),
        entries(&context, stopping),
    );
}

async fn tools(context: &Arc<Context>, stopping: CancellationToken) {
    let made = watcher::Config::default().labels(&names::managed());
    // Whom an agent refers to, and whom it did until now: a policy is closed, too.
    let used = |agent: LanguageAgent| {
        let namespace = agent.namespace().unwrap_or_default();
        let before = agent.status.unwrap_or_default().tools.into_iter().map(|tool| tool.name);
        let names: Vec<String> = agent.spec.tools.into_iter().map(|tool| tool.name).chain(before).collect();
        names.into_iter().map(move |name| ObjectRef::new(&name).within(&namespace)).collect::<Vec<_>>()
    };
    let controller = Controller::new(api::<LanguageTool>(context), watcher::Config::default());
    let store = controller.store();
    // An entry may have named another tool before, so all of the namespace are looked at.
    let served = move |entry: ServerEntry| {
        let is_there = |tool: &&Arc<LanguageTool>| tool.namespace() == entry.namespace();
        store.state().iter().filter(is_there).map(|tool| ObjectRef::from_obj(tool.as_ref())).collect::<Vec<_>>()
    };
    controller
        .with_config(config())
        .owns(api::<Deployment>(context), made.clone())
        .owns(api::<Service>(context), made.clone())
        .owns(api::<NetworkPolicy>(context), made)
        .watches(api::<LanguageAgent>(context), watcher::Config::default(), used)
        .watches(api::<ServerEntry>(context), watcher::Config::default(), served)
        .graceful_shutdown_on(stopping.cancelled_owned())
        .run(|tool, context| observed(tool::reconcile::reconcile, tool, context), give_up, Arc::clone(context))
        .for_each(|outcome| async move { log(outcome.err()) })
        .await;
}

async fn agents(context: &Arc<Context>, stopping: CancellationToken) {
    let made = watcher::Config::default().labels(&names::managed());
    let controller = Controller::new(api::<LanguageAgent>(context), watcher::Config::default());
    let store = controller.store();
    let users = move |tool: LanguageTool| {
        let uses = |agent: &&Arc<LanguageAgent>| {
            agent.namespace() == tool.namespace() && agent.spec.tools.iter().any(|used| used.name == tool.name_any())
        };
        store.state().iter().filter(uses).map(|agent| ObjectRef::from_obj(agent.as_ref())).collect::<Vec<_>>()
    };
    controller
        .with_config(config())
        .owns(api::<Deployment>(context), made.clone())
        .owns(api::<ConfigMap>(context), made)
        .watches(api::<LanguageTool>(context), watcher::Config::default(), users)
        .graceful_shutdown_on(stopping.cancelled_owned())
        .run(|agent, context| observed(agent::reconcile::reconcile, agent, context), give_up, Arc::clone(context))
        .for_each(|outcome| async move { log(outcome.err()) })
        .await;
}

async fn tenants(context: &Arc<Context>, stopping: CancellationToken) {
    let controller = Controller::new(api::<TenantResource>(context), watcher::Config::default());
    let prefix = context.settings.namespace_prefix.clone();
    let of_namespace = move |namespace: Option<String>| {
        let namespace = namespace.unwrap_or_default();
        let tenant = tenant_of(&namespace, &prefix);
        tenant.map(|tenant| ObjectRef::<TenantResource>::new(tenant).within(&namespace))
    };
    let (of_entry, of_tool) = (of_namespace.clone(), of_namespace);
    // A lease is renewed all the time: only what it reports anew is a reason to look.
    let (known, store) = (Mutex::new(HashMap::<String, (String, ReplicaReport)>::new()), controller.store());
    let reported = move |lease: Lease| {
        let report = report_of(&lease);
        let renewed = format!("{:?}", lease.spec.as_ref().and_then(|spec| spec.renew_time.clone()));
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match known.insert(lease.name_any(), (renewed.clone(), report.clone())) {
            // It is heard of without being renewed: it is gone. Like one that is new it counts for every tenant.
            Some((same, _)) if same == renewed => {
                known.remove(&lease.name_any());
                None
            }
            other => other.map(|(_, report)| report),
        };
        let is_other = |tenant: &&Arc<TenantResource>| match &before {
            Some(before) => before.get(&tenant.name_any()) != report.get(&tenant.name_any()),
            None => true,
        };
        store.state().iter().filter(is_other).map(|tenant| ObjectRef::from_obj(tenant.as_ref())).collect::<Vec<_>>()
    };
    let leases: Api<Lease> = Api::namespaced(context.client.clone(), &context.settings.namespace);
    controller
        .with_config(config())
        .watches(api::<ServerEntry>(context), watcher::Config::default(), move |entry| of_entry(entry.namespace()))
        .watches(api::<LanguageTool>(context), watcher::Config::default(), move |tool| of_tool(tool.namespace()))
        .watches(leases, watcher::Config::default().labels(REPLICA_LABEL), reported)
        .graceful_shutdown_on(stopping.cancelled_owned())
        .run(|tenant, context| observed(tenant::reconcile::reconcile, tenant, context), give_up, Arc::clone(context))
        .for_each(|outcome| async move { log(outcome.err()) })
        .await;
}

async fn entries(context: &Arc<Context>, stopping: CancellationToken) {
    let controller = Controller::new(api::<ServerEntry>(context), watcher::Config::default());
    let store = controller.store();
    let of_namespace = move |namespace: Option<String>| {
        let is_there = |entry: &&Arc<ServerEntry>| entry.namespace() == namespace;
        store.state().iter().filter(is_there).map(|entry| ObjectRef::from_obj(entry.as_ref())).collect::<Vec<_>>()
    };
    let of_tool = of_namespace.clone();
    controller
        .with_config(config())
        .watches(api::<TenantResource>(context), watcher::Config::default(), move |tenant| {
            of_namespace(tenant.namespace())
        })
        .watches(api::<LanguageTool>(context), watcher::Config::default(), move |tool| of_tool(tool.namespace()))
        .graceful_shutdown_on(stopping.cancelled_owned())
        .run(|entry, context| observed(tenant::entry::reconcile, entry, context), give_up, Arc::clone(context))
        .for_each(|outcome| async move { log(outcome.err()) })
        .await;
}

fn config() -> Config {
    Config::default().concurrency(AT_ONCE).debounce(DEBOUNCE)
}

fn api<K>(context: &Context) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match &context.settings.watch {
        Some(namespace) => Api::namespaced(context.client.clone(), namespace),
        None => Api::all(context.client.clone()),
    }
}

/// One look, with its span and its figures.
async fn observed<K, F>(
    look: impl FnOnce(Arc<K>, Arc<Context>) -> F,
    of: Arc<K>,
    context: Arc<Context>,
) -> Result<Action, ReconcileError>
where
    K: Resource<DynamicType = ()>,
    F: Future<Output = Result<Action, ReconcileError>>,
{
    let kind = K::kind(&());
    let span = tracing::info_span!(
        "reconcile",
        { attributes::OTEL_NAME } = format!("reconcile {kind}"),
        { attributes::ERROR_TYPE } = tracing::field::Empty,
    );
    let began = Instant::now();
    let outcome = look(of, context).instrument(span.clone()).await;
    if outcome.is_err() {
        span.record(attributes::ERROR_TYPE, "reconcile_failed");
    }
    metrics::OPERATOR_RECONCILES.observe_since([&kind, if outcome.is_ok() { "done" } else { "failed" }], began);
    outcome
}

fn give_up<K: Resource<DynamicType = ()>>(of: Arc<K>, error: &ReconcileError, context: Arc<Context>) -> Action {
    let (kind, name) = (K::kind(&()), of.name_any());
    tracing::warn!(%kind, name, error = error as &dyn std::error::Error, "a resource could not be reconciled");
    context.after_failure(&of.uid().unwrap_or_default())
}

/// What the machinery beneath says; failures of looks are told by [`give_up`].
fn log<E: std::error::Error + 'static>(error: Option<kube::runtime::controller::Error<ReconcileError, E>>) {
    if let Some(kube::runtime::controller::Error::QueueError(error)) = error {
        tracing::warn!(error = error.to_string(), "a watch was interrupted, and begins anew");
    }
}
