//! The toolset `commands`: the commands of this binary as tools, made from the one command tree.
//!
//! A call is parsed by the tree before anything is decided, so what is judged is what will run. The command runs in this
//! process and prints into a buffer. It asks the service of this process with the tokens in its own data folder; another
//! address or token cannot be named, because whoever names them could have a secret sent anywhere.
//!
//! Not offered: what serves, what decides runs, and what mints tokens.

mod effect;
mod rehearsal;

use crate::cli::{Cli, Command};
use crate::commands::{self, CapturedText, DONE, capture};
use catalog::{
    BoxedFuture, CatalogEntry, ErasedCall, ErasedTool, ParseResult, Progress, ToolDefinition, ToolFuture, ToolPreview,
    ToolSource,
};
use clap::{CommandFactory, FromArgMatches};
use domain::{Code, Content, Effect, Failure, ToolName, ToolOutput, ToolsetName};
use policy::Permit;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use toolset::{AttachContext, AttachError, AttachedToolset, Toolset};

pub use effect::is_offered;

/// The toolset's name.
pub const TOOLSET: &str = "commands";
/// How long one command may take.
const DEADLINE: Duration = Duration::from_secs(60);
/// Commands that may run at once.
const AT_ONCE: usize = 4;
/// The most of its output that an error repeats.
const QUOTED: usize = 8 * 1024;
const MOST_ARGUMENTS: usize = 64;
const LONGEST_ARGUMENT: usize = 4096;

/// The codes of its tools.
pub mod codes {
    domain::tool_codes! {
        /// The command ended with another exit code than 0.
        COMMAND_FAILED = "command_failed": Unprocessable quotes,
    }
}

/// The toolset.
pub struct CommandTools {
    entries: Vec<Arc<CatalogEntry>>,
}

struct AttachedCommands(Vec<Arc<CatalogEntry>>);

impl CommandTools {
    /// The commands, which ask the service with the tokens in this folder.
    pub fn new(data: PathBuf) -> Result<CommandTools, AttachError> {
        let (data, slots): (Arc<Path>, _) = (data.into(), Arc::new(Semaphore::new(AT_ONCE)));
        let tree = Cli::command();
        let offered = tree.get_subcommands().filter(|command| is_offered(command.get_name()));
        let entry = |command: &clap::Command| {
            let tool = CommandTool { name: command.get_name().to_owned(), data: data.clone(), slots: slots.clone() };
            let definition = definition(command).map_err(AttachError::new)?;
            CatalogEntry::new(definition, Arc::new(tool)).map(Arc::new).map_err(AttachError::new)
        };
        Ok(CommandTools { entries: offered.map(entry).collect::<Result<_, _>>()? })
    }
}

impl Toolset for CommandTools {
    fn names(&self) -> &'static [&'static str] {
        &[TOOLSET]
    }

    fn tools(&self, _: bool) -> Result<Vec<Arc<CatalogEntry>>, AttachError> {
        Ok(self.entries.clone())
    }

    fn is_configured(&self, _: &tenancy::TenantConfig) -> bool {
        true
    }

    fn attach(&self, _: &AttachContext<'_>) -> Result<Arc<dyn AttachedToolset>, AttachError> {
        Ok(Arc::new(AttachedCommands(self.entries.clone())))
    }

    fn codes(&self) -> &'static [Code] {
        codes::ALL
    }
}

impl AttachedToolset for AttachedCommands {
    fn entries(&self) -> Vec<Arc<CatalogEntry>> {
        self.0.clone()
    }
}

/// What a model reads of a command: what the command's own help says.
fn definition(command: &clap::Command) -> Result<ToolDefinition, Box<dyn std::error::Error + Send + Sync>> {
    let name = command.get_name();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let about = about.trim_end_matches('.');
    let items = json!({ "type": "string", "maxLength": LONGEST_ARGUMENT });
    let args = json!({ "type": "array", "items": items, "maxItems": MOST_ARGUMENTS });
    let schema =
        |args: Value| json!({ "type": "object", "properties": { "args": args }, "additionalProperties": false });
    Ok(ToolDefinition {
        name: ToolName::parse(&sanitised(name))?,
        toolset: ToolsetName::parse(TOOLSET)?,
        title: format!("quartermaster {name}"),
        description: format!("{about}. args: as on the command line of `quartermaster {name}`; [\"-h\"] for help."),
        hint: None,
        source: ToolSource::BuiltIn,
        most: effect::most(name),
        idempotent: false,
        open_world: true,
        deadline: DEADLINE,
        // Answers hold text that agents, people and external servers chose.
        outside_text: true,
        reviewed: None,
        waits: false,
        strict: schema(args),
        wire: schema(json!({ "type": "array", "items": { "type": "string" } })).to_string(),
        output: None,
        needs_client: None,
    })
}

/// A command's name as a tool's.
fn sanitised(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    name.chars().map(plain).take(64).collect()
}

/// One command.
struct CommandTool {
    name: String,
    data: Arc<Path>,
    slots: Arc<Semaphore>,
}

impl ErasedTool for CommandTool {
    fn understand(self: Arc<Self>, arguments: Value) -> ParseResult {
        let given = arguments["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let words: Vec<String> = ["quartermaster", &self.name].into_iter().chain(given).map(str::to_owned).collect();
        let parsed = Cli::command().try_get_matches_from(&words).and_then(|found| Cli::from_arg_matches(&found));
        let (effect, action) = match parsed {
            Ok(mut cli) => {
                let effect = effect::of(&mut cli.command)?;
                cli.command.ask_service_of(&self.data);
                (effect, CommandAction::Run(Box::new(cli)))
            }
            // Help, or bad usage: nothing runs, and the tree's own words are the result.
            Err(error) => (Effect::Read, CommandAction::Print(error.exit_code(), error.to_string())),
        };
        Ok((effect, None, Box::new(CommandCall { words, action, slots: Arc::clone(&self.slots) })))
    }
}

/// What is left to do of a call.
enum CommandAction {
    Run(Box<Cli>),
    Print(i32, String),
}

struct CommandCall {
    words: Vec<String>,
    action: CommandAction,
    slots: Arc<Semaphore>,
}

impl ErasedCall for CommandCall {
    fn run<'a>(self: Box<Self>, _: &'a Permit, _: &'a Progress) -> ToolFuture<'a> {
        Box::pin(async move {
            let (code, printed) = match self.action {
                CommandAction::Print(code, text) => (code, text),
                CommandAction::Run(cli) => {
                    let (code, printed) = run(*cli, self.slots).await?;
                    (code.into(), printed)
                }
            };
            if code == i32::from(DONE) {
                let content = vec![Content::Text(printed)];
                return Ok(ToolOutput { content, ..ToolOutput::default() });
            }
            let quoted = commands::beginning(&printed, QUOTED);
            let failure = Failure::new(codes::COMMAND_FAILED, format!("exit code {code}\n{quoted}"));
            Err(failure.details(json!({ "exit_code": code })))
        })
    }

    fn preview<'a>(&'a self, _: &'a Permit) -> BoxedFuture<'a, Result<Option<ToolPreview>, Failure>> {
        Box::pin(async move {
            let CommandAction::Run(cli) = &self.action else { return Ok(None) };
            let summary = self.words.join(" ");
            let folder = std::env::current_dir().unwrap_or_default();
            // As JSON, so that where one argument ends and the next begins can be seen.
            let mut text = format!("runs {} in {}\n", json!(self.words), folder.display());
            if let Some(rehearsal) = rehearsal::of(cli) {
                let (code, printed) = run(rehearsal.cli, Arc::clone(&self.slots)).await?;
                text.push_str(&format!("\n{} (exit code {code}):\n{printed}", rehearsal.what));
            }
            let fingerprint = domain::json::sha256_hex(text.as_bytes());
            let (warnings, hidden) = (Vec::new(), Vec::new());
            Ok(Some(ToolPreview { summary, text, warnings, arguments: None, hidden, fingerprint }))
        })
    }
}

/// Runs a command in this process and returns its exit code and what it printed.
async fn run(cli: Cli, slots: Arc<Semaphore>) -> Result<(u8, String), Failure> {
    let failed = |_| Failure::new(Code::Internal, "the command failed inside the process");
    let slot = slots.acquire_owned().await.map_err(|_| Failure::new(Code::Draining, "the process is ending"))?;
    // On a thread of its own: a command awaits its work in place.
    let running = tokio::task::spawn_blocking(move || {
        let _slot = slot;
        capture(|| commands::execute(cli))
    });
    let (code, CapturedText { mut text, left_out }) = running.await.map_err(failed)?;
    if left_out > 0 {
        text.push_str(&format!("\n… {left_out} more bytes were left out\n"));
    }
    Ok((code, text))
}

impl Command {
    /// Lets a command that asks the service ask the one of this folder.
    fn ask_service_of(&mut self, data: &Path) {
        if let Some((url, token_file, token)) = self.service() {
            (*url, *token_file) = (None, Some(data.join(token)));
        }
    }
}

#[cfg(test)]
mod tests;
