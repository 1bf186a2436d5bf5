use super::*;
use crate::cli::OutputFormat;
use clap::Parser;
use std::collections::BTreeSet;

fn tools() -> CommandTools {
    CommandTools::new(PathBuf::from("/nowhere")).unwrap()
}

fn parse(name: &str, args: &[&str]) -> Result<catalog::ParsedCall, Failure> {
    let tools = tools();
    let entry = tools.entries.iter().find(|entry| entry.name().as_str() == name).unwrap();
    let Value::Object(arguments) = json!({ "args": args }) else { unreachable!() };
    entry.parse(arguments)
}

fn effect(name: &str, args: &[&str]) -> Result<Effect, Failure> {
    parse(name, args).map(|call| call.effect)
}

#[test]
fn the_tools_are_the_commands_of_the_tree_but_those_that_serve_decide_and_mint() {
    let tools = tools();
    let offered: BTreeSet<String> = tools.entries.iter().map(|entry| entry.name().to_string()).collect();
    let tree = Cli::command();
    let all: BTreeSet<String> = tree.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let left_out: Vec<&str> = all.difference(&offered).map(String::as_str).collect();
    assert_eq!(left_out, ["demo", "dev", "init", "runner", "runs", "serve", "stdio", "token"]);
    assert!(offered.is_subset(&all), "{offered:?}");
    for entry in &tools.entries {
        let command = tree.find_subcommand(entry.name().as_str()).unwrap();
        let about = command.get_about().unwrap().to_string();
        assert!(entry.definition().description.starts_with(about.trim_end_matches('.')), "{}", entry.name());
    }
}

#[test]
fn every_flag_of_help_is_answered_by_the_tree_and_runs_nothing() {
    for entry in &tools().entries {
        assert_eq!(effect(entry.name().as_str(), &["-h"]).unwrap(), Effect::Read, "{}", entry.name());
        assert_eq!(effect(entry.name().as_str(), &["--no-such-flag"]).unwrap(), Effect::Read, "{}", entry.name());
    }
}

#[test]
fn what_changes_something_is_known_before_it_runs() {
    use Effect::{Change, Disrupt, Read};
    for (name, args, wanted) in [
        ("check", &["a.yaml"][..], Read),
        ("tools", &["--tokens"], Read),
        ("usage", &["--by", "toolset"], Read),
        ("switch", &[], Read),
        ("switch", &["list"], Read),
        ("switch", &["set", "tenant", "--mode", "stop", "--reason", "x"], Change),
        ("switch", &["clear", "sw_1"], Change),
        ("servers", &["show", "wiki"], Read),
        ("servers", &["accept", "wiki", "--yes"], Change),
        ("audit", &["search"], Change),
        ("audit", &["export"], Change),
        ("memory", &["export", "--dir", "d"], Change),
        ("memory", &["import", "--dir", "d", "--dry-run"], Change),
        ("memory", &["import", "--dir", "d"], Change),
        ("memory", &["import", "--dir", "d", "--prune"], Disrupt),
        ("doctor", &["--config", "f"], Change),
    ] {
        assert_eq!(effect(name, args).unwrap(), wanted, "{name} {args:?}");
    }
}

#[test]
fn no_call_names_an_address_or_a_token_waits_for_a_terminal_or_never_ends() {
    for (name, args) in [
        ("usage", &["--url", "https://evil.example"][..]),
        ("usage", &["--token-file", "/etc/shadow"]),
        ("switch", &["list", "--url=https://evil.example"]),
        ("audit", &["--token-file", "x", "search"]),
        ("memory", &["import", "--dir", "d", "--url", "https://evil.example"]),
        ("servers", &["accept", "wiki"]),
        ("audit", &["tail"]),
    ] {
        assert_eq!(effect(name, args).unwrap_err().code, Code::InvalidArgument, "{name} {args:?}");
    }
}

#[test]
fn a_command_asks_the_service_of_its_folder() {
    let mut cli = Cli::try_parse_from(["quartermaster", "switch", "list"]).unwrap();
    cli.command.ask_service_of(Path::new("/data"));
    let Command::Switch(args) = &cli.command else { panic!() };
    assert_eq!((args.url.as_deref(), args.token_file.as_deref()), (None, Some(Path::new("/data/admin.token"))));
}

#[test]
fn an_approver_is_shown_what_a_look_says() {
    let rehearsed = |words: &[&str]| {
        let cli = Cli::try_parse_from(["quartermaster"].iter().chain(words)).unwrap();
        rehearsal::of(&cli).map(|mut rehearsal| effect::of(&mut rehearsal.cli.command).unwrap())
    };
    assert_eq!(rehearsed(&["switch", "set", "tenant", "--mode", "stop", "--reason", "x"]), Some(Effect::Read));
    assert_eq!(rehearsed(&["servers", "accept", "wiki", "--yes"]), Some(Effect::Read));
    let import = Cli::try_parse_from(["quartermaster", "memory", "import", "--dir", "d", "--prune"]).unwrap();
    let Command::Memory(args) = rehearsal::of(&import).unwrap().cli.command else { panic!() };
    assert!(matches!(args.action, crate::cli::MemoryAction::Import { dry_run: true, prune: true, .. }));
    assert_eq!(rehearsed(&["audit", "search"]), None);
}

#[tokio::test]
async fn what_a_command_prints_is_captured_with_its_exit_code() {
    let slots = Arc::new(Semaphore::new(1));
    let (output, command) = (OutputFormat::Text, Command::Schema(crate::cli::SchemaCommand { openapi: false }));
    let (code, printed) = run(Cli { output, command }, Arc::clone(&slots)).await.unwrap();
    assert_eq!(code, DONE);
    assert!(printed.contains("\"$schema\""), "{printed}");

    let cli = Cli::try_parse_from(["quartermaster", "check", "/nowhere/at-all.yaml"]).unwrap();
    let (code, printed) = run(cli, slots).await.unwrap();
    assert!(code != DONE && printed.contains("at-all.yaml"), "{code} {printed}");
}
