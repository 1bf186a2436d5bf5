//! How much fits into one answer. What does not is shortened first, then left for the next page.

use serde::Serialize;
use target::reply::size_of;

/// What a text that is the answer may take of it; the rest is for what stands beside it.
const TEXT_ROOM: usize = 16 * 1024;

/// How many of these fit together.
pub(super) fn fitting<T: Serialize>(items: &[T], room: usize) -> usize {
    let mut used = 2;
    items
        .iter()
        .take_while(|item| {
            used += size_of(item) + 1;
            used <= room
        })
        .count()
}

/// Where a page of a text that begins at `from` ends: at a line, unless one line is all of the page.
pub(super) fn page_end(text: &str, from: usize) -> usize {
    let rest = &text[from..];
    let mut used = 0;
    let whole = rest.char_indices().find(|(_, c)| {
        used += match c {
            '"' | '\\' | '\n' | '\t' => 2,
            c if c.is_control() => 6,
            c => c.len_utf8(),
        };
        used > TEXT_ROOM
    });
    let Some((end, _)) = whole else { return text.len() };
    from + rest[..end].rfind('\n').map_or(end, |line| line + 1)
}

/// The beginning of a text.
pub(super) fn shortened(text: &mut String, chars: usize) {
    if let Some((at, _)) = text.char_indices().nth(chars) {
        text.truncate(at);
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_end_at_lines_and_lose_nothing() {
        let text = (0..4_000).map(|n| format!("line {n} with \"quotes\" and é\n")).collect::<String>();
        let (mut at, mut pages) = (0, Vec::new());
        while at < text.len() {
            let end = page_end(&text, at);
            assert!(size_of(&&text[at..end]) <= TEXT_ROOM + 2 && end > at);
            assert!(text[at..end].ends_with('\n'));
            pages.push(&text[at..end]);
            at = end;
        }
        assert!(pages.len() > 5);
        assert_eq!(pages.concat(), text);
        let endless = "é".repeat(20_000);
        assert_eq!(page_end(&endless, 0), TEXT_ROOM);
    }

    #[test]
    fn what_fits_is_counted() {
        let items = vec!["x".repeat(98); 10];
        assert_eq!(fitting(&items, 2 + 101 * 3), 3);
        assert_eq!(fitting(&items, usize::MAX), 10);
        let mut text = "ééé".to_owned();
        shortened(&mut text, 2);
        assert_eq!(text, "éé…");
    }
}
