//! What will become of a container, read from its image, its configuration and the pod's annotation.

use std::time::Duration;

use serde_json::Value;

use crate::images;
use crate::json;
use crate::program;
use crate::world::{ClusterWorld, controller_of};

/// The annotation by which a test says how the pod shall behave:
/// `crash`, `image-missing`, `oom`, `unready`, `complete` or `settled`.
pub(super) const BEHAVE: &str = "sandbox/behave";

/// What becomes of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ContainerFate {
    NoImage(String),
    NoConfig(String),
    Runs { ready: bool },
    Ends { exit: i64, reason: String, after: Duration },
}

/// Looks at everything that decides about one container.
pub(super) fn of(world: &ClusterWorld, pod: &Value, container: &Value, spec: &str) -> ContainerFate {
    let image = json::text_or_empty(container, "/image");
    let behave = json::annotation(pod, BEHAVE).unwrap_or_default();
    let ends =
        |exit: i64, reason: &str| ContainerFate::Ends { exit, reason: reason.to_owned(), after: world.pace.step };
    if let Some(why) =
        images::why_not_pulled(image).or_else(|| (behave == "image-missing").then(|| images::not_found(image)))
    {
        return ContainerFate::NoImage(why);
    }
    if let Some(why) = missing_configuration(world, pod, container) {
        return ContainerFate::NoConfig(why);
    }
    if let Some(wanted) = images::story(image).needs
        && !has_variable(world, pod, container, wanted)
    {
        return ends(1, "Error");
    }
    match behave {
        "crash" => return ends(1, "Error"),
        "oom" => return ends(137, "OOMKilled"),
        "complete" => return ends(0, "Completed"),
        "unready" => return ContainerFate::Runs { ready: false },
        _ => {}
    }
    let environment = program::environment(world, pod, container);
    let argv = program::started(container, &environment);
    let to_the_end = spec != "containers" || phase_ends(pod);
    if !argv.is_empty() {
        let ended = program::run(&argv, "", &environment);
        let reason = if ended.exit == 0 { "Completed" } else { "Error" };
        if to_the_end || ended.exit != 0 {
            let after = world.pace.step.max(ended.lasts);
            return ContainerFate::Ends { exit: ended.exit, reason: reason.to_owned(), after };
        }
    }
    if to_the_end && spec != "ephemeralContainers" { ends(0, "Completed") } else { ContainerFate::Runs { ready: true } }
}

/// Pods of jobs, and all that are not to be restarted, are expected to end.
fn phase_ends(pod: &Value) -> bool {
    controller_of(pod).is_some_and(|(kind, _)| kind == "Job") || super::phase::restart_policy(pod) != "Always"
}

/// A volume whose ConfigMap or Secret is not there keeps the pod from starting.
pub(super) fn missing_volume(world: &ClusterWorld, pod: &Value) -> Option<String> {
    let running =
        json::list(pod, "/status/containerStatuses").iter().any(|one| one.pointer("/state/running").is_some());
    if running {
        return None;
    }
    json::list(pod, "/spec/volumes").iter().find_map(|volume| {
        let sources = [("configMap", "name", "configmaps", "configmap"), ("secret", "secretName", "secrets", "secret")];
        sources.iter().find_map(|(source, field, resource, word)| {
            let source = volume.get(*source).filter(|source| !json::is_true(source, "/optional"))?;
            let name = source.get(*field)?.as_str()?;
            let absent = world.objects.find(resource, json::namespace(pod), name).is_none();
            let volume = json::text_or_empty(volume, "/name");
            absent.then(|| format!("MountVolume.SetUp failed for volume {volume:?} : {word} {name:?} not found"))
        })
    })
}

const SOURCES: [(&str, &str, &str, &str); 2] =
    [("configMapKeyRef", "configmaps", "configmap", "ConfigMap"), ("secretKeyRef", "secrets", "secret", "Secret")];

fn missing_configuration(world: &ClusterWorld, pod: &Value, container: &Value) -> Option<String> {
    let namespace = json::namespace(pod);
    for variable in json::list(container, "/env") {
        for (source, resource, word, kind) in SOURCES {
            let reference = variable.pointer(&format!("/valueFrom/{source}"));
            let Some(reference) = reference.filter(|one| !json::is_true(one, "/optional")) else { continue };
            let (name, key) = (json::text_or_empty(reference, "/name"), json::text_or_empty(reference, "/key"));
            let Some(found) = world.objects.find(resource, namespace, name) else {
                return Some(format!("{word} {name:?} not found"));
            };
            if found.get("data").and_then(|data| data.get(key)).is_none() {
                return Some(format!("couldn't find key {key} in {kind} {namespace}/{name}"));
            }
        }
    }
    for from in json::list(container, "/envFrom") {
        for (source, resource, word) in
            [("configMapRef", "configmaps", "configmap"), ("secretRef", "secrets", "secret")]
        {
            let Some(reference) = from.get(source).filter(|one| !json::is_true(one, "/optional")) else { continue };
            let name = json::text_or_empty(reference, "/name");
            if world.objects.find(resource, namespace, name).is_none() {
                return Some(format!("{word} {name:?} not found"));
            }
        }
    }
    None
}

/// Whether a variable reaches the container, by name or by a whole ConfigMap or Secret.
fn has_variable(world: &ClusterWorld, pod: &Value, container: &Value, wanted: &str) -> bool {
    let direct = json::list(container, "/env").iter().any(|one| {
        one["name"] == wanted
            && (one.get("valueFrom").is_some() || json::text(one, "/value").is_some_and(|v| !v.is_empty()))
    });
    let through = json::list(container, "/envFrom").iter().any(|from| {
        [("/configMapRef/name", "configmaps"), ("/secretRef/name", "secrets")].iter().any(|(at, resource)| {
            let found = json::text(from, at).and_then(|name| world.objects.find(resource, json::namespace(pod), name));
            found.is_some_and(|found| found.get("data").and_then(|data| data.get(wanted)).is_some())
        })
    });
    direct || through
}
