//! `k8s_top`: how much CPU and memory pods or nodes use.

use super::at;
use super::grammar::{Label, Namespaces, ObjectName};
use super::measure::{cpu_milli, memory_mi, percent};
use super::reply::{ClusterNote, ClusterReplyFields, MOST_ROWS, ROOM, size_of};
use super::selector::LabelSelector;
use super::{K8sDeps, TOOLSET};
use crate::client::{Cluster, KindScope, ListQuery, MaskDetail, MetricsSubject};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Code, Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;

/// How many are looked at to find those that use most, and in which steps.
const MOST: usize = 5_000;
const PAGE: u32 = 500;

pub(super) struct Top {
    pub(super) kit: K8sDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    of: TopSubject,
    name: Option<ObjectName>,
    namespace: Option<Namespaces>,
    selector: Option<LabelSelector>,
    containers: Option<bool>,
    sort: Option<TopSort>,
    cluster: Option<Label>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum TopSubject {
    Pods,
    Nodes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum TopSort {
    Cpu,
    Memory,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TopOutput {
    items: Vec<Usage>,
    /// The time the figures are averages over.
    #[serde(skip_serializing_if = "Option::is_none")]
    window_s: Option<u64>,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

/// What one uses, and how much of what it may use.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Usage {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    cpu_m: u64,
    memory_mi: u64,
    /// Of a node's allocatable; of a pod's limits, else of its requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_pct: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_pct: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    containers: Vec<UsageShare>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct UsageShare {
    name: String,
    cpu_m: u64,
    memory_mi: u64,
}

impl Tool for Top {
    const SPEC: ToolSpec = ToolSpec::new("k8s_top", TOOLSET, Effect::Read)
        .says("CPU and memory use", "CPU and memory use.")
        .hint(
            "For agents that judge capacity or chase a leak; it needs the metrics API in the cluster and shows \
             this moment only, so give it together with a monitoring server where trends matter.",
        )
        .idempotent();
    type Args = Args;
    type Output = TopOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    fn about(args: &Args) -> Option<String> {
        let word = match args.of {
            TopSubject::Pods => "pods",
            TopSubject::Nodes => "nodes",
        };
        Some(word.to_owned())
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<TopOutput, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let (measured, bounded_by) = match args.of {
            TopSubject::Pods => (MetricsSubject::Pods, "v1/Pod"),
            TopSubject::Nodes => (MetricsSubject::Nodes, "v1/Node"),
        };
        let metrics = cluster.metrics(measured).await?;
        let place = at::places(&cluster, &metrics, args.namespace.as_ref()).await?;
        let kind = cluster.kind(bounded_by).await?;
        let bounds = at::places(&cluster, &kind, args.namespace.as_ref()).await?;
        let named = (args.cluster.is_some(), args.namespace.is_some());
        let mut common = ClusterNote::answer_at(&cluster, &place, named);

        let (usages, objects) = match &args.name {
            Some(name) => {
                // The thing itself is asked for first: a typo is told as such, and not as a missing figure.
                let target = at::target(&bounds, name)?;
                let object = at::get(&cluster, &bounds, &target, MaskDetail::Clean).await?;
                let usage = cluster.get(&at::target(&place, name)?, MaskDetail::Clean).await.map_err(not_measured)?;
                (vec![usage], vec![object])
            }
            None => {
                let (usages, more) = all(&cluster, &place, args.selector.as_ref()).await?;
                let (objects, _) = all(&cluster, &bounds, args.selector.as_ref()).await?;
                if more {
                    common.warnings.push(format!("only the first {MOST} were looked at"));
                }
                (usages, objects)
            }
        };
        let everywhere = args.namespace.as_ref().is_some_and(Namespaces::is_all);
        let allowed: HashMap<(String, String), (Option<u64>, Option<u64>)> =
            objects.iter().map(|object| (key(object), allowance(args.of, object))).collect();
        let window_s = usages.first().and_then(|u| u["window"].as_str()).and_then(seconds);
        let with = args.containers.unwrap_or_default();
        let one = |usage: &Value| {
            let (cpu, memory) = allowed.get(&key(usage)).copied().unwrap_or_default();
            usage_of(args.of, usage, (cpu, memory), (everywhere, with))
        };
        let mut items: Vec<Usage> = usages.iter().map(one).collect();
        items.sort_by_key(|u| {
            let by = match args.sort.unwrap_or(TopSort::Cpu) {
                TopSort::Cpu => u.cpu_m,
                TopSort::Memory => u.memory_mi,
            };
            (std::cmp::Reverse(by), u.name.clone())
        });
        let fit = fitting(&items);
        let left = items.len() - fit;
        items.truncate(fit);
        common.cut_items(left, "narrow with namespace, selector or name");
        common.untrusted = false;
        Ok(TopOutput { items, window_s, common })
    }
}

/// How many of them an answer can hold.
fn fitting(items: &[Usage]) -> usize {
    let mut used = 0;
    let fits = |item: &&Usage| {
        used += size_of(item) + 1;
        used <= ROOM
    };
    items.iter().take(MOST_ROWS).take_while(fits).count()
}

fn not_measured(failure: Failure) -> Failure {
    if failure.code != Code::NotFound {
        return failure;
    }
    Failure::new(crate::codes::METRICS_UNAVAILABLE, "there are no figures for it yet")
        .next("figures come a minute after the start; call again then")
}

/// Everything at a place, up to the bound; and whether there is more.
async fn all(
    cluster: &Cluster<'_>,
    place: &KindScope,
    selector: Option<&LabelSelector>,
) -> Result<(Vec<Value>, bool), Failure> {
    let labels = selector.map(|s| s.as_str().to_owned());
    let mut query = ListQuery { labels, limit: PAGE, ..ListQuery::default() };
    let mut items = Vec::new();
    loop {
        let page = cluster.list(place, &query, MaskDetail::Clean).await?;
        items.extend(page.items.into_iter().map(lean));
        query.cursor = page.cursor;
        match query.cursor {
            None => return Ok((items, false)),
            Some(_) if items.len() >= MOST => return Ok((items, true)),
            Some(_) => {}
        }
    }
}

/// What is kept of an object while thousands are held: names, figures and bounds.
fn lean(mut object: Value) -> Value {
    let resources = |container: &Value| serde_json::json!({ "resources": container["resources"] });
    let containers: Vec<Value> = object["spec"]["containers"].as_array().into_iter().flatten().map(resources).collect();
    serde_json::json!({
        "metadata": { "name": object["metadata"]["name"].take(), "namespace": object["metadata"]["namespace"].take() },
        "spec": { "containers": containers },
        "status": { "allocatable": object["status"]["allocatable"].take() },
        "containers": object["containers"].take(),
        "usage": object["usage"].take(),
        "window": object["window"].take(),
    })
}

fn key(object: &Value) -> (String, String) {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

/// How much an object may use: CPU in thousandths, memory in mebibytes.
fn allowance(of: TopSubject, object: &Value) -> (Option<u64>, Option<u64>) {
    let quantity = |value: &Value, read: fn(&str) -> Option<u64>| value.as_str().and_then(read);
    match of {
        TopSubject::Nodes => {
            let allocatable = &object["status"]["allocatable"];
            (quantity(&allocatable["cpu"], cpu_milli), quantity(&allocatable["memory"], memory_mi))
        }
        TopSubject::Pods => {
            let containers = object["spec"]["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
            let sum = |bound: &str, what: &str, read: fn(&str) -> Option<u64>| -> Option<u64> {
                // One container without a bound means that the pod has none.
                let each = containers.iter().map(|c| quantity(&c["resources"][bound][what], read));
                each.sum::<Option<u64>>().filter(|sum| *sum > 0)
            };
            let bound = |what: &str, read| sum("limits", what, read).or_else(|| sum("requests", what, read));
            (bound("cpu", cpu_milli), bound("memory", memory_mi))
        }
    }
}

fn usage_of(
    of: TopSubject,
    usage: &Value,
    (cpu, memory): (Option<u64>, Option<u64>),
    (everywhere, with): (bool, bool),
) -> Usage {
    let figures = |value: &Value| {
        let quantity =
            |key: &str, read: fn(&str) -> Option<u64>| value[key].as_str().and_then(read).unwrap_or_default();
        (quantity("cpu", cpu_milli), quantity("memory", memory_mi))
    };
    let shares: Vec<UsageShare> = usage["containers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|container| {
            let (cpu_m, memory_mi) = figures(&container["usage"]);
            UsageShare { name: container["name"].as_str().unwrap_or_default().to_owned(), cpu_m, memory_mi }
        })
        .collect();
    let (cpu_m, memory_mi) = match of {
        TopSubject::Nodes => figures(&usage["usage"]),
        TopSubject::Pods => (shares.iter().map(|s| s.cpu_m).sum(), shares.iter().map(|s| s.memory_mi).sum()),
    };
    let (namespace, name) = key(usage);
    Usage {
        name,
        namespace: Some(namespace).filter(|_| everywhere && of == TopSubject::Pods),
        cpu_m,
        memory_mi,
        cpu_pct: cpu.and_then(|whole| percent(cpu_m, whole)),
        memory_pct: memory.and_then(|whole| percent(memory_mi, whole)),
        containers: if with { shares } else { Vec::new() },
    }
}

/// A window such as `30s` or `1m0s`, in seconds.
fn seconds(text: &str) -> Option<u64> {
    let (mut total, mut number) = (0, String::new());
    for c in text.chars() {
        match c {
            '0'..='9' | '.' => number.push(c),
            'h' | 'm' | 's' => {
                let unit = if c == 'h' {
                    3_600
                } else if c == 'm' {
                    60
                } else {
                    1
                };
                total += number.split('.').next()?.parse::<u64>().ok()? * unit;
                number.clear();
            }
            _ => return None,
        }
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_is_measured_by_its_limits_else_by_its_requests() {
        let pod = |containers: Value| json!({ "spec": { "containers": containers } });
        let both = json!([
            { "resources": { "limits": { "memory": "128Mi" }, "requests": { "cpu": "100m" } } },
            { "resources": { "limits": { "memory": "128Mi" }, "requests": { "cpu": "150m" } } },
        ]);
        assert_eq!(allowance(TopSubject::Pods, &pod(both)), (Some(250), Some(256)));
        let open = json!([{ "resources": { "limits": { "cpu": "1" } } }, {}]);
        assert_eq!(allowance(TopSubject::Pods, &pod(open)), (None, None), "one open container means no bound");
        let node = json!({ "status": { "allocatable": { "cpu": "4", "memory": "1Gi" } } });
        assert_eq!(allowance(TopSubject::Nodes, &node), (Some(4_000), Some(1_024)));
    }

    #[test]
    fn containers_add_up_to_their_pod() {
        let usage = json!({ "metadata": { "name": "web", "namespace": "shop" }, "containers": [
            { "name": "a", "usage": { "cpu": "100m", "memory": "64Mi" } }, { "name": "b", "usage": { "cpu": "25000000n", "memory": "64Mi" } } ] });
        let shown = usage_of(TopSubject::Pods, &usage, (Some(250), None), (true, false));
        assert_eq!((shown.cpu_m, shown.memory_mi, shown.cpu_pct, shown.memory_pct), (125, 128, Some(50), None));
        assert_eq!(shown.namespace.as_deref(), Some("shop"));
    }

    #[test]
    fn an_answer_holds_what_fits() {
        let share = |n: usize| UsageShare { name: format!("container-{n}"), cpu_m: 100, memory_mi: 100 };
        let pod = || Usage { name: "p".repeat(60), containers: (0..20).map(share).collect(), ..Usage::default() };
        let pods: Vec<Usage> = (0..100).map(|_| pod()).collect();
        assert!((5..60).contains(&fitting(&pods)) && size_of(&&pods[..fitting(&pods)]) <= ROOM + 100);
        let small: Vec<Usage> = (0..200).map(|_| Usage::default()).collect();
        assert_eq!(fitting(&small), MOST_ROWS);
    }

    #[test]
    fn a_window_is_a_number_of_seconds() {
        assert_eq!(seconds("1m30s"), Some(90));
        assert_eq!(seconds("15.5s"), Some(15));
        assert_eq!(seconds("x"), None);
    }
}
