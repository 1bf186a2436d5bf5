//! What a tenant lets its workloads be: which images they run, and how many replicas they have.
//!
//! Like a protected namespace, a bound holds whoever approves. It is judged on what a dry run of the change gives, so
//! before anybody is asked and once more before anything is sent, and on the object that is sent where there is one.
//!
//! Not here: what an approver is warned of (see [`risks`]).

use crate::{codes, risks};
use domain::Failure;
use serde_json::Value;
use std::fmt;

/// Where an image without a registry comes from.
const DEFAULT_REGISTRY: &str = "docker.io";
/// The fields that say how many pods an object wants.
const REPLICAS: [&str; 5] = ["replicas", "minReplicas", "maxReplicas", "parallelism", "previewReplicaCount"];

/// The bounds of one tenant. Without any, everything is within them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkloadBounds {
    /// The images that may be run; `None`: all.
    pub images: Option<Vec<ImagePattern>>,
    /// The most replicas of one object; `None`: any number.
    pub most_replicas: Option<u32>,
}

/// A repository of images, or all of those beneath a path: `ghcr.io/acme/web`, `ghcr.io/acme/*`.
#[derive(Clone, PartialEq, Eq)]
pub struct ImagePattern {
    /// With its registry, and with the slash before the star.
    repository: String,
    beneath: bool,
}

/// The text is no image pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "an image pattern is a repository without tag and digest, or a path followed by `/*`, such as `ghcr.io/acme/*`"
)]
pub struct NotAnImagePattern;

impl ImagePattern {
    /// Reads a pattern. `*` alone is none: leave the list out instead.
    pub fn parse(text: &str) -> Result<ImagePattern, NotAnImagePattern> {
        let (path, beneath) = text.strip_suffix("/*").map_or((text, false), |path| (path, true));
        let is_part = |part: &str| {
            let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b':');
            !part.is_empty() && part.bytes().all(letter)
        };
        let parts: Vec<&str> = path.split('/').collect();
        // A registry may have a port; behind a slash a colon begins a tag.
        let has_tag = parts.last().is_some_and(|last| last.contains(':')) && !(parts.len() == 1 && beneath);
        if has_tag || !parts.iter().all(|part| is_part(part)) {
            return Err(NotAnImagePattern);
        }
        let repository = match parts.as_slice() {
            [registry] if beneath && is_registry(registry) => registry.to_ascii_lowercase(),
            // A user of the default registry is no official image, with and without the registry before it.
            _ if beneath => {
                let within = repository_of(&format!("{path}/_"));
                within.strip_suffix("/_").unwrap_or(&within).to_owned()
            }
            _ => repository_of(path),
        };
        Ok(ImagePattern { repository, beneath })
    }

    /// Whether an image is of such a repository.
    pub fn matches(&self, image: &str) -> bool {
        let repository = repository_of(image);
        if self.beneath {
            let within = repository.strip_prefix(&self.repository).and_then(|rest| rest.strip_prefix('/'));
            within.is_some_and(|name| !name.trim().is_empty())
        } else {
            repository == self.repository
        }
    }

    /// Whether every image of the other pattern is one of this.
    pub fn covers(&self, other: &ImagePattern) -> bool {
        if !self.beneath {
            return self == other;
        }
        (other.beneath && other.repository == self.repository)
            || other.repository.strip_prefix(&self.repository).is_some_and(|rest| rest.starts_with('/'))
    }
}

impl fmt::Display for ImagePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.repository, if self.beneath { "/*" } else { "" })
    }
}

impl fmt::Debug for ImagePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The repository of an image with its registry, as container runtimes read it.
fn repository_of(image: &str) -> String {
    let without_digest = image.split('@').next().unwrap_or_default();
    let name = match without_digest.rsplit_once(':') {
        // A colon before a slash is a port's.
        Some((name, tag)) if !tag.contains('/') => name,
        Some(_) | None => without_digest,
    };
    match name.split_once('/') {
        Some((registry, rest)) if is_registry(registry) => match registry.to_ascii_lowercase().as_str() {
            "docker.io" | "index.docker.io" | "registry-1.docker.io" if !rest.contains('/') => {
                format!("{DEFAULT_REGISTRY}/library/{rest}")
            }
            "index.docker.io" | "registry-1.docker.io" => format!("{DEFAULT_REGISTRY}/{rest}"),
            registry => format!("{registry}/{rest}"),
        },
        Some(_) => format!("{DEFAULT_REGISTRY}/{name}"),
        None => format!("{DEFAULT_REGISTRY}/library/{name}"),
    }
}

fn is_registry(part: &str) -> bool {
    part.contains(['.', ':']) || part.eq_ignore_ascii_case("localhost")
}

/// The highest number of replicas that stands in a spec. A field counts wherever it stands: that of a CronJob is in its
/// job's template, and those of an Experiment and of a canary's steps are in lists.
fn most_replicas(spec: &Value) -> Option<u64> {
    match spec {
        Value::Object(fields) => {
            let number = |(key, value): (&String, &Value)| match REPLICAS.contains(&key.as_str()) {
                true => value.as_u64().or_else(|| most_replicas(value)),
                false => most_replicas(value),
            };
            fields.iter().filter_map(number).max()
        }
        Value::Array(items) => items.iter().filter_map(most_replicas).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

impl WorkloadBounds {
    /// Whether an object is within them.
    pub fn check(&self, object: &Value) -> Result<(), Failure> {
        for image in risks::images(object) {
            self.check_image(image)?;
        }
        most_replicas(&object["spec"]).map_or(Ok(()), |replicas| self.check_replicas(replicas))
    }

    /// Whether an image is.
    pub fn check_image(&self, image: &str) -> Result<(), Failure> {
        match &self.images {
            Some(allowed) if !allowed.iter().any(|pattern| pattern.matches(image)) => {
                let shown: String = image.chars().filter(|c| !c.is_control()).take(255).collect();
                let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
                Err(Failure::new(codes::IMAGE_DENIED, format!("the tenant's policy does not allow the image {shown}"))
                    .next(format!("use an image of {}; others need a change of policy.images", allowed.join(", "))))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether a number of replicas is.
    pub fn check_replicas(&self, replicas: u64) -> Result<(), Failure> {
        match self.most_replicas {
            Some(most) if replicas > u64::from(most) => {
                let message =
                    format!("the tenant's policy allows at most {most} replicas, and this would be {replicas}");
                Err(Failure::new(codes::REPLICAS_DENIED, message)
                    .next("use fewer; more need a change of policy.most_replicas"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pattern(text: &str) -> ImagePattern {
        ImagePattern::parse(text).unwrap()
    }

    #[test]
    fn an_image_is_judged_by_where_a_runtime_would_pull_it_from() {
        for (text, fits, others) in [
            (
                "ghcr.io/acme/*",
                &[
                    "ghcr.io/acme/web",
                    "ghcr.io/acme/web:1",
                    "GHCR.io/acme/a/b@sha256:00",
                    "ghcr.io/acme/web:1@sha256:00",
                ][..],
                &["ghcr.io/acme", "ghcr.io/acme-evil/web", "ghcr.io/acmeweb", "acme/web", "evil.io/ghcr.io/acme/web"][..],
            ),
            ("ghcr.io/*", &["ghcr.io/a", "ghcr.io/a/b:2"], &["ghcr.io.evil.com/a", "ghcr.io:443/a", "ghcr.io"]),
            (
                "nginx",
                &["nginx", "nginx:1", "docker.io/nginx", "docker.io/library/nginx:2", "index.docker.io/nginx"],
                &["acme/nginx", "nginx.io/a"],
            ),
            ("acme/*", &["acme/web", "docker.io/acme/web", "registry-1.docker.io/acme/web"], &["acme.io/web", "nginx"]),
            ("docker.io/acme/*", &["acme/web", "docker.io/acme/web"], &["nginx", "library/acme", "acme2/web"]),
            ("localhost:5000/team/*", &["localhost:5000/team/a:1"], &["localhost/team/a", "localhost:5000/teams/a"]),
            ("reg.example:5000/*", &["reg.example:5000/a:1"], &["reg.example/a"]),
        ] {
            for image in fits {
                assert!(pattern(text).matches(image), "{text} {image}");
            }
            for image in others.iter().chain(&["", " ", ":", "@", "/", "ghcr.io"]) {
                assert!(!pattern(text).matches(image), "{text} {image}");
            }
        }
        let official = pattern("docker.io/library/*");
        assert!(["nginx", "docker.io/nginx:1", "library/nginx"].iter().all(|image| official.matches(image)));
        assert!(!["", " ", ":", "@", "/", "acme/web"].iter().any(|image| official.matches(image)));
        for bad in
            ["", "*", "/*", "a b", "ghcr.io/acme/web:1", "web@sha256:00", "ghcr.io//a", "ghcr.io/*/a", "a/**", "web:1"]
        {
            assert_eq!(ImagePattern::parse(bad), Err(NotAnImagePattern), "{bad}");
        }
    }

    #[test]
    fn a_pattern_covers_what_is_narrower() {
        for (wide, narrow) in
            [("ghcr.io/*", "ghcr.io/acme/*"), ("ghcr.io/*", "ghcr.io/acme/web"), ("ghcr.io/acme/*", "ghcr.io/acme/*")]
        {
            assert!(pattern(wide).covers(&pattern(narrow)), "{wide} {narrow}");
        }
        for (one, other) in [
            ("ghcr.io/acme/*", "ghcr.io/*"),
            ("ghcr.io/acme/web", "ghcr.io/acme/*"),
            ("ghcr.io/acme/*", "ghcr.io/acme"),
            ("ghcr.io/a/*", "ghcr.io/ab/*"),
        ] {
            assert!(!pattern(one).covers(&pattern(other)), "{one} {other}");
        }
    }

    #[test]
    fn every_image_and_number_of_an_object_is_looked_at() {
        let bounds = WorkloadBounds { images: Some(vec![pattern("ghcr.io/acme/*")]), most_replicas: Some(5) };
        let of = |spec: Value| {
            let object = json!({ "kind": "Deployment", "spec": { "replicas": 2, "template": { "spec": spec } } });
            bounds.check(&object).map_err(|failure| failure.code)
        };
        let good = json!({ "name": "a", "image": "ghcr.io/acme/a:1" });
        assert_eq!(of(json!({ "containers": [good] })), Ok(()));
        for spec in [
            json!({ "containers": [good, { "name": "b", "image": "evil.io/a" }] }),
            json!({ "containers": [good], "initContainers": [{ "image": "nginx" }] }),
            json!({ "containers": [good], "ephemeralContainers": [{ "image": "nginx" }] }),
            json!({ "containers": [good], "volumes": [{ "name": "v", "image": { "reference": "evil.io/a" } }] }),
        ] {
            assert_eq!(of(spec.clone()), Err(codes::IMAGE_DENIED), "{spec}");
        }
        for field in REPLICAS {
            let of = |number: u64| bounds.check(&json!({ "spec": { field: number } })).map_err(|failure| failure.code);
            assert_eq!((of(5), of(6)), (Ok(()), Err(codes::REPLICAS_DENIED)), "{field}");
        }
        for spec in [
            json!({ "jobTemplate": { "spec": { "parallelism": 6 } } }),
            json!({ "templates": [{ "name": "a", "replicas": 1 }, { "name": "b", "replicas": 6 }] }),
            json!({ "replicas": 1, "strategy": { "canary": { "steps": [{ "setCanaryScale": { "replicas": 6 } }] } } }),
            json!({ "replicas": 1, "strategy": { "blueGreen": { "previewReplicaCount": 6 } } }),
        ] {
            let told = bounds.check(&json!({ "spec": spec })).map_err(|failure| failure.code);
            assert_eq!(told, Err(codes::REPLICAS_DENIED), "{spec}");
        }
        assert_eq!(
            WorkloadBounds::default()
                .check(&json!({ "spec": { "replicas": 1_000, "containers": [{ "image": "x" }] } })),
            Ok(())
        );
    }
}
