//! What several pages show: text of strangers, states, times, rows of runs, notices and forms.

use crate::BASE;
use domain::run::RunState;
use domain::text::is_tricky;
use domain::{Effect, Moment};
use maud::{Markup, html};

/// A text that somebody outside may have written: as it is, with every character that hides or turns its neighbours
/// written out by its number. It is never markup and never a link.
pub fn untrusted(text: &str) -> Markup {
    html! {
        bdi {
            @for piece in text.split_inclusive(is_tricky) {
                @let hidden = piece.chars().next_back().filter(|c| is_tricky(*c));
                (piece[..piece.len() - hidden.map_or(0, char::len_utf8)])
                @if let Some(hidden) = hidden {
                    span.hidden-character title="A character that cannot be seen" { (named(hidden)) }
                }
            }
        }
    }
}

fn named(c: char) -> String {
    format!("U+{:04X}", u32::from(c))
}

/// Text in lines, as it would be in a terminal. Lines that begin with + and - are those of a difference.
pub fn lines(text: &str, difference: bool) -> Markup {
    html! {
        pre.text tabindex="0" {
            @for line in text.split_inclusive('\n') {
                @let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
                @if difference && line.starts_with('+') { ins { (untrusted(line)) } }
                @else if difference && line.starts_with('-') { del { (untrusted(line)) } }
                @else { (untrusted(line)) }
                (end)
            }
        }
    }
}

/// What a state means, in words.
pub const fn state_in_words(state: RunState) -> &'static str {
    match state {
        RunState::PendingApproval => "waits for a decision",
        RunState::Approved => "approved, about to begin",
        RunState::Rejected => "rejected",
        RunState::Expired => "expired",
        RunState::Cancelled => "taken back",
        RunState::Executing => "running",
        RunState::Succeeded => "done",
        RunState::Failed => "failed",
        RunState::OutcomeUnknown => "outcome unknown",
        RunState::ReconciledSucceeded => "settled: done",
        RunState::ReconciledFailed => "settled: not done",
    }
}

/// A state as a mark. Its word tells it, not its colour.
pub fn state(state: RunState) -> Markup {
    html! { span.state data-state=(state.as_str()) { (state_in_words(state)) } }
}

/// What a run does to the world.
pub fn effect(effect: Effect) -> Markup {
    html! { span.effect data-effect=(effect.as_str()) { (effect.as_str()) } }
}

/// A moment, told as how long ago or until; scripts keep it true by the server's time.
pub fn moment(at: Moment, now: Moment) -> Markup {
    html! { time datetime=(at.exact()) data-at=(at.millis()) title=(at) { (distance(at, now)) } }
}

/// How far a moment is from now.
pub fn distance(at: Moment, now: Moment) -> String {
    if at > now {
        format!("in {}", span(at.since(now).as_secs()))
    } else {
        format!("{} ago", span(now.since(at).as_secs()))
    }
}

fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// How loud a notice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    /// Something went as wanted.
    Good,
    /// Something to know.
    Plain,
    /// Something went wrong, or somebody was quicker.
    Bad,
}

/// Something a person is told at the top of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// How loud.
    pub kind: NoticeKind,
    /// What happened.
    pub text: String,
    /// What to do now.
    pub next: Option<String>,
}

impl Notice {
    /// A notice of this kind.
    pub fn new(kind: NoticeKind, text: impl Into<String>) -> Notice {
        Notice { kind, text: text.into(), next: None }
    }
}

/// A notice at the top of a page.
pub fn notice(notice: &Notice) -> Markup {
    let (kind, role) = match notice.kind {
        NoticeKind::Good => ("good", "status"),
        NoticeKind::Plain => ("plain", "status"),
        NoticeKind::Bad => ("bad", "alert"),
    };
    html! {
        div.notice data-kind=(kind) role=(role) {
            p { (untrusted(&notice.text)) }
            @if let Some(next) = &notice.next { p { (untrusted(next)) } }
        }
    }
}

/// One run in a list.
#[derive(Debug, Clone)]
pub struct RunRow {
    /// Its id.
    pub id: String,
    /// Where it stands.
    pub state: RunState,
    /// The tool.
    pub tool: String,
    /// To what effect.
    pub effect: Effect,
    /// What it would do, as far as the reader may know.
    pub summary: String,
    /// What it is done to.
    pub object: Option<String>,
    /// Who asked.
    pub requester: String,
    /// When it was asked for.
    pub asked_at: Moment,
    /// Until when it can be decided.
    pub expires_at: Moment,
    /// Whether the session had read text from outside.
    pub tainted: bool,
    /// How many have said yes, and how many must.
    pub yeses: (u32, u32),
    /// Who decided last.
    pub decided_by: Option<String>,
    /// Whether the reader asked for it.
    pub own: bool,
}

/// The address of a run's page.
pub fn run_address(id: &str) -> String {
    format!("{BASE}/runs/{id}")
}

/// A list of runs. What is pending has a countdown, everything else its state.
pub fn run_list(rows: &[RunRow], now: Moment, name: &str) -> Markup {
    html! {
        ul.runs id=(name) {
            @for row in rows {
                li.run id=(row.id) data-state=(row.state.as_str()) {
                    a.run-link href=(run_address(&row.id)) { (untrusted(&row.summary)) }
                    p.facts {
                        (effect(row.effect))
                        @if row.state != RunState::PendingApproval { " " (state(row.state)) }
                        @if row.tainted { " " span.taint title="The session had read text from outside before it asked" { "has read outside text" } }
                        @if row.own { " " span.own { "your own request" } }
                    }
                    p.facts {
                        span { code { (row.tool) } }
                        @if let Some(object) = &row.object { span { " on " (untrusted(object)) } }
                        span { " asked by " (untrusted(&row.requester)) " " (moment(row.asked_at, now)) }
                        @if row.state == RunState::PendingApproval {
                            span.expiry { " expires " (moment(row.expires_at, now)) }
                        }
                        @if row.yeses.1 > 1 { span { " " (row.yeses.0) " of " (row.yeses.1) " approvals" } }
                        @if let Some(by) = &row.decided_by { span { " decided by " (untrusted(by)) } }
                    }
                }
            }
        }
    }
}

/// The hidden fields of a form that decides something about a run.
pub fn decision_fields(form_token: &str, digest: &str) -> Markup {
    html! {
        input type="hidden" name="token" value=(form_token);
        input type="hidden" name="digest" value=(digest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_strangers_is_neither_markup_nor_hidden() {
        let shown = untrusted("<b>\u{202e}a</b>&\u{200b}\u{1b}").into_string();
        assert_eq!(
            shown
                .replace(r#"<span class="hidden-character" title="A character that cannot be seen">"#, "[")
                .replace("</span>", "]"),
            r#"<bdi>&lt;b&gt;[U+202E]a&lt;/b&gt;&amp;[U+200B][U+001B]</bdi>"#
        );
        assert_eq!(untrusted("").into_string(), "<bdi></bdi>");
    }

    #[test]
    fn a_difference_marks_its_lines() {
        let shown = lines("+a\n-b\n c", true).into_string();
        assert!(shown.contains("<ins><bdi>+a</bdi></ins>\n<del>"), "{shown}");
        assert!(!lines("+a", false).into_string().contains("<ins>"));
    }

    #[test]
    fn times_are_told_by_their_distance() {
        let now = Moment::from_secs(10_000);
        for (at, words) in
            [(9_995, "5 s ago"), (10_090, "in 1 min"), (2_000, "2 h 13 min ago"), (10_000 + 864_000, "in 10 days")]
        {
            assert_eq!(distance(Moment::from_secs(at), now), words);
        }
    }
}
