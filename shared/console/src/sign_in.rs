//! Signing in: one button for each issuer, and why somebody was not let in.

use crate::parts::{Notice, notice};
use maud::{Markup, html};

/// One way to sign in.
#[derive(Debug, Clone)]
pub struct SignInOption {
    /// What its button says.
    pub name: String,
    /// Where it leads.
    pub address: String,
}

/// What the page shows.
#[derive(Debug, Clone, Default)]
pub struct SignInView {
    /// The ways to sign in.
    pub options: Vec<SignInOption>,
    /// Tenants to choose from, if the issuer named several.
    pub tenants: Vec<SignInOption>,
    /// What to tell first.
    pub notice: Option<Notice>,
    /// Whether this is a service for development, which prints links to sign in with.
    pub development: bool,
}

/// The page.
pub fn page(view: &SignInView) -> Markup {
    html! {
        section.sign-in {
            h1 { "Sign in" }
            @if let Some(told) = &view.notice { (notice(told)) }
            @if !view.tenants.is_empty() {
                p { "You may see several tenants. Choose one:" }
                ul.choices { @for tenant in &view.tenants { li { a.button href=(tenant.address) { (tenant.name) } } } }
            } @else if view.options.is_empty() {
                @if view.development {
                    p { "This service is for development. It printed a link for each role when it started; each link signs in once. Start it again to get new ones." }
                } @else {
                    p { "No issuer is configured to sign in with. The operator adds one under " code { "[[console.issuers]]" } "." }
                }
            } @else {
                p { "Your company's sign-in tells the service who you are and what you may do here." }
                ul.choices { @for option in &view.options { li { a.button href=(option.address) { "Sign in with " (option.name) } } } }
            }
        }
    }
}
