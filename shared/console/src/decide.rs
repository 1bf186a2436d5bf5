//! The forms by which a person decides about a run. Each carries the digest of what was shown and the form token.
//!
//! A disruptive run wants the name of its object typed, and a fresh proof of who decides. Scripts keep the buttons
//! disabled for a moment after the page moved, and while the page may be old; without scripts the forms work the same.

use crate::parts::{decision_fields, moment, untrusted};
use crate::run::RunView;
use domain::run::RunState;
use domain::{Effect, Moment};
use maud::{Markup, html};

/// Ready-made reasons; what is chosen is sent to the agent with the free text.
const REASONS: [&str; 4] = [
    "Not now; ask again later.",
    "Wrong target.",
    "Too much at once; ask for a smaller change.",
    "Explain first why it is needed.",
];

/// What the reader can do about a run.
#[derive(Debug, Clone, Default)]
pub struct DecisionForms {
    /// What every form carries.
    pub form_token: String,
    /// Where decisions are posted, such as `/console/runs/run_…`; the verb follows.
    pub address: String,
    /// Whether approving and rejecting are offered.
    pub decide: bool,
    /// Why they are not, although the run waits.
    pub why_not: Option<String>,
    /// What has to be typed before a disruptive run is approved.
    pub typed: Option<String>,
    /// Where to prove anew who decides, if that is needed first.
    pub step_up: Option<String>,
    /// Whether a rejection must say why.
    pub reason_needed: bool,
    /// Whether an unknown outcome can be settled.
    pub resolve: bool,
    /// Whether the requester can take it back.
    pub cancel: bool,
    /// Whether the session that a rejection stopped can be cleared.
    pub clear: bool,
    /// Where the exact arguments are asked for.
    pub exact_arguments: Option<String>,
    /// The same decision as a command.
    pub command: Option<String>,
    /// What was typed as the reason of a rejection that was refused.
    pub reason: String,
    /// Whether the run can be put off, or until when it is.
    pub later: Option<LaterView>,
}

/// Putting a run off: it leaves the reader's inbox for a while, and nothing else changes.
#[derive(Debug, Clone)]
pub enum LaterView {
    /// For how long it can be put off: as it is sent, and in words.
    Offered(Vec<(&'static str, &'static str)>),
    /// When it comes back.
    Until(Moment),
}

/// All forms that are offered.
pub fn forms(view: &RunView) -> Markup {
    let forms = &view.forms;
    html! {
        @if let (Some(why), RunState::PendingApproval) = (&forms.why_not, view.state) {
            p.hint { (untrusted(why)) }
        }
        @if forms.decide { (decision(view)) }
        @if forms.resolve { (resolve(view)) }
        @if forms.clear {
            section.decision aria-labelledby="clear-title" {
                h2 #clear-title { "Let the session go on" }
                p { "This rejection stopped the session. Clear it when the agent may ask for changes again." }
                form method="post" action={ (forms.address) "/clear" } {
                    (decision_fields(&forms.form_token, &view.digest))
                    button type="submit" { "Clear" }
                }
            }
        }
        @if forms.cancel {
            section.decision aria-labelledby="cancel-title" {
                h2 #cancel-title { "Take the request back" }
                form method="post" action={ (forms.address) "/cancel" } {
                    (decision_fields(&forms.form_token, &view.digest))
                    button type="submit" { "Take back" }
                }
            }
        }
    }
}

fn decision(view: &RunView) -> Markup {
    let forms = &view.forms;
    html! {
        section #decision .decision aria-labelledby="decision-title" {
            h2 #decision-title { "Decide" }
            p #decision-hint .hint hidden[true] role="status" {}
            @if let Some(step_up) = &forms.step_up {
                p { "This run is disruptive. Prove once more who you are before you approve it." }
                p { a.button #step-up href=(step_up) { "Sign in again to approve" } }
            } @else {
                form #approve method="post" action={ (forms.address) "/approve" } {
                    (decision_fields(&forms.form_token, &view.digest))
                    @if let Some(typed) = &forms.typed {
                        label for="typed" { "Type " code { (typed) } " to approve this disruptive run" }
                        input #typed name="typed" type="text" required autocomplete="off" autocapitalize="off" spellcheck="false";
                    }
                    button.approve type="submit" data-arm="1500" { "Approve" @if view.effect == Effect::Disrupt { " the disruption" } }
                }
            }
            form #reject method="post" action={ (forms.address) "/reject" } {
                (decision_fields(&forms.form_token, &view.digest))
                label for="preset" { "Tell the agent" }
                select #preset name="preset" {
                    option value="" { "a reason of my own" }
                    @for reason in REASONS { option value=(reason) { (reason) } }
                }
                label for="reason" { "What should it do instead?" @if !forms.reason_needed { " (optional)" } }
                textarea #reason name="reason" rows="3" maxlength="1900" { "\n" (forms.reason) }
                button.reject type="submit" data-arm="1500" { "Reject" }
            }
            @if let Some(later) = &forms.later { (put_off(view, later)) }
            @if let Some(command) = &forms.command {
                details { summary { "The same as a command" } pre.text tabindex="0" { (command) } }
            }
        }
    }
}

fn put_off(view: &RunView, later: &LaterView) -> Markup {
    let forms = &view.forms;
    html! {
        @match later {
            LaterView::Offered(spans) => {
                form.inline #later method="post" action={ (forms.address) "/later" } {
                    (decision_fields(&forms.form_token, &view.digest))
                    label.unseen for="for" { "How long" }
                    select #for name="for" { @for (value, words) in spans { option value=(value) { (words) } } }
                    button.quiet type="submit" { "Not now" }
                    p.hint { "Takes it out of your inbox for that long, and only out of yours. It expires " (moment(view.expires_at, view.now)) " all the same." }
                }
            }
            LaterView::Until(until) => {
                form.inline #now method="post" action={ (forms.address) "/now" } {
                    (decision_fields(&forms.form_token, &view.digest))
                    p { "You put this off; it comes back to your inbox " (moment(*until, view.now)) "." }
                    button.quiet type="submit" { "Bring it back now" }
                }
            }
        }
    }
}

fn resolve(view: &RunView) -> Markup {
    let forms = &view.forms;
    html! {
        section #resolve .decision aria-labelledby="resolve-title" {
            h2 #resolve-title { "Settle the outcome" }
            p #decision-hint .hint hidden[true] role="status" {}
            form method="post" action={ (forms.address) "/resolve" } {
                (decision_fields(&forms.form_token, &view.digest))
                fieldset {
                    legend { "I looked at the target, and it" }
                    label { input type="radio" name="outcome" value="succeeded" required; " was done" }
                    label { input type="radio" name="outcome" value="failed" required; " was not done" }
                }
                button type="submit" data-arm="1500" { "Settle" }
            }
        }
    }
}
