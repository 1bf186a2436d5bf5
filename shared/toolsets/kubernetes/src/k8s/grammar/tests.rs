use super::*;

/// What has bent paths, queries and argument lists elsewhere; none of it is a name of any sort.
pub(crate) const HOSTILE: [&str; 22] = [
    "",
    " ",
    "../../secrets/x",
    "..",
    "a..b",
    "a/b",
    "/a",
    "%2e%2e",
    "a%2fb",
    "-rf",
    "--kubeconfig=/etc/passwd",
    "a b",
    "a\n",
    "a\0",
    "a?fieldSelector=x",
    "a&limit=1",
    "a#b",
    "$(id)",
    "`id`",
    "a;id",
    "pods/x/exec",
    "ä",
];

fn takes<T: TryFrom<String>>(text: &str) -> bool {
    T::try_from(text.to_owned()).is_ok()
}

#[test]
fn nothing_hostile_is_a_name_of_any_sort() {
    for text in HOSTILE {
        assert!(!takes::<Label>(text), "label {text:?}");
        assert!(!takes::<Namespaces>(text), "namespace {text:?}");
        assert!(!takes::<ObjectName>(text), "name {text:?}");
        assert!(!takes::<KindText>(text), "kind {text:?}");
        assert!(!takes::<Span>(text), "span {text:?}");
    }
    assert!(!takes::<Label>(&"a".repeat(64)) && !takes::<ObjectName>(&"a".repeat(254)));
}

#[test]
fn names_are_taken_as_kubernetes_takes_them() {
    for good in ["a", "web-1", "0", &"x".repeat(63)] {
        assert!(takes::<Label>(good) && takes::<Namespaces>(good) && takes::<ObjectName>(good), "{good}");
    }
    assert!(takes::<Namespaces>("*") && !takes::<Label>("*"));
    let name = |text: &str| ObjectName::try_from(text.to_owned()).unwrap();
    assert!(name("web.example.com").fits("apps").is_ok());
    assert!(name("system:node").fits("rbac.authorization.k8s.io").is_ok());
    assert_eq!(name("system:node").fits("").unwrap_err().code, Code::InvalidArgument);
    assert_eq!(name("Web").fits("apps").unwrap_err().code, Code::InvalidArgument);
}

#[test]
fn a_kind_has_five_spellings_and_a_subresource_none() {
    for good in [
        "Deployment",
        "deployments",
        "deploy",
        "rollouts.argoproj.io",
        "deployments.v1.apps",
        "apps/v1/Deployment",
        "v1/Pod",
        "argoproj.io/v1alpha1/Rollout",
    ] {
        assert!(takes::<KindText>(good), "{good}");
    }
    for bad in [
        "pods/exec",
        "secret/my-secret",
        "apps/Deployment",
        "apps/v1/deployments.apps",
        "v1/",
        "secrets.v1.",
        "a/b/v1/C",
    ] {
        assert!(!takes::<KindText>(bad), "{bad}");
    }
}

#[test]
fn spans_are_short_and_whole() {
    let secs = |text: &str| Span::try_from(text.to_owned()).map(|s| s.duration().as_secs());
    assert_eq!(secs("15m"), Ok(900));
    assert_eq!(secs("30d"), Ok(2_592_000));
    for bad in ["0s", "31d", "1.5h", "m", "1w", "100000s", "-5m", "5 m", "１m"] {
        assert!(secs(bad).is_err(), "{bad}");
    }
}

#[test]
fn an_image_names_its_registry() {
    let registry = |text: &str| Image::try_from(text.to_owned()).map(|i| i.registry().to_owned());
    assert_eq!(registry("nginx"), Ok("docker.io".into()));
    assert_eq!(registry("team/app:1.2"), Ok("docker.io".into()));
    assert_eq!(registry("ghcr.io/team/app:1.2"), Ok("ghcr.io".into()));
    assert_eq!(
        registry("localhost:5000/a@sha256:".to_owned().as_str()),
        Err("an image is [registry/]path[:tag][@sha256:digest]".into())
    );
    let digest = format!("r.example:5000/a/b@sha256:{}", "a".repeat(64));
    assert_eq!(registry(&digest), Ok("r.example:5000".into()));
    for bad in ["-x", "a b", "http://x/y", "a//b", "a:tag:tag", "a:", "../a", "a@sha256:zz", "a\n"] {
        assert!(registry(bad).is_err(), "{bad}");
    }
}

#[test]
fn an_http_path_stays_where_it_is() {
    for good in ["/", "/healthz?verbose=1", "/a/b.json"] {
        assert!(takes::<HttpPath>(good), "{good}");
    }
    for bad in ["", "a", "/a b", "/../x", "/%2e%2e/x", "/a%2Fb", "/a#b", "/a\nb", "/\\x", "/%00"] {
        assert!(!takes::<HttpPath>(bad), "{bad}");
    }
}

#[test]
fn the_schema_accepts_whatever_the_grammar_accepts() {
    let pattern =
        |schema: schemars::Schema| regex::Regex::new(schema.get("pattern").and_then(|p| p.as_str()).unwrap()).unwrap();
    let mut generator = schemars::SchemaGenerator::default();
    let kinds = pattern(<KindText as schemars::JsonSchema>::json_schema(&mut generator));
    for good in ["Deployment", "deploy", "rollouts.argoproj.io", "apps/v1/Deployment", "v1/Pod"] {
        assert!(kinds.is_match(good), "{good}");
    }
    let names = pattern(<ObjectName as schemars::JsonSchema>::json_schema(&mut generator));
    assert!(names.is_match("system:node") && names.is_match("web.example.com") && !names.is_match("-a"));
}
