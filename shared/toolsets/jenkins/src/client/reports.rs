//! What a build is made of and what it left behind: changes, stages, tests, artifacts, script.

use crate::client::build::{Build, ROUTE};
use crate::client::connection::{BodyLimit, MOST_BYTES};
use crate::client::html;
use crate::client::mask;
use crate::client::path::{ArtifactPath, BuildSelector, JobPath};
use crate::client::request::{MissingSubject, ServerRequest, Verb};
use crate::client::server::PermittedServer;
use domain::Failure;
use serde::Deserialize;

const CHANGES: &str = "changeSet[items[commitId,author[fullName],msg,affectedPaths]],\
     changeSets[items[commitId,author[fullName],msg,affectedPaths]]";
const CASES: &str = "suites[cases[className,name,status,errorDetails]]";

/// One commit that is new in a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildCommit {
    /// Its id.
    pub id: String,
    /// Who made it.
    pub author: String,
    /// What they say about it.
    pub message: String,
    /// The files it touches.
    pub paths: Vec<String>,
}

/// One stage of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineStage {
    /// Its id, by which its log is asked for.
    pub id: String,
    /// Its name.
    pub name: String,
    /// How it is.
    pub status: String,
    /// How long it took so far.
    pub duration_ms: u64,
}

/// What a build's tests say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tests {
    /// How many there are.
    pub total: u64,
    /// How many failed.
    pub failed: u64,
    /// How many were left out.
    pub skipped: u64,
    /// Those that failed.
    pub cases: Vec<FailedTest>,
}

/// A test that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedTest {
    /// Its class and name.
    pub name: String,
    /// What it says.
    pub error: Option<String>,
}

/// One artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildArtifact {
    /// Its path within the build.
    pub path: String,
    /// Its length, where the server tells it.
    pub size: Option<u64>,
}

impl PermittedServer<'_> {
    /// The commits that are new in a build.
    pub async fn changes(&self, job: &JobPath, number: u32) -> Result<Vec<BuildCommit>, Failure> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Sets {
            change_set: Option<ChangeSet>,
            #[serde(default)]
            change_sets: Vec<ChangeSet>,
        }
        #[derive(Deserialize)]
        struct ChangeSet {
            #[serde(default)]
            items: Vec<ChangeSetEntry>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ChangeSetEntry {
            #[serde(default)]
            commit_id: String,
            author: Option<CommitAuthor>,
            #[serde(default)]
            msg: String,
            #[serde(default)]
            affected_paths: Vec<String>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct CommitAuthor {
            #[serde(default)]
            full_name: String,
        }
        let request =
            ServerRequest::build(Verb::Get, (job, BuildSelector::Number(number)), "/api/json", ROUTE).tree(CHANGES);
        let sets: Sets = self.read_json(&request).await?;
        let entries = sets.change_set.into_iter().chain(sets.change_sets).flat_map(|set| set.items);
        Ok(entries
            .map(|entry| BuildCommit {
                id: entry.commit_id,
                author: mask::line(&entry.author.map(|author| author.full_name).unwrap_or_default()),
                message: mask::line(&entry.msg),
                paths: entry.affected_paths.iter().map(|path| mask::line(path)).collect(),
            })
            .collect())
    }

    /// The stages of a pipeline build.
    pub async fn stages(&self, job: &JobPath, number: u32) -> Result<Vec<PipelineStage>, Failure> {
        #[derive(Deserialize)]
        struct PipelineBody {
            #[serde(default)]
            stages: Vec<StageBody>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct StageBody {
            id: String,
            #[serde(default)]
            name: String,
            #[serde(default)]
            status: String,
            #[serde(default)]
            duration_millis: u64,
        }
        let request = ServerRequest::build(
            Verb::Get,
            (job, BuildSelector::Number(number)),
            "/wfapi/describe",
            "/job/{job}/{build}/wfapi/describe",
        );
        let found: PipelineBody = self.read_json(&request.or(MissingSubject::Plugin("pipeline-rest-api"))).await?;
        let stage = |one: StageBody| PipelineStage {
            id: one.id,
            name: mask::line(&one.name),
            status: one.status,
            duration_ms: one.duration_millis,
        };
        Ok(found.stages.into_iter().map(stage).collect())
    }

    /// What a build's tests say.
    pub async fn tests(&self, job: &JobPath, number: u32) -> Result<Tests, Failure> {
        let tree = format!("failCount,skipCount,passCount,totalCount,{CASES},childReports[result[{CASES}]]");
        let route = "/job/{job}/{build}/testReport/api/json";
        let request =
            ServerRequest::build(Verb::Get, (job, BuildSelector::Number(number)), "/testReport/api/json", route)
                .tree(tree);
        Ok(self.read_json::<TestReport>(&request.or(MissingSubject::Report)).await?.into())
    }

    /// What a build left behind. Only pipelines tell how long each is.
    pub async fn artifacts(&self, job: &JobPath, build: &Build) -> Result<Vec<BuildArtifact>, Failure> {
        #[derive(Deserialize)]
        struct ArtifactListBody {
            #[serde(default)]
            artifacts: Vec<ArtifactBody>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ArtifactBody {
            relative_path: String,
        }
        #[derive(Deserialize)]
        struct ArtifactSize {
            path: String,
            size: Option<u64>,
        }
        let which = (job, BuildSelector::Number(build.number));
        let request = ServerRequest::build(Verb::Get, which, "/api/json", ROUTE).tree("artifacts[relativePath]");
        let found: ArtifactListBody = self.read_json(&request).await?;
        let mut sized: Vec<ArtifactSize> = Vec::new();
        if build.pipeline && !found.artifacts.is_empty() {
            let route = "/job/{job}/{build}/wfapi/artifacts";
            let request = ServerRequest::build(Verb::Get, which, "/wfapi/artifacts", route);
            // Nice to know; the list is complete without.
            sized = self.read_json(&request.or(MissingSubject::Plugin("pipeline-rest-api"))).await.unwrap_or_default();
        }
        let artifact = |one: ArtifactBody| BuildArtifact {
            size: sized.iter().find(|sized| sized.path == one.relative_path).and_then(|sized| sized.size),
            path: mask::line(&one.relative_path),
        };
        Ok(found.artifacts.into_iter().map(artifact).collect())
    }

    /// The text of one artifact, masked. One that is no text, too large or kept somewhere else is refused.
    pub async fn artifact(&self, job: &JobPath, number: u32, path: &ArtifactPath) -> Result<String, Failure> {
        let request = ServerRequest::build(
            Verb::Get,
            (job, BuildSelector::Number(number)),
            &format!("/artifact{}", path.address()),
            "/job/{job}/{build}/artifact/{path}",
        )
        .or(MissingSubject::Artifact(path.as_str().to_owned()));
        let answer = self.read(&request, BodyLimit::Whole(MOST_BYTES)).await?;
        match String::from_utf8(answer.body) {
            Ok(text) if !text.contains('\0') => Ok(mask::text(&text)),
            Ok(_) | Err(_) => Err(Failure::new(crate::codes::NOT_TEXT, "the artifact is not text")
                .next("choose a text from jenkins_build show=artifacts")),
        }
    }

    /// The script a pipeline build ran, as the form for running it again shows it. Not masked: it is compared and run
    /// again; whoever shows it masks it.
    pub async fn script(&self, job: &JobPath, number: u32) -> Result<String, Failure> {
        let request = ServerRequest::build(
            Verb::Get,
            (job, BuildSelector::Number(number)),
            "/replay/",
            "/job/{job}/{build}/replay/",
        );
        let answer =
            self.read(&request.or(MissingSubject::Plugin("workflow-cps")), BodyLimit::Whole(MOST_BYTES)).await?;
        html::textarea(&String::from_utf8_lossy(&answer.body), "_.mainScript").ok_or_else(|| {
            Failure::new(target::codes::FORBIDDEN, "the tenant's user may not see the script of a build")
                .next("ask an admin of the server for the permission Run/Replay")
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::client) struct TestReport {
    #[serde(default)]
    fail_count: u64,
    #[serde(default)]
    skip_count: u64,
    #[serde(default)]
    pass_count: u64,
    total_count: Option<u64>,
    #[serde(default)]
    suites: Vec<Suite>,
    #[serde(default)]
    child_reports: Vec<Child>,
}

#[derive(Deserialize)]
struct Child {
    result: Option<Suites>,
}

#[derive(Deserialize)]
struct Suites {
    #[serde(default)]
    suites: Vec<Suite>,
}

#[derive(Deserialize)]
struct Suite {
    #[serde(default)]
    cases: Vec<WireCase>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCase {
    #[serde(default)]
    class_name: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    status: String,
    error_details: Option<String>,
}

impl From<TestReport> for Tests {
    fn from(report: TestReport) -> Tests {
        let nested = report.child_reports.into_iter().filter_map(|child| child.result).flat_map(|result| result.suites);
        let cases = report.suites.into_iter().chain(nested).flat_map(|suite| suite.cases);
        let failed = cases.filter(|case| matches!(case.status.as_str(), "FAILED" | "REGRESSION"));
        let counted = [report.fail_count, report.skip_count, report.pass_count];
        Tests {
            total: report.total_count.unwrap_or_else(|| counted.into_iter().fold(0, u64::saturating_add)),
            failed: report.fail_count,
            skipped: report.skip_count,
            cases: failed
                .map(|case| FailedTest {
                    name: mask::line(&format!("{}.{}", case.class_name, case.name)),
                    error: case.error_details.map(|text| mask::line(&text)),
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn failed_tests_are_found_at_both_depths() {
        let report = json!({ "failCount": 2, "skipCount": 1, "totalCount": 9,
            "suites": [{ "cases": [{ "className": "a.B", "name": "c", "status": "REGRESSION", "errorDetails": "token: abcdefgh1234" },
                                   { "className": "a.B", "name": "d", "status": "PASSED" }] }],
            "childReports": [{ "result": { "suites": [{ "cases": [{ "className": "x.Y", "name": "z", "status": "FAILED" }] }] } }, {}] });
        let tests = Tests::from(serde_json::from_value::<TestReport>(report).unwrap());
        assert_eq!((tests.total, tests.failed, tests.skipped), (9, 2, 1));
        let names: Vec<_> = tests.cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names, ["a.B.c", "x.Y.z"]);
        assert!(!tests.cases[0].error.as_ref().unwrap().contains("abcdefgh1234"));
    }
}
