//! How an external server is reached over HTTP: its address, its headers, and how it is told who we are.
//!
//! The entry's half of the secret chain is checked here, where its lines are: a marked parameter is used in `auth` and
//! nowhere else, and `auth` uses nothing else.

use super::entry::EntryReader;
use crate::resolve::{self, split_host};
use crate::server::{Auth, Param, Scheme};
use std::collections::BTreeMap;
use tenancy::params::VALUE_BYTES;
use tenancy::values::or_nearest;
use tenancy::{MappingFields, ParameterTemplate, Position, YamlNode, shown};

/// The keys under `auth`.
pub(crate) const AUTH: [&str; 4] = ["header", "scheme", "secret", "client_credentials"];
const MOST_HEADERS: usize = 16;
const URL_BYTES: usize = 2_048;
/// Headers that the connection itself needs, or that would say who we are beside `auth`.
const TAKEN: [&str; 16] = [
    "accept",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// How a server is reached over HTTP, as far as an entry says it.
pub(crate) struct HttpSettings {
    pub(crate) url: Option<ParameterTemplate>,
    pub(crate) auth: Option<Auth>,
    pub(crate) headers: BTreeMap<String, ParameterTemplate>,
}

impl EntryReader<'_, '_> {
    /// Address, `auth` and headers, and whether they use the parameters as those are marked.
    pub(crate) fn web(&mut self, fields: &MappingFields<'_>, params: &BTreeMap<String, Param>) -> HttpSettings {
        let url = fields.find("url").and_then(|node| {
            let url = self.web_address(node, "`url`")?;
            self.in_the_open(node.at, "`url`", &url, params);
            let sample =
                |name: &str| Ok(params.get(name).and_then(|p| p.default.clone()).unwrap_or_else(|| "x".into()));
            let filled = resolve::fill_url(&url, sample);
            self.values.accept(node, filled.map_err(|why| format!("the address cannot be used: {why}")))?;
            Some(url)
        });
        let headers = fields.find("headers").map_or_else(BTreeMap::new, |node| self.headers(node, params));
        let auth = fields.find("auth").and_then(|node| self.auth(node, params));
        if let (Some(auth), Some(node)) = (&auth, fields.find("auth"))
            && headers.contains_key(&auth.header().to_ascii_lowercase())
        {
            let message = format!("the header `{}` stands under `headers` as well", auth.header());
            self.values.report.add(node.at, "repeated_value", message, Some("remove it there".to_owned()));
        }
        HttpSettings { url, auth, headers }
    }

    /// An address whose scheme, host and port are written out, whatever stands behind them.
    pub(super) fn web_address(&mut self, node: &YamlNode, place: &str) -> Option<ParameterTemplate> {
        let url = self.values.template(node, place, URL_BYTES)?;
        let head = url.head();
        let web = head.starts_with("http://") || head.starts_with("https://");
        let why = match split_host(head) {
            Some(_) if !web => Some("it begins with neither https:// nor http://"),
            None => Some("scheme and host must be written out"),
            Some((place, behind)) if behind.is_empty() && url.names().next().is_some() => {
                Some(if place.ends_with(':') { "the port must be written out" } else { "the host must be written out" })
            }
            Some((place, _)) if place.contains('@') => Some("a name or password in an address is refused"),
            Some(_) if url.to_string().contains('#') => Some("what stands behind `#` is never sent"),
            Some(_) if blank_outside(&url) => Some("it holds a blank or a backslash"),
            Some(_) => None,
        };
        let Some(why) = why else { return Some(url) };
        let hint = "parameters may stand only behind the host: `https://HOST/{{ params.NAME }}`".to_owned();
        // What stands before an `@` may be a password, and problems are logged.
        let text = Some(url.to_string()).filter(|text| !text.contains('@'));
        let shown = text.map_or_else(|| "the address".to_owned(), |text| shown(&text));
        self.values.report.add(node.at, "bad_url", format!("{shown} cannot be used: {why}"), Some(hint));
        None
    }

    fn headers(&mut self, node: &YamlNode, params: &BTreeMap<String, Param>) -> BTreeMap<String, ParameterTemplate> {
        let mut headers = BTreeMap::new();
        for (key, node) in self.values.entries(node, "`headers`", MOST_HEADERS) {
            let name = key.text.to_ascii_lowercase();
            if !is_token(&name) || TAKEN.contains(&name.as_str()) || name.starts_with("proxy-") {
                let message = format!("{} cannot be a header here", shown(&key.text));
                let hint = "the connection sets some itself, and who we are stands under `auth`".to_owned();
                self.values.report.add(key.at, "bad_value", message, Some(hint));
                continue;
            }
            let place = format!("the header `{}`", key.text);
            let Some(value) = self.values.template(node, &place, VALUE_BYTES) else { continue };
            self.in_the_open(node.at, &place, &value, params);
            let sample = |name: &str| Ok(params.get(name).and_then(|p| p.default.clone()).unwrap_or_default());
            let filled = resolve::fill_header(&value, sample);
            if self.values.accept(node, filled.map_err(|why| format!("{place}: {why}"))).is_none() {
                continue;
            }
            if headers.insert(name, value).is_some() {
                self.values.twice(node, &place);
            }
        }
        headers
    }

    fn auth(&mut self, node: &YamlNode, params: &BTreeMap<String, Param>) -> Option<Auth> {
        let fields = self.values.fields(node, "`auth`", &AUTH, None)?;
        if let Some(node) = fields.find("client_credentials") {
            for key in ["header", "scheme", "secret"] {
                self.stands_alone(&fields, key);
            }
            return self.client_credentials(node, params);
        }
        let header = match fields.find("header") {
            Some(node) => self.auth_header(node),
            None => Some("Authorization".to_owned()),
        };
        let schemes = [("bearer", Scheme::Bearer), ("raw", Scheme::Raw)];
        let scheme = match fields.find("scheme") {
            Some(node) => self.values.choice(node, "`scheme`", &schemes),
            None => Some(Scheme::default()),
        };
        let Some(secret) = fields.find("secret") else {
            let hint = "add `secret: \"{{ params.NAME }}\"` with a parameter that is marked `secret: true`".to_owned();
            self.values.report.add(node.at, "auth_without_secret", "`auth` has no `secret`", Some(hint));
            return None;
        };
        let secret = self.auth_secret(secret, params);
        Some(Auth::Header { header: header?, scheme: scheme?, secret: secret? })
    }

    fn stands_alone(&mut self, fields: &MappingFields<'_>, key: &str) {
        if let Some(node) = fields.find(key) {
            let message = format!("`{key}` goes without `client_credentials`: the token stands in `Authorization`");
            self.values.report.add(node.at, "bad_source", message, Some("remove one of them".to_owned()));
        }
    }

    fn auth_header(&mut self, node: &YamlNode) -> Option<String> {
        let text = self.values.text(node, "`header`")?;
        let lower = text.to_ascii_lowercase();
        let fits = is_token(&lower) && (lower == "authorization" || !TAKEN.contains(&lower.as_str()));
        self.values.accept(
            node,
            fits.then(|| text.to_owned()).ok_or_else(|| format!("{} cannot be a header here", shown(text))),
        )
    }

    /// The parameter that `auth` takes: one reference, alone, to one that is marked.
    pub(super) fn auth_secret(&mut self, node: &YamlNode, params: &BTreeMap<String, Param>) -> Option<String> {
        let template = self.values.template(node, "`secret`", VALUE_BYTES)?;
        let hint = "write `\"{{ params.NAME }}\"` with a parameter that is marked `secret: true`".to_owned();
        let Some(name) = template.only() else {
            self.values.report.add(
                node.at,
                "secret_literal",
                "`secret` must be one reference and nothing else",
                Some(hint),
            );
            return None;
        };
        match params.get(name) {
            Some(param) if param.secret => Some(name.to_owned()),
            Some(_) => {
                let message = format!("`auth` uses the parameter `{name}`, which is not marked as a secret");
                let hint = format!("add `secret: true` to the parameter `{name}`");
                self.values.report.add(node.at, "auth_not_secret", message, Some(hint));
                None
            }
            None => {
                self.unknown_param(node.at, name, params);
                None
            }
        }
    }

    /// Whether a text that others can see refers only to what they may see.
    pub(super) fn in_the_open(
        &mut self,
        at: Position,
        place: &str,
        text: &ParameterTemplate,
        params: &BTreeMap<String, Param>,
    ) {
        for name in text.names() {
            match params.get(name) {
                Some(param) if param.secret => {
                    let message = format!("the secret parameter `{name}` is used in {place}");
                    let hint =
                        "a secret belongs into `auth` and nowhere else; addresses and headers are logged".to_owned();
                    self.values.report.add(at, "secret_outside_auth", message, Some(hint));
                }
                Some(_) => {}
                None => self.unknown_param(at, name, params),
            }
        }
    }

    /// Reports a reference to, or a value for, a parameter that is not declared.
    pub(crate) fn unknown_param(&mut self, at: Position, name: &str, params: &BTreeMap<String, Param>) {
        let known: Vec<&str> = params.keys().map(String::as_str).collect();
        let hint = or_nearest(name, &known, "declared parameters");
        self.values.report.add(at, "unknown_param", format!("there is no parameter {}", shown(name)), Some(hint));
    }
}

/// Whether the address holds what no address holds, outside its references.
fn blank_outside(url: &ParameterTemplate) -> bool {
    let filled = url.fill(|_| Ok::<_, ()>("x".to_owned())).unwrap_or_default();
    filled.chars().any(|c| c.is_whitespace() || c == '\\' || c == '{' || c == '}')
}

/// Whether a text in small letters can name a header.
fn is_token(text: &str) -> bool {
    (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}
