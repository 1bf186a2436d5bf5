//! `helm_test`: runs a release's test hooks and returns their logs.
//!
//! How a test ended is the result and no failure; a test that could not be run at all is one.

use super::grammar::{HelmTimeout, LONGEST, ReleaseName};
use super::preview;
use super::release::{FullRevision, ReleaseRef};
use super::{HelmDeps, TOOLSET, fault, hold, risks};
use crate::client::Subcommand;
use crate::codes;
use catalog::{ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Effect, Failure, Moment};
use kubernetes::client::KnownSecrets;
use kubernetes::k8s::reply::{ClusterNote, ClusterReplyFields};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use target::grammar::Label;
use target::written::{KeptEnd, shown};

/// How many tests are told of.
const MOST: usize = 20;
/// The longest log of one test.
const MOST_LOG: usize = 2 * 1024;

pub(super) struct Test {
    pub(super) kit: HelmDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    release: ReleaseName,
    namespace: Option<Label>,
    #[schemars(range(min = 10, max = 900), extend("x-wire" = ["maximum"]))]
    timeout_s: Option<u32>,
    cluster: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TestOutput {
    passed: bool,
    tests: Vec<TestRun>,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TestRun {
    name: String,
    phase: String,
    log: String,
}

impl Args {
    fn spot<'p>(&self, kit: &'p HelmDeps, permit: &'p Permit) -> Result<ReleaseRef<'p>, Failure> {
        let place = (self.cluster.as_ref(), self.namespace.as_ref());
        let spot = ReleaseRef::to_change(kit, permit, place, &self.release, self.timeout_s)?;
        spot.unprotected()?;
        Ok(spot)
    }
}

impl Tool for Test {
    const SPEC: ToolSpec = ToolSpec::new("helm_test", TOOLSET, Effect::Change)
        .says("Test a release", "Run a release's test hooks and return their logs.")
        .hint(
            "For agents that check a release after a change; test hooks are programs that the chart's author wrote, \
             and they run in the cluster with the rights of their service account.",
        )
        .deadline(LONGEST)
        .outside_text();
    type Args = Args;
    type Output = TestOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Change
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        let spot = args.spot(&self.kit, permit)?;
        let (_, newest) = hold::changeable(&self.kit, permit, &spot).await?;
        let standing = spot.standing(Some(newest.revision)).await?;
        let known = standing.secrets(&spot.cluster)?;
        let mut preview = preview::of(&spot, Some(&newest));
        let objects = tests(&standing)?;
        for object in &objects {
            let masked = spot.cluster.masked_object(object.clone(), &known);
            for container in masked.pointer("/spec/containers").and_then(Value::as_array).into_iter().flatten() {
                let (image, command) = (&container["image"], &container["command"]);
                preview.judge(format!(
                    "{}: image {image}, command {command} {}",
                    super::objects::identity(object),
                    container["args"]
                ));
            }
        }
        risks::within_bounds(&spot, &objects)?;
        risks::judge(&spot, &objects).await?.warnings().into_iter().for_each(|warning| preview.warn(warning));
        Ok(Some(preview::drawn(&spot.cluster, preview, format!("test release {}/{}", spot.namespace, spot.name))))
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        let looked = async {
            let spot = args.spot(&self.kit, permit)?;
            let standing = spot.standing(None).await?;
            let decided = permit.approval().map(|approval| approval.at);
            let ran = standing.hooks.iter().filter(|hook| hook.is_test()).any(|hook| {
                let began = Moment::parse(&hook.last_run.started_at);
                began.zip(decided).is_some_and(|(began, decided)| began >= decided)
                    && matches!(hook.last_run.phase.as_str(), "Succeeded" | "Failed")
            });
            Ok::<_, Failure>(ran)
        };
        match looked.await {
            Ok(true) => ProbeResult::Done(None),
            Ok(false) | Err(_) => ProbeResult::Unknown,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<TestOutput, Failure> {
        let spot = args.spot(&self.kit, permit)?;
        let patience = HelmTimeout::of(args.timeout_s);
        let work = async {
            let (_, newest) = spot.history().await?;
            spot.unlocked(&newest)?;
            tests(&spot.standing(Some(newest.revision)).await?)?;
            let asked = spot.ask(Subcommand::Test).switch("--logs").flag("--timeout", patience.helms_own());
            let finished = spot.run(asked.within(patience.ours()).positional(&spot.name)).await?;
            let after = spot.standing(Some(newest.revision)).await?;
            let ran = |phase: &str| matches!(phase, "Succeeded" | "Failed");
            if !finished.success() && !after.hooks.iter().any(|hook| hook.is_test() && ran(&hook.last_run.phase)) {
                let failure = fault::of(&spot.cluster, &KnownSecrets::default(), &finished);
                return Err(Failure {
                    code: codes::TEST_FAILED,
                    message: "the tests could not be run".to_owned(),
                    ..failure
                });
            }
            Ok((finished.success(), finished.stdout.lossy(), after))
        };
        let (passed, printed, after) = hold::holding(&self.kit, permit, &spot, work).await?;
        let known = after.secrets(&spot.cluster)?;
        let logs = spot.cluster.masked_text(&printed, &known);
        let named = (args.cluster.is_some(), args.namespace.is_some());
        let tests = after.hooks.iter().filter(|hook| hook.is_test()).take(MOST);
        let one = |hook: &super::release::Hook| TestRun {
            name: hook.name.clone(),
            phase: hook.last_run.phase.clone(),
            log: log_of(&logs, &hook.name),
        };
        Ok(TestOutput {
            passed,
            tests: tests.map(one).collect(),
            common: ClusterNote::answer(&spot.cluster, Some(&spot.namespace), named),
        })
    }
}

/// The objects of the tests, of which there must be some.
fn tests(standing: &FullRevision) -> Result<Vec<Value>, Failure> {
    let mut objects = Vec::new();
    for hook in standing.hooks.iter().filter(|hook| hook.is_test()) {
        objects.extend(super::objects::read(&hook.manifest)?);
    }
    match objects.is_empty() {
        true => Err(Failure::new(codes::NO_TESTS, "the chart has no tests").next("look at its workloads with k8s_get")),
        false => Ok(objects),
    }
}

/// The part of what helm printed that is one pod's log.
fn log_of(printed: &str, name: &str) -> String {
    let heading =
        |line: &str| line.strip_prefix("POD LOGS: ").map(|rest| rest.split(' ').next().unwrap_or_default() == name);
    let mut within = false;
    let mut lines = Vec::new();
    for line in printed.lines() {
        match heading(line) {
            Some(ours) => within = ours,
            None if within => lines.push(line),
            None => {}
        }
    }
    let (mut text, _) = shown(&lines.join("\n"), KeptEnd::Last);
    target::reply::cut_text(&mut text, MOST_LOG);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_has_its_own_log() {
        let printed = "NAME: a\nPOD LOGS: a-one (check)\nfirst\nPOD LOGS: a-two\nsecond\nthird\n";
        assert_eq!(log_of(printed, "a-one"), "first");
        assert_eq!(log_of(printed, "a-two"), "second\nthird");
        assert_eq!(log_of(printed, "a"), "");
    }
}
