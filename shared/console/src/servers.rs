//! External servers: how each is, which of its tools wait for a yes, and what changed in a definition since it was accepted.
//!
//! A yes names the digest of what was shown. Everything a server says about itself is text of a stranger.

use crate::BASE;
use crate::parts::{Notice, effect, lines, moment, notice, untrusted};
use domain::{Effect, Moment};
use maud::{Markup, html};

/// One server.
#[derive(Debug, Clone)]
pub struct ServerRow {
    /// The tenant's name for it.
    pub id: String,
    /// What it is, for people.
    pub description: Option<String>,
    /// The toolset its tools are loaded with.
    pub toolset: String,
    /// Whether the tenant named its address itself.
    pub own: bool,
    /// How its list is, in words, and how loud that is: `good`, `warn` or `bad`.
    pub state: (&'static str, &'static str),
    /// Why it gives no list: the code, in words, and since when.
    pub trouble: Option<(String, String, String)>,
    /// Whether this replica sends it nothing at the moment.
    pub paused: bool,
    /// When it was last listed.
    pub listed_at: Option<Moment>,
    /// How many tools agents get.
    pub accepted: usize,
    /// How many wait for a yes.
    pub waiting: usize,
}

/// Every server of the tenant.
#[derive(Debug, Clone)]
pub struct ServersView {
    /// The servers, by name.
    pub servers: Vec<ServerRow>,
    /// The store's time.
    pub now: Moment,
}

/// The list.
pub fn list(view: &ServersView) -> Markup {
    html! {
        h1 { "External servers" }
        @if view.servers.is_empty() {
            div.empty {
                p { strong { "The tenant uses no external server." } }
                p { "Servers stand under " code { "servers" } " in the " a href={ (BASE) "/config" } { "configuration" } "." }
            }
        } @else {
            ul.cards {
                @for row in &view.servers {
                    li.card {
                        a.card-link href={ (BASE) "/servers/" (row.id) } { (row.id) }
                        " " (marks(row))
                        @if let Some(description) = &row.description { p { (untrusted(description)) } }
                        p.facts { (counted(row)) }
                    }
                }
            }
        }
    }
}

fn marks(row: &ServerRow) -> Markup {
    html! {
        span.mark data-kind=(row.state.1) { (row.state.0) }
        @if row.paused { " " span.mark data-kind="bad" { "paused after failures" } }
        @if row.waiting > 0 { " " span.mark data-kind="warn" { (row.waiting) @if row.waiting == 1 { " tool waits" } @else { " tools wait" } " for you" } }
        @if row.own { " " span.mark { "the tenant's own" } }
    }
}

fn counted(row: &ServerRow) -> Markup {
    html! {
        span { (row.accepted) @if row.accepted == 1 { " tool" } @else { " tools" } " offered as " code { (row.toolset) } }
    }
}

/// One tool.
#[derive(Debug, Clone)]
pub struct ToolView {
    /// The name agents know it by.
    pub name: Option<String>,
    /// What the server calls it.
    pub upstream_name: String,
    /// What it is taken to do, and on whose word.
    pub effect: Option<(Effect, String)>,
    /// How it stands to what was accepted, in words.
    pub state: &'static str,
    /// Whether a person can accept it.
    pub waits: bool,
    /// Why it is refused.
    pub reason: Option<String>,
    /// Names its present definition.
    pub digest: Option<String>,
    /// Who accepted the one before, and when.
    pub accepted: Option<(String, String)>,
    /// The present definition, as JSON in lines.
    pub definition: Option<String>,
    /// What changed since it was accepted.
    pub difference: Option<String>,
    /// What to mind about it.
    pub remarks: Vec<String>,
}

/// One server with its tools.
#[derive(Debug, Clone)]
pub struct ServerView {
    /// The server.
    pub row: ServerRow,
    /// Names the whole list.
    pub list_digest: Option<String>,
    /// Whether what was accepted can be read.
    pub pins_readable: bool,
    /// How many tools it lists beyond those that are looked at.
    pub beyond: usize,
    /// Its tools; those that wait first.
    pub tools: Vec<ToolView>,
    /// What every form carries.
    pub form_token: String,
    /// What to tell first.
    pub notice: Option<Notice>,
    /// The store's time.
    pub now: Moment,
}

/// The page of one server.
pub fn page(view: &ServerView) -> Markup {
    let row = &view.row;
    let address = format!("{BASE}/servers/{}", row.id);
    let waiting: Vec<&ToolView> = view.tools.iter().filter(|tool| tool.waits).collect();
    let others: Vec<&ToolView> = view.tools.iter().filter(|tool| !tool.waits).collect();
    html! {
        p.back { a href={ (BASE) "/servers" } { "External servers" } }
        h1 { (row.id) }
        @if let Some(told) = &view.notice { (notice(told)) }
        (standing(view, &address))
        @if !waiting.is_empty() {
            section.decision #waiting aria-labelledby="waiting-title" {
                h2 #waiting-title { "Waiting to be accepted" }
                p.hint { "The server wrote these definitions, and agents read them as instructions. Accepting holds for exactly what is shown." }
                @for tool in &waiting { (waits(tool, view, &address)) }
                @if let (true, Some(digest)) = (waiting.len() > 1, &view.list_digest) {
                    form method="post" action={ (address) "/accept" } {
                        input type="hidden" name="token" value=(view.form_token);
                        input type="hidden" name="list_digest" value=(digest);
                        button type="submit" data-arm="1500" { "Accept all " (waiting.len()) " as shown" }
                    }
                }
            }
        }
        section aria-labelledby="tools-title" {
            h2 #tools-title { "Other tools" }
            @if others.is_empty() { p.hint { "None." } }
            @else { ul.cards { @for tool in others { (settled(tool)) } } }
            @if view.beyond > 0 { p.hint { "The server lists " (view.beyond) " more, which are not looked at." } }
        }
    }
}

fn standing(view: &ServerView, address: &str) -> Markup {
    let row = &view.row;
    html! {
        section aria-labelledby="standing-title" {
            h2 #standing-title { "How it is" }
            p { (marks(row)) }
            @if let Some(description) = &row.description { p { (untrusted(description)) } }
            @if let Some((code, message, since)) = &row.trouble {
                p { code { (code) } " " (untrusted(message)) ", since " (since) }
            }
            @if row.paused { p { "Too many calls in a row failed, so this replica sends nothing to it for a moment. Its tools fail at once until one call tries it again." } }
            @if !view.pins_readable { p { strong { "What was accepted cannot be read." } " Until it can, agents are offered none of its tools." } }
            p.facts {
                (counted(row))
                span { @if let Some(at) = row.listed_at { "listed " (moment(at, view.now)) } @else { "never listed" } }
            }
            form method="post" action={ (address) "/refresh" } {
                input type="hidden" name="token" value=(view.form_token);
                button.quiet type="submit" { "Ask it for its tools now" }
            }
        }
    }
}

/// A tool that waits: what is new in it, and the form that accepts exactly that.
fn waits(tool: &ToolView, view: &ServerView, address: &str) -> Markup {
    html! {
        article.tool data-tool=(tool.upstream_name) {
            h3 { code { (untrusted(&tool.upstream_name)) } " " span.mark data-kind="warn" { (tool.state) } }
            (about(tool))
            @if let Some(difference) = &tool.difference {
                p { "What changed since it was accepted:" }
                (lines(difference, true))
            }
            @if let Some(definition) = &tool.definition {
                details open[tool.difference.is_none()] { summary { "The whole definition" } (lines(definition, false)) }
            }
            @if let Some(digest) = &tool.digest {
                form method="post" action={ (address) "/accept" } {
                    input type="hidden" name="token" value=(view.form_token);
                    input type="hidden" name="name" value=(tool.name.as_deref().unwrap_or(&tool.upstream_name));
                    input type="hidden" name="digest" value=(digest);
                    p.hint { "Digest " code.digest { (digest) } }
                    button type="submit" data-arm="1500" { "Accept " (untrusted(&tool.upstream_name)) }
                }
            }
        }
    }
}

fn settled(tool: &ToolView) -> Markup {
    html! {
        li.card {
            code { (untrusted(tool.name.as_deref().unwrap_or(&tool.upstream_name))) }
            " " span.mark { (tool.state) }
            (about(tool))
        }
    }
}

fn about(tool: &ToolView) -> Markup {
    html! {
        p.facts {
            @if let Some((does, why)) = &tool.effect { span { (effect(*does)) " " (why) } }
            @if let Some((by, at)) = &tool.accepted { span { "accepted by " (untrusted(by)) " at " (at) } }
        }
        @if let Some(reason) = &tool.reason { p { (untrusted(reason)) } }
        @if !tool.remarks.is_empty() { ul.warnings { @for remark in &tool.remarks { li { (untrusted(remark)) } } } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(waits: bool) -> ToolView {
        ToolView {
            name: Some("mcp_wiki__search".to_owned()),
            upstream_name: "search\u{202e}<b>".to_owned(),
            effect: None,
            state: "new",
            waits,
            reason: None,
            digest: Some("d1".to_owned()),
            accepted: None,
            definition: Some("{\"description\": \"</pre><script>\u{200b}\"}".to_owned()),
            difference: None,
            remarks: Vec::new(),
        }
    }

    fn view(tools: Vec<ToolView>) -> ServerView {
        let row = ServerRow {
            id: "wiki".to_owned(),
            description: None,
            toolset: "mcp_wiki".to_owned(),
            own: false,
            state: ("current", "good"),
            trouble: None,
            paused: false,
            listed_at: None,
            accepted: 0,
            waiting: 1,
        };
        let (list_digest, form_token) = (Some("l1".to_owned()), "t".to_owned());
        let now = Moment::from_secs(5);
        ServerView { row, list_digest, pins_readable: true, beyond: 0, tools, form_token, notice: None, now }
    }

    #[test]
    fn a_yes_names_the_digest_that_was_shown() {
        let shown = page(&view(vec![tool(true)])).into_string();
        assert!(shown.contains(r#"name="digest" value="d1""#) && !shown.contains("list_digest"), "{shown}");
        let two = page(&view(vec![tool(true), tool(true)])).into_string();
        assert!(two.contains(r#"name="list_digest" value="l1""#) && two.contains("Accept all 2"), "{two}");
        let none = page(&view(vec![tool(false)])).into_string();
        assert!(!none.contains("/accept"), "{none}");
    }

    #[test]
    fn what_a_server_says_is_neither_markup_nor_hidden() {
        let shown = page(&view(vec![tool(true)])).into_string();
        assert!(!shown.contains("<script>") && !shown.contains("<b>"), "{shown}");
        assert!(!shown.contains("\u{200b}") && shown.contains("U+200B"), "{shown}");
    }
}
