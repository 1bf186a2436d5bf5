//! `k8s_wait`: waits until an object is as wished, or for a while.
//!
//! Not having come true in time is an answer, not a failure.

use super::at;
use super::get::events;
use super::grammar::{KindText, Label, ObjectName};
use super::reply::{ClusterNote, ClusterReplyFields};
use super::until::{WaitCondition, WaitProgress};
use super::{K8sDeps, TOOLSET};
use crate::client::{Cluster, ResourceRef};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Code, Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

const TIMEOUT: u64 = 60;
const LONGEST: u64 = 300;
/// What is left after the wait itself for a last look.
const AFTER: Duration = Duration::from_secs(30);

pub(super) struct Wait {
    pub(super) kit: K8sDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    kind: Option<KindText>,
    name: Option<ObjectName>,
    namespace: Option<Label>,
    until: Option<WaitCondition>,
    #[schemars(range(min = 1, max = 300), extend("x-wire" = ["maximum"]))]
    timeout_s: Option<u64>,
    cluster: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WaitOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<bool>,
    waited_s: u64,
    /// How it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_event: Option<String>,
    /// The watch broke and the object was read anew, so often.
    #[serde(skip_serializing_if = "Option::is_none")]
    relists: Option<u32>,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

impl Tool for Wait {
    const SPEC: ToolSpec = ToolSpec::new("k8s_wait", TOOLSET, Effect::Read)
        .says(
            "Wait for a condition",
            "Wait for a condition: Ready, Available, Complete, rollout, deleted or status.phase=Running. Without kind, sleep.",
        )
        .hint(
            "For agents that act and then check, or that follow somebody else's deployment; a call may last minutes \
             and holds no call slot, but only so many calls of one caller may wait at once.",
        )
        .idempotent()
        .waits()
        .deadline(Duration::from_secs(LONGEST + 30));
    type Args = Args;
    type Output = WaitOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    fn about(args: &Args) -> Option<String> {
        args.kind.as_ref().map(KindText::about)
    }

    async fn run(&self, permit: &Permit, args: Args, progress: &Progress) -> Result<WaitOutput, Failure> {
        let timeout = Duration::from_secs(args.timeout_s.unwrap_or(TIMEOUT));
        let (kind, name) = match (&args.kind, &args.name) {
            (Some(kind), Some(name)) => (kind, name),
            (None, None) if args.until.is_none() => {
                tokio::time::sleep(timeout).await;
                return Ok(slept(timeout));
            }
            (_, _) => {
                return Err(Failure::new(Code::InvalidArgument, "kind and name belong together, and until needs both")
                    .next("give kind and name, or neither to sleep"));
            }
        };
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?.within(timeout);
        let kind = at::kind(&cluster, permit, kind).await?;
        let until = args.until.clone().unwrap_or_default();
        until.suits(kind.kind())?;
        let place = at::place(&cluster, &kind, args.namespace.as_ref()).await?;
        let target = at::target(&place, name)?;
        let began = Instant::now();
        let (mut judged, mut seen) = (WaitProgress::default(), false);
        let waited = cluster
            .wait(&target, |object| {
                seen |= object.is_some();
                judged = until.judge(kind.kind(), object);
                progress.report(began.elapsed().as_secs(), Some(timeout.as_secs()), Some(&judged.state));
                // A thing that is not there, and not waited for, will not come by waiting for something else.
                judged.met || judged.hopeless || (object.is_none() && !until.allows_absence())
            })
            .await?;
        let cluster = cluster.within(AFTER);
        if waited.object.is_none() && !until.allows_absence() && !seen {
            return Err(at::not_found(&cluster, &place, &target).await);
        }
        let named = (args.cluster.is_some(), args.namespace.is_some());
        let mut common = ClusterNote::answer_at(&cluster, &place, named);
        if judged.hopeless {
            common.hint = Some("it will not come true by waiting; look at it with k8s_get view=describe".to_owned());
        }
        let last_event = match &waited.object {
            Some(object) if !judged.met => self.last_event(&cluster, &target, object).await,
            Some(_) | None => None,
        };
        Ok(WaitOutput {
            met: Some(judged.met),
            waited_s: began.elapsed().as_secs(),
            state: Some(judged.state),
            last_event,
            relists: Some(waited.relists).filter(|n| *n > 0),
            common,
        })
    }
}

impl Wait {
    /// The newest thing that happened to it, for a wait that did not end well. Nice to have, so it never fails the call.
    async fn last_event(&self, cluster: &Cluster<'_>, target: &ResourceRef, object: &Value) -> Option<String> {
        let events = events(cluster, target, object, self.kit.cursors.now()).await.ok()?;
        let newest = events.first()?;
        let text = |key: &str| newest.get(key).and_then(Value::as_str).unwrap_or_default();
        Some(format!("{}: {}", text("reason"), text("message")))
    }
}

fn slept(timeout: Duration) -> WaitOutput {
    let waited_s = timeout.as_secs();
    WaitOutput {
        met: None,
        waited_s,
        state: None,
        last_event: None,
        relists: None,
        common: ClusterReplyFields::default(),
    }
}
