//! What a build carries: why it ran, with what, on which commits, and what it left behind.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::build::{Order, SimulatedBuild};
use super::exports::Site;
use super::job::{SimulatedJob, SimulatedJobKind};
use super::plan::{BuildResult, CaseResult, PlannedCase, PlannedCommit};
use crate::clock;

/// What an order adds to a queue item and then to its build.
pub(super) fn order_actions(order: &Order) -> Value {
    let causes: Vec<Value> = order.causes.iter().map(super::build::SimulatedCause::shown).collect();
    let settings: Vec<Value> = order.settings.iter().map(super::build::ParameterSetting::shown).collect();
    let mut actions = Vec::new();
    if !settings.is_empty() {
        actions.push(json!({ "_class": "hudson.model.ParametersAction", "parameters": settings }));
    }
    actions.push(json!({ "_class": "hudson.model.CauseAction", "causes": causes }));
    Value::Array(actions)
}

/// The actions of a build, among them empty ones, as plugins leave them.
pub(super) fn actions(job: &SimulatedJob, build: &SimulatedBuild) -> Value {
    let Value::Array(mut actions) = order_actions(&build.order) else { return json!([]) };
    actions.push(json!({}));
    if let Some(source) = &job.source {
        let branch = json!([{ "SHA1": build.revision, "name": format!("refs/remotes/origin/{}", source.branch) }]);
        actions.push(json!({
            "_class": "hudson.plugins.git.util.BuildData",
            "buildsByBranchName": {},
            "lastBuiltRevision": { "SHA1": build.revision, "branch": branch },
            "remoteUrls": [source.url],
            "scmName": "",
        }));
    }
    if has_report(build) {
        let (failed, skipped) = (count(build, is_failed), count(build, is_skipped));
        actions.push(json!({
            "_class": "hudson.tasks.junit.TestResultAction",
            "failCount": failed, "skipCount": skipped, "totalCount": build.plan.cases.len(), "urlName": "testReport",
        }));
    }
    if job.kind == SimulatedJobKind::Pipeline {
        actions.push(json!({ "_class": "org.jenkinsci.plugins.workflow.job.views.FlowGraphAction" }));
        actions.push(json!({ "_class": "org.jenkinsci.plugins.workflow.cps.replay.ReplayAction" }));
    }
    Value::Array(actions)
}

/// The list of archived files. Their sizes are not in it; only the stage view's own list has them.
pub(super) fn artifacts(build: &SimulatedBuild) -> Value {
    let shown = archived(build).iter().map(|(path, _)| {
        let name = path.rsplit('/').next().unwrap_or(path);
        json!({ "displayPath": name, "fileName": name, "relativePath": path })
    });
    shown.collect()
}

/// What was archived: nothing before the end.
pub(super) fn archived(build: &SimulatedBuild) -> &[(String, Vec<u8>)] {
    if build.over { &build.plan.artifacts } else { &[] }
}

/// A freestyle build has one change set.
pub(super) fn change_set(site: &Site, build: &SimulatedBuild) -> Value {
    let items: Vec<Value> = build.plan.changes.iter().map(|change| shown_change(site, build, change)).collect();
    json!({ "_class": "hudson.plugins.git.GitChangeSetList", "items": items, "kind": "git" })
}

/// A pipeline has one for each checkout, none if nothing changed.
pub(super) fn change_sets(site: &Site, build: &SimulatedBuild) -> Value {
    if build.plan.changes.is_empty() { json!([]) } else { json!([change_set(site, build)]) }
}

pub(super) fn culprits(site: &Site, build: &SimulatedBuild) -> Value {
    build.plan.changes.iter().map(|change| person(site, &change.author)).collect()
}

fn person(site: &Site, name: &str) -> Value {
    let user = super::exports::encoded(&name.to_lowercase());
    json!({ "absoluteUrl": format!("{}/user/{user}", site.root), "fullName": name })
}

fn shown_change(site: &Site, build: &SimulatedBuild, change: &PlannedCommit) -> Value {
    let digest = Sha256::digest(format!("{}{}", build.revision, change.message));
    let id: String = digest.iter().take(20).map(|byte| format!("{byte:02x}")).collect();
    let paths: Vec<Value> = change.paths.iter().map(|path| json!({ "editType": "edit", "file": path })).collect();
    json!({
        "_class": "hudson.plugins.git.GitChangeSet",
        "affectedPaths": change.paths, "author": person(site, &change.author), "commitId": id, "id": id,
        "authorEmail": format!("{}@shop.example", change.author.to_lowercase().replace(' ', ".")),
        "comment": format!("{}\n", change.message), "msg": change.message.lines().next().unwrap_or_default(),
        "date": clock::stamp(build.began), "timestamp": build.began.as_millisecond(), "paths": paths,
    })
}

/// The test report; there is none if no case was planned, or before the end.
pub(super) fn tests(build: &SimulatedBuild) -> Option<Value> {
    if !has_report(build) {
        return None;
    }
    let mut suites: Vec<(&str, Vec<Value>)> = Vec::new();
    for case in &build.plan.cases {
        match suites.iter_mut().find(|(class, _)| *class == case.class) {
            Some((_, cases)) => cases.push(shown_case(build, case)),
            None => suites.push((&case.class, vec![shown_case(build, case)])),
        }
    }
    let suites: Vec<Value> = suites
        .into_iter()
        .map(|(class, cases)| {
            json!({
                "cases": cases, "duration": 0.5, "enclosingBlockNames": [], "enclosingBlocks": [], "id": null,
                "name": class, "nodeId": null, "stderr": null, "stdout": null, "timestamp": null,
            })
        })
        .collect();
    Some(json!({
        "_class": "hudson.tasks.junit.TestResult", "testActions": [], "duration": 0.5, "empty": false,
        "failCount": count(build, is_failed), "passCount": count(build, |case| case.verdict == CaseResult::Passed),
        "skipCount": count(build, is_skipped), "suites": suites,
    }))
}

fn has_report(build: &SimulatedBuild) -> bool {
    // A build that was stopped did not reach the step that publishes the report.
    build.over && build.outcome != BuildResult::Aborted && !build.plan.cases.is_empty()
}

fn count(build: &SimulatedBuild, fits: impl Fn(&PlannedCase) -> bool) -> usize {
    build.plan.cases.iter().filter(|case| fits(case)).count()
}

fn is_failed(case: &PlannedCase) -> bool {
    match case.verdict {
        CaseResult::Failed | CaseResult::Regression => true,
        CaseResult::Passed | CaseResult::Skipped => false,
    }
}

fn is_skipped(case: &PlannedCase) -> bool {
    case.verdict == CaseResult::Skipped
}

fn shown_case(build: &SimulatedBuild, case: &PlannedCase) -> Value {
    let (status, age) = match case.verdict {
        CaseResult::Passed => ("PASSED", 0),
        CaseResult::Failed => ("FAILED", 3),
        CaseResult::Regression => ("REGRESSION", 1),
        CaseResult::Skipped => ("SKIPPED", 0),
    };
    let (details, trace) = if is_failed(case) {
        let details = format!("expected {} to hold", case.name);
        let trace =
            format!("java.lang.AssertionError: {details}\n\tat {}.{}({}.java:42)", case.class, case.name, case.class);
        (json!(details), json!(trace))
    } else {
        (Value::Null, Value::Null)
    };
    json!({
        "testActions": [], "age": age, "className": case.class, "duration": 0.01, "errorDetails": details,
        "errorStackTrace": trace, "failedSince": if is_failed(case) { build.number } else { 0 }, "name": case.name,
        "properties": {}, "skipped": is_skipped(case), "skippedMessage": null, "status": status,
        "stderr": null, "stdout": null,
    })
}
