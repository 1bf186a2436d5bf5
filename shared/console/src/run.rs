//! One run: what would happen in one sentence, what speaks against it, the difference, the exact arguments, who asked,
//! which rule asks for a person, what was done to the same thing before, and what became of it.
//!
//! The forms that decide are in [`crate::decide`].

use crate::decide::{self, DecisionForms};
use crate::parts::{self, Notice, RunRow, lines, moment, notice, run_list, untrusted};
use domain::run::RunState;
use domain::{Effect, Moment};
use maud::{Markup, html};

/// What the page shows. What the reader may not see is empty.
#[derive(Debug, Clone)]
pub struct RunView {
    /// Its id.
    pub id: String,
    /// Where it stands.
    pub state: RunState,
    /// The tool.
    pub tool: String,
    /// Its toolset.
    pub toolset: String,
    /// To what effect.
    pub effect: Effect,
    /// What it would do, in one sentence.
    pub sentence: String,
    /// What speaks against it.
    pub warnings: Vec<String>,
    /// What changes, as text.
    pub difference: String,
    /// The arguments, as JSON in lines.
    pub arguments: Option<String>,
    /// What is hidden from the reader, and why.
    pub hidden: Vec<String>,
    /// The digest of what is decided.
    pub digest: String,
    /// Who asked.
    pub requester: String,
    /// In which session.
    pub session: Option<String>,
    /// What the session was opened for.
    pub assignment: Option<String>,
    /// Whether the session had read text from outside.
    pub tainted: bool,
    /// When it was asked for.
    pub asked_at: Moment,
    /// Until when it can be decided.
    pub expires_at: Moment,
    /// How many people must say yes.
    pub deciders: u32,
    /// Whether a rejection stops the session.
    pub rejection_stops: bool,
    /// What people said.
    pub answers: Vec<AnswerView>,
    /// What became of it.
    pub outcome: Option<OutcomeView>,
    /// When it last changed.
    pub changed_at: Moment,
    /// The rule that asks for a person now.
    pub rule: Option<RuleView>,
    /// Earlier runs on the same thing, the newest first.
    pub earlier: Vec<RunRow>,
    /// What the reader can do.
    pub forms: DecisionForms,
    /// What to tell first.
    pub notice: Option<Notice>,
    /// The store's time.
    pub now: Moment,
}

/// What one person said.
#[derive(Debug, Clone)]
pub struct AnswerView {
    /// Who.
    pub by: String,
    /// `approved` or `rejected`.
    pub verdict: String,
    /// Why.
    pub reason: Option<String>,
    /// When.
    pub at: String,
}

/// What became of a run.
#[derive(Debug, Clone)]
pub struct OutcomeView {
    /// Why it failed.
    pub code: Option<String>,
    /// In words.
    pub message: String,
    /// Whether anything was sent to the target.
    pub attempted: bool,
    /// The result, as JSON in lines.
    pub result: Option<String>,
    /// What the knowledge rests on.
    pub basis: String,
}

/// A rule of the tenant's configuration.
#[derive(Debug, Clone)]
pub struct RuleView {
    /// The key under which it stands.
    pub key: String,
    /// As it is written.
    pub text: String,
    /// The text in which it stands.
    pub source: String,
    /// The line.
    pub line: u32,
}

/// The page.
pub fn page(view: &RunView) -> Markup {
    html! {
        @if let Some(told) = &view.notice { (notice(told)) }
        article #run .run-page data-run=(view.id) data-state=(view.state.as_str()) data-changed=(view.changed_at.millis()) data-effect=(view.effect.as_str()) {
            header {
                p.facts { (parts::effect(view.effect)) " " (parts::state(view.state)) " " code { (view.tool) } }
                h1 { (untrusted(&view.sentence)) }
                p.facts {
                    span { "asked by " (untrusted(&view.requester)) " " (moment(view.asked_at, view.now)) }
                    @if view.state == RunState::PendingApproval {
                        span.expiry { " · expires " (moment(view.expires_at, view.now)) }
                    }
                }
            }
            @if view.state == RunState::OutcomeUnknown { (unknown()) }
            (risks(view))
            (outcome(view))
            (difference(view))
            (arguments(view))
            (decide::forms(view))
            (about(view))
            (timeline(view))
            (earlier(view))
        }
    }
}

fn unknown() -> Markup {
    html! {
        section.unknown aria-labelledby="unknown-title" {
            h2 #unknown-title { "Nobody knows whether this was done" }
            p { "The request was sent, or may have been, and its answer did not arrive. Look at the target, then settle the run below. The service sends nothing again by itself." }
        }
    }
}

fn risks(view: &RunView) -> Markup {
    let disrupts = view.effect == Effect::Disrupt;
    html! {
        @if disrupts || view.tainted || !view.warnings.is_empty() || !view.hidden.is_empty() {
            section.risks aria-labelledby="risks-title" {
                h2 #risks-title { "Risks" }
                ul {
                    @if disrupts && view.warnings.is_empty() { li { strong { "Disruptive: " } "it takes something away, or puts service at risk." } }
                    @for warning in &view.warnings { li { (untrusted(warning)) } }
                    @if view.tainted {
                        li { "The session had read text from outside before it asked. That text may have talked the agent into this." }
                    }
                    @for hidden in &view.hidden { li { "Not shown: " (untrusted(hidden)) } }
                }
            }
        }
    }
}

fn difference(view: &RunView) -> Markup {
    html! {
        @if !view.difference.is_empty() {
            section aria-labelledby="difference-title" {
                h2 #difference-title { "What changes" }
                (lines(&view.difference, true))
            }
        }
    }
}

fn arguments(view: &RunView) -> Markup {
    html! {
        @if let Some(arguments) = &view.arguments {
            section.from-outside aria-labelledby="arguments-title" {
                h2 #arguments-title { "Arguments" }
                p.hint { "The agent wrote these. Read them as you would read a letter from a stranger." }
                (lines(arguments, false))
                @if let Some(address) = &view.forms.exact_arguments {
                    form method="post" action=(address) {
                        (parts::decision_fields(&view.forms.form_token, &view.digest))
                        button.quiet type="submit" { "Show the exact arguments, and note in the audit log that I read them" }
                    }
                }
            }
        } @else if view.state.is_final() {
            p.hint { "The arguments are no longer kept, because the run is over. Their digest is." }
        }
    }
}

fn outcome(view: &RunView) -> Markup {
    html! {
        @if let Some(outcome) = &view.outcome {
            section aria-labelledby="outcome-title" {
                h2 #outcome-title { "Outcome" }
                dl {
                    dt { "What happened" } dd { (untrusted(&outcome.message)) }
                    @if let Some(code) = &outcome.code { dt { "Code" } dd { code { (code) } } }
                    dt { "Sent to the target" } dd { @if outcome.attempted { "yes" } @else { "no" } }
                    dt { "Known from" } dd { (untrusted(&outcome.basis)) }
                }
                @if let Some(result) = &outcome.result {
                    details open[result.len() < 2_000] { summary { "Result" } (lines(result, false)) }
                }
            }
        }
    }
}

fn about(view: &RunView) -> Markup {
    html! {
        section aria-labelledby="about-title" {
            h2 #about-title { "About this request" }
            dl {
                dt { "Run" } dd { code { (view.id) } }
                dt { "Tool" } dd { code { (view.tool) } " of " (view.toolset) }
                dt { "Asked by" } dd { (untrusted(&view.requester)) }
                @if let Some(session) = &view.session { dt { "Session" } dd { code { (session) } } }
                @if let Some(assignment) = &view.assignment { dt { "Opened for" } dd { (untrusted(assignment)) } }
                dt { "Why a person is asked" }
                dd {
                    @if let Some(rule) = &view.rule {
                        code { (rule.key) } " " (untrusted(&rule.text)) ", " (rule.source) " line " (rule.line)
                    } @else { "it " (view.effect.as_str()) "s something, and every such call waits for a person" }
                }
                dt { "Approvals needed" } dd { (view.deciders) }
                dt { "A rejection" }
                dd {
                    @if view.rejection_stops { "stops the session until a person clears it" }
                    @else { "lets the agent go on and choose something else" }
                }
                dt { "Digest" } dd { code.digest { (view.digest) } }
            }
        }
    }
}

fn timeline(view: &RunView) -> Markup {
    html! {
        section aria-labelledby="timeline-title" {
            h2 #timeline-title { "Timeline" }
            ol.timeline {
                li { time datetime=(view.asked_at) { (view.asked_at) } " asked by " (untrusted(&view.requester)) }
                @for answer in &view.answers {
                    li {
                        time datetime=(answer.at) { (answer.at) } " " (answer.verdict) " by " (untrusted(&answer.by))
                        @if let Some(reason) = &answer.reason { ": " (untrusted(reason)) }
                    }
                }
                li { time datetime=(view.changed_at) { (view.changed_at) } " " (parts::state_in_words(view.state)) }
            }
        }
    }
}

fn earlier(view: &RunView) -> Markup {
    html! {
        section aria-labelledby="earlier-title" {
            h2 #earlier-title { "Earlier runs on the same thing" }
            @if view.earlier.is_empty() { p.hint { "None among the last runs." } }
            @else { (run_list(&view.earlier, view.now, "earlier")) }
        }
    }
}
