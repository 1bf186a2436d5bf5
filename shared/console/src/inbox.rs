//! The inbox: what waits for a person, and what only a person can settle.

use crate::BASE;
use crate::parts::{Notice, RunRow, notice, run_list};
use domain::Moment;
use maud::{Markup, html};

/// What the inbox shows.
#[derive(Debug, Clone)]
pub struct InboxView {
    /// Runs that wait, the soonest to expire first.
    pub rows: Vec<RunRow>,
    /// Runs whose outcome only a person can settle.
    pub unsettled: Vec<RunRow>,
    /// Runs that wait and that the reader has put off.
    pub later: Vec<RunRow>,
    /// How many wait in all.
    pub waiting: u64,
    /// The cursor of the next page.
    pub next: Option<String>,
    /// Whether this is not the first page.
    pub further: bool,
    /// Whether the reader may decide; others only look.
    pub decides: bool,
    /// The last run that somebody decided, if nothing waits.
    pub last: Option<RunRow>,
    /// What to tell first.
    pub notice: Option<Notice>,
    /// The store's time.
    pub now: Moment,
}

/// The page.
pub fn page(view: &InboxView) -> Markup {
    html! {
        h1 { "Inbox" }
        @if let Some(told) = &view.notice { (notice(told)) }
        @if !view.decides {
            p.hint { "You can look at what waits. Deciding needs the right " code { "runs:decide" } "." }
        }
        div #news .news hidden[true] role="status" { button type="button" #show-news { "Show what is new" } }
        div #inbox data-waiting=(view.waiting) {
            @if !view.unsettled.is_empty() {
                section aria-labelledby="unsettled-title" {
                    h2 #unsettled-title { "Outcome unknown: look at the target and settle it" }
                    (run_list(&view.unsettled, view.now, "unsettled"))
                }
            }
            section aria-labelledby="waiting-title" {
                h2 #waiting-title { "Waits for a decision" }
                @if view.rows.is_empty() { (empty(view)) } @else { (run_list(&view.rows, view.now, "waiting")) }
            }
            @if !view.later.is_empty() {
                details.figures #put-off {
                    summary { "Put off by you: " (view.later.len()) }
                    p.hint { "They expire as they would have. Open one to decide it, or to bring it back." }
                    (run_list(&view.later, view.now, "later"))
                }
            }
        }
        nav.pages aria-label="Pages" {
            @if view.further { a href=(BASE) { "First page" } }
            @if let Some(next) = &view.next { a rel="next" href={ (BASE) "?after=" (next) } { "Next page" } }
        }
    }
}

fn empty(view: &InboxView) -> Markup {
    html! {
        div.empty {
            @if view.later.is_empty() {
                p { strong { "Nothing waits for you." } " New requests appear here by themselves." }
            } @else {
                p { strong { "Nothing else waits for you." } " What you put off is below." }
            }
            @if let Some(last) = &view.last {
                p { "The last decision:" }
                (run_list(std::slice::from_ref(last), view.now, "last"))
            } @else {
                p { "No run was decided here yet. An agent that asks for a change makes one." }
            }
        }
    }
}
