//! Nothing of the cluster is told before anybody approved anything: charts and values that try to look things up while a
//! run is being prepared, and what the approver is told about them.

use crate::releases::world::World;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::{Code, Failure};
use serde_json::{Value, json};

/// What the Secret holds. The charts spell it out letter by letter, past every mask.
const TOKEN: &str = "canary-of-another-vault";

/// Evaluates a value, as the `extraDeploy` of many charts does.
const EXTRA: &str = "{{ range .Values.extraDeploy }}\n---\n{{ tpl (toYaml .) $ }}\n{{ end }}\n";

/// A ConfigMap with the token, letter by letter.
const PEEK: &str = r#"apiVersion: v1
kind: ConfigMap
metadata: { name: peek }
data:
  token: {{ ((lookup "v1" "Secret" .Release.Namespace "vault").data | default dict).token | default "none" | splitList "" | join "-" | quote }}
"#;

/// The same in the words of an error.
const FAIL: &str = r#"{{ fail (((lookup "v1" "Secret" .Release.Namespace "vault").data | default dict).token | default "nothing found" | splitList "" | join "-") }}"#;

/// What a chart learns of the cluster without looking anything up.
const CAPABILITIES: &str = r#"apiVersion: v1
kind: ConfigMap
metadata: { name: capabilities }
data:
  version: {{ .Capabilities.KubeVersion.Version | quote }}
  rollouts: {{ .Capabilities.APIVersions.Has "argoproj.io/v1alpha1/Rollout" | quote }}
  ingresses: {{ .Capabilities.APIVersions.Has "networking.k8s.io/v1" | quote }}
"#;

async fn with_secret() -> Option<World> {
    let world = World::new().await?;
    let secret = json!({ "metadata": { "name": "vault", "namespace": world.namespace }, "data": { "token": STANDARD.encode(TOKEN) } });
    world.make("v1", "Secret", secret).await;
    Some(world)
}

/// No spelling of the token that a chart could have made.
fn tells_nothing(told: &str) {
    let bare: String = told.chars().filter(char::is_ascii_alphanumeric).collect();
    for spelled in [TOKEN.to_owned(), STANDARD.encode(TOKEN), STANDARD.encode(STANDARD.encode(TOKEN))] {
        let spelled: String = spelled.chars().filter(char::is_ascii_alphanumeric).collect();
        assert!(!bare.contains(&spelled), "the token is told: {told}");
    }
}

fn install(more: Value) -> Value {
    let mut args = json!({ "release": "shop", "chart": "stable/web", "timeout_s": 60 });
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    args
}

/// A failure in our own words alone.
fn plain(failure: &Failure, code: Code) {
    assert_eq!((failure.code, &failure.details), (code, &None), "{failure:?}");
    tells_nothing(&format!("{failure:?}"));
}

#[tokio::test]
async fn a_template_in_values_is_refused_before_helm_is_asked() {
    let Some(world) = with_secret().await else { return };
    world.publish_with(&[("1.0.0", &[("templates/extra.yaml", EXTRA)])]);
    let lookup = r#"{{ (lookup "v1" "Secret" "" "vault").data.token | b64dec | splitList "" | join "-" }}"#;
    let values = json!({ "extraDeploy": [{ "kind": "ConfigMap", "metadata": { "name": lookup } }] });
    for (tool, dry) in
        [("helm_install", false), ("helm_install", true), ("helm_upgrade", false), ("helm_template", true)]
    {
        let mut args = install(json!({ "values": values }));
        if tool == "helm_template" {
            args.as_object_mut().unwrap().remove("timeout_s");
        } else if dry {
            args["dry_run"] = json!(true);
        }
        let refused =
            if dry { world.run(tool, args).await.unwrap_err() } else { world.preview(tool, args).await.unwrap_err() };
        plain(&refused, Code::PolicyDenied);
        assert!(refused.message.contains("extraDeploy[0].metadata.name"), "{refused}");
    }
}

#[tokio::test]
async fn a_preview_looks_nothing_up_and_says_first_that_the_chart_would() {
    let Some(world) = with_secret().await else { return };
    world.publish_with(&[("1.0.0", &[]), ("1.1.0", &[("templates/peek.yaml", PEEK)])]);
    let peek = || install(json!({ "version": "1.1.0" }));
    let drawn = world.preview("helm_install", peek()).await.unwrap();
    assert!(drawn.text.contains("create ConfigMap peek"), "{}", drawn.text);
    tells_nothing(&format!("{drawn:?}"));
    assert!(drawn.warnings[0].starts_with("The chart looks things up in the cluster"), "{:?}", drawn.warnings);

    world.run("helm_install", install(json!({ "version": "1.0.0" }))).await.unwrap();
    let drawn = world.preview("helm_upgrade", peek()).await.unwrap();
    assert!(drawn.text.contains("create ConfigMap peek"), "{}", drawn.text);
    tells_nothing(&format!("{drawn:?}"));
    assert!(drawn.warnings[0].starts_with("The chart looks things up in the cluster"), "{:?}", drawn.warnings);
}

#[tokio::test]
async fn a_chart_that_could_hide_a_lookup_is_a_warning() {
    let Some(world) = with_secret().await else { return };
    let hidden = format!("{{{{ tpl (b64dec \"{}\") . }}}}", STANDARD.encode(PEEK));
    world.publish_with(&[("1.0.0", &[]), ("1.1.0", &[("templates/hidden.yaml", &hidden)])]);
    let warns =
        |drawn: &catalog::ToolPreview| drawn.warnings.iter().any(|one| one.contains("evaluates texts as templates"));

    let plain = world.preview("helm_install", install(json!({ "version": "1.0.0" }))).await.unwrap();
    let drawn = world.preview("helm_install", install(json!({ "version": "1.1.0" }))).await.unwrap();

    tells_nothing(&format!("{drawn:?}"));
    assert_eq!((warns(&plain), warns(&drawn)), (false, true), "{:?}", drawn.warnings);
}

#[tokio::test]
async fn an_error_of_a_template_is_told_in_our_own_words() {
    let Some(world) = with_secret().await else { return };
    world.publish_with(&[("1.0.0", &[]), ("1.1.0", &[("templates/fail.yaml", FAIL)])]);
    world.run("helm_install", install(json!({ "version": "1.0.0" }))).await.unwrap();
    let named = |name: &str| install(json!({ "version": "1.1.0", "release": name }));
    plain(&world.preview("helm_install", named("other")).await.unwrap_err(), helm::codes::RENDER_FAILED);
    plain(&world.preview("helm_upgrade", named("shop")).await.unwrap_err(), helm::codes::RENDER_FAILED);

    // Approved, it is rendered with the cluster's help, and its words are nobody's to read either.
    plain(&world.run("helm_upgrade", named("shop")).await.unwrap_err(), helm::codes::RENDER_FAILED);
    let dry = world.run("helm_upgrade", install(json!({ "version": "1.1.0", "dry_run": true }))).await.unwrap_err();
    plain(&dry, helm::codes::RENDER_FAILED);
}

#[tokio::test]
async fn where_the_file_allows_templates_in_values_the_preview_still_evaluates_them_without_the_cluster() {
    let Some(world) = with_secret().await.map(World::with_templates_in_values) else { return };
    world.publish_with(&[("1.0.0", &[("templates/extra.yaml", EXTRA)])]);
    let token = r#"{{ ((lookup "v1" "Secret" .Release.Namespace "vault").data | default dict).token | default "none" | splitList "" | join "-" }}"#;
    let extra =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "peek" }, "data": { "found": token } });
    let drawn = world.preview("helm_install", install(json!({ "values": { "extraDeploy": [extra] } }))).await.unwrap();
    assert!(drawn.text.contains("n-o-n-e"), "{}", drawn.text);
    tells_nothing(&format!("{drawn:?}"));
    assert!(drawn.warnings[0].contains("extraDeploy[0].data.found"), "{:?}", drawn.warnings);
}

#[tokio::test]
async fn what_is_shown_of_a_chart_that_looks_nothing_up_is_what_is_made() {
    let Some(world) = World::new().await else { return };
    let renamed = CAPABILITIES.replace("name: capabilities", "name: renamed");
    let file = "templates/capabilities.yaml";
    world.publish_with(&[("1.0.0", &[(file, CAPABILITIES)]), ("1.1.0", &[(file, &renamed)])]);
    let made = async || {
        let manifest = world.run("helm_get", json!({ "release": "shop", "show": "manifest" })).await.unwrap();
        let text = manifest["text"].as_str().unwrap().to_owned();
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| ["version:", "rollouts:", "ingresses:"].iter().any(|key| line.starts_with(key)));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let first = || install(json!({ "version": "1.0.0" }));
    let drawn = world.preview("helm_install", first()).await.unwrap();
    world.run("helm_install", first()).await.unwrap();
    let lines = made().await;
    assert_eq!(lines.len(), 3, "{lines:?}");
    for line in &lines {
        assert!(drawn.text.contains(line.as_str()), "{line} is made and not shown: {}", drawn.text);
    }

    let drawn = world.preview("helm_upgrade", install(json!({ "version": "1.1.0" }))).await.unwrap();
    for line in &lines {
        assert!(drawn.text.contains(&format!("+  {line}")), "{line}: {}", drawn.text);
    }
}

#[tokio::test]
async fn what_is_there_already_and_of_somebody_else_is_a_warning() {
    let Some(world) = World::new().await else { return };
    let quiet = world.preview("helm_install", install(json!({}))).await.unwrap();
    assert!(quiet.warnings.iter().all(|warning| !warning.contains("already")), "{:?}", quiet.warnings);
    let config = json!({ "metadata": { "name": "shop-config", "namespace": world.namespace }, "data": {} });
    world.make("v1", "ConfigMap", config).await;
    let drawn = world.preview("helm_install", install(json!({}))).await.unwrap();
    let told = drawn.warnings.iter().find(|warning| warning.contains("in the cluster already"));
    assert!(told.is_some_and(|told| told.contains("ConfigMap shop-config") && !told.contains("shop-web")), "{drawn:?}");
}
