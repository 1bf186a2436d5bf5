//! An entry: one tool with its type erased, its schemas compiled and its bytes ready for the wire.

use crate::tool::list_of;
use crate::tool::{Boxed, Drawn, Probe};
use crate::validate::{Arguments, BadSchema};
use crate::{Progress, Tool, ToolFuture, schema, tokens};
use domain::{Code, Content, Effect, Failure, Level, Output, ToolName, ToolsetName, json};
use policy::Permit;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Where a tool comes from. Whoever calls it cannot tell; the service trusts the second with nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// Part of this service.
    BuiltIn,
    /// An external MCP server.
    Server {
        /// The server's id in the tenant.
        id: String,
        /// What the server itself calls the tool.
        tool: String,
    },
}

/// What is known of a tool besides how to run it, whichever source it comes from.
#[derive(Debug, Clone)]
pub struct Definition {
    /// Its name.
    pub name: ToolName,
    /// The toolset it is loaded with.
    pub toolset: ToolsetName,
    /// For people.
    pub title: String,
    /// For the model.
    pub description: String,
    /// For people who choose tools: when to give an agent this one, and what to mind. No model ever reads it.
    pub hint: Option<String>,
    /// Where it comes from.
    pub source: Source,
    /// The highest effect any arguments can have.
    pub most: Effect,
    /// Whether it may be repeated after a crash.
    pub idempotent: bool,
    /// Whether it reaches beyond this service.
    pub open_world: bool,
    /// How long one call may take.
    pub deadline: Duration,
    /// Whether its results are text that somebody outside wrote.
    pub outside_text: bool,
    /// How long people may take to review its runs, where those are not urgent.
    pub reviewed: Option<Duration>,
    /// The schema that validates calls.
    pub strict: Value,
    /// The schema the model reads, as JSON text.
    pub wire: String,
    /// The schema of its structured result, if it has one.
    pub output: Option<Value>,
    /// A capability the client must have declared (modern era), or the call is refused before it is looked at.
    pub needs_client: Option<&'static str>,
}

/// A call whose arguments have been understood.
pub struct Parsed {
    /// What these arguments would do.
    pub effect: Effect,
    /// What they are about.
    pub about: Option<String>,
    /// The arguments in their one form, as JSON text.
    pub arguments: String,
    /// What is left to do once a permit is there.
    pub work: Box<dyn Work>,
}

/// One understood call, its type erased.
pub trait Work: Send + Sync {
    /// Does it.
    fn run<'a>(self: Box<Self>, permit: &'a Permit, progress: &'a Progress) -> ToolFuture<'a>;

    /// Says what it would do.
    fn preview<'a>(&'a self, _: &'a Permit) -> Boxed<'a, Result<Option<Drawn>, Failure>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Looks whether it has happened.
    fn probe<'a>(&'a self, _: &'a Permit) -> Boxed<'a, Probe> {
        Box::pin(std::future::ready(Probe::Unknown))
    }
}

/// Work that is one closure: for tools that have nothing to preview and nothing to probe.
pub fn work<F>(closure: F) -> Box<dyn Work>
where
    F: for<'a> FnOnce(&'a Permit, &'a Progress) -> ToolFuture<'a> + Send + Sync + 'static,
{
    struct Closure<F>(F);
    impl<F> Work for Closure<F>
    where
        F: for<'a> FnOnce(&'a Permit, &'a Progress) -> ToolFuture<'a> + Send + Sync,
    {
        fn run<'a>(self: Box<Self>, permit: &'a Permit, progress: &'a Progress) -> ToolFuture<'a> {
            (self.0)(permit, progress)
        }
    }
    Box::new(Closure(closure))
}

/// Effect, subject and work of one call, or why its arguments are not understood.
pub type Understood = Result<(Effect, Option<String>, Box<dyn Work>), Failure>;

/// What a tool can do once its type is erased: understand arguments that fit its strict schema.
pub trait Kit: Send + Sync {
    /// Effect, subject and work for checked arguments.
    fn understand(self: Arc<Self>, arguments: Value) -> Understood;
}

/// A built-in tool with the arguments of one call.
struct Typed<T: Tool> {
    tool: Arc<T>,
    args: T::Args,
}

impl<T: Tool> Work for Typed<T> {
    fn run<'a>(self: Box<Self>, permit: &'a Permit, progress: &'a Progress) -> ToolFuture<'a> {
        Box::pin(async move {
            let Typed { tool, args } = *self;
            let output = tool.run(permit, args, progress).await?;
            let tainting = T::taints(&output);
            let text = serde_json::to_string(&output).map_err(|_| {
                Failure::new(Code::Internal, format!("the result of {} cannot be written", T::SPEC.name))
            })?;
            let content = T::PREFACE.map(|line| Content::Text(format!("{line}\n{text}"))).into_iter().collect();
            Ok(Output { tainting, content, ..Output::structured(text) })
        })
    }

    fn preview<'a>(&'a self, permit: &'a Permit) -> Boxed<'a, Result<Option<Drawn>, Failure>> {
        Box::pin(self.tool.preview(permit, &self.args))
    }

    fn probe<'a>(&'a self, permit: &'a Permit) -> Boxed<'a, Probe> {
        Box::pin(self.tool.probe(permit, &self.args))
    }
}

impl<T: Tool> Kit for T {
    fn understand(self: Arc<Self>, arguments: Value) -> Understood {
        let args: T::Args = serde_json::from_value(arguments).map_err(|error| {
            // Only grammars that a schema cannot say are left to fail here.
            Failure::new(Code::InvalidArgument, error.to_string()).next("correct the arguments and call again")
        })?;
        let (effect, about) = (T::effect(&args), T::about(&args));
        Ok((effect, about, Box::new(Typed { tool: self, args })))
    }
}

/// One tool of a catalog.
pub struct Entry {
    definition: Definition,
    arguments: Arc<Arguments>,
    kit: Arc<dyn Kit>,
    mcp: String,
    brief: String,
    tokens: u32,
    schema_digest: String,
}

impl Entry {
    /// A built-in tool.
    pub fn of<T: Tool>(tool: T) -> Result<Entry, BadSchema> {
        let spec = T::SPEC;
        let bad = |why: String| BadSchema { tool: spec.name.to_owned(), why };
        let strict = schema::strict::<T::Args>();
        let mut wire = String::new();
        schema::write(&schema::lean(&strict), &mut wire);
        let definition = Definition {
            name: ToolName::parse(spec.name).map_err(|e| bad(e.to_string()))?,
            toolset: ToolsetName::parse(spec.toolset).map_err(|e| bad(e.to_string()))?,
            title: spec.title.to_owned(),
            description: spec.description.to_owned(),
            hint: (!spec.hint.is_empty()).then(|| spec.hint.to_owned()),
            source: Source::BuiltIn,
            most: spec.most,
            idempotent: spec.idempotent,
            open_world: spec.open_world,
            deadline: spec.deadline,
            outside_text: spec.outside_text,
            reviewed: spec.reviewed,
            strict,
            wire,
            output: Some(schema::output::<T::Output>(spec.most > Effect::Read)),
            needs_client: None,
        };
        Entry::new(definition, Arc::new(tool))
    }

    /// A tool whose definition came from somewhere else. A schema is compiled or refused, never fetched for.
    pub fn new(mut definition: Definition, kit: Arc<dyn Kit>) -> Result<Entry, BadSchema> {
        if definition.most > Effect::Read {
            let Definition { source, output, .. } = &mut definition;
            // The author of a built-in tool has said so already; whoever wrote this one knows of no runs.
            output.iter_mut().filter(|_| *source != Source::BuiltIn).for_each(schema::allow_run_in_any);
        }
        let arguments = Arc::new(Arguments::compile(definition.name.as_str(), &definition.strict)?);
        let schema_digest = json::sha256_hex(json::canonical(&definition.strict).as_bytes());
        Ok(Entry::written(definition, arguments, kit, schema_digest))
    }

    /// Writes the texts of a tool whose schema is compiled already.
    fn written(definition: Definition, arguments: Arc<Arguments>, kit: Arc<dyn Kit>, schema_digest: String) -> Entry {
        let brief = brief(definition.name.as_str(), &definition.description, &definition.wire);
        let (mcp, tokens) = (full(&definition), tokens::count(&brief));
        Entry { definition, arguments, kit, mcp, brief, tokens, schema_digest }
    }

    /// The same tool, listed otherwise: what is understood, and so what was compiled, stays.
    fn relisted(&self, definition: Definition) -> Entry {
        Entry::written(definition, Arc::clone(&self.arguments), Arc::clone(&self.kit), self.schema_digest.clone())
    }

    /// The same tool where a person must be asked: its result may be a run, so nothing in it is required.
    pub fn gated(&self) -> Entry {
        let mut definition = self.definition.clone();
        match (&definition.source, &mut definition.output) {
            (Source::BuiltIn, Some(output)) => schema::allow_run(output),
            (Source::Server { .. }, Some(output)) => schema::allow_run_in_any(output),
            (Source::BuiltIn | Source::Server { .. }, None) => {}
        }
        self.relisted(definition)
    }

    /// The same tool as a model reads it where one optional argument has nothing to choose from. A call may still
    /// carry the argument: only what is listed changes, not what is understood.
    pub fn without_argument(&self, name: &str) -> Entry {
        let mut definition = self.definition.clone();
        let mut listed = definition.strict.clone();
        if let Some(Value::Object(fields)) = listed.get_mut("properties") {
            fields.remove(name);
        }
        definition.wire.clear();
        schema::write(&schema::lean(&listed), &mut definition.wire);
        self.relisted(definition)
    }

    /// Everything known of it.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Its name.
    pub fn name(&self) -> &ToolName {
        &self.definition.name
    }

    /// The list it is in.
    pub fn list(&self) -> Level {
        list_of(self.definition.most)
    }

    /// The tool as MCP lists it, as JSON text.
    pub fn mcp(&self) -> &str {
        &self.mcp
    }

    /// Name, description and input schema alone: what a model reads and what is counted.
    pub fn brief(&self) -> &str {
        &self.brief
    }

    /// The tool as `load_toolset` issues it: what a model reads, and what a host may want to know before calling.
    pub fn issue(&self) -> String {
        let Definition { most, idempotent, open_world, .. } = &self.definition;
        let body = self.brief.strip_suffix('}').unwrap_or(&self.brief);
        format!(r#"{body},"annotations":{}}}"#, annotations(*most, *idempotent, *open_world))
    }

    /// Names the schema that arguments are checked against.
    pub fn schema_digest(&self) -> &str {
        &self.schema_digest
    }

    /// What it costs a model to read.
    pub fn tokens(&self) -> u32 {
        self.tokens
    }

    /// Checks and understands arguments.
    pub fn parse(&self, arguments: Map<String, Value>) -> Result<Parsed, Failure> {
        let checked = self.arguments.check(arguments)?;
        let text = json::canonical(&checked);
        let (effect, about, work) = Arc::clone(&self.kit).understand(checked)?;
        if effect > self.definition.most {
            // The list it is in, and so what was granted, rests on the declaration: a tool that does more is a fault.
            return Err(Failure::new(Code::Internal, format!("{} would do more than it declares", self.name())));
        }
        Ok(Parsed { effect, about, arguments: text, work })
    }
}

/// `{name, description, inputSchema}` as compact JSON.
pub(crate) fn brief(name: &str, description: &str, wire: &str) -> String {
    format!(r#"{{"name":{},"description":{},"inputSchema":{wire}}}"#, json!(name), json!(description))
}

fn full(definition: &Definition) -> String {
    let Definition { name, title, description, wire, most, idempotent, open_world, output, .. } = definition;
    let annotations = annotations(*most, *idempotent, *open_world);
    let output = output.as_ref().map(|schema| format!(r#","outputSchema":{schema}"#)).unwrap_or_default();
    format!(
        r#"{{"name":{},"title":{},"description":{},"inputSchema":{wire}{output},"annotations":{annotations}}}"#,
        json!(name.as_str()),
        json!(title),
        json!(description),
    )
}

/// All four hints, always: what a client assumes of an absent one is the dangerous value.
pub(crate) fn annotations(most: Effect, idempotent: bool, open_world: bool) -> Value {
    json!({
        "readOnlyHint": most == Effect::Read,
        "destructiveHint": most == Effect::Disrupt,
        "idempotentHint": idempotent,
        "openWorldHint": open_world,
    })
}
