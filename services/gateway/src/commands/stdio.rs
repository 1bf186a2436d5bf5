//! `stdio`: MCP on standard input and output, with the tools of this process or those of a hosted service.
//!
//! Standard output carries the protocol and nothing else; everything that is said to a person goes to standard error.
//! The process ends with its input, within a second.

use crate::app::Gateway;
use crate::cli::{APPROVER_TOKEN, StdioCommand};
use crate::commands::data_folder::{self, DataFolder, TENANT};
use crate::commands::{CommandOutcome, reserve_stdout, runtime, say};
use crate::protocol::Instructions;
use crate::server;
use crate::stdio::bridge::{self, Bridge};
use crate::stdio::command_tools::CommandTools;
use crate::stdio::connection::Connection;
use crate::stdio::local::{LocalService, Welcome};
use crate::stdio::{Project, project};
use crate::toolsets::LocalParts;
use anyhow::{Context, ensure};
use domain::job::RunnerLabel;
use domain::{RunnerId, Tenant};
use executor::Tasks;
use mcp::forward::MessageHead;
use mcp::{MessageFault, WireError};
use runbooks::LocalRunbooks;
use runbooks::local::LOCAL_LABEL;
use runner::{AllowList, Host, JobClient, NamePattern, RunnerOptions, RunnerStop};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{BufReader, Stdin, Stdout};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How much of the input is read at once.
const BUFFER: usize = 64 * 1024;
/// How long background work and the store may take at the end.
const LAST_WORK: Duration = Duration::from_millis(100);
/// How long threads may take at the end.
const LAST_THREADS: Duration = Duration::from_millis(200);
/// Runbooks that run at once.
const JOBS: u32 = 4;
/// How long commands of runbooks may take once they are asked to end.
const GRACE: Duration = Duration::from_millis(200);
/// Longer than the service waits for a job.
const WAITS: Duration = Duration::from_secs(60);
/// The variables of the user that commands of runbooks get.
const PASSED_ON: [&str; 5] = ["PATH", "HOME", "LANG", "USER", "TMPDIR"];
/// The subject of the local user's token.
const SUBJECT: &str = "stdio@dev";
/// What that token may do. It never holds a scope that decides or administers.
const SCOPES: &str = "tools:read tools:write";

/// What a model should know before it chooses among the tools.
const PURPOSE: &str = "Quartermaster has the tools for operating this project. What changes something waits until the \
    user approves it with `quartermaster runs`.";
/// The same where the project has runbooks.
const RUNBOOKS: &str = "Quartermaster runs the runbooks of this project, which its quartermaster.yaml declares. Use them \
    instead of making up commands for the same task. What changes something waits until the user approves it with \
    `quartermaster runs`.";
/// The toolset of runbooks.
const RUNBOOKS_TOOLSET: &str = "runbooks";

pub(super) fn run(args: &StdioCommand) -> anyhow::Result<CommandOutcome> {
    reserve_stdout();
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let stop = stopped()?;
        match (&args.url, &args.token_file) {
            (Some(url), Some(token_file)) => forward(url, token_file, stop).await,
            _ => match Box::pin(serve(args, stop.clone())).await {
                Ok(outcome) => Ok(outcome),
                Err(error) => {
                    refuse(&error, stop).await;
                    Ok(CommandOutcome::Unusable)
                }
            },
        }
    });
    // Whatever is dropped now takes its processes along. A thread that reads the input or writes to a client that does not
    // read cannot be stopped, and is not waited for longer.
    runtime.shutdown_timeout(LAST_THREADS);
    outcome
}

/// Cancelled by the first signal that says stop.
fn stopped() -> anyhow::Result<CancellationToken> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    Tasks::default().spawn("stop signals", async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        stopping.cancel();
    });
    Ok(stop)
}

fn connect(cap: usize, tasks: &Tasks, stop: CancellationToken) -> Connection<BufReader<Stdin>> {
    let (input, output): (Stdin, Stdout) = (tokio::io::stdin(), tokio::io::stdout());
    Connection::open(BufReader::with_capacity(BUFFER, input), output, cap, tasks, stop)
}

/// Passes everything on to a hosted service.
async fn forward(url: &str, token_file: &Path, stop: CancellationToken) -> anyhow::Result<CommandOutcome> {
    let tasks = Tasks::default();
    let bridge = Bridge::open(url, token_file, tasks.clone())?;
    bridge.serve(connect(bridge::LONGEST_LINE, &tasks, stop)).await;
    Ok(CommandOutcome::Done)
}

/// Serves the tools of this process.
async fn serve(args: &StdioCommand, stop: CancellationToken) -> anyhow::Result<CommandOutcome> {
    ensure!(args.listen.ip().is_loopback(), "--listen is for people on this machine: it must be a loopback address");
    // Before the working directory changes, from which it may be named.
    let named = args.data.as_ref().map(std::path::absolute).transpose()?;
    if let Some(folder) = &args.project {
        std::env::set_current_dir(folder).with_context(|| format!("cannot work in {}", folder.display()))?;
    }
    let here = std::env::current_dir().context("the working directory is not there")?;
    let project = Project::find(&here);
    let data = match named {
        Some(data) => data,
        None => data_folder::of_project(&project).context("there is no home folder; name a folder with --data")?,
    };
    let listener = TcpListener::bind(args.listen).with_context(|| format!("cannot listen on {}", args.listen))?;
    let folder = Arc::new(DataFolder::open(&data, "stdio", listener.local_addr()?, args.cluster.as_deref())?);
    let mut settings = folder.settings(None)?;
    // Whoever decides there is one person.
    settings.listen.workers = 1;
    let http = egress::telemetry_sender().context("cannot build the HTTP client")?;
    let replica = format!("pid-{}", std::process::id());
    let guard = telemetry::start(&settings.telemetry, &replica, &http).context("telemetry cannot start")?;
    let cap = settings.listen.body_bytes;
    let commands = CommandTools::new(folder.path().to_owned())?;
    let LocalRunbooks { runbooks, problems, warnings, .. } = LocalRunbooks::find(&here);
    problems.iter().for_each(|problem| say(&format!("{problem}\n")));
    warnings.iter().for_each(|warning| say(&format!("warning: {warning}\n")));
    let has_runbooks = !runbooks.is_empty();
    let gateway = Gateway::build_local(settings, LocalParts { toolsets: vec![Arc::new(commands)], runbooks }).await?;
    let deciding = server::start_on(&gateway, listener)?;
    folder.write_tokens()?;
    say(&banner(&folder, &project));
    let minting = Arc::clone(&folder);
    let mint = Box::new(move || minting.token(SUBJECT, TENANT, SCOPES));
    let service = LocalService::new(Arc::clone(&gateway), mint, welcome(&gateway, &project));
    let stop_runner = RunnerStop::default();
    if has_runbooks {
        let options = project_runner(&folder, project.root())?;
        gateway.tasks.spawn("project runner", run_jobs(options, stop_runner.clone()));
    }
    service
        .serve(connect(cap, &gateway.tasks, stop), || {
            stop_runner.drain.cancel();
            stop_runner.now.cancel();
        })
        .await;
    let ended = async {
        gateway.upstreams.close().await;
        deciding.stop_now(LAST_WORK).await;
    };
    if tokio::time::timeout(LAST_WORK * 2, ended).await.is_err() {
        tracing::debug!("some work was still under way at the end");
    }
    drop(guard);
    Ok(CommandOutcome::Done)
}

/// A runner inside this process for the runbooks of the project. It is an ordinary one with an ordinary token, so what it
/// executes is claimed, fenced, bounded and reported like everywhere; only its commands end with this process.
fn project_runner(folder: &DataFolder, root: &Path) -> anyhow::Result<RunnerOptions> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits)?;
    let url = folder.address();
    let url = url.trim_end_matches("/mcp");
    let http = egress::service_client(url, &egress::Config { answer_within: WAITS, ..egress::Config::default() })?;
    let token_file = folder.write_runner_token(LOCAL_LABEL)?;
    let mut client = JobClient::new(url, token_file, http, RunnerId::from_random(bits));
    client.labels.extend(RunnerLabel::parse(LOCAL_LABEL));
    (client.name, client.slots) = ("stdio".to_owned(), JOBS);
    let mut host = Host { grace: GRACE, ..Host::new(root) };
    // What the user's own commands would find.
    let passed_on = std::env::vars().filter(|(name, _)| PASSED_ON.contains(&name.as_str()));
    host.env.extend(passed_on);
    // The service is this very process, and what the project declares is what the user approves.
    let allow = AllowList::new(NamePattern::parse("*").into_iter().collect(), None);
    Ok(RunnerOptions { client, allow, host, drain: Duration::ZERO })
}

async fn run_jobs(options: RunnerOptions, stop: RunnerStop) {
    if let Err(fault) = runner::serve(options, &stop).await {
        tracing::error!(%fault, "the runbooks of this project cannot be executed");
    }
}

/// What the client finds: nothing is said where there is no project, and the runbooks of one are listed at once.
fn welcome(gateway: &Gateway, project: &Project) -> Welcome {
    let tenant = Tenant::parse(TENANT).ok().and_then(|tenant| gateway.tenants.find(&tenant));
    let toolsets = tenant.as_ref().map_or(&[][..], |tenant| tenant.catalog.toolsets());
    let has_runbooks = toolsets.iter().any(|set| set.name.as_str() == RUNBOOKS_TOOLSET);
    match (project.files(), has_runbooks) {
        ([], _) => Welcome { instructions: Instructions::Nothing, selection: None },
        ([..], false) => Welcome { instructions: Instructions::PurposeAndToolsets(PURPOSE.into()), selection: None },
        ([..], true) => {
            let others = toolsets.iter().filter(|set| set.default && set.name.as_str() != RUNBOOKS_TOOLSET);
            let mut names: Vec<String> = others.map(|set| set.name.to_string()).collect();
            names.push(format!("{RUNBOOKS_TOOLSET}:write"));
            let instructions = Instructions::PurposeAndToolsets(RUNBOOKS.into());
            Welcome { instructions, selection: Some(names.join(",")) }
        }
    }
}

/// A service that cannot start tells its client why, because few clients show what stands on standard error.
async fn refuse(error: &anyhow::Error, stop: CancellationToken) {
    say(&format!("quartermaster: {error:#}\n"));
    let tasks = Tasks::default();
    let mut connection = connect(bridge::LONGEST_LINE, &tasks, stop);
    while let Some(line) = connection.next().await {
        if let Ok(MessageHead::Request(request)) = mcp::forward::head(&line) {
            let error = WireError::new(MessageFault::ServiceUnreachable, format!("{error:#}"));
            connection.refuse(Some(request.id), error).await;
        }
    }
    connection.close().await;
}

fn banner(folder: &DataFolder, project: &Project) -> String {
    let data = folder.path().display();
    let files: Vec<String> = project.files().iter().map(|file| file.display().to_string()).collect();
    let project = match files.as_slice() {
        [] => format!("no {} here or above", project::FILE),
        files => files.join(", "),
    };
    format!(
        "Quartermaster serves MCP on standard input and output.\n  project    {project}\n  data       {data}\n  \
         decide     quartermaster runs --token-file {data}/{APPROVER_TOKEN}\n"
    )
}
