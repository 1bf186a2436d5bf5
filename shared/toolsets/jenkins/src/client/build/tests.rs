//! What is read out of Jenkins' own words.

use super::*;
use serde_json::json;

#[test]
fn a_build_is_read_with_its_causes_and_its_secrets_masked() {
    let wire = json!({ "_class": "org.jenkinsci.plugins.workflow.job.WorkflowRun", "number": 8, "building": true,
        "description": "uses password=correcthorsebattery", "displayName": "#8", "queueId": 31, "actions": [ {}, null,
        { "causes": [ { "_class": "hudson.model.Cause$UserIdCause", "shortDescription": "Started by user Ada", "userId": "ada" },
                      { "_class": "org.jenkinsci.plugins.workflow.cps.replay.ReplayCause", "shortDescription": "Replayed #7" } ] },
        { "parameters": [ { "_class": "hudson.model.StringParameterValue", "name": "ENV", "value": "prod" },
                          { "_class": "hudson.model.BooleanParameterValue", "name": "DRY", "value": true },
                          { "_class": "hudson.model.PasswordParameterValue", "name": "KEY", "value": "hunter2" } ] },
        { "_class": "hudson.plugins.git.util.BuildData", "remoteUrls": ["https://u:p@git.example/a.git"],
          "lastBuiltRevision": { "SHA1": "abc", "branch": [{ "name": "origin/main" }] } } ] });
    let build = Build::from(serde_json::from_value::<BuildBody>(wire).unwrap());
    assert_eq!(
        (build.pipeline, build.running, build.replay_of, build.by.as_deref()),
        (true, true, Some(7), Some("ada"))
    );
    let given: Vec<_> = build.parameters.iter().map(|p| (p.name.as_str(), p.value.as_str(), p.secret)).collect();
    assert_eq!(given, [("ENV", "prod", false), ("DRY", "true", false), ("KEY", "masked", true)]);
    assert!(!build.description.unwrap().contains("correcthorse"));
    assert_eq!(build.revisions[0].url.as_deref(), Some("https://git.example/a.git"));
}

#[test]
fn a_replay_is_told_by_its_own_kind_of_cause_alone() {
    let cause = |class: &str, text: &str| {
        serde_json::from_value::<BuildCause>(json!({ "_class": class, "shortDescription": text })).unwrap().replay_of()
    };
    assert_eq!(cause("a.b.ReplayCause", "Replayed #12"), Some(12));
    assert_eq!(cause("a.b.OtherCause", "Replayed #12"), None);
    assert_eq!(cause("a.b.ReplayCause", "Replayed"), None);
}
