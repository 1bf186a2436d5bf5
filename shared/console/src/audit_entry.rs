//! One entry of the audit log: its parts in words, its arguments or result, and exactly what is stored.

use crate::BASE;
use crate::audit::{AuditRow, phase_in_words};
use crate::parts::{lines, moment, run_address, untrusted};
use domain::Moment;
use maud::{Markup, html};

/// What an entry was sealed with.
#[derive(Debug, Clone)]
pub struct ContentsView {
    /// The text.
    pub text: String,
    /// Whether that is all of it.
    pub whole: bool,
}

/// What the page shows.
#[derive(Debug, Clone)]
pub struct AuditEntryView {
    /// What lists show of it.
    pub row: AuditRow,
    /// Other parts by their names, in the order in which they are read.
    pub facts: Vec<(&'static str, String)>,
    /// The session, with the address of its entries.
    pub session: Option<(String, String)>,
    /// The call, with the address of its entries.
    pub call: Option<(String, String)>,
    /// Arguments or result, if they were kept.
    pub contents: Option<ContentsView>,
    /// The link that seals it.
    pub link: Option<String>,
    /// The entry as it is stored, in lines.
    pub stored: String,
    /// The store's time.
    pub now: Moment,
}

/// The page.
pub fn page(view: &AuditEntryView) -> Markup {
    let row = &view.row;
    html! {
        h1 { "Entry " code { (row.id) } }
        section aria-labelledby="parts-title" {
            h2 #parts-title { "What it records" }
            dl {
                dt { "When" } dd { (moment(row.at, view.now)) " (" (row.at) ")" }
                dt { "What" } dd { (untrusted(phase_in_words(&row.phase))) }
                @if let Some(tool) = &row.tool { dt { "Tool" } dd { code { (untrusted(tool)) } } }
                @if let Some(target) = &row.target { dt { "On" } dd { (untrusted(target)) } }
                @if let Some(actor) = &row.actor { dt { "Who" } dd { (untrusted(actor)) } }
                @for (name, value) in &view.facts { dt { (name) } dd { (untrusted(value)) } }
                @if let Some(verdict) = &row.verdict { dt { "Decision" } dd { (untrusted(verdict)) } }
                @if let Some(code) = &row.code { dt { "Outcome" } dd { code { (untrusted(code)) } } }
                @if let Some(run) = &row.run { dt { "Run" } dd { a href=(run_address(run)) { (run) } } }
                @for (name, part) in [("Session", &view.session), ("Call", &view.call)] {
                    @if let Some((id, address)) = part { dt { (name) } dd { (untrusted(id)) " " a href=(address) { "its entries" } } }
                }
                @if let Some(trace) = &row.trace { dt { "Trace" } dd { code { (untrusted(trace)) } } }
            }
        }
        section.from-outside aria-labelledby="contents-title" {
            h2 #contents-title { @if row.phase == "open" { "Arguments" } @else { "Contents" } }
            @match &view.contents {
                Some(contents) => {
                    p.hint { "Text of agents and targets, as it was kept." @if !contents.whole { " It was longer; the rest was not kept." } }
                    (lines(&contents.text, false))
                }
                None => p { "None were kept with this entry." },
            }
        }
        section aria-labelledby="stored-title" {
            h2 #stored-title { "As it is stored" }
            @match &view.link {
                Some(link) => p { "Sealed by " code.digest { (untrusted(link)) } "." },
                None => p { "Not sealed yet: that happens within moments." },
            }
            (lines(&view.stored, false))
        }
        p { a href={ (BASE) "/audit" } { "To the audit log" } }
    }
}
