//! What an approver is shown of a change, and what must still be so when it is carried out.
//!
//! What is shown may hold what moves by itself: results of other builds, how long something runs. What is judged is
//! which server and job, and the definitions of its parameters or the number of the build.

use crate::client::PermittedServer;
use catalog::ToolPreview;
use catalog::preview::{PreviewBuilder, judged_line, target_name};
use serde_json::json;

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
    let text = format!("{}\n{}", preview.lines().join("\n"), judged_line(&digest));
    preview.build(summary, text, format!("jenkins:{digest}"))
}
