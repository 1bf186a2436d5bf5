//! The virtual tools: answered by the service itself, without approval, target or upstream.
//!
//! In the modern era the list cannot grow and there is no transport session, so their modern face takes the session's
//! handle as an argument. They may be called whether they are listed or not.

use crate::entry::{annotations, brief};
use crate::validate::{Arguments, BadSchema};
use crate::{schema, tokens};
use domain::{Effect, Failure, Level};
use serde_json::{Map, Value, json};

/// Which virtual tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ControlTool {
    /// Adds toolsets to the session.
    LoadToolset,
    /// Takes toolsets out of the session.
    UnloadToolset,
    /// Looks through what could be loaded.
    SearchTools,
    /// Calls a tool for hosts that cannot add one.
    CallTool,
    /// Waits for what becomes of a call that a person must approve.
    AwaitRun,
}

impl ControlTool {
    /// All of them, in the order in which they are listed.
    pub const ALL: [ControlTool; 5] = [
        ControlTool::LoadToolset,
        ControlTool::CallTool,
        ControlTool::AwaitRun,
        ControlTool::UnloadToolset,
        ControlTool::SearchTools,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            ControlTool::LoadToolset => "load_toolset",
            ControlTool::UnloadToolset => "unload_toolset",
            ControlTool::SearchTools => "search_tools",
            ControlTool::CallTool => "call_tool",
            ControlTool::AwaitRun => "await_run",
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            ControlTool::LoadToolset => "Load a toolset",
            ControlTool::UnloadToolset => "Unload a toolset",
            ControlTool::SearchTools => "Search for tools",
            ControlTool::CallTool => "Call a loaded tool",
            ControlTool::AwaitRun => "Wait for a run",
        }
    }

    /// What the model reads.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            ControlTool::LoadToolset => {
                "Add toolsets to this session. Returns their schemas. Write tools need a person's approval when called."
            }
            ControlTool::UnloadToolset => "Remove toolsets from this session.",
            ControlTool::SearchTools => "Find tools in all toolsets by words.",
            ControlTool::CallTool => "Call a loaded tool by name, if it is not in your list.",
            ControlTool::AwaitRun => "Wait for the outcome of a call that a person must approve.",
        }
    }

    /// The strict schema; the session's handle is accepted in both eras.
    pub(crate) fn strict(self, sets: &[&str]) -> Value {
        let session = json!({ "type": "string", "maxLength": 64 });
        let name = json!({ "type": "string", "minLength": 1, "maxLength": 64 });
        let one_or_many = json!({ "anyOf": [name, { "type": "array", "items": name, "minItems": 1, "maxItems": 64 }] });
        let (properties, required) = match self {
            ControlTool::LoadToolset => {
                let wanted = json!({ "anyOf": [
                    { "type": "string", "enum": sets },
                    { "type": "array", "items": { "type": "string" } },
                ] });
                // The names are checked by the tool itself, which can say more than an enum.
                let strict = if sets.is_empty() { one_or_many } else { wanted };
                (
                    json!({ "toolset": strict, "include_write_tools": { "type": "boolean" }, "session": session }),
                    "toolset",
                )
            }
            ControlTool::UnloadToolset => (json!({ "toolset": one_or_many, "session": session }), "toolset"),
            ControlTool::SearchTools => (
                json!({
                    "query": { "type": "string", "minLength": 1, "maxLength": 512 },
                    "limit": { "type": "integer", "minimum": 1, "maximum": 20 },
                    "session": session,
                }),
                "query",
            ),
            ControlTool::AwaitRun => (
                json!({
                    "run_id": { "type": "string", "maxLength": 64 },
                    "wait_ms": { "type": "integer", "minimum": 0, "maximum": 55_000 },
                }),
                "run_id",
            ),
            ControlTool::CallTool => {
                (json!({ "tool": name, "arguments": { "type": "object" }, "session": session }), "tool")
            }
        };
        json!({ "type": "object", "properties": properties, "required": [required], "additionalProperties": false })
    }

    pub(crate) fn output(self) -> Option<Value> {
        let object = json!({ "type": "object" });
        let text = json!({ "type": "string" });
        let list = json!({ "type": "array", "items": { "type": "object" } });
        let properties = match self {
            ControlTool::LoadToolset => {
                json!({ "session": text, "loaded": object, "added": list, "tokens": object, "next": text })
            }
            ControlTool::UnloadToolset => {
                json!({ "session": text, "loaded": object, "removed": { "type": "array" }, "tokens": object })
            }
            ControlTool::SearchTools => json!({ "tools": list }),
            ControlTool::AwaitRun => json!({ "run": object, "result": {}, "preview": object }),
            // It returns the inner result as it is.
            ControlTool::CallTool => return None,
        };
        Some(json!({ "type": "object", "properties": properties }))
    }
}

/// One era's view of a virtual tool.
#[derive(Debug)]
pub(crate) struct EraFace {
    pub(crate) mcp: String,
    pub(crate) wire: String,
    pub(crate) brief: String,
    pub(crate) tokens: u32,
}

/// A virtual tool of one catalog, with its bytes ready.
#[derive(Debug)]
pub(crate) struct VirtualEntry {
    pub(crate) which: ControlTool,
    pub(crate) arguments: Arguments,
    pub(crate) legacy: EraFace,
    pub(crate) modern: EraFace,
}

impl VirtualEntry {
    pub(crate) fn new(which: ControlTool, sets: &[&str]) -> Result<VirtualEntry, BadSchema> {
        let modern = which.strict(sets);
        let mut legacy = modern.clone();
        if let Some(Value::Object(fields)) = legacy.get_mut("properties") {
            fields.remove("session");
        }
        let arguments = Arguments::compile(which.name(), &which.strict(&[]))?;
        Ok(VirtualEntry { which, arguments, legacy: face(which, &legacy), modern: face(which, &modern) })
    }

    pub(crate) const fn description(&self) -> &'static str {
        self.which.description()
    }

    pub(crate) fn check(&self, arguments: Map<String, Value>) -> Result<Value, Failure> {
        self.arguments.check(arguments)
    }
}

fn face(which: ControlTool, strict: &Value) -> EraFace {
    let mut wire = String::new();
    schema::write(&schema::lean(strict), &mut wire);
    let brief = brief(which.name(), which.description(), &wire);
    // `call_tool` does whatever the tool does that it calls, so it promises nothing.
    let (most, idempotent, open) = match which {
        ControlTool::CallTool => (Effect::Disrupt, false, true),
        ControlTool::LoadToolset | ControlTool::UnloadToolset | ControlTool::SearchTools | ControlTool::AwaitRun => {
            (Effect::Read, true, false)
        }
    };
    let output = which.output().map(|schema| format!(r#","outputSchema":{schema}"#)).unwrap_or_default();
    let mcp = format!(
        r#"{{"name":"{}","title":"{}","description":{},"inputSchema":{wire}{output},"annotations":{}}}"#,
        which.name(),
        which.title(),
        json!(which.description()),
        annotations(most, idempotent, open),
    );
    let tokens = tokens::count(&brief);
    EraFace { mcp, wire, brief, tokens }
}

/// One toolset asked for, or several.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One name.
    One(String),
    /// Several names.
    Many(Vec<String>),
}

impl OneOrMany {
    /// The names, as a list.
    pub fn names(&self) -> &[String] {
        match self {
            OneOrMany::One(name) => std::slice::from_ref(name),
            OneOrMany::Many(names) => names,
        }
    }
}

/// Arguments of `load_toolset` and `unload_toolset`.
#[derive(Debug, serde::Deserialize)]
pub struct ToolsetArgs {
    /// Which toolsets.
    pub toolset: OneOrMany,
    /// Whether the write list is wanted as well.
    #[serde(default)]
    pub include_write_tools: bool,
}

impl ToolsetArgs {
    /// The level asked for.
    pub fn level(&self) -> Level {
        if self.include_write_tools { Level::Write } else { Level::Read }
    }
}

/// Arguments of `search_tools`.
#[derive(Debug, serde::Deserialize)]
pub struct SearchArgs {
    /// Words to look for.
    pub query: String,
    /// How many hits at most.
    pub limit: Option<usize>,
}

/// Arguments of `call_tool`.
#[derive(Debug, serde::Deserialize)]
pub struct CallArgs {
    /// The tool to call.
    pub tool: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

/// Arguments of `await_run`.
#[derive(Debug, serde::Deserialize)]
pub struct AwaitArgs {
    /// The run.
    pub run_id: String,
    /// How long to wait.
    pub wait_ms: Option<u64>,
}
