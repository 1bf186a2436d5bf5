//! The OpenAPI description: the one in the docs is that of the binary, and the service returns the same.

use crate::here::embedded;
use serde_json::{Value, json};
use std::path::PathBuf;

#[expect(clippy::disallowed_methods, reason = "the program under test, never part of the service")]
fn printed() -> String {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_quartermaster"));
    let output = command.args(["schema", "--openapi"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_description_in_the_docs_is_that_of_the_binary() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let printed = printed();
    #[expect(clippy::disallowed_methods, reason = "asks whoever runs the test, not the service's settings")]
    if std::env::var("UPDATE_DOCS").is_ok() {
        std::fs::write(&path, &printed).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == printed, "docs/openapi.json is behind; UPDATE_DOCS=1 writes it anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_returns_it_with_its_own_address() {
    let world = embedded().await;
    let reader = world.tenant("acme").reader().rest();
    let mut served = reader.get("/v1/openapi.json").await.json();
    assert_eq!(served["openapi"], "3.1.0");
    assert!(served["servers"][0]["url"].as_str().unwrap().starts_with("http"), "{}", served["servers"]);
    let mut printed: Value = serde_json::from_str(&printed()).unwrap();
    served["servers"] = json!([]);
    printed["servers"] = json!([]);
    assert!(served == printed, "the service describes itself otherwise than the command does");
}

#[test]
fn every_path_of_the_api_page_is_described() {
    let page = std::fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/API.md")).unwrap();
    let document: Value = serde_json::from_str(&printed()).unwrap();
    for path in document["paths"].as_object().unwrap().keys() {
        let shape = |path: &str| {
            path.split('/').map(|part| if part.contains('{') { "*" } else { part }.to_owned()).collect::<Vec<_>>()
        };
        let named = page.split('`').any(|word| word.starts_with('/') && shape(word) == shape(path));
        let jobs = path.starts_with("/v1/runner/jobs/");
        assert!(named || jobs, "docs/API.md does not name {path}");
    }
}
