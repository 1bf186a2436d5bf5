//! A page that tells one thing: a right that is missing, something that is not there, a store that does not answer.

use crate::BASE;
use crate::parts::{lines, untrusted};
use maud::{Markup, html};

/// What the page tells.
#[derive(Debug, Clone, Default)]
pub struct MessageView {
    /// In a few words.
    pub title: String,
    /// In a sentence.
    pub text: String,
    /// What to do now.
    pub next: Option<String>,
    /// The right that is missing.
    pub missing_right: Option<String>,
    /// What was asked for, as text.
    pub body: Option<String>,
    /// Where to go back to, and what that is called.
    pub back: Option<(String, String)>,
    /// The trace, for whoever is asked for help.
    pub trace: Option<String>,
}

/// The page.
pub fn page(view: &MessageView) -> Markup {
    html! {
        section.message {
            h1 { (view.title) }
            p { (untrusted(&view.text)) }
            @if let Some(right) = &view.missing_right {
                p { "The right that is missing is " code { (right) } ". Ask whoever manages access for your tenant, and name it." }
            }
            @if let Some(next) = &view.next { p { (untrusted(next)) } }
            @if let Some(body) = &view.body { (lines(body, false)) }
            p {
                @if let Some((address, name)) = &view.back { a href=(address) { (name) } }
                @else { a href=(BASE) { "To the inbox" } }
            }
            @if let Some(trace) = &view.trace { p.hint { "Trace " code { (trace) } } }
        }
    }
}
