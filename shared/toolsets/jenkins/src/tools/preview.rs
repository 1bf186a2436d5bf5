//! What an approver is shown of a change, and what must still be so when it is carried out.
//!
//! What is shown may hold what moves by itself: results of other builds, how long something runs. What is judged is
//! which server and job, and the definitions of its parameters or the number of the build.

use crate::client::PermittedServer;
use catalog::ToolPreview;
use catalog::preview::{PreviewBuilder, judged_line, target_name};
use serde_json::json;

/// The most lines that are shown.
const MOST_LINES: usize = 180;

/// An empty preview about this server.
pub(super) fn of(server: &PermittedServer<'_>) -> PreviewBuilder {
    let name = target_name(server.name(), server.simulated());
    let mut preview = PreviewBuilder::new(format!("Jenkins server {name}, as {}", server.user()));
    // A server that was moved is another one, whatever its name; the sandbox is another one in each process.
    let at = if server.simulated() { "simulated" } else { server.base() };
    preview.fact(json!({ "server": server.name(), "at": at, "as": server.user() }));
    preview
}

/// The finished preview. Its text ends with the beginning of the fingerprint: two texts are the same only if what was
/// judged is, although the text itself may not say all of it.
pub(super) fn drawn(preview: PreviewBuilder, summary: impl Into<String>) -> ToolPreview {
    let digest = preview.digest();
    let mut lines: Vec<String> = preview.lines().iter().flat_map(|text| text.lines()).map(str::to_owned).collect();
    if lines.len() > MOST_LINES {
        let left = lines.len() - MOST_LINES;
        lines.truncate(MOST_LINES);
        lines.push(format!("… and {left} more lines"));
    }
    lines.push(judged_line(&digest));
    preview.build(summary, lines.join("\n"), format!("jenkins:{digest}"))
}
