//! What policy says to one call, by which rule and line; and what a draft of the configuration would have said to the calls
//! of the past. Nothing is called.

use crate::BASE;
use crate::config::{ProblemView, problems};
use crate::parts::{Notice, effect, lines, moment, notice, run_address, untrusted};
use domain::{Effect, Moment};
use maud::{Markup, html};

/// A call that is asked about, as it stands in the address.
#[derive(Debug, Clone, Default)]
pub struct ExplainQueryView {
    /// The tool.
    pub tool: String,
    /// Its arguments, as JSON.
    pub args: String,
    /// What the agent's token may do: `tools:read`, `tools:write`.
    pub scopes: Vec<String>,
    /// What the session is for; empty for the most the tenant allows.
    pub mode: String,
}

/// What policy says.
#[derive(Debug, Clone)]
pub struct ExplainAnswerView {
    /// `allowed`, `asks` or `denied`.
    pub verdict: &'static str,
    /// Why.
    pub why: String,
    /// What the call does, and to what.
    pub effect: Option<(Effect, Option<String>)>,
    /// The rule that decided.
    pub rule: Option<RuleLineView>,
    /// What a rejection means.
    pub on_reject: Option<&'static str>,
    /// What is not known.
    pub notes: Vec<String>,
}

/// A rule and the line in which it stands.
#[derive(Debug, Clone)]
pub struct RuleLineView {
    /// The key under which it stands.
    pub key: String,
    /// As it is written.
    pub text: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The character in it, counted from 1.
    pub column: u32,
    /// The line itself.
    pub excerpt: String,
}

/// What the page shows.
#[derive(Debug, Clone)]
pub struct ExplainView {
    /// What is asked about.
    pub query: ExplainQueryView,
    /// The tools there are.
    pub tools: Vec<String>,
    /// What policy says, if something was asked.
    pub answer: Option<ExplainAnswerView>,
    /// What to tell first.
    pub notice: Option<Notice>,
}

/// The page.
pub fn page(view: &ExplainView) -> Markup {
    html! {
        h1 { "Explain a call" }
        @if let Some(told) = &view.notice { (notice(told)) }
        p.hint { "What the configuration in force says to a call of an agent that has loaded the tool. Nothing is called." }
        (question(view))
        @if let Some(answer) = &view.answer { (answered(&view.query.tool, answer)) }
        section aria-labelledby="replay-title" {
            h2 #replay-title { "Try a draft against calls of the past" }
            p { a href={ (BASE) "/replay" } { "Replay past calls" } " tells what a draft of the configuration would have stopped." }
        }
    }
}

fn question(view: &ExplainView) -> Markup {
    let query = &view.query;
    let has = |scope: &str| query.scopes.iter().any(|one| one == scope);
    html! {
        section aria-labelledby="question-title" {
            h2 #question-title { "The call" }
            form #question method="get" action={ (BASE) "/explain" } {
                label for="tool" { "Tool" }
                input #tool name="tool" type="text" required list="tools" autocomplete="off" spellcheck="false" value=(query.tool);
                datalist #tools { @for tool in &view.tools { option value=(tool) {} } }
                label for="args" { "Arguments, as JSON; without them the strongest effect of the tool is judged" }
                textarea #args name="args" rows="5" spellcheck="false" autocomplete="off" { "\n" (query.args) }
                fieldset {
                    legend { "The agent's token has" }
                    div.choice {
                        label { input type="checkbox" name="read" value="1" checked[has("tools:read")]; " tools:read" }
                        label { input type="checkbox" name="write" value="1" checked[has("tools:write")]; " tools:write" }
                    }
                }
                label for="mode" { "The session is for" }
                select #mode name="mode" {
                    option value="" selected[query.mode.is_empty()] { "the most the tenant allows" }
                    option value="read" selected[query.mode == "read"] { "reading" }
                    option value="write" selected[query.mode == "write"] { "writing" }
                }
                div.buttons { button.risky type="submit" { "Explain" } }
            }
        }
    }
}

/// What a verdict is called, and how loud it is.
fn verdict_in_words(verdict: &str) -> (&'static str, &'static str) {
    match verdict {
        "allowed" => ("runs at once", "good"),
        "asks" => ("waits for a person", "warn"),
        _ => ("is denied", "bad"),
    }
}

fn answered(tool: &str, answer: &ExplainAnswerView) -> Markup {
    let (words, kind) = verdict_in_words(answer.verdict);
    html! {
        section #answer data-verdict=(answer.verdict) aria-labelledby="answer-title" {
            h2 #answer-title { code { (untrusted(tool)) } " " span.mark data-kind=(kind) { (words) } }
            dl {
                dt { "Why" } dd { (untrusted(&answer.why)) }
                @if let Some((does, about)) = &answer.effect {
                    dt { "Effect" } dd { (effect(*does)) @if let Some(about) = about { " about " (untrusted(about)) } }
                }
                @if let Some(on_reject) = answer.on_reject { dt { "A rejection" } dd { (on_reject) } }
                @if let Some(rule) = &answer.rule {
                    dt { "Rule" } dd { (rule_line(rule)) }
                }
                @for note in &answer.notes { dt { "Note" } dd { (untrusted(note)) } }
            }
            @if let Some(rule) = &answer.rule { @if !rule.excerpt.is_empty() { (lines(&rule.excerpt, false)) } }
        }
    }
}

fn rule_line(rule: &RuleLineView) -> Markup {
    html! { code { (rule.key) } " " (untrusted(&rule.text)) ", line " (rule.line) ", column " (rule.column) }
}

/// A call of the past that a draft judges otherwise.
#[derive(Debug, Clone)]
pub struct ReplayRow {
    /// When it was made.
    pub at: Moment,
    /// The tool.
    pub tool: String,
    /// What it was about, or aimed at.
    pub about: Option<String>,
    /// Who called.
    pub by: String,
    /// What was decided then: `allowed`, `asks` or `denied`.
    pub was: &'static str,
    /// The run it became, and who approved that.
    pub run: Option<(String, Vec<String>)>,
    /// Whether the reader is one of them.
    pub approved_by_reader: bool,
    /// What the draft says.
    pub would: &'static str,
    /// Why.
    pub why: String,
    /// By which rule.
    pub rule: Option<RuleLineView>,
}

/// What a draft would have done.
#[derive(Debug, Clone)]
pub struct ReplayOutcomeView {
    /// How many calls were judged.
    pub judged: usize,
    /// How many of them without their arguments.
    pub without_arguments: usize,
    /// How many could not be judged.
    pub unknown: usize,
    /// Whether the audit log has more calls in this time than were looked at.
    pub in_part: bool,
    /// Calls that would be denied, how many there are in all, and how many of them the reader had approved.
    pub stopped: (Vec<ReplayRow>, usize, usize),
    /// Calls that would wait for a person, and how many there are in all.
    pub asked: (Vec<ReplayRow>, usize),
    /// Calls that would pass more easily, and how many there are in all.
    pub freed: (Vec<ReplayRow>, usize),
}

/// What the page of a replay shows.
#[derive(Debug, Clone)]
pub struct ReplayView {
    /// The draft.
    pub text: String,
    /// What a change of what is in force has to name.
    pub etag: String,
    /// The comment that was begun.
    pub note: String,
    /// How far back: `1h`, `24h`, `7d` or `30d`.
    pub since: String,
    /// Mistakes in the draft.
    pub problems: Vec<ProblemView>,
    /// What it would have done, if it was tried.
    pub outcome: Option<ReplayOutcomeView>,
    /// Whether the configuration cannot be changed here.
    pub locked: bool,
    /// What every form carries.
    pub form_token: String,
    /// The store's time.
    pub now: Moment,
}

/// How far back a replay can look.
pub const SINCE: [(&str, &str); 4] =
    [("1h", "the last hour"), ("24h", "the last day"), ("7d", "the last 7 days"), ("30d", "the last 30 days")];

/// The page of a replay.
pub fn replay(view: &ReplayView) -> Markup {
    html! {
        p.back { a href={ (BASE) "/config" } { "Configuration" } }
        h1 { "Replay past calls" }
        @if !view.problems.is_empty() {
            section { h2 { "The draft has mistakes, so nothing was replayed" } (problems(&view.problems)) }
        }
        @if let Some(outcome) = &view.outcome { (told(outcome, view.now)) }
        section aria-labelledby="draft-title" {
            h2 #draft-title { "The draft" }
            p.hint { "Every call of this time in the audit log is judged by the draft, with the arguments it had. Nothing is called, and nothing is saved." }
            form #draft method="post" action={ (BASE) "/replay" } {
                input type="hidden" name="token" value=(view.form_token);
                input type="hidden" name="etag" value=(view.etag);
                input type="hidden" name="note" value=(view.note);
                label for="since" { "Calls of" }
                select #since name="since" {
                    @for (value, words) in SINCE { option value=(value) selected[view.since == value] { (words) } }
                }
                label for="text" { "Text, in YAML" }
                textarea #text name="text" rows="16" spellcheck="false" autocomplete="off" autocapitalize="off" { "\n" (view.text) }
                div.buttons {
                    @if !view.locked { button type="submit" formaction={ (BASE) "/config/check" } { "Go on editing it" } }
                    button.risky type="submit" { "Replay" }
                }
            }
        }
    }
}

fn told(outcome: &ReplayOutcomeView, now: Moment) -> Markup {
    let (stopped, total, approved) = &outcome.stopped;
    html! {
        section #outcome data-stopped=(total) data-approved=(approved) aria-labelledby="outcome-title" {
            h2 #outcome-title { "What it would have done" }
            p.headline {
                @if outcome.judged == 0 { "No call of this time is in the audit log." }
                @else if *total == 0 { "This draft would have stopped none of " (calls(outcome.judged)) "." }
                @else {
                    "This draft would have stopped " (calls(*total))
                    @if *approved > 0 { ", of these " (approved) " approved by you" }
                    "."
                }
            }
            @if outcome.judged > 0 {
                p { (calls(outcome.judged)) " looked at; " (outcome.asked.1) " would wait for a person that ran at once, " (outcome.freed.1) " would pass more easily." }
            }
            @if outcome.without_arguments > 0 {
                p.hint { (calls(outcome.without_arguments)) " judged without arguments, because they were not kept or no longer fit: rules about a subject were not looked at for them." }
            }
            @if outcome.unknown > 0 { p.hint { (calls(outcome.unknown)) " not judged: the tool is not known now." } }
            @if outcome.in_part { p.hint { "There are more calls in this time than one replay looks at; the newest are missing. Choose a shorter time." } }
            (rows("Stopped", stopped, *total, now))
            (rows("Would wait for a person", &outcome.asked.0, outcome.asked.1, now))
            (rows("Would pass more easily", &outcome.freed.0, outcome.freed.1, now))
        }
    }
}

fn calls(number: usize) -> String {
    format!("{number} call{}", if number == 1 { "" } else { "s" })
}

fn rows(heading: &str, rows: &[ReplayRow], total: usize, now: Moment) -> Markup {
    html! {
        @if !rows.is_empty() {
            h3 { (heading) }
            ul.cards {
                @for row in rows {
                    li.card {
                        code.name { (untrusted(&row.tool)) }
                        @if let Some(about) = &row.about { " on " (untrusted(about)) }
                        p.facts {
                            span { "by " (untrusted(&row.by)) " " (moment(row.at, now)) }
                            span { "then: " (past_in_words(row.was)) }
                            @if let Some((run, approvals)) = &row.run {
                                span {
                                    a href=(run_address(run)) { "its run" }
                                    @if row.approved_by_reader { " approved by you" }
                                    @else if !approvals.is_empty() { " approved by " (untrusted(&approvals.join(", "))) }
                                }
                            }
                        }
                        p {
                            "With the draft it " (verdict_in_words(row.would).0) ": " (untrusted(&row.why))
                            @if let Some(rule) = &row.rule { " (" (rule_line(rule)) ")" }
                        }
                    }
                }
            }
            @if total > rows.len() { p.hint { "And " (total - rows.len()) " more." } }
        }
    }
}

fn past_in_words(verdict: &str) -> &'static str {
    match verdict {
        "allowed" => "ran at once",
        "asks" => "waited for a person",
        _ => "denied",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(outcome: ReplayOutcomeView) -> ReplayView {
        ReplayView {
            text: "tenant: acme\n</textarea>".to_owned(),
            etag: "1".to_owned(),
            note: String::new(),
            since: "7d".to_owned(),
            problems: Vec::new(),
            outcome: Some(outcome),
            locked: false,
            form_token: "t".to_owned(),
            now: Moment::from_secs(100),
        }
    }

    #[test]
    fn the_headline_counts_what_is_stopped_and_what_the_reader_had_approved() {
        let row = ReplayRow {
            at: Moment::from_secs(1),
            tool: "k8s_scale".to_owned(),
            about: Some("shop/\u{202e}web".to_owned()),
            by: "<b>".to_owned(),
            was: "asks",
            run: Some(("run_1".to_owned(), vec!["ana".to_owned()])),
            approved_by_reader: true,
            would: "denied",
            why: "a rule".to_owned(),
            rule: None,
        };
        let none = ReplayOutcomeView {
            judged: 20,
            without_arguments: 0,
            unknown: 0,
            in_part: false,
            stopped: (Vec::new(), 0, 0),
            asked: (Vec::new(), 0),
            freed: (Vec::new(), 0),
        };
        let some = ReplayOutcomeView { stopped: (vec![row], 14, 2), ..none.clone() };
        let shown = replay(&view(some)).into_string();
        assert!(shown.contains("This draft would have stopped 14 calls, of these 2 approved by you."), "{shown}");
        assert!(shown.contains("And 13 more.") && shown.contains("U+202E") && !shown.contains("<b>"), "{shown}");
        let shown = replay(&view(none)).into_string();
        assert!(shown.contains("stopped none of 20 calls") && shown.contains("&lt;/textarea&gt;"), "{shown}");
    }
}
