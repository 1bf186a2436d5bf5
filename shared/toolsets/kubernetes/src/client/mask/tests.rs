use super::*;
use proptest::prelude::*;
use serde_json::json;

const PLAIN: &str = "s3cr3t-sesame-77";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const ENCODED: &str = "czNjcjN0LXNlc2FtZS03Nw==";

fn masker() -> Masker {
    Masker::new(&[1; 32], &Tenant::parse("acme").unwrap(), &[])
}

fn shown(mut value: Value, detail: MaskDetail) -> String {
    masker().object(&mut value, detail);
    value.to_string()
}

/// Every place a secret is known to hide.
#[expect(clippy::too_many_lines, reason = "one table")]
fn corpus() -> Vec<(&'static str, Value)> {
    let secret = json!({ "kind": "Secret", "data": { "k": ENCODED } });
    let text = secret.to_string();
    let twice = json!({ "spec": { "manifest": text } }).to_string();
    let env = json!({ "name": "API_TOKEN", "value": PLAIN });
    vec![
        ("data", secret.clone()),
        ("stringData", json!({ "kind": "Secret", "stringData": { "k": PLAIN } })),
        ("data that is no text", json!({ "kind": "Secret", "data": { "k": [PLAIN] } })),
        ("data that is no object", json!({ "kind": "Secret", "data": PLAIN })),
        ("kind in another case", json!({ "kind": "SECRET", "data": { "k": ENCODED } })),
        ("without its kind", json!({ "type": "Opaque", "data": { "k": ENCODED } })),
        ("tls without its kind", json!({ "type": "kubernetes.io/tls", "data": { "tls.key": ENCODED } })),
        ("stringData without its kind", json!({ "stringData": { "k": PLAIN } })),
        ("a list", json!({ "kind": "List", "items": [secret.clone()] })),
        ("a typed list", json!({ "kind": "SecretList", "items": [{ "data": { "k": ENCODED } }] })),
        ("a release without its kind", json!({ "type": "helm.sh/release.v1", "data": { "release": ENCODED } })),
        (
            "a bootstrap token without its kind",
            json!({ "type": "bootstrap.kubernetes.io/token", "data": { "token-secret": ENCODED } }),
        ),
        ("a helm release", json!({ "kind": "Secret", "type": "helm.sh/release.v1", "data": { "release": ENCODED } })),
        (
            "a helm release in a ConfigMap",
            json!({ "kind": "ConfigMap", "metadata": { "labels": { "owner": "helm" } }, "data": { "release": PLAIN } }),
        ),
        (
            "a ControllerRevision",
            json!({ "kind": "ControllerRevision", "data": { "spec": { "template": { "spec": { "containers": [{ "env": [env.clone()] }] } } } } }),
        ),
        ("a Secret in a ControllerRevision", json!({ "kind": "ControllerRevision", "data": secret.clone() })),
        (
            "last applied",
            json!({ "kind": "ConfigMap", "metadata": { "annotations": { "kubectl.kubernetes.io/last-applied-configuration": text } } }),
        ),
        (
            "last applied of a Secret",
            json!({ "kind": "Secret", "metadata": { "annotations": { "kubectl.kubernetes.io/last-applied-configuration": format!("not json {PLAIN}") } } }),
        ),
        (
            "last applied that is no JSON",
            json!({ "kind": "Pod", "metadata": { "annotations": { "kubectl.kubernetes.io/last-applied-configuration": PLAIN } } }),
        ),
        ("embedded JSON", json!({ "kind": "ConfigMap", "data": { "a.json": text } })),
        ("embedded twice", json!({ "kind": "ConfigMap", "data": { "a.json": twice } })),
        (
            "embedded YAML",
            json!({ "kind": "ConfigMap", "data": { "a.yaml": format!("apiVersion: v1\nkind: Secret\ndata:\n  k: {ENCODED}\n") } }),
        ),
        (
            "embedded YAML in a list",
            json!({ "kind": "ConfigMap", "data": { "a.yaml": format!("items:\n- kind: \"Secret\"\n  data:\n    k: {ENCODED}\n") } }),
        ),
        ("a key of a ConfigMap", json!({ "kind": "ConfigMap", "data": { "db-password": PLAIN } })),
        ("env", json!({ "spec": { "containers": [{ "env": [env] }] } })),
        ("a header of a probe", json!({ "httpHeaders": [{ "name": "Authorization", "value": PLAIN }] })),
        ("a flag", json!({ "args": [format!("--db-password={PLAIN}")] })),
        ("a flag and its value", json!({ "command": ["run", "--token", PLAIN] })),
        ("a flag in a script", json!({ "args": ["-c", format!("mysql --password={PLAIN} -e x")] })),
        ("an address", json!({ "spec": { "url": format!("https://user:{PLAIN}@host/x") } })),
        ("a field of a custom kind", json!({ "kind": "Database", "spec": { "clientSecret": PLAIN } })),
        ("a message", json!({ "kind": "Event", "message": format!("login failed: password={PLAIN}") })),
        ("a token", json!({ "kind": "TokenRequest", "status": { "token": PLAIN } })),
        ("pass", json!({ "env": [{ "name": "DB_PASS", "value": PLAIN }, { "name": "SMTP_PASS", "value": PLAIN }] })),
        ("keys", json!({ "env": [{ "name": "MASTER_KEY", "value": PLAIN }, { "name": "JWT_KEY", "value": PLAIN }] })),
        (
            "auth",
            json!({ "env": [{ "name": "BASIC_AUTH", "value": PLAIN }, { "name": "REDIS_AUTH", "value": PLAIN }] }),
        ),
        (
            "a hook",
            json!({ "env": [{ "name": "HOOK", "value": format!("https://hooks.slack.com/services/T0/B0/{PLAIN}") }] }),
        ),
        ("a dollar", json!({ "message": format!("password=ab${PLAIN}") })),
        ("an ampersand", json!({ "message": format!("token=s3&{PLAIN}") })),
        ("after a flag", json!({ "args": ["--auth", PLAIN] })),
        ("a checksum of a secret", json!({ "metadata": { "annotations": { "checksum/secret": PLAIN } } })),
        (
            "a kubeconfig in binary data",
            json!({ "kind": "ConfigMap", "binaryData": { "config": STANDARD.encode(format!("users:\n- user:\n    token: {PLAIN}\n")) } }),
        ),
    ]
}

#[test]
fn no_secret_of_the_corpus_is_shown() {
    for (place, value) in corpus() {
        for detail in [MaskDetail::Clean, MaskDetail::Full] {
            let text = shown(value.clone(), detail);
            assert!(!text.contains(PLAIN) && !text.contains(ENCODED), "{place}: {text}");
            assert!(!text.contains(&STANDARD.encode(PLAIN)[..12]), "{place}: {text}");
        }
    }
}

#[test]
fn binary_data_is_looked_at_decoded_and_hidden_where_it_is_no_text() {
    let config = |bytes: &[u8]| json!({ "kind": "ConfigMap", "binaryData": { "a": STANDARD.encode(bytes) } });
    let secret = format!("apiVersion: v1\nkind: Config\nusers:\n- user:\n    token: {PLAIN}\n");
    for hidden in [secret.as_bytes(), b"\xfe\xed\xfe\xed\x00\x00", format!("DB_PASS={PLAIN}").as_bytes()] {
        let text = shown(config(hidden), MaskDetail::Full);
        assert!(text.contains("masked") && !text.contains(&STANDARD.encode(hidden)), "{text}");
    }
    let plain = config(b"greeting=hello\n");
    assert_eq!(shown(plain.clone(), MaskDetail::Full), plain.to_string());
}

#[test]
fn binary_data_is_hidden_by_its_name_and_as_a_manifest_too() {
    for (key, plain) in [("salt", "s4lty9"), ("a", "kind: Secret\nmetadata: {}\n")] {
        let encoded = STANDARD.encode(plain);
        let text = shown(json!({ "kind": "ConfigMap", "binaryData": { key: encoded } }), MaskDetail::Full);
        assert!(text.contains("masked") && !text.contains(&encoded), "{text}");
    }
}

#[test]
fn a_private_key_is_one_value_and_two_secrets_are_two() {
    let key = "-----BEGIN PRIVATE KEY-----\nMIIB\nAAAA\n-----END PRIVATE KEY-----";
    let marks = |text: &str| masker().text(text).matches("masked:").count();
    assert_eq!(marks(key), 1);
    let (one, other) = ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "AKIAABCDEFGHIJKLMNOP");
    assert_eq!(marks(&format!("{one} {other}")), 2);
    for (first, second) in [(one, other), (key, key), (one, key)] {
        let masked = masker().text(&format!("{first}\nand then\n{second}\n"));
        assert!(masked.contains("\nand then\n") && masked.matches("masked:").count() == 2, "{masked}");
    }
}

#[test]
fn a_value_has_one_mark_whether_it_is_encoded_or_not() {
    let mut secret = json!({ "kind": "Secret", "data": { "a": ENCODED }, "stringData": { "b": PLAIN, "c": ENCODED } });
    masker().object(&mut secret, MaskDetail::Full);
    assert_eq!(secret["data"]["a"], secret["stringData"]["b"]);
    assert_ne!(secret["data"]["a"], secret["stringData"]["c"], "a plain value is not decoded");
}

#[test]
fn text_that_is_too_long_to_be_read_as_json_is_masked_whole() {
    let embedded = |length: usize| format!("[{}]", " ".repeat(length - 2));
    for (length, masked) in [(1024 * 1024, false), (1024 * 1024 + 1, true)] {
        let text = shown(json!({ "a": embedded(length) }), MaskDetail::Full);
        assert_eq!(text.contains("masked:"), masked, "{length}");
    }
}

#[test]
fn a_reference_is_left_as_it_is_and_what_only_ends_like_one_is_not() {
    let text = |value: &str| shown(json!({ "name": "API_TOKEN", "value": value }), MaskDetail::Full);
    assert!(text("$(s3cr3t-77)").contains("$(s3cr3t-77)"));
    assert!(!text("s3cr3t-77)").contains("s3cr3t"));
}

#[test]
fn marks_tell_values_apart_within_a_call_and_nothing_between_two() {
    let (one, other) = (masker(), masker());
    let secret = || json!({ "kind": "Secret", "stringData": { "a": "x", "b": "x", "c": "a much longer value" } });
    let marks = |masker: &Masker| {
        let mut value = secret();
        masker.object(&mut value, MaskDetail::Full);
        ["a", "b", "c"].map(|key| value["stringData"][key].as_str().unwrap().to_owned())
    };
    let [a, b, c] = marks(&one);
    assert!(a == b && a != c);
    assert_eq!(a.len(), c.len(), "a mark says nothing of the length");
    assert!(marks(&other).iter().all(|mark| *mark != a && *mark != c), "another call has other marks");
    assert_ne!(marks(&one.for_call())[0], a);
}

#[test]
fn masking_again_changes_nothing() {
    let masker = masker();
    for (place, mut value) in corpus() {
        masker.object(&mut value, MaskDetail::Full);
        let once = value.to_string();
        masker.object(&mut value, MaskDetail::Full);
        assert_eq!(value.to_string(), once, "{place}");
    }
}

#[test]
fn what_is_no_secret_is_left_as_it_is() {
    let harmless = json!({
        "kind": "Deployment",
        "metadata": { "name": "token-service", "annotations": { "note": "see the password policy" } },
        "spec": {
            "image": "registry.example/app@sha256:5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9",
            "env": [
                { "name": "TOKEN_FILE", "value": "/var/run/token" },
                { "name": "PASSWORD", "value": "$(DB_PASSWORD)" },
                { "name": "SECRET_NAME", "value": "db" },
                { "name": "KEY", "valueFrom": { "secretKeyRef": { "name": "db", "key": "password" } } },
            ],
            "args": ["--port=80", "--tls-secret-name=db", "--", "run"],
            "command": ["kubectl", "get", "secret", "web"],
            "topics": ["--token", "orders"],
            "parts": { "data": { "a": "b" } },
            "volumes": [{ "name": "v", "secret": { "secretName": "db" } }],
            "automountServiceAccountToken": false,
            "config": "{\"a\":1}",
        },
    });
    let owner = |owner: &str| json!({ "kind": "ConfigMap", "metadata": { "labels": { "owner": owner } } });
    let (mut release, mut note) = (owner("me"), owner("helm"));
    (release["data"], note["data"]) = (json!({ "release": "1.2" }), json!({ "note": "1.2" }));
    for harmless in [harmless, release, note] {
        let mut value = harmless.clone();
        masker().object(&mut value, MaskDetail::Full);
        assert_eq!(value, harmless);
    }
}

#[test]
fn a_value_that_only_pretends_to_be_a_mark_is_masked() {
    let fake = json!({ "kind": "Secret", "stringData": { "k": format!("masked:16:{PLAIN}"), "l": format!("masked:{PLAIN}"), "m": format!("masked {PLAIN}") } });
    assert!(!shown(fake, MaskDetail::Full).contains(PLAIN));
}

#[test]
fn text_is_masked_by_its_looks() {
    let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4";
    for text in [
        format!("token: {jwt}"),
        format!("Bearer {jwt}"),
        "-----BEGIN RSA PRIVATE KEY-----\nMIIB\nAAAA\n-----END RSA PRIVATE KEY-----".to_owned(),
        "-----BEGIN PRIVATE KEY-----\nMIIB\nAAAA and it never ends".to_owned(),
        "key AKIAABCDEFGHIJKLMNOP used".to_owned(),
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789".to_owned(),
        "postgres://app:MIIBMIIB@db/x".to_owned(),
    ] {
        let masked = masker().text(&text);
        assert!(masked.contains("masked:"), "{masked}");
        for part in ["MIIB", "AKIAABC", "abcdefghij", "SflKxw"] {
            assert!(!masked.contains(part), "{masked}");
        }
    }
    for plain in ["the token expired", "GET /healthz 200", "secret \"db\" not found", "password must be set"] {
        assert_eq!(masker().text(plain), plain);
    }
}

#[test]
fn the_copy_of_a_secret_that_was_applied_is_left_out_wherever_it_stands() {
    let applied = |copy: Value| json!({ "metadata": { "annotations": { "a": "b", "kubectl.kubernetes.io/last-applied-configuration": copy.to_string() } } });
    let of_secret = applied(json!({ "kind": "Secret", "data": { "k": ENCODED } }));
    let without = json!({ "metadata": { "annotations": { "a": "b" } } }).to_string();
    assert_eq!(shown(of_secret, MaskDetail::Full), without);
    let of_pod = applied(json!({ "kind": "Pod", "spec": { "nodeName": "a" } }));
    assert_eq!(shown(of_pod.clone(), MaskDetail::Full), of_pod.to_string(), "of anything else it is kept");
}

#[test]
fn marks_stay_what_they_are_when_they_are_read_again() {
    for (place, value) in corpus() {
        for detail in [MaskDetail::Clean, MaskDetail::Full] {
            let once = shown(value.clone(), detail);
            assert_eq!(shown(serde_json::from_str(&once).unwrap(), detail), once, "{place}");
        }
    }
}

#[test]
fn noise_is_dropped_unless_everything_is_wanted() {
    let pod = json!({
        "metadata": { "name": "p", "managedFields": [{}], "annotations": { "quartermaster/run": "run_x", "kubectl.kubernetes.io/last-applied-configuration": "{}" } },
        "spec": {
            "tolerations": [{ "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 }],
            "volumes": [{ "name": "token", "projected": { "sources": [{ "serviceAccountToken": { "path": "token" } }] } }, { "name": "mine" }],
        },
    });
    assert_eq!(
        shown(pod.clone(), MaskDetail::Clean),
        json!({ "metadata": { "name": "p" }, "spec": { "volumes": [{ "name": "mine" }] } }).to_string()
    );
    assert_eq!(shown(pod.clone(), MaskDetail::Full), pod.to_string());
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), "\\PC{0,20}".prop_map(Value::from)];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let key = prop_oneof![
            "[a-z]{1,6}",
            Just("data".to_owned()),
            Just("items".to_owned()),
            Just("annotations".to_owned()),
            Just("kind".to_owned())
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(key, inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// A Secret is masked wherever in a value it turns up, as an object or as text; nothing makes the masker fail.
    #[test]
    fn a_secret_is_masked_wherever_it_turns_up(mut around in anything(), path in prop::collection::vec("[a-z]{1,5}", 0..4), as_text: bool) {
        let secret = json!({ "kind": "Secret", "data": { "k": ENCODED }, "stringData": { "l": PLAIN } });
        let secret = if as_text { Value::String(secret.to_string()) } else { secret };
        crate::client::sealed::set(&mut around, &format!("/{}", path.join("/")), secret);
        for detail in [MaskDetail::Clean, MaskDetail::Full] {
            let text = shown(around.clone(), detail);
            prop_assert!(!text.contains(PLAIN) && !text.contains(ENCODED), "{}", text);
        }
    }

    #[test]
    fn any_text_can_be_masked(text in "\\PC{0,200}") {
        masker().text(&text);
    }
}

/// An object that has, at every place that a row of this kind looks at, one of the things that hide a secret; and all of
/// them beside these places.
fn filled(fields: &crate::client::FieldTree, hidden: &Value) -> Value {
    let names = fields.names();
    if names.len() == 0 {
        return hidden.clone();
    }
    let mut object = hidden.as_object().cloned().unwrap_or_default();
    object.insert("annotations".into(), json!({ "note": hidden, LAST_APPLIED: hidden.to_string() }));
    object.insert("value".into(), json!(PLAIN));
    object.extend(names.map(|(name, beneath)| (name.to_owned(), filled(beneath, hidden))));
    Value::Object(object)
}

#[test]
fn reading_a_few_fields_of_a_list_hides_what_reading_all_of_it_hides() {
    const LIST: [&str; 2] = ["kind", "items"];
    let masker = masker();
    let (mut seen, mut masked) = (0, 0);
    for (group, kind) in crate::k8s::project::KINDS {
        let fields = crate::k8s::project::fields(group, kind).unwrap();
        let read = |list: &Value| fields.read(list.to_string().as_bytes()).unwrap();
        let hide = |mut list: Value| {
            masker.object(&mut list, MaskDetail::Clean);
            list
        };
        for (about, hidden) in corpus() {
            let mut list = filled(&fields, &hidden);
            list["kind"] = json!(format!("{kind}List"));
            list.as_object_mut().unwrap().retain(|name, _| LIST.contains(&name.as_str()));
            for of_kind in [Some(json!(kind)), None] {
                match of_kind {
                    Some(kind) => list["items"]["kind"] = kind,
                    None => drop(list["items"].as_object_mut().unwrap().remove("kind")),
                }
                let list = json!({ "kind": list["kind"], "items": [list["items"]] });
                let (few, all) = (hide(read(&list)), read(&hide(list)));
                assert_eq!(few, all, "{kind}: {about}");
                seen += 1;
                masked += usize::from(few.to_string().contains("masked:"));
            }
        }
    }
    assert!(masked > seen / 2, "{masked} of {seen} hold a secret");
}
