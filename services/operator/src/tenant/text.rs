//! The text of a tenant's file, as its resources say it. Pure: the operator and every replica come to the same text.
//!
//! Each value stands on a line of its own, so that the line of a mistake names a path in the resource.

use crate::resources::{
    ConfigMistake, SecretReference, ServerEntrySpec, ServerTransport, TenantResourceSpec, TokenReference,
};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// An external server with its address.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedServer {
    /// The name of its `ServerEntry`.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// The rest of it.
    pub spec: ServerEntrySpec,
}

/// The text of a tenant's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantFileText {
    /// Word for word.
    pub text: String,
    /// Its digest, as the gateway names it.
    pub digest: String,
    /// The path of each line.
    lines: Vec<String>,
}

impl TenantFileText {
    /// A text that is there already; what its lines are about is not known.
    pub fn of_text(text: &str) -> TenantFileText {
        TenantFileText { digest: text_digest(text), text: text.to_owned(), lines: Vec::new() }
    }

    /// What a line is about.
    pub fn path_at(&self, line: u32) -> &str {
        let index = usize::try_from(line).unwrap_or_default().checked_sub(1);
        index.and_then(|index| self.lines.get(index)).map_or("", String::as_str)
    }
}

/// The digest of a text, as the gateway names it.
pub fn text_digest(text: &str) -> String {
    let hex: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// The secret of a server, among the tenant's.
pub fn server_secret(name: &str) -> String {
    format!("server.{name}.token")
}

/// The secrets of a tenant: the name of each, and where it is.
pub fn secrets_of(spec: &TenantResourceSpec, servers: &[ResolvedServer]) -> Vec<(String, TokenReference)> {
    let own =
        spec.secret_refs.iter().map(|SecretReference { name, secret_key_ref }| (name.clone(), secret_key_ref.clone()));
    let of_server = |server: &ResolvedServer| {
        let auth = server.spec.auth.as_ref()?;
        Some((server_secret(&server.name), auth.secret_key_ref.clone()))
    };
    own.chain(servers.iter().filter_map(of_server)).collect()
}

/// The text of a tenant with these servers, in their order.
pub fn render(
    tenant: &str,
    spec: &TenantResourceSpec,
    servers: &[ResolvedServer],
) -> Result<TenantFileText, ConfigMistake> {
    let wrong = |path: String, message: &str| ConfigMistake {
        path,
        line: 0,
        column: 0,
        code: "resource".to_owned(),
        message: message.to_owned(),
    };
    let mut config = spec.config.clone();
    if config.get("tenant").is_some_and(|named| named != tenant) {
        return Err(wrong("tenant".to_owned(), "the tenant is called like the resource and its namespace"));
    }
    if let Some(taken) = spec.secret_refs.iter().find(|secret| secret.name.starts_with("server.")) {
        return Err(wrong(
            format!("secretRefs[{}]", taken.name),
            "names that begin with `server.` are those of ServerEntries",
        ));
    }
    let mut params = match config.remove("params") {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(wrong("params".to_owned(), "it is no mapping")),
    };
    let mut all = match config.remove("servers") {
        None => Vec::new(),
        Some(Value::Array(all)) => all,
        Some(_) => return Err(wrong("servers".to_owned(), "it is no list")),
    };
    for server in servers {
        if server.spec.auth.is_some() {
            let param = format!("server_{}_token", server.name);
            if params.contains_key(&param) {
                return Err(wrong(format!("params.{param}"), "a ServerEntry has this parameter"));
            }
            params.insert(param, json!({ "secret": true, "from": server_secret(&server.name) }));
        }
        all.push(item(server));
    }
    // What is named first reads best; the order of the rest is that of the names.
    let mut entries = vec![("tenant".to_owned(), json!(tenant))];
    config.remove("tenant");
    entries.extend(config);
    if !params.is_empty() {
        entries.push(("params".to_owned(), Value::Object(params)));
    }
    if !all.is_empty() {
        entries.push(("servers".to_owned(), Value::Array(all)));
    }
    let mut writer = LineWriter::default();
    entries.iter().for_each(|(key, value)| writer.entry(0, "", key, value));
    Ok(TenantFileText { digest: text_digest(&writer.text), text: writer.text, lines: writer.lines })
}

/// The part of the file that is one server.
fn item(server: &ResolvedServer) -> Value {
    let ResolvedServer { name, url, spec } = server;
    let mut item = Map::from_iter([("name".to_owned(), json!(name)), ("url".to_owned(), json!(url))]);
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            item.insert(key.to_owned(), value);
        }
    };
    if spec.transport == ServerTransport::Sse {
        set("transport", Some(json!("sse")));
    }
    if let Some(auth) = &spec.auth {
        let (header, scheme) =
            (auth.header.as_deref().unwrap_or("Authorization"), auth.scheme.as_deref().unwrap_or("bearer"));
        set("auth", Some(json!({ "header": header, "scheme": scheme, "secret": "{{ params.token }}" })));
        let value = format!("{{{{ params.server_{name}_token }}}}");
        set("params", Some(json!({ "token": { "secret": true, "value": value } })));
    }
    set("headers", spec.headers.as_ref().map(|headers| json!(headers)));
    set("description", spec.description.as_ref().map(|text| json!(text)));
    set("access", spec.access.clone().map(Value::Object));
    set("accept", spec.accept.as_ref().map(|accept| json!(accept)));
    Value::Object(item)
}

/// Writes YAML, one value to a line. Texts are quoted as in JSON, which YAML reads the same.
#[derive(Default)]
struct LineWriter {
    text: String,
    lines: Vec<String>,
}

impl LineWriter {
    fn line(&mut self, indent: usize, line: &str, path: &str) {
        self.text.push_str(&" ".repeat(indent));
        self.text.push_str(line);
        self.text.push('\n');
        self.lines.push(path.to_owned());
    }

    fn entry(&mut self, indent: usize, parent: &str, key: &str, value: &Value) {
        let path = if parent.is_empty() { key.to_owned() } else { format!("{parent}.{key}") };
        let key = Value::from(key);
        match value {
            Value::Object(map) if !map.is_empty() => {
                self.line(indent, &format!("{key}:"), &path);
                map.iter().for_each(|(key, value)| self.entry(indent + 2, &path, key, value));
            }
            Value::Array(items) if !items.is_empty() => {
                self.line(indent, &format!("{key}:"), &path);
                items
                    .iter()
                    .enumerate()
                    .for_each(|(index, value)| self.item(indent + 2, &format!("{path}[{index}]"), value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                self.line(indent, &format!("{key}: {value}"), &path);
            }
        }
    }

    fn item(&mut self, indent: usize, path: &str, value: &Value) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                self.line(indent, "-", path);
                map.iter().for_each(|(key, value)| self.entry(indent + 2, path, key, value));
            }
            Value::Array(items) if !items.is_empty() => {
                self.line(indent, "-", path);
                items
                    .iter()
                    .enumerate()
                    .for_each(|(index, value)| self.item(indent + 2, &format!("{path}[{index}]"), value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                self.line(indent, &format!("- {value}"), path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(config: Value) -> TenantResourceSpec {
        serde_json::from_value(json!({ "config": config })).unwrap()
    }

    fn server(more: Value) -> ResolvedServer {
        let spec = serde_json::from_value(more).unwrap();
        ResolvedServer { name: "notes".to_owned(), url: "https://notes.example/mcp".to_owned(), spec }
    }

    #[test]
    fn every_value_has_a_line_and_every_line_a_path() {
        let config = json!({ "mode": "write", "clusters": [{ "name": "play", "sandbox": true }], "policy": { "deny": ["a", "b\n\"c\""], "none": [] } });
        let text = render("shop", &spec(config), &[]).unwrap();
        let want = "\"tenant\": \"shop\"\n\"clusters\":\n  -\n    \"name\": \"play\"\n    \"sandbox\": true\n\"mode\": \"write\"\n\
            \"policy\":\n  \"deny\":\n    - \"a\"\n    - \"b\\n\\\"c\\\"\"\n  \"none\": []\n".replace("\"tenant\": \"shop\"\n", "");
        // Keys of a configuration stand in the order in which the API server has them.
        assert_eq!(text.text.lines().next(), Some("\"tenant\": \"shop\""));
        for line in want.lines() {
            assert!(text.text.contains(line), "{line} in {}", text.text);
        }
        let of = |line: &str| {
            let number = text.text.lines().position(|one| one.trim() == line).unwrap() + 1;
            text.path_at(u32::try_from(number).unwrap()).to_owned()
        };
        assert_eq!(of("\"sandbox\": true"), "clusters[0].sandbox");
        assert_eq!(of("- \"a\""), "policy.deny[0]");
        assert_eq!((text.path_at(0), text.path_at(99)), ("", ""));
    }

    #[test]
    fn a_server_brings_its_parameter_and_its_secret() {
        let auth = json!({ "url": "x", "auth": { "secretKeyRef": { "name": "s", "key": "k" } }, "transport": "sse" });
        let servers = [server(auth)];
        let spec = spec(json!({ "params": { "region": { "default": "eu" } }, "servers": [{ "use": "wiki" }] }));
        let text = render("shop", &spec, &servers).unwrap().text;
        for part in
            ["server_notes_token", "server.notes.token", "{{ params.token }}", "\"wiki\"", "\"region\"", "\"sse\""]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(secrets_of(&spec, &servers)[0].0, "server.notes.token");
    }

    #[test]
    fn what_belongs_to_the_operator_cannot_be_taken() {
        let auth = json!({ "url": "x", "auth": { "secretKeyRef": { "name": "s", "key": "k" } } });
        let taken = spec(json!({ "params": { "server_notes_token": { "default": "x" } } }));
        assert_eq!(render("shop", &taken, &[server(auth)]).unwrap_err().path, "params.server_notes_token");
        assert_eq!(render("shop", &spec(json!({ "tenant": "other" })), &[]).unwrap_err().path, "tenant");
        assert!(render("shop", &spec(json!({ "tenant": "shop" })), &[]).is_ok());
        assert_eq!(
            render("shop", &spec(json!({ "servers": 7 })), &[server(json!({ "url": "x" }))]).unwrap_err().path,
            "servers"
        );
        let mut secrets = spec(json!({}));
        secrets.secret_refs = serde_json::from_value(
            json!([{ "name": "server.notes.token", "secretKeyRef": { "name": "s", "key": "k" } }]),
        )
        .unwrap();
        assert_eq!(render("shop", &secrets, &[]).unwrap_err().path, "secretRefs[server.notes.token]");
    }

    #[test]
    fn the_digest_is_that_of_the_gateway() {
        assert_eq!(text_digest(""), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
