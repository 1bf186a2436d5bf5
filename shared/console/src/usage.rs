//! What the tenant used: charts by day, each with its figures in a table, and rows by tool, toolset, person or session.

use crate::BASE;
use crate::parts::untrusted;
use domain::usage::{UsageCount, UsageGroup};
use maud::{Markup, html};

/// The charts are drawn on a sheet of this size and scale with the page.
const CHART: (u64, u64) = (640, 120);

/// What the page shows.
#[derive(Debug, Clone)]
pub struct UsageView {
    /// The first day.
    pub from: String,
    /// The last day.
    pub to: String,
    /// By what rows are grouped.
    pub by: UsageGroup,
    /// Every day, with what was used on it.
    pub days: Vec<(String, UsageCount)>,
    /// The rows, what cost a model most first.
    pub rows: Vec<(String, UsageCount)>,
    /// How many rows were left out.
    pub left_out: usize,
    /// All of it.
    pub total: UsageCount,
}

/// As a group stands in an address.
pub const fn group_name(group: UsageGroup) -> &'static str {
    match group {
        UsageGroup::Tool => "tool",
        UsageGroup::Toolset => "toolset",
        UsageGroup::Principal => "principal",
        UsageGroup::Session => "session",
    }
}

const GROUPS: [(UsageGroup, &str); 4] = [
    (UsageGroup::Tool, "Tool"),
    (UsageGroup::Toolset, "Toolset"),
    (UsageGroup::Principal, "Who asked"),
    (UsageGroup::Session, "Session"),
];

/// The page.
pub fn page(view: &UsageView) -> Markup {
    let total = &view.total;
    html! {
        h1 { "Usage" }
        (filters(view))
        @if total.calls == 0 && total.lists == 0 {
            div.empty #no-usage { p { strong { "Nothing was used in this time." } } p { "Calls and lists of tools are counted within seconds." } }
        } @else {
            section aria-labelledby="sum-title" {
                h2 #sum-title { "From " (view.from) " to " (view.to) }
                dl {
                    dt { "Calls" } dd { (grouped(total.calls)) ", of which " (grouped(total.errors)) " failed" }
                    dt { "Tokens of results" } dd { (grouped(total.result_tokens)) }
                    dt { "Tokens of schemas" } dd { (grouped(total.schema_tokens)) " in " (grouped(total.lists)) " lists" }
                    dt { "Tokens saved" } dd { (signed(total.saved_tokens())) ", against every tool in each list" }
                }
            }
            div.columns {
                (chart("Calls by day", "calls", &view.days, |count| count.calls))
                (chart("Tokens saved by day", "saved", &view.days, saved))
            }
            (days(view))
            (rows(view))
        }
    }
}

fn saved(count: &UsageCount) -> u64 {
    u64::try_from(count.saved_tokens()).unwrap_or(0)
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

fn signed(number: i64) -> String {
    let text = grouped(number.unsigned_abs());
    if number < 0 { format!("−{text}") } else { text }
}

/// Bars, one a day. The highest tells the scale; everything exact stands in the table of days.
fn chart(title: &str, name: &str, days: &[(String, UsageCount)], value: impl Fn(&UsageCount) -> u64) -> Markup {
    let most = days.iter().map(|(_, count)| value(count)).max().unwrap_or(0);
    let highest = days.iter().find(|(_, count)| value(count) == most);
    let (width, height) = CHART;
    let count = days.len().max(1) as u64;
    let bar = |at: usize, amount: u64| {
        let (from, to) = (at as u64 * width / count, (at as u64 + 1) * width / count);
        // Whatever is more than nothing can be seen.
        let tall = (u128::from(amount) * u128::from(height)).div_ceil(u128::from(most.max(1)));
        let tall = u64::try_from(tall).unwrap_or(height).max(u64::from(amount > 0) * 2).min(height);
        let gap = if to - from > 4 { 2 } else { 0 };
        (from, height - tall, (to - from).saturating_sub(gap).max(1), tall)
    };
    html! {
        section.chart id={ "chart-" (name) } aria-labelledby={ "chart-" (name) "-title" } {
            h2 id={ "chart-" (name) "-title" } { (title) }
            svg viewBox={ "0 0 " (width) " " (height) } role="img" aria-label={ (title) ": at most " (grouped(most)) ", on " (highest.map_or("no day", |(day, _)| day)) } preserveAspectRatio="none" {
                line.axis x1="0" y1=(height) x2=(width) y2=(height) {}
                @for (at, (day, count)) in days.iter().enumerate() {
                    @let (x, y, wide, tall) = bar(at, value(count));
                    @if tall > 0 { rect.bar x=(x) y=(y) width=(wide) height=(tall) { title { (day) ": " (grouped(value(count))) } } }
                }
            }
            p.scale {
                span { (days.first().map_or("", |(day, _)| day)) }
                span { "highest " (grouped(most)) }
                span { (days.last().map_or("", |(day, _)| day)) }
            }
        }
    }
}

fn days(view: &UsageView) -> Markup {
    html! {
        details.figures {
            summary { "The figures of the charts, by day" }
            (table("Day", view.days.iter().rev().map(|(day, count)| (day.as_str(), count))))
        }
    }
}

fn rows(view: &UsageView) -> Markup {
    let name = GROUPS.iter().find(|(group, _)| *group == view.by).map_or("Name", |(_, name)| name);
    html! {
        section aria-labelledby="rows-title" {
            h2 #rows-title { "By " (name.to_lowercase()) }
            @if view.rows.is_empty() { p { "Nothing is counted that way." } }
            @else { (table(name, view.rows.iter().map(|(name, count)| (name.as_str(), count)))) }
            @if view.left_out > 0 { p.hint { (view.left_out) " more that cost less are left out; " code { "quartermaster usage" } " lists them." } }
        }
    }
}

fn table<'a>(name: &str, rows: impl Iterator<Item = (&'a str, &'a UsageCount)>) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "Figures by " (name.to_lowercase()) } {
            table.rows {
                thead { tr { th scope="col" { (name) } th.number scope="col" { "Calls" } th.number scope="col" { "Failed" } th.number scope="col" { "Result tokens" } th.number scope="col" { "Schema tokens" } th.number scope="col" { "Saved" } } }
                tbody {
                    @for (name_of_row, count) in rows {
                        tr {
                            th scope="row" data-label=(name) { (untrusted(name_of_row)) }
                            td.number data-label="Calls" { (grouped(count.calls)) }
                            td.number data-label="Failed" { (grouped(count.errors)) }
                            td.number data-label="Result tokens" { (grouped(count.result_tokens)) }
                            td.number data-label="Schema tokens" { (grouped(count.schema_tokens)) }
                            td.number data-label="Saved" { (signed(count.saved_tokens())) }
                        }
                    }
                }
            }
        }
    }
}

fn filters(view: &UsageView) -> Markup {
    html! {
        form.filters #filters method="get" action={ (BASE) "/usage" } role="search" aria-label="Filter" {
            div.wide { label for="filter-from" { "From" } input #filter-from name="from" type="date" value=(view.from); }
            div.wide { label for="filter-to" { "To" } input #filter-to name="to" type="date" value=(view.to); }
            div {
                label for="filter-by" { "By" }
                select #filter-by name="by" {
                    @for (group, name) in GROUPS { option value=(group_name(group)) selected[group == view.by] { (name) } }
                }
            }
            button type="submit" { "Show" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(calls: u64) -> (String, UsageCount) {
        ("2026-11-18".to_owned(), UsageCount { calls, ..UsageCount::default() })
    }

    #[test]
    fn bars_are_as_high_as_their_numbers_and_none_is_lost() {
        let drawn = chart("Calls", "calls", &[day(0), day(1), day(50), day(100)], |count| count.calls).into_string();
        assert_eq!(drawn.matches("<rect").count(), 3, "a day without calls has no bar: {drawn}");
        for (y, height) in [(118, 2), (60, 60), (0, 120)] {
            assert!(drawn.contains(&format!(r#"y="{y}" width="158" height="{height}""#)), "{drawn}");
        }
        assert!(!drawn.contains("style"), "{drawn}");
        assert!(chart("Calls", "calls", &[], |count| count.calls).into_string().contains("no day"));
        let vast = [day(u64::MAX), day(u64::MAX - 1)];
        assert!(chart("Calls", "calls", &vast, |count| count.calls).into_string().contains(r#"height="120""#));
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!((grouped(0), signed(-1_000)), ("0".to_owned(), "−1\u{202f}000".to_owned()));
    }
}
