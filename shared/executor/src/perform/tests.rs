use super::*;
use std::path::Path;

const MOMENT: Duration = Duration::from_millis(10);

fn tool() -> ToolName {
    ToolName::parse("echo").unwrap()
}

fn output(structured: &str, text: &str) -> ToolOutput {
    ToolOutput { content: vec![Content::Text(text.to_owned())], ..ToolOutput::structured(structured.to_owned()) }
}

/// Work that ends once it is let go.
async fn held(go: oneshot::Receiver<()>) -> Outcome {
    go.await.ok();
    Outcome::Done(ToolOutput::default())
}

fn code(outcome: &Outcome) -> Option<Code> {
    outcome.failure().map(|failure| failure.code)
}

#[tokio::test]
async fn work_that_is_late_is_dropped_or_goes_on_as_was_said() {
    let never = CancellationToken::new;
    let (go, gone) = oneshot::channel();
    let stopped = within_deadline(&tool(), held(gone), MOMENT, never(), AtDeadline::Stop).await;
    assert_eq!(code(&stopped), Some(Code::Deadline));
    assert!(go.send(()).is_err(), "nobody works on it any more");

    let ((go, gone), (late, is_late)) = (oneshot::channel(), oneshot::channel());
    let name = tool();
    let work = within_deadline(&name, held(gone), MOMENT, never(), AtDeadline::GoOn(late));
    let (ended, ()) = tokio::join!(work, async {
        is_late.await.expect("it is told that it is late");
        go.send(()).expect("it still works");
    });
    assert_eq!(ended, Outcome::Done(ToolOutput::default()));
}

#[tokio::test]
async fn the_caller_can_call_it_off_and_a_result_that_is_there_wins() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let (_go, gone) = oneshot::channel();
    let ended = within_deadline(&tool(), held(gone), MOMENT, cancel.clone(), AtDeadline::Stop).await;
    assert_eq!(code(&ended), Some(Code::Cancelled));
    let done = std::future::ready(Outcome::Done(ToolOutput::default()));
    assert_eq!(code(&within_deadline(&tool(), done, Duration::ZERO, cancel, AtDeadline::Stop).await), None);
}

#[tokio::test]
async fn a_panic_is_a_failure_like_any_other() {
    let ended = caught(&tool(), Box::pin(async { panic!("boom") })).await;
    assert_eq!(code(&ended), Some(Code::Internal));
}

#[test]
fn the_larger_part_of_a_result_is_held_to_the_cap() {
    assert!(matches!(capped(output("1234", "12"), 4), PerformOutcome::Done(_)));
    for large in [output("12345", "12"), output("12", "12345")] {
        let performed = capped(large, 4);
        assert!(matches!(performed, PerformOutcome::TooLarge { bytes: 5, cap: 4 }), "{performed:?}");
        assert_eq!(code(&performed.into_outcome()), Some(Code::ResultTooLarge));
    }
}

#[test]
fn what_somebody_outside_wrote_taints_whoever_is_handed_it() {
    assert!(taints(&PerformOutcome::Done(marked(output("1", "1"), true))));
    assert!(!taints(&PerformOutcome::Done(marked(output("1", "1"), false))));
    assert!(taints(&PerformOutcome::Failed(Failure::new(ITS_OWN_WORDS, "its own words"))));
    assert!(!taints(&PerformOutcome::Failed(Failure::new(Code::Deadline, "ours"))));
}

domain::tool_codes! {
    /// A target said no, in its own words.
    ITS_OWN_WORDS = "its_own_words": BadGateway quotes,
}

#[test]
fn only_perform_runs_a_tool() {
    assert_eq!(places(".work.run("), ["shared/executor/src/perform.rs"]);
}

/// Where the product's own sources say this; tests aside.
fn places(text: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut folders = vec![root.join("shared"), root.join("services")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
            if path.is_dir() && name != "tests" && name != "testkit" {
                folders.push(path);
            } else if name.ends_with(".rs") && name != "tests.rs" {
                let source = std::fs::read_to_string(&path).unwrap();
                if source.split("#[cfg(test)]").next().is_some_and(|source| source.contains(text)) {
                    found.push(path.strip_prefix(&root).unwrap().display().to_string());
                }
            }
        }
    }
    found
}
