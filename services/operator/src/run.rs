//! Starts the controllers, while the lease is ours.

use crate::context::{Context, OperatorSettings};
use crate::lease::Candidate;
use crate::names;
use crate::resources::{LanguageAgent, LanguageTool};
use crate::serve::Reached;
use crate::tool::reconcile::ReconcileError;
use crate::{agent, tool};
use futures_util::StreamExt;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::Api;
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Client, Resource, ResourceExt};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
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

/// Both controllers, until told to stop; what is under way is finished then.
async fn controllers(client: Client, settings: OperatorSettings, stopping: CancellationToken) {
    let context = Arc::new(Context::new(client, settings));
    tokio::join!(agents(&context, stopping.clone()), tools(&context, stopping));
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
    Controller::new(api::<LanguageTool>(context), watcher::Config::default())
        .with_config(config())
        .owns(api::<Deployment>(context), made.clone())
        .owns(api::<Service>(context), made.clone())
        .owns(api::<NetworkPolicy>(context), made)
        .watches(api::<LanguageAgent>(context), watcher::Config::default(), used)
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
    match error {
        Some(kube::runtime::controller::Error::QueueError(error)) => {
            tracing::warn!(error = error.to_string(), "a watch was interrupted, and begins anew");
        }
        Some(_) | None => {}
    }
}
