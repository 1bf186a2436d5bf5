//! The audit log, newest entry first. What is looked for stands in the address, so a link is a view.

use crate::BASE;
use crate::parts::{Notice, moment, notice, run_address, untrusted};
use domain::Moment;
use domain::text::visible;
use maud::{Markup, html};

/// What is looked for, as it was typed.
#[derive(Debug, Clone, Default)]
pub struct AuditFilterView {
    /// The first moment.
    pub since: String,
    /// The last moment.
    pub until: String,
    /// The tool.
    pub tool: String,
    /// The target, or what it begins with.
    pub target: String,
    /// Who acted.
    pub principal: String,
    /// The run.
    pub run: String,
    /// The session.
    pub session: String,
    /// The code of the outcome.
    pub code: String,
    /// A part of the entry, its arguments or its result.
    pub text: String,
}

/// One entry in the list.
#[derive(Debug, Clone)]
pub struct AuditRow {
    /// Its place.
    pub id: String,
    /// When it was written, by the store's clock.
    pub at: Moment,
    /// What it records, as it is stored.
    pub phase: String,
    /// The tool.
    pub tool: Option<String>,
    /// On what.
    pub target: Option<String>,
    /// Who acted.
    pub actor: Option<String>,
    /// What was decided.
    pub verdict: Option<String>,
    /// The code of the outcome.
    pub code: Option<String>,
    /// The run, if it is one.
    pub run: Option<String>,
    /// The trace.
    pub trace: Option<String>,
    /// Whether it is under the seal.
    pub sealed: bool,
}

/// What the page shows.
#[derive(Debug, Clone)]
pub struct AuditView {
    /// What is looked for.
    pub filter: AuditFilterView,
    /// The entries.
    pub rows: Vec<AuditRow>,
    /// The address of the next page.
    pub next: Option<String>,
    /// The address of the first page, if this is not it.
    pub first: Option<String>,
    /// Whether the log was searched only in part, because it is long.
    pub in_part: bool,
    /// The address of this page as JSON lines.
    pub export: Option<String>,
    /// What every form carries.
    pub form_token: String,
    /// What to tell first.
    pub notice: Option<Notice>,
    /// The store's time.
    pub now: Moment,
}

/// What a phase means, in words.
pub fn phase_in_words(phase: &str) -> &str {
    match phase {
        "open" => "call",
        "close" => "result",
        "transition" => "changed state",
        "fenced" => "lost its claim",
        "admin" => "administration",
        "denied" => "denied",
        "disclosed" => "shown to a person",
        "unrecorded" => "reads without entries",
        "sign_in" => "sign-in",
        other => other,
    }
}

/// The address of an entry's page.
pub fn entry_address(id: &str) -> String {
    format!("{BASE}/audit/{id}")
}

/// The page.
pub fn page(view: &AuditView) -> Markup {
    html! {
        h1 { "Audit log" }
        @if let Some(told) = &view.notice { (notice(told)) }
        (filters(&view.filter))
        @if view.rows.is_empty() { (empty(view)) } @else { (table(view)) }
        @if view.in_part { p.hint { "The audit log is long, and this page looked through a part of it. The next page goes on." } }
        nav.pages aria-label="Pages" {
            @if let Some(first) = &view.first { a href=(first) { "Newest entries" } }
            @if let Some(next) = &view.next { a rel="next" href=(next) { "Older entries" } }
            @if let Some(export) = &view.export { a href=(export) { "This page as JSON lines" } }
        }
        section aria-labelledby="whole-title" {
            h2 #whole-title { "The whole audit log" }
            p { "Verifying computes the chain again from the first entry to the last, and checks the signed checkpoints. This service does it; whoever does not trust the service runs " code { "quartermaster audit verify" } " on an export." }
            div.actions {
                form method="post" action={ (BASE) "/audit/verify" } #verify {
                    input type="hidden" name="token" value=(view.form_token);
                    button type="submit" { "Verify the chain" }
                }
                a.button href={ (BASE) "/audit/export" } download="audit.jsonl" { "Export everything as JSON lines" }
            }
        }
    }
}

fn empty(view: &AuditView) -> Markup {
    html! {
        div.empty #entries {
            p { strong { "No entry fits." } }
            @if view.next.is_some() { p { "There may be some among older entries." } }
            @else { p { a href={ (BASE) "/audit" } { "Look at all of them" } } }
        }
    }
}

fn table(view: &AuditView) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Entries" {
            table.rows #entries {
                thead { tr { th scope="col" { "When" } th scope="col" { "What" } th scope="col" { "Who" } th scope="col" { "Outcome" } th scope="col" { "Leads to" } } }
                tbody {
                    @for row in &view.rows {
                        tr id={ "e" (row.id) } {
                            td data-label="When" { a href=(entry_address(&row.id)) { (moment(row.at, view.now)) } }
                            td data-label="What" {
                                span.state { (untrusted(phase_in_words(&row.phase))) } " "
                                @if let Some(tool) = &row.tool { code { (untrusted(tool)) } " " }
                                @if let Some(target) = &row.target { span.target { (untrusted(target)) } }
                            }
                            td data-label="Who" { @if let Some(actor) = &row.actor { (untrusted(actor)) } @else { "–" } }
                            td data-label="Outcome" {
                                @if let Some(code) = &row.code { span.state data-state=(if code == "ok" { "succeeded" } else { "failed" }) { (untrusted(code)) } " " }
                                @if let Some(verdict) = &row.verdict { (untrusted(verdict)) }
                                @if row.code.is_none() && row.verdict.is_none() { "–" }
                            }
                            td data-label="Leads to" {
                                @if let Some(run) = &row.run { a href=(run_address(run)) { "run" } " " }
                                @if let Some(trace) = &row.trace { span.hint { "trace " code.short title=(visible(trace)) { (untrusted(trace)) } } " " }
                                @if !row.sealed { span.hint { "not sealed yet" } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn filters(filter: &AuditFilterView) -> Markup {
    let field = |name: &str, label: &str, kind: &str, value: &str| {
        html! {
            div.wide[kind == "datetime-local" || name == "text"] {
                label for={ "filter-" (name) } { (label) }
                input id={ "filter-" (name) } name=(name) type=(kind) value=(value) autocomplete="off" spellcheck="false";
            }
        }
    };
    html! {
        form.filters #filters method="get" action={ (BASE) "/audit" } role="search" aria-label="Filter" {
            (field("since", "From (UTC)", "datetime-local", &filter.since))
            (field("until", "Until (UTC)", "datetime-local", &filter.until))
            (field("tool", "Tool", "search", &filter.tool))
            (field("target", "Target", "search", &filter.target))
            (field("principal", "Who", "search", &filter.principal))
            (field("run", "Run", "search", &filter.run))
            (field("session", "Session", "search", &filter.session))
            (field("code", "Code", "search", &filter.code))
            (field("text", "Text, arguments included", "search", &filter.text))
            button type="submit" { "Filter" }
        }
    }
}
