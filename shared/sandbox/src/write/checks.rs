//! What is checked before anything is made: identity, version, namespace, quota.

use serde_json::Value;

use crate::json;
use crate::kinds::ApiKind;
use crate::status::{ApiStatus, KindNames};
use crate::world::ClusterWorld;

impl ClusterWorld {
    pub(super) fn check_namespace(&self, kind: &ApiKind, namespace: &str, name: &str) -> Result<(), ApiStatus> {
        if !kind.namespaced {
            return Ok(());
        }
        let Some(live) = self.objects.find("namespaces", "", namespace) else {
            let of = KindNames { group: String::new(), plural: "namespaces".into(), kind: "Namespace".into() };
            return Err(ApiStatus::not_found(&of, namespace));
        };
        if json::is_going(live) && kind.plural != "events" {
            let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
            let because = format!("namespace {namespace} is being terminated");
            return Err(ApiStatus::forbidden(&kind.named(), name, &why).because("NamespaceTerminating", &because));
        }
        Ok(())
    }

    /// Object counts of a quota; what it says about processors and memory is not simulated.
    pub(crate) fn check_quota(&self, kind: &ApiKind, namespace: &str, object: &Value) -> Result<(), ApiStatus> {
        let counted = [kind.plural.clone(), format!("count/{}", kind.resource())];
        for quota in self.objects.within("resourcequotas", namespace) {
            for key in &counted {
                let hard = quota.pointer(&format!("/spec/hard/{}", json::escaped(key)));
                let Some(hard) = hard.and_then(|hard| hard.as_str().map_or(hard.as_i64(), |text| text.parse().ok()))
                else {
                    continue;
                };
                let used = self.objects.within(&kind.resource(), namespace).count();
                if i64::try_from(used).unwrap_or(i64::MAX) >= hard {
                    let name = json::name(quota);
                    let why = format!(
                        "exceeded quota: {name}, requested: {key}=1, used: {key}={used}, limited: {key}={hard}"
                    );
                    return Err(ApiStatus::forbidden(&kind.named(), json::name(object), &why));
                }
            }
        }
        Ok(())
    }
}

pub(super) fn check_identity(object: &Value, kind: &ApiKind) -> Result<(), ApiStatus> {
    let (said_version, said_kind) = (json::text_or_empty(object, "/apiVersion"), json::text_or_empty(object, "/kind"));
    if said_kind.is_empty() {
        let message = format!("Object 'Kind' is missing in '{object}'");
        return Err(ApiStatus::bad_request(message));
    }
    if said_kind != kind.kind {
        let message = format!(
            "{said_kind} in version {:?} cannot be handled as a {}: no kind {said_kind:?} is registered for version {said_version:?}",
            kind.version, kind.kind
        );
        return Err(ApiStatus::bad_request(message));
    }
    if said_version != kind.api_version() {
        let expected = kind.api_version();
        let message = format!(
            "the API version in the data ({said_version}) does not match the expected API version ({expected})"
        );
        return Err(ApiStatus::bad_request(message));
    }
    Ok(())
}

pub(super) fn check_version(kind: &ApiKind, live: &Value, object: &Value) -> Result<(), ApiStatus> {
    let said = json::text_or_empty(object, "/metadata/resourceVersion");
    if !said.is_empty() && Some(said) != json::text(live, "/metadata/resourceVersion") {
        return Err(ApiStatus::moved(&kind.named(), json::name(live)));
    }
    let uid = json::uid(object);
    if !uid.is_empty() && uid != json::uid(live) {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", json::uid(live));
        return Err(ApiStatus::conflict(&kind.named(), json::name(live), &why));
    }
    Ok(())
}
