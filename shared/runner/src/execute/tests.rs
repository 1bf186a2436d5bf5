use super::*;
use domain::job::{JobVariable, RunnerLabel};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

fn argv(words: &[&str]) -> Option<Vec<String>> {
    Some(words.iter().map(|word| (*word).to_owned()).collect())
}

fn spec() -> JobSpec {
    JobSpec {
        label: RunnerLabel::parse("here").unwrap(),
        runbook: "shop/seed".into(),
        text: "{}".into(),
        arguments: BTreeMap::new(),
        check: None,
        run: None,
        verify: None,
        env: BTreeMap::new(),
        directory: None,
        timeout_ms: 60_000,
        output_bytes: 64 * 1024,
    }
}

async fn ran(spec: &JobSpec, folder: &Path) -> (JobEnding, String) {
    let execution = Execution::new(spec, Host::new(folder), CancellationToken::new());
    let ending = execute(spec, &execution).await;
    let text = execution.output.take(usize::MAX).0.into_iter().map(|output| output.text).collect();
    (ending, text)
}

#[tokio::test]
async fn check_with_exit_0_means_that_nothing_else_runs() {
    let folder = tempfile::tempdir().unwrap();
    let spec = JobSpec { check: argv(&["true"]), run: argv(&["touch", "ran"]), ..spec() };
    assert_eq!(ran(&spec, folder.path()).await.0, JobEnding::AlreadyDone);
    assert!(!folder.path().join("ran").exists());
}

#[tokio::test]
async fn run_follows_a_check_that_says_no_and_verify_has_the_last_word() {
    let folder = tempfile::tempdir().unwrap();
    let verify = argv(&["test", "-f", "ran"]);
    let good = JobSpec { check: argv(&["false"]), run: argv(&["touch", "ran"]), verify, ..spec() };
    assert_eq!(ran(&good, folder.path()).await.0, JobEnding::Succeeded);
    let bad = JobSpec { verify: argv(&["test", "-f", "other"]), ..good };
    let ending = JobEnding::Failed { step: JobStep::Verify, exit: StepExit::Code(1) };
    assert_eq!(ran(&bad, folder.path()).await.0, ending);
}

#[tokio::test]
async fn a_check_that_proves_nothing_lets_nothing_run() {
    let folder = tempfile::tempdir().unwrap();
    for check in [argv(&["/no/such/program"]), argv(&["sh", "-c", "kill -9 $$"])] {
        let spec = JobSpec { check, run: argv(&["touch", "ran"]), ..spec() };
        let (ending, _) = ran(&spec, folder.path()).await;
        assert!(matches!(ending, JobEnding::Failed { step: JobStep::Check, .. }), "{ending:?}");
        assert!(!folder.path().join("ran").exists());
    }
}

#[tokio::test]
async fn a_job_that_only_checks_runs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let spec = JobSpec { check: argv(&["false"]), ..spec() };
    let ending = JobEnding::Failed { step: JobStep::Check, exit: StepExit::Code(1) };
    assert_eq!(ran(&spec, folder.path()).await.0, ending);
}

#[tokio::test]
async fn a_command_sees_the_jobs_environment_and_nothing_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    let variable = |value: &str, secret| JobVariable { value: value.into(), secret };
    let env = [
        ("REGION".to_owned(), variable("eu", false)),
        ("TOKEN".to_owned(), variable("tok-hunter22", true)),
        ("PATH".to_owned(), variable("/tmp/evil", false)),
    ];
    let spec = JobSpec { run: argv(&["env"]), env: env.into(), ..spec() };
    let (ending, text) = ran(&spec, folder.path()).await;
    assert_eq!(ending, JobEnding::Succeeded);
    let names: std::collections::BTreeSet<&str> =
        text.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    assert_eq!(names, ["HOME", "LANG", "PATH", "REGION", "TOKEN"].into());
    assert!(text.contains("REGION=eu") && !text.contains("hunter22") && !text.contains("evil"), "{text}");
}

#[tokio::test]
async fn no_shell_reads_an_argument() {
    let folder = tempfile::tempdir().unwrap();
    let nasty = "$(touch pwned); `touch pwned` | touch pwned > pwned && touch pwned\n touch pwned";
    let spec = JobSpec { run: argv(&["printf", "%s", nasty]), ..spec() };
    let (ending, text) = ran(&spec, folder.path()).await;
    assert_eq!(ending, JobEnding::Succeeded);
    assert_eq!(text.trim_end_matches('\n'), nasty);
    assert!(!folder.path().join("pwned").exists());
}

#[tokio::test]
async fn standard_input_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let spec = JobSpec { run: argv(&["cat"]), ..spec() };
    assert_eq!(ran(&spec, folder.path()).await, (JobEnding::Succeeded, String::new()));
}

/// Whether a process is alive, and not just unreaped.
fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

async fn gone(pid: &str) {
    while lives(pid) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn at_the_deadline_the_whole_group_is_ended_even_if_it_does_not_listen() {
    let folder = tempfile::tempdir().unwrap();
    // The child and its own child both ignore the request to end.
    let script = "trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > child; while :; do sleep 0.05; done' & echo $$ > leader; while :; do sleep 0.05; done";
    let spec = JobSpec { run: argv(&["sh", "-c", script]), timeout_ms: 700, ..spec() };
    let mut execution = Execution::new(&spec, Host::new(folder.path()), CancellationToken::new());
    execution.host.grace = Duration::from_millis(200);
    let ending = execute(&spec, &execution).await;
    assert_eq!(ending, JobEnding::Failed { step: JobStep::Run, exit: StepExit::TimedOut });
    for name in ["leader", "child"] {
        let pid = std::fs::read_to_string(folder.path().join(name)).unwrap();
        tokio::time::timeout(Duration::from_secs(10), gone(pid.trim())).await.unwrap();
    }
}

#[tokio::test]
async fn a_cancelled_command_may_clean_up_and_is_reported_as_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap 'echo cleaned; exit 3' TERM; touch up; while :; do sleep 0.05; done";
    let spec = JobSpec { run: argv(&["sh", "-c", script]), ..spec() };
    let stop = CancellationToken::new();
    let execution = Execution::new(&spec, Host::new(folder.path()), stop.clone());
    let cancel = async {
        while !folder.path().join("up").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        stop.cancel();
    };
    let (ending, ()) = tokio::join!(execute(&spec, &execution), cancel);
    assert_eq!(ending, JobEnding::Cancelled);
    // The shell may also tell on stderr that its own child was ended.
    let printed = execution.output.take(usize::MAX).0;
    assert!(printed.iter().any(|output| output.text == "cleaned\n"), "{printed:?}");
}

#[tokio::test]
async fn what_a_command_leaves_behind_in_its_group_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let spec = JobSpec { run: argv(&["sh", "-c", "sleep 600 & echo $! > left"]), ..spec() };
    assert_eq!(ran(&spec, folder.path()).await.0, JobEnding::Succeeded);
    let pid = std::fs::read_to_string(folder.path().join("left")).unwrap();
    tokio::time::timeout(Duration::from_secs(10), gone(pid.trim())).await.unwrap();
}

#[tokio::test]
async fn an_execution_that_is_dropped_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let spec = JobSpec { run: argv(&["sh", "-c", "echo $$ > leader; sleep 600"]), ..spec() };
    let execution = Execution::new(&spec, Host::new(folder.path()), CancellationToken::new());
    let file = folder.path().join("leader");
    let up = async {
        loop {
            match std::fs::read_to_string(&file) {
                Ok(pid) if pid.ends_with('\n') => return pid,
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let pid = tokio::select! { _ = execute(&spec, &execution) => panic!("it sleeps"), pid = up => pid };
    tokio::time::timeout(Duration::from_secs(10), gone(pid.trim())).await.unwrap();
}

#[tokio::test]
async fn nothing_begins_once_the_lease_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let spec = JobSpec { check: argv(&["false"]), run: argv(&["touch", "ran"]), ..spec() };
    let mut execution = Execution::new(&spec, Host::new(folder.path()), CancellationToken::new());
    let asked = std::sync::atomic::AtomicU32::new(0);
    execution.may_begin = Box::new(move || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0);
    assert!(matches!(execute(&spec, &execution).await, JobEnding::NotBegun { .. }));
    assert!(!folder.path().join("ran").exists());
}

#[tokio::test]
async fn a_working_directory_that_is_not_there_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let spec = JobSpec { run: argv(&["true"]), directory: Some("no/such".into()), ..spec() };
    let (ending, _) = ran(&spec, folder.path()).await;
    assert!(matches!(ending, JobEnding::Failed { step: JobStep::Run, exit: StepExit::NotStarted(_) }), "{ending:?}");
}
