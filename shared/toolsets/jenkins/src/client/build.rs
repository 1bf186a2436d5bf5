//! One build: how it went, why it was started and with what.

use crate::client::job::plain;
use crate::client::mask;
use crate::client::path::{BuildSelector, JobPath};
use crate::client::request::{ServerRequest, Verb};
use crate::client::scm::{self, ScmRevision};
use crate::client::server::PermittedServer;
use crate::codes;
use domain::Failure;
use serde::Deserialize;
use serde_json::Value;

pub(in crate::client) const ROUTE: &str = "/job/{job}/{build}/api/json";
const SUMMARY: &str = "_class,number,result,building,timestamp,duration,displayName,description,keepLog,queueId,builtOn,\
     actions[_class,causes[_class,shortDescription,userId],parameters[_class,name,value],\
     remoteUrls,lastBuiltRevision[SHA1,branch[name]]]";

/// One build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// Its number.
    pub number: u32,
    /// Whether it runs a script of stages.
    pub pipeline: bool,
    /// How it ended; `None` while it runs.
    pub result: Option<String>,
    /// Whether it runs.
    pub running: bool,
    /// When it began, in milliseconds since 1970.
    pub started_ms: u64,
    /// How long it took; nothing while it runs.
    pub duration_ms: u64,
    /// What it is called.
    pub display_name: String,
    /// What somebody says about it.
    pub description: Option<String>,
    /// Whether it is kept for ever.
    pub keep: bool,
    /// The item of the queue it came from.
    pub queue_id: Option<u64>,
    /// The agent it ran on, where that is one.
    pub agent: Option<String>,
    /// Why it was started, in Jenkins' own words.
    pub causes: Vec<String>,
    /// Who started it, if a user did.
    pub by: Option<String>,
    /// The build it is a replay of.
    pub replay_of: Option<u32>,
    /// What it was given.
    pub parameters: Vec<GivenParameter>,
    /// What was checked out.
    pub revisions: Vec<ScmRevision>,
}

/// A parameter as it was given to a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenParameter {
    /// Its name.
    pub name: String,
    /// Its value, masked if it is a secret.
    pub value: String,
    /// Whether it is a secret.
    pub secret: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::client) struct BuildBody {
    #[serde(rename = "_class", default)]
    class: String,
    number: u32,
    result: Option<String>,
    #[serde(default)]
    building: bool,
    #[serde(default)]
    timestamp: u64,
    #[serde(default)]
    duration: u64,
    display_name: Option<String>,
    description: Option<String>,
    #[serde(default)]
    keep_log: bool,
    queue_id: Option<u64>,
    built_on: Option<String>,
    #[serde(default)]
    actions: Vec<Option<BuildAction>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::client) struct BuildAction {
    #[serde(default)]
    pub(in crate::client) causes: Vec<BuildCause>,
    #[serde(default)]
    pub(in crate::client) parameters: Vec<BuildParameterBody>,
    #[serde(default)]
    pub(in crate::client) remote_urls: Vec<String>,
    pub(in crate::client) last_built_revision: Option<scm::WireRevision>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::client) struct BuildCause {
    #[serde(rename = "_class", default)]
    class: String,
    #[serde(default)]
    short_description: String,
    user_id: Option<String>,
}

#[derive(Deserialize)]
pub(in crate::client) struct BuildParameterBody {
    #[serde(rename = "_class", default)]
    class: String,
    #[serde(default)]
    name: String,
    value: Option<Value>,
}

impl BuildCause {
    pub(in crate::client) fn user(&self) -> Option<&str> {
        self.user_id.as_deref()
    }

    /// The build that was replayed. Only the sentence holds its number: `Replayed #7`.
    fn replay_of(&self) -> Option<u32> {
        let sentence = Some(self.short_description.as_str()).filter(|_| self.class.ends_with(".ReplayCause"))?;
        let digits = sentence.rsplit('#').next()?;
        digits.trim().parse().ok()
    }
}

impl BuildParameterBody {
    pub(in crate::client) fn given(self) -> GivenParameter {
        let secret = self.class.contains("Password") || self.class.contains("Secret");
        let value = self.value.and_then(plain).unwrap_or_default();
        GivenParameter { value: mask::parameter(&self.name, &value, secret), name: self.name, secret }
    }

    /// Whether it carries exactly this.
    pub(in crate::client) fn is(&self, name: &str, value: &str) -> bool {
        self.name == name && self.value.as_ref().and_then(Value::as_str) == Some(value)
    }
}

impl PermittedServer<'_> {
    /// One build, or a failure that names the newest.
    pub async fn build(&self, job: &JobPath, which: BuildSelector) -> Result<Build, Failure> {
        let request = ServerRequest::build(Verb::Get, (job, which), "/api/json", ROUTE).tree(SUMMARY);
        match self.read_json::<BuildBody>(&request).await {
            Ok(wire) => Ok(Build::from(wire)),
            Err(failure) if failure.code == codes::BUILD_NOT_FOUND => Err(self.no_build(failure, job).await),
            Err(failure) => Err(failure),
        }
    }

    /// A build that is not there: perhaps the job is not; otherwise its newest number is told.
    pub(in crate::client) async fn no_build(&self, failure: Failure, job: &JobPath) -> Failure {
        match self.job(job).await {
            Ok(found) => match found.last {
                Some(newest) => failure.next(format!("its newest build is {newest}")),
                None => failure.next("it has no builds yet; start one with jenkins_trigger"),
            },
            Err(absent) if absent.code == codes::JOB_NOT_FOUND => absent,
            Err(_) => failure,
        }
    }

    /// Numbers of the builds that carry this value in this parameter, among the newest.
    pub async fn builds_with(&self, job: &JobPath, name: &str, value: &str) -> Result<Vec<u32>, Failure> {
        let found = self.newest(job, "actions[parameters[_class,name,value]]").await?;
        let carries =
            |build: &WireNewest| build.actions.iter().flatten().any(|a| a.parameters.iter().any(|p| p.is(name, value)));
        Ok(found.into_iter().filter(carries).map(|build| build.number).collect())
    }

    /// Numbers and beginnings of the builds by our user that are replays of this one, among the newest.
    pub async fn replays_of(&self, job: &JobPath, number: u32) -> Result<Vec<(u32, u64)>, Failure> {
        let found = self.newest(job, "actions[causes[_class,shortDescription,userId]]").await?;
        let is_one = |build: &WireNewest| {
            let causes = || build.actions.iter().flatten().flat_map(|action| &action.causes);
            causes().any(|cause| cause.replay_of() == Some(number))
                && causes().any(|cause| cause.user() == Some(self.user()))
        };
        Ok(found.into_iter().filter(is_one).map(|build| (build.number, build.timestamp)).collect())
    }

    async fn newest(&self, job: &JobPath, more: &str) -> Result<Vec<WireNewest>, Failure> {
        /// How far back a build of ours is looked for.
        const MOST: usize = 50;
        #[derive(Deserialize)]
        struct BuildListBody {
            #[serde(default)]
            builds: Vec<WireNewest>,
        }
        let tree = format!("builds[number,timestamp,{more}]{{0,{MOST}}}");
        let request = ServerRequest::job(Verb::Get, job, "/api/json", "/job/{job}/api/json").tree(tree);
        Ok(self.read_json::<BuildListBody>(&request).await?.builds)
    }
}

#[derive(Deserialize)]
struct WireNewest {
    number: u32,
    #[serde(default)]
    timestamp: u64,
    #[serde(default)]
    actions: Vec<Option<BuildAction>>,
}

impl From<BuildBody> for Build {
    fn from(wire: BuildBody) -> Build {
        let mut build = Build {
            number: wire.number,
            pipeline: wire.class.ends_with(".WorkflowRun"),
            result: wire.result,
            running: wire.building,
            started_ms: wire.timestamp,
            duration_ms: wire.duration,
            display_name: mask::line(&wire.display_name.unwrap_or_else(|| format!("#{}", wire.number))),
            description: wire.description.filter(|text| !text.is_empty()).map(|text| mask::text(&text)),
            keep: wire.keep_log,
            queue_id: wire.queue_id,
            agent: wire.built_on.filter(|agent| !agent.is_empty()),
            causes: Vec::new(),
            by: None,
            replay_of: None,
            parameters: Vec::new(),
            revisions: Vec::new(),
        };
        for action in wire.actions.into_iter().flatten() {
            build.revisions.extend(scm::revision(&action));
            for cause in action.causes {
                build.by = build.by.take().or_else(|| cause.user_id.clone());
                build.replay_of = build.replay_of.or_else(|| cause.replay_of());
                build.causes.push(mask::line(&cause.short_description));
            }
            build.parameters.extend(action.parameters.into_iter().map(BuildParameterBody::given));
        }
        build
    }
}

#[cfg(test)]
mod tests;
