//! Commands in containers, over WebSocket.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{AttachParams, AttachedProcess};
use kube::core::Status;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::support::{Cluster, PODS, pod};

async fn running() -> Cluster {
    let cluster = Cluster::empty().await;
    let mut web = pod("web", "app:1");
    web["spec"]["containers"][0]["env"] = json!([{ "name": "COLOUR", "value": "blue" }]);
    cluster.create(PODS, &web).await;
    cluster.until_path(&format!("{PODS}/web"), |pod| pod["status"]["phase"] == "Running").await;
    cluster
}

async fn exec(cluster: &Cluster, argv: &[&str], params: &AttachParams) -> AttachedProcess {
    cluster.api::<Pod>("shop").exec("web", argv.to_vec(), params).await.unwrap()
}

async fn outcome(mut process: AttachedProcess) -> (String, String, Status) {
    let status = process.take_status().unwrap();
    let (mut out, mut err) = (String::new(), String::new());
    process.stdout().unwrap().read_to_string(&mut out).await.unwrap();
    process.stderr().unwrap().read_to_string(&mut err).await.unwrap();
    let status = status.await.unwrap();
    process.join().await.unwrap();
    (out, err, serde_json::from_value(serde_json::to_value(status).unwrap()).unwrap())
}

#[tokio::test]
async fn a_command_answers_on_its_streams_and_ends_with_a_status() {
    let cluster = running().await;
    let params = AttachParams::default().stdin(false).stdout(true).stderr(true);

    let (out, _, status) = outcome(exec(&cluster, &["echo", "hello", "there"], &params).await).await;
    assert_eq!((out.as_str(), format!("{:?}", status.status)), ("hello there\n", "Some(Success)".to_owned()));
    let (out, _, _) = outcome(exec(&cluster, &["env"], &params).await).await;
    assert!(out.contains("COLOUR=blue\n"), "{out}");
    let (_, err, status) = outcome(exec(&cluster, &["sh", "-c", "echo bad >&2; exit 3"], &params).await).await;
    assert_eq!((err.as_str(), status.reason.as_str()), ("bad\n", "NonZeroExitCode"));
    let cause = &status.details.unwrap().causes[0];
    assert_eq!((cause.reason.as_str(), cause.message.as_str()), ("ExitCode", "3"));
    let (_, _, status) = outcome(exec(&cluster, &["frobnicate"], &params).await).await;
    assert!(status.message.contains("exec: \"frobnicate\": executable file not found in $PATH"), "{}", status.message);
    assert!(cluster.sandbox.writes().contains(&"GET shop/pods/web/exec".to_owned()));
}

#[tokio::test]
async fn standard_input_reaches_the_command() {
    let cluster = running().await;
    let params = AttachParams::default().stdin(true).stdout(true).stderr(false);
    let mut process = exec(&cluster, &["cat"], &params).await;

    let mut stdin = process.stdin().unwrap();
    stdin.write_all(b"through the pipe").await.unwrap();
    stdin.shutdown().await.unwrap();
    drop(stdin);
    let mut out = String::new();
    process.stdout().unwrap().read_to_string(&mut out).await.unwrap();

    assert_eq!(out, "through the pipe");
    process.join().await.unwrap();
}
