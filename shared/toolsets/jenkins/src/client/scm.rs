//! Where a job's sources come from: from its configuration, or, without the permission to read that, from its last build.

use crate::client::build::BuildAction;
use crate::client::connection::BodyLimit;
use crate::client::mask;
use crate::client::path::{BuildSelector, JobPath};
use crate::client::request::{ServerRequest, Verb};
use crate::client::server::PermittedServer;
use crate::client::xml::{self, Element};
use crate::codes;
use domain::Failure;
use serde::Deserialize;

/// The largest configuration that is looked into.
const MOST_BYTES: usize = 1024 * 1024;

/// Where a job's sources come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scm {
    /// Each place.
    pub sources: Vec<ScmSource>,
    /// Whether this is what the last build used, because the configuration may not be read.
    pub from_last_build: bool,
}

/// One place sources come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScmSource {
    /// `git`, `github`, or the last word of whatever class it is.
    pub kind: String,
    /// Where the repository is, without its user part.
    pub url: Option<String>,
    /// What is built.
    pub branches: Vec<String>,
    /// Where in the repository the pipeline's script is.
    pub script_path: Option<String>,
    /// Whether a stored credential is used; `None` if that is not told.
    pub has_credentials: Option<bool>,
}

/// What a build checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScmRevision {
    /// Where the repository is, without its user part.
    pub url: Option<String>,
    /// The commit.
    pub revision: String,
    /// The branch it was found by.
    pub branch: Option<String>,
}

#[derive(Deserialize)]
pub(in crate::client) struct WireRevision {
    #[serde(rename = "SHA1", default)]
    sha1: String,
    #[serde(default)]
    branch: Vec<WireBranch>,
}

#[derive(Deserialize)]
struct WireBranch {
    #[serde(default)]
    name: String,
}

/// What an action of a build says it checked out.
pub(in crate::client) fn revision(action: &BuildAction) -> Option<ScmRevision> {
    let built = action.last_built_revision.as_ref()?;
    Some(ScmRevision {
        url: action.remote_urls.first().map(|url| mask::address(url)),
        revision: mask::line(&built.sha1),
        branch: built.branch.first().map(|branch| mask::line(&branch.name)),
    })
}

impl PermittedServer<'_> {
    /// Where a job's sources come from.
    pub async fn scm(&self, job: &JobPath) -> Result<Scm, Failure> {
        let request = ServerRequest::job(Verb::Get, job, "/config.xml", "/job/{job}/config.xml");
        match self.read(&request, BodyLimit::Whole(MOST_BYTES)).await {
            Ok(answer) => {
                let root = xml::read(&String::from_utf8_lossy(&answer.body)).ok_or_else(unreadable)?;
                Ok(Scm { sources: sources(&root), from_last_build: false })
            }
            Err(failure) if failure.code == target::codes::FORBIDDEN => self.scm_of_last_build(job).await,
            Err(failure) if failure.code == codes::JOB_NOT_FOUND => Err(self.explained(failure, Some(job)).await),
            Err(failure) => Err(failure),
        }
    }

    async fn scm_of_last_build(&self, job: &JobPath) -> Result<Scm, Failure> {
        let revisions = match self.build(job, BuildSelector::Last).await {
            Ok(build) => build.revisions,
            Err(failure) if failure.code == codes::BUILD_NOT_FOUND => Vec::new(),
            Err(failure) => return Err(failure),
        };
        let source = |revision: ScmRevision| ScmSource {
            kind: "git".to_owned(),
            url: revision.url,
            branches: revision.branch.into_iter().collect(),
            ..ScmSource::default()
        };
        Ok(Scm { sources: revisions.into_iter().map(source).collect(), from_last_build: true })
    }
}

fn unreadable() -> Failure {
    Failure::new(target::codes::UNSUPPORTED, "the job's configuration cannot be read")
        .next("look at show=scm of a build")
}

/// The sources a configuration names: `scm` of a job, `source` of a job with branches. Nothing else is taken out of it.
pub(in crate::client) fn sources(root: &Element) -> Vec<ScmSource> {
    let (mut single, mut branched) = (Vec::new(), Vec::new());
    root.all("scm", &mut single);
    root.all("source", &mut branched);
    let script_path = root.text_at(&["definition", "scriptPath"]).or_else(|| root.text_at(&["factory", "scriptPath"]));
    let found =
        single.into_iter().chain(branched).filter(|scm| !scm.class.is_empty() && !scm.class.ends_with("NullSCM"));
    found.map(|scm| source(scm, script_path)).collect()
}

fn source(scm: &Element, script_path: Option<&str>) -> ScmSource {
    let texts = |name: &str| {
        let mut found = Vec::new();
        scm.all(name, &mut found);
        found
            .into_iter()
            .map(|element| element.text.trim().to_owned())
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
    };
    let url = ["url", "remote", "repositoryUrl"].iter().find_map(|name| texts(name).into_iter().next());
    let mut specs = Vec::new();
    scm.all("hudson.plugins.git.BranchSpec", &mut specs);
    ScmSource {
        kind: kind(&scm.class),
        url: url.map(|url| mask::address(&url)),
        branches: specs.iter().filter_map(|spec| spec.text_at(&["name"])).map(mask::line).collect(),
        script_path: script_path.map(mask::line),
        has_credentials: Some(!texts("credentialsId").is_empty()),
    }
}

fn kind(class: &str) -> String {
    let last = class.rsplit('.').next().unwrap_or_default();
    let word = last.trim_end_matches("Source").trim_end_matches("SCM");
    if word.is_empty() { last.to_owned() } else { word.to_ascii_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_is_taken_out_of_a_configuration() {
        let text = "<flow-definition><properties><x><defaultValue>hunter2</defaultValue></x></properties>\
            <definition class=\"a.CpsScmFlowDefinition\"><scm class=\"hudson.plugins.git.GitSCM\"><userRemoteConfigs>\
            <hudson.plugins.git.UserRemoteConfig><url>https://robot:hunter2@git.example/a.git</url>\
            <credentialsId>git</credentialsId></hudson.plugins.git.UserRemoteConfig></userRemoteConfigs><branches>\
            <hudson.plugins.git.BranchSpec><name>*/main</name></hudson.plugins.git.BranchSpec></branches></scm>\
            <scriptPath>ci/Jenkinsfile</scriptPath></definition></flow-definition>";
        let found = sources(&xml::read(text).unwrap());
        assert_eq!(
            found,
            [ScmSource {
                kind: "git".into(),
                url: Some("https://git.example/a.git".into()),
                branches: vec!["*/main".into()],
                script_path: Some("ci/Jenkinsfile".into()),
                has_credentials: Some(true),
            }]
        );
        let none = xml::read("<project><scm class=\"hudson.scm.NullSCM\"/></project>").unwrap();
        assert_eq!(sources(&none), []);
        assert_eq!(kind("org.jenkinsci.plugins.github_branch_source.GitHubSCMSource"), "github");
    }
}
