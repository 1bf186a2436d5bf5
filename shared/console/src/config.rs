//! The tenant's configuration: what is in force, a text to edit, every mistake in it with its line, and what it changes.
//!
//! A text with mistakes comes back in the form as it was written. The difference is always against what is in force.

use crate::parts::{Notice, lines, moment, notice, untrusted};
use crate::{BASE, assets};
use domain::Moment;
use domain::text::is_tricky;
use maud::{Markup, html};

/// What is in force.
#[derive(Debug, Clone)]
pub struct ConfigView {
    /// The number of the text that was set by people; `None` if the tenant's file holds.
    pub version: Option<u64>,
    /// What a change has to name.
    pub etag: String,
    /// The text.
    pub text: String,
    /// Who set it, and when.
    pub set: Option<(String, Moment)>,
    /// What they had to say.
    pub note: Option<String>,
    /// Whether the operator keeps it in files only.
    pub locked: bool,
    /// Whether this replica serves the tenant by it.
    pub in_force: bool,
    /// Why it does not.
    pub problems: Vec<ProblemView>,
    /// What is not wrong, and will not work.
    pub warnings: Vec<String>,
    /// What somebody is about to write.
    pub draft: Option<DraftView>,
    /// What every form carries.
    pub form_token: String,
    /// What to tell first.
    pub notice: Option<Notice>,
    /// The store's time.
    pub now: Moment,
}

/// A text that is not in force.
#[derive(Debug, Clone, Default)]
pub struct DraftView {
    /// As it was written.
    pub text: String,
    /// The comment beside it.
    pub note: String,
    /// Every mistake, in the order of the text.
    pub problems: Vec<ProblemView>,
    /// What is not wrong, and will not work.
    pub warnings: Vec<String>,
    /// What it changes, line by line.
    pub difference: String,
}

/// One mistake.
#[derive(Debug, Clone)]
pub struct ProblemView {
    /// The line, counted from 1.
    pub line: u32,
    /// The character in it, counted from 1.
    pub column: u32,
    /// The stable name of its kind.
    pub code: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The line itself.
    pub excerpt: String,
}

/// The page.
pub fn page(view: &ConfigView) -> Markup {
    html! {
        @if !view.locked { script type="module" src=(assets::address("editor.js")) {} }
        h1 { "Configuration" }
        @if let Some(told) = &view.notice { (notice(told)) }
        (standing(view))
        @if let Some(draft) = &view.draft { (checked(draft)) }
        @if view.locked { (read_only(view)) } @else { (editor(view)) (back_to_the_file(view)) }
    }
}

fn standing(view: &ConfigView) -> Markup {
    html! {
        section #standing aria-labelledby="standing-title" {
            h2 #standing-title { "What is in force" }
            p {
                @match (view.version, &view.set) {
                    (Some(version), Some((by, at))) => {
                        "Version " (version) ", set by " (untrusted(by)) " " (moment(*at, view.now))
                        @if let Some(note) = &view.note { ": " (untrusted(note)) }
                    }
                    _ => { "The tenant's file, which the operator keeps." }
                }
            }
            @if !view.in_force {
                p { strong { "This replica does not serve it yet." } " The tenant keeps what it had, or has no tools if it had nothing." }
            }
            (problems(&view.problems))
            (warnings(&view.warnings))
            p.links {
                a href={ (BASE) "/config/history" } { "Earlier versions" }
                a href={ (BASE) "/config/keys" } { "Every key, explained" }
                a href={ (BASE) "/explain" } { "What a rule does to a call" }
            }
        }
    }
}

/// What a check found.
fn checked(draft: &DraftView) -> Markup {
    html! {
        section #checked aria-labelledby="checked-title" {
            h2 #checked-title {
                @match draft.problems.len() {
                    0 => "No mistakes in your text",
                    1 => "One mistake in your text",
                    many => { (many) " mistakes in your text" }
                }
            }
            (problems(&draft.problems))
            (warnings(&draft.warnings))
            (hidden_characters(&draft.text))
            h3 { "What it changes" }
            @if draft.difference.is_empty() { p.hint { "Nothing: it is what is in force." } }
            @else { (lines(&draft.difference, true)) }
        }
    }
}

/// Mistakes, each with the line it stands in. Scripts take the reader there in the form.
pub(crate) fn problems(found: &[ProblemView]) -> Markup {
    html! {
        @if !found.is_empty() {
            ol.problems {
                @for problem in found {
                    li {
                        a href="#text" data-line=(problem.line) data-column=(problem.column) {
                            "Line " (problem.line) ", column " (problem.column)
                        }
                        " " code { (problem.code) } " " (untrusted(&problem.message))
                        @if let Some(hint) = &problem.hint { p.hint { (untrusted(hint)) } }
                        @if !problem.excerpt.is_empty() { (lines(&problem.excerpt, false)) }
                    }
                }
            }
        }
    }
}

fn warnings(found: &[String]) -> Markup {
    html! {
        @if !found.is_empty() {
            ul.warnings {
                @for warning in found { li { (untrusted(warning)) } }
            }
            p.links { a href={ (BASE) "/secrets" } { "To the secrets" } }
        }
    }
}

/// A field shows nothing of these characters, so the page says where they stand.
fn hidden_characters(text: &str) -> Markup {
    let mut found = text.lines().enumerate().flat_map(|(at, line)| {
        let tricky = line.chars().enumerate().filter(|(_, c)| is_tricky(*c));
        tricky.map(move |(column, c)| (at + 1, column + 1, c))
    });
    let first: Vec<(usize, usize, char)> = found.by_ref().take(10).collect();
    html! {
        @if !first.is_empty() {
            p { strong { "The text has characters that cannot be seen:" } }
            ul.warnings {
                @for (line, column, c) in &first {
                    li { "line " (line) ", column " (column) ": " (untrusted(&c.to_string())) }
                }
                @if found.next().is_some() { li { "and more" } }
            }
        }
    }
}

fn read_only(view: &ConfigView) -> Markup {
    html! {
        section #read-only aria-labelledby="read-only-title" {
            h2 #read-only-title { "It comes from a file: read only here" }
            p.hint { "The operator of this service keeps the configuration of tenants in files. Ask them for a change." }
            (lines(&view.text, false))
        }
    }
}

fn editor(view: &ConfigView) -> Markup {
    let (text, note) = view.draft.as_ref().map_or((&view.text, ""), |draft| (&draft.text, draft.note.as_str()));
    html! {
        section.decision #editor aria-labelledby="editor-title" {
            h2 #editor-title { "Change it" }
            @if view.version.is_none() {
                p.hint { "What you save holds instead of the file, whole, until somebody goes back to the file. It can only narrow what the file gives." }
            }
            form.wide method="post" action={ (BASE) "/config/save" } {
                input type="hidden" name="token" value=(view.form_token);
                input type="hidden" name="etag" value=(view.etag);
                label for="text" { "Text, in YAML" }
                textarea #text name="text" rows="22" spellcheck="false" autocomplete="off" autocapitalize="off" data-etag=(view.etag) {
                    // A browser drops the first line break of a field.
                    "\n" (text)
                }
                label for="note" { "Comment: why" }
                input #note name="note" type="text" maxlength="500" required autocomplete="off" value=(note);
                div.buttons {
                    button type="submit" name="check" value="1" formnovalidate formaction={ (BASE) "/config/check" } { "Check" }
                    button type="submit" name="replay" value="1" formnovalidate formaction={ (BASE) "/replay" } { "Replay past calls" }
                    button.risky type="submit" data-arm="1500" { "Save" }
                }
            }
        }
    }
}

fn back_to_the_file(view: &ConfigView) -> Markup {
    html! {
        @if view.version.is_some() {
            section.decision #back aria-labelledby="back-title" {
                h2 #back-title { "Back to the file" }
                p.hint { "The operator's file holds again. What is in force now stays among the earlier versions." }
                form method="post" action={ (BASE) "/config/remove" } {
                    input type="hidden" name="token" value=(view.form_token);
                    input type="hidden" name="etag" value=(view.etag);
                    label for="back-note" { "Comment: why" }
                    input #back-note name="note" type="text" maxlength="500" required autocomplete="off";
                    button.reject type="submit" data-arm="1500" { "Go back to the file" }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> ConfigView {
        ConfigView {
            version: None,
            etag: "ab12".to_owned(),
            text: "tenant: acme\n".to_owned(),
            set: None,
            note: None,
            locked: false,
            in_force: true,
            problems: Vec::new(),
            warnings: Vec::new(),
            draft: None,
            form_token: "t".to_owned(),
            notice: None,
            now: Moment::from_secs(10),
        }
    }

    #[test]
    fn a_locked_configuration_has_no_form() {
        let shown = page(&ConfigView { locked: true, ..view() }).into_string();
        assert!(
            shown.contains("read only here") && !shown.contains("<form") && !shown.contains("<textarea"),
            "{shown}"
        );
        assert!(page(&view()).into_string().contains("\ntenant: acme\n</textarea>"));
    }

    #[test]
    fn a_text_with_mistakes_comes_back_whole_with_each_of_them() {
        let problem = ProblemView {
            line: 2,
            column: 7,
            code: "unknown_value".to_owned(),
            message: "no mode \u{202e}".to_owned(),
            hint: Some("write `read`".to_owned()),
            excerpt: "mode: admin".to_owned(),
        };
        let text = "tenant: acme\nmode: admin</textarea><script>\u{200b}\n".to_owned();
        let draft = DraftView { text, note: "\"why".to_owned(), problems: vec![problem], ..DraftView::default() };
        let shown = page(&ConfigView { draft: Some(draft), ..view() }).into_string();
        assert!(shown.contains("Line 2, column 7") && shown.contains("unknown_value"), "{shown}");
        assert!(shown.contains("mode: admin&lt;/textarea&gt;&lt;script&gt;"), "{shown}");
        assert!(shown.contains("value=\"&quot;why\"") && shown.contains("name=\"etag\" value=\"ab12\""), "{shown}");
        assert!(shown.contains("cannot be seen") && shown.contains("U+200B") && shown.contains("U+202E"), "{shown}");
    }

    #[test]
    fn only_what_people_set_can_be_taken_back() {
        assert!(!page(&view()).into_string().contains("/config/remove"));
        let set = Some(("ana".to_owned(), Moment::from_secs(5)));
        let shown = page(&ConfigView { version: Some(3), set, ..view() }).into_string();
        assert!(shown.contains("/config/remove") && shown.contains("Version 3, set by"), "{shown}");
    }
}
