//! Earlier versions of the configuration: who made which when and why, one of them with its text, and back to it.

use crate::BASE;
use crate::parts::{Notice, lines, moment, notice, untrusted};
use domain::Moment;
use maud::{Markup, html};

/// One version in the list.
#[derive(Debug, Clone)]
pub struct VersionRow {
    /// Its number.
    pub version: u64,
    /// Whether it went back to the file.
    pub removed: bool,
    /// Who made it.
    pub by: String,
    /// When.
    pub at: Moment,
    /// What they had to say.
    pub note: Option<String>,
    /// Whether it is in force.
    pub current: bool,
}

/// A page of the list.
#[derive(Debug, Clone)]
pub struct HistoryView {
    /// The versions, newest first.
    pub versions: Vec<VersionRow>,
    /// Where the next page begins.
    pub before: Option<u64>,
    /// The store's time.
    pub now: Moment,
}

/// The list.
pub fn list(view: &HistoryView) -> Markup {
    html! {
        p.back { a href={ (BASE) "/config" } { "Configuration" } }
        h1 { "Earlier versions" }
        @if view.versions.is_empty() {
            div.empty {
                p { strong { "Nobody has changed the configuration here." } }
                p { "The tenant's file holds. What you save becomes version 1." }
            }
        } @else {
            ul.cards {
                @for row in &view.versions {
                    li.card {
                        a.card-link href={ (BASE) "/config/history/" (row.version) } { "Version " (row.version) }
                        @if row.current { " " span.mark { "in force" } }
                        @if row.removed { " " span.mark { "back to the file" } }
                        p.facts { "by " (untrusted(&row.by)) " " (moment(row.at, view.now)) }
                        @if let Some(note) = &row.note { p { (untrusted(note)) } }
                    }
                }
            }
        }
        nav.pages aria-label="Pages" {
            @if let Some(before) = view.before { a rel="next" href={ (BASE) "/config/history?before=" (before) } { "Older versions" } }
        }
    }
}

/// One version.
#[derive(Debug, Clone)]
pub struct VersionView {
    /// Which.
    pub row: VersionRow,
    /// Its text; none if it went back to the file.
    pub text: Option<String>,
    /// What it would change of what is in force.
    pub difference: String,
    /// What a change has to name.
    pub etag: String,
    /// Whether the operator keeps the configuration in files only.
    pub locked: bool,
    /// What every form carries.
    pub form_token: String,
    /// What to tell first.
    pub notice: Option<Notice>,
    /// The store's time.
    pub now: Moment,
}

/// The page of one version.
pub fn page(view: &VersionView) -> Markup {
    let row = &view.row;
    html! {
        p.back { a href={ (BASE) "/config/history" } { "Earlier versions" } }
        h1 { "Version " (row.version) }
        @if let Some(told) = &view.notice { (notice(told)) }
        p.facts {
            "by " (untrusted(&row.by)) " " (moment(row.at, view.now))
            @if row.current { " " span.mark { "in force" } }
        }
        @if let Some(note) = &row.note { p { (untrusted(note)) } }
        @match &view.text {
            None => section { p { "It went back to the tenant's file and has no text of its own." } },
            Some(text) => {
                section aria-labelledby="difference-title" {
                    h2 #difference-title { "What it would change of what is in force" }
                    @if view.difference.is_empty() { p.hint { "Nothing." } } @else { (lines(&view.difference, true)) }
                }
                section aria-labelledby="text-title" { h2 #text-title { "Its text" } (lines(text, false)) }
                @if !view.locked && !row.current { (rollback(view)) }
            }
        }
    }
}

fn rollback(view: &VersionView) -> Markup {
    html! {
        section.decision aria-labelledby="rollback-title" {
            h2 #rollback-title { "Use it again" }
            p.hint { "It is checked by today's rules and saved as a new version." }
            form #rollback method="post" action={ (BASE) "/config/rollback" } {
                input type="hidden" name="token" value=(view.form_token);
                input type="hidden" name="etag" value=(view.etag);
                input type="hidden" name="version" value=(view.row.version);
                label for="note" { "Comment: why" }
                input #note name="note" type="text" maxlength="500" required autocomplete="off";
                button.risky type="submit" data-arm="1500" { "Go back to version " (view.row.version) }
            }
        }
    }
}
