use super::*;

async fn printed(cap: u64, secrets: &[&str], text: &[u8]) -> (String, u64) {
    let log = OutputLog::new(cap, secrets.iter().copied().map(SecretText::new));
    log.read(text, JobStep::Run, OutputStream::Stdout).await;
    log.finish();
    let (taken, dropped) = log.take(usize::MAX);
    (taken.into_iter().map(|output| output.text).collect(), dropped)
}

#[tokio::test]
async fn lines_come_as_they_were_printed_without_secrets() {
    let (text, dropped) = printed(10_000, &["hunter22-hunter22"], b"one\ntoken hunter22-hunter22!\nlast").await;
    assert_eq!(text, "one\ntoken [redacted: secret]!\nlast\n");
    assert_eq!(dropped, 0);
}

#[tokio::test]
async fn every_line_of_a_secret_of_several_lines_is_taken_out() {
    let (text, _) =
        printed(10_000, &["first-line-of-it\nsecond-line-of-it"], b"a first-line-of-it\nsecond-line-of-it b\n").await;
    assert!(!text.contains("line-of-it"), "{text}");
}

#[tokio::test]
async fn beginning_and_end_are_kept_within_the_cap_and_the_rest_is_counted() {
    let all: String = (0..10_000).map(|n| format!("line {n}\n")).collect();
    let (text, dropped) = printed(64 * 1024, &[], all.as_bytes()).await;
    assert!(text.starts_with("line 0\n") && text.ends_with("line 9999\n"));
    assert!(text.len() <= 64 * 1024, "{}", text.len());
    assert_eq!(text.len() as u64 + dropped, all.len() as u64);
}

#[tokio::test]
async fn a_line_without_an_end_is_cut_and_leaves_no_half_of_a_secret() {
    let secret = "s3cret-s3cret-s3cret-s3cret-s3cret";
    // The secret lies across the cut.
    let long = format!("{}{secret}{}\nnext\n", "x".repeat(LINE - 10), "y".repeat(100_000));
    let (text, dropped) = printed(1 << 20, &[secret], long.as_bytes()).await;
    assert!(!text.contains("s3cret"), "half a secret is left");
    assert!(text.ends_with("(line cut)\nnext\n") && dropped > 100_000);
}

#[tokio::test]
async fn what_is_taken_is_not_there_any_more() {
    let log = OutputLog::new(10_000, []);
    log.read(&b"one\n"[..], JobStep::Run, OutputStream::Stderr).await;
    assert!(!log.is_empty());
    log.changed().await;
    assert_eq!(log.take(10).0[0].text, "one\n", "one is handed out whatever its size");
    assert!(log.is_empty() && log.take(10).0.is_empty());
}
