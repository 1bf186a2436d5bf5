//! `k8s_logs`: what one pod, or all pods of a selector, wrote last.
//!
//! Every line is masked before the search expression sees it. Lines of several containers are merged by the time the
//! kubelet gave them; what is cut is the oldest, and a cursor goes back to it.

mod merge;

use super::at;
use super::grammar::{Label, ObjectName, Span};
use super::grep::Grep;
use super::reply::{ClusterNote, ClusterReplyFields, ROOM, size_of};
use super::selector::LabelSelector;
use super::{K8sDeps, TOOLSET};
use crate::client::{Cluster, KindScope, ListQuery, LogQuery, MaskDetail, ResourceRef};
use crate::codes;
use catalog::{Progress, Tool, ToolSpec};
use domain::outcome::near;
use domain::{Code, Effect, Failure};
use futures_util::{StreamExt, stream};
use merge::{MergedLog, PodLogLine};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use target::cursor::Cursor;

const TAIL: u32 = 100;
const MOST_PODS: usize = 20;
const MOST_CONTAINERS: usize = 40;
/// Containers that are asked at the same time.
const AT_ONCE: usize = 5;
/// How far back cursors lead, in lines of one container.
const DEEPEST: u32 = 20_000;

pub(super) struct PodLogsTool {
    pub(super) kit: K8sDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    pod: Option<ObjectName>,
    selector: Option<LabelSelector>,
    namespace: Option<Label>,
    container: Option<Label>,
    #[schemars(range(min = 1, max = 2_000), extend("x-wire" = ["maximum"]))]
    tail: Option<u32>,
    since: Option<Span>,
    grep: Option<Grep>,
    previous: Option<bool>,
    cursor: Option<Cursor>,
    cluster: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PodLogsOutput {
    streams: Vec<LogStream>,
    /// The lines in the order of time; each with pod and container if there are several.
    text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<SkippedContainer>,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LogStream {
    pod: String,
    container: String,
    /// How many of its lines are shown.
    lines: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SkippedContainer {
    pod: String,
    container: String,
    why: String,
}

/// One container that is read.
#[derive(Clone)]
struct LogSource {
    pod: ResourceRef,
    container: String,
}

/// What one container gave.
struct ContainerLog {
    lines: Vec<PodLogLine>,
    /// There may be older lines than these.
    older: bool,
}

/// Where older lines begin: before this time, this many lines back.
#[derive(Debug, Default, Serialize, Deserialize)]
struct PodLogsPageToken {
    before: Option<String>,
    depth: u32,
}

impl Tool for PodLogsTool {
    const SPEC: ToolSpec = ToolSpec::new("k8s_logs", TOOLSET, Effect::Read)
        .says("Read pod logs", "Logs of one pod, or of all pods matching selector. grep is a regex; since like 15m.")
        .hint(
            "For agents that find out why something fails; other people write into logs, so the first one read taints \
             the session, which approvers see.",
        )
        .idempotent()
        .outside_text();
    type Args = Args;
    type Output = PodLogsOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<PodLogsOutput, Failure> {
        let spot: PodLogsPageToken = self.kit.cursors.resume(permit, &args, args.cursor.as_ref())?.unwrap_or_default();
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let kind = cluster.kind("v1/Pod").await?;
        let place = at::place(&cluster, &kind, args.namespace.as_ref()).await?;
        let sources = sources(&cluster, &place, &args).await?;
        let single = args.pod.is_some();

        let (mut drawn, mut skipped) = (Vec::new(), Vec::new());
        let answers: Vec<(LogSource, Result<ContainerLog, Failure>)> =
            stream::iter(sources).map(|source| draw(&cluster, source, &args, &spot)).buffered(AT_ONCE).collect().await;
        for (source, answer) in answers {
            match answer {
                Ok(lines) => drawn.push((source, lines)),
                Err(failure) if single => return Err(failure),
                // One container that has not begun does not hide the others, but it is told.
                Err(failure) => skipped.push(SkippedContainer {
                    pod: source.pod.name().to_owned(),
                    container: source.container,
                    why: failure.message,
                }),
            }
        }
        let named = (args.cluster.is_some(), args.namespace.is_some());
        let common = ClusterNote::answer_at(&cluster, &place, named);
        self.told(permit, &args, spot, common, (drawn, skipped))
    }
}

impl PodLogsTool {
    fn told(
        &self,
        permit: &Permit,
        args: &Args,
        spot: PodLogsPageToken,
        mut common: ClusterReplyFields,
        (drawn, skipped): (Vec<(LogSource, ContainerLog)>, Vec<SkippedContainer>),
    ) -> Result<PodLogsOutput, Failure> {
        let older = drawn.iter().any(|(_, drawn)| drawn.older);
        let several = drawn.len() > 1;
        let label = |source: &LogSource| format!("{}/{}", source.pod.name(), source.container);
        let labels: Vec<Option<String>> = drawn.iter().map(|(source, _)| several.then(|| label(source))).collect();
        let lines: Vec<Vec<PodLogLine>> = drawn.iter().map(|(_, drawn)| drawn.lines.clone()).collect();
        // What is said about the streams is paid for before their lines.
        let named = drawn.iter().map(|(source, _)| label(source).len() + 40).sum::<usize>() + size_of(&skipped);
        let room = ROOM.saturating_sub(named);
        let MergedLog { text, shown, cut, oldest } = merge::newest(lines, &labels, args.grep.as_ref(), room);
        let streams = drawn.iter().zip(&shown).map(|((source, _), lines)| LogStream {
            pod: source.pod.name().to_owned(),
            container: source.container.clone(),
            lines: *lines,
        });
        let streams = streams.collect();
        let depth = spot.depth + args.tail.unwrap_or(TAIL);
        if let Some(before) = oldest.filter(|_| (cut > 0 || older) && depth < DEEPEST) {
            let spot = PodLogsPageToken { before: Some(before), depth };
            common.next_cursor = Some(self.kit.cursors.seal(permit, args, &spot)?);
        }
        common.cut_lines(cut, "narrow with grep, since, tail or container");
        Ok(PodLogsOutput { streams, text, skipped, common })
    }
}

/// The containers that are read.
async fn sources(cluster: &Cluster<'_>, place: &KindScope, args: &Args) -> Result<Vec<LogSource>, Failure> {
    let wanted = args.container.as_ref().map(Label::as_str);
    match (&args.pod, &args.selector) {
        (Some(name), None) => {
            let target = at::target(place, name)?;
            let pod = at::get(cluster, place, &target, MaskDetail::Clean).await?;
            let container = one_container(&pod, wanted)?;
            Ok(vec![LogSource { pod: target, container }])
        }
        (None, Some(selector)) => {
            let limit = u32::try_from(MOST_PODS + 1).unwrap_or_default();
            let query = ListQuery { labels: Some(selector.as_str().to_owned()), limit, ..ListQuery::default() };
            let pods = cluster.list(place, &query, MaskDetail::Clean).await?.items;
            let mut sources = Vec::new();
            for pod in &pods {
                let Some(name) = pod["metadata"]["name"].as_str() else { continue };
                let target = place.object(name)?;
                let names = containers(pod).into_iter().filter(|name| wanted.is_none_or(|wanted| wanted == name));
                sources.extend(names.map(|container| LogSource { pod: target.clone(), container }));
            }
            if pods.len() > MOST_PODS || sources.len() > MOST_CONTAINERS {
                return Err(too_many(pods.len(), sources.len()));
            }
            match (sources.is_empty(), pods.first(), wanted) {
                (true, Some(pod), Some(wanted)) => Err(no_container(wanted, &containers(pod))),
                (true, None, _) => Err(Failure::new(Code::NotFound, "no pod matches the selector")
                    .next("look at the labels with k8s_get kind=Pod view=full, or use pod")),
                (_, _, _) => Ok(sources),
            }
        }
        (_, _) => {
            Err(Failure::new(Code::InvalidArgument, "give exactly one of pod and selector").next("leave one out"))
        }
    }
}

/// The names of a pod's containers, those that prepare it last.
fn containers(pod: &Value) -> Vec<String> {
    ["containers", "initContainers", "ephemeralContainers"]
        .iter()
        .flat_map(|list| pod["spec"][list].as_array().into_iter().flatten())
        .filter_map(|c| c["name"].as_str().map(str::to_owned))
        .collect()
}

pub(super) fn one_container(pod: &Value, wanted: Option<&str>) -> Result<String, Failure> {
    let all = containers(pod);
    let main = pod["spec"]["containers"].as_array().map_or(0, Vec::len);
    match (wanted, main) {
        (Some(wanted), _) if all.iter().any(|name| name == wanted) => Ok(wanted.to_owned()),
        (Some(wanted), _) => Err(no_container(wanted, &all)),
        (None, 1) => Ok(all.into_iter().next().unwrap_or_default()),
        (None, _) => Err(Failure::new(codes::CONTAINER_REQUIRED, "the pod has several containers; name one")
            .next(format!("set container to one of: {}", all.join(", ")))
            .details(json!({ "containers": all }))),
    }
}

fn no_container(wanted: &str, all: &[String]) -> Failure {
    Failure::new(codes::CONTAINER_NOT_FOUND, format!("the pod has no container {wanted}"))
        .next(format!("set container to one of: {}", all.join(", ")))
        .did_you_mean(near(wanted, all.iter().map(String::as_str)))
}

fn too_many(pods: usize, containers: usize) -> Failure {
    let message = match pods > MOST_PODS {
        true => format!("more than {MOST_PODS} pods match"),
        false => format!("{containers} containers match and {MOST_CONTAINERS} can be read at once"),
    };
    Failure::new(codes::TOO_MANY_PODS, message).next("narrow the selector, or name container or pod")
}

/// The last lines of one container, masked.
async fn draw(
    cluster: &Cluster<'_>,
    source: LogSource,
    args: &Args,
    spot: &PodLogsPageToken,
) -> (LogSource, Result<ContainerLog, Failure>) {
    let drawn = lines(cluster, &source, args, spot).await;
    (source, drawn)
}

async fn lines(
    cluster: &Cluster<'_>,
    source: &LogSource,
    args: &Args,
    spot: &PodLogsPageToken,
) -> Result<ContainerLog, Failure> {
    let mut tail = args.tail.unwrap_or(TAIL) + spot.depth;
    loop {
        let query = LogQuery {
            container: Some(source.container.clone()),
            tail: Some(tail),
            since_s: args.since.as_ref().map(|since| since.duration().as_secs()),
            previous: args.previous.unwrap_or_default(),
            timestamps: true,
        };
        let logs = cluster.logs(&source.pod, &query).await?;
        // A bounded answer is cut at its end, where the newest lines are; fewer and newer ones are worth more.
        if logs.truncated && tail > 8 && spot.depth == 0 {
            tail /= 4;
            continue;
        }
        let full = logs.lines.len() >= usize::try_from(tail).unwrap_or(usize::MAX);
        let mut lines = merge::masked(&logs.lines);
        if let Some(before) = &spot.before {
            lines.retain(|line| line.at.as_str() < before.as_str());
        }
        return Ok(ContainerLog { lines, older: full || logs.truncated });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_with_several_containers_wants_one_named() {
        let pod = json!({ "spec": { "containers": [{ "name": "web" }, { "name": "proxy" }], "initContainers": [{ "name": "setup" }] } });
        assert_eq!(one_container(&pod, Some("setup")).unwrap(), "setup");
        let failure = one_container(&pod, None).unwrap_err();
        assert_eq!(
            (failure.code, failure.next.as_deref()),
            (codes::CONTAINER_REQUIRED, Some("set container to one of: web, proxy, setup"))
        );
        let failure = one_container(&pod, Some("wep")).unwrap_err();
        assert_eq!((failure.code, failure.did_you_mean), (codes::CONTAINER_NOT_FOUND, vec!["web".to_owned()]));
        let one = json!({ "spec": { "containers": [{ "name": "web" }], "initContainers": [{ "name": "setup" }] } });
        assert_eq!(one_container(&one, None).unwrap(), "web");
    }
}
