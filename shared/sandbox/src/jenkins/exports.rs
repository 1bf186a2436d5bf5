//! Server, jobs and builds as the remote API shows them.

use serde_json::{Map, Value, json};

use super::build::SimulatedBuild;
use super::job::{JobParameter, ParameterForm, SimulatedJob, SimulatedJobKind};
use super::plan::BuildResult;
use super::queue;
use super::reports;
use super::tree::Pruner;
use super::world::JenkinsWorld;

/// How many builds the property `builds` has; `allBuilds` has them all.
const NEWEST: usize = 100;

/// How the server is addressed: `http://127.0.0.1:1234/ci`.
#[derive(Debug, Clone)]
pub(super) struct Site {
    pub(super) root: String,
    /// The path all addresses begin with, empty for most servers.
    pub(super) context: String,
}

impl Site {
    pub(super) fn job_url(&self, job: &SimulatedJob) -> String {
        format!("{}{}/", self.root, below(job))
    }
}

/// The path of a job below the root of the server: `/job/a/job/b`.
pub(super) fn below(job: &SimulatedJob) -> String {
    job.path.split('/').map(|segment| format!("/job/{}", encoded(segment))).collect()
}

/// Percent-encodes one segment of a path.
pub(super) fn encoded(segment: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte);
    segment
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// An object that is being written, as far as it was asked for.
pub(super) struct Bean<'t> {
    pruner: Pruner<'t>,
    fields: Map<String, Value>,
}

impl<'t> Bean<'t> {
    pub(super) fn new(class: &str, pruner: Pruner<'t>) -> Bean<'t> {
        Bean { pruner, fields: Map::from_iter([("_class".to_owned(), json!(class))]) }
    }

    /// A property that is made only if it is written.
    pub(super) fn with(mut self, name: &str, visibility: i64, make: impl FnOnce(Pruner<'t>) -> Value) -> Bean<'t> {
        if let Some(inside) = self.pruner.accept(name, visibility) {
            self.fields.insert(name.to_owned(), make(inside));
        }
        self
    }

    /// A property that is there already.
    pub(super) fn plain(self, name: &str, visibility: i64, value: Value) -> Bean<'t> {
        self.with(name, visibility, |inside| inside.cut(value))
    }

    pub(super) fn done(self) -> Value {
        Value::Object(self.fields)
    }
}

/// The server itself.
pub(super) fn root(world: &JenkinsWorld, site: &Site, pruner: Pruner<'_>) -> Value {
    Bean::new("hudson.model.Hudson", pruner)
        .plain("mode", 1, json!("NORMAL"))
        .plain("nodeDescription", 1, json!("the Jenkins controller's built-in node"))
        .plain("nodeName", 1, json!(""))
        .plain("numExecutors", 1, json!(2))
        .plain("description", 1, Value::Null)
        .with("jobs", 1, |inside| inside.list(world.children(""), |child| job(world, site, child, inside)))
        .plain("quietingDown", 1, json!(false))
        .plain("slaveAgentPort", 1, json!(-1))
        .plain("url", 1, json!(format!("{}/", site.root)))
        .plain("useCrumbs", 1, json!(true))
        .plain("useSecurity", 1, json!(true))
        .done()
}

/// A job or a folder.
pub(super) fn job(world: &JenkinsWorld, site: &Site, job: &SimulatedJob, pruner: Pruner<'_>) -> Value {
    let class = match job.kind {
        SimulatedJobKind::Folder => "com.cloudbees.hudson.plugins.folder.Folder",
        SimulatedJobKind::Multibranch => "org.jenkinsci.plugins.workflow.multibranch.WorkflowMultiBranchProject",
        SimulatedJobKind::Pipeline => "org.jenkinsci.plugins.workflow.job.WorkflowJob",
        SimulatedJobKind::Freestyle => "hudson.model.FreeStyleProject",
    };
    let shown = |path: &str| path.replace("%2F", "/");
    let bean = Bean::new(class, pruner)
        .plain("actions", 1, json!([{}]))
        .plain("description", 1, json!(job.description))
        .plain("displayName", 1, json!(shown(job.name())))
        .plain("displayNameOrNull", 1, Value::Null)
        .plain("fullDisplayName", 1, json!(shown(&job.path.replace('/', " » "))))
        .plain("fullName", 1, json!(job.path))
        .plain("name", 999, json!(job.name()))
        .plain("url", 999, json!(site.job_url(job)))
        .plain("healthReport", 1, health(job));
    if job.is_job() {
        return builds(job_facts(bean, job), world, site, job).done();
    }
    bean.with("jobs", 1, |inside| inside.list(world.children(&job.path), |child| self::job(world, site, child, inside)))
        .done()
}

fn job_facts<'t>(bean: Bean<'t>, job: &SimulatedJob) -> Bean<'t> {
    let definitions: Vec<Value> = job.parameters.iter().map(definition).collect();
    let parameters =
        json!({ "_class": "hudson.model.ParametersDefinitionProperty", "parameterDefinitions": definitions });
    let property = if definitions.is_empty() { json!([]) } else { json!([parameters]) };
    bean.plain("buildable", 1, json!(!job.disabled))
        .plain("color", 2, json!(color(job)))
        .plain("concurrentBuild", 1, json!(job.concurrent))
        .plain("disabled", 1, json!(job.disabled))
        .plain("keepDependencies", 1, json!(false))
        .plain("nextBuildNumber", 1, json!(job.next))
        .plain("property", 1, property)
}

fn builds<'t>(bean: Bean<'t>, world: &JenkinsWorld, site: &Site, job: &SimulatedJob) -> Bean<'t> {
    let one = |pruner: Pruner<'t>, found: Option<&SimulatedBuild>| match found {
        Some(found) => build(world, site, (job, found), pruner),
        None => Value::Null,
    };
    let all = |pruner: Pruner<'t>, most: usize| {
        pruner.list(job.builds.values().rev().take(most), |each| build(world, site, (job, each), pruner))
    };
    let bean = bean
        .with("allBuilds", -2, |inside| all(inside, usize::MAX))
        .with("builds", 1, |inside| all(inside, NEWEST))
        .plain("inQueue", 1, json!(world.waiting.iter().any(|item| item.job == job.path)))
        .with("queueItem", 1, |inside| queue::of_job(world, site, job, inside))
        .with("firstBuild", 1, |inside| one(inside, job.builds.values().next()));
    PERMALINKS.iter().fold(bean, |bean, name| bean.with(name, 1, |inside| one(inside, permalink(job, name))))
}

/// Names for builds that stand for whichever fits.
pub(super) const PERMALINKS: [&str; 7] = [
    "lastBuild",
    "lastCompletedBuild",
    "lastFailedBuild",
    "lastStableBuild",
    "lastSuccessfulBuild",
    "lastUnstableBuild",
    "lastUnsuccessfulBuild",
];

/// The build a name stands for.
pub(super) fn permalink<'a>(job: &'a SimulatedJob, name: &str) -> Option<&'a SimulatedBuild> {
    match name {
        "lastBuild" => job.builds.values().next_back(),
        "lastCompletedBuild" => job.last(&[]),
        "lastFailedBuild" => job.last(&[BuildResult::Failure]),
        "lastStableBuild" => job.last(&[BuildResult::Success]),
        "lastSuccessfulBuild" => job.last(&[BuildResult::Success, BuildResult::Unstable]),
        "lastUnstableBuild" => job.last(&[BuildResult::Unstable]),
        "lastUnsuccessfulBuild" => {
            job.last(&[BuildResult::Failure, BuildResult::Unstable, BuildResult::Aborted, BuildResult::NotBuilt])
        }
        _ => None,
    }
}

fn color(job: &SimulatedJob) -> String {
    let base = match job.last(&[]) {
        _ if job.disabled => "disabled",
        Some(build) => build.outcome.color(),
        None => "notbuilt",
    };
    if job.runs() { format!("{base}_anime") } else { base.to_owned() }
}

/// How many of the last five builds were well, in words and a number.
fn health(job: &SimulatedJob) -> Value {
    let last: Vec<&SimulatedBuild> = job.builds.values().rev().filter(|build| build.over).take(5).collect();
    if last.is_empty() {
        return json!([]);
    }
    let failed = last.iter().filter(|build| build.outcome == BuildResult::Failure).count();
    let score = 100 - 100 * failed / last.len();
    let description = match failed {
        0 => "Build stability: No recent builds failed.".to_owned(),
        _ => format!("Build stability: {failed} out of the last {} builds failed.", last.len()),
    };
    let icon = match score {
        0..=19 => "health-00to19",
        20..=39 => "health-20to39",
        40..=59 => "health-40to59",
        60..=79 => "health-60to79",
        _ => "health-80plus",
    };
    json!([{ "description": description, "iconClassName": format!("icon-{icon}"), "iconUrl": format!("{icon}.png"), "score": score }])
}

fn definition(parameter: &JobParameter) -> Value {
    let class = parameter.class();
    let mut shown = json!({
        "_class": format!("hudson.model.{class}"), "name": parameter.name, "type": class,
        "description": parameter.description, "defaultParameterValue": parameter.default().shown(),
    });
    if let ParameterForm::Choice(choices) = &parameter.form {
        shown["choices"] = json!(choices);
    }
    shown
}

/// A build.
pub(super) fn build(
    world: &JenkinsWorld,
    site: &Site,
    (job, build): (&SimulatedJob, &SimulatedBuild),
    pruner: Pruner<'_>,
) -> Value {
    let now = world.now();
    let class = match job.kind {
        SimulatedJobKind::Pipeline => "org.jenkinsci.plugins.workflow.job.WorkflowRun",
        SimulatedJobKind::Freestyle | SimulatedJobKind::Folder | SimulatedJobKind::Multibranch => {
            "hudson.model.FreeStyleBuild"
        }
    };
    let number_and_url = |build: &SimulatedBuild| json!({ "number": build.number, "url": url(site, job, build) });
    let neighbour =
        |found: Option<(&u64, &SimulatedBuild)>| found.map_or(Value::Null, |(_, build)| number_and_url(build));
    let duration = if build.over { build.elapsed(now).as_millis() } else { 0 };
    let result = if build.over { json!(build.outcome.name()) } else { Value::Null };
    let bean = Bean::new(class, pruner)
        .with("actions", 1, |inside| inside.cut(reports::actions(job, build)))
        .with("artifacts", 1, |inside| inside.cut(reports::artifacts(build)))
        .plain("building", 1, json!(!build.over))
        .plain("description", 1, json!(build.description))
        .plain("displayName", 1, json!(build.name()))
        .plain("duration", 1, json!(duration))
        .plain("estimatedDuration", 1, json!(job.plan.lasts().as_millis()))
        .plain("executor", 1, if build.over { Value::Null } else { json!({}) })
        .plain("fullDisplayName", 1, json!(format!("{} {}", job.path.replace('/', " » "), build.name())))
        .plain("id", 1, json!(build.number.to_string()))
        .plain("inProgress", 1, json!(!build.over))
        .plain("keepLog", 1, json!(build.keep))
        .plain("number", 2, json!(build.number))
        .plain("queueId", 1, json!(build.queue_id))
        .plain("result", 1, result)
        .plain("timestamp", 1, json!(build.began.as_millisecond()))
        .plain("url", 2, json!(url(site, job, build)))
        .plain("culprits", 1, reports::culprits(site, build))
        .plain("nextBuild", 1, neighbour(job.builds.range(build.number + 1..).next()))
        .plain("previousBuild", 1, neighbour(job.builds.range(..build.number).next_back()));
    let bean = match job.kind {
        SimulatedJobKind::Pipeline => bean.plain("changeSets", 1, reports::change_sets(site, build)),
        SimulatedJobKind::Freestyle | SimulatedJobKind::Folder | SimulatedJobKind::Multibranch => {
            bean.plain("builtOn", 1, json!("agent-1")).plain("changeSet", 1, reports::change_set(site, build))
        }
    };
    bean.done()
}

fn url(site: &Site, job: &SimulatedJob, build: &SimulatedBuild) -> String {
    format!("{}{}/", site.job_url(job), build.number)
}
