//! `jenkins_log`: what a build wrote, newest lines first to be kept.
//!
//! A window of the console is masked line by line before the search expression sees it. It begins some lines earlier
//! than is shown, so that a private key that began before it is still known for one.

mod window;

use super::grammar::{BuildText, JobText, StageText};
use super::reply::{JenkinsReplyFields, ServerNote};
use super::{JenkinsDeps, TOOLSET};
use crate::client::{BuildSelector, JobPath, PermittedServer};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use target::cursor::Cursor;
use target::grammar::Label;
use target::grep::Grep;
use target::reply::ROOM;
use window::{ConsoleLine, LogWindow};

const TAIL: usize = 200;
/// How far back one call looks: with a search expression further, as far as one answer goes with some room for the line
/// ends it adds.
const WINDOW: u64 = 512 * 1024;
const SEARCHED: u64 = 7 * 1024 * 1024;
/// What is read before the window for its context: as many bytes as a private key may take.
const CONTEXT: u64 = 16 * 1024;

pub(super) struct Log {
    pub(super) kit: JenkinsDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    job: JobText,
    build: Option<BuildText>,
    stage: Option<StageText>,
    grep: Option<Grep>,
    #[schemars(range(min = 1, max = 2_000), extend("x-wire" = ["maximum"]))]
    tail: Option<u32>,
    cursor: Option<Cursor>,
    server: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct BuildLogOutput {
    /// Which build it is.
    number: u32,
    text: String,
    /// How many lines are shown.
    lines: usize,
    /// How long the whole log is, in bytes.
    size: u64,
    running: bool,
    #[serde(flatten)]
    common: JenkinsReplyFields,
}

/// Where older lines end.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct BuildLogPageToken {
    number: u32,
    end: u64,
}

impl Tool for Log {
    const SPEC: ToolSpec = ToolSpec::new("jenkins_log", TOOLSET, Effect::Read)
        .says(
            "Read a Jenkins log",
            "Console log, from the end unless cursor is given; grep is a regex; stage is an id from stages.",
        )
        .hint(
            "For agents that find the line where a build broke; whoever can push code can write into it, so the \
             session is tainted from the first look.",
        )
        .idempotent()
        .outside_text();
    type Args = Args;
    type Output = BuildLogOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<BuildLogOutput, Failure> {
        let spot: Option<BuildLogPageToken> = self.kit.cursors.resume(permit, &args, args.cursor.as_ref())?;
        let server = self.kit.server(permit, args.server.as_ref())?;
        let job = args.job.path()?;
        let which = spot.map_or(BuildText::which(args.build.as_ref()), |spot| BuildSelector::Number(spot.number));
        let build = server.build(&job, which).await?;
        let common = ServerNote::answer(&server, args.server.is_some());
        let found = BuildLogOutput {
            number: build.number,
            text: String::new(),
            lines: 0,
            size: 0,
            running: build.running,
            common,
        };
        match &args.stage {
            Some(stage) => {
                super::build::pipeline(&build)?;
                let log = server.stage_log(&job, build.number, stage.id()).await?;
                Ok(stage_told(found, &log, &args))
            }
            None => self.console(permit, &server, (&job, &args), spot, found).await,
        }
    }
}

impl Log {
    async fn console(
        &self,
        permit: &Permit,
        server: &PermittedServer<'_>,
        (job, args): (&JobPath, &Args),
        spot: Option<BuildLogPageToken>,
        mut found: BuildLogOutput,
    ) -> Result<BuildLogOutput, Failure> {
        let size = server.log_size(job, found.number).await?;
        (found.size, found.running) = (size.bytes, size.running);
        let end = spot.map_or(size.bytes, |spot| spot.end.min(size.bytes));
        if end == 0 {
            return Ok(found);
        }
        let (lines, begin) = read(server, (job, found.number), end, size.bytes, args.grep.is_some()).await?;
        let first = lines.first().map_or(begin, |line| line.at);
        let kept = window::newest(lines, args.grep.as_ref(), args.tail(), ROOM);
        let oldest = kept.lines.first().map_or(first, |line| line.at);
        told(&mut found, kept);
        if oldest > 0 {
            let spot = BuildLogPageToken { number: found.number, end: oldest };
            found.common.next_cursor = Some(self.kit.cursors.seal(permit, args, &spot)?);
            if found.lines == 0 {
                found.common.hint = Some("nothing in this part of the log; go on with cursor".to_owned());
            }
        }
        Ok(found)
    }
}

/// The masked lines of the window that ends here, and where it begins.
async fn read(
    server: &PermittedServer<'_>,
    (job, number): (&JobPath, u32),
    end: u64,
    size: u64,
    searched: bool,
) -> Result<(Vec<ConsoleLine>, u64), Failure> {
    let mut looked = if searched { SEARCHED } else { WINDOW };
    loop {
        let begin = end.saturating_sub(looked);
        let start = begin.saturating_sub(CONTEXT);
        let length = usize::try_from(end - start).unwrap_or(usize::MAX);
        let mut part = server.log_part(job, number, start, length).await?;
        // What did not fit into one answer is the end, which is wanted first: so less is asked for.
        if !part.whole && looked > CONTEXT {
            looked /= 2;
            continue;
        }
        if end < size {
            // A piece of a line at the end belongs to what was shown before.
            part.bytes.truncate(part.bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
        }
        return Ok((window::masked(&part.bytes, start, begin), begin));
    }
}

impl Args {
    fn tail(&self) -> usize {
        self.tail.map_or(TAIL, |tail| usize::try_from(tail).unwrap_or(TAIL))
    }
}

fn told(found: &mut BuildLogOutput, kept: LogWindow) {
    found.lines = kept.lines.len();
    found.text = kept.lines.iter().map(|line| format!("{}\n", line.text)).collect();
    found.common.cut_lines(kept.no_room, "narrow with grep or tail, or go on with cursor");
}

fn stage_told(mut found: BuildLogOutput, log: &crate::client::StageLog, args: &Args) -> BuildLogOutput {
    let lines: Vec<ConsoleLine> = window::masked(log.text.as_bytes(), 0, 0);
    found.size = u64::try_from(log.text.len()).unwrap_or(u64::MAX);
    told(&mut found, window::newest(lines, args.grep.as_ref(), args.tail(), ROOM));
    if log.cut {
        found.common.truncated = true;
        found.common.hint =
            Some("the server gives only the end of a stage's log; leave stage out for all of it".to_owned());
    }
    found
}
