//! An entry: one tool with its type erased, its schemas compiled and its bytes ready for the wire.

use crate::shared::{SharedByDigest, bits};
use crate::tool::list_of;
use crate::tool::{BoxedFuture, ProbeResult, ToolPreview};
use crate::validate::{Arguments, BadSchema};
use crate::{Progress, Tool, ToolFuture, schema, tokens};
use domain::{Code, Content, Effect, Failure, Level, ToolName, ToolOutput, ToolsetName, json};
use policy::Permit;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::any::TypeId;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Where a tool comes from. Whoever calls it cannot tell; the service trusts the second with nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ToolSource {
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
pub struct ToolDefinition {
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
    pub source: ToolSource,
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
    /// Whether its calls spend their time waiting, and therefore hold no call slot.
    pub waits: bool,
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
pub struct ParsedCall {
    /// What these arguments would do.
    pub effect: Effect,
    /// What they are about.
    pub about: Option<String>,
    /// The arguments in their one form, as JSON text.
    pub arguments: String,
    /// The target the arguments name, where the tool has several to choose from and they name one.
    pub target: Option<String>,
    /// What is left to do once a permit is there.
    pub work: Box<dyn ErasedCall>,
}

/// One understood call, its type erased.
pub trait ErasedCall: Send + Sync {
    /// Does it.
    fn run<'a>(self: Box<Self>, permit: &'a Permit, progress: &'a Progress) -> ToolFuture<'a>;

    /// Says what it would do.
    fn preview<'a>(&'a self, _: &'a Permit) -> BoxedFuture<'a, Result<Option<ToolPreview>, Failure>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Looks whether it has happened.
    fn probe<'a>(&'a self, _: &'a Permit) -> BoxedFuture<'a, ProbeResult> {
        Box::pin(std::future::ready(ProbeResult::Unknown))
    }

    /// Removes what a run has left at the target and nobody needs once its ending is recorded. Called after that, and not
    /// at all if the replica dies in between.
    fn tidy<'a>(&'a self, _: &'a Permit) -> BoxedFuture<'a, Result<(), Failure>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Work that is one closure: for tools that have nothing to preview and nothing to probe.
pub fn work<F>(closure: F) -> Box<dyn ErasedCall>
where
    F: for<'a> FnOnce(&'a Permit, &'a Progress) -> ToolFuture<'a> + Send + Sync + 'static,
{
    struct ClosureCall<F>(F);
    impl<F> ErasedCall for ClosureCall<F>
    where
        F: for<'a> FnOnce(&'a Permit, &'a Progress) -> ToolFuture<'a> + Send + Sync,
    {
        fn run<'a>(self: Box<Self>, permit: &'a Permit, progress: &'a Progress) -> ToolFuture<'a> {
            (self.0)(permit, progress)
        }
    }
    Box::new(ClosureCall(closure))
}

/// Effect, subject and work of one call, or why its arguments are not understood.
pub type ParseResult = Result<(Effect, Option<String>, Box<dyn ErasedCall>), Failure>;

/// What a tool can do once its type is erased: understand arguments that fit its strict schema.
pub trait ErasedTool: Send + Sync {
    /// Effect, subject and work for checked arguments.
    fn understand(self: Arc<Self>, arguments: Value) -> ParseResult;
}

/// A built-in tool with the arguments of one call.
struct TypedCall<T: Tool> {
    tool: Arc<T>,
    args: T::Args,
}

impl<T: Tool> ErasedCall for TypedCall<T> {
    fn run<'a>(self: Box<Self>, permit: &'a Permit, progress: &'a Progress) -> ToolFuture<'a> {
        Box::pin(async move {
            let TypedCall { tool, args } = *self;
            let output = tool.run(permit, args, progress).await?;
            let tainting = T::taints(&output);
            let text = serde_json::to_string(&output).map_err(|_| {
                Failure::new(Code::Internal, format!("the result of {} cannot be written", T::SPEC.name))
            })?;
            let content = T::PREFACE.map(|line| Content::Text(format!("{line}\n{text}"))).into_iter().collect();
            Ok(ToolOutput { tainting, content, ..ToolOutput::structured(text) })
        })
    }

    fn preview<'a>(&'a self, permit: &'a Permit) -> BoxedFuture<'a, Result<Option<ToolPreview>, Failure>> {
        Box::pin(self.tool.preview(permit, &self.args))
    }

    fn probe<'a>(&'a self, permit: &'a Permit) -> BoxedFuture<'a, ProbeResult> {
        Box::pin(self.tool.probe(permit, &self.args))
    }
}

impl<T: Tool> ErasedTool for T {
    fn understand(self: Arc<Self>, arguments: Value) -> ParseResult {
        let args: T::Args = serde_json::from_value(arguments).map_err(|error| {
            // Only grammars that a schema cannot say are left to fail here.
            Failure::new(Code::InvalidArgument, error.to_string()).next("correct the arguments and call again")
        })?;
        let (effect, about) = (T::effect(&args), T::about(&args));
        Ok((effect, about, Box::new(TypedCall { tool: self, args })))
    }
}

/// What a tool is, apart from whose targets it acts on: compiled and written once, shared by all tenants.
pub struct CompiledTool {
    definition: ToolDefinition,
    arguments: Arc<Arguments>,
    mcp: String,
    brief: String,
    tokens: u32,
    schema_digest: String,
    /// Names everything by which it is listed and called.
    listed_digest: String,
    /// The same where a person must be asked, once some tenant needs it.
    gated: OnceLock<Arc<CompiledTool>>,
}

impl CompiledTool {
    /// Of a built-in tool.
    pub fn of<T: Tool>() -> Result<CompiledTool, BadSchema> {
        let spec = T::SPEC;
        let bad = |why: String| BadSchema { tool: spec.name.to_owned(), why };
        let strict = schema::strict::<T::Args>();
        let mut wire = String::new();
        schema::write(&schema::lean(&strict), &mut wire);
        let definition = ToolDefinition {
            name: ToolName::parse(spec.name).map_err(|e| bad(e.to_string()))?,
            toolset: ToolsetName::parse(spec.toolset).map_err(|e| bad(e.to_string()))?,
            title: spec.title.to_owned(),
            description: spec.description.to_owned(),
            hint: (!spec.hint.is_empty()).then(|| spec.hint.to_owned()),
            source: ToolSource::BuiltIn,
            most: spec.most,
            idempotent: spec.idempotent,
            open_world: spec.open_world,
            deadline: spec.deadline,
            outside_text: spec.outside_text,
            reviewed: spec.reviewed,
            waits: spec.waits,
            strict,
            wire,
            output: Some(schema::output::<T::Output>(spec.most > Effect::Read)),
            needs_client: None,
        };
        CompiledTool::new(definition)
    }

    /// Of a tool whose definition came from somewhere else. A schema is compiled or refused, never fetched for.
    pub fn new(mut definition: ToolDefinition) -> Result<CompiledTool, BadSchema> {
        if definition.most > Effect::Read {
            let ToolDefinition { source, output, .. } = &mut definition;
            // The author of a built-in tool has said so already; whoever wrote this one knows of no runs.
            output.iter_mut().filter(|_| *source != ToolSource::BuiltIn).for_each(schema::allow_run_in_any);
        }
        let arguments = Arc::new(Arguments::compile(definition.name.as_str(), &definition.strict)?);
        let schema_digest = json::sha256_hex(json::canonical(&definition.strict).as_bytes());
        Ok(CompiledTool::written(definition, arguments, schema_digest))
    }

    /// The same, compiled once for all tenants that have the very same definition.
    pub fn shared(definition: ToolDefinition) -> Result<Arc<CompiledTool>, BadSchema> {
        // Every field counts, also one that is added later.
        let digest = bits(&json::sha256_hex(format!("{definition:?}").as_bytes()));
        SHARED.get(digest, || CompiledTool::new(definition))
    }

    /// Writes the texts of a tool whose schema is compiled already.
    fn written(definition: ToolDefinition, arguments: Arc<Arguments>, schema_digest: String) -> CompiledTool {
        let brief = brief(definition.name.as_str(), &definition.description, &definition.wire);
        let (mcp, tokens) = (full(&definition), tokens::count(&brief));
        let listed_digest = listed_digest(&definition, &mcp);
        CompiledTool { definition, arguments, mcp, brief, tokens, schema_digest, listed_digest, gated: OnceLock::new() }
    }

    /// The same tool, listed otherwise: what is understood, and so what was compiled, stays.
    fn relisted(&self, definition: ToolDefinition) -> CompiledTool {
        CompiledTool::written(definition, Arc::clone(&self.arguments), self.schema_digest.clone())
    }

    fn gated(&self) -> &Arc<CompiledTool> {
        self.gated.get_or_init(|| {
            let mut definition = self.definition.clone();
            match (&definition.source, &mut definition.output) {
                (ToolSource::BuiltIn, Some(output)) => schema::allow_run(output),
                (ToolSource::Server { .. }, Some(output)) => schema::allow_run_in_any(output),
                (ToolSource::BuiltIn | ToolSource::Server { .. }, None) => {}
            }
            Arc::new(self.relisted(definition))
        })
    }

    /// The same tool as a model reads it where one optional argument has nothing to choose from. A call may still
    /// carry the argument: only what is listed changes, not what is understood.
    #[must_use]
    pub fn without_argument(&self, name: &str) -> CompiledTool {
        let mut definition = self.definition.clone();
        let mut listed = definition.strict.clone();
        if let Some(Value::Object(fields)) = listed.get_mut("properties") {
            fields.remove(name);
        }
        definition.wire.clear();
        schema::write(&schema::lean(&listed), &mut definition.wire);
        self.relisted(definition)
    }
}

/// A tool's type, and the argument it is listed without.
type ToolForm = (TypeId, Option<&'static str>);

/// The shapes of a toolset's tools, each made when the first tenant needs it. The toolset keeps one of these, so that a
/// further tenant costs a few pointers and not another compiled schema.
#[derive(Default)]
pub struct CompiledTools {
    made: Mutex<HashMap<ToolForm, Arc<CompiledTool>>>,
}

impl CompiledTools {
    /// A tool with its targets.
    pub fn entry<T: Tool>(&self, tool: T) -> Result<CatalogEntry, BadSchema> {
        self.listed(tool, None)
    }

    /// The same, listed without one optional argument.
    pub fn entry_without<T: Tool>(&self, tool: T, argument: &'static str) -> Result<CatalogEntry, BadSchema> {
        self.listed(tool, Some(argument))
    }

    fn listed<T: Tool>(&self, tool: T, without: Option<&'static str>) -> Result<CatalogEntry, BadSchema> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (TypeId::of::<T>(), without);
        let shape = match made.get(&key) {
            Some(shape) => Arc::clone(shape),
            None => {
                let whole = CompiledTool::of::<T>()?;
                let shape = Arc::new(match without {
                    Some(argument) => whole.without_argument(argument),
                    None => whole,
                });
                made.insert(key, Arc::clone(&shape));
                shape
            }
        };
        Ok(CatalogEntry { shape, kit: Arc::new(tool), targets: None })
    }
}

/// How the targets of a tool are named in the audit log.
#[derive(Clone)]
pub struct TargetNames {
    /// The argument that chooses one.
    pub argument: &'static str,
    /// The name of the target a call means, if the tenant has it; `None` as argument: the call named none.
    pub name: Arc<TargetName>,
}

/// What a call named in, the target's name out.
pub type TargetName = dyn Fn(Option<&str>) -> Option<String> + Send + Sync;

/// One tool of a catalog: what it is, and what it acts on for one tenant.
pub struct CatalogEntry {
    shape: Arc<CompiledTool>,
    kit: Arc<dyn ErasedTool>,
    targets: Option<TargetNames>,
}

impl CatalogEntry {
    /// A built-in tool.
    pub fn of<T: Tool>(tool: T) -> Result<CatalogEntry, BadSchema> {
        Ok(CatalogEntry { shape: Arc::new(CompiledTool::of::<T>()?), kit: Arc::new(tool), targets: None })
    }

    /// A tool whose definition came from somewhere else.
    pub fn new(definition: ToolDefinition, kit: Arc<dyn ErasedTool>) -> Result<CatalogEntry, BadSchema> {
        Ok(CatalogEntry { shape: CompiledTool::shared(definition)?, kit, targets: None })
    }

    /// A tool of this shape.
    pub fn with_shape(shape: CompiledTool, kit: Arc<dyn ErasedTool>) -> CatalogEntry {
        CatalogEntry { shape: Arc::new(shape), kit, targets: None }
    }

    /// The same tool where a person must be asked: its result may be a run, so nothing in it is required.
    #[must_use]
    pub fn gated(&self) -> CatalogEntry {
        let (kit, targets) = (Arc::clone(&self.kit), self.targets.clone());
        CatalogEntry { shape: Arc::clone(self.shape.gated()), kit, targets }
    }

    /// The same tool, whose calls are aimed at one of several targets.
    #[must_use]
    pub fn aimed_at(self, targets: TargetNames) -> CatalogEntry {
        CatalogEntry { targets: Some(targets), ..self }
    }

    /// What a call is aimed at, for the audit log: `cluster/prod`, `jenkins/ci`, `server/wiki`.
    pub fn target(&self, parsed: &ParsedCall) -> Option<String> {
        match &self.shape.definition.source {
            ToolSource::Server { id, .. } => Some(format!("server/{id}")),
            ToolSource::BuiltIn => (self.targets.as_ref()?.name)(parsed.target.as_deref()),
        }
    }

    /// Everything known of it.
    pub fn definition(&self) -> &ToolDefinition {
        &self.shape.definition
    }

    /// Its name.
    pub fn name(&self) -> &ToolName {
        &self.shape.definition.name
    }

    /// The list it is in.
    pub fn list(&self) -> Level {
        list_of(self.shape.definition.most)
    }

    /// The tool as MCP lists it, as JSON text.
    pub fn mcp(&self) -> &str {
        &self.shape.mcp
    }

    /// Name, description and input schema alone: what a model reads and what is counted.
    pub fn brief(&self) -> &str {
        &self.shape.brief
    }

    /// The tool as `load_toolset` issues it: what a model reads, and what a host may want to know before calling.
    pub fn issue(&self) -> String {
        let ToolDefinition { most, idempotent, open_world, .. } = &self.shape.definition;
        let body = self.shape.brief.strip_suffix('}').unwrap_or(&self.shape.brief);
        format!(r#"{body},"annotations":{}}}"#, annotations(*most, *idempotent, *open_world))
    }

    /// Names the schema that arguments are checked against.
    pub fn schema_digest(&self) -> &str {
        &self.shape.schema_digest
    }

    /// Names everything by which it is listed and called.
    pub(crate) fn listed_digest(&self) -> &str {
        &self.shape.listed_digest
    }

    /// What this tool shares with every other of the same definition.
    pub fn shape(&self) -> &Arc<CompiledTool> {
        &self.shape
    }

    /// What it costs a model to read.
    pub fn tokens(&self) -> u32 {
        self.shape.tokens
    }

    /// Checks and understands arguments.
    pub fn parse(&self, arguments: Map<String, Value>) -> Result<ParsedCall, Failure> {
        let checked = self.shape.arguments.check(arguments)?;
        let text = json::canonical(&checked);
        let argument = self.targets.as_ref().and_then(|targets| checked.get(targets.argument)?.as_str());
        let target = argument.map(str::to_owned);
        let (effect, about, work) = Arc::clone(&self.kit).understand(checked)?;
        if effect > self.shape.definition.most {
            // The list it is in, and so what was granted, rests on the declaration: a tool that does more is a fault.
            return Err(Failure::new(Code::Internal, format!("{} would do more than it declares", self.name())));
        }
        Ok(ParsedCall { effect, about, arguments: text, target, work })
    }
}

static SHARED: LazyLock<SharedByDigest<CompiledTool>> = LazyLock::new(SharedByDigest::new);

fn listed_digest(definition: &ToolDefinition, mcp: &str) -> String {
    let mut text = format!("{} {mcp} {}\n", definition.toolset, definition.strict);
    if let ToolSource::Server { id, tool } = &definition.source {
        // Two names of a server may come out as one name here; what is called must be named all the same.
        write!(text, "{id} {tool:?}").ok();
    }
    json::sha256_hex(text.as_bytes())
}

/// `{name, description, inputSchema}` as compact JSON.
pub(crate) fn brief(name: &str, description: &str, wire: &str) -> String {
    format!(r#"{{"name":{},"description":{},"inputSchema":{wire}}}"#, json!(name), json!(description))
}

fn full(definition: &ToolDefinition) -> String {
    let ToolDefinition { name, title, description, wire, most, idempotent, open_world, output, .. } = definition;
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
