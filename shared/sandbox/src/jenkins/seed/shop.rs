//! The CI of a small shop.

use std::time::Duration;

use super::super::job::{Job, Parameter};
use super::super::plan::{Outcome, Plan, Verdict};

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

pub(super) fn jobs() -> Vec<Job> {
    vec![
        Job::folder("platform").describe("What everything else stands on"),
        Job::folder("platform/images"),
        base_image(),
        load_test(),
        Job::folder("shop").describe("The shop and its parts"),
        Job::multibranch("shop/checkout").source(REPOSITORY, "main").with_credentials(),
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

fn base_image() -> Job {
    let plan = Plan::new().stage("Build", seconds(4), &["+ docker build -t base:1 .", "Successfully tagged base:1"]);
    Job::freestyle("platform/images/base")
        .source("https://git.shop.example/platform/base.git", "main")
        .plan(plan.clone())
        .past(50 * HOUR, plan.clone())
        .past(2 * HOUR, plan)
}

/// Its builds wait for an agent that nobody has.
fn load_test() -> Job {
    Job::pipeline("platform/load-test").on_agent("gpu").describe("Needs an agent with the label gpu")
}

fn checkout(outcome: Outcome, refunds: Verdict) -> Plan {
    let verdict = match outcome {
        Outcome::Success => "BUILD SUCCESS",
        Outcome::Unstable | Outcome::Failure | Outcome::Aborted | Outcome::NotBuilt => "There were test failures",
    };
    Plan::new()
        .stage("Checkout", seconds(2), &["Cloning repository", "Checking out Revision"])
        .stage("Build", seconds(6), &["+ ./gradlew assemble", "> Task :compileJava", "> Task :assemble"])
        .stage("Test", seconds(5), &["+ ./gradlew test", "> Task :test", verdict])
        .change("Mina Hart", "Round refunds to the cent", &["src/main/java/shop/Refunds.java"])
        .case("shop.CartTest", "addsAnItem", Verdict::Passed)
        .case("shop.CartTest", "removesAnItem", Verdict::Passed)
        .case("shop.RefundsTest", "roundsToTheCent", refunds)
        .case("shop.PaymentTest", "retriesOnce", Verdict::Skipped)
        .artifact("build/libs/checkout.txt", "checkout 1.8.2\n")
        .artifact("build/reports/summary.json", "{\"tests\":4}\n")
        .ending(outcome)
}

fn checkout_main() -> Job {
    Job::pipeline("shop/checkout/main")
        .source(REPOSITORY, "main")
        .with_credentials()
        .plan(checkout(Outcome::Success, Verdict::Passed))
        .past(30 * HOUR, checkout(Outcome::Success, Verdict::Passed))
        .past(6 * HOUR, checkout(Outcome::Success, Verdict::Passed))
        .past(HOUR, checkout(Outcome::Unstable, Verdict::Regression))
}

fn checkout_feature() -> Job {
    Job::pipeline("shop/checkout/feature%2Fgift-cards")
        .source(REPOSITORY, "feature/gift-cards")
        .with_credentials()
        .plan(checkout(Outcome::Success, Verdict::Passed))
        .past(3 * HOUR, checkout(Outcome::Success, Verdict::Passed))
}

fn rollout(outcome: Outcome) -> Plan {
    let end = match outcome {
        Outcome::Success => "deployment \"cart\" successfully rolled out",
        Outcome::Unstable | Outcome::Failure | Outcome::Aborted | Outcome::NotBuilt => {
            "error: deployment \"cart\" exceeded its progress deadline"
        }
    };
    Plan::new()
        .stage("Render", seconds(2), &["+ helm template shop charts/shop", "wrote manifest.yaml"])
        .stage("Roll out", seconds(6), &["+ deploy/rollout", "Waiting for deployment \"cart\" rollout to finish", end])
        .artifact("manifest.yaml", "kind: Deployment\n")
        .ending(outcome)
}

fn deploy() -> Job {
    Job::pipeline("shop/deploy")
        .describe("Rolls a version of the shop out")
        .script(DEPLOY)
        .parameter(Parameter::choice("ENVIRONMENT", &["staging", "production"]).describe("Where to"))
        .parameter(Parameter::text("VERSION", "1.8.2").describe("Which version"))
        .parameter(Parameter::flag("DRY_RUN", false))
        .parameter(Parameter::text("QM_RUN_ID", "").describe("Filled in by the tool service"))
        .plan(rollout(Outcome::Success))
        .past(26 * HOUR, rollout(Outcome::Success))
        .past(5 * HOUR, rollout(Outcome::Failure))
        .past(4 * HOUR, rollout(Outcome::Success))
}

/// With a password, so that its builds cannot be replayed.
fn publish() -> Job {
    let plan = Plan::new().stage("Publish", seconds(3), &["+ publish --user robot --password ****", "published"]);
    Job::pipeline("shop/publish")
        .parameter(Parameter::password("REGISTRY_PASSWORD", "not-for-eyes"))
        .parameter(Parameter::lines("NOTES", "first line\nsecond line"))
        .plan(plan.clone())
        .past(20 * HOUR, plan)
}

fn legacy_sync() -> Job {
    let plan = Plan::new().stage("Sync", seconds(1), &["rsync: connection refused"]).ending(Outcome::Failure);
    Job::freestyle("shop/legacy-sync").disabled().plan(plan.clone()).past(500 * HOUR, plan)
}

fn smoke() -> Job {
    let plan = Plan::new().stage("Smoke", seconds(3), &["GET / 200", "GET /cart 200"]);
    Job::freestyle("smoke").plan(plan.clone()).past(12 * HOUR, plan.clone()).past(HOUR / 2, plan)
}
