//! The commands, one file each.

mod api_client;
mod audit;
mod check;
mod data_folder;
mod demo;
mod dev;
mod doctor;
mod explain;
mod init;
mod memory;
mod output;
mod runner;
mod runs;
mod schema;
mod serve;
mod servers;
mod stdio;
mod switch;
mod token;
mod tools;
mod usage;

pub use check::toolsets;

pub(crate) use output::{CapturedText, beginning, capture};
use output::{json_text, one_line, print, print_exact, print_json, reserve_stdout, say};

use crate::cli::{Cli, Command};
use clap::CommandFactory;
use std::process::ExitCode;

/// The exit code of a command that did what was asked.
pub(crate) const DONE: u8 = 0;
/// The exit code of a command that ran and whose answer is no.
const NEGATIVE: u8 = 1;
/// The exit code for bad usage or bad configuration.
const UNUSABLE: u8 = 2;

/// How a command ended.
pub(crate) enum CommandOutcome {
    /// The command did what was asked.
    Done,
    /// It ran, and the answer is no.
    Negative,
    /// It could not run, and whoever asked was told why.
    Unusable,
}

/// Runs a command and returns its exit code.
pub fn run(cli: Cli) -> ExitCode {
    ExitCode::from(execute(cli))
}

/// The same, inside a process that does other things as well.
pub(crate) fn execute(cli: Cli) -> u8 {
    let outcome = match cli.command {
        Command::Dev(args) => dev::run(&args),
        Command::Demo(args) => demo::run(&args, cli.output),
        Command::Init(args) => init::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Stdio(args) => stdio::run(&args),
        Command::Check(args) => check::run(&args, cli.output),
        Command::Explain(args) => explain::run(&args, cli.output),
        Command::Schema(args) => schema::run(&args),
        Command::Token(args) => token::run(&args),
        Command::Tools(args) => tools::run(&args, cli.output),
        Command::Runs(args) => runs::run(&args, cli.output),
        Command::Servers(args) => servers::run(&args, cli.output),
        Command::Switch(args) => switch::run(&args, cli.output),
        Command::Usage(args) => usage::run(&args, cli.output),
        Command::Audit(args) => audit::run(&args, cli.output),
        Command::Memory(args) => memory::run(&args, cli.output),
        Command::Runner(args) => runner::run(&args),
        Command::Doctor(args) => doctor::run(&args, cli.output),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "quartermaster", &mut text);
            print(&String::from_utf8_lossy(&text));
            Ok(CommandOutcome::Done)
        }
    };
    match outcome {
        Ok(CommandOutcome::Done) => DONE,
        Ok(CommandOutcome::Negative) => NEGATIVE,
        Ok(CommandOutcome::Unusable) => UNUSABLE,
        Err(error) => {
            say(&format!("quartermaster: {error:#}\n"));
            UNUSABLE
        }
    }
}

/// The runtime everything but the request handlers runs on.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}
