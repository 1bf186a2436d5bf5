//! One external server as an operator's entry describes it, and parameters as any entry declares them.
//!
//! Not here: address and `auth` (see `web`), and what tenants give for the parameters (see `servers`).

use crate::server::{HttpTransport, Param, ServerEntry, ServerLimits, ServerReach, TrustedEffects};
use domain::Effect;
use policy::Pattern;
use std::collections::BTreeMap;
use tenancy::{MappingFields, Position, ValueReader, YamlNode, shown};

/// The keys of an operator's entry.
pub(crate) const ENTRY: [&str; 18] = [
    "name",
    "description",
    "url",
    "transport",
    "command",
    "args",
    "env",
    "auth",
    "headers",
    "params",
    "deadline",
    "calls_in_flight",
    "calls_waiting",
    "argument_bytes",
    "result_bytes",
    "refresh",
    "trust_annotations",
    "effects",
];
/// The keys of a declared parameter.
pub(crate) const PARAM: [&str; 3] = ["description", "default", "secret"];
/// How many parameters one server may have.
pub(crate) const MOST_PARAMS: usize = 32;
const MOST_ARGS: usize = 64;
const MOST_EFFECTS: usize = 200;
const ARG_BYTES: usize = 4_096;

/// Reads what an entry says about a server, the operator's as well as a tenant's own.
pub(crate) struct EntryReader<'a, 'r> {
    pub(crate) values: &'a mut ValueReader<'r>,
}

impl EntryReader<'_, '_> {
    /// An operator's entry. `None` if it has no name or no way to be reached; the report says what else is wrong.
    pub(crate) fn entry(&mut self, node: &YamlNode) -> Option<ServerEntry> {
        let fields = self.values.fields(node, "a server", &ENTRY, None)?;
        let name = match fields.find("name") {
            Some(node) => self.values.label(node, "`name`"),
            None => self.values.missing(node, "name", "by which tenants choose it"),
        };
        let description = fields.find("description").and_then(|node| self.values.words(node, "`description`"));
        let params = fields.find("params").map_or_else(BTreeMap::new, |node| self.declared(node, &PARAM));
        let limits = self.server_limits(&fields);
        let annotations =
            fields.find("trust_annotations").is_some_and(|node| self.values.yes(node, "`trust_annotations`").is_some());
        let effects = fields.find("effects").map_or_else(Vec::new, |node| self.effects(node));
        let (reach, auth, headers) = match (fields.find("url"), fields.find("command")) {
            (Some(_), None) => {
                for key in ["args", "env"] {
                    self.goes_with(&fields, key, "command");
                }
                let web = self.web(&fields, &params);
                let transport = self.transport(&fields);
                (web.url.map(|url| ServerReach::Http { url, transport }), web.auth, web.headers)
            }
            (None, Some(command)) => {
                for key in ["auth", "headers"] {
                    self.goes_with(&fields, key, "url");
                }
                if let Some(node) = fields.find("transport") {
                    self.values.choice(node, "`transport` of a `command`", &[("stdio", ())]);
                }
                (self.process(command, &fields), None, BTreeMap::new())
            }
            (None, None) | (Some(_), Some(_)) => {
                let hint = "give exactly one of `url`, `command`".to_owned();
                self.values.report.add(node.at, "bad_source", "it is not clear how the server is reached", Some(hint));
                (None, None, BTreeMap::new())
            }
        };
        let vouch = TrustedEffects { annotations, effects };
        Some(ServerEntry { name: name?, description, reach: reach?, auth, headers, params, limits, vouch, own: false })
    }

    /// How a server with an address is spoken to.
    pub(crate) fn transport(&mut self, fields: &MappingFields<'_>) -> HttpTransport {
        let known = [("http", HttpTransport::Streamable), ("sse", HttpTransport::Sse)];
        let node = fields.find("transport");
        node.and_then(|node| self.values.choice(node, "`transport`", &known)).unwrap_or_default()
    }

    /// Declared parameters. One with a mistake is still known by its name, so that a mistake is told once.
    pub(crate) fn declared(&mut self, node: &YamlNode, keys: &[&str]) -> BTreeMap<String, Param> {
        let mut params = BTreeMap::new();
        for (key, node) in self.values.entries(node, "`params`", MOST_PARAMS) {
            if !self.values.param_name(key.at, &key.text) {
                continue;
            }
            let Some(fields) = self.values.fields(node, &format!("the parameter `{}`", key.text), keys, None) else {
                params.insert(key.text.clone(), Param::default());
                continue;
            };
            let description = fields.find("description").and_then(|node| self.values.words(node, "`description`"));
            let secret = fields.find("secret").is_some_and(|node| self.values.yes(node, "`secret`").is_some());
            let default = fields.find("default").and_then(|node| self.values.plain(node, "`default`"));
            if let Some(at) = fields.find("default").map(|node| node.at).filter(|_| secret) {
                let message = format!("the secret parameter `{}` stands here in plain text", key.text);
                let hint = "leave `default` out: a secret's value is never written into a file".to_owned();
                self.values.report.add(at, "secret_literal", message, Some(hint));
            }
            params.insert(key.text.clone(), Param { description, default: default.filter(|_| !secret), secret });
        }
        params
    }

    fn process(&mut self, command: &YamlNode, fields: &MappingFields<'_>) -> Option<ServerReach> {
        let command = self.argument(command, "`command`");
        let args = fields.find("args").map_or_else(
            || Some(Vec::new()),
            |node| {
                self.values
                    .some(node, "`args`", MOST_ARGS)
                    .iter()
                    .map(|item| self.argument(item, "an argument"))
                    .collect()
            },
        );
        let mut env = BTreeMap::new();
        for (key, node) in fields.find("env").map_or(&[][..], |node| self.values.entries(node, "`env`", MOST_ARGS)) {
            let named = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
            if key.text.is_empty() || !key.text.bytes().all(named) || key.text.starts_with(|c: char| c.is_ascii_digit())
            {
                let message = format!("{} is no name of a variable", shown(&key.text));
                self.values.report.add(key.at, "bad_value", message, None);
            }
            env.extend(self.argument(node, "a variable").map(|value| (key.text.clone(), value)));
        }
        Some(ServerReach::Process { command: command?, args: args?, env })
    }

    /// Text for a process. It takes no parameters: what starts it is the same for every tenant.
    fn argument(&mut self, node: &YamlNode, place: &str) -> Option<String> {
        let text = self.values.text(node, place)?;
        let why = match text {
            "" => Some("is empty"),
            _ if text.len() > ARG_BYTES || text.contains('\0') => Some("is too long or holds a zero byte"),
            _ if text.contains("{{") => Some("takes no parameters: a process is started the same for every tenant"),
            _ => None,
        };
        self.values.accept(node, why.map_or_else(|| Ok(text.to_owned()), |why| Err(format!("{place} {why}"))))
    }

    fn server_limits(&mut self, fields: &MappingFields<'_>) -> ServerLimits {
        let mut limits = ServerLimits::default();
        let spans = [
            ("deadline", &mut limits.deadline, ServerLimits::DEADLINE),
            ("refresh", &mut limits.refresh, ServerLimits::REFRESH),
        ];
        for (key, slot, range) in spans {
            *slot = fields.find(key).and_then(|node| self.values.span(node, key, &range)).unwrap_or(*slot);
        }
        let counts = [
            ("calls_in_flight", &mut limits.in_flight, ServerLimits::IN_FLIGHT),
            ("calls_waiting", &mut limits.waiting, ServerLimits::WAITING),
        ];
        for (key, slot, range) in counts {
            *slot = fields.find(key).and_then(|node| self.values.number(node, key, &range)).unwrap_or(*slot);
        }
        let sizes = [
            ("argument_bytes", &mut limits.argument_bytes, ServerLimits::ARGUMENT_BYTES),
            ("result_bytes", &mut limits.result_bytes, ServerLimits::RESULT_BYTES),
        ];
        for (key, slot, range) in sizes {
            let number = fields.find(key).and_then(|node| self.values.number(node, key, &range));
            *slot = number.and_then(|number| usize::try_from(number).ok()).unwrap_or(*slot);
        }
        limits
    }

    fn effects(&mut self, node: &YamlNode) -> Vec<(Pattern, Effect)> {
        let known = [Effect::Read, Effect::Change, Effect::Disrupt].map(|effect| (effect.as_str(), effect));
        let entries = self.values.entries(node, "`effects`", MOST_EFFECTS);
        let effects = entries.iter().filter_map(|(key, node)| {
            let pattern = self.tool_pattern(key.at, &key.text);
            let effect = self.values.choice(node, "an effect", &known);
            Some((pattern?, effect?))
        });
        effects.collect()
    }

    /// A pattern on the names a server itself has for its tools.
    pub(crate) fn tool_pattern(&mut self, at: Position, text: &str) -> Option<Pattern> {
        let pattern = Pattern::parse(text).ok().filter(Pattern::is_whole);
        if pattern.is_none() {
            let message = format!("{} names no tool of a server", shown(text));
            let hint = "write a name of letters, digits, `_` and `-`, or a beginning and `*`; for `a.b` write `a*`";
            self.values.report.add(at, "bad_value", message, Some(hint.to_owned()));
        }
        pattern
    }

    fn goes_with(&mut self, fields: &MappingFields<'_>, key: &str, other: &str) {
        if let Some(node) = fields.find(key) {
            let message = format!("`{key}` goes with `{other}`, which is not there");
            self.values.report.add(node.at, "bad_source", message, Some("remove it".to_owned()));
        }
    }
}
