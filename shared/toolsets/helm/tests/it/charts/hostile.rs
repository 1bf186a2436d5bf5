//! Repositories that mean harm, and arguments that do.

use crate::charts::archives::{archive, chart, sha256};
use crate::charts::server::Answer;
use crate::charts::world::World;
use domain::Code;
use serde_json::json;
use std::fmt::Write;

async fn shown(world: &World) -> Code {
    world.refused("helm_show", json!({ "chart": "stable/web" })).await.code
}

/// One version whose archive is at this address.
fn listing(url: &str) -> String {
    format!("  web:\n  - {{version: 1.0.0, urls: ['{url}']}}\n")
}

#[tokio::test]
async fn an_index_that_sends_elsewhere_is_followed_to_listed_hosts_alone() {
    let world = World::new().await;
    let port = world.server.port;
    for url in [
        "https://evil.example/web.tgz".to_owned(),
        format!("http://127.0.0.3:{port}/web.tgz"),
        format!("//127.0.0.3:{port}/web.tgz"),
        format!("http://169.254.169.254:{port}/web.tgz"),
        format!("http://[::1]:{port}/web.tgz"),
        format!("http://me:x@127.0.0.1:{port}/web.tgz"),
        "http://127.0.0.1:6379/web.tgz".to_owned(),
    ] {
        world.index(&listing(&url));
        world.call("helm_search", json!({ "query": "web", "refresh": true })).await.unwrap();
        assert_eq!(shown(&world).await, target::codes::HOST_DENIED, "{url}");
    }
    for url in ["file:///etc/passwd", "gopher://127.0.0.1/", "oci://127.0.0.1/x", "data:,x"] {
        world.index(&listing(url));
        world.call("helm_search", json!({ "query": "web", "refresh": true })).await.unwrap();
        assert!(matches!(shown(&world).await, target::codes::HOST_DENIED | Code::InvalidArgument), "{url}");
    }
    assert!(world.server.paths().iter().all(|path| path == "/stable/index.yaml"), "{:?}", world.server.paths());

    world.other.put("/web.tgz", Answer::ok(chart("web", "1.0.0", &[])));
    world.index(&listing(&world.other.url("/web.tgz")));
    world.call("helm_search", json!({ "query": "web", "refresh": true })).await.unwrap();
    world.call("helm_show", json!({ "chart": "stable/web" })).await.expect("the operator lists this host");
}

#[tokio::test]
async fn a_redirect_leads_to_listed_hosts_alone_and_ends() {
    let world = World::new().await;
    let port = world.server.port;
    world.index(&listing("web.tgz"));
    for to in [
        "https://evil.example/web.tgz".to_owned(),
        format!("http://127.0.0.3:{port}/web.tgz"),
        format!("http://169.254.169.254:{port}/"),
        format!("//[::1]:{port}/"),
    ] {
        world.server.put("/stable/web.tgz", Answer::moved(&to));
        assert_eq!(shown(&world).await, target::codes::HOST_DENIED, "{to}");
    }
    world.server.put("/stable/web.tgz", Answer::moved("/stable/web.tgz"));
    assert_eq!(shown(&world).await, helm::codes::REPO_UNREACHABLE, "round and round");
    world.server.put("/stable/web.tgz", Answer::status(302));
    assert_eq!(shown(&world).await, helm::codes::REPO_UNREACHABLE, "nowhere");

    // An index is where it was said to be.
    world.other.put("/index.yaml", Answer::ok("entries: {}\n"));
    world.server.put("/stable/index.yaml", Answer::moved(&world.other.url("/index.yaml")));
    let failure = world.refused("helm_search", json!({ "query": "web", "refresh": true })).await;
    assert_eq!((failure.code, world.other.paths().len()), (helm::codes::REPO_UNREACHABLE, 0));
}

#[tokio::test]
async fn what_is_not_the_chart_it_is_said_to_be_is_not_used() {
    let world = World::new().await;
    let right = chart("web", "1.0.0", &[]);
    let listed = format!("  web:\n  - {{version: 1.0.0, urls: [web.tgz], digest: {}}}\n", sha256(&right));
    world.index(&listed);
    world.server.put("/stable/web.tgz", Answer::ok(chart("web", "1.0.0", &[("values.yaml", "evil: true\n")])));
    assert_eq!(shown(&world).await, helm::codes::CHART_NOT_FOUND, "another digest");

    world.index(&listing("web.tgz"));
    world.call("helm_search", json!({ "query": "web", "refresh": true })).await.unwrap();
    for (why, bytes) in [
        ("another name", chart("db", "1.0.0", &[])),
        ("another version", chart("web", "1.0.1", &[])),
        ("no archive", b"hello".to_vec()),
        ("nothing", Vec::new()),
        ("no chart", archive(&[("web/values.yaml".to_owned(), "a: 1")])),
        (
            "leads out",
            archive(&[("web/Chart.yaml".to_owned(), "name: web\nversion: 1.0.0\n"), ("../evil".to_owned(), "x")]),
        ),
        (
            "leads to the root",
            archive(&[("web/Chart.yaml".to_owned(), "name: web\nversion: 1.0.0\n"), ("/etc/passwd".to_owned(), "x")]),
        ),
    ] {
        world.server.put("/stable/web.tgz", Answer::ok(bytes));
        assert_eq!(shown(&world).await, helm::codes::CHART_NOT_FOUND, "{why}");
    }
    // The folder is made with the first archive that is kept.
    let kept = std::fs::read_dir(world.folder.path().join("charts")).map_or(0, Iterator::count);
    assert_eq!(kept, 0, "nothing of it is kept");
}

#[tokio::test]
async fn bombs_cost_their_own_caller_a_refusal() {
    let world = World::new().await;
    world.index(&listing("web.tgz"));
    let zeros = "\0".repeat(6 << 20);
    let bomb = archive(&[("web/Chart.yaml".to_owned(), "name: web\nversion: 1.0.0\n"), ("web/big".to_owned(), &zeros)]);
    assert!(bomb.len() < 100_000);
    for bytes in [bomb, vec![0x1f; 11 << 20]] {
        world.server.put("/stable/web.tgz", Answer::ok(bytes));
        assert_eq!(shown(&world).await, Code::TooLarge);
    }

    let mut laughs = "x: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (n, letter) in ('b'..='z').enumerate() {
        let before = char::from(b'a' + u8::try_from(n).unwrap());
        writeln!(laughs, "{letter}: &{letter} [{}]", vec![format!("*{before}"); 9].join(",")).unwrap();
    }
    for index in [laughs.into_bytes(), b"entries: [".to_vec(), vec![0xff; 100], "[".repeat(1 << 20).into_bytes()] {
        world.server.put("/stable/index.yaml", Answer::ok(index));
        let failure = world.refused("helm_search", json!({ "query": "web", "refresh": true })).await;
        assert_eq!(failure.code, helm::codes::REPO_UNREACHABLE);
    }
    world.server.put("/stable/index.yaml", Answer::ok(vec![b' '; (32 << 20) + 1]));
    let failure = world.refused("helm_search", json!({ "query": "web", "refresh": true })).await;
    assert!(failure.message.contains("too_large"), "{failure}");
}

#[tokio::test]
async fn a_repository_that_keeps_failing_is_left_alone_for_a_while() {
    let world = World::new().await;
    world.server.put("/stable/index.yaml", Answer::status(503));
    for _ in 0..10 {
        assert_eq!(shown(&world).await, helm::codes::REPO_UNREACHABLE);
    }
    assert!(world.server.paths().len() < 10, "asked {} times", world.server.paths().len());
    assert!(world.refused("helm_show", json!({ "chart": "stable/web" })).await.retry_after_ms.is_some());
}

#[tokio::test]
async fn ghsa_wmg3_no_argument_becomes_a_flag_a_path_or_a_command() {
    let world = World::new().await;
    world.publish("web", "1.0.0", &[]);
    let hostile = [
        "--server=x",
        "-sx",
        "-Ashttps://x",
        "--kube-apiserver=x",
        "--kube-token=x",
        "--kubeconfig=/etc",
        "--post-renderer=/bin/sh",
        "--set-file=a=/etc/shadow",
        "-f http://169.254.169.254/",
        "--values=/proc/self/environ",
        "--repository-config",
        "--debug",
        "--all",
        ";id",
        "$(id)",
        "`id`",
        "a\nb",
        "a\0b",
        "%0a",
        "q z",
        "../../x",
        "/etc/passwd",
        "file:///x",
        "{{ .x }}",
        "\u{202e}x",
        "x/../y",
        "stable/web --debug",
        "stable/web\n--debug",
        "oci://127.0.0.1/x --plain-http",
    ];
    for text in hostile {
        for args in [
            json!({ "chart": text }),
            json!({ "chart": "stable/web", "version": text }),
            json!({ "chart": "stable/web", "show": text }),
        ] {
            // A blank may stand between two versions, and then both must be versions.
            assert_eq!(world.refused("helm_show", args.clone()).await.code, Code::InvalidArgument, "{args}");
        }
        let args = json!({ "action": "add", "name": text, "url": "https://charts.example/" });
        assert_eq!(world.refused("helm_repo", args).await.code, Code::InvalidArgument, "{text:?}");
        let args = json!({ "action": "add", "name": "x", "url": text });
        assert!(
            matches!(world.refused("helm_repo", args).await.code, Code::InvalidArgument | target::codes::HOST_DENIED),
            "{text:?}"
        );
        // A query is only ever compared with.
        if let Ok(answer) = world.call("helm_search", json!({ "query": text })).await {
            assert_eq!(answer["charts"], json!([]), "{text:?}");
        }
    }
    for unknown in ["filename", "values_file", "repo", "username", "password", "insecure_skip_tls_verify", "plain_http"]
    {
        let mut args = json!({ "chart": "stable/web" });
        args[unknown] = json!("x");
        let code = world.refused("helm_show", args).await.code;
        assert!(matches!(code, Code::UnknownArgument | Code::InvalidArgument), "{unknown}: {code:?}");
    }
    assert!(world.server.paths().iter().all(|path| path == "/stable/index.yaml"), "{:?}", world.server.paths());
}
