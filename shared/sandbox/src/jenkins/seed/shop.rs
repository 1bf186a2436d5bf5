//! The CI of a small shop.

use std::time::Duration;

use super::super::job::{JobParameter, SimulatedJob};
use super::super::plan::{BuildResult, BuildScript, CaseResult};

const HOUR: Duration = Duration::from_secs(3_600);
const REPOSITORY: &str = "https://git.shop.example/shop/checkout.git";

/// The script of the deployment, as its replay form shows it.
const DEPLOY: &str = "\
pipeline {
  agent any
  stages {
    stage('Render') { steps { sh \"helm template shop charts/shop --set version=${params.VERSION}\" } }
    stage('Roll out') { steps { sh \"deploy/rollout ${params.ENVIRONMENT} && deploy/verify\" } }
  }
}
";

pub(super) fn jobs() -> Vec<SimulatedJob> {
    vec![
        SimulatedJob::folder("platform").describe("What everything else stands on"),
        SimulatedJob::folder("platform/images"),
        base_image(),
        load_test(),
        SimulatedJob::folder("shop").describe("The shop and its parts"),
        SimulatedJob::multibranch("shop/checkout").source(REPOSITORY, "main").with_credentials(),
        checkout_main(),
        checkout_feature(),
        deploy(),
        publish(),
        legacy_sync(),
        smoke(),
    ]
}

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

fn base_image() -> SimulatedJob {
    let plan =
        BuildScript::new().stage("Build", seconds(4), &["+ docker build -t base:1 .", "Successfully tagged base:1"]);
    SimulatedJob::freestyle("platform/images/base")
        .source("https://git.shop.example/platform/base.git", "main")
        .plan(plan.clone())
        .past(50 * HOUR, plan.clone())
        .past(2 * HOUR, plan)
}

/// Its builds wait for an agent that nobody has.
fn load_test() -> SimulatedJob {
    SimulatedJob::pipeline("platform/load-test").on_agent("gpu").describe("Needs an agent with the label gpu")
}

fn checkout(outcome: BuildResult, refunds: CaseResult) -> BuildScript {
    let verdict = match outcome {
        BuildResult::Success => "BUILD SUCCESS",
        BuildResult::Unstable | BuildResult::Failure | BuildResult::Aborted | BuildResult::NotBuilt => {
            "There were test failures"
        }
    };
    BuildScript::new()
        .stage("Checkout", seconds(2), &["Cloning repository", "Checking out Revision"])
        .stage("Build", seconds(6), &["+ ./gradlew assemble", "> Task :compileJava", "> Task :assemble"])
        .stage("Test", seconds(5), &["+ ./gradlew test", "> Task :test", verdict])
        .change("Mina Hart", "Round refunds to the cent", &["src/main/java/shop/Refunds.java"])
        .case("shop.CartTest", "addsAnItem", CaseResult::Passed)
        .case("shop.CartTest", "removesAnItem", CaseResult::Passed)
        .case("shop.RefundsTest", "roundsToTheCent", refunds)
        .case("shop.PaymentTest", "retriesOnce", CaseResult::Skipped)
        .artifact("build/libs/checkout.txt", "checkout 1.8.2\n")
        .artifact("build/reports/summary.json", "{\"tests\":4}\n")
        .ending(outcome)
}

fn checkout_main() -> SimulatedJob {
    SimulatedJob::pipeline("shop/checkout/main")
        .source(REPOSITORY, "main")
        .with_credentials()
        .plan(checkout(BuildResult::Success, CaseResult::Passed))
        .past(30 * HOUR, checkout(BuildResult::Success, CaseResult::Passed))
        .past(6 * HOUR, checkout(BuildResult::Success, CaseResult::Passed))
        .past(HOUR, checkout(BuildResult::Unstable, CaseResult::Regression))
}

fn checkout_feature() -> SimulatedJob {
    SimulatedJob::pipeline("shop/checkout/feature%2Fgift-cards")
        .source(REPOSITORY, "feature/gift-cards")
        .with_credentials()
        .plan(checkout(BuildResult::Success, CaseResult::Passed))
        .past(3 * HOUR, checkout(BuildResult::Success, CaseResult::Passed))
}

fn rollout(outcome: BuildResult) -> BuildScript {
    let end = match outcome {
        BuildResult::Success => "deployment \"cart\" successfully rolled out",
        BuildResult::Unstable | BuildResult::Failure | BuildResult::Aborted | BuildResult::NotBuilt => {
            "error: deployment \"cart\" exceeded its progress deadline"
        }
    };
    BuildScript::new()
        .stage("Render", seconds(2), &["+ helm template shop charts/shop", "wrote manifest.yaml"])
        .stage("Roll out", seconds(6), &["+ deploy/rollout", "Waiting for deployment \"cart\" rollout to finish", end])
        .artifact("manifest.yaml", "kind: Deployment\n")
        .ending(outcome)
}

fn deploy() -> SimulatedJob {
    SimulatedJob::pipeline("shop/deploy")
        .describe("Rolls a version of the shop out")
        .script(DEPLOY)
        .parameter(JobParameter::choice("ENVIRONMENT", &["staging", "production"]).describe("Where to"))
        .parameter(JobParameter::text("VERSION", "1.8.2").describe("Which version"))
        .parameter(JobParameter::flag("DRY_RUN", false))
        .parameter(JobParameter::text("QM_RUN_ID", "").describe("Filled in by the tool service"))
        .plan(rollout(BuildResult::Success))
        .past(26 * HOUR, rollout(BuildResult::Success))
        .past(5 * HOUR, rollout(BuildResult::Failure))
        .past(4 * HOUR, rollout(BuildResult::Success))
}

/// With a password, so that its builds cannot be replayed.
fn publish() -> SimulatedJob {
    let plan =
        BuildScript::new().stage("Publish", seconds(3), &["+ publish --user robot --password ****", "published"]);
    SimulatedJob::pipeline("shop/publish")
        .parameter(JobParameter::password("REGISTRY_PASSWORD", "not-for-eyes"))
        .parameter(JobParameter::lines("NOTES", "first line\nsecond line"))
        .plan(plan.clone())
        .past(20 * HOUR, plan)
}

fn legacy_sync() -> SimulatedJob {
    let plan =
        BuildScript::new().stage("Sync", seconds(1), &["rsync: connection refused"]).ending(BuildResult::Failure);
    SimulatedJob::freestyle("shop/legacy-sync").disabled().plan(plan.clone()).past(500 * HOUR, plan)
}

fn smoke() -> SimulatedJob {
    let plan = BuildScript::new().stage("Smoke", seconds(3), &["GET / 200", "GET /cart 200"]);
    SimulatedJob::freestyle("smoke").plan(plan.clone()).past(12 * HOUR, plan.clone()).past(HOUR / 2, plan)
}
