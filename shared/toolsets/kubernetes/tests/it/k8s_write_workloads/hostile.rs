//! What a hostile caller may write into every string argument: it is refused by its grammar, or it stays a literal.

use crate::corpus::{CORPUS, IMAGES};
use crate::k8s_write_objects::world::World;
use domain::Code;
use serde_json::{Value, json};

/// Paths that lead elsewhere, or that two readers would read differently.
const PATHS: [&str; 9] = ["/..", "/a/../b", "/%2e%2e/b", "/%2F", "/a b", "/a\nb", "/a#b", "/\\..\\a", "//%00"];

/// A call of each tool that is sound, and the names of its string arguments.
fn calls() -> Vec<(&'static str, Value, Vec<&'static str>)> {
    vec![
        (
            "k8s_rollout",
            json!({ "action": "restart", "kind": "Deployment", "name": "frontend" }),
            vec!["action", "kind", "name", "namespace", "cluster"],
        ),
        ("k8s_node", json!({ "action": "cordon", "name": "sandbox-node-1" }), vec!["action", "name", "cluster"]),
        (
            "k8s_exec",
            json!({ "pod": "redis-0", "command": ["true"] }),
            vec!["pod", "namespace", "container", "cluster"],
        ),
        ("k8s_run", json!({ "image": "busybox:1" }), vec!["image", "namespace", "cluster"]),
        ("k8s_run", json!({ "from_cronjob": "nightly-report" }), vec!["from_cronjob"]),
        ("k8s_run", json!({ "debug_pod": "redis-0", "image": "busybox:1" }), vec!["debug_pod", "image"]),
        (
            "k8s_probe",
            json!({ "kind": "service", "name": "frontend", "port": 8080 }),
            vec!["kind", "name", "namespace", "path", "cluster"],
        ),
    ]
}

#[tokio::test]
async fn no_argument_becomes_a_flag_a_path_or_a_query() {
    let world = World::shop().await;
    let (before, asked) = (world.writes(), world.sandbox.requests().len());
    for (tool, sound, arguments) in calls() {
        for argument in arguments {
            let more: &[&str] = if argument == "path" { &PATHS } else { &[] };
            let literal = |text: &&str| argument == "image" && IMAGES.contains(text);
            for text in CORPUS.iter().chain(more).copied().filter(|text| !literal(text)) {
                let mut args = sound.clone();
                args[argument] = json!(text);
                let refused = match world.preview(tool, args.clone()).await {
                    Err(refused) => refused,
                    Ok(shown) => panic!("{tool} {argument}={text:?} was shown as {}", shown.summary),
                };
                assert!(
                    matches!(refused.code, Code::InvalidArgument | Code::UnknownArgument),
                    "{tool} {argument}={text:?}: {refused}"
                );
                let refused = world.run(tool, args).await.expect_err("nor is it done");
                assert!(matches!(refused.code, Code::InvalidArgument | Code::UnknownArgument), "{refused}");
            }
        }
    }
    assert_eq!(world.writes(), before);
    assert_eq!(world.sandbox.requests().len(), asked, "refused before anything was asked of the cluster");
}

#[tokio::test]
async fn the_name_of_a_container_is_looked_up_and_never_sent() {
    let world = World::shop().await;
    let before = world.writes();
    for text in CORPUS.into_iter().filter(|text| !IMAGES.contains(text)) {
        let args =
            |images: Value| json!({ "action": "set_image", "kind": "deploy", "name": "frontend", "images": images });
        let refused = world.run("k8s_rollout", args(json!({ text: "a:1" }))).await.unwrap_err();
        assert!(
            matches!(refused.code, kubernetes::codes::CONTAINER_NOT_FOUND | Code::InvalidArgument),
            "{text:?}: {refused}"
        );
        let refused = world.run("k8s_rollout", args(json!({ "frontend": text }))).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidArgument, "{text:?}");
    }
    assert_eq!(world.writes(), before);
    for text in IMAGES {
        let shown = world.preview("k8s_run", json!({ "image": text })).await.unwrap();
        assert!(shown.text.contains(&format!("image: {text}")), "{}", shown.text);
    }
    assert!(world.sandbox.requests().iter().all(|request| !IMAGES.iter().any(|text| request.contains(text))));
}

#[tokio::test]
async fn the_words_of_a_command_and_what_it_reads_stay_as_they_are() {
    let world = World::shop().await;
    for text in CORPUS.into_iter().filter(|text| !text.contains('\0')) {
        let told = world.run("k8s_exec", json!({ "pod": "redis-0", "command": ["echo", "-n", text] })).await.unwrap();
        // What a terminal would act on, or a reader would be misled by, is all that is taken out of the answer.
        let shown: String = text.chars().filter(|c| !c.is_control() || *c == '\n').collect();
        assert_eq!(told["stdout"], shown.trim_end_matches('\n'), "{text:?}");
    }
    let refused = world.run("k8s_exec", json!({ "pod": "redis-0", "command": ["a\0b"] })).await.unwrap_err();
    assert_eq!(refused.code, Code::InvalidArgument);
    let told = world.run("k8s_exec", json!({ "pod": "redis-0", "command": ["cat"], "stdin": "; id $(id)" })).await;
    assert_eq!(told.unwrap()["stdout"], "; id $(id)");
}
