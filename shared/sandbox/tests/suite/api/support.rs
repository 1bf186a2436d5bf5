//! What the tests share: a client, plain requests, and waiting for something to become true.

use std::fmt::Debug;
use std::time::Duration;

use http::{Method, Request};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::{Api, Client, Config};
use sandbox::{Sandbox, Seed};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A sandbox with a client for it.
pub(crate) struct Cluster {
    pub(crate) sandbox: Sandbox,
    pub(crate) client: Client,
}

/// How long a condition may take to come true before the test fails.
const PATIENCE: Duration = Duration::from_secs(30);

impl Cluster {
    /// An empty cluster with the namespace `shop`.
    pub(crate) async fn empty() -> Cluster {
        let cluster = Cluster::of(Seed::empty()).await;
        let shop = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } });
        cluster.create("/api/v1/namespaces", &shop).await;
        cluster
    }

    pub(crate) async fn of(seed: Seed) -> Cluster {
        let sandbox = Sandbox::start(seed).await.expect("a loopback port is free");
        let client = client(&sandbox, &sandbox.token());
        Cluster { sandbox, client }
    }

    pub(crate) fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// A plain request; gives the status code and the body as JSON.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: Option<(&str, &Value)>) -> (u16, Value) {
        let (code, text) = self.ask_text(method, path, body, &[]).await;
        let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        (code, value)
    }

    pub(crate) async fn ask_text(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
        headers: &[(&str, &str)],
    ) -> (u16, String) {
        let (code, _, text) = self.ask_whole(method, path, body, headers).await;
        (code, text)
    }

    /// A plain request with everything that comes back.
    pub(crate) async fn ask_whole(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
        headers: &[(&str, &str)],
    ) -> (u16, http::HeaderMap, String) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some((content_type, _)) = body {
            request = request.header("content-type", content_type);
        }
        let bytes = body.map(|(_, value)| value.to_string().into_bytes()).unwrap_or_default();
        let reply = self.client.send(request.body(bytes.into()).unwrap()).await.unwrap();
        let (parts, body) = reply.into_parts();
        let bytes = http_body_util::BodyExt::collect(body).await.unwrap().to_bytes();
        (parts.status.as_u16(), parts.headers, String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (code, value) = self.ask(Method::GET, path, None).await;
        assert_eq!(code, 200, "{path}: {value}");
        value
    }

    pub(crate) async fn create(&self, path: &str, object: &Value) -> Value {
        let (code, value) = self.ask(Method::POST, path, Some(("application/json", object))).await;
        assert_eq!(code, 201, "{path}: {value}");
        value
    }

    pub(crate) async fn patch(&self, path: &str, kind: &str, change: &Value) -> (u16, Value) {
        let content_type = match kind {
            "apply" => "application/apply-patch+yaml".to_owned(),
            "json" => "application/json-patch+json".to_owned(),
            kind => format!("application/{kind}-patch+json"),
        };
        self.ask(Method::PATCH, path, Some((&content_type, change))).await
    }

    /// Creates a deployment in `shop` and waits until all of it is available.
    pub(crate) async fn deployed(&self, name: &str, replicas: i32) -> Deployment {
        let made: Deployment = serde_json::from_value(deployment(name, "app:1", replicas)).unwrap();
        let api = self.api::<Deployment>("shop");
        api.create(&PostParams::default(), &made).await.unwrap();
        self.until(&api, name, |one: &Deployment| {
            one.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0) == replicas
        })
        .await
    }

    /// Asks for an object until it is as wanted.
    pub(crate) async fn until<K>(&self, api: &Api<K>, name: &str, wanted: impl Fn(&K) -> bool) -> K
    where
        K: Clone + DeserializeOwned + Debug,
    {
        let mut last = None;
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                last = api.get_opt(name).await.unwrap();
                if let Some(object) = last.as_ref().filter(|object| wanted(object)) {
                    return object.clone();
                }
                tokio::time::sleep(Duration::from_millis(25)).await;
            }
        });
        match found.await {
            Ok(object) => object,
            Err(_) => panic!("{name} did not become as wanted: {last:?}"),
        }
    }

    /// Asks a path until the answer is as wanted.
    pub(crate) async fn until_path(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                last = self.ask(Method::GET, path, None).await.1;
                if wanted(&last) {
                    return last.clone();
                }
                tokio::time::sleep(Duration::from_millis(25)).await;
            }
        });
        let found = found.await;
        found.unwrap_or_else(|_| panic!("{path} did not become as wanted: {last:#}"))
    }

    pub(crate) async fn namespaces(&self) -> Vec<String> {
        let all = Api::<Namespace>::all(self.client.clone()).list(&Default::default()).await.unwrap();
        all.items.into_iter().filter_map(|one| one.metadata.name).collect()
    }
}

/// A client with the token, through the kubeconfig a person would use.
pub(crate) fn client(sandbox: &Sandbox, token: &str) -> Client {
    let mut config = Config::new(sandbox.url().parse().unwrap());
    config.auth_info.token = Some(token.to_owned().into());
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

pub(crate) fn deployment(name: &str, image: &str, replicas: i32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name, "namespace": "shop" },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "app", "image": image, "ports": [{ "containerPort": 8080, "name": "http" }] }] },
            },
        },
    })
}

pub(crate) fn pod(name: &str, image: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "shop", "labels": { "app": name } },
        "spec": { "containers": [{ "name": "app", "image": image }] },
    })
}

pub(crate) fn config_map(name: &str, data: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "shop" }, "data": data })
}

pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/shop/deployments";
pub(crate) const PODS: &str = "/api/v1/namespaces/shop/pods";
pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/shop/configmaps";
