//! The catalog: toolsets with what they cost, the tools of one of them, and one tool with its arguments and why somebody
//! can or cannot use it.

use crate::BASE;
use crate::parts::{effect, lines, untrusted};
use domain::Effect;
use maud::{Markup, html};

/// One toolset.
#[derive(Debug, Clone)]
pub struct ToolsetRow {
    /// Its name.
    pub name: String,
    /// Whether its read tools are there when a session opens.
    pub default: bool,
    /// Read tools, and what they cost a model.
    pub read: (u64, u64),
    /// Write tools, and what they cost a model.
    pub write: (u64, u64),
}

/// One tool in a list.
#[derive(Debug, Clone)]
pub struct ToolRow {
    /// Its name.
    pub name: String,
    /// The toolset.
    pub toolset: String,
    /// For people.
    pub title: String,
    /// The most that a call can do.
    pub effect: Effect,
    /// The right that a call needs.
    pub right: &'static str,
    /// What it costs a model to read.
    pub tokens: u64,
    /// The external server it comes from.
    pub server: Option<String>,
    /// Whether a rule of the tenant asks a person, or refuses calls.
    pub ruled: bool,
}

/// What the list shows.
#[derive(Debug, Clone)]
pub struct CatalogView {
    /// All toolsets.
    pub toolsets: Vec<ToolsetRow>,
    /// The toolset whose tools are shown.
    pub chosen: Option<String>,
    /// Its tools.
    pub tools: Vec<ToolRow>,
    /// The address of the next page.
    pub next: Option<String>,
    /// What the service answers itself, in every session: name, title, tokens.
    pub control: Vec<(String, String, u64)>,
    /// Tools of external servers that wait to be accepted: server and tool.
    pub waiting: Vec<(String, String)>,
    /// Whether the tenant is read-only.
    pub read_only: bool,
}

/// One argument of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentRow {
    /// Its name; parts of an argument stand behind a dot.
    pub name: String,
    /// What it is.
    pub kind: String,
    /// Whether it must be given.
    pub required: bool,
    /// What it means.
    pub description: String,
}

/// One thing that stands between somebody and a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UseStep {
    /// Whether it lets the call through.
    pub open: bool,
    /// What it is.
    pub text: String,
}

/// For whom it is explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UseFor {
    /// The reader.
    Me,
    /// An agent that reads.
    Reader,
    /// An agent that may ask for changes.
    Writer,
}

impl UseFor {
    /// Every one.
    pub const ALL: [UseFor; 3] = [UseFor::Me, UseFor::Reader, UseFor::Writer];

    /// As it stands in an address.
    pub const fn as_str(self) -> &'static str {
        match self {
            UseFor::Me => "me",
            UseFor::Reader => "reader",
            UseFor::Writer => "writer",
        }
    }

    const fn in_words(self) -> &'static str {
        match self {
            UseFor::Me => "me, with my own rights",
            UseFor::Reader => "an agent with tools:read",
            UseFor::Writer => "an agent with tools:read and tools:write",
        }
    }
}

/// One tool.
#[derive(Debug, Clone)]
pub struct ToolView {
    /// What lists show of it; `None` if the tenant's catalog has no such tool.
    pub row: Option<ToolRow>,
    /// The name that was asked for.
    pub name: String,
    /// What the model reads.
    pub description: String,
    /// Promises about it by name.
    pub facts: Vec<(&'static str, String)>,
    /// Its arguments.
    pub arguments: Vec<ArgumentRow>,
    /// For whom it is explained.
    pub who: UseFor,
    /// What stands between them and a call.
    pub steps: Vec<UseStep>,
    /// Names that are nearly the one that was asked for.
    pub near: Vec<String>,
}

/// The address of a tool's page.
pub fn tool_address(name: &str) -> String {
    // A tool's name has no character that means something in an address; others come in escaped.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let name: String =
        name.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect();
    format!("{BASE}/catalog/{name}")
}

/// The list.
pub fn page(view: &CatalogView) -> Markup {
    html! {
        h1 { "Catalog" }
        @if view.read_only { p.hint { "This tenant is read-only, so tools that change something are not offered." } }
        form.filters #find-tool method="get" action={ (BASE) "/catalog" } role="search" aria-label="Find a tool" {
            div.wide { label for="tool" { "Why can I not see or use the tool" } input #tool name="tool" type="search" required autocomplete="off" spellcheck="false"; }
            button type="submit" { "Explain" }
        }
        @if view.toolsets.is_empty() { div.empty #no-toolsets { p { strong { "This tenant has no tools." } " Its configuration names no target." } } }
        @else { (toolsets(view)) }
        @if let Some(chosen) = &view.chosen {
            section aria-labelledby="tools-title" {
                h2 #tools-title { "Tools of " code { (untrusted(chosen)) } }
                @if view.tools.is_empty() { p { "None is offered." } } @else { (tools(&view.tools)) }
                @if let Some(next) = &view.next { p { a rel="next" href=(next) { "Next page" } } }
            }
        }
        @if !view.waiting.is_empty() {
            section aria-labelledby="waiting-title" {
                h2 #waiting-title { "Waits to be accepted" }
                p.hint { "External servers list these tools; nobody has accepted them as they are." }
                ul { @for (server, tool) in &view.waiting { li { (untrusted(tool)) " of " (untrusted(server)) } } }
            }
        }
        @if !view.control.is_empty() {
            details.figures {
                summary { "In every session: " (view.control.len()) " tools that the service answers itself" }
                ul { @for (name, title, tokens) in &view.control { li { code { (name) } " – " (title) ", " (tokens) " tokens" } } }
            }
        }
    }
}

fn toolsets(view: &CatalogView) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Toolsets" {
            table.rows #toolsets {
                thead { tr { th scope="col" { "Toolset" } th.number scope="col" { "Read tools" } th.number scope="col" { "Tokens" } th.number scope="col" { "Write tools" } th.number scope="col" { "Tokens" } th scope="col" { "Loaded" } } }
                tbody {
                    @for set in &view.toolsets {
                        tr {
                            th scope="row" data-label="Toolset" {
                                a href={ (BASE) "/catalog?toolset=" (set.name) } aria-current=[(view.chosen.as_deref() == Some(&set.name)).then_some("true")] { (untrusted(&set.name)) }
                            }
                            td.number data-label="Read tools" { (set.read.0) }
                            td.number data-label="Tokens of them" { (set.read.1) }
                            td.number data-label="Write tools" { (set.write.0) }
                            td.number data-label="Tokens of them" { (set.write.1) }
                            td data-label="Loaded" { @if set.default { "when a session opens" } @else { "on demand" } }
                        }
                    }
                }
            }
        }
    }
}

fn tools(rows: &[ToolRow]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Tools" {
            table.rows #tools {
                thead { tr { th scope="col" { "Tool" } th scope="col" { "Effect" } th scope="col" { "Right" } th.number scope="col" { "Tokens" } } }
                tbody {
                    @for row in rows {
                        tr {
                            th scope="row" data-label="Tool" {
                                a href=(tool_address(&row.name)) { (untrusted(&row.name)) }
                                p.facts { (untrusted(&row.title)) @if row.ruled { " – rules of the tenant are about it" } @if let Some(server) = &row.server { " – of the server " (untrusted(server)) } }
                            }
                            td data-label="Effect" { (effect(row.effect)) }
                            td data-label="Right" { code { (row.right) } }
                            td.number data-label="Tokens" { (row.tokens) }
                        }
                    }
                }
            }
        }
    }
}

/// One tool.
pub fn tool(view: &ToolView) -> Markup {
    html! {
        h1 { code { (untrusted(&view.name)) } }
        @if let Some(row) = &view.row {
            section aria-labelledby="about-title" {
                h2 #about-title { (untrusted(&row.title)) }
                p.facts { (effect(row.effect)) }
                dl {
                    dt { "Toolset" } dd { a href={ (BASE) "/catalog?toolset=" (row.toolset) } { (untrusted(&row.toolset)) } }
                    dt { "Right" } dd { code { (row.right) } }
                    dt { "Cost" } dd { (row.tokens) " tokens in each list" }
                    @for (name, value) in &view.facts { dt { (name) } dd { (untrusted(value)) } }
                }
                h3 { "What the model reads" }
                (lines(&view.description, false))
            }
        }
        (explanation(view))
        @if view.row.is_some() { (arguments(&view.arguments)) }
        p { a href={ (BASE) "/catalog" } { "To the catalog" } }
    }
}

fn explanation(view: &ToolView) -> Markup {
    let open = view.steps.iter().all(|step| step.open);
    html! {
        section #why aria-labelledby="why-title" {
            h2 #why-title { "Can it be used?" }
            form.filters #filters method="get" action=(tool_address(&view.name)) aria-label="For whom" {
                div.wide {
                    label for="who" { "By" }
                    select #who name="for" { @for who in UseFor::ALL { option value=(who.as_str()) selected[who == view.who] { (who.in_words()) } } }
                }
                button type="submit" { "Explain" }
            }
            p { @if open { strong { "Yes." } } @else { strong { "No." } } }
            ul.steps { @for step in &view.steps { li data-open=(step.open) { span.state data-state=(if step.open { "succeeded" } else { "failed" }) { @if step.open { "passes" } @else { "stops here" } } " " (untrusted(&step.text)) } } }
            @if !view.near.is_empty() {
                p { "Did you mean " @for (at, name) in view.near.iter().enumerate() { @if at > 0 { ", " } a href=(tool_address(name)) { (name) } } "?" }
            }
        }
    }
}

fn arguments(rows: &[ArgumentRow]) -> Markup {
    html! {
        section aria-labelledby="arguments-title" {
            h2 #arguments-title { "Arguments" }
            @if rows.is_empty() { p { "It takes none." } }
            @else {
                div.scroll tabindex="0" role="region" aria-label="Table of arguments" {
                    table.rows #arguments {
                        thead { tr { th scope="col" { "Name" } th scope="col" { "What it is" } th scope="col" { "Given" } th scope="col" { "Meaning" } } }
                        tbody {
                            @for row in rows {
                                tr {
                                    th scope="row" data-label="Name" { code { (untrusted(&row.name)) } }
                                    td data-label="What it is" { (untrusted(&row.kind)) }
                                    td data-label="Given" { @if row.required { "always" } @else { "if wanted" } }
                                    td data-label="Meaning" { @if row.description.is_empty() { "–" } @else { (untrusted(&row.description)) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
