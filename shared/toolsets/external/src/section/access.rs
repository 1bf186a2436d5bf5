//! Which tools of an external server may be used, and which of them wait for a person.

use super::{ACCESS, ALLOWED, ServersCheck};
use crate::server::{our_names, tool_prefix};
use domain::run::OnReject;
use policy::{Gate, Pattern};
use tenancy::{YamlNode, YamlValue};

/// How many tools one list may name.
const MOST: usize = 200;

impl ServersCheck<'_, '_> {
    /// The list of what is allowed. Gates that follow from it are told to the reader, and noted by the server's own names.
    pub(super) fn access(&mut self, node: &YamlNode, id: &str, own: &mut Vec<Gate>) -> Option<Vec<Pattern>> {
        let list = self.reader.values.fields(node, "`access`", &ACCESS, None)?.find("allowlist")?;
        let items = self.reader.values.some(list, "`allowlist`", MOST);
        if items.is_empty() && matches!(list.value, YamlValue::List(_)) {
            let hint = "name tools, or leave the whole server out".to_owned();
            self.reader.values.report.add(list.at, "bad_value", "of this server nothing could be used", Some(hint));
        }
        let mut allow = Vec::new();
        for item in items {
            let Some((pattern, on_reject)) = self.allowed(item) else { continue };
            let gates = on_reject.into_iter().flat_map(|on_reject| gates_of(id, &pattern, on_reject));
            gates.for_each(|gate| self.reader.add_gate(gate));
            own.extend(on_reject.map(|on_reject| Gate { pattern: pattern.clone(), on_reject }));
            allow.push(pattern);
        }
        Some(allow)
    }

    /// A tool's name or a beginning; as a mapping, also what a no to it means.
    fn allowed(&mut self, node: &YamlNode) -> Option<(Pattern, Option<OnReject>)> {
        if !matches!(node.value, YamlValue::Map(_)) {
            let text = self.reader.values.text(node, "a tool")?;
            return self.entry().tool_pattern(node.at, text).map(|pattern| (pattern, None));
        }
        let fields = self.reader.values.fields(node, "a tool", &ALLOWED, None)?;
        let asks = match fields.find("require_approval") {
            None => Some(None),
            Some(node) => {
                self.reader.values.fields(node, "`require_approval`", &["on_reject"], None).and_then(|fields| {
                    match fields.find("on_reject") {
                        None => Some(Some(OnReject::Continue)),
                        Some(node) => self.reader.values.on_reject(node).map(Some),
                    }
                })
            }
        };
        let Some(name) = fields.find("name") else {
            return self.reader.values.missing(node, "name", "the tool it is about");
        };
        let text = self.reader.values.text(name, "`name`")?;
        let pattern = self.entry().tool_pattern(name.at, text);
        Some((pattern?, asks?))
    }
}

/// The rules that ask for these tools, under every name they may be given here.
pub(crate) fn gates_of(id: &str, pattern: &Pattern, on_reject: OnReject) -> Vec<Gate> {
    let text = pattern.to_string();
    let names = match text.strip_suffix('*') {
        // What is cut keeps at least this much of its beginning, so a longer one could miss it.
        Some(stem) => vec![format!("{}*", cut(&format!("{}{stem}", tool_prefix(id))))],
        None => our_names(id, &text),
    };
    let gates = names.iter().filter_map(|name| Pattern::parse(name).ok());
    gates.map(|pattern| Gate { pattern, on_reject }).collect()
}

fn cut(name: &str) -> &str {
    &name[..name.len().min(crate::server::KEPT)]
}
