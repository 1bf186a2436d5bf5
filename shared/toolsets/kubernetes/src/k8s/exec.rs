//! `k8s_exec`: runs a command in a container.
//!
//! The command is a list of words that reach the container as they are: there is no shell unless the first word is one,
//! and then the approver reads it. Nobody can tell afterwards whether a command ran, so it is never sent twice.

use super::argv::Argv;
use super::at;
use super::grammar::{Label, ObjectName};
use super::judged::{self, fingerprint, heading, unprotected};
use super::logs::one_container;
use super::reply::{ClusterNote, ClusterReplyFields};
use super::written::{KeptEnd, shown};
use super::{K8sDeps, TOOLSET};
use crate::client::{Cluster, KindScope, MaskDetail, ResourceRef};
use catalog::{PreviewBuilder, Progress, Tool, ToolPreview, ToolSpec};
use domain::json::sha256_hex;
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// How long a command may take unless the call says otherwise.
const TIMEOUT_S: u32 = 30;
/// What the looks before it may take.
const MARGIN: Duration = Duration::from_secs(25);

pub(super) struct ExecTool {
    pub(super) kit: K8sDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    pod: ObjectName,
    command: Argv,
    namespace: Option<Label>,
    container: Option<Label>,
    #[schemars(length(max = 65_536))]
    stdin: Option<String>,
    #[schemars(range(min = 1, max = 120), extend("x-wire" = ["maximum"]))]
    timeout_s: Option<u32>,
    cluster: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ExecOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    stdout: String,
    stderr: String,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

/// The container a command would run in.
struct ExecContainer {
    place: KindScope,
    target: ResourceRef,
    pod: Value,
    container: String,
}

impl ExecContainer {
    /// What is known about the container itself.
    fn container(&self) -> Option<&Value> {
        ["containers", "initContainers", "ephemeralContainers"]
            .into_iter()
            .flat_map(|list| self.pod["spec"][list].as_array().into_iter().flatten())
            .find(|container| container["name"] == self.container.as_str())
    }

    fn image(&self) -> &str {
        self.container().and_then(|container| container["image"].as_str()).unwrap_or("unknown")
    }

    fn account(&self) -> &str {
        self.pod["spec"]["serviceAccountName"].as_str().unwrap_or("default")
    }
}

async fn look(cluster: &Cluster<'_>, args: &Args) -> Result<ExecContainer, Failure> {
    let kind = cluster.kind("v1/Pod").await?;
    let place = at::place(cluster, &kind, args.namespace.as_ref()).await?;
    let target = at::target(&place, &args.pod)?;
    unprotected(cluster, &target)?;
    let pod = at::get(cluster, &place, &target, MaskDetail::Clean).await?;
    let container = one_container(&pod, args.container.as_ref().map(Label::as_str))?;
    Ok(ExecContainer { place, target, pod, container })
}

impl Args {
    fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_s.unwrap_or(TIMEOUT_S).into())
    }
}

impl Tool for ExecTool {
    const SPEC: ToolSpec = ToolSpec::new("k8s_exec", TOOLSET, Effect::Disrupt)
        .says("Run a command in a container", "Run a command (argv, no shell) in a container.")
        .hint(
            "Only where nothing else answers the question, since a command can do whatever the container can; a rule \
             can deny it, and `k8s_run` with a debug container often serves instead.",
        )
        .deadline(Duration::from_secs(120 + 30))
        .outside_text();
    type Args = Args;
    type Output = ExecOutput;

    /// Nobody can tell what a command does.
    fn effect(_: &Args) -> Effect {
        Effect::Disrupt
    }

    fn about(_: &Args) -> Option<String> {
        None
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let seen = look(&cluster, args).await?;
        Ok(Some(drawn(&cluster, &seen, args)))
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<ExecOutput, Failure> {
        let time = args.timeout() + MARGIN;
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?.within(time);
        let seen = look(&cluster, &args).await?;
        let command = crate::client::PodCommand {
            container: Some(seen.container.clone()),
            command: args.command.words().to_vec(),
            stdin: args.stdin.clone(),
            timeout: args.timeout(),
        };
        let ran = cluster.write()?.exec(&seen.target, &command).await?;
        let mut common =
            ClusterNote::answer_at(&cluster, &seen.place, (args.cluster.is_some(), args.namespace.is_some()));
        if ran.timed_out {
            let seconds = args.timeout().as_secs();
            let warning =
                format!("it did not end within {seconds} s; its output ends here, and the process may live on");
            common.warnings.push(warning);
        } else if ran.exit_code.is_none() {
            common.warnings.push("the container did not say how the command ended".to_owned());
        }
        if ran.truncated {
            common.truncated = true;
            common.hint = Some("let the command write less".to_owned());
        }
        let ((stdout, left_out), (stderr, left_err)) =
            (shown(&ran.stdout, KeptEnd::First), shown(&ran.stderr, KeptEnd::Last));
        for left in [left_out, left_err].into_iter().filter(|left| !left.is_none()) {
            common.cut(left, "let the command write less, or ask for a part of it");
        }
        Ok(ExecOutput { exit_code: ran.exit_code, stdout, stderr, common })
    }
}

/// Everything about the command that can be known before it runs. Words are quoted, so that none of them can pass for
/// several, hide behind a control character or run backwards.
fn drawn(cluster: &Cluster<'_>, seen: &ExecContainer, args: &Args) -> ToolPreview {
    let words: Vec<String> = args.command.words().iter().map(|word| format!("{word:?}")).collect();
    let mut preview = PreviewBuilder::new(format!("run a command: {}", heading(cluster, &seen.target)));
    preview.line(format!("container: {} ({})", seen.container, seen.image()));
    preview.line(format!("service account: {}", seen.account()));
    preview.line(format!("time: {} s", args.timeout().as_secs()));
    if let Some(stdin) = &args.stdin {
        preview.line(format!("stdin: {} bytes, sha256 {}", stdin.len(), sha256_hex(stdin.as_bytes())));
    }
    preview.line("command, one word each:");
    for word in &words {
        preview.line(format!("  {word}"));
    }
    let facts = json!({ "container": seen.container, "image": seen.image(), "account": seen.account() });
    let program = words.first().map_or("", String::as_str);
    let summary = format!("run {program} in {} ({})", seen.target, seen.container);
    warn(&mut preview, seen);
    judged::drawn(preview, summary, fingerprint(cluster, &seen.target, &seen.pod, facts))
}

fn warn(preview: &mut PreviewBuilder, seen: &ExecContainer) {
    let spec = &seen.pod["spec"];
    let privileged = seen.container().is_some_and(|container| container["securityContext"]["privileged"] == true);
    let on_host = ["hostPID", "hostNetwork", "hostIPC"].iter().any(|field| spec[field] == true);
    if privileged || on_host {
        preview.warn("the container is privileged or shares the node's own processes or network");
    }
    let phase = seen.pod["status"]["phase"].as_str().unwrap_or("Unknown");
    if phase != "Running" {
        preview.warn(format!("the pod is not running ({phase})"));
    }
}
