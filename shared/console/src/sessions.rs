//! Sessions and agents: who works here at the moment, with which program, toolsets and cost.

use crate::BASE;
use crate::parts::{Notice, moment, notice, untrusted};
use domain::{Moment, SessionDoor, SessionMode};
use maud::{Markup, html};

/// One session.
#[derive(Debug, Clone)]
pub struct SessionRow {
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub owner: String,
    /// The program, as it names itself.
    pub client: Option<String>,
    /// How it was opened.
    pub door: Option<SessionDoor>,
    /// What it was opened for: agent and workflow.
    pub assignment: Option<String>,
    /// What it may be used for.
    pub mode: SessionMode,
    /// Loaded toolsets and whether their write tools are loaded too.
    pub toolsets: Vec<(String, bool)>,
    /// What its list of tools costs a model.
    pub tokens: u32,
    /// Whether it has read text from outside.
    pub tainted: bool,
    /// When it was opened.
    pub opened_at: Moment,
    /// When it was last used, as far as that is known.
    pub last_used: Option<Moment>,
    /// Its calls of today and yesterday, as far as they are known.
    pub calls: Option<u64>,
}

/// What the page shows.
#[derive(Debug, Clone)]
pub struct SessionsView {
    /// The sessions, those that were opened last first.
    pub rows: Vec<SessionRow>,
    /// The address of the next page.
    pub next: Option<String>,
    /// Whether this is not the first page.
    pub further: bool,
    /// Whether there are more than the list goes through.
    pub cut: bool,
    /// Whether the reader may end sessions.
    pub ends: bool,
    /// Whether the reader may follow links into the audit log.
    pub audits: bool,
    /// What every form carries.
    pub form_token: String,
    /// What to tell first.
    pub notice: Option<Notice>,
    /// The store's time.
    pub now: Moment,
}

/// How a session was opened, in words.
pub const fn door_in_words(door: Option<SessionDoor>) -> &'static str {
    match door {
        Some(SessionDoor::Legacy) => "MCP, with initialize",
        Some(SessionDoor::Modern) => "MCP, without a handshake",
        Some(SessionDoor::Rest) => "REST API",
        None => "not known",
    }
}

/// The page.
pub fn page(view: &SessionsView) -> Markup {
    html! {
        h1 { "Sessions" }
        @if let Some(told) = &view.notice { (notice(told)) }
        @if !view.ends { p.hint { "You can look at sessions. Ending one needs the right " code { "tenant:admin" } "." } }
        @if view.rows.is_empty() {
            div.empty #no-sessions {
                p { strong { "No session is open." } " An agent opens one when it begins to work." }
                @if view.further { p { a href={ (BASE) "/sessions" } { "First page" } } }
            }
        } @else {
            ul.runs #sessions { @for row in &view.rows { (session(row, view)) } }
        }
        @if view.cut { p.hint { "There are more sessions than this list goes through; those that were opened last are here." } }
        nav.pages aria-label="Pages" {
            @if view.further { a href={ (BASE) "/sessions" } { "First page" } }
            @if let Some(next) = &view.next { a rel="next" href=(next) { "Next page" } }
        }
    }
}

fn session(row: &SessionRow, view: &SessionsView) -> Markup {
    html! {
        li.run id=(row.id) {
            h2 {
                (untrusted(row.client.as_deref().unwrap_or("A program without a name"))) " for " (untrusted(&row.owner))
            }
            p.facts {
                span.state { (match row.mode { SessionMode::Read => "reads", SessionMode::Write => "may ask for changes" }) }
                @if row.tainted { " " span.taint title="Every change asks, whatever the policy says" { "has read outside text" } }
            }
            dl {
                dt { "Toolsets" }
                dd {
                    @if row.toolsets.is_empty() { "none" }
                    @for (number, (name, write)) in row.toolsets.iter().enumerate() {
                        @if number > 0 { ", " }
                        code { (name) } @if *write { " with write tools" }
                    }
                    " – " (row.tokens) " tokens in each list"
                }
                dt { "Opened" } dd { (moment(row.opened_at, view.now)) ", " (door_in_words(row.door)) }
                dt { "Last used" }
                dd {
                    @match row.last_used { Some(at) => (moment(at, view.now)), None => "not lately" }
                    @match row.calls {
                        Some(1) => ", 1 call since yesterday",
                        Some(calls) => { ", " (calls) " calls since yesterday" },
                        None => ", calls not known",
                    }
                }
                @if let Some(assignment) = &row.assignment { dt { "Opened for" } dd { (untrusted(assignment)) } }
                dt { "Session" }
                dd {
                    code { (row.id) }
                    @if view.audits { " " a href={ (BASE) "/audit?session=" (row.id) } { "its audit entries" span.unseen { " of " (row.id) } } }
                }
            }
            @if view.ends {
                form method="post" action={ (BASE) "/sessions/" (row.id) "/end" } {
                    input type="hidden" name="token" value=(view.form_token);
                    button.reject type="submit" { "End this session" span.unseen { " " (row.id) } }
                }
            }
        }
    }
}
