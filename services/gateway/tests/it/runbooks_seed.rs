//! What runbooks, their tools and `quartermaster stdio` are to be, statement by statement, as agents and approvers meet it:
//! declared, listed, approved, executed, repeated, failed. A module is a part of that description.
//!
//! On a runner the commands are real processes (`runbooks_yard`); on standard streams the server is the real program
//! (`stdio_client`). Jobs of clusters are in `runbooks_cluster`.

use crate::runbooks_yard::{LEASE, RunbookYard, SEED, file, listed};
use crate::runs_desk::{acme, approve, await_run, ended, pending, show};
use crate::stdio_client::{StdioClient, program, run};
use crate::stdio_local::{self, DATA, approved, in_project, text};
use clap::CommandFactory;
use serde_json::json;
use std::collections::BTreeSet;
use testkit::until;

/// The server speaks one JSON-RPC message a line on its standard streams.
mod transport {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn standard_output_carries_messages_alone_and_diagnostics_go_to_standard_error() {
        let folder = tempfile::tempdir().unwrap();
        // The client refuses every line that is no message of JSON-RPC 2.0, whatever runs meanwhile.
        let mut client = in_project(folder.path()).await;
        client.call("load_toolset", json!({ "toolset": "commands" })).await;
        assert!(text(&client.call("schema", json!({})).await).contains("$schema"));
        let done = approved(folder.path(), &mut client, "runbook__shop__seed", json!({ "key": "abc" })).await;
        assert!(done.to_string().contains("seeding"), "{done}");
        let said = client.errors();
        assert!(said.contains("quartermaster runs"), "what is for people: {said}");
        client.close();
        assert!(client.end().await.0.success());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_message_is_a_line_however_it_arrives() {
        let folder = tempfile::tempdir().unwrap();
        let mut client = StdioClient::start(folder.path(), &DATA);
        client.initialize().await;
        let ping = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string();
        client.write(format!("{}\n{}\r\n", ping(901), ping(902)).as_bytes()).await;
        let last = ping(903);
        let (first, rest) = last.split_at(20);
        client.write(first.as_bytes()).await;
        for id in [901, 902] {
            assert_eq!(client.answer(id).await["result"], json!({}));
        }
        client.write(format!("{rest}\n").as_bytes()).await;
        assert_eq!(client.answer(903).await["result"], json!({}));
        client.close();
        assert!(client.end().await.0.success());
    }
}

/// What tells a model when to use it.
mod discoverability {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn instructions_say_what_it_is_for_where_there_is_a_project() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("shop/src");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(folder.path().join("shop/quartermaster.yaml"), "").unwrap();
        let mut command = program(&inner, &["stdio"]);
        command.env("HOME", folder.path());
        let mut client = StdioClient::of(command);
        let opened = client.initialize().await;
        let text = opened["instructions"].as_str().unwrap_or_else(|| panic!("{opened}"));
        assert!(text.contains("this project") && text.contains("load_toolset"), "{text}");
        assert!(text.split_whitespace().count() <= 100, "{text}");
        // What it keeps is the user's and not the project's: whoever made the project could have put keys there.
        assert!(!folder.path().join("shop/.quartermaster").exists());
        let projects = std::fs::read_dir(folder.path().join(".quartermaster/projects")).unwrap();
        let names: Vec<String> = projects.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert!(names.len() == 1 && names[0].starts_with("shop-"), "{names:?}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_description_leads_then_the_command_the_variables_and_what_a_failure_means() {
        let yard = RunbookYard::open().await;
        let tool = listed(&yard.agent, SEED).await;
        let words = tool["description"].as_str().unwrap();
        assert!(words.starts_with("Write the seed marker file from `key`\n"), "{words}");
        for part in
            ["run: sh -c ", "check: test -f ", "env: REGION, TOKEN", "A failure is reported and stops nothing else."]
        {
            assert!(words.contains(part), "{part} in\n{words}");
        }
        assert!(!words.contains("hunter2"));
    }

    #[test]
    fn the_page_for_users_has_the_line_for_their_projects_own_instructions() {
        let page = include_str!("../../../../docs/stdio.md");
        assert!(page.contains("`AGENTS.md`") && page.contains("`CLAUDE.md`"), "where a project tells its agents");
    }
}

/// One tool for each command, from the tree that the command line uses.
mod command_tools {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn commands_are_tools_and_those_that_change_something_wait_for_a_person() {
        let folder = tempfile::tempdir().unwrap();
        let mut client = StdioClient::start(folder.path(), &DATA);
        client.initialize().await;
        let early = client.call("schema", json!({})).await;
        assert!(early["isError"] == true && text(&early).contains("load_toolset"), "{early}");
        let load = json!({ "toolset": "commands", "include_write_tools": true });
        let loaded = client.call("load_toolset", load).await;
        let added = loaded["structuredContent"]["added"].as_array().unwrap_or_else(|| panic!("{loaded}"));
        let names: BTreeSet<&str> = added.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        let tree = gateway::cli::Cli::command();
        let exceptions = ["demo", "dev", "init", "runner", "runs", "serve", "stdio", "token"];
        let commands = tree.get_subcommands().map(clap::Command::get_name);
        assert_eq!(names, commands.filter(|name| !exceptions.contains(name)).collect::<BTreeSet<&str>>());
        for tool in added {
            let (name, words) = (tool["name"].as_str().unwrap(), tool["description"].as_str().unwrap());
            let help = tree.find_subcommand(name).and_then(|command| command.get_about()).unwrap().to_string();
            assert!(words.starts_with(help.trim_end_matches('.')), "{name}: {words}");
        }

        let help = client.call("switch", json!({ "args": ["-h"] })).await;
        assert!(help["isError"] != true && text(&help).contains("Usage: quartermaster switch"), "{help}");
        let schema = client.call("schema", json!({})).await;
        assert!(schema["isError"] != true && text(&schema).contains("$schema"), "{schema}");
        let missing = client.call("check", json!({ "args": ["nowhere.yaml"] })).await;
        assert!(missing["isError"] == true && text(&missing).contains("nowhere.yaml"), "{missing}");
        let list = client.call("switch", json!({ "args": ["list"] })).await;
        assert!(list["isError"] != true, "{list}");

        let set = json!({ "args": ["set", "toolset:helm", "--mode", "read-only", "--reason", "quiet"] });
        let waiting = client.call("switch", set).await;
        let waiting = &waiting["structuredContent"]["run"];
        assert_eq!(waiting["state"], "pending_approval", "{waiting}");
        let run_id = waiting["id"].as_str().unwrap().to_owned();
        let (code, shown, said) =
            run(folder.path(), &["runs", "show", &run_id, "--token-file", "data/approver.token"]).await;
        assert!(code == 0 && shown.contains("toolset:helm") && shown.contains("the switches now"), "{shown}{said}");
        // Whoever calls tools cannot decide.
        let (code, _, said) =
            run(folder.path(), &["runs", "approve", &run_id, "--token-file", "data/agent.token"]).await;
        assert!(code == 1 && said.contains("insufficient_scope"), "{said}");
        stdio_local::approve(folder.path(), &run_id).await;
        let ended = client.call("await_run", json!({ "run_id": run_id, "wait_ms": 20_000 })).await;
        assert_eq!(ended["structuredContent"]["run"]["state"], "succeeded", "{ended}");
        let list = client.call("switch", json!({ "args": ["list"] })).await;
        assert!(text(&list).contains("quiet"), "{list}");
        client.close();
        assert!(client.end().await.0.success());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_a_command_prints_on_either_stream_is_its_result_and_a_bad_end_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("good.yaml"), "tenant: acme\n").unwrap();
        std::fs::write(folder.path().join("bad.yaml"), "tenant: acme\ncolour: red\n").unwrap();
        let mut client = StdioClient::start(folder.path(), &DATA);
        client.initialize().await;
        client.call("load_toolset", json!({ "toolset": "commands" })).await;
        for words in [&["good.yaml"][..], &["bad.yaml"], &["--no-such-flag"]] {
            let (code, out, errors) = run(folder.path(), &[&["check"], words].concat()).await;
            let result = client.call("check", json!({ "args": words })).await;
            assert_eq!(result["isError"] == true, code != 0, "{words:?}: {result}");
            let printed = text(&result);
            for line in out.lines().chain(errors.lines()).map(str::trim).filter(|line| !line.is_empty()) {
                assert!(printed.contains(line), "{line:?} of {words:?} in\n{printed}");
            }
        }
        client.close();
        assert!(client.end().await.0.success());
    }
}

/// One tool for each runbook of every level.
mod runbook_tools {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn runbooks_of_the_project_are_listed_at_once_and_run_in_this_process_when_a_person_agrees() {
        let folder = tempfile::tempdir().unwrap();
        let mut client = in_project(folder.path()).await;
        let tools = client.tools().await;
        let listed: Vec<&String> = tools.iter().filter(|name| name.starts_with("runbook__shop__")).collect();
        assert_eq!(listed.len(), 5, "all levels are listed, and names differ: {tools:?}");

        let first = approved(folder.path(), &mut client, "runbook__shop__seed", json!({ "key": "abc" })).await;
        assert!(first["isError"] != true && first.to_string().contains("seeding"), "{first}");
        assert_eq!(std::fs::read_to_string(folder.path().join("shop/marker-abc")).unwrap(), "done\n");
        let again = approved(folder.path(), &mut client, "runbook__shop__seed", json!({ "key": "abc" })).await;
        assert!(again["isError"] != true && !again.to_string().contains("seeding"), "its check ends it: {again}");
        let failed = approved(folder.path(), &mut client, "runbook__shop__fail", json!({})).await;
        assert!(failed["isError"] == true && failed.to_string().contains("broken"), "{failed}");
        // Whoever wrote the project vouches for nothing.
        let look = approved(folder.path(), &mut client, "runbook__shop__look", json!({})).await;
        assert!(look.to_string().contains("looked"), "{look}");
        client.close();
        assert!(client.end().await.0.success());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn names_fit_what_clients_take_and_differ_whatever_authors_write() {
        let folder = tempfile::tempdir().unwrap();
        let long = "x".repeat(90);
        let names = ["seed data", "seed.data", "seed$(data)", "größe", &long, "-rf", "a;b"];
        let entries: String =
            names.iter().map(|name| format!("  - {{ name: {}, run: [\"true\"] }}\n", json!(name))).collect();
        std::fs::write(folder.path().join("quartermaster.yaml"), format!("runbooks:\n{entries}")).unwrap();
        let mut client = StdioClient::start(folder.path(), &DATA);
        client.initialize().await;
        let tools = client.tools().await;
        let listed: BTreeSet<&String> = tools.iter().filter(|name| name.starts_with("runbook__")).collect();
        assert_eq!(listed.len(), names.len(), "one tool for each, no two alike: {tools:?}");
        let fits =
            |name: &String| name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        assert!(listed.iter().all(|name| fits(name)), "{listed:?}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_overlay_of_a_call_comes_last_and_the_approver_sees_it() {
        let yard = RunbookYard::open().await.with_runner().await;
        let call = json!({ "key": "over", "env": { "REGION": "us-east-1", "DEBUG": "1" } });
        let run = pending(&yard.agent.call(SEED, call).await);
        let shown = show(&yard.ana, &run).await["preview"]["text"].as_str().unwrap().to_owned();
        for part in [
            "where: a runner of shop-hosts",
            "time: 60 s",
            "check, one word each",
            "seeded-over\"",
            "  QM_ARG_KEY=\"over\" (argument)",
            "  REGION=\"us-east-1\" (given by the caller, instead of the runbook's)",
            "  DEBUG=\"1\" (given by the caller)",
            "  TOKEN: the tenant's secret shop_token, which is not shown",
            "nothing runs before an approval",
            "runbook sha256: ",
        ] {
            assert!(shown.contains(part), "{part} in\n{shown}");
        }
        assert!(!shown.contains("hunter2"), "{shown}");
        assert_eq!(yard.effects("over"), 0, "not even its check has run");
        approve(&yard.ana, &run).await;
        let done = await_run(&yard.agent, &run).await;
        let output = done.ok()["result"]["output"].as_str().unwrap().to_owned();
        assert!(output.contains("region=us-east-1"), "{output}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_secret_reaches_the_command_and_nobody_else() {
        let yard = RunbookYard::open().await.with_runner().await;
        let done = yard.approved(SEED, json!({ "key": "secret" })).await;
        let text = done.answer.text();
        assert!(text.contains("token=") && !text.contains("hunter2"), "{text}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_read_that_the_operator_vouches_for_runs_at_once() {
        let yard = RunbookYard::open().await.with_runner().await;
        let done = yard.agent.call("runbook__shop__status", json!({})).await;
        assert_eq!(
            (&done.ok()["outcome"], &done.ok()["output"]),
            (&json!("succeeded"), &json!("all is well\n")),
            "{done:?}"
        );
        let tool = listed(&yard.agent, "runbook__shop__status").await;
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_a_command_prints_is_told_while_it_runs() {
        let yard = RunbookYard::open().await.with_runner().await;
        let call = json!({ "name": "runbook__shop__status", "arguments": {}, "_meta": { "progressToken": "p" } });
        let messages = yard.agent.stream(&yard.agent.prepare("tools/call", call)).await.rest().await;
        let told: Vec<&str> = messages.iter().filter_map(|message| message["params"]["message"].as_str()).collect();
        assert!(told.contains(&"all is well"), "{messages:?}");
        let last = messages.last().unwrap();
        assert_eq!(last["result"]["structuredContent"]["outcome"], "succeeded", "{last}");
    }
}

/// What arguments are, and the rules they are held to.
mod typed_arguments {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_runbook_is_one_tool_with_typed_arguments_and_is_listed_without_a_runner() {
        let yard = RunbookYard::open().await;
        let tool = listed(&yard.agent, SEED).await;
        let schema = &tool["inputSchema"];
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["required"], json!(["key"]));
        assert_eq!(schema["properties"]["key"]["type"], "string");
        assert_eq!(schema["properties"]["key"]["description"], "value written to the marker");
        assert_eq!(
            (&schema["properties"]["times"]["type"], &schema["properties"]["times"]["default"]),
            (&json!("number"), &json!(1))
        );
        assert_eq!(schema["properties"]["loud"]["type"], "boolean");
        assert_eq!(schema["properties"]["env"]["type"], "object", "the generic overlay is on every runbook");
        assert_eq!(
            listed(&yard.agent, "runbook__shop__fail").await["inputSchema"]["properties"]["env"]["type"],
            "object"
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn arguments_are_checked_against_their_rules_before_anybody_is_asked() {
        let yard = RunbookYard::open().await.with_runner().await;
        for (arguments, code, words) in [
            (json!({}), "invalid_argument", "key"),
            (json!({ "key": "UPPER" }), "invalid_argument", "must match"),
            (json!({ "key": "a", "times": 10 }), "invalid_argument", "times"),
            (json!({ "key": "a", "times": true }), "invalid_argument", "times"),
            (json!({ "key": "a", "loud": "perhaps" }), "invalid_argument", "loud"),
            (json!({ "key": "a", "colour": "red" }), "unknown_argument", "colour"),
            (json!({ "key": "a", "env": { "PATH": "/tmp" } }), "invalid_argument", "PATH"),
            (json!({ "key": "a", "env": { "LD_PRELOAD": "/tmp/x.so" } }), "invalid_argument", "LD_PRELOAD"),
            (json!({ "key": "a", "env": { "QM_ARG_KEY": "../../x" } }), "invalid_argument", "QM_ARG_KEY"),
            (json!({ "key": "a", "env": { "A": 1 } }), "invalid_argument", "env"),
        ] {
            let outcome = yard.agent.call(SEED, arguments.clone()).await;
            assert_eq!(outcome.code(), code, "{arguments}: {outcome:?}");
            assert!(outcome.answer.text().contains(words), "{arguments}: {outcome:?}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_an_author_may_not_write_is_told_with_its_place_before_anybody_calls() {
        let folder = tempfile::tempdir().unwrap();
        for (lines, words) in [
            ("run: [\"echo\", \"{{ args.other }}\"]", "other"),
            ("run: [\"echo\", \"{{ args.x }}\"]\n    arguments: { x: { type: string } }", "x"),
            ("run: [\"echo\"]\n    arguments: { x: { type: colour } }", "colour"),
            ("run: [\"echo\"]\n    arguments: { x: { type: number, default: many } }", "a number"),
            ("run: [\"{{ args.x }}\"]\n    arguments: { x: { required: true } }", "program"),
            ("run: [\"echo\"]\n    after: start", "after"),
        ] {
            let file =
                format!("tenant: acme\nmode: write\nrunbooks:\n  - name: a\n    where: {{ runner: r }}\n    {lines}\n");
            std::fs::write(folder.path().join("acme.yaml"), &file).unwrap();
            let (code, out, errors) = run(folder.path(), &["check", "acme.yaml"]).await;
            let told = format!("{out}{errors}");
            let place = (6..=7).any(|line| told.contains(&format!("acme.yaml:{line}:")));
            assert!(code == 1 && place && told.contains(words), "{file}\n{code} {told}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn no_shell_sees_an_argument_as_code() {
        let yard = RunbookYard::open().await.with_runner().await;
        let trap = yard.folder.path().join("pwned");
        let touch = format!("touch {}", trap.display());
        let corpus = [
            format!("$({touch})"),
            format!("`{touch}`"),
            format!("; {touch}"),
            format!("&& {touch} &"),
            format!("| {touch}"),
            format!("'; {touch}; '"),
            format!("\"; {touch}; \""),
            format!("a\n{touch}\n"),
            format!("${{IFS}}{touch}"),
            "$(TOKEN) ${TOKEN} %s%n \\x00".to_owned(),
            "{{ args.text }} {{ params.shop_token }}".to_owned(),
            "*?[a-z]~!#".to_owned(),
            "../../../etc/passwd".to_owned(),
        ];
        for text in corpus {
            let done = yard.approved("runbook__shop__show", json!({ "text": text, "env": { "OVER": text } })).await;
            let output = done.ok()["result"]["output"].as_str().unwrap().to_owned();
            let expected = format!("<{text}>|end\n");
            assert_eq!(output.replace("\r", ""), expected, "{text:?}");
            assert!(!trap.exists(), "{text:?} was executed");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn no_variable_of_a_caller_is_code_by_its_name() {
        let yard = RunbookYard::open().await.with_runner().await;
        let trap = yard.folder.path().join("pwned");
        let touch = format!("touch {}", trap.display());
        let hostile = [
            format!("$({touch})"),
            format!("`{touch}`"),
            format!("A;{touch}"),
            format!("A={touch}"),
            format!("A\n{touch}\n"),
            format!("() {{ :; }}; {touch}"),
            format!("BASH_FUNC_printf%%=() {{ {touch}; }}"),
            "BASH_FUNC_printf%%".to_owned(),
            "../../etc/passwd".to_owned(),
            "A\u{202e}B".to_owned(),
            "LD_PRELOAD".to_owned(),
            "BASH_ENV".to_owned(),
            "ENV".to_owned(),
            "PS4".to_owned(),
            "IFS".to_owned(),
            String::new(),
        ];
        for name in hostile {
            let mut env = serde_json::Map::new();
            env.insert(name.clone(), json!(touch));
            let outcome = yard.agent.call("runbook__shop__show", json!({ "text": "a", "env": env })).await;
            assert_eq!(outcome.code(), "invalid_argument", "{name:?}: {outcome:?}");
        }
        // A name that is allowed stays a variable, whatever a shell would make of its value.
        let env = json!({ "OVER": format!("() {{ :; }}; {touch}") });
        yard.approved("runbook__shop__show", json!({ "text": "a", "env": env })).await.ok();
        assert!(!trap.exists(), "a variable was executed");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_folder_is_a_name_and_never_code() {
        let outer = tempfile::tempdir().unwrap();
        for name in
            ["a b", "$(touch pwned)", "`touch pwned`", "x; touch pwned", "it's \"x\"", "-rf", "{{ args.key }}", "a\nb"]
        {
            let folder = outer.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            let mut client = in_project(&folder).await;
            let done = approved(&folder, &mut client, "runbook__shop__seed", json!({ "key": "abc" })).await;
            assert!(done["isError"] != true && done.to_string().contains("seeding"), "{name:?}: {done}");
            assert_eq!(std::fs::read_to_string(folder.join("shop/marker-abc")).unwrap(), "done\n", "{name:?}");
            client.close();
            assert!(client.end().await.0.success());
            let found =
                [outer.path(), &folder, &folder.join("shop"), &folder.join("shop/src")].map(|at| at.join("pwned"));
            assert!(found.iter().all(|trap| !trap.exists()), "{name:?} was executed");
        }
    }
}

/// Nobody is there to execute it.
mod no_runner {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn without_a_runner_a_call_is_an_error_that_says_how_to_start_one() {
        let yard = RunbookYard::open().await;
        let refusal = yard.agent.call(SEED, json!({ "key": "a" })).await.refusal().clone();
        assert_eq!(refusal["code"], "runner_offline", "{refusal}");
        assert!(refusal["next"].as_str().unwrap().contains("quartermaster runner --label shop-hosts"), "{refusal}");
        let yard = yard.with_runner().await;
        yard.approved(SEED, json!({ "key": "a" })).await.ok();
        assert_eq!(yard.effects("a"), 1, "found, then started, then called");
    }
}

/// A failure ends the call and nothing else.
mod failed_call {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_failed_runbook_is_an_error_with_its_output_and_everything_goes_on() {
        let yard = RunbookYard::open().await.with_runner().await;
        let failed = yard.approved("runbook__shop__fail", json!({})).await.refusal().clone();
        assert_eq!(failed["code"], "runbook_failed", "{failed}");
        let message = failed["message"].as_str().unwrap();
        for part in ["shop/fail failed", "`run` exited with 3", "out", "err"] {
            assert!(message.contains(part), "{part} in {message}");
        }
        assert_eq!(
            (&failed["details"]["step"], &failed["details"]["exit_code"]),
            (&json!("run"), &json!(3)),
            "{failed}"
        );
        // The same runner and the same session take the next one.
        yard.approved(SEED, json!({ "key": "after" })).await.ok();
        assert_eq!(yard.effects("after"), 1);
    }
}

/// A runbook can be called at any time.
mod calling_again {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn an_approved_runbook_runs_once_and_a_second_call_is_ended_by_its_check() {
        let yard = RunbookYard::open().await.with_runner().await;
        let first = yard.approved(SEED, json!({ "key": "k1", "times": "3", "loud": true })).await;
        let result = &first.ok()["result"];
        assert_eq!(
            (&result["outcome"], &result["runbook"]),
            (&json!("succeeded"), &json!("shop/seed-data")),
            "{first:?}"
        );
        assert_eq!(result["untrusted"], true);
        let output = result["output"].as_str().unwrap();
        assert!(output.contains("times=3 loud=true region=eu-west-1"), "{output}");
        let again = yard.approved(SEED, json!({ "key": "k1", "times": "3", "loud": true })).await;
        assert_eq!(again.ok()["result"]["outcome"], "already_done", "{again:?}");
        assert_eq!(yard.effects("k1"), 1);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_runbook_without_a_check_runs_with_every_call() {
        let yard = RunbookYard::open().await.with_runner().await;
        let mut runs = BTreeSet::new();
        for _ in 0..2 {
            let run = pending(&yard.agent.call("runbook__shop__show", json!({ "text": "again" })).await);
            approve(&yard.ana, &run).await;
            let done = await_run(&yard.agent, &run).await;
            assert_eq!(done.ok()["result"]["output"], "<again>|end\n", "{done:?}");
            runs.insert(run);
        }
        assert_eq!(runs.len(), 2, "each call is a run of its own");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_job_is_named_after_its_run_so_submitting_it_again_changes_nothing() {
        let yard = RunbookYard::open().await.with_runner().await;
        let run = pending(&yard.agent.call(SEED, json!({ "key": "once" })).await);
        approve(&yard.ana, &run).await;
        assert_eq!(ended(&yard.ana, &run).await["state"], "succeeded");
        let jobs = yard.world.part(0).store.of(&acme()).jobs();
        let id = domain::JobId::of(&run);
        let (found, _) = jobs.find(id).await.unwrap();
        let job = found.expect("the job of the run").job;
        assert!(job.spec.env.values().all(|variable| variable.value.is_empty()), "no secret is left in the store");
        let again = jobs.submit(id, &run, job.spec.clone(), LEASE).await.unwrap();
        assert!(matches!(again, store::JobSubmission::Existing(_)), "{again:?}");
        assert_eq!(yard.effects("once"), 1);
    }
}

/// What a call can reach.
mod scope {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn the_chain_begins_where_the_server_was_started() {
        let folder = tempfile::tempdir().unwrap();
        let (shop, beside) = (folder.path().join("shop/src"), folder.path().join("beside"));
        std::fs::create_dir_all(&shop).unwrap();
        std::fs::create_dir_all(&beside).unwrap();
        let level = |name: &str| format!("runbooks:\n  - {{ name: {name}, group: g, run: [\"true\"] }}\n");
        std::fs::write(folder.path().join("quartermaster.yaml"), level("outer")).unwrap();
        std::fs::write(folder.path().join("shop/quartermaster.yaml"), level("inner")).unwrap();
        std::fs::write(shop.join("quartermaster.yaml"), level("innermost")).unwrap();
        for (from, wanted) in [
            (&shop, &["runbook__g__innermost", "runbook__g__inner", "runbook__g__outer"][..]),
            (&beside, &["runbook__g__outer"]),
        ] {
            let data = folder.path().join(format!("data-{}", wanted.len())).display().to_string();
            let mut client = StdioClient::of(program(from, &["stdio", "--data", &data]));
            client.initialize().await;
            let tools = client.tools().await;
            let listed: BTreeSet<&str> =
                tools.iter().map(String::as_str).filter(|name| name.starts_with("runbook__")).collect();
            assert_eq!(listed, wanted.iter().copied().collect(), "from {}", from.display());
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn another_tenant_has_none_of_it() {
        let yard = RunbookYard::open().await;
        let other = yard.world.tenant("other").agent().legacy().await;
        let called = other.call(SEED, json!({ "key": "a" })).await;
        assert_eq!(called.code(), "unknown_tool");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_changed_runbook_voids_what_was_approved() {
        let yard = RunbookYard::open().await.with_runner().await;
        let run = pending(&yard.agent.call(SEED, json!({ "key": "stale" })).await);
        let changed = file(yard.folder.path()).replace("echo \\\"times=", "echo \\\"other=");
        assert_ne!(changed, file(yard.folder.path()));
        yard.world.configure("acme", &changed);
        until("the changed runbook", async || {
            let tool = listed(&yard.agent, SEED).await;
            tool["description"].as_str().unwrap().contains("other=").then_some(())
        })
        .await;
        approve(&yard.ana, &run).await;
        let told = ended(&yard.ana, &run).await;
        assert_eq!((&told["state"], &told["outcome"]["code"]), (&json!("failed"), &json!("stale")), "{told:#}");
        assert_eq!(yard.effects("stale"), 0);
    }
}
