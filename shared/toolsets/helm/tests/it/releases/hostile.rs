//! Strings that would be something else on a command line, in a path or in a template.

use crate::releases::world::World;
use domain::Code;
use serde_json::{Value, json};

const HOSTILE: [&str; 18] = [
    "--kubeconfig=/etc/passwd",
    "-f",
    "--",
    "--post-renderer=/bin/sh",
    "../../etc/passwd",
    "/etc/passwd",
    "file:///etc/passwd",
    "http://169.254.169.254/latest",
    "https://example.com/a.tgz",
    "a b",
    "a\nb",
    "a\u{0}b",
    "a\u{1b}[31m",
    "$(id)",
    "`id`",
    "a;id",
    "{{ .Files.Get \"x\" }}",
    "ｆｕｌｌ",
];

#[tokio::test]
async fn no_name_becomes_a_flag_a_path_or_an_address() {
    let Some(world) = World::new().await else { return };
    let texts: [(&str, &[&str]); 8] = [
        ("helm_list", &["namespace", "cluster"]),
        ("helm_get", &["release", "namespace", "cluster", "show", "cursor"]),
        ("helm_install", &["release", "chart", "namespace", "cluster"]),
        ("helm_upgrade", &["release", "chart", "namespace", "cluster", "keep_values"]),
        ("helm_rollback", &["release", "namespace", "cluster"]),
        ("helm_uninstall", &["release", "namespace", "cluster"]),
        ("helm_recover", &["release", "namespace", "cluster"]),
        ("helm_test", &["release", "namespace", "cluster"]),
    ];
    for (tool, arguments) in texts {
        for argument in arguments {
            for text in HOSTILE {
                let mut args = json!({});
                if tool != "helm_list" {
                    args["release"] = json!("shop");
                }
                if tool == "helm_install" || tool == "helm_upgrade" {
                    args["chart"] = json!("stable/web");
                }
                args[*argument] = json!(text);
                let refused = world.run(tool, args).await.unwrap_err();
                // A cursor may be any word; one that was not given is none.
                let expected = [Code::InvalidArgument, target::codes::CURSOR_MISMATCH];
                assert!(expected.contains(&refused.code), "{tool} {argument}={text:?}: {refused}");
            }
        }
    }
    for version in ["--devel", "1.0.0; id", "$(id)", "a\nb"] {
        let args = json!({ "release": "shop", "chart": "stable/web", "version": version });
        assert_eq!(world.run("helm_install", args).await.unwrap_err().code, Code::InvalidArgument, "{version}");
    }
    let children: Vec<i32> =
        ["install", "upgrade", "rollback", "uninstall"].iter().flat_map(|s| world.children(s)).collect();
    assert!(children.is_empty());
}

#[tokio::test]
async fn what_looks_like_a_template_in_values_stays_text_unless_the_chart_evaluates_it() {
    let Some(world) = World::new().await.map(World::with_templates_in_values) else { return };
    let text = "{{ .Release.Name }} $(id) --set=a=b\n{{ lookup \"v1\" \"Secret\" \"\" \"\" }} \"quoted\" 'single' # no comment";
    let values = json!({ "greeting": text });
    let install = json!({ "release": "shop", "chart": "stable/web", "values": values, "timeout_s": 60 });
    world.run("helm_install", install).await.unwrap();

    let got = world.run("helm_get", json!({ "release": "shop", "show": "values" })).await.unwrap();
    assert_eq!(got["values"]["greeting"], text);
    let manifest = world.run("helm_get", json!({ "release": "shop", "show": "manifest" })).await.unwrap();
    assert!(manifest["text"].as_str().unwrap().contains("{{ .Release.Name }} $(id)"), "{manifest}");
}

#[tokio::test]
async fn values_of_any_shape_are_data() {
    let Some(world) = World::new().await else { return };
    for values in [
        json!({ "&anchor": "*alias", "<<": { "replicas": 9 } }),
        json!({ "greeting": "!!python/object:os.system" }),
        json!({ "": "empty", "a.b": 1, "a=b,c=d": 2, "-": null }),
    ] {
        let dry = json!({ "release": "shop", "chart": "stable/web", "values": values, "dry_run": true });
        let answer: Result<Value, _> = world.run("helm_install", dry).await;
        assert_eq!(answer.unwrap()["status"], "dry-run");
    }
    let wrong = json!({ "release": "shop", "chart": "stable/web", "values": "replicas: 3" });
    assert_eq!(world.run("helm_install", wrong).await.unwrap_err().code, Code::InvalidArgument);
}
