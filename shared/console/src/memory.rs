//! Memory review: proposals of agents that wait for a person, documents that agents keep, one of them with where it came
//! from, and forgetting it. A proposal is accepted or rejected on the page of its run.

use crate::BASE;
use crate::parts::{Notice, RunRow, lines, moment, notice, run_address, run_list, untrusted};
use domain::Moment;
use maud::{Markup, html};

/// One document in the list.
#[derive(Debug, Clone)]
pub struct DocumentRow {
    /// Where it is.
    pub path: String,
    /// What it is called.
    pub title: String,
    /// What it is.
    pub kind: String,
    /// How far it can be relied on.
    pub trust: String,
    /// When it was written.
    pub updated_at: Moment,
}

/// What the list shows.
#[derive(Debug, Clone)]
pub struct MemoryView {
    /// Proposals that wait for a person; `None` if the reader may not see runs.
    pub waiting: Option<Vec<RunRow>>,
    /// What paths begin with.
    pub prefix: String,
    /// The documents, by path.
    pub documents: Vec<DocumentRow>,
    /// The address of the next page.
    pub next: Option<String>,
    /// What to tell first.
    pub notice: Option<Notice>,
    /// The store's time.
    pub now: Moment,
}

/// The list.
pub fn list(view: &MemoryView) -> Markup {
    html! {
        h1 { "Memory" }
        @if let Some(told) = &view.notice { (notice(told)) }
        section #proposals aria-labelledby="proposals-title" {
            h2 #proposals-title { "Proposals that wait" }
            @match &view.waiting {
                None => p.hint { "Seeing what agents propose needs the right " code { "runs:decide" } " or " code { "audit:read" } "." },
                Some(rows) if rows.is_empty() => p.hint { "No agent waits to keep or change a document." },
                Some(rows) => (run_list(rows, view.now, "waiting")),
            }
        }
        form.filters #filters method="get" action={ (BASE) "/memory" } role="search" aria-label="Filter" {
            div.wide {
                label for="filter-prefix" { "Path begins with" }
                input #filter-prefix name="prefix" type="search" value=(view.prefix) placeholder="tenant/runbooks/" autocomplete="off" spellcheck="false";
            }
            button type="submit" { "Filter" }
        }
        @if view.documents.is_empty() {
            div.empty { p { strong { "No document is kept here." } } p { "Agents propose documents; they are kept once a person approves." } }
        } @else {
            ul.cards {
                @for row in &view.documents {
                    li.card {
                        a.card-link href={ (BASE) "/memory/" (row.path) } { (untrusted(&row.title)) }
                        " " (trust(&row.trust))
                        p.facts { code { (row.path) } " " (row.kind) " " (moment(row.updated_at, view.now)) }
                    }
                }
            }
        }
        nav.pages aria-label="Pages" { @if let Some(next) = &view.next { a rel="next" href=(next) { "Next page" } } }
    }
}

fn trust(word: &str) -> Markup {
    let kind = (word == "draft").then_some("warn");
    html! { span.mark data-kind=[kind] { (word) } }
}

/// One version of a document.
#[derive(Debug, Clone)]
pub struct DocumentVersionRow {
    /// Its number.
    pub version: u64,
    /// How it came about.
    pub op: String,
    /// Who wrote it, as what, and when.
    pub by: (String, String, String),
    /// The run that wrote it.
    pub run: Option<String>,
    /// What changed.
    pub difference: String,
    /// Why its text is gone.
    pub redacted: Option<String>,
}

/// What the page of a document shows.
#[derive(Debug, Clone)]
pub struct DocumentPageView {
    /// Which.
    pub row: DocumentRow,
    /// The digest of its text; a change names it.
    pub sha256: String,
    /// Its text.
    pub content: String,
    /// How its writer knows.
    pub evidence: String,
    /// What the scan found.
    pub findings: Vec<String>,
    /// Whether its writer had read text from outside.
    pub tainted: bool,
    /// Who wrote it, and as what.
    pub by: (String, String),
    /// The run that wrote it.
    pub run: Option<String>,
    /// Who approved it.
    pub approver: Option<String>,
    /// Its versions, newest first.
    pub versions: Vec<DocumentVersionRow>,
    /// The reason that was begun.
    pub reason: String,
    /// What every form carries.
    pub form_token: String,
    /// What to tell first.
    pub notice: Option<Notice>,
    /// The store's time.
    pub now: Moment,
}

/// The page of a document.
pub fn page(view: &DocumentPageView) -> Markup {
    let row = &view.row;
    html! {
        p.back { a href={ (BASE) "/memory" } { "Memory" } }
        h1 { (untrusted(&row.title)) }
        @if let Some(told) = &view.notice { (notice(told)) }
        p.facts { code { (row.path) } " " (row.kind) " " (trust(&row.trust)) " " (moment(row.updated_at, view.now)) }
        @if view.tainted || !view.findings.is_empty() {
            section.risks aria-labelledby="risks-title" {
                h2 #risks-title { "Risks" }
                ul {
                    @if view.tainted { li { "Its writer had read text from outside before. That text may have talked the agent into this." } }
                    @for finding in &view.findings { li { (untrusted(finding)) } }
                }
            }
        }
        section.from-outside aria-labelledby="text-title" {
            h2 #text-title { "Text" }
            p.hint { "Agents read this when they look for help. Read it as you would read a letter from a stranger." }
            (lines(&view.content, false))
        }
        section aria-labelledby="origin-title" {
            h2 #origin-title { "Where it came from" }
            dl {
                dt { "Written by" } dd { (untrusted(&view.by.0)) " (" (view.by.1) ")" }
                @if let Some(run) = &view.run { dt { "Run" } dd { a href=(run_address(run)) { (run) } } }
                @if let Some(approver) = &view.approver { dt { "Approved by" } dd { (untrusted(approver)) } }
                dt { "Evidence" } dd { (untrusted(&view.evidence)) }
                dt { "Digest" } dd { code.digest { (view.sha256) } }
            }
        }
        (versions(view))
        (forget(view))
    }
}

fn versions(view: &DocumentPageView) -> Markup {
    html! {
        section aria-labelledby="versions-title" {
            h2 #versions-title { "Versions" }
            ul.cards {
                @for version in &view.versions {
                    li.card {
                        "Version " (version.version) " " span.mark { (version.op) }
                        p.facts {
                            "by " (untrusted(&version.by.0)) " (" (version.by.1) ") at " (version.by.2)
                            @if let Some(run) = &version.run { " " a href=(run_address(run)) { "its run" } }
                        }
                        @if let Some(why) = &version.redacted { p { "Its text was removed: " (untrusted(why)) } }
                        @if !version.difference.is_empty() {
                            details { summary { "What changed" } (lines(&version.difference, true)) }
                        }
                    }
                }
            }
        }
    }
}

fn forget(view: &DocumentPageView) -> Markup {
    html! {
        section.decision aria-labelledby="forget-title" {
            h2 #forget-title { "Forget it" }
            form #forget method="post" action={ (BASE) "/memory/forget" } {
                input type="hidden" name="token" value=(view.form_token);
                input type="hidden" name="path" value=(view.row.path);
                input type="hidden" name="sha256" value=(view.sha256);
                label for="reason" { "Why; it stays in the history" }
                input #reason name="reason" type="text" required maxlength="500" autocomplete="off" value=(view.reason);
                label { input type="checkbox" name="everything" value="1"; " Remove the text of every version for good, too" }
                button.reject type="submit" data-arm="1500" { "Forget" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_keep_is_neither_markup_nor_hidden_and_is_forgotten_by_its_digest() {
        let hostile = "<script>\u{202e}".to_owned();
        let row = DocumentRow {
            path: "tenant/runbooks/a".to_owned(),
            title: hostile.clone(),
            kind: "note".to_owned(),
            trust: "draft".to_owned(),
            updated_at: Moment::from_secs(1),
        };
        let view = DocumentPageView {
            row,
            sha256: "ab".repeat(32),
            content: hostile.clone(),
            evidence: hostile.clone(),
            findings: vec![hostile.clone()],
            tainted: true,
            by: (hostile.clone(), "agent".to_owned()),
            run: Some("run_1".to_owned()),
            approver: Some(hostile),
            versions: Vec::new(),
            reason: "\"x".to_owned(),
            form_token: "t".to_owned(),
            notice: None,
            now: Moment::from_secs(9),
        };
        let shown = page(&view).into_string();
        assert!(!shown.contains("<script>") && !shown.contains('\u{202e}'), "{shown}");
        assert!(shown.contains(&format!(r#"name="sha256" value="{}""#, "ab".repeat(32))), "{shown}");
        assert!(shown.contains("/console/runs/run_1"), "{shown}");
    }
}
