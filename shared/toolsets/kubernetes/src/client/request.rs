//! One request to a cluster, its address built from judged parts.

use crate::client::kinds::Kind;
use crate::client::place::ResourceRef;
use http::Method;

/// What is sent, and how it is told about.
#[derive(Debug, Clone)]
pub(in crate::client) struct ClusterRequest {
    pub(in crate::client) method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    pub(in crate::client) accept: &'static str,
    pub(in crate::client) content_type: Option<&'static str>,
    pub(in crate::client) body: Vec<u8>,
    /// The template of the address, for telemetry: never the address itself.
    pub(in crate::client) route: &'static str,
    /// What is done to what, for a refusal.
    pub(in crate::client) about: RequestSubject,
}

/// What a request is about.
#[derive(Debug, Clone, Default)]
pub(in crate::client) struct RequestSubject {
    pub(in crate::client) verb: &'static str,
    pub(in crate::client) resource: String,
    pub(in crate::client) namespace: Option<String>,
    pub(in crate::client) name: Option<String>,
}

pub(in crate::client) const JSON: &str = "application/json";

impl ClusterRequest {
    /// A request to a fixed address.
    pub(in crate::client) fn fixed(method: Method, path: impl Into<String>, route: &'static str) -> ClusterRequest {
        let path = path.into();
        let about = RequestSubject { verb: "get", resource: path.clone(), ..RequestSubject::default() };
        ClusterRequest {
            method,
            path,
            query: Vec::new(),
            accept: JSON,
            content_type: None,
            body: Vec::new(),
            route,
            about,
        }
    }

    /// A request to all objects of a kind, everywhere or in one namespace.
    pub(in crate::client) fn collection(
        method: Method,
        verb: &'static str,
        kind: &Kind,
        namespace: Option<&str>,
    ) -> ClusterRequest {
        let route = match (kind.group().is_empty(), namespace.is_some()) {
            (true, true) => "/api/{version}/namespaces/{namespace}/{resource}",
            (true, false) => "/api/{version}/{resource}",
            (false, true) => "/apis/{group}/{version}/namespaces/{namespace}/{resource}",
            (false, false) => "/apis/{group}/{version}/{resource}",
        };
        let mut request = ClusterRequest::fixed(method, address(kind, namespace), route);
        request.about =
            RequestSubject { verb, resource: kind.full_name(), namespace: namespace.map(str::to_owned), name: None };
        request
    }

    /// A request to one object.
    pub(in crate::client) fn object(method: Method, verb: &'static str, target: &ResourceRef) -> ClusterRequest {
        let route = match (target.kind.group().is_empty(), target.namespace.is_some()) {
            (true, true) => "/api/{version}/namespaces/{namespace}/{resource}/{name}",
            (true, false) => "/api/{version}/{resource}/{name}",
            (false, true) => "/apis/{group}/{version}/namespaces/{namespace}/{resource}/{name}",
            (false, false) => "/apis/{group}/{version}/{resource}/{name}",
        };
        let mut path = address(&target.kind, target.namespace());
        push(&mut path, target.name());
        let mut request = ClusterRequest::fixed(method, path, route);
        request.about = RequestSubject {
            verb,
            resource: target.kind.full_name(),
            namespace: target.namespace.clone(),
            name: Some(target.name.clone()),
        };
        request
    }

    /// A request to a subresource of one object. The name is ours, never a caller's.
    pub(in crate::client) fn beneath(
        method: Method,
        verb: &'static str,
        target: &ResourceRef,
        (subresource, route): (&'static str, &'static str),
    ) -> ClusterRequest {
        let mut request = ClusterRequest::object(method, verb, target);
        push(&mut request.path, subresource);
        request.route = route;
        request.about.resource = format!("{}/{subresource}", request.about.resource);
        request
    }

    pub(in crate::client) fn query(mut self, key: &'static str, value: impl Into<String>) -> ClusterRequest {
        self.query.push((key, value.into()));
        self
    }

    pub(in crate::client) fn maybe(self, key: &'static str, value: Option<impl ToString>) -> ClusterRequest {
        match value {
            Some(value) => self.query(key, value.to_string()),
            None => self,
        }
    }

    pub(in crate::client) fn accept(mut self, accept: &'static str) -> ClusterRequest {
        self.accept = accept;
        self
    }

    pub(in crate::client) fn body(mut self, content_type: &'static str, body: Vec<u8>) -> ClusterRequest {
        self.content_type = Some(content_type);
        self.body = body;
        self
    }

    /// Adds a path that goes through to an application. It was checked by [`crate::client::exec`].
    pub(in crate::client) fn onward(mut self, path: &str) -> ClusterRequest {
        self.path.push_str(path);
        self
    }

    pub(in crate::client) fn uri(&self) -> String {
        let mut uri = self.path.clone();
        for (n, (key, value)) in self.query.iter().enumerate() {
            uri.push(if n == 0 && !self.path.contains('?') { '?' } else { '&' });
            uri.push_str(key);
            uri.push('=');
            encode(&mut uri, value);
        }
        uri
    }

    pub(in crate::client) fn is_get(&self) -> bool {
        self.method == Method::GET
    }
}

fn address(kind: &Kind, namespace: Option<&str>) -> String {
    let mut path = String::new();
    match kind.group() {
        "" => path.push_str("/api"),
        group => {
            path.push_str("/apis");
            push(&mut path, group);
        }
    }
    push(&mut path, kind.version());
    if let Some(namespace) = namespace {
        path.push_str("/namespaces");
        push(&mut path, namespace);
    }
    push(&mut path, kind.plural());
    path
}

/// Adds one segment. It was judged before; encoding it again means that a forgotten check still cannot bend the path.
fn push(path: &mut String, segment: &str) {
    path.push('/');
    encode(path, segment);
}

fn encode(out: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b':') {
            out.push(char::from(byte));
        } else {
            const HEX: [u8; 16] = *b"0123456789ABCDEF";
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}
