//! The whole simulated cluster: objects, kinds, types and time, behind one lock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock::{self, SandboxClock};
use crate::json;
use crate::kinds::{ApiKind, ApiKinds};
use crate::objects::Objects;
use crate::schema::{SchemaNode, Types};

/// How quickly the simulated nodes and controllers go to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimulationPace {
    /// How often the controllers look.
    pub tick: Duration,
    /// How long one step of a pod's life takes: placing it, fetching an image, starting, stopping.
    pub step: Duration,
}

impl Default for SimulationPace {
    fn default() -> Self {
        SimulationPace { tick: Duration::from_millis(50), step: Duration::from_millis(120) }
    }
}

/// Everything there is.
#[derive(Debug, Clone)]
pub(crate) struct ClusterWorld {
    pub(crate) objects: Objects,
    pub(crate) kinds: ApiKinds,
    pub(crate) types: Types,
    pub(crate) clock: SandboxClock,
    pub(crate) pace: SimulationPace,
    /// What nodes know about their pods beyond the status, by uid: when the next step is due.
    pub(crate) due: BTreeMap<String, Timestamp>,
    addresses: u32,
}

impl ClusterWorld {
    pub(crate) fn new(pace: SimulationPace) -> ClusterWorld {
        ClusterWorld {
            objects: Objects::new(),
            kinds: ApiKinds::builtin(),
            types: Types::builtin(),
            clock: SandboxClock::Wall,
            pace,
            due: BTreeMap::new(),
            addresses: 0,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn stamp(&self) -> String {
        clock::stamp(self.now())
    }

    pub(crate) fn place(&self, kind: &ApiKind) -> SchemaNode {
        if kind.type_name.is_empty() { SchemaNode::UNKNOWN } else { SchemaNode::of_type(&kind.type_name) }
    }

    /// An address nobody else has: 10.96.x.y for services, 10.244.x.y for pods.
    pub(crate) fn next_address(&mut self, prefix: &str) -> String {
        self.addresses += 1;
        format!("{prefix}.{}.{}", (self.addresses / 250) % 250, self.addresses % 250 + 2)
    }

    /// An object for a controller to read.
    pub(crate) fn find(&self, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.objects.find(resource, namespace, name).cloned()
    }

    /// The objects of a resource in a namespace (or all, when empty), for a controller to read.
    pub(crate) fn all(&self, resource: &str, namespace: &str) -> Vec<Arc<Value>> {
        self.objects.within(resource, namespace).cloned().collect()
    }

    /// The objects of a resource that name this owner as their controller.
    pub(crate) fn owned(&self, resource: &str, owner: &Value) -> Vec<Arc<Value>> {
        let uid = json::uid(owner);
        let found = self.objects.within(resource, json::namespace(owner));
        found.filter(|object| controller_of(object).is_some_and(|(_, owner)| owner == uid)).cloned().collect()
    }

    /// A controller's write: stored only if something differs. The generation counts changes of the wanted state.
    pub(crate) fn save(&mut self, resource: &str, object: Value) -> Arc<Value> {
        let live = self.objects.find(resource, json::namespace(&object), json::name(&object));
        match live {
            Some(live) if **live == object => live.clone(),
            _ => self.objects.put(resource, object),
        }
    }

    /// Reads, changes and saves one object, if it is still there.
    pub(crate) fn change(
        &mut self,
        resource: &str,
        object: &Value,
        how: impl FnOnce(&mut Value),
    ) -> Option<Arc<Value>> {
        let live = self.find(resource, json::namespace(object), json::name(object))?;
        let mut next = (*live).clone();
        how(&mut next);
        Some(self.save(resource, next))
    }

    /// A controller's new object: uid, times and defaults as the API would give them.
    pub(crate) fn make(&mut self, resource: &str, mut object: Value) -> Arc<Value> {
        let kind = self.kinds.of_resource(resource);
        json::set(&mut object, "/metadata/uid", new_uid());
        json::set(&mut object, "/metadata/creationTimestamp", self.stamp());
        if let Some(kind) = kind {
            json::set(&mut object, "/apiVersion", kind.api_version());
            json::set(&mut object, "/kind", kind.kind.clone());
            if kind.counted {
                json::set(&mut object, "/metadata/generation", 1);
            }
            crate::defaults::fill(self, &kind, &mut object);
        }
        self.objects.put(resource, object)
    }

    /// Counts a controller's change of the wanted state.
    pub(crate) fn count_generation(object: &mut Value) {
        let generation = json::int(object, "/metadata/generation", 0);
        json::set(object, "/metadata/generation", generation + 1);
    }
}

/// The controlling owner's kind and uid.
pub(crate) fn controller_of(object: &Value) -> Option<(&str, &str)> {
    let owners = json::list(object, "/metadata/ownerReferences").iter();
    let owner = owners.into_iter().find(|owner| json::is_true(owner, "/controller"))?;
    Some((json::text_or_empty(owner, "/kind"), json::text_or_empty(owner, "/uid")))
}

/// The reference that makes an object the controller of another.
pub(crate) fn owner_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": json::name(owner), "uid": json::uid(owner),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// Random bytes; a machine without randomness cannot run a server with a secret token anyway.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

/// A fresh uid in the usual form.
pub(crate) fn new_uid() -> String {
    let mut bytes = random::<16>();
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// Five letters for a generated name, from the alphabet Kubernetes uses.
pub(crate) fn name_suffix() -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    random::<5>().iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect()
}

/// A short stable name for a value, as pod template hashes are.
pub(crate) fn short_hash(value: &Value) -> String {
    use sha2::{Digest, Sha256};
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let digest = Sha256::digest(value.to_string().as_bytes());
    digest.iter().take(10).map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect()
}
