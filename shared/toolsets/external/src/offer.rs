//! What a server offers, as one list: bounded as a whole, named by its digest, and written down for every replica.

use crate::definition::{self, ListedDefinition};
use domain::json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many tools of one server are looked at.
pub(crate) const TOOLS: usize = 200;
/// How large all definitions of one server may be together.
const BYTES: usize = 2 * 1024 * 1024;
/// How many patterns all schemas of one server may hold together: each costs memory once compiled.
const PATTERNS: usize = 200;

/// One list.
#[derive(Debug, Clone)]
pub(crate) struct ToolOffer {
    /// Names this very list.
    pub(crate) digest: String,
    /// The tools, in the order of their names.
    pub(crate) tools: Vec<ListedDefinition>,
    /// How many the server listed beyond those that are looked at.
    pub(crate) beyond: usize,
}

#[derive(Serialize, Deserialize)]
struct StoredOffer {
    v: u8,
    tools: Vec<ToolShape>,
    beyond: usize,
}

#[derive(Serialize, Deserialize)]
struct ToolShape {
    name: String,
    digest: String,
    /// Absent where it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    definition: Option<String>,
    /// Why it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

impl ToolOffer {
    /// Reads what a server listed.
    pub(crate) fn of(mut raw: Vec<Value>) -> ToolOffer {
        let beyond = raw.len().saturating_sub(TOOLS);
        raw.truncate(TOOLS);
        ToolOffer::bounded(definition::read(&raw), beyond)
    }

    fn bounded(mut tools: Vec<ListedDefinition>, beyond: usize) -> ToolOffer {
        let (mut bytes, mut patterns) = (0, 0);
        for listed in &mut tools {
            // What is refused takes no room from the others: one huge definition must not cost its neighbours theirs.
            let Ok(tool) = &listed.tool else { continue };
            bytes += listed.canonical.len();
            patterns += tool.patterns;
            if bytes > BYTES {
                listed.tool = Err(format!("the server's definitions are larger than {BYTES} bytes in all"));
            } else if patterns > PATTERNS {
                listed.tool = Err(format!("the server's schemas hold more than {PATTERNS} patterns in all"));
            }
        }
        let digests: Vec<&str> = tools.iter().map(|listed| listed.digest.as_str()).collect();
        let digest = json::sha256_hex(digests.join("\n").as_bytes());
        ToolOffer { digest, tools, beyond }
    }

    /// The list as it is kept.
    pub(crate) fn to_bytes(&self) -> Option<Vec<u8>> {
        let shape = |listed: &ListedDefinition| {
            // What is refused is kept by its digest and the reason; the rest is bounded already.
            let refused = listed.tool.as_ref().err().cloned();
            let definition = refused.is_none().then(|| listed.canonical.clone());
            ToolShape { name: listed.name.clone(), digest: listed.digest.clone(), definition, refused }
        };
        let tools = self.tools.iter().map(shape).collect();
        serde_json::to_vec(&StoredOffer { v: 1, tools, beyond: self.beyond }).ok()
    }

    /// Reads it back. `None`: it is not one of ours, or not whole.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<ToolOffer> {
        let StoredOffer { v: 1, tools, beyond } = serde_json::from_slice(bytes).ok()? else { return None };
        let (whole, rest): (Vec<ToolShape>, Vec<ToolShape>) = tools.into_iter().partition(|t| t.definition.is_some());
        let raw = whole.iter().filter_map(|t| serde_json::from_str(t.definition.as_deref()?).ok());
        let mut tools = definition::read(&raw.collect::<Vec<Value>>());
        tools.extend(rest.into_iter().map(|ToolShape { name, digest, refused, .. }| ListedDefinition {
            name,
            digest,
            canonical: String::new(),
            tool: Err(refused.unwrap_or_else(|| "its definition was not kept".to_owned())),
        }));
        tools.sort_by(|a, b| (&a.name, &a.digest).cmp(&(&b.name, &b.digest)));
        Some(ToolOffer::bounded(tools, beyond))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str, description: &str) -> Value {
        json!({ "name": name, "description": description, "inputSchema": { "type": "object" }, "icons": ["x"] })
    }

    fn reads_back(offer: &ToolOffer) -> bool {
        let again = ToolOffer::from_bytes(&offer.to_bytes().unwrap()).unwrap();
        let facts = |offer: &ToolOffer| -> Vec<(String, String, Option<String>)> {
            let of = |l: &ListedDefinition| (l.name.clone(), l.digest.clone(), l.tool.as_ref().err().cloned());
            offer.tools.iter().map(of).collect()
        };
        (again.digest.as_str(), facts(&again), again.beyond) == (offer.digest.as_str(), facts(offer), offer.beyond)
    }

    #[test]
    fn a_list_is_the_same_in_any_order_and_reads_back_as_itself() {
        let (a, b) = (tool("a", "first"), tool("b", "second"));
        let offer = ToolOffer::of(vec![a.clone(), b.clone()]);
        assert_eq!(offer.digest, ToolOffer::of(vec![b, a]).digest);
        assert!(reads_back(&offer));
        assert_ne!(offer.digest, ToolOffer::of(vec![tool("a", "first")]).digest);
    }

    #[test]
    fn two_meanings_of_one_name_leave_both_out_and_a_repetition_is_no_second_meaning() {
        let offer = ToolOffer::of(vec![tool("a", "one"), tool("a", "two"), tool("b", "x"), tool("b", "x")]);
        assert_eq!(offer.tools.iter().map(|t| t.tool.is_ok()).collect::<Vec<_>>(), [false, false, true]);
        assert!(reads_back(&offer));
    }

    #[test]
    fn a_list_is_bounded_as_a_whole() {
        let many = ToolOffer::of((0..300).map(|n| tool(&format!("t{n:03}"), "")).collect());
        assert_eq!((many.tools.len(), many.beyond), (200, 100));
        let large = "x".repeat(100_000);
        let heavy = ToolOffer::of((0..30).map(|n| tool(&format!("t{n:03}"), &large)).collect());
        let usable = heavy.tools.iter().filter(|t| t.tool.is_ok()).count();
        assert!((1..30).contains(&usable), "{usable}");
        assert!(heavy.to_bytes().unwrap().len() < BYTES + 64 * 1024 && reads_back(&heavy));
        let pattern = |n: usize| {
            let fields: serde_json::Map<String, Value> =
                (0..15).map(|m| (format!("f{m}"), json!({ "type": "string", "pattern": "^a+$" }))).collect();
            json!({ "name": format!("p{n:03}"), "inputSchema": { "type": "object", "properties": fields } })
        };
        let patterned = ToolOffer::of((0..30).map(pattern).collect());
        assert_eq!(patterned.tools.iter().filter(|t| t.tool.is_ok()).count(), PATTERNS / 15);
    }
}
