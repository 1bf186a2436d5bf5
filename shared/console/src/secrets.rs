//! Secrets: their names, who set them and when, what uses them. A value only goes in; no page has one, nor its length.

use crate::BASE;
use crate::parts::{Notice, moment, notice, untrusted};
use domain::Moment;
use maud::{Markup, html};

/// One secret.
#[derive(Debug, Clone)]
pub struct SecretRow {
    /// Its name.
    pub name: String,
    /// Where the value lies that counts, in words.
    pub source: &'static str,
    /// Whether the operator has one of that name, too.
    pub hides_operators: bool,
    /// What people set: the version, who and when.
    pub set: Option<(u64, String, Moment)>,
    /// What is wrong with it.
    pub trouble: Option<&'static str>,
    /// What uses it.
    pub uses: Vec<String>,
}

/// What the page shows.
#[derive(Debug, Clone)]
pub struct SecretsView {
    /// The secrets, by name.
    pub secrets: Vec<SecretRow>,
    /// Names that the configuration uses and that have no value.
    pub missing: Vec<String>,
    /// The name that the form begins with.
    pub chosen: String,
    /// Whether the operator keeps secrets in files only.
    pub locked: bool,
    /// What every form carries.
    pub form_token: String,
    /// What to tell first.
    pub notice: Option<Notice>,
    /// The store's time.
    pub now: Moment,
}

/// The page.
pub fn page(view: &SecretsView) -> Markup {
    html! {
        h1 { "Secrets" }
        @if let Some(told) = &view.notice { (notice(told)) }
        @if view.locked {
            section { h2 { "They come from files: read only here" } p.hint { "The operator of this service keeps the secrets of tenants. Ask them for a change." } }
        }
        @if !view.missing.is_empty() { (missing(view)) }
        @if view.secrets.is_empty() {
            div.empty { p { strong { "The tenant has no secrets." } } p { "A configuration names a secret by a parameter with " code { "secret: true" } "." } }
        } @else {
            ul.cards { @for row in &view.secrets { (one(row, view)) } }
        }
        @if !view.locked { (set(view)) }
    }
}

fn missing(view: &SecretsView) -> Markup {
    html! {
        section #missing aria-labelledby="missing-title" {
            h2 #missing-title { "Named by the configuration and not set" }
            ul.warnings {
                @for name in &view.missing {
                    li { a href={ (BASE) "/secrets?name=" (name) "#set" } { (name) } }
                }
            }
        }
    }
}

fn one(row: &SecretRow, view: &SecretsView) -> Markup {
    html! {
        li.card id={ "secret-" (row.name) } {
            code.name { (row.name) }
            @if let Some(trouble) = row.trouble { " " span.mark data-kind="bad" { (trouble) } }
            p.facts {
                @match &row.set {
                    Some((version, by, at)) => {
                        span { "version " (version) ", set by " (untrusted(by)) " " (moment(*at, view.now)) }
                        @if row.hides_operators { span { "holds instead of the operator's" } }
                    }
                    None => span { (row.source) },
                }
            }
            @if !row.uses.is_empty() { p.facts { "used by " @for (at, used) in row.uses.iter().enumerate() { @if at > 0 { ", " } (untrusted(used)) } } }
            @else { p.facts { "nothing in the configuration uses it" } }
            @if !view.locked { (replace(row, view)) }
        }
    }
}

fn replace(row: &SecretRow, view: &SecretsView) -> Markup {
    let version = row.set.as_ref().map_or(0, |(version, _, _)| *version);
    html! {
        details {
            summary { @if version == 0 { "Set one of the tenant's own" } @else { "Replace or remove" } }
            form method="post" action={ (BASE) "/secrets/set" } autocomplete="off" {
                (hidden(view, &row.name, version))
                (value(&row.name))
                button type="submit" { "Replace" }
            }
            @if version > 0 {
                form method="post" action={ (BASE) "/secrets/remove" } autocomplete="off" {
                    (hidden(view, &row.name, version))
                    label for={ "typed-" (row.name) } { "To remove it, type its name" }
                    input id={ "typed-" (row.name) } name="typed" type="text" required autocomplete="off" spellcheck="false";
                    button.reject type="submit" { "Remove" }
                }
            }
        }
    }
}

fn hidden(view: &SecretsView, name: &str, version: u64) -> Markup {
    html! {
        input type="hidden" name="token" value=(view.form_token);
        input type="hidden" name="name" value=(name);
        input type="hidden" name="version" value=(version);
    }
}

/// A field for a value. It is drawn as dots, kept by no browser, and always empty.
fn value(name: &str) -> Markup {
    html! {
        label for={ "value-" (name) } { "Value" }
        textarea.secret id={ "value-" (name) } name="value" rows="3" required autocomplete="off" spellcheck="false" autocapitalize="off" {}
    }
}

fn set(view: &SecretsView) -> Markup {
    html! {
        section.decision #set aria-labelledby="set-title" {
            h2 #set-title { "Set a new secret" }
            form method="post" action={ (BASE) "/secrets/set" } autocomplete="off" {
                input type="hidden" name="token" value=(view.form_token);
                input type="hidden" name="version" value="0";
                label for="name" { "Name" }
                input #name name="name" type="text" required maxlength="253" pattern="[A-Za-z0-9_\\-][A-Za-z0-9_.\\-]*" autocomplete="off" spellcheck="false" value=(view.chosen);
                (value("of-a-new-secret"))
                p.hint { "It is encrypted before it is stored, and nobody can read it back. A line break behind a single line is left out." }
                button type="submit" { "Set" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> SecretsView {
        let set = Some((3, "ana\u{202e}".to_owned(), Moment::from_secs(1)));
        let row = SecretRow {
            name: "wiki_token".to_owned(),
            source: "set by people",
            hides_operators: true,
            set,
            trouble: None,
            uses: vec!["servers: <b>".to_owned()],
        };
        SecretsView {
            secrets: vec![row],
            missing: vec!["ci".to_owned()],
            chosen: "\"ci".to_owned(),
            locked: false,
            form_token: "t".to_owned(),
            notice: None,
            now: Moment::from_secs(9),
        }
    }

    #[test]
    fn fields_of_values_are_empty_and_kept_by_nobody() {
        let shown = page(&view()).into_string();
        for field in shown.split("<textarea").skip(1) {
            let field = field.split("</textarea>").next().unwrap();
            assert!(field.ends_with('>') && field.contains("autocomplete=\"off\""), "{field}");
        }
        assert!(shown.contains(r#"name="version" value="3""#) && shown.contains("U+202E"), "{shown}");
        assert!(shown.contains("value=\"&quot;ci\"") && !shown.contains("<b>"), "{shown}");
    }

    #[test]
    fn without_the_right_to_change_there_is_no_form() {
        let shown = page(&SecretsView { locked: true, ..view() }).into_string();
        assert!(!shown.contains("<form") && shown.contains("read only here"), "{shown}");
    }
}
