//! Jobs for runners: claimed by one at a time, never given away once begun, followed to their end.

use crate::bench::{Bench, on_every_backend, principal, tenant};
use domain::job::{
    JobEnding, JobHolder, JobOutput, JobRefusal, JobSpec, JobStanding, JobStep, JobVariable, OutputStream, RunnerLabel,
};
use domain::{Job, JobId, RunnerId};
use std::collections::BTreeMap;
use std::time::Duration;
use store::{AuditEntry, JobChange, JobNews, JobStore, JobSubmission, OutputPiece, Phase, RunnerPresence};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(30);

on_every_backend!(
    a_job_is_submitted_once_and_claimed_by_one_runner,
    a_claim_without_a_start_comes_up_again_and_the_first_runner_is_fenced,
    a_job_that_was_started_is_never_given_to_another_runner,
    of_many_runners_one_gets_a_job,
    output_is_kept_once_in_order_and_up_to_its_cap,
    a_follower_hears_output_and_ending,
    a_job_that_nobody_takes_is_taken_back,
    a_job_is_cancelled_at_once_or_by_its_runner,
    runners_count_as_there_for_a_while_and_until_they_leave,
    a_runner_at_work_counts_as_there,
    jobs_of_another_tenant_are_not_seen,
    claims_starts_and_endings_are_in_the_audit_log,
);

fn label() -> RunnerLabel {
    RunnerLabel::parse("shop-hosts").unwrap()
}

fn spec() -> JobSpec {
    JobSpec {
        label: label(),
        runbook: "shop/seed".into(),
        text: "{}".into(),
        arguments: BTreeMap::new(),
        check: None,
        run: Some(vec!["true".into()]),
        verify: None,
        env: [("TOKEN".to_owned(), JobVariable { value: "hunter22".into(), secret: true })].into(),
        directory: None,
        timeout_ms: 1_000,
        output_bytes: 10,
    }
}

fn holder(n: u8) -> JobHolder {
    JobHolder { runner: RunnerId::from_random([n; 16]), principal: principal("runner") }
}

fn entry() -> AuditEntry {
    AuditEntry::new(Phase::Transition)
}

async fn submitted(jobs: &JobStore, owner: &str) -> JobId {
    let id = JobId::of(owner);
    let JobSubmission::New(job) = jobs.submit(id, owner, spec(), LONG).await.unwrap() else { panic!("it is new") };
    assert_eq!(job.id, id);
    id
}

async fn claimed(jobs: &JobStore, n: u8, lease: Duration) -> Option<Job> {
    jobs.claim(&[label()], &holder(n), lease, &entry()).await.unwrap()
}

async fn started(jobs: &JobStore, owner: &str, lease: Duration) -> JobId {
    let id = submitted(jobs, owner).await;
    claimed(jobs, 1, LONG).await.unwrap();
    let change = jobs.start(id, &holder(1), 1, lease, &entry()).await.unwrap();
    assert!(matches!(change, JobChange::Done(_)));
    id
}

/// Waits until the job stands like this, by the store's own clock.
async fn stands(jobs: &JobStore, id: JobId, standing: JobStanding) {
    loop {
        let (Some(held), now) = jobs.find(id).await.unwrap() else { panic!("the job is gone") };
        if held.job.standing(now) == standing {
            return;
        }
        tokio::task::yield_now().await;
    }
}

fn printed(number: u64, text: &str) -> OutputPiece {
    let output = vec![JobOutput { step: JobStep::Run, stream: OutputStream::Stdout, text: text.into() }];
    OutputPiece { number, output, dropped_bytes: 0 }
}

async fn a_job_is_submitted_once_and_claimed_by_one_runner(bench: Bench) {
    let jobs = bench.acme().jobs();
    let id = submitted(&jobs, "run_1").await;
    let again = jobs.submit(id, "run_1", spec(), LONG).await.unwrap();
    assert!(matches!(again, JobSubmission::Existing(job) if job.owner == "run_1"));

    let job = claimed(&jobs, 1, LONG).await.unwrap();

    assert_eq!((job.id, job.spec.env["TOKEN"].value.as_str()), (id, "hunter22"));
    assert_eq!(claimed(&jobs, 2, LONG).await, None);
    let other = RunnerLabel::parse("other-hosts").unwrap();
    submitted(&jobs, "run_2").await;
    assert_eq!(jobs.claim(&[other], &holder(2), LONG, &entry()).await.unwrap(), None);
    let large = JobSpec { text: "x".repeat(300 * 1024), ..spec() };
    assert_eq!(jobs.submit(JobId::of("run_3"), "run_3", large, LONG).await.unwrap(), JobSubmission::TooLarge);
}

async fn a_claim_without_a_start_comes_up_again_and_the_first_runner_is_fenced(bench: Bench) {
    let jobs = bench.acme().jobs();
    let id = submitted(&jobs, "run_1").await;
    claimed(&jobs, 1, SHORT).await.unwrap();
    stands(&jobs, id, JobStanding::Queued).await;

    let job = claimed(&jobs, 2, LONG).await.unwrap();

    assert_eq!(job.claim.unwrap().epoch, 2);
    let late = jobs.start(id, &holder(1), 1, LONG, &entry()).await.unwrap();
    assert_eq!(late, JobChange::Refused(JobRefusal::Fenced));
    assert!(matches!(jobs.start(id, &holder(2), 2, LONG, &entry()).await.unwrap(), JobChange::Done(_)));
}

async fn a_job_that_was_started_is_never_given_to_another_runner(bench: Bench) {
    let jobs = bench.acme().jobs();
    let id = started(&jobs, "run_1", SHORT).await;
    stands(&jobs, id, JobStanding::Lost).await;

    assert_eq!(claimed(&jobs, 2, LONG).await, None);

    let (held, _) = jobs.find(id).await.unwrap();
    assert_eq!(held.unwrap().job.spec.env["TOKEN"].value, "", "the secret is gone with the start");
    let late = jobs.end(id, &holder(1), 1, &JobEnding::Succeeded, &entry()).await.unwrap();
    assert!(matches!(late, JobChange::Done(Job { ending: Some(JobEnding::Succeeded), .. })));
}

async fn of_many_runners_one_gets_a_job(bench: Bench) {
    let jobs = bench.acme().jobs();
    submitted(&jobs, "run_1").await;
    let mut claims = tokio::task::JoinSet::new();
    for n in 0..16 {
        let jobs = jobs.clone();
        claims.spawn(async move { claimed(&jobs, n, LONG).await.is_some() });
    }
    let winners = claims.join_all().await.into_iter().filter(|won| *won).count();
    assert_eq!(winners, 1);
}

async fn output_is_kept_once_in_order_and_up_to_its_cap(bench: Bench) {
    let jobs = bench.acme().jobs();
    let id = started(&jobs, "run_1", LONG).await;
    for piece in [printed(0, "one\n"), printed(0, "one\n"), printed(1, "two\n"), printed(2, "too much\n")] {
        let change = jobs.renew(id, &holder(1), 1, LONG, Some(&piece)).await.unwrap();
        assert!(matches!(change, JobChange::Done(_)), "{change:?}");
    }
    let gap = jobs.renew(id, &holder(1), 1, LONG, Some(&printed(9, "x"))).await.unwrap();
    assert_eq!(gap, JobChange::Refused(JobRefusal::OutputGap));
    let stranger = jobs.renew(id, &holder(2), 1, LONG, Some(&printed(3, "x"))).await.unwrap();
    assert_eq!(stranger, JobChange::Refused(JobRefusal::Fenced));

    let job = jobs.find(id).await.unwrap().0.unwrap().job;

    assert_eq!((job.chunks, job.kept_bytes, job.dropped_bytes), (3, 8, 9));
    let texts: Vec<String> =
        jobs.output(&job, 0).await.unwrap().into_iter().flat_map(|(_, o)| o).map(|o| o.text).collect();
    assert_eq!(texts, ["one\n", "two\n"]);
}

async fn a_follower_hears_output_and_ending(bench: Bench) {
    let jobs = bench.acme().jobs();
    let id = submitted(&jobs, "run_1").await;
    let mut follower = jobs.follow(id);
    let work = async {
        claimed(&jobs, 1, LONG).await.unwrap();
        assert!(matches!(jobs.start(id, &holder(1), 1, LONG, &entry()).await.unwrap(), JobChange::Done(_)));
        assert!(matches!(
            jobs.renew(id, &holder(1), 1, LONG, Some(&printed(0, "hello\n"))).await.unwrap(),
            JobChange::Done(_)
        ));
        assert!(matches!(
            jobs.end(id, &holder(1), 1, &JobEnding::Succeeded, &entry()).await.unwrap(),
            JobChange::Done(_)
        ));
    };
    let follow = async {
        let mut heard = String::new();
        loop {
            match follower.next().await.unwrap() {
                JobNews::Printed(output) => output.into_iter().for_each(|output| heard.push_str(&output.text)),
                JobNews::Over(ending) => return (heard, ending),
                JobNews::Moved(_) => {}
                JobNews::Lost | JobNews::Absent => panic!("its runner is there"),
            }
        }
    };
    let ((), (heard, ending)) = tokio::join!(work, follow);
    assert_eq!((heard.as_str(), ending), ("hello\n", JobEnding::Succeeded));

    let lost = started(&jobs, "run_2", SHORT).await;
    let mut follower = jobs.follow(lost);
    loop {
        match follower.next().await.unwrap() {
            JobNews::Lost => break,
            JobNews::Moved(_) => {}
            other @ (JobNews::Printed(_) | JobNews::Over(_) | JobNews::Absent) => panic!("{other:?}"),
        }
    }
    assert_eq!(jobs.follow(JobId::of("nothing")).next().await.unwrap(), JobNews::Absent);
}

async fn a_job_that_nobody_takes_is_taken_back(bench: Bench) {
    let jobs = bench.acme().jobs();
    let id = JobId::of("run_1");
    assert!(matches!(jobs.submit(id, "run_1", spec(), SHORT).await.unwrap(), JobSubmission::New(_)));
    let mut follower = jobs.follow(id);
    let news = follower.next().await.unwrap();
    assert!(matches!(news, JobNews::Over(JobEnding::NotBegun { .. })), "{news:?}");
    assert_eq!(claimed(&jobs, 1, LONG).await, None);
}

async fn a_job_is_cancelled_at_once_or_by_its_runner(bench: Bench) {
    let jobs = bench.acme().jobs();
    let waiting = submitted(&jobs, "run_1").await;
    let change = jobs.cancel(waiting, "not wanted").await.unwrap();
    assert!(matches!(change, JobChange::Done(Job { ending: Some(JobEnding::NotBegun { .. }), .. })));
    assert_eq!(claimed(&jobs, 1, LONG).await, None);

    let at_work = started(&jobs, "run_2", LONG).await;
    let change = jobs.cancel(at_work, "not wanted").await.unwrap();
    assert!(matches!(change, JobChange::Done(Job { ending: None, cancel: true, .. })));
    let told = jobs.renew(at_work, &holder(1), 1, LONG, None).await.unwrap();
    assert!(matches!(told, JobChange::Done(Job { cancel: true, .. })));
    assert_eq!(jobs.cancel(JobId::of("nothing"), "").await.unwrap(), JobChange::Absent);
}

async fn runners_count_as_there_for_a_while_and_until_they_leave(bench: Bench) {
    let jobs = bench.acme().jobs();
    let here = |n: u8| RunnerPresence {
        id: RunnerId::from_random([n; 16]),
        name: "host".into(),
        labels: vec![label()],
        slots: 1,
    };
    assert!(!jobs.has_runner(&label()).await.unwrap());
    assert!(jobs.announce(&here(1), SHORT).await.unwrap());
    let gone_by = bench.store.now().await.unwrap().plus(SHORT);
    bench.pass(gone_by).await;
    assert!(!jobs.has_runner(&label()).await.unwrap());
    for _ in 0..2 {
        assert!(jobs.announce(&here(2), LONG).await.unwrap());
    }
    assert!(jobs.has_runner(&label()).await.unwrap());
    assert!(!jobs.has_runner(&RunnerLabel::parse("other").unwrap()).await.unwrap());
    jobs.depart(here(2).id, &[label()]).await.unwrap();
    assert!(!jobs.has_runner(&label()).await.unwrap());
}

async fn a_runner_at_work_counts_as_there(bench: Bench) {
    let jobs = bench.acme().jobs();
    let id = started(&jobs, "run_1", LONG).await;
    assert!(matches!(jobs.renew(id, &holder(1), 1, LONG, None).await.unwrap(), JobChange::Done(_)));
    assert!(jobs.has_runner(&label()).await.unwrap());
}

async fn jobs_of_another_tenant_are_not_seen(bench: Bench) {
    let other = bench.store.of(&tenant("other")).jobs();
    let id = submitted(&bench.acme().jobs(), "run_1").await;
    assert_eq!(claimed(&other, 1, LONG).await, None);
    assert!(other.find(id).await.unwrap().0.is_none());
}

async fn claims_starts_and_endings_are_in_the_audit_log(bench: Bench) {
    let acme = bench.acme();
    let id = started(&acme.jobs(), "run_1", LONG).await;
    assert!(matches!(
        acme.jobs().end(id, &holder(1), 1, &JobEnding::Succeeded, &entry()).await.unwrap(),
        JobChange::Done(_)
    ));
    let entries = acme.audit().page(None, 10).await.unwrap();
    let verdicts: Vec<String> = entries
        .iter()
        .map(|entry| entry.entry["decision"]["verdict"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(verdicts, ["claimed", "started", "succeeded"]);
    assert_eq!(entries[0].entry["target"], format!("job/{id}"));
    assert_eq!(entries[0].entry["decision"]["basis"], "shop/seed for run_1 on shop-hosts, epoch 1");
}
