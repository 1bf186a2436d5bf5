//! What a release holds in secret is shown nowhere: every answer of every test is searched for it, and here all of them.

use crate::releases::world::World;
use domain::json::sha256_hex;
use serde_json::json;

#[tokio::test]
async fn a_password_in_values_notes_manifest_and_history_is_a_mark_everywhere() {
    let Some(world) = World::new().await else { return };
    let values = json!({ "password": "canary-of-the-call", "nested": { "apiToken": "canary-token", "plain": "fine" } });
    let install = json!({ "release": "shop", "chart": "stable/web", "values": values, "timeout_s": 60 });
    let drawn = world.preview("helm_install", install.clone()).await.unwrap();
    for line in
        ["+  apiToken: canary-token", "+  url: postgres://app:canary-of-the-call@db/app", "+  password: \"(secret)\""]
    {
        assert!(drawn.text.lines().any(|shown| shown == line), "{line} in {}", drawn.text);
    }
    let contents = "18 characters hidden: Secret shop-auth, at /stringData/password; a secret of the release";
    assert_eq!((drawn.arguments, drawn.hidden), (None, vec![contents.to_owned()]));
    let installed = world.run("helm_install", install).await.unwrap();
    assert!(installed["notes"].as_str().unwrap().contains("its password is masked:"), "{installed}");

    for show in ["status", "history", "values", "all_values", "manifest", "hooks", "notes"] {
        let got = world.run("helm_get", json!({ "release": "shop", "show": show })).await.unwrap();
        match show {
            "values" => {
                assert_eq!(got["values"]["nested"]["plain"], "fine", "{got}");
                assert!(got["values"]["nested"]["apiToken"].as_str().unwrap().starts_with("masked:"), "{got}");
            }
            "manifest" => {
                let text = got["text"].as_str().unwrap();
                assert!(text.contains("greeting: hello") && text.contains("masked:"), "{text}");
                assert_eq!(got["objects"].as_array().unwrap().len(), 3);
            }
            _ => {}
        }
    }

    // By now the service knows the password, wherever it stands; what only looks like one is shown.
    let values = json!({ "greeting": "log in with canary-of-the-call", "newToken": "--token abcdefgh12345" });
    let upgrade = json!({ "release": "shop", "chart": "stable/web", "values": values, "timeout_s": 60 });
    let drawn = world.preview("helm_upgrade", upgrade).await.unwrap();
    for line in ["+greeting: \"log in with (secret)\"", "+newToken: \"--token abcdefgh12345\""] {
        assert!(drawn.text.lines().any(|shown| shown == line), "{line} in {}", drawn.text);
    }
    let counted = "18 characters hidden: the values, at /greeting; a secret of the release";
    assert!(drawn.hidden.iter().any(|line| line == counted), "{:?}", drawn.hidden);
}

/// The password letter by letter, backwards and as a digest: past every mask.
const SPELLED: &str = r#"apiVersion: v1
kind: ConfigMap
metadata: { name: spelled }
data:
  letters: {{ .Values.password | splitList "" | join "-" | quote }}
  backwards: {{ .Values.password | splitList "" | reverse | join "" | quote }}
  digest: {{ .Values.password | sha256sum }}
"#;

#[tokio::test]
async fn a_chart_of_the_callers_choice_is_not_given_the_secrets_of_the_release_before_the_approval() {
    const PASSWORD: &str = "canary-of-the-call";
    let Some(world) = World::new().await else { return };
    world.publish_with(&[("1.0.0", &[]), ("1.1.0", &[("templates/spelled.yaml", SPELLED)])]);
    let install = json!({
        "release": "shop", "chart": "stable/web", "version": "1.0.0", "timeout_s": 60,
        "values": { "password": PASSWORD, "greeting": "stored" },
    });
    world.run("helm_install", install).await.unwrap();

    let changed = json!({ "replicas": 3 });
    let upgrade = |more: serde_json::Value| {
        let mut args = json!({ "release": "shop", "chart": "stable/web", "version": "1.1.0", "values": changed });
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        args
    };
    let mut told = vec![world.run("helm_template", upgrade(json!({ "output": "diff" }))).await.unwrap()];
    for keep in ["reset_then_reuse", "reuse"] {
        let dry = upgrade(json!({ "dry_run": true, "keep_values": keep, "timeout_s": 60 }));
        told.push(world.run("helm_upgrade", dry).await.unwrap());
    }
    let spelled = |text: &str| {
        let bare: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
        let letters: String = PASSWORD.chars().filter(char::is_ascii_alphanumeric).collect();
        let backwards: String = letters.chars().rev().collect();
        [letters, backwards, sha256_hex(PASSWORD.as_bytes())].iter().any(|form| bare.contains(form.as_str()))
    };
    for answer in &told {
        let diff = answer["diff"].as_str().unwrap();
        assert!(!spelled(&answer.to_string()), "{answer:#}");
        assert!(diff.contains("create ConfigMap spelled") && diff.contains("+  replicas: 3"), "{diff}");
        assert!(!diff.contains("change Secret"), "what stays as it is compares as such: {diff}");
        assert!(answer["hint"].as_str().is_some_and(|hint| hint.contains("secrets are not used here")), "{answer:#}");
    }

    // Whoever decides sees what will run, and what whoever asked is given then.
    let drawn = world.preview("helm_upgrade", upgrade(json!({ "timeout_s": 60 }))).await.unwrap();
    assert!(spelled(&drawn.text) && drawn.text.contains("notes that whoever asked is given:"), "{}", drawn.text);
}

#[tokio::test]
async fn a_chart_that_needs_the_secrets_of_the_release_is_told_so() {
    let Some(world) = World::new().await else { return };
    let picky = r#"{{ if not (hasPrefix "canary" .Values.password) }}{{ fail .Values.password }}{{ end }}"#;
    world.publish_with(&[("1.0.0", &[]), ("1.1.0", &[("templates/picky.yaml", picky)])]);
    let values = json!({ "password": "canary-of-the-call" });
    let args = |version: &str| json!({ "release": "shop", "chart": "stable/web", "version": version, "timeout_s": 60 });
    let mut install = args("1.0.0");
    install["values"] = values;
    world.run("helm_install", install).await.unwrap();

    let mut dry = args("1.1.0");
    dry["dry_run"] = json!(true);
    let refused = world.run("helm_upgrade", dry).await.unwrap_err();
    assert_eq!((refused.code, &refused.details), (helm::codes::RENDER_FAILED, &None), "{refused:?}");
    assert!(refused.next.as_deref().is_some_and(|next| next.contains("secrets are not used here")), "{refused:?}");
    assert!(world.preview("helm_upgrade", args("1.1.0")).await.is_ok());
}
