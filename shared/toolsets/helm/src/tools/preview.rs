//! What an approver is shown of a change of a release, and what must still be so when it is carried out.
//!
//! What is judged: cluster, namespace, release, its newest revision, the chart's digest, which objects would be made,
//! changed and removed, hooks, and the warnings. Not judged are the contents of the objects: they follow from chart,
//! values and revision, except for what a chart makes up anew each time it is rendered, such as a password.

use super::objects::Difference;
use super::release::{ReleaseRef, RevisionSummary};
use catalog::ToolPreview;
use catalog::preview::{PreviewBlock, PreviewBuilder, digest, judged_line, target_name};
use kubernetes::client::{Cluster, HiddenText, without_marks};
use serde_json::json;

/// The most lines and bytes of all differences together in an answer. Whoever decides reads all of them.
const MOST_LINES: usize = 160;
const MOST_BYTES: usize = 20 * 1024;

/// A preview about this release, whose newest revision this is.
pub(super) fn of(spot: &ReleaseRef<'_>, newest: Option<&RevisionSummary>) -> PreviewBuilder {
    let base = newest.map(|newest| json!([newest.revision, newest.status]));
    let cluster = target_name(spot.cluster.name(), spot.cluster.simulated());
    let mut preview = PreviewBuilder::new(format!("release {}/{} on cluster {cluster}", spot.namespace, spot.name));
    preview.fact(json!({
        "cluster": spot.cluster.name(), "namespace": spot.namespace, "release": spot.name, "base": base,
    }));
    if let Some(newest) = newest {
        preview.line(format!("now: revision {}, {}, chart {}", newest.revision, newest.status, newest.chart));
    }
    preview
}

/// What would become of objects. Which, and what, is judged.
pub(super) fn differences(preview: &mut PreviewBuilder, differences: &[Difference]) {
    let count = |action: &str| differences.iter().filter(|difference| difference.action == action).count();
    preview.line(format!(
        "objects: {} to create, {} to change, {} to remove",
        count("create"),
        count("change"),
        count("remove")
    ));
    // What is random may make an object differ from itself, so only what comes and goes is held against a yes.
    let fixed: Vec<String> = differences.iter().map(title).filter(|title| !title.starts_with("change ")).collect();
    preview.fact(json!({ "objects": fixed }));
    differences.iter().for_each(|difference| tell(preview, title(difference), difference));
}

/// A hook, which is made anew and runs; what it runs is read from its text.
pub(super) fn hook(preview: &mut PreviewBuilder, hook: &Difference) {
    tell(preview, format!("hook {}", hook.object), hook);
}

fn tell(preview: &mut PreviewBuilder, title: String, difference: &Difference) {
    difference.hidden.iter().for_each(|hidden| withheld(preview, &difference.object, hidden));
    preview.block(title, difference.text.as_str());
}

/// Says that something is hidden.
pub(super) fn withheld(preview: &mut PreviewBuilder, what: &str, hidden: &HiddenText) {
    let what = format!("{what}, at {}", hidden.path);
    match hidden.characters {
        Some(characters) => preview.withhold(characters, format!("{what}; a secret of the release")),
        None => preview.withhold_value(format!("{what}; it was read from the cluster and looks like a secret")),
    }
}

/// The finished preview.
pub(super) fn drawn(cluster: &Cluster<'_>, preview: PreviewBuilder, summary: impl Into<String>) -> ToolPreview {
    let judged = preview.judged();
    // What is shown is blind to the values of secrets; what is compared sees them, and nobody sees it.
    let digest = digest(&without_marks(&judged));
    let whole = cluster.judged_digest().of(&judged);
    let text = format!("{}{}\n{}\n", preview.lines().join("\n"), joined(preview.blocks()), judged_line(&digest));
    preview.build(summary, text, format!("helm:{whole}#{whole}"))
}

/// Differences within their bounds.
pub(super) fn shown(differences: &[Difference]) -> String {
    let block = |difference: &Difference| PreviewBlock { title: title(difference), text: difference.text.clone() };
    folded(&differences.iter().map(block).collect::<Vec<_>>())
}

fn title(difference: &Difference) -> String {
    format!("{} {}", difference.action, difference.object)
}

/// Differences, all of them. The first two lines of each say which side is which, and are left out.
fn joined(differences: &[PreviewBlock]) -> String {
    let mut out = String::new();
    for difference in differences {
        out.push_str(&format!("\n\n{}", difference.title));
        difference.text.lines().skip(2).for_each(|line| out.push_str(&format!("\n{line}")));
    }
    out
}

/// Whatever comes and goes first by name, then how, as far as there is room.
fn folded(differences: &[PreviewBlock]) -> String {
    let (mut out, mut lines) = (String::new(), 0);
    let share = MOST_LINES.checked_div(differences.len()).unwrap_or(MOST_LINES).max(1);
    for (n, difference) in differences.iter().enumerate() {
        let title = format!("\n\n{}", difference.title);
        if out.len() + title.len() > MOST_BYTES || lines >= MOST_LINES {
            out.push_str(&format!("\n… and {} more objects", differences.len() - n));
            break;
        }
        out.push_str(&title);
        // The first two say which side is which.
        let all: Vec<&str> = difference.text.lines().skip(2).collect();
        for (n, line) in all.iter().enumerate() {
            if n >= share || out.len() + line.len() > MOST_BYTES {
                out.push_str(&format!("\n… and {} more lines", all.len() - n));
                break;
            }
            out.push('\n');
            out.push_str(line);
            lines += 1;
        }
    }
    out
}
