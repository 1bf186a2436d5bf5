//! What a command does to the world, judged before it runs. A new command does not compile until it is judged here.

use crate::cli::{AuditAction, Command, MemoryAction, ServersAction, SwitchAction};
use domain::{Code, Effect, Failure};

/// Commands that are no tools: they serve, decide runs, mint tokens or make keys, or play an agent themselves.
const NOT_OFFERED: [&str; 8] = ["dev", "demo", "init", "serve", "stdio", "runner", "token", "runs"];

/// Whether the command of this name is a tool.
pub fn is_offered(name: &str) -> bool {
    !NOT_OFFERED.contains(&name)
}

/// The most that any arguments of a command can do. What is not known here can change something.
pub(super) fn most(name: &str) -> Effect {
    match name {
        "check" | "explain" | "schema" | "tools" | "completions" | "usage" => Effect::Read,
        "memory" => Effect::Disrupt,
        _ => Effect::Change,
    }
}

/// What this command would do, or why it cannot be called here.
pub(super) fn of(command: &mut Command) -> Result<Effect, Failure> {
    let invalid = |message: &str| Err(Failure::new(Code::InvalidArgument, message));
    if command.service().is_some_and(|(url, token_file, _)| url.is_some() || token_file.is_some()) {
        return invalid("--url and --token-file cannot be named here: commands ask the service of this process");
    }
    match command {
        Command::Check(_)
        | Command::Explain(_)
        | Command::Schema(_)
        | Command::Tools(_)
        | Command::Usage(_)
        | Command::Completions { .. } => Ok(Effect::Read),
        // It starts programs and asks servers that a settings file names.
        Command::Doctor(_) => Ok(Effect::Change),
        Command::Servers(args) => match &args.action {
            None | Some(ServersAction::List | ServersAction::Show { .. }) => Ok(Effect::Read),
            Some(ServersAction::Accept { yes: true, .. }) => Ok(Effect::Change),
            Some(ServersAction::Accept { yes: false, .. }) => {
                invalid("there is no terminal to confirm at: add --yes; a person is asked for an approval instead")
            }
        },
        Command::Switch(args) => match &args.action {
            None | Some(SwitchAction::List) => Ok(Effect::Read),
            Some(SwitchAction::Set { .. } | SwitchAction::Clear { .. }) => Ok(Effect::Change),
        },
        // The audit log is for people: an agent reads it only if a person says so.
        Command::Audit(args) => match &args.action {
            AuditAction::Tail { .. } => invalid("`audit tail` does not end by itself; use `audit search`"),
            AuditAction::Search { .. } | AuditAction::Export { .. } | AuditAction::Verify(_) => Ok(Effect::Change),
        },
        // So are the documents of all users. An export also writes files.
        Command::Memory(args) => match &args.action {
            MemoryAction::Import { prune: true, dry_run: false, .. } => Ok(Effect::Disrupt),
            MemoryAction::Export { .. } | MemoryAction::Import { .. } => Ok(Effect::Change),
        },
        Command::Dev(_)
        | Command::Demo(_)
        | Command::Init(_)
        | Command::Serve(_)
        | Command::Stdio(_)
        | Command::Runner(_)
        | Command::Token(_)
        | Command::Runs(_) => invalid("this command is no tool"),
    }
}
