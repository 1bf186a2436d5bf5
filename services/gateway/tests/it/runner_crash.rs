//! Runners that die, freeze, lose the network or meet another one: the effect of a job happens at most once, and what
//! nobody can know is told as lost.
//!
//! The runner is the real program. The command appends a line to a file, and the lines are counted.

use crate::runner_desk::{LEASE, RunnerDesk, RunnerPlan, done, holder, nobody_works_in};
use domain::job::{JobEnding, JobStanding};
use store::{AuditEntry, Phase};
use testkit::{Line, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_killed_before_the_start_gives_way_to_another() {
    let desk = RunnerDesk::open().await;
    let job = desk.submit("run_1", desk.spec(false)).await;
    let dead = desk.runner(RunnerPlan { failpoint: Some("runner_claimed"), ..RunnerPlan::default() });
    desk.stopped_at(&dead, "runner_claimed").await;
    dead.kill();

    let _living = desk.runner(RunnerPlan::default());

    assert_eq!(desk.outcome(job).await.0, Some(JobEnding::Succeeded));
    assert_eq!(desk.effects(), 1);
    // Claimed once: that a request has waited for long takes nothing away from the lease.
    assert_eq!(desk.job(job).await.claim.unwrap().epoch, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_runner_was_killed_after_the_start_is_lost_and_given_to_nobody() {
    let desk = RunnerDesk::open().await;
    let job = desk.submit("run_1", desk.spec(false)).await;
    let dead = desk.runner(RunnerPlan { failpoint: Some("runner_started"), ..RunnerPlan::default() });
    desk.stopped_at(&dead, "runner_started").await;
    dead.kill();

    let _living = desk.runner(RunnerPlan::default());

    assert_eq!(desk.outcome(job).await.0, None, "nobody knows");
    given_to_nobody(&desk).await;
    assert_eq!((desk.effects(), desk.job(job).await.claim.unwrap().epoch), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_runner_was_killed_at_work_is_lost_and_has_one_effect() {
    let desk = RunnerDesk::open().await;
    let job = desk.submit("run_1", desk.spec(true)).await;
    let dead = desk.runner(RunnerPlan::default());
    desk.effect().await;
    dead.kill();

    let _living = desk.runner(RunnerPlan::default());

    assert_eq!(desk.outcome(job).await.0, None, "nobody knows");
    given_to_nobody(&desk).await;
    desk.go();
    until("the orphan to end", async || nobody_works_in(desk.folder.path()).then_some(())).await;
    assert_eq!(desk.effects(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_runner_was_killed_before_its_report_is_lost_and_has_one_effect() {
    let desk = RunnerDesk::open().await;
    let job = desk.submit("run_1", desk.spec(false)).await;
    let dead = desk.runner(RunnerPlan { failpoint: Some("runner_executed"), ..RunnerPlan::default() });
    desk.stopped_at(&dead, "runner_executed").await;
    dead.kill();

    let _living = desk.runner(RunnerPlan::default());

    assert_eq!(desk.outcome(job).await.0, None, "nobody knows");
    given_to_nobody(&desk).await;
    assert_eq!(desk.effects(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_runner_was_killed_after_its_report_is_over() {
    let desk = RunnerDesk::open().await;
    let job = desk.submit("run_1", desk.spec(false)).await;
    let dead = desk.runner(RunnerPlan { failpoint: Some("runner_reported"), ..RunnerPlan::default() });
    desk.stopped_at(&dead, "runner_reported").await;
    dead.kill();

    let (ending, printed) = desk.outcome(job).await;

    assert_eq!((ending, printed.as_str(), desk.effects()), (Some(JobEnding::Succeeded), "begun\nover\n", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_frozen_at_work_beyond_its_lease_reports_late_and_nobody_else_gets_the_job() {
    let desk = RunnerDesk::open().await;
    let job = desk.submit("run_1", desk.spec(true)).await;
    let frozen = desk.runner(RunnerPlan::default());
    desk.effect().await;
    frozen.signal("-STOP");
    desk.stands(job, JobStanding::Lost).await;
    let _other = desk.runner(RunnerPlan::default());
    given_to_nobody(&desk).await;

    desk.go();
    frozen.signal("-CONT");

    desk.stands(job, JobStanding::Ended).await;
    assert_eq!((desk.job(job).await.ending, desk.effects()), (Some(JobEnding::Succeeded), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_frozen_before_the_start_beyond_its_lease_executes_nothing() {
    let desk = RunnerDesk::open().await;
    let job = desk.submit("run_1", desk.spec(false)).await;
    // Claimed by one that never speaks again, by another, and then the first one tries after all.
    let (jobs, entry) = (desk.jobs(), AuditEntry::new(Phase::Transition));
    let labels = [desk.job(job).await.spec.label];
    let first = jobs.claim(&labels, &holder(1), LEASE, &entry).await.unwrap().unwrap();
    desk.stands(job, JobStanding::Queued).await;
    let _other = desk.runner(RunnerPlan::default());
    assert_eq!(desk.outcome(job).await.0, Some(JobEnding::Succeeded));

    let late = jobs.start(job, &holder(1), first.claim.unwrap().epoch, LEASE, &entry).await.unwrap();

    assert!(matches!(late, store::JobChange::Refused(domain::job::JobRefusal::Fenced)), "{late:?}");
    assert_eq!(desk.effects(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_whose_network_is_cut_at_work_reports_when_it_is_back() {
    let desk = RunnerDesk::open().await;
    let line = Line::to(desk.world.address(0).port()).await;
    let job = desk.submit("run_1", desk.spec(true)).await;
    let _runner = desk.runner(RunnerPlan { port: Some(line.port()), ..RunnerPlan::default() });
    desk.effect().await;
    line.hold();
    desk.stands(job, JobStanding::Lost).await;
    desk.go();
    until("the command to end", async || nobody_works_in(desk.folder.path()).then_some(())).await;

    line.cut();
    line.release();

    desk.stands(job, JobStanding::Ended).await;
    let (ending, printed) = desk.outcome(job).await;
    assert_eq!((ending, printed.as_str(), desk.effects()), (Some(JobEnding::Succeeded), "begun\nover\n", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_whose_network_is_cut_before_the_start_executes_nothing() {
    let desk = RunnerDesk::open().await;
    let line = Line::to(desk.world.address(0).port()).await;
    let job = desk.submit("run_1", desk.spec(false)).await;
    let cut = desk.runner(RunnerPlan {
        port: Some(line.port()),
        // Time for the test to cut the line between the claim and the start.
        environment: vec![("FAILPOINTS", "runner_claimed_slowly=return(1000)".into())],
        ..RunnerPlan::default()
    });
    desk.stopped_at(&cut, "runner_claimed_slowly").await;
    line.hold();
    desk.stands(job, JobStanding::Queued).await;
    let _living = desk.runner(RunnerPlan::default());
    assert_eq!(desk.outcome(job).await.0, Some(JobEnding::Succeeded));

    line.cut();
    line.release();

    let fenced = "the service did not take the ending of a job";
    until("the first one to be told", async || cut.log().contains(fenced).then_some(())).await;
    assert_eq!((desk.effects(), desk.job(job).await.claim.unwrap().epoch), (1, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_runners_each_job_has_one_effect() {
    let desk = RunnerDesk::open().await;
    let _runners = [desk.runner(RunnerPlan::default()), desk.runner(RunnerPlan::default())];
    let mut jobs = Vec::new();
    for n in 0..10 {
        jobs.push(desk.submit(&format!("run_{n}"), desk.spec(false)).await);
    }
    for job in jobs {
        assert_eq!(desk.outcome(job).await.0, Some(JobEnding::Succeeded));
    }
    assert_eq!(desk.effects(), 10);
}

/// A runner that is there finds nothing to do: a job that it does get says so.
async fn given_to_nobody(desk: &RunnerDesk) {
    let other = desk.submit("run_other", desk.shell("true")).await;
    desk.stands(other, JobStanding::Ended).await;
    let (ending, _) = desk.outcome(other).await;
    assert_eq!(ending, Some(JobEnding::Succeeded));
    // By hand as well: whatever the runner does, there is nothing to claim.
    let entry = AuditEntry::new(Phase::Transition);
    let labels = [desk.job(other).await.spec.label];
    assert_eq!(desk.jobs().claim(&labels, &holder(9), LEASE, &entry).await.unwrap(), None);
    let refused = desk.jobs().end(other, &holder(9), 1, &JobEnding::Cancelled, &entry).await.unwrap();
    assert!(!matches!(refused, store::JobChange::Done(_)), "{:?}", done(refused));
}
