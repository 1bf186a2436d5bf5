//! `quartermaster runner`, the real program: what it executes, what it refuses, how it stops, and through which proxy it goes.

use crate::runner_desk::{RunnerDesk, RunnerPlan, nobody_works_in};
use domain::job::{JobEnding, JobSpec, JobStanding, JobStep, StepExit};
use runbook::RunbookText;
use testkit::until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn with(arguments: &[&str]) -> RunnerPlan<'static> {
    RunnerPlan { arguments: arguments.iter().map(|word| (*word).to_owned()).collect(), ..RunnerPlan::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_executes_streams_redacts_and_goes_on_after_a_failure() {
    let desk = RunnerDesk::open().await;
    let _runner = desk.runner(with(&["--slots", "2", "--env", "SITE=north"]));
    let failing = desk.submit("run_1", desk.shell("echo \"$TOKEN at $SITE\"; exit 3")).await;
    let (ending, printed) = desk.outcome(failing).await;
    assert_eq!(ending, Some(JobEnding::Failed { step: JobStep::Run, exit: StepExit::Code(3) }));
    assert_eq!(printed, "[redacted: secret] at north\n");

    let good = desk.submit("run_2", desk.shell("echo fine")).await;
    assert_eq!(desk.outcome(good).await, (Some(JobEnding::Succeeded), "fine\n".to_owned()));

    let check = Some(["test", "-e", "seeded"].map(str::to_owned).to_vec());
    let seed = |desk: &RunnerDesk| JobSpec { check: check.clone(), ..desk.shell("touch seeded") };
    let first = desk.submit("run_3", seed(&desk)).await;
    assert_eq!(desk.outcome(first).await.0, Some(JobEnding::Succeeded));
    let again = desk.submit("run_4", seed(&desk)).await;
    assert_eq!(desk.outcome(again).await.0, Some(JobEnding::AlreadyDone));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_reports_what_its_owner_has_not_allowed_and_executes_nothing_of_it() {
    let desk = RunnerDesk::open().await;
    let _runner = desk.runner(with(&["--only", "bank/*"]));
    let job = desk.submit("run_1", desk.spec(false)).await;
    let (ending, _) = desk.outcome(job).await;
    assert!(matches!(&ending, Some(JobEnding::Refused { reason }) if reason.contains("--only")), "{ending:?}");
    assert_eq!(desk.effects(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_with_pins_executes_the_pinned_text_and_nothing_beside_it() {
    let desk = RunnerDesk::open().await;
    let run = ["sh", "-c", "echo done >> effects"].map(str::to_owned).to_vec();
    let text = RunbookText {
        group: "shop".into(),
        name: "seed".into(),
        run: run.clone(),
        timeout_ms: 60_000,
        ..RunbookText::default()
    };
    let pins = desk.file("pins");
    std::fs::write(&pins, format!("# ours\nshop/seed {}\n", text.digest())).unwrap();
    let _runner = desk.runner(with(&["--pin", pins.to_str().unwrap()]));
    let pinned = JobSpec { text: text.canonical(), run: Some(run), env: Default::default(), ..desk.shell("") };
    let good = desk.submit("run_1", pinned.clone()).await;
    assert_eq!(desk.outcome(good).await.0, Some(JobEnding::Succeeded));
    assert_eq!(desk.effects(), 1);

    let forged = ["sh", "-c", "echo done >> effects; id"].map(str::to_owned).to_vec();
    let beside = desk.submit("run_2", JobSpec { run: Some(forged.clone()), ..pinned.clone() }).await;
    let other = RunbookText { run: forged.clone(), ..text };
    let instead = desk.submit("run_3", JobSpec { text: other.canonical(), run: Some(forged), ..pinned }).await;
    for job in [beside, instead] {
        assert!(matches!(desk.outcome(job).await.0, Some(JobEnding::Refused { .. })));
    }
    assert_eq!(desk.effects(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_job_ends_with_all_its_processes() {
    let desk = RunnerDesk::open().await;
    let _runner = desk.runner(RunnerPlan::default());
    let job = desk.submit("run_1", desk.shell("echo done >> effects; sleep 600 & sleep 600")).await;
    desk.effect().await;
    crate::runner_desk::done(desk.jobs().cancel(job, "not wanted").await.unwrap());
    assert_eq!(desk.outcome(job).await.0, Some(JobEnding::Cancelled));
    until("all processes to end", async || nobody_works_in(desk.folder.path()).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_told_to_stop_finishes_what_it_has_and_takes_nothing_new() {
    let desk = RunnerDesk::open().await;
    let runner = desk.runner(with(&["--slots", "2"]));
    let job = desk.submit("run_1", desk.spec(true)).await;
    desk.effect().await;
    runner.signal("-TERM");
    until("it to take no more", async || runner.log().contains("no more jobs are taken").then_some(())).await;
    let next = desk.submit("run_2", desk.shell("true")).await;

    desk.go();

    assert!(runner.end().await.success(), "{}", runner.log());
    assert_eq!(desk.outcome(job).await.0, Some(JobEnding::Succeeded));
    desk.stands(next, JobStanding::Queued).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_told_twice_to_stop_ends_its_commands_and_reports_them() {
    let desk = RunnerDesk::open().await;
    let runner = desk.runner(RunnerPlan::default());
    let job = desk.submit("run_1", desk.spec(true)).await;
    desk.effect().await;
    runner.signal("-TERM");
    until("it to take no more", async || runner.log().contains("no more jobs are taken").then_some(())).await;
    runner.signal("-TERM");

    assert!(runner.end().await.success(), "{}", runner.log());
    assert_eq!(desk.outcome(job).await.0, Some(JobEnding::Cancelled));
    until("all processes to end", async || nobody_works_in(desk.folder.path()).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_ends_its_commands_when_its_time_to_drain_is_over() {
    let desk = RunnerDesk::open().await;
    let runner = desk.runner(with(&["--drain", "300ms"]));
    let job = desk.submit("run_1", desk.spec(true)).await;
    desk.effect().await;
    runner.signal("-TERM");
    assert!(runner.end().await.success(), "{}", runner.log());
    assert_eq!(desk.outcome(job).await.0, Some(JobEnding::Cancelled));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_the_service_refuses_says_why_and_ends() {
    let desk = RunnerDesk::open().await;
    let runner = desk.runner(with(&["--label", "other-hosts"]));
    assert_eq!(runner.end().await.code(), Some(1), "{}", runner.log());
    assert!(runner.log().contains("the token does not name the label other-hosts"), "{}", runner.log());
    let insecure = desk.runner(RunnerPlan { url: Some("http://qm.example"), ..RunnerPlan::default() });
    assert_eq!(insecure.end().await.code(), Some(2), "{}", insecure.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_connects_again_when_the_service_is_back() {
    let desk = RunnerDesk::open().await;
    let line = testkit::Line::to(1).await;
    let runner = desk.runner(RunnerPlan { port: Some(line.port()), ..RunnerPlan::default() });
    until("a failed attempt", async || runner.log().contains("no job could be asked for").then_some(())).await;
    line.lead_to(desk.world.address(0).port());
    let job = desk.submit("run_1", desk.shell("true")).await;
    assert_eq!(desk.outcome(job).await.0, Some(JobEnding::Succeeded));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_goes_through_the_proxy_of_its_environment_and_around_it_where_it_is_told() {
    let desk = RunnerDesk::open().await;
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = format!("http://{}", proxy.local_addr().unwrap());
    let through = RunnerPlan {
        url: Some("https://qm.example"),
        environment: vec![("HTTPS_PROXY", at.clone())],
        ..RunnerPlan::default()
    };
    let _runner = desk.runner(through);
    let (mut asked, _) = testkit::patience::in_time("the proxy to be asked", proxy.accept()).await.unwrap();
    let mut head = vec![0; 4096];
    let count = asked.read(&mut head).await.unwrap();
    let head = String::from_utf8_lossy(&head[..count]).into_owned();
    assert!(head.starts_with("CONNECT qm.example:443 HTTP/1.1\r\n"), "{head}");
    assert!(!head.contains("Bearer"), "the proxy does not get the token");
    asked.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").await.unwrap();

    let around = RunnerPlan {
        environment: vec![("HTTP_PROXY", "http://127.0.0.1:1".into()), ("NO_PROXY", "127.0.0.1".into())],
        ..RunnerPlan::default()
    };
    let _direct = desk.runner(around);
    let job = desk.submit("run_1", desk.shell("true")).await;
    assert_eq!(desk.outcome(job).await.0, Some(JobEnding::Succeeded));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_listens_nowhere() {
    let desk = RunnerDesk::open().await;
    let runner = desk.runner(RunnerPlan::default());
    until("it to be connected", async || runner.log().contains("connected").then_some(())).await;
    let sockets: Vec<String> = std::fs::read_dir(format!("/proc/{}/fd", runner.id()))
        .unwrap()
        .flatten()
        .filter_map(|fd| {
            std::fs::read_link(fd.path()).ok()?.to_str()?.strip_prefix("socket:[")?.strip_suffix(']').map(str::to_owned)
        })
        .collect();
    let listening = |table: &str| {
        let table = std::fs::read_to_string(table).unwrap_or_default();
        // The fourth column is the state, 0A is LISTEN; the tenth is the inode.
        table.lines().skip(1).any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.get(3) == Some(&"0A")
                && words.get(9).is_some_and(|inode| sockets.iter().any(|socket| socket == inode))
        })
    };
    assert!(!sockets.is_empty(), "it has a connection");
    assert!(!listening("/proc/net/tcp") && !listening("/proc/net/tcp6"));
}
