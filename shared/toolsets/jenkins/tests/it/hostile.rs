//! What a hostile caller may write into every string argument: it is refused by its grammar, or it stays a literal.

use crate::requests::{DOCUMENTED, shape};
use crate::world::World;
use domain::Code;
use serde_json::{Value, json};

/// Flags, shells, paths, queries and control text.
const CORPUS: [&str; 31] = [
    "--server=x",
    "-sx",
    ";id",
    "a;id",
    "$(id)",
    "`id`",
    "a b",
    "a\nb",
    "a\r\nX-Evil: 1",
    "a\0b",
    "%0a",
    "%2e%2e",
    "%2e%2e%2fapi",
    "../../script",
    "a/../../script",
    "a/..",
    "..",
    ".",
    "/",
    "/etc/passwd",
    "a//b",
    "?tree=*",
    "a?token=x",
    "a#b",
    "a/config.xml",
    "1/stop",
    "https://evil.example/job/a",
    "//evil.example/",
    "\\\\evil\\x",
    "\u{202e}a",
    "",
];

/// A sound call of each tool, and the names of its string arguments.
fn calls() -> Vec<(&'static str, Value, Vec<&'static str>)> {
    vec![
        ("jenkins_jobs", json!({}), vec!["folder", "query", "cursor", "server"]),
        ("jenkins_job", json!({ "job": "smoke" }), vec!["job", "show", "cursor", "server"]),
        ("jenkins_build", json!({ "job": "smoke" }), vec!["job", "build", "show", "artifact", "cursor", "server"]),
        ("jenkins_log", json!({ "job": "shop/deploy" }), vec!["job", "build", "stage", "grep", "cursor", "server"]),
        ("jenkins_queue", json!({}), vec!["server"]),
        ("jenkins_whoami", json!({}), vec!["server"]),
        ("jenkins_trigger", json!({ "job": "smoke", "wait_s": 0 }), vec!["job", "server"]),
        ("jenkins_stop", json!({ "job": "smoke", "build": 2 }), vec!["job", "mode", "server"]),
        ("jenkins_replay", json!({ "job": "shop/deploy", "build": 2 }), vec!["job", "server"]),
        ("jenkins_update_build", json!({ "job": "smoke", "build": 2, "keep": true }), vec!["job", "server"]),
    ]
}

#[tokio::test]
async fn no_argument_leaves_its_place() {
    let world = World::shop().await;
    for (tool, sound, arguments) in calls() {
        for argument in arguments {
            for text in CORPUS {
                let mut args = sound.clone();
                args[argument] = json!(text);
                let before = world.jenkins.requests().len();
                let ended = world.run(tool, args).await;
                let sent = world.jenkins.requests().split_off(before);
                match argument {
                    // A name that could be a job's is looked for, literally; nothing else is.
                    "job" | "folder" => assert!(
                        matches!(
                            ended.as_ref().unwrap_err().code,
                            Code::InvalidArgument | jenkins::codes::JOB_NOT_FOUND
                        ),
                        "{tool} {argument}={text:?}: {ended:?}"
                    ),
                    "artifact" => assert!(
                        matches!(ended.as_ref().unwrap_err().code, Code::InvalidArgument | Code::NotFound),
                        "{tool} {argument}={text:?}: {ended:?}"
                    ),
                    // Not sent at all: they search what was read.
                    "query" | "grep" => {}
                    _ => {
                        let code = ended.as_ref().unwrap_err().code;
                        let refused = matches!(
                            code,
                            Code::InvalidArgument
                                | Code::UnknownArgument
                                | target::codes::CURSOR_MISMATCH
                                | target::codes::SERVER_UNKNOWN
                        );
                        assert!(refused, "{tool} {argument}={text:?}: {code:?}");
                        assert_eq!(sent, [], "{tool} {argument}={text:?} was asked about");
                    }
                }
                for request in sent {
                    let line = request.line();
                    assert_eq!(request.method, "GET", "{tool} {argument}={text:?}: {line}");
                    let shape = shape(&request);
                    let known = DOCUMENTED.contains(&shape.as_str()) || shape.starts_with("GET J/N/artifact/");
                    assert!(known && request.path.split('/').all(|segment| !matches!(segment, "." | "..")), "{line}");
                    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~%/".contains(&b);
                    assert!(request.path.bytes().all(plain), "{line}");
                }
            }
        }
    }
    assert_eq!(world.jenkins.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_value_that_is_sent_stays_one_value() {
    let world = World::shop().await;
    for text in CORPUS.into_iter().filter(|text| !text.contains(['\n', '\r', '\0'])) {
        let args = json!({ "job": "shop/deploy", "parameters": { "VERSION": text }, "wait_s": 0 });
        world.run("jenkins_trigger", args).await.unwrap();
        assert_eq!(world.jenkins.effects("VERSION", text), 1, "{text:?}");
        let sent = world.jenkins.requests();
        let post = sent.iter().rev().find(|request| request.method == "POST").unwrap();
        assert_eq!((post.path.as_str(), post.query.as_str()), ("/job/shop/job/deploy/buildWithParameters", ""));
        let names: Vec<&str> = post.body.split('&').map(|pair| pair.split('=').next().unwrap()).collect();
        assert_eq!(names, ["VERSION", "QM_RUN_ID"], "{text:?}");
    }
    for text in ["a\nb", "a\r\nb", "a\0b"] {
        let args = json!({ "job": "shop/deploy", "parameters": { "VERSION": text } });
        assert_eq!(world.run("jenkins_trigger", args).await.unwrap_err().code, Code::InvalidArgument, "{text:?}");
    }
    for text in CORPUS {
        let args = json!({ "job": "shop/deploy", "parameters": { text: "x" } });
        assert_eq!(
            world.run("jenkins_trigger", args).await.unwrap_err().code,
            jenkins::codes::UNKNOWN_PARAMETER,
            "{text:?}"
        );
    }
}

#[tokio::test]
async fn texts_of_a_build_stay_texts() {
    let world = World::shop().await;
    for text in CORPUS {
        let script = json!({ "job": "shop/deploy", "build": 2, "script": text });
        let name = json!({ "job": "shop/deploy", "build": 2, "display_name": text });
        match text {
            "" => assert_eq!(
                world.preview("jenkins_replay", script).await.map(drop).unwrap_err().code,
                Code::InvalidArgument
            ),
            text if text.contains('\0') => {
                assert_eq!(
                    world.preview("jenkins_replay", script).await.map(drop).unwrap_err().code,
                    Code::InvalidArgument
                );
            }
            text => {
                let drawn = world.preview("jenkins_replay", script).await.unwrap();
                assert!(
                    drawn.text.chars().all(|c| c == '\n' || !c.is_control() && c != '\u{202e}'),
                    "{text:?}: {}",
                    drawn.text
                );
            }
        }
        let plain = text.chars().all(|c| !c.is_control() && c != '\u{202e}');
        assert_eq!(world.run("jenkins_update_build", name).await.is_ok(), plain, "{text:?}");
    }
    let posts: Vec<_> = world.jenkins.requests().into_iter().filter(|request| request.method == "POST").collect();
    assert!(
        posts.iter().all(|post| post.path == "/job/shop/job/deploy/2/configSubmit" && post.body.starts_with("json="))
    );
}

#[tokio::test]
async fn no_argument_names_an_address_a_credential_or_another_user() {
    let world = World::shop().await;
    for name in
        ["url", "base_url", "token", "user", "credential", "crumb", "headers", "insecure", "ca", "timeout", "path"]
    {
        for (tool, mut args, _) in calls() {
            args[name] = json!("x");
            assert_eq!(world.run(tool, args).await.unwrap_err().code, Code::UnknownArgument, "{tool} {name}");
        }
    }
    assert_eq!(world.jenkins.requests(), []);
}
