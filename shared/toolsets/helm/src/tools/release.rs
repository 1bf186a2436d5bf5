//! One release, and what helm knows of it: its revisions, and any of them in full.

use super::change::KeepValues;
use super::grammar::{ChartValues, HelmTimeout, ReleaseName};
use super::{HelmDeps, fault, objects};
use crate::client::charts::Archive;
use crate::client::{HelmResult, Invocation, Subcommand};
use crate::codes;
use domain::outcome::near;
use domain::{Code, Failure, Moment};
use kubernetes::client::{Cluster, KnownSecrets};
use kubernetes::k8s::at;
use policy::Permit;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use target::grammar::Label;

/// How long a look may take. Ten seconds more, and the tool's own deadline is over.
pub(super) const LOOK: Duration = Duration::from_secs(18);
/// How many revisions are read.
const REVISIONS: u32 = 256;

/// Where a release is. Its namespace was judged.
pub(super) struct ReleaseRef<'a> {
    kit: &'a HelmDeps,
    pub(super) cluster: Cluster<'a>,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// One revision, as the history tells it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct RevisionSummary {
    pub(super) revision: u64,
    #[serde(default)]
    pub(super) updated: String,
    #[serde(default)]
    pub(super) status: String,
    #[serde(default)]
    pub(super) chart: String,
    #[serde(default)]
    pub(super) app_version: String,
    #[serde(default)]
    pub(super) description: String,
}

impl RevisionSummary {
    /// Whether helm is at work on it, or was when it ended.
    pub(super) fn is_pending(&self) -> bool {
        self.status.starts_with("pending-") || self.status == "uninstalling"
    }

    /// How long ago that began.
    pub(super) fn age(&self, now: Moment) -> Option<Duration> {
        Moment::parse(&self.updated).map(|then| now.since(then))
    }
}

/// One revision in full. Not masked.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct FullRevision {
    #[serde(rename = "version")]
    pub(super) revision: u64,
    pub(super) info: ReleaseInfo,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) config: serde_json::Map<String, Value>,
    #[serde(default)]
    manifest: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) hooks: Vec<Hook>,
    /// Only what helm was just asked to do says which chart it is.
    #[serde(default)]
    pub(super) chart: Value,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct ReleaseInfo {
    #[serde(default)]
    pub(super) status: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) last_deployed: String,
    #[serde(default)]
    pub(super) notes: String,
}

/// Something that runs before or after.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Hook {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) manifest: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) events: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) last_run: LastRun,
}

/// How a hook ended.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct LastRun {
    #[serde(default)]
    pub(super) started_at: String,
    #[serde(default)]
    pub(super) phase: String,
}

impl Hook {
    /// Whether it is run by `helm_test` alone.
    pub(super) fn is_test(&self) -> bool {
        self.events.iter().any(|event| event == "test" || event == "test-success")
    }

    /// One line for people.
    pub(super) fn line(&self) -> String {
        let text = format!("{} {} ({})", self.kind, self.name, self.events.join(", "));
        text.chars().filter(|c| !c.is_control()).take(300).collect()
    }
}

/// Go writes `null` for what is empty.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

impl FullRevision {
    /// Its objects. Not masked.
    pub(super) fn objects(&self) -> Result<Vec<Value>, Failure> {
        objects::read(&self.manifest)
    }

    /// The objects of its hooks. Not masked.
    pub(super) fn hook_objects(&self) -> Result<Vec<Value>, Failure> {
        let mut all = Vec::new();
        for hook in &self.hooks {
            all.extend(objects::read(&hook.manifest)?);
        }
        Ok(all)
    }

    /// What its Secrets hold, wherever they are.
    pub(super) fn secrets(&self, cluster: &Cluster<'_>) -> Result<KnownSecrets, Failure> {
        let of_hooks = KnownSecrets::of(cluster, &self.hook_objects()?);
        Ok(KnownSecrets::of(cluster, &self.objects()?).and(of_hooks))
    }

    /// `web-1.2.3`, where the chart is told.
    pub(super) fn chart_name(&self) -> String {
        let text = |key: &str| self.chart["metadata"][key].as_str().unwrap_or_default().to_owned();
        format!("{}-{}", text("name"), text("version"))
    }

    /// The version of what it installs, where the chart is told.
    pub(super) fn app_version(&self) -> String {
        self.chart["metadata"]["appVersion"].as_str().unwrap_or_default().to_owned()
    }
}

impl<'a> ReleaseRef<'a> {
    /// The release a call means, in a namespace the tenant may use.
    pub(super) fn of(
        kit: &'a HelmDeps,
        cluster: Cluster<'a>,
        namespace: Option<&Label>,
        release: &ReleaseName,
    ) -> Result<ReleaseRef<'a>, Failure> {
        let namespace = cluster.namespace(namespace.map(Label::as_str))?;
        Ok(ReleaseRef { kit, cluster, namespace, name: release.as_str().to_owned() })
    }

    /// The release that a call changes, with the time that helm has for it and for two looks.
    pub(super) fn to_change(
        kit: &'a HelmDeps,
        permit: &'a Permit,
        (cluster, namespace): (Option<&Label>, Option<&Label>),
        release: &ReleaseName,
        timeout_s: Option<u32>,
    ) -> Result<ReleaseRef<'a>, Failure> {
        let cluster = at::cluster(&kit.clusters, permit, cluster)?;
        ReleaseRef::of(kit, cluster.within(HelmTimeout::of(timeout_s).ours() + LOOK * 2), namespace, release)
    }

    /// Wants a namespace that may be changed.
    pub(super) fn unprotected(&self) -> Result<(), Failure> {
        match self.cluster.protects(&self.namespace) {
            true => Err(protected(&self.namespace)),
            false => Ok(()),
        }
    }

    /// Whether values may hold templates here.
    pub(super) fn templates_in_values(&self) -> bool {
        self.kit.templates_in_values
    }

    /// A call of helm about this namespace.
    pub(super) fn ask(&self, subcommand: Subcommand) -> Invocation {
        Invocation::new(subcommand).flag("--namespace", &self.namespace).within(LOOK)
    }

    /// Runs helm, whatever comes of it.
    pub(super) async fn run(&self, asked: Invocation) -> Result<HelmResult, Failure> {
        self.kit.helm.run_at(&self.cluster, asked).await
    }

    /// What helm prints, if it ends well.
    pub(super) async fn text(&self, asked: Invocation) -> Result<String, Failure> {
        let finished = self.run(asked).await?;
        match finished.success() {
            true => finished.text().map(str::to_owned),
            false => Err(fault::of(&self.cluster, &KnownSecrets::default(), &finished)),
        }
    }

    /// The same, and in our own words alone if it does not end well.
    pub(super) async fn quiet_text(&self, asked: Invocation) -> Result<String, Failure> {
        let finished = self.run(asked).await?;
        match finished.success() {
            true => finished.text().map(str::to_owned),
            false => Err(fault::quiet(&finished)),
        }
    }

    /// What a chart renders here, for a cluster of this version with these kinds. No cluster is asked while it is rendered,
    /// so that a chart's `lookup` finds nothing.
    pub(super) async fn rendered(
        &self,
        archive: &Archive,
        values: &ChartValues,
        revision: u64,
    ) -> Result<FullRevision, Failure> {
        let version = self.cluster.version().await?;
        let version = version["gitVersion"].as_str().filter(|text| is_version(text)).map(str::to_owned);
        let kinds = self.cluster.kinds().await?;
        let plain = |text: &String| text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'/'));
        let versions: BTreeSet<String> = kinds
            .iter()
            .flat_map(|kind| [kind.api_version(), format!("{}/{}", kind.api_version(), kind.kind())])
            .filter(plain)
            .collect();
        let versions = (!versions.is_empty()).then(|| versions.into_iter().collect::<Vec<_>>().join(","));
        let asked = self
            .ask(Subcommand::Template)
            .maybe("--kube-version", version)
            .maybe("--api-versions", versions)
            // helm makes whatever stands in a `crds` folder, of any kind and without rendering it.
            .switch("--include-crds")
            .values(values.document())
            .positional(&self.name)
            .positional(archive.path.display());
        let finished = self.kit.helm.run(asked).await?;
        if !finished.success() {
            return Err(fault::quiet(&finished));
        }
        let all = objects::read(finished.text()?)?;
        let (hooks, objects): (Vec<Value>, Vec<Value>) =
            all.into_iter().partition(|object| hook_events(object).is_some());
        let text = |object: &Value, pointer: &str| {
            object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let hook = |object: &Value| Hook {
            name: text(object, "/metadata/name"),
            kind: text(object, "/kind"),
            manifest: object.to_string(),
            events: hook_events(object).unwrap_or_default(),
            last_run: LastRun::default(),
        };
        Ok(FullRevision {
            revision,
            info: ReleaseInfo { status: "pending-install".to_owned(), ..ReleaseInfo::default() },
            config: values.fields().clone(),
            // JSON is YAML.
            manifest: objects.iter().map(|object| format!("---\n{object}\n")).collect(),
            hooks: hooks.iter().map(hook).collect(),
            chart: json!({ "metadata": archive.contents.metadata }),
        })
    }

    /// What an upgrade would make of the release, for whoever asked, and what to say about it. The chart is of their choice,
    /// so it is given the stored values without what they may not see.
    pub(super) async fn upgraded(
        &self,
        archive: &Archive,
        values: &ChartValues,
        keep: KeepValues,
        now: &FullRevision,
    ) -> Result<(FullRevision, Option<String>), Failure> {
        let stored = match keep {
            KeepValues::Reset => json!({}),
            KeepValues::ResetThenReuse => Value::Object(now.config.clone()),
            KeepValues::Reuse => self.all_values(now.revision).await?,
        };
        let (stored, stand_ins) = self.cluster.stand_ins(stored, &now.secrets(&self.cluster)?);
        let asked = self
            .ask(Subcommand::Upgrade)
            .dry_run()
            .switch("--reset-values")
            .flag("--output", "json")
            .values(values.over(stored).document())
            .positional(&self.name)
            .positional(archive.path.display());
        let text = self.quiet_text(asked).await.map_err(|failure| {
            let is_rendering = matches!(failure.code, codes::RENDER_FAILED | codes::SCHEMA_INVALID);
            if !is_rendering || stand_ins.is_empty() {
                return failure;
            }
            failure.next("the release's secrets are not used here; if the chart needs them, ask for the upgrade, which is shown to whoever decides")
        })?;
        let mut then: FullRevision = read(&text)?;
        then.manifest = stand_ins.put_back(&then.manifest);
        then.hooks.iter_mut().for_each(|hook| hook.manifest = stand_ins.put_back(&hook.manifest));
        let config = Value::Object(std::mem::take(&mut then.config)).to_string();
        then.config = read(&stand_ins.put_back(&config))?;
        let hint = "the release's secrets are not used here, so a text that holds one may be shown as changed";
        Ok((then, (!stand_ins.is_empty()).then(|| hint.to_owned())))
    }

    /// Its revisions, oldest first; none if there is no such release.
    pub(super) async fn past(&self) -> Result<Vec<RevisionSummary>, Failure> {
        let asked =
            self.ask(Subcommand::History).flag("--output", "json").flag("--max", REVISIONS).positional(&self.name);
        match self.text(asked).await {
            Ok(text) => read(&text),
            Err(failure) if failure.code == codes::RELEASE_NOT_FOUND => Ok(Vec::new()),
            Err(failure) => Err(failure),
        }
    }

    /// Its revisions, oldest first, the newest apart.
    pub(super) async fn history(&self) -> Result<(Vec<RevisionSummary>, RevisionSummary), Failure> {
        let past = self.past().await?;
        match past.last().cloned() {
            Some(newest) => Ok((past, newest)),
            None => Err(self.not_found().await),
        }
    }

    /// One revision in full; the newest unless one is named.
    pub(super) async fn standing(&self, revision: Option<u64>) -> Result<FullRevision, Failure> {
        let asked = self.ask(Subcommand::Status).flag("--output", "json").maybe("--revision", revision);
        match self.text(asked.positional(&self.name)).await {
            Ok(text) => read(&text),
            Err(failure) if failure.code == codes::RELEASE_NOT_FOUND => match (revision, self.past().await) {
                (Some(revision), Ok(past)) if !past.is_empty() => Err(no_revision(revision, &past)),
                (_, _) => Err(self.not_found().await),
            },
            Err(failure) => Err(failure),
        }
    }

    /// The values of a revision with those of its chart beneath. Not masked.
    pub(super) async fn all_values(&self, revision: u64) -> Result<Value, Failure> {
        let asked =
            self.ask(Subcommand::GetValues).switch("--all").flag("--output", "json").flag("--revision", revision);
        read(&self.text(asked.positional(&self.name)).await?)
    }

    /// The labels of a revision.
    pub(super) async fn labels(&self, revision: u64) -> Result<Value, Failure> {
        let asked = self.ask(Subcommand::GetMetadata).flag("--output", "json").flag("--revision", revision);
        let metadata: Value = read(&self.text(asked.positional(&self.name)).await?)?;
        Ok(metadata["labels"].clone())
    }

    /// The failure for a release that is not there, with near ones among those the caller may list.
    pub(super) async fn not_found(&self) -> Failure {
        let asked = self.ask(Subcommand::List).all_states().flag("--output", "json").flag("--max", REVISIONS);
        let listed: Value = match self.text(asked).await {
            Ok(text) => serde_json::from_str(&text).unwrap_or_default(),
            Err(_) => Value::Null,
        };
        let names = listed.as_array().into_iter().flatten().filter_map(|release| release["name"].as_str());
        let meant = near(&self.name, names);
        Failure::new(codes::RELEASE_NOT_FOUND, format!("there is no release {} in {}", self.name, self.namespace))
            .next(if meant.is_empty() { "list what is there with helm_list" } else { "use did_you_mean, or helm_list" })
            .did_you_mean(meant)
    }

    /// Refuses while the newest revision is pending: helm would, and an abandoned one is freed by a run of its own.
    pub(super) fn unlocked(&self, newest: &RevisionSummary) -> Result<(), Failure> {
        if !newest.is_pending() {
            return Ok(());
        }
        let age = newest.age(self.kit.cursors.now()).unwrap_or_default().as_secs();
        let message = format!("revision {} is {} since {age} s", newest.revision, newest.status);
        Err(Failure::new(codes::RELEASE_LOCKED, message)
            .next("wait if somebody is at work on it; otherwise free it with helm_recover")
            .details(json!({ "revision": newest.revision, "status": newest.status, "age_s": age })))
    }
}

/// When an object is run as a hook, if it is one.
fn hook_events(object: &Value) -> Option<Vec<String>> {
    let events = object.pointer("/metadata/annotations")?.get("helm.sh/hook")?.as_str()?;
    Some(events.split(',').map(|event| event.trim().to_owned()).collect())
}

/// What a cluster says it is goes into a flag, so it has to be a version.
pub(super) fn is_version(text: &str) -> bool {
    text.len() <= 64 && crate::client::charts::range::version(text).is_some()
}

/// The failure for a revision that is not there.
pub(super) fn no_revision(revision: u64, past: &[RevisionSummary]) -> Failure {
    let known: Vec<String> = past.iter().rev().take(10).map(|past| past.revision.to_string()).collect();
    Failure::new(kubernetes::codes::REVISION_NOT_FOUND, format!("the release has no revision {revision}"))
        .next(format!("use one of: {}", known.join(", ")))
}

/// The failure for a namespace in which nothing is changed.
pub(super) fn protected(namespace: &str) -> Failure {
    Failure::new(kubernetes::codes::PROTECTED, format!("namespace {namespace} is protected"))
        .next("do not retry; nothing is changed there through this service")
}

/// Reads what helm printed.
pub(super) fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| {
        tracing::warn!(line = error.line(), column = error.column(), "helm printed something unexpected");
        Failure::new(Code::Internal, "helm answered in a form that is not understood")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_empty_reads_as_nothing() {
        let text = r#"{"name":"a","version":3,"info":{"status":"deployed"},"config":null,"hooks":null,"manifest":""}"#;
        let standing: FullRevision = read(text).unwrap();
        assert_eq!((standing.revision, standing.hooks.len(), standing.objects().unwrap().len()), (3, 0, 0));
        let hook: Hook = read(r#"{"name":"t","events":["test"],"last_run":{"phase":"Succeeded"}}"#).unwrap();
        assert!(hook.is_test());
    }
}
