//! What a new sandbox holds.
//!
//! A seed is told as a story: the clock is set back, objects are made, the controllers work, time passes.
//! So ages, events, restarts and revisions are those the controllers really produced.

mod canary;
mod platform;
mod shop;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock::{self, SandboxClock};
use crate::controllers;
use crate::json;
use crate::server::lock;
use crate::world::{ClusterWorld, SimulationPace};

/// For how long a story that was told is good for the next sandbox too. Short, so that nothing in it has moved on.
const FRESH: Duration = Duration::from_secs(5);

/// The stories told last. Tests start a sandbox each, by the hundred, and three weeks of a cluster's life take longer
/// than most of them.
static TOLD: Mutex<Vec<(Instant, Seed, ClusterWorld)>> = Mutex::new(Vec::new());

/// The content and pace of a new sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    story: bool,
    bulk: Option<(String, usize)>,
    pace: SimulationPace,
    nodes: usize,
    rollouts: bool,
}

impl Seed {
    /// Two namespaces with workloads, of which two are in trouble and can be mended: what `dev` shows.
    pub fn shop() -> Seed {
        Seed { story: true, ..Seed::empty() }
    }

    /// Nodes and the usual namespaces, nothing else.
    pub fn empty() -> Seed {
        Seed { story: false, bulk: None, pace: SimulationPace::default(), nodes: 3, rollouts: true }
    }

    /// Adds many running pods to a namespace, cheaply.
    #[must_use]
    pub fn with_pods(mut self, namespace: &str, count: usize) -> Seed {
        self.bulk = Some((namespace.to_owned(), count));
        self
    }

    /// How quickly things happen.
    #[must_use]
    pub fn pace(mut self, pace: SimulationPace) -> Seed {
        self.pace = pace;
        self
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Seed {
        self.nodes = nodes;
        self
    }

    /// A cluster where nobody installed Argo Rollouts.
    #[must_use]
    pub fn without_rollouts(mut self) -> Seed {
        self.rollouts = false;
        self
    }

    /// Builds the world, or copies one that was built from the same seed a moment ago.
    pub(crate) fn plant(&self) -> ClusterWorld {
        if !self.story {
            return self.build();
        }
        // Held while the story is told: who wants the same one waits for it.
        let mut told = lock(&TOLD);
        told.retain(|(at, ..)| at.elapsed() < FRESH);
        if let Some((.., world)) = told.iter().find(|(_, seed, _)| seed == self) {
            return world.clone();
        }
        let world = self.build();
        told.push((Instant::now(), self.clone(), world.clone()));
        world
    }

    fn build(&self) -> ClusterWorld {
        let mut world = ClusterWorld::new(self.pace);
        if !self.rollouts {
            world.kinds.remove_group("argoproj.io");
        }
        let now = Timestamp::now();
        let days = Duration::from_secs(86_400);
        world.clock =
            SandboxClock::Story(clock::before(now, if self.story { 21 * days } else { Duration::from_secs(60) }));
        foundations(&mut world, self.nodes);
        if self.story {
            let mut story = WorldStory { world: &mut world, now };
            platform::tell(&mut story);
            shop::tell(&mut story);
        }
        if let Some((namespace, count)) = &self.bulk {
            fill(&mut world, namespace, *count);
        }
        controllers::look(&mut world);
        world.clock = SandboxClock::Wall;
        world.objects.forget();
        world
    }
}

/// A world whose time is moved by hand.
pub(super) struct WorldStory<'a> {
    world: &'a mut ClusterWorld,
    now: Timestamp,
}

impl WorldStory<'_> {
    /// Goes to a moment before now and lets the controllers settle what is there.
    fn ago(&mut self, by: Duration) {
        let until = clock::before(self.now, by);
        // What waits for a moment gets it; what repeats slowly gets as many turns as fit in.
        for _ in 0..2_000 {
            let due = controllers::look(self.world);
            let now = self.world.now();
            let next = due.filter(|due| *due < until).map(|due| due.max(now));
            match next {
                Some(next) => self.world.clock = SandboxClock::Story(next),
                None => break,
            }
        }
        self.world.clock = SandboxClock::Story(until);
    }

    /// Lets everything that goes on by itself come to rest, over a minute at most.
    fn settle(&mut self) {
        for _ in 0..200 {
            let version = self.world.objects.version();
            controllers::look(self.world);
            let next = clock::after(self.world.now(), Duration::from_millis(300));
            self.world.clock = SandboxClock::Story(next);
            if self.world.objects.version() == version && self.world.due.values().all(|due| *due > next) {
                break;
            }
        }
    }

    /// Makes an object as a person would, by the API's own way.
    fn create(&mut self, object: Value) {
        let kind = self
            .world
            .kinds
            .of_object(json::text_or_empty(&object, "/apiVersion"), json::text_or_empty(&object, "/kind"));
        let Some(kind) = kind else { return };
        let namespace = json::namespace(&object).to_owned();
        let written = self.world.create(&kind, &namespace, object, &options("kubectl-client-side-apply"));
        if let Err(refused) = written {
            tracing::error!(%refused, "the seed could not be planted");
        }
    }

    /// Changes an object as a person would.
    fn patch(&mut self, resource: &str, (namespace, name): (&str, &str), change: &Value) {
        let Some(kind) = self.world.kinds.of_resource(resource) else { return };
        // Custom kinds have no merge rules of their own.
        let form =
            if kind.custom { crate::patch::PatchBodyForm::Merge } else { crate::patch::PatchBodyForm::Strategic };
        let written = self.world.patch(&kind, (namespace, name), (form, change), &options("deploy-pipeline"));
        if let Err(refused) = written {
            tracing::error!(%refused, "the seed could not be changed");
        }
    }
}

fn options(manager: &str) -> crate::write::WriteOptions {
    crate::write::WriteOptions {
        dry_run: false,
        manager: manager.to_owned(),
        force: false,
        unknown: crate::validate::Unknown::Refuse,
        subresource: "",
    }
}

/// What every cluster has.
fn foundations(world: &mut ClusterWorld, nodes: usize) {
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        world.make("namespaces", json!({ "metadata": { "name": name } }));
    }
    let now = world.stamp();
    for number in 1..=nodes {
        let node = controllers::node(number, &now);
        let name = json::name(&node).to_owned();
        world.make("nodes", node);
        let spec =
            json!({ "holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": clock::fine_stamp(world.now()) });
        world.make(
            "leases.coordination.k8s.io",
            json!({ "metadata": { "name": name, "namespace": "kube-node-lease" }, "spec": spec }),
        );
    }
    world.make(
        "storageclasses.storage.k8s.io",
        json!({
            "metadata": { "name": "standard", "annotations": { "storageclass.kubernetes.io/is-default-class": "true" } },
            "provisioner": "sandbox.simulated/disk",
        }),
    );
    for (name, value) in [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)] {
        world.make("priorityclasses.scheduling.k8s.io", json!({ "metadata": { "name": name }, "value": value }));
    }
    for name in ["cluster-admin", "admin", "edit", "view"] {
        let rules = json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": if name == "view" { json!(["get", "list", "watch"]) } else { json!(["*"]) } }]);
        world.make("clusterroles.rbac.authorization.k8s.io", json!({ "metadata": { "name": name }, "rules": rules }));
    }
    let port = json!({ "name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443 });
    world.make(
        "services",
        json!({ "metadata": { "name": "kubernetes", "namespace": "default" }, "spec": { "clusterIP": "10.96.0.1", "ports": [port] } }),
    );
}

/// Running pods that nobody looks after, stored without a history.
fn fill(world: &mut ClusterWorld, namespace: &str, count: usize) {
    if world.find("namespaces", "", namespace).is_none() {
        world.make("namespaces", json!({ "metadata": { "name": namespace } }));
    }
    let now = world.stamp();
    let pods = (0..count).map(|number| {
        let name = format!("bulk-{number:05}");
        let node = format!("sandbox-node-{}", number % 3 + 1);
        let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": now });
        let state = json!({ "running": { "startedAt": now } });
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": namespace, "uid": format!("00000000-0000-4000-8000-{number:012}"),
                "creationTimestamp": now, "labels": { "app": "bulk", "shard": (number % 10).to_string() },
                "annotations": { "sandbox/behave": "settled" },
            },
            "spec": { "nodeName": node, "restartPolicy": "Always", "containers": [{ "name": "app", "image": "bulk:1" }] },
            "status": {
                "phase": "Running", "podIP": format!("10.245.{}.{}", number / 250, number % 250), "conditions": [ready],
                "containerStatuses": [{
                    "name": "app", "image": "bulk:1", "imageID": "", "ready": true, "restartCount": 0, "state": state, "lastState": {},
                }],
            },
        })
    });
    let pods: Vec<Value> = pods.collect();
    world.objects.fill("pods", pods);
}
