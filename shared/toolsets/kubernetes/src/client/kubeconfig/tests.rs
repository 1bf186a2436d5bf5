use super::*;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

fn kept_as(sources: &[(&KeptSecret, ClusterReach)]) -> ClusterEndpoint {
    let one = |(secret, reach): &(&KeptSecret, ClusterReach)| KeptKubeconfig {
        secret: (*secret).clone(),
        reach: reach.clone(),
    };
    ClusterEndpoint::Kept(sources.iter().map(one).collect())
}

fn text(change: impl FnOnce(&mut Value)) -> String {
    let mut config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{ "name": "c", "context": { "cluster": "k", "user": "u" } }],
        "clusters": [{ "name": "k", "cluster": { "server": "https://k8s.example:6443" } }],
        "users": [{ "name": "u", "user": { "token": "sesame" } }],
    });
    change(&mut config);
    config.to_string()
}

async fn tenants(change: impl FnOnce(&mut Value)) -> Result<LoadedKubeconfig, BadSource> {
    load(&ClusterConfig::new("c", ClusterEndpoint::KubeconfigText(SecretText::new(text(change))))).await
}

#[tokio::test]
async fn a_tenant_brings_an_address_and_inline_credentials_and_nothing_else() {
    assert!(tenants(|_| {}).await.is_ok());
    let cases: [(&str, Value); 19] = [
        ("/users/0/user/exec", json!({ "apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh" })),
        ("/users/0/user/auth-provider", json!({ "name": "gcp" })),
        ("/users/0/user/tokenFile", json!("/etc/passwd")),
        ("/users/0/user/client-certificate", json!("/etc/passwd")),
        ("/users/0/user/client-key", json!("/etc/passwd")),
        ("/users/0/user/as", json!("system:admin")),
        ("/users/0/user/as-groups", json!(["system:masters"])),
        ("/users/0/user/as-uid", json!("1")),
        ("/clusters/0/cluster/certificate-authority", json!("/etc/passwd")),
        ("/clusters/0/cluster/insecure-skip-tls-verify", json!(true)),
        ("/clusters/0/cluster/proxy-url", json!("http://proxy.example")),
        ("/clusters/0/cluster/server", json!("http://k8s.example")),
        ("/clusters/0/cluster/server", json!("http://127.0.0.1:8080")),
        ("/clusters/0/cluster/server", json!("https://localhost:6443")),
        ("/clusters/0/cluster/server", json!("https://[::1]:6443")),
        ("/clusters/0/cluster/server", json!("https://[::ffff:127.0.0.1]:6443")),
        ("/clusters/0/cluster/server", json!("https://169.254.169.254")),
        ("/clusters/0/cluster/server", json!("https://0.0.0.0")),
        ("/clusters/0/cluster/server", json!("https://[fe80::1]")),
    ];
    for (at, value) in cases {
        let refused = tenants(|config| crate::client::sealed::set(config, at, value.clone())).await.err();
        assert!(matches!(refused, Some(BadSource::Refused(_))), "{at} {value}: {refused:?}");
    }
    // What the current context does not use is looked at all the same.
    let hidden = json!({ "name": "v", "user": { "exec": { "command": "x" } } });
    let refused = tenants(|config| config["users"].as_array_mut().unwrap().push(hidden)).await.err();
    assert_eq!(refused, Some(BadSource::Refused("a program to run (exec)")));
}

#[tokio::test]
async fn what_is_no_kubeconfig_is_told_without_its_text() {
    for bad in ["", "sesame", "[1,2", "current-context: nowhere", &"x".repeat(MOST_BYTES + 1)] {
        let error =
            load(&ClusterConfig::new("c", ClusterEndpoint::KubeconfigText(SecretText::new(bad)))).await.err().unwrap();
        assert!(!error.to_string().contains("sesame"), "{error}");
    }
}

#[test]
fn a_kubeconfig_does_not_grow_by_being_read() {
    let lists = (1..4).map(|n| format!("x{n}: &x{n} [{}]\n", vec![format!("*x{}", n - 1); 16].join(",")));
    let bomb: String = std::iter::once("x0: &x0 [a, a, a, a, a, a, a, a]\n".to_owned()).chain(lists).collect();
    let bomb = format!("{bomb}kind: Config\n");
    assert!(Kubeconfig::from_yaml(&bomb).is_ok(), "the library has other bounds");
    assert!(matches!(parse(&bomb), Err(BadSource::NotAKubeconfig)));
    let shared = "users:\n- {name: a, user: &u {token: sesame}}\n- {name: b, user: *u}\n---\ncurrent-context: c\n";
    let merged = parse(shared).unwrap();
    assert_eq!((merged.auth_infos.len(), merged.current_context.as_deref()), (2, Some("c")));
}

#[tokio::test]
async fn the_operators_file_may_name_files_beside_it_but_no_program() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("token"), "sesame").unwrap();
    let path = home.path().join("kubeconfig");
    let operator = |change: fn(&mut Value)| {
        std::fs::write(&path, text(change)).unwrap();
        ClusterConfig::new("c", ClusterEndpoint::Kubeconfig(path.clone()))
    };
    let loaded =
        load(&operator(|config| config["users"][0]["user"] = json!({ "tokenFile": "token" }))).await.ok().unwrap();
    let file = loaded.config.auth_info.token_file.unwrap();
    assert_eq!(Path::new(&file), home.path().join("token"));
    assert_eq!(loaded.stamp.now().await, loaded.stamp);
    std::fs::write(home.path().join("token"), "another sesame").unwrap();
    assert_ne!(loaded.stamp.now().await, loaded.stamp, "a changed token file is a change");

    let config = operator(|config| config["users"][0]["user"] = json!({ "exec": { "command": "x" } }));
    assert_eq!(load(&config).await.err(), Some(BadSource::Refused("a program to run (exec)")));
    let config = operator(|config| config["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = json!(true));
    assert_eq!(load(&config).await.err(), Some(BadSource::Refused("insecure-skip-tls-verify")));
}

#[tokio::test]
async fn a_tenants_secret_names_no_file_of_ours_and_this_machine_only_if_the_operator_says_so() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("kubeconfig");
    let secret = |loopback: bool, change: fn(&mut Value)| {
        std::fs::write(&path, text(change)).unwrap();
        ClusterConfig::new(
            "c",
            ClusterEndpoint::SecretFile { path: path.clone(), reach: ClusterReach::of_operator(loopback) },
        )
    };
    let loaded = load(&secret(false, |_| {})).await.ok().unwrap();
    std::fs::write(&path, "changed").unwrap();
    assert_ne!(loaded.stamp.now().await, loaded.stamp, "a changed secret is a change");
    let file = secret(true, |config| config["users"][0]["user"] = json!({ "tokenFile": "/etc/passwd" }));
    assert_eq!(load(&file).await.err(), Some(BadSource::Refused("a file (tokenFile)")));
    let here = |config: &mut Value| config["clusters"][0]["cluster"]["server"] = json!("https://127.0.0.1:6443");
    assert_eq!(load(&secret(false, here)).await.err(), Some(BadSource::Refused("this machine as its server")));
    assert!(load(&secret(true, here)).await.is_ok());
}

#[tokio::test]
async fn a_kept_kubeconfig_is_as_untrusted_as_a_file_and_noticed_when_it_changes() {
    let kept = Arc::new(Mutex::new(Ok(SecretText::new(text(|_| {})))));
    let keeper = Arc::clone(&kept);
    let secret = KeptSecret::new("main", move || keeper.lock().unwrap().clone());
    let config = |loopback| ClusterConfig::new("c", kept_as(&[(&secret, ClusterReach::of_operator(loopback))]));
    let put = |now: Result<String, NotAtHand>| *kept.lock().unwrap() = now.map(SecretText::new);

    let loaded = load(&config(false)).await.ok().unwrap();
    assert_eq!(loaded.stamp.now().await, loaded.stamp);
    put(Ok(text(|config| config["users"][0]["user"]["token"] = json!("another sesame"))));
    assert_ne!(loaded.stamp.now().await, loaded.stamp, "a changed secret is a change");
    assert_ne!(load(&config(false)).await.ok().unwrap().fingerprint, loaded.fingerprint);
    assert!(!format!("{:?} {:?}", loaded.stamp, config(false)).contains("sesame"));

    put(Ok(text(|config| config["users"][0]["user"] = json!({ "tokenFile": "/etc/passwd" }))));
    assert_eq!(load(&config(true)).await.err(), Some(BadSource::Refused("a file (tokenFile)")));
    put(Ok(text(|config| config["clusters"][0]["cluster"]["server"] = json!("https://127.0.0.1:6443"))));
    assert_eq!(load(&config(false)).await.err(), Some(BadSource::Refused("this machine as its server")));
    assert!(load(&config(true)).await.is_ok());
    put(Ok("x".repeat(MOST_BYTES + 1)));
    assert_eq!(load(&config(true)).await.err(), Some(BadSource::TooLarge));
    put(Err(NotAtHand::Gone));
    assert_eq!(load(&config(true)).await.err(), Some(BadSource::Gone));
    put(Err(NotAtHand::Unreadable));
    assert_eq!(load(&config(true)).await.err(), Some(BadSource::Unreadable));
}

#[tokio::test]
async fn loopback_is_this_machine() {
    let far = ClusterConfig::new("c", ClusterEndpoint::Loopback("10.0.0.1:80".parse().unwrap()));
    assert!(load(&far).await.is_err());
}

#[tokio::test]
async fn a_cluster_that_was_moved_is_another_place() {
    let place = async |change: fn(&mut Value), adjust: fn(&mut ClusterConfig)| {
        let mut config = ClusterConfig::new("c", ClusterEndpoint::KubeconfigText(SecretText::new(text(change))));
        adjust(&mut config);
        load(&config).await.ok().unwrap().place(&config)
    };
    let before = place(|_| {}, |_| {}).await;
    let same = place(|config| config["users"][0]["user"]["token"] = json!("renewed"), |_| {}).await;
    assert_eq!(before, same, "a renewed credential leads to the same place");
    let authority = |config: &mut Value| {
        let pem = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
        config["clusters"][0]["cluster"]["certificate-authority-data"] =
            json!(base64::Engine::encode(&base64::engine::general_purpose::STANDARD, pem));
    };
    let moved = [
        place(|config| config["clusters"][0]["cluster"]["server"] = json!("https://other.example:6443"), |_| {}).await,
        place(|config| config["clusters"][0]["cluster"]["tls-server-name"] = json!("other.example"), |_| {}).await,
        place(authority, |_| {}).await,
        place(
            |_| {},
            |config| config.impersonate = Some(crate::client::Impersonation { user: "eve".into(), groups: vec![] }),
        )
        .await,
    ];
    for (n, place) in moved.iter().enumerate() {
        assert_ne!(before, *place, "case {n}");
    }
}
