//! What surrounds every page: head, navigation with counts, who is signed in, and the line that tells how fresh it is.

use crate::{BASE, assets};
use domain::{Moment, TokenScope};
use maud::{DOCTYPE, Markup, html};

/// The screens of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    /// What waits for a decision.
    Inbox,
    /// All runs.
    Runs,
    /// What the person's own agents asked for.
    Mine,
    /// The audit log.
    Audit,
    /// Sessions and agents.
    Sessions,
    /// What was used.
    Usage,
    /// How the service is, and kill switches.
    Operations,
    /// Toolsets and tools.
    Catalog,
    /// The tenant's configuration.
    Config,
    /// What a rule does to a call, and to past ones.
    Explain,
    /// External servers.
    Servers,
    /// Secrets.
    Secrets,
    /// Documents that agents keep.
    Memory,
    /// None of them.
    Other,
}

/// One entry of the navigation.
struct NavEntry {
    screen: Screen,
    name: &'static str,
    path: &'static str,
    /// One of these is needed to see it.
    needs: &'static [TokenScope],
}

/// The navigation. A new screen is a line here and a file beside this one.
const NAVIGATION: &[NavEntry] = &[
    NavEntry {
        screen: Screen::Inbox,
        name: "Inbox",
        path: "",
        needs: &[TokenScope::RunsDecide, TokenScope::AuditRead],
    },
    NavEntry {
        screen: Screen::Runs,
        name: "All runs",
        path: "/runs",
        needs: &[TokenScope::RunsDecide, TokenScope::AuditRead],
    },
    NavEntry { screen: Screen::Mine, name: "My requests", path: "/mine", needs: &[] },
];

/// What people watch.
const WATCH: &[NavEntry] = &[
    NavEntry { screen: Screen::Audit, name: "Audit log", path: "/audit", needs: &[TokenScope::AuditRead] },
    NavEntry {
        screen: Screen::Sessions,
        name: "Sessions",
        path: "/sessions",
        needs: &[TokenScope::AuditRead, TokenScope::TenantAdmin],
    },
    NavEntry { screen: Screen::Usage, name: "Usage", path: "/usage", needs: &[TokenScope::AuditRead] },
    NavEntry {
        screen: Screen::Operations,
        name: "Operations",
        path: "/operations",
        needs: &[TokenScope::AuditRead, TokenScope::TenantAdmin, TokenScope::OperatorSwitch],
    },
    NavEntry {
        screen: Screen::Catalog,
        name: "Catalog",
        path: "/catalog",
        needs: &[TokenScope::ToolsRead, TokenScope::TenantAdmin],
    },
];

/// What people who administer the tenant configure.
const CONFIGURE: &[NavEntry] = &[
    NavEntry { screen: Screen::Config, name: "Configuration", path: "/config", needs: &[TokenScope::TenantAdmin] },
    NavEntry { screen: Screen::Explain, name: "Explain", path: "/explain", needs: &[TokenScope::TenantAdmin] },
    NavEntry { screen: Screen::Servers, name: "Servers", path: "/servers", needs: &[TokenScope::TenantAdmin] },
    NavEntry { screen: Screen::Secrets, name: "Secrets", path: "/secrets", needs: &[TokenScope::TenantAdmin] },
    NavEntry { screen: Screen::Memory, name: "Memory", path: "/memory", needs: &[TokenScope::TenantAdmin] },
];

/// The menus of the navigation: screens that belong together, behind one word.
const MENUS: &[(&str, &[NavEntry])] = &[("Watch", WATCH), ("Configure", CONFIGURE)];

/// Who is signed in.
#[derive(Debug, Clone)]
pub struct PersonView {
    /// The name their issuer gives them.
    pub subject: String,
    /// The tenant they work in.
    pub tenant: String,
    /// What they may do.
    pub scopes: Vec<TokenScope>,
    /// What every form carries.
    pub form_token: String,
}

impl PersonView {
    fn has(&self, needs: &[TokenScope]) -> bool {
        needs.is_empty() || needs.iter().any(|scope| self.scopes.contains(scope))
    }
}

/// What the navigation counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NavCounts {
    /// Runs that wait for a person.
    pub waiting: u64,
}

/// What surrounds one page.
#[derive(Debug, Clone)]
pub struct PageFrame {
    /// What the page is.
    pub title: String,
    /// Which screen it belongs to.
    pub screen: Screen,
    /// Who sees it; `None` before they signed in.
    pub person: Option<PersonView>,
    /// What the navigation counts; `None` if it could not be read.
    pub counts: Option<NavCounts>,
    /// The store's time at which it was drawn.
    pub now: Moment,
    /// Whether the page listens for changes.
    pub live: bool,
    /// Where the page is read again, if not where the browser is: what was posted is not.
    pub address: Option<String>,
}

/// The whole page.
pub fn page(frame: &PageFrame, content: &Markup) -> Markup {
    let waiting = frame.counts.map_or(0, |counts| counts.waiting);
    let live = frame.live.then(|| format!("{BASE}/live"));
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title(&frame.title, waiting)) }
                link rel="icon" href=(assets::address("icon.svg"));
                link rel="stylesheet" href=(assets::address("console.css"));
                @for script in ["clock.js", "table.js", "keys.js", "live.js"] {
                    script type="module" src=(assets::address(script)) {}
                }
            }
            body data-now=(frame.now.millis()) data-live=[live] data-page=[&frame.address] {
                a.skip href="#main" { "Skip to the content" }
                (header(frame, waiting))
                @if frame.live {
                    p #freshness .freshness role="status" {
                        "As of " time datetime=(frame.now.exact()) { (clock(frame.now)) } " UTC"
                        noscript { ". This page does not update itself without JavaScript; reload it to see what is new." }
                    }
                }
                main #main tabindex="-1" { (content) }
            }
        }
    }
}

fn title(title: &str, waiting: u64) -> String {
    match waiting {
        0 => format!("{title} · Quartermaster"),
        waiting => format!("({waiting}) {title} · Quartermaster"),
    }
}

fn header(frame: &PageFrame, waiting: u64) -> Markup {
    html! {
        header.top {
            a.brand href=(BASE) { "Quartermaster" }
            @if let Some(person) = &frame.person {
                nav aria-label="Screens" {
                    ul {
                        @for entry in NAVIGATION.iter().filter(|entry| person.has(entry.needs)) {
                            li { (nav_link(entry, frame.screen, waiting)) }
                        }
                        @for (name, entries) in MENUS {
                            @let entries: Vec<&NavEntry> = entries.iter().filter(|entry| person.has(entry.needs)).collect();
                            @if !entries.is_empty() {
                                li {
                                    details.menu name="menu" data-current[entries.iter().any(|entry| entry.screen == frame.screen)] {
                                        summary { (name) }
                                        ul { @for entry in entries { li { (nav_link(entry, frame.screen, waiting)) } } }
                                    }
                                }
                            }
                        }
                    }
                }
                div.who {
                    span.tenant title="Tenant" { (person.tenant) }
                    span.subject title="Signed in as" { (person.subject) }
                    form method="post" action={ (BASE) "/sign-out" } {
                        input type="hidden" name="token" value=(person.form_token);
                        button.quiet type="submit" { "Sign out" }
                    }
                }
            }
        }
    }
}

fn nav_link(entry: &NavEntry, current: Screen, waiting: u64) -> Markup {
    html! {
        a href={ (BASE) (entry.path) } aria-current=[(entry.screen == current).then_some("page")] {
            (entry.name)
            @if entry.screen == Screen::Inbox {
                " " span #waiting-count .count data-count=(waiting) { (waiting) span.unseen { " waiting" } }
            }
        }
    }
}

/// The time of day.
pub(crate) fn clock(moment: Moment) -> String {
    let text = moment.to_string();
    text.get(11..19).unwrap_or(&text).to_owned()
}
