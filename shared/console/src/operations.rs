//! Operations: whether the service may serve and why not, its replicas and targets, what waits, and kill switches.

use crate::BASE;
use crate::parts::{Notice, RunRow, moment, notice, run_list, untrusted};
use domain::{Moment, SwitchMode};
use maud::{Markup, html};

/// One target of the tenant, as the replica that drew the page sees it.
#[derive(Debug, Clone)]
pub struct TargetRow {
    /// Its name, as in the audit log.
    pub name: String,
    /// Whether its breaker is open: it failed, and is not asked for a while.
    pub breaker_open: bool,
    /// Requests under way.
    pub in_flight: usize,
    /// Requests that wait for a slot.
    pub waiting: usize,
}

/// One kill switch.
#[derive(Debug, Clone)]
pub struct SwitchRow {
    /// Its id.
    pub id: String,
    /// The tenant, or `*`.
    pub tenant: String,
    /// What it is on.
    pub on: String,
    /// What it leaves.
    pub mode: SwitchMode,
    /// Why.
    pub reason: String,
    /// Who set it, as far as the reader is told.
    pub set_by: String,
    /// When, as it is written.
    pub set_at: String,
    /// When it ends, as it is written.
    pub until: Option<String>,
    /// Whether the reader may lift it.
    pub liftable: bool,
}

/// What was typed into the form, so that a mistake costs nothing.
#[derive(Debug, Clone, Default)]
pub struct SwitchFormView {
    /// What to switch.
    pub on: String,
    /// What to leave.
    pub mode: String,
    /// Why.
    pub reason: String,
    /// How long.
    pub lasts: String,
    /// For which tenant, where the reader may choose.
    pub tenant: Option<String>,
}

/// The kill switches, for somebody who may see them.
#[derive(Debug, Clone)]
pub struct SwitchesView {
    /// Those that are set.
    pub rows: Vec<SwitchRow>,
    /// Whether their record is what this service wrote.
    pub authentic: bool,
    /// What can be switched, to choose from.
    pub subjects: Vec<String>,
    /// How long a switch can last: as it is sent, and in words.
    pub spans: &'static [(&'static str, &'static str)],
    /// The form.
    pub form: SwitchFormView,
    /// What is typed to stop a whole tenant.
    pub typed: String,
    /// What every form carries.
    pub form_token: String,
}

/// What the page shows.
#[derive(Debug, Clone)]
pub struct OperationsView {
    /// Why the replica may not serve; empty when it may.
    pub reasons: Vec<String>,
    /// What an operator should know.
    pub warnings: Vec<String>,
    /// Shards of the store that serve nobody.
    pub shards_down: Vec<String>,
    /// The replica that drew the page.
    pub replica: String,
    /// Its version.
    pub version: String,
    /// All replicas that were heard of lately.
    pub replicas: Vec<String>,
    /// What kind of store there is.
    pub store: String,
    /// How many runs wait for a person; `None` if the store does not answer.
    pub waiting: Option<u64>,
    /// The one that has waited longest, if the reader may see runs.
    pub oldest: Option<RunRow>,
    /// The tenant's targets.
    pub targets: Vec<TargetRow>,
    /// Kill switches, or the right that is missing to see them.
    pub switches: Result<SwitchesView, String>,
    /// What to tell first.
    pub notice: Option<Notice>,
    /// The store's time.
    pub now: Moment,
}

/// What a reason or a warning means.
pub fn finding_in_words(code: &str) -> &str {
    match code {
        "starting" => "it has just started",
        "draining" => "it is shutting down",
        "store_unreachable" => "the store does not answer",
        "store_readonly" => "the store takes no changes",
        "store_evicts" => "the store may throw records away when memory is short",
        "store_not_persistent" => "a restart of the store would lose what it holds",
        "store_full" => "the store has no room",
        "store_lost" => "the store lost everything it held, not long ago",
        "store_settings_unreadable" => "the store does not tell how it is set up",
        "store_shard_unreachable" => "some shards of the store do not answer",
        "store_wrong_topology" => "the store is of another kind than its address says",
        "store_requires_full_coverage" => "the store stops serving everybody when one shard is away",
        "store_accepts_writes_alone" => "a primary that is cut off goes on taking changes",
        "store_replicas_missing" => "too few replicas of the store follow: nobody can decide, and gated calls fail",
        "switches_unread" => "the kill switches were never read",
        "switches_set" => "a kill switch is set",
        "switches_unreadable" => "the record of the kill switches cannot be trusted: only reads are let through",
        "no_usable_keys" => "no issuer's keys can be used",
        "config_missing" => "no tenant is configured",
        "config_unread" => "configurations that were set over HTTP are not read yet",
        "config_reload_failed" => "a tenant's file has a mistake; the tenant keeps its last good one",
        "stored_config_invalid" => "a configuration that was set over HTTP cannot be used any more",
        "config_attach_failed" => "a toolset could not be attached to a tenant",
        "otlp_down" => "traces and metrics cannot be sent",
        "records_not_authentic" => "records of the store were not written by this service",
        "audit_export_behind" => "exports of the audit log are behind",
        _ => "see the documentation",
    }
}

/// The page.
pub fn page(view: &OperationsView) -> Markup {
    html! {
        h1 { "Operations" }
        @if let Some(told) = &view.notice { (notice(told)) }
        div.columns {
            (readiness(view))
            (replicas(view))
        }
        (waiting(view))
        (targets(view))
        (switches(view))
    }
}

fn readiness(view: &OperationsView) -> Markup {
    let findings = |codes: &[String]| {
        html! { ul.findings { @for code in codes { li { code { (code) } ": " (finding_in_words(code)) } } } }
    };
    html! {
        section #readiness aria-labelledby="readiness-title" {
            h2 #readiness-title { "Readiness" }
            @if view.reasons.is_empty() { p { span.state data-state="succeeded" { "ready" } " This replica takes requests." } }
            @else {
                p { span.state data-state="failed" { "not ready" } " This replica takes no new requests:" }
                (findings(&view.reasons))
            }
            @if view.warnings.is_empty() { p.hint { "There are no warnings." } }
            @else { h3 { "Warnings" } (findings(&view.warnings)) }
            @if !view.shards_down.is_empty() { p { "Shards of the store that serve nobody: " (view.shards_down.join(", ")) } }
        }
    }
}

fn replicas(view: &OperationsView) -> Markup {
    html! {
        section aria-labelledby="replicas-title" {
            h2 #replicas-title { "Replicas and store" }
            dl {
                dt { "Store" } dd { (view.store) }
                dt { "Replicas" }
                dd {
                    ul.plain {
                        @for replica in &view.replicas {
                            li { code { (replica) } @if *replica == view.replica { " drew this page, version " (view.version) } }
                        }
                    }
                }
            }
            p.hint { "Replicas do not tell each other their versions." }
        }
    }
}

fn waiting(view: &OperationsView) -> Markup {
    html! {
        section #oldest-run aria-labelledby="oldest-title" {
            h2 #oldest-title { "Waits for a decision" }
            @match view.waiting {
                None => p { "The store does not answer." },
                Some(0) => p { "No run waits." },
                Some(count) => p { (count) @if count == 1 { " run waits." } @else { " runs wait." } },
            }
            @if let Some(oldest) = &view.oldest {
                p.hint { "The one that has waited longest, of those that expire next:" }
                (run_list(std::slice::from_ref(oldest), view.now, "oldest"))
            }
        }
    }
}

fn targets(view: &OperationsView) -> Markup {
    html! {
        section #targets aria-labelledby="targets-title" {
            h2 #targets-title { "Targets" }
            @if view.targets.is_empty() { p { "No cluster and no Jenkins server is configured." } }
            @else {
                p.hint { "As the replica sees them that drew this page. While a breaker is open, calls fail at once and the target is left alone." }
                div.scroll tabindex="0" role="region" aria-label="Table of targets" {
                    table.rows {
                        thead { tr { th scope="col" { "Target" } th scope="col" { "Breaker" } th scope="col" { "Under way" } th scope="col" { "Waiting" } } }
                        tbody {
                            @for target in &view.targets {
                                tr {
                                    td data-label="Target" { (untrusted(&target.name)) }
                                    td data-label="Breaker" {
                                        @if target.breaker_open { span.state data-state="failed" { "open: not asked" } }
                                        @else { span.state data-state="succeeded" { "closed: asked" } }
                                    }
                                    td.number data-label="Under way" { (target.in_flight) }
                                    td.number data-label="Waiting" { (target.waiting) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn switches(view: &OperationsView) -> Markup {
    html! {
        section #switches aria-labelledby="switches-title" {
            h2 #switches-title { "Kill switches" }
            @match &view.switches {
                Err(right) => p { "Seeing and setting kill switches needs the right " code { (right) } "." },
                Ok(switches) => {
                    @if !switches.authentic {
                        p.unknown { "The record of the kill switches is not what this service wrote. Until the operator writes over it, only reads are let through." }
                    }
                    @if switches.rows.is_empty() { p #no-switch { "No switch is set." } }
                    @for row in &switches.rows { (switch(row, view.now, &switches.form_token)) }
                    (form(switches))
                }
            }
        }
    }
}

fn switch(row: &SwitchRow, now: Moment, form_token: &str) -> Markup {
    let when = |text: &str| html! { @if let Some(at) = Moment::parse(text) { (moment(at, now)) } @else { (text) } };
    html! {
        div.switch id=(row.id) {
            p {
                span.state data-state=(match row.mode { SwitchMode::Stop => "failed", SwitchMode::ReadOnly => "pending_approval" }) { (row.mode.as_str()) }
                " " code { (row.on) } " of " @if row.tenant == "*" { "all tenants" } @else { (row.tenant) }
            }
            p.facts {
                span { (untrusted(&row.reason)) }
                span { "set by " (untrusted(&row.set_by)) " " (when(&row.set_at)) }
                @match &row.until {
                    Some(until) => span { "ends " (when(until)) },
                    None => span { "until it is lifted" },
                }
            }
            @if row.liftable {
                form method="post" action={ (BASE) "/operations/switches/" (row.id) "/lift" } {
                    input type="hidden" name="token" value=(form_token);
                    button.quiet type="submit" { "Lift" span.unseen { " the switch on " (row.on) } }
                }
            }
        }
    }
}

fn form(view: &SwitchesView) -> Markup {
    let form = &view.form;
    html! {
        form.sheet #set-switch method="post" action={ (BASE) "/operations/switches" } {
            h3 { "Set a switch" }
            input type="hidden" name="token" value=(view.form_token);
            @if let Some(tenant) = &form.tenant {
                div {
                    label for="switch-tenant" { "Tenant, or * for all" }
                    input #switch-tenant name="tenant" value=(tenant) required autocomplete="off" spellcheck="false";
                }
            }
            div {
                label for="switch-on" { "On" }
                input #switch-on name="on" list="switch-subjects" value=(form.on) required autocomplete="off" spellcheck="false" aria-describedby="switch-on-hint";
                datalist #switch-subjects { @for subject in &view.subjects { option value=(subject) {} } }
                p.hint #switch-on-hint { code { "tenant" } ", " code { "toolset:NAME" } ", " code { "tool:NAME" } ", " code { "target:KIND/NAME" } " or " code { "server:ID" } }
            }
            div {
                label for="switch-mode" { "Let through" }
                select #switch-mode name="mode" {
                    option value="read-only" selected[form.mode != "stop"] { "only reads" }
                    option value="stop" selected[form.mode == "stop"] { "nothing" }
                }
            }
            div {
                label for="switch-for" { "Ends" }
                select #switch-for name="for" {
                    @for (value, words) in view.spans { option value=(value) selected[form.lasts == *value] { (words) } }
                }
            }
            div {
                label for="switch-reason" { "Reason, for everybody who meets it" }
                input #switch-reason name="reason" value=(form.reason) required maxlength="300" autocomplete="off";
            }
            div {
                label for="switch-typed" { "To let nothing through of a whole tenant, type its name" }
                input #switch-typed name="typed" autocomplete="off" spellcheck="false" aria-describedby="switch-typed-hint";
                p.hint #switch-typed-hint { "That is " code { (view.typed) } ". Otherwise leave it empty." }
            }
            button type="submit" { "Set the switch" }
        }
    }
}
