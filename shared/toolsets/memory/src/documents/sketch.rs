//! What a write would do, drawn for whoever decides: from the plan, never from what the agent says about it.
//!
//! Whatever somebody wrote stands behind a mark in every line (`+`, `-`, `>`), so that no text can pass for a line of
//! ours. A text that is to be redacted is not shown: its picture would outlive it.

use crate::documents::forget::{self, ForgetDepth, ForgetRequest};
use crate::documents::plan::{PlannedWrite, WritePlan, op, trust_moves};
use crate::documents::promote::{self, PromotionRequest};
use crate::documents::write::{DocumentPatch, Write};
use crate::documents::{DocumentAuthor, Documents, diff};
use catalog::ToolPreview;
use domain::{Failure, json::sha256_hex};
use std::fmt::Write as _;
use store::Document;

impl Documents {
    /// What keeping a document would do.
    pub async fn sketch_write(&self, author: &DocumentAuthor, write: &Write) -> Result<ToolPreview, Failure> {
        Ok(of_planned(&self.plan_write(author, write).await?, author))
    }

    /// What changing a document would do.
    pub async fn sketch_patch(&self, author: &DocumentAuthor, patch: &DocumentPatch) -> Result<ToolPreview, Failure> {
        Ok(of_planned(&self.plan_patch(author, patch).await?, author))
    }

    /// What adopting a document would do.
    pub async fn sketch_promote(
        &self,
        author: &DocumentAuthor,
        promote: &PromotionRequest,
    ) -> Result<ToolPreview, Failure> {
        let (plan, source) = self.plan_promote(author, promote).await?;
        let drawn = of_plan(&plan, author);
        let mut text = format!(
            "adopt {} (version {}, {}, sha256 {}) as {}\nwritten by {} ({}) at {}{}\n\nreason, written by the agent (untrusted):\n{}\n",
            source.path,
            source.version,
            crate::documents::trust(source.trust),
            source.sha256,
            plan.path,
            source.provenance.actor.subject,
            source.provenance.kind,
            source.updated_at,
            if source.provenance.tainted { ", in a session that had read text from outside" } else { "" },
            quoted(&promote.reason),
        );
        text.push_str(&drawn.text);
        if plan.before.is_some() {
            writeln!(text, "\nthe whole text:\n{}", quoted(&plan.draft.content)).unwrap_or_default();
        }
        Ok(ToolPreview {
            summary: format!("adopt {} as {} ({})", source.path, plan.path, plan.draft.kind),
            text,
            fingerprint: promote::fingerprint(&plan, &source),
            ..drawn
        })
    }

    /// What forgetting a document would do.
    pub async fn sketch_forget(&self, author: &DocumentAuthor, forget: &ForgetRequest) -> Result<ToolPreview, Failure> {
        let (_, last) = self.plan_forget(author, forget).await?;
        let (what, after) = match forget.extent {
            ForgetDepth::Deleted => ("delete".to_owned(), "its versions can be read for 90 days, then they are gone"),
            ForgetDepth::Version(number) => {
                (format!("redact version {number} of"), "that text is gone for good, at once")
            }
            ForgetDepth::Everything => {
                ("redact every version of".to_owned(), "every text of it is gone for good, at once")
            }
        };
        let mut text = format!(
            "{what} {}, which is read by {}\nversion {}, {}, {} bytes, sha256 {}; {after}\n\nreason, written by the agent (untrusted):\n{}",
            last.path,
            forget.path.scope().readers(),
            last.version,
            crate::documents::trust(last.trust),
            last.content.len(),
            last.sha256,
            quoted(&forget.reason),
        );
        if forget.extent == ForgetDepth::Deleted {
            writeln!(text, "\nthe text now:\n{}", quoted(&last.content)).unwrap_or_default();
        }
        Ok(ToolPreview {
            summary: format!("{what} {}", last.path),
            text,
            warnings: taint(author),
            arguments: None,
            hidden: Vec::new(),
            fingerprint: forget::fingerprint(forget, &last),
        })
    }
}

fn of_planned(planned: &PlannedWrite, author: &DocumentAuthor) -> ToolPreview {
    match planned {
        PlannedWrite::New(plan) => of_plan(plan, author),
        PlannedWrite::Same(found) => unchanged(found),
    }
}

fn unchanged(found: &Document) -> ToolPreview {
    ToolPreview {
        summary: format!("nothing changes: {} says this already", found.path),
        text: format!("{} has this very text as its version {} (sha256 {})", found.path, found.version, found.sha256),
        warnings: Vec::new(),
        arguments: None,
        hidden: Vec::new(),
        fingerprint: format!("{} {}", found.path, found.sha256),
    }
}

fn of_plan(plan: &WritePlan, author: &DocumentAuthor) -> ToolPreview {
    let WritePlan { path, draft, before, .. } = plan;
    let kind = match before.as_ref().map(|found| found.kind.as_str()) {
        Some(old) if old != draft.kind => format!("{old} -> {}", draft.kind),
        Some(_) | None => draft.kind.clone(),
    };
    let mut text = format!(
        "{} {path}, to be read by {}\ntype: {kind}{}\ntitle: {}\ntrust: {}\n",
        op(draft.op),
        path.scope().readers(),
        if draft.tags.is_empty() { String::new() } else { format!(", tags: {}", draft.tags.join(", ")) },
        draft.title,
        trust_moves(before.as_ref(), author.trust_then(path.scope())),
    );
    // Writing to a string cannot fail.
    let mut line = |line: String| writeln!(text, "{line}").unwrap_or_default();
    line(match before {
        Some(found) => format!("\nwhat changes against version {} (sha256 {}):", found.version, found.sha256),
        None => "\nthe text, all of it new:".to_owned(),
    });
    let old = before.as_ref().map_or("", |found| &found.content);
    line(diff::unified(old, &draft.content, diff::WHOLE));
    line(format!("evidence, written by the agent (untrusted):\n{}", quoted(&draft.evidence)));
    for known in &draft.references {
        line(format!("- {} is known: {} at {}, {}", known.id, known.tool, known.at, known.outcome));
    }
    plan.unknown.iter().for_each(|id| line(format!("- {id} is not known to the audit log of this session")));
    line(match draft.findings.is_empty() {
        true => "scan: nothing found".to_owned(),
        false => format!("scan: {}", draft.findings.join("; ")),
    });
    let verb = op(draft.op);
    ToolPreview {
        summary: format!("{verb} {path} ({}, {} bytes)", draft.kind, draft.content.len()),
        text,
        warnings: plan.warnings.iter().cloned().chain(taint(author)).collect(),
        arguments: None,
        hidden: Vec::new(),
        fingerprint: format!(
            "{path} {} {}",
            before.as_ref().map_or("absent", |found| found.sha256.as_str()),
            sha256_hex(draft.content.as_bytes())
        ),
    }
}

fn taint(author: &DocumentAuthor) -> Vec<String> {
    let warning = "the session had read text from outside before it asked for this";
    author.tainted().then(|| warning.to_owned()).into_iter().collect()
}

/// A text of somebody else's, with a mark before each of its lines.
fn quoted(text: &str) -> String {
    text.lines().map(|line| format!("> {line}\n")).collect()
}
