use super::*;
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(30);

fn at(secs: u64) -> Moment {
    Moment::from_secs(1_000 + secs)
}

fn holder(n: u8) -> JobHolder {
    JobHolder { runner: RunnerId::from_random([n; 16]), principal: Principal::new("https://issuer", "runner") }
}

fn job() -> Job {
    let token = JobVariable { value: "hunter22".into(), secret: true };
    let spec = JobSpec {
        label: RunnerLabel::parse("shop-hosts").unwrap(),
        runbook: "shop/seed".into(),
        text: "{}".into(),
        arguments: BTreeMap::new(),
        check: None,
        run: Some(vec!["true".into()]),
        verify: None,
        env: [("TOKEN".to_owned(), token)].into(),
        directory: None,
        timeout_ms: 1_000,
        output_bytes: 100,
    };
    Job::new(JobId::of("run_1"), "run_1", spec, at(0), Duration::from_secs(60))
}

#[test]
fn a_claim_without_a_start_comes_up_again_and_the_first_runner_is_fenced() {
    let first = job().claimed(&holder(1), at(1), LEASE).unwrap();
    assert_eq!(first.claimed(&holder(2), at(2), LEASE), Err(JobRefusal::Taken));
    let second = first.claimed(&holder(2), at(40), LEASE).unwrap();
    assert_eq!(second.claim.as_ref().unwrap().epoch, 2);
    assert_eq!(second.started(&holder(1), 1, at(41), LEASE), Err(JobRefusal::Fenced));
    assert_eq!(second.started(&holder(1), 2, at(41), LEASE), Err(JobRefusal::Fenced), "the number alone is no claim");
    assert!(second.started(&holder(2), 2, at(41), LEASE).is_ok());
}

#[test]
fn a_job_that_was_started_is_never_given_away_and_its_runner_may_report_late() {
    let claimed = job().claimed(&holder(1), at(1), LEASE).unwrap();
    assert_eq!(claimed.started(&holder(1), 1, at(40), LEASE), Err(JobRefusal::LeaseOver));
    let started = claimed.started(&holder(1), 1, at(2), LEASE).unwrap();
    assert_eq!(started.spec.env["TOKEN"].value, "", "nobody needs it any more");
    assert_eq!(started.claimable_from(), None);
    assert_eq!(started.standing(at(3)), JobStanding::Started);
    assert_eq!(started.standing(at(50)), JobStanding::Lost);
    assert_eq!(started.claimed(&holder(2), at(50), LEASE), Err(JobRefusal::Taken));
    let ended = started.ended(&holder(1), 1, JobEnding::Succeeded).unwrap();
    assert_eq!(ended.standing(at(50)), JobStanding::Ended);
    assert_eq!(ended.ended(&holder(1), 1, JobEnding::Succeeded).as_ref(), Ok(&ended), "said twice is said once");
    assert_eq!(ended.ended(&holder(1), 1, JobEnding::Cancelled), Err(JobRefusal::Over));
    assert_eq!(started.started(&holder(1), 1, at(4), LEASE), Ok(started), "said twice is said once");
}

#[test]
fn what_was_not_started_has_no_result() {
    let claimed = job().claimed(&holder(1), at(1), LEASE).unwrap();
    assert_eq!(claimed.ended(&holder(1), 1, JobEnding::Succeeded), Err(JobRefusal::NotStarted));
    let refused = JobEnding::Refused { reason: "not on the list".into() };
    assert_eq!(claimed.ended(&holder(1), 1, refused.clone()).unwrap().ending, Some(refused));
}

#[test]
fn a_job_is_taken_back_at_once_until_it_was_started() {
    let waiting = job().cancelled("no runner took it");
    assert!(matches!(waiting.ending, Some(JobEnding::NotBegun { .. })));
    assert_eq!(waiting.claimed(&holder(1), at(1), LEASE), Err(JobRefusal::Taken));
    let claimed = job().claimed(&holder(1), at(1), LEASE).unwrap().cancelled("no");
    assert_eq!(claimed.started(&holder(1), 1, at(2), LEASE), Err(JobRefusal::Over));
    let started = job().claimed(&holder(1), at(1), LEASE).unwrap().started(&holder(1), 1, at(2), LEASE).unwrap();
    let asked = started.cancelled("no");
    assert!(asked.cancel && asked.ending.is_none(), "its runner has to end it");
    assert!(asked.ended(&holder(1), 1, JobEnding::Cancelled).is_ok());
}

#[test]
fn nobody_claims_a_job_whose_time_is_over() {
    assert_eq!(job().claimed(&holder(1), at(61), LEASE), Err(JobRefusal::Taken));
}

#[test]
fn output_is_counted_once_in_order_and_up_to_the_cap() {
    let (one, kept) = job().with_output(0, 60, 0).unwrap();
    assert!(kept && one.chunks == 1 && one.kept_bytes == 60);
    assert_eq!(one.with_output(0, 60, 0), Ok((one.clone(), false)), "it was taken already");
    assert_eq!(one.with_output(2, 1, 0), Err(JobRefusal::OutputGap));
    let (two, kept) = one.with_output(1, 60, 5).unwrap();
    assert!(!kept && two.chunks == 2 && two.kept_bytes == 60 && two.dropped_bytes == 65);
}

#[test]
fn values_of_variables_do_not_print() {
    assert!(!format!("{:?}", job()).contains("hunter22"));
}
