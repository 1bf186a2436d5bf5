//! The versioned store: every object as it is now, and the last changes for those who watch or page.
//!
//! One counter numbers all writes, as etcd's revision does. The log of changes is bounded;
//! who asks for a version older than its beginning is told that it expired.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::json;

/// How many changes are kept for watches and for lists that are being paged.
const KEPT_CHANGES: usize = 20_000;

/// Where an object stands within its resource: namespace (empty for cluster-wide kinds) and name.
pub(crate) type ObjectKey = (String, String);

/// One write, with the object before and after it.
#[derive(Debug, Clone)]
pub(crate) struct ObjectWrite {
    pub(crate) version: u64,
    pub(crate) resource: String,
    pub(crate) slot: ObjectKey,
    pub(crate) before: Option<Arc<Value>>,
    /// For a removal: nothing. The removed object with its last version is in `gone`.
    pub(crate) after: Option<Arc<Value>>,
    pub(crate) gone: Option<Arc<Value>>,
}

/// All objects of the simulated cluster.
#[derive(Debug)]
pub(crate) struct Objects {
    resources: BTreeMap<String, BTreeMap<ObjectKey, Arc<Value>>>,
    version: u64,
    changes: VecDeque<ObjectWrite>,
    /// The newest version whose change is no longer in the log.
    forgotten: u64,
    moved: watch::Sender<u64>,
}

/// A copy has watchers of its own.
impl Clone for Objects {
    fn clone(&self) -> Objects {
        Objects {
            resources: self.resources.clone(),
            version: self.version,
            changes: self.changes.clone(),
            forgotten: self.forgotten,
            moved: watch::Sender::new(self.version),
        }
    }
}

impl Objects {
    pub(crate) fn new() -> Objects {
        Objects {
            resources: BTreeMap::new(),
            version: 1,
            changes: VecDeque::new(),
            forgotten: 1,
            moved: watch::Sender::new(1),
        }
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Tells whenever something was written.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.moved.subscribe()
    }

    pub(crate) fn find(&self, resource: &str, namespace: &str, name: &str) -> Option<&Arc<Value>> {
        self.resources.get(resource)?.get(&(namespace.to_owned(), name.to_owned()))
    }

    /// Every object of a resource, in order of namespace and name.
    pub(crate) fn all<'a>(&'a self, resource: &str) -> impl Iterator<Item = &'a Arc<Value>> + use<'a> {
        self.resources.get(resource).into_iter().flat_map(BTreeMap::values)
    }

    /// Every object of a resource in one namespace, or of all of them when it is empty.
    pub(crate) fn within<'a>(
        &'a self,
        resource: &str,
        namespace: &str,
    ) -> impl Iterator<Item = &'a Arc<Value>> + use<'a> {
        let namespace = namespace.to_owned();
        let from = Bound::Included((namespace.clone(), String::new()));
        let objects = self.resources.get(resource).into_iter();
        objects
            .flat_map(move |objects| objects.range((from.clone(), Bound::Unbounded)))
            .take_while(move |((here, _), _)| namespace.is_empty() || *here == namespace)
            .map(|(_, object)| object)
    }

    pub(crate) fn resources(&self) -> impl Iterator<Item = &String> {
        self.resources.keys()
    }

    /// Stores an object under a new version and gives it back as stored.
    pub(crate) fn put(&mut self, resource: &str, mut object: Value) -> Arc<Value> {
        self.version += 1;
        json::set(&mut object, "/metadata/resourceVersion", self.version.to_string());
        let slot = slot_of(&object);
        let object = Arc::new(object);
        let before = self.resources.entry(resource.to_owned()).or_default().insert(slot.clone(), object.clone());
        self.log(resource, slot, before, Some(object.clone()), None);
        object
    }

    /// Takes an object away and gives back its last state.
    pub(crate) fn remove(&mut self, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let slot = (namespace.to_owned(), name.to_owned());
        let before = self.resources.get_mut(resource)?.remove(&slot)?;
        self.version += 1;
        let mut last = (*before).clone();
        json::set(&mut last, "/metadata/resourceVersion", self.version.to_string());
        let last = Arc::new(last);
        self.log(resource, slot, Some(before), None, Some(last.clone()));
        Some(last)
    }

    /// Stores many objects at once, unlogged: for filling a cluster before anybody looks.
    pub(crate) fn fill(&mut self, resource: &str, objects: impl IntoIterator<Item = Value>) {
        let stored = self.resources.entry(resource.to_owned()).or_default();
        for mut object in objects {
            self.version += 1;
            object["metadata"]["resourceVersion"] = json!(self.version.to_string());
            stored.insert(slot_of(&object), Arc::new(object));
        }
        self.forget();
    }

    /// Drops the log under a new version, as etcd does when it is compacted.
    pub(crate) fn compact(&mut self) {
        self.version += 1;
        self.forget();
    }

    /// Drops the log, so that every earlier version counts as expired.
    pub(crate) fn forget(&mut self) {
        self.changes.clear();
        self.forgotten = self.version;
        self.moved.send_replace(self.version);
    }

    /// The changes after a version, or nothing if they are no longer known.
    pub(crate) fn since(&self, version: u64) -> Option<impl Iterator<Item = &ObjectWrite>> {
        if version < self.forgotten {
            return None;
        }
        let start = self.changes.partition_point(|change| change.version <= version);
        Some(self.changes.range(start..))
    }

    /// A resource as it was at a version: for pages of one list.
    pub(crate) fn at(&self, resource: &str, version: u64) -> Option<BTreeMap<ObjectKey, Arc<Value>>> {
        let later: Vec<&ObjectWrite> = self.since(version)?.filter(|change| change.resource == resource).collect();
        let mut objects = self.resources.get(resource).cloned().unwrap_or_default();
        for change in later.into_iter().rev() {
            match &change.before {
                Some(before) => objects.insert(change.slot.clone(), before.clone()),
                None => objects.remove(&change.slot),
            };
        }
        Some(objects)
    }

    fn log(
        &mut self,
        resource: &str,
        slot: ObjectKey,
        before: Option<Arc<Value>>,
        after: Option<Arc<Value>>,
        gone: Option<Arc<Value>>,
    ) {
        let change = ObjectWrite { version: self.version, resource: resource.to_owned(), slot, before, after, gone };
        self.changes.push_back(change);
        if self.changes.len() > KEPT_CHANGES
            && let Some(oldest) = self.changes.pop_front()
        {
            self.forgotten = oldest.version;
        }
        self.moved.send_replace(self.version);
    }
}

fn slot_of(object: &Value) -> ObjectKey {
    (json::namespace(object).to_owned(), json::name(object).to_owned())
}
