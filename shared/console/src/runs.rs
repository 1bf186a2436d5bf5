//! Runs in all states, and one person's own requests. What is looked for stands in the address, so a link is a view.

use crate::BASE;
use crate::parts::{Notice, RunRow, notice, run_list, state_in_words};
use domain::Moment;
use domain::run::RunState;
use maud::{Markup, html};

/// What is looked for.
#[derive(Debug, Clone, Default)]
pub struct RunFilterView {
    /// The state.
    pub state: Option<RunState>,
    /// The tool.
    pub tool: String,
    /// A part of the requester's name.
    pub requester: String,
    /// A part of the decider's name.
    pub decider: String,
    /// A part of the object.
    pub object: String,
    /// The session.
    pub session: String,
}

/// What the list shows.
#[derive(Debug, Clone)]
pub struct RunsView {
    /// `All runs` or `My requests`.
    pub title: &'static str,
    /// Where the list stands, below [`BASE`].
    pub path: &'static str,
    /// What is looked for.
    pub filter: RunFilterView,
    /// Whether only the reader's own are shown.
    pub own: bool,
    /// The runs, newest first.
    pub rows: Vec<RunRow>,
    /// The address of the next page.
    pub next: Option<String>,
    /// Whether the list was searched only in part, because it is long.
    pub in_part: bool,
    /// The address of the same list as a file.
    pub export: Option<String>,
    /// What to tell first.
    pub notice: Option<Notice>,
    /// The store's time.
    pub now: Moment,
}

/// The page.
pub fn page(view: &RunsView) -> Markup {
    html! {
        h1 { (view.title) }
        @if let Some(told) = &view.notice { (notice(told)) }
        (filters(view))
        div #news .news hidden[true] role="status" { button type="button" #show-news { "Show what is new" } }
        div #inbox {
            @if view.rows.is_empty() {
                div.empty {
                    p { strong { "No run fits." } }
                    @if view.own { p { "Here you see what your own agents asked for." } }
                    @else { p { a href={ (BASE) (view.path) } { "Look at all of them" } } }
                }
            } @else { (run_list(&view.rows, view.now, "list")) }
        }
        @if view.in_part { p.hint { "The list is long, and this page looked through a part of it. The next page goes on." } }
        nav.pages aria-label="Pages" {
            @if let Some(next) = &view.next { a rel="next" href=(next) { "Next page" } }
            @if let Some(export) = &view.export { a href=(export) { "This page as CSV" } }
        }
    }
}

fn filters(view: &RunsView) -> Markup {
    let filter = &view.filter;
    let text = |name: &str, label: &str, value: &str| {
        html! {
            div {
                label for={ "filter-" (name) } { (label) }
                input id={ "filter-" (name) } name=(name) type="search" value=(value) autocomplete="off" spellcheck="false";
            }
        }
    };
    html! {
        form.filters #filters method="get" action={ (BASE) (view.path) } role="search" aria-label="Filter" {
            div {
                label for="filter-state" { "State" }
                select #filter-state name="state" {
                    option value="" { "any" }
                    @for state in RunState::ALL {
                        option value=(state.as_str()) selected[filter.state == Some(state)] { (state_in_words(state)) }
                    }
                }
            }
            (text("tool", "Tool", &filter.tool))
            @if !view.own { (text("requester", "Asked by", &filter.requester)) }
            (text("decider", "Decided by", &filter.decider))
            (text("object", "On", &filter.object))
            (text("session", "Session", &filter.session))
            button type="submit" { "Filter" }
        }
    }
}
