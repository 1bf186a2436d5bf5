//! What a release holds in secret is shown nowhere: every answer of every test is searched for it, and here all of them.

use crate::releases::world::World;
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
