//! What an approver is shown of a command besides its arguments: the answer of a command that only looks.
//!
//! The approval is bound to it: if the answer is another one at execution, the approval is void.

use crate::cli::{
    Cli, Command, MemoryAction, MemoryCommand, ServersAction, ServersCommand, SwitchAction, SwitchCommand,
};

/// A command that only looks.
pub(super) struct Rehearsal {
    pub(super) what: &'static str,
    pub(super) cli: Cli,
}

/// The rehearsal of a command, if it has one.
pub(super) fn of(cli: &Cli) -> Option<Rehearsal> {
    let (what, command) = match &cli.command {
        Command::Memory(MemoryCommand {
            url,
            token_file,
            action: MemoryAction::Import { dir, prefix, prune, dry_run: false },
        }) => {
            let action =
                MemoryAction::Import { dir: dir.clone(), prefix: prefix.clone(), prune: *prune, dry_run: true };
            let (url, token_file) = (url.clone(), token_file.clone());
            ("what the import would do", Command::Memory(MemoryCommand { url, token_file, action }))
        }
        Command::Servers(ServersCommand { url, token_file, action: Some(ServersAction::Accept { id, .. }) }) => {
            let action = Some(ServersAction::Show { id: id.clone() });
            let (url, token_file) = (url.clone(), token_file.clone());
            ("the server's tools now", Command::Servers(ServersCommand { url, token_file, action }))
        }
        Command::Switch(SwitchCommand {
            url,
            token_file,
            action: Some(SwitchAction::Set { .. } | SwitchAction::Clear { .. }),
        }) => {
            let (url, token_file) = (url.clone(), token_file.clone());
            ("the switches now", Command::Switch(SwitchCommand { url, token_file, action: None }))
        }
        Command::Memory(_)
        | Command::Servers(_)
        | Command::Switch(_)
        | Command::Dev(_)
        | Command::Demo(_)
        | Command::Init(_)
        | Command::Serve(_)
        | Command::Stdio(_)
        | Command::Runner(_)
        | Command::Check(_)
        | Command::Explain(_)
        | Command::Schema(_)
        | Command::Token(_)
        | Command::Tools(_)
        | Command::Runs(_)
        | Command::Usage(_)
        | Command::Audit(_)
        | Command::Doctor(_)
        | Command::Completions { .. } => return None,
    };
    Some(Rehearsal { what, cli: Cli { output: cli.output, command } })
}
