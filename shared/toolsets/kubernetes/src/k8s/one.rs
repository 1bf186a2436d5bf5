//! The one object a change is about: found once, and found again where only its status has moved.

use super::at;
use super::grammar::{KindText, Label, ObjectName};
use super::preview::version;
use crate::client::{Cluster, KindScope, MaskDetail, ResourceRef};
use domain::{Code, Failure};
use policy::Permit;
use serde_json::Value;

/// How often a write is tried whose object has got another resource version but is otherwise the same.
pub(crate) const TRIES: usize = 4;

/// One object, as it was read.
pub(crate) struct LoadedObject {
    pub(crate) place: KindScope,
    pub(crate) target: ResourceRef,
    pub(crate) live: Value,
}

impl LoadedObject {
    /// Finds what a call names.
    pub(crate) async fn find(
        cluster: &Cluster<'_>,
        permit: &Permit,
        kind: &KindText,
        name: &ObjectName,
        namespace: Option<&Label>,
    ) -> Result<LoadedObject, Failure> {
        let (place, target) = LoadedObject::name(cluster, permit, kind, name, namespace).await?;
        let live = at::get(cluster, &place, &target, MaskDetail::Full).await?;
        Ok(LoadedObject { place, target, live })
    }

    /// Where it is, without looking whether it is there.
    pub(crate) async fn name(
        cluster: &Cluster<'_>,
        permit: &Permit,
        kind: &KindText,
        name: &ObjectName,
        namespace: Option<&Label>,
    ) -> Result<(KindScope, ResourceRef), Failure> {
        let kind = at::kind(cluster, permit, kind).await?;
        let place = at::place(cluster, &kind, namespace).await?;
        let target = at::target(&place, name)?;
        Ok((place, target))
    }

    /// Its resource version, as a precondition.
    pub(crate) fn resource_version(&self) -> Option<&str> {
        self.live["metadata"]["resourceVersion"].as_str()
    }

    /// Its uid.
    pub(crate) fn uid(&self) -> &str {
        self.live["metadata"]["uid"].as_str().unwrap_or_default()
    }

    /// After a refusal because of its resource version: reads it again, and passes the refusal on unless only the
    /// resource version has moved. What was refused was not done, so it may be sent once more.
    pub(crate) async fn again(&mut self, cluster: &Cluster<'_>, refusal: Failure) -> Result<(), Failure> {
        if refusal.code != Code::Conflict {
            return Err(refusal);
        }
        let anew = at::get(cluster, &self.place, &self.target, MaskDetail::Full).await?;
        let same = |pointer: &str| self.live.pointer(pointer) == anew.pointer(pointer);
        if !same("/metadata/uid") || version(&self.live) != version(&anew) || same("/metadata/resourceVersion") {
            return Err(refusal);
        }
        self.live = anew;
        Ok(())
    }
}
