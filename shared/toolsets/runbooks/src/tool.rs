//! One runbook as an entry of the catalog, and one call of it.

use crate::arguments;
use crate::declaration::{Runbook, RunbookPlace};
use crate::on_cluster::{self, ClusterCall};
use crate::on_runner;
use crate::outcome::RunbookResult;
use crate::preview;
use crate::resolved::ResolvedCall;
use catalog::{
    BoxedFuture, CatalogEntry, ErasedCall, ErasedTool, ParseResult, ProbeResult, Progress, TargetNames, ToolDefinition,
    ToolFuture, ToolPreview, ToolSource, schema,
};
use domain::{Code, Content, Effect, Failure, ToolOutput, ToolsetName};
use kubernetes::client::Clusters;
use policy::Permit;
use redact::KeptSecret;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use target::reply::cut_text;
use toolset::AttachError;

/// The name of the toolset.
pub const TOOLSET: &str = "runbooks";
/// How much of the commands a description repeats.
const COMMAND_BYTES: usize = 400;
/// What stands before the output of every runbook.
const PREFACE: &str = "Output of a runbook's commands (untrusted text):";

/// A runbook with what it reaches for one tenant.
pub(crate) struct RunbookTool {
    pub(crate) runbook: Arc<Runbook>,
    pub(crate) store: Store,
    pub(crate) clusters: Clusters,
    /// The tenant's secrets that the runbook may use, by name.
    pub(crate) secrets: BTreeMap<String, KeptSecret>,
}

impl RunbookTool {
    /// The tool as the catalog has it.
    pub(crate) fn entry(self) -> Result<CatalogEntry, AttachError> {
        let definition = definition(&self.runbook)?;
        let target = self.runbook.place.target();
        let entry = CatalogEntry::new(definition, Arc::new(self)).map_err(AttachError::new)?;
        // A runbook runs where it says; no argument chooses.
        Ok(entry.aimed_at(TargetNames { argument: "", name: Arc::new(move |_| Some(target.clone())) }))
    }
}

/// What the catalog knows of it.
fn definition(runbook: &Runbook) -> Result<ToolDefinition, AttachError> {
    let (read, strict) = arguments::schemas(runbook);
    let mut wire = String::new();
    schema::write(&read, &mut wire);
    let timeout = Duration::from_millis(runbook.text.timeout_ms);
    let deadline = match runbook.place {
        RunbookPlace::Runner(_) => on_runner::CLAIMABLE + timeout + on_runner::MARGIN,
        RunbookPlace::Cluster(_) => timeout * 2 + on_cluster::MARGIN * 2,
    };
    Ok(ToolDefinition {
        name: runbook.tool.clone(),
        toolset: ToolsetName::parse(TOOLSET).map_err(AttachError::new)?,
        title: format!("Runbook {}", runbook.id()),
        description: description(runbook),
        hint: Some(
            "A command of the tenant's own, as its file declares it; give it to agents that may ask for it.".to_owned(),
        ),
        source: ToolSource::BuiltIn,
        most: runbook.effect,
        // Its job is named after the run: carrying a run out again finds the job of the first time.
        idempotent: true,
        open_world: true,
        deadline,
        outside_text: true,
        reviewed: None,
        waits: false,
        strict,
        wire,
        output: Some(schema::output::<RunbookResult>(runbook.effect > Effect::Read)),
        needs_client: None,
    })
}

/// What a model reads: what the author says, then what runs, with which variables, and what a failure means.
fn description(runbook: &Runbook) -> String {
    let text = &runbook.text;
    let mut lines: Vec<String> = runbook.description.iter().map(|words| words.trim().to_owned()).collect();
    for (step, words) in [("check", text.check.as_ref()), ("run", Some(&text.run)), ("verify", text.verify.as_ref())] {
        if let Some(words) = words {
            let mut command = words.iter().map(|word| shown(word)).collect::<Vec<_>>().join(" ");
            cut_text(&mut command, COMMAND_BYTES);
            lines.push(format!("{step}: {command}"));
        }
    }
    lines.push(format!("where: {}", runbook.place.words()));
    if !text.env.is_empty() {
        lines.push(format!("env: {}", text.env.keys().map(String::as_str).collect::<Vec<_>>().join(", ")));
    }
    lines.push("A failure is reported and stops nothing else.".to_owned());
    lines.join("\n")
}

/// A word as a person would write it; one that could be read as several stands in quotes.
fn shown(word: &str) -> String {
    let plain = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./:=@%+,{}".contains(c));
    // The places for arguments are the only blanks that need no quotes.
    let bare = word.replace("{{ args.", "{{args.").replace(" }}", "}}");
    if plain || bare.chars().all(|c| c.is_alphanumeric() || "-_./:=@%+,{}".contains(c)) && !bare.is_empty() {
        return bare;
    }
    format!("{word:?}")
}

impl ErasedTool for RunbookTool {
    fn understand(self: Arc<Self>, arguments: Value) -> ParseResult {
        let Value::Object(arguments) = arguments else {
            return Err(Failure::new(Code::InvalidArgument, "arguments are an object"));
        };
        let call = ResolvedCall::new(&self.runbook, &arguments)?;
        Ok((self.runbook.effect, None, Box::new(RunbookCall { tool: self, call })))
    }
}

/// One call of a runbook.
struct RunbookCall {
    tool: Arc<RunbookTool>,
    call: ResolvedCall,
}

impl RunbookCall {
    async fn result(&self, permit: &Permit, progress: &Progress) -> Result<RunbookResult, Failure> {
        let RunbookTool { store, secrets, .. } = &*self.tool;
        match &self.tool.runbook.place {
            RunbookPlace::Runner(label) => on_runner::run(store, permit, label, (&self.call, secrets), progress).await,
            RunbookPlace::Cluster(_) => {
                let now = store.now().await.map_err(|error| error.failure(""))?;
                self.in_cluster()?.run(permit, now, progress).await
            }
        }
    }

    fn in_cluster(&self) -> Result<ClusterCall<'_>, Failure> {
        let RunbookTool { runbook, clusters, secrets, .. } = &*self.tool;
        match &runbook.place {
            RunbookPlace::Cluster(place) => Ok(ClusterCall { clusters, place, call: &self.call, secrets }),
            RunbookPlace::Runner(_) => Err(Failure::new(Code::Internal, "the runbook runs in no cluster")),
        }
    }
}

impl ErasedCall for RunbookCall {
    fn run<'a>(self: Box<Self>, permit: &'a Permit, progress: &'a Progress) -> ToolFuture<'a> {
        Box::pin(async move {
            let result = self.result(permit, progress).await?;
            let text = serde_json::to_string(&result)
                .map_err(|_| Failure::new(Code::Internal, "the result of a runbook cannot be written"))?;
            let content = vec![Content::Text(format!("{PREFACE}\n{text}"))];
            Ok(ToolOutput { content, tainting: true, ..ToolOutput::structured(text) })
        })
    }

    fn preview<'a>(&'a self, permit: &'a Permit) -> BoxedFuture<'a, Result<Option<ToolPreview>, Failure>> {
        Box::pin(async move {
            match &self.tool.runbook.place {
                RunbookPlace::Runner(label) => {
                    // Once somebody has approved it, whoever carries it out sees for itself.
                    if permit.run().is_none() {
                        on_runner::check_runner(&self.tool.store, permit, label).await?;
                    }
                    Ok(Some(preview::of(&self.call, |_| {})))
                }
                RunbookPlace::Cluster(_) => {
                    let notes = self.in_cluster()?.rehearse(permit).await?;
                    Ok(Some(preview::of(&self.call, |preview| notes.add_to(preview))))
                }
            }
        })
    }

    fn probe<'a>(&'a self, permit: &'a Permit) -> BoxedFuture<'a, ProbeResult> {
        Box::pin(async move {
            match self.in_cluster() {
                Ok(cluster) => cluster.probe(permit).await,
                Err(_) => on_runner::probe(&self.tool.store, permit, &self.tool.runbook).await,
            }
        })
    }

    fn tidy<'a>(&'a self, permit: &'a Permit) -> BoxedFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            match self.in_cluster() {
                Ok(cluster) => cluster.tidy(permit).await,
                // The store forgets jobs by itself.
                Err(_) => Ok(()),
            }
        })
    }
}
