//! The console of a build, read in windows by byte offset.
//!
//! A start beyond the end would begin at the start again, so none is ever sent: the size is asked for first.
//! Offsets count the bytes Jenkins keeps. What it sends differs from that in two ways: hidden notes of plugins are left
//! out, and lines end with two bytes. The second is undone here; because of the first a window can overlap the next one
//! by a few lines, and never misses any.

use crate::client::connection::{BodyLimit, MOST_BYTES};
use crate::client::fault::header;
use crate::client::html;
use crate::client::path::{BuildSelector, JobPath};
use crate::client::request::{MissingSubject, ServerRequest, Verb};
use crate::client::server::PermittedServer;
use domain::{Code, Failure};
use serde::Deserialize;
use serde::de::DeserializeOwned;

const ROUTE: &str = "/job/{job}/{build}/logText/progressiveText";
/// How many steps of a stage are asked for their log; the last ones.
const MOST_STEPS: usize = 20;

/// How long a console is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSize {
    /// In bytes.
    pub bytes: u64,
    /// Whether the build still writes.
    pub running: bool,
}

/// A window of a console, as it was written: not masked, since only whoever knows where it begins can do that.
#[derive(Clone, PartialEq, Eq)]
pub struct LogPart {
    /// The bytes; a character may be cut at either end.
    pub bytes: Vec<u8>,
    /// Whether it goes as far as was asked for, or to the end of the console.
    pub whole: bool,
}

/// What was written is not printed by mistake.
impl std::fmt::Debug for LogPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LogPart({} bytes)", self.bytes.len())
    }
}

/// What one stage wrote, not masked either.
#[derive(Clone, PartialEq, Eq)]
pub struct StageLog {
    /// What its steps wrote, one after the other; of a long one the server gives the end.
    pub text: String,
    /// Whether there is more than was given.
    pub cut: bool,
}

impl PermittedServer<'_> {
    /// How long the console is now. The text that comes along is left where it is.
    pub async fn log_size(&self, job: &JobPath, number: u32) -> Result<LogSize, Failure> {
        let answer = self.read(&progressive(job, number, 0), BodyLimit::Part(0)).await?;
        let bytes = header(&answer, "x-text-size").and_then(|size| size.trim().parse().ok()).ok_or_else(|| {
            Failure::new(target::codes::UNSUPPORTED, "the server does not tell how long the log is")
                .next("try another build")
        })?;
        Ok(LogSize { bytes, running: header(&answer, "x-more-data") == Some("true") })
    }

    /// So many bytes of it, from an offset that must lie before its end.
    pub async fn log_part(&self, job: &JobPath, number: u32, start: u64, length: usize) -> Result<LogPart, Failure> {
        // At worst every byte is a line end of its own.
        let most = length.saturating_mul(2).min(MOST_BYTES);
        let answer = self.read(&progressive(job, number, start), BodyLimit::Part(most)).await?;
        let mut bytes = with_short_line_ends(answer.body);
        let whole = !answer.cut || bytes.len() >= length;
        bytes.truncate(length);
        Ok(LogPart { bytes, whole })
    }

    /// What one stage wrote. A stage is a block and writes nothing itself: its steps do.
    pub async fn stage_log(&self, job: &JobPath, number: u32, stage: u32) -> Result<StageLog, Failure> {
        let described = match self.node::<StageDescription>(job, number, stage, "describe").await {
            // Either the stage is not there, or nothing that could tell is.
            Err(failure) if failure.code == crate::codes::PLUGIN_MISSING => {
                let known: Vec<String> = self.stages(job, number).await?.into_iter().map(|stage| stage.id).collect();
                return Err(Failure::new(Code::NotFound, format!("the build has no stage {stage}"))
                    .next(format!("set stage to one of: {}", known.join(", "))));
            }
            other => other?,
        };
        let all = described.stage_flow_nodes;
        let steps = all.iter().rev().take(MOST_STEPS).rev().filter_map(|step| step.id.parse().ok());
        let mut log = StageLog { text: String::new(), cut: all.len() > MOST_STEPS };
        for step in std::iter::once(stage).chain(steps) {
            let said: NodeLogBody = self.node(job, number, step, "log").await?;
            log.text.push_str(&html::text(&said.text));
            log.cut |= said.has_more;
        }
        Ok(log)
    }

    async fn node<T: DeserializeOwned>(&self, job: &JobPath, number: u32, node: u32, what: &str) -> Result<T, Failure> {
        let rest = format!("/execution/node/{node}/wfapi/{what}");
        let route = "/job/{job}/{build}/execution/node/{id}/wfapi/{what}";
        let request = ServerRequest::build(Verb::Get, (job, BuildSelector::Number(number)), &rest, route);
        self.read_json(&request.or(MissingSubject::Plugin("pipeline-rest-api"))).await
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StageDescription {
    #[serde(default)]
    stage_flow_nodes: Vec<FlowNodeRef>,
}

#[derive(Deserialize)]
struct FlowNodeRef {
    id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeLogBody {
    #[serde(default)]
    text: String,
    #[serde(default)]
    has_more: bool,
}

/// Lines that end as they were written and not as they travelled.
pub(in crate::client) fn with_short_line_ends(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut kept = 0;
    for at in 0..bytes.len() {
        let travelled = bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n');
        if !travelled {
            bytes[kept] = bytes[at];
            kept += 1;
        }
    }
    bytes.truncate(kept);
    bytes
}

fn progressive(job: &JobPath, number: u32, start: u64) -> ServerRequest {
    ServerRequest::build(Verb::Get, (job, BuildSelector::Number(number)), "/logText/progressiveText", ROUTE)
        .query("start", start.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_as_they_were_written() {
        assert_eq!(with_short_line_ends(b"a\r\nb\rc\n\r\n\r".to_vec()), b"a\nb\rc\n\n\r");
        assert_eq!(with_short_line_ends(Vec::new()), b"");
    }
}
