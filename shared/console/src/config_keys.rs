//! Every key of a tenant's configuration with what it means, as its schema says.

use crate::BASE;
use crate::parts::untrusted;
use maud::{Markup, html};

/// One key and what stands below it.
#[derive(Debug, Clone, Default)]
pub struct KeyView {
    /// Its name; for entries of a list or a map whose names are free, what stands for them.
    pub name: String,
    /// What kind of value it has.
    pub kind: String,
    /// What it means.
    pub meaning: String,
    /// What holds without it.
    pub default: Option<String>,
    /// Whether it has to be there.
    pub required: bool,
    /// The values there are, with what each means.
    pub values: Vec<(String, String)>,
    /// The keys below it.
    pub below: Vec<KeyView>,
}

/// The page.
pub fn page(keys: &[KeyView]) -> Markup {
    html! {
        p.back { a href={ (BASE) "/config" } { "Configuration" } }
        h1 { "Every key, explained" }
        p.hint { "The check of the console says more than this: it knows which tools, toolsets and servers there are, and what the operator's file gives." }
        @for key in keys {
            section.keyed { (entry(key, true)) }
        }
    }
}

fn entry(key: &KeyView, top: bool) -> Markup {
    html! {
        @if top { h2 id={ "key-" (key.name) } { code { (untrusted(&key.name)) } } }
        @else { p.key { code { (untrusted(&key.name)) } } }
        p.facts {
            span { (key.kind) }
            @if key.required { span { "required" } }
            @if let Some(default) = &key.default { span { "default " code { (untrusted(default)) } } }
        }
        @if !key.meaning.is_empty() { p { (untrusted(&key.meaning)) } }
        @if !key.values.is_empty() {
            ul { @for (value, meaning) in &key.values { li { code { (untrusted(value)) } " " (untrusted(meaning)) } } }
        }
        @if !key.below.is_empty() {
            details open[top && key.below.len() < 8] {
                summary { (key.below.len()) @if key.below.len() == 1 { " key" } @else { " keys" } " below " code { (untrusted(&key.name)) } }
                ul.keys { @for below in &key.below { li { (entry(below, false)) } } }
            }
        }
    }
}
