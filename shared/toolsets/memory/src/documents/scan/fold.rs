//! A text as a reader takes it in, so that one pattern fits every disguise: compatibility forms and lower case, nothing
//! invisible, no emphasis, one blank between words, and letters that only look Latin made Latin.

use domain::text::is_invisible;
use unicode_normalization::UnicodeNormalization;

/// The folded text, and where in it the lines of the original begin.
pub(super) struct FoldedText {
    pub(super) text: String,
    lines: Vec<usize>,
}

impl FoldedText {
    pub(super) fn of(text: &str) -> FoldedText {
        let mut folded = String::with_capacity(text.len());
        let mut lines = Vec::new();
        for line in text.lines() {
            lines.push(folded.len());
            let blank =
                |c: char| c.is_whitespace() || matches!(c, '*' | '_' | '`' | '~' | '#' | '"' | '\'' | '|' | '-');
            let shown: String =
                line.chars().filter(|c| !is_invisible(*c)).nfkc().flat_map(char::to_lowercase).collect();
            for word in shown.split(blank).filter(|word| !word.is_empty()) {
                if !folded.is_empty() {
                    folded.push(' ');
                }
                push_word(word, &mut folded);
            }
        }
        FoldedText { text: folded, lines }
    }

    /// The line of the original, counted from one, that a place in the folded text comes from.
    pub(super) fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start <= at).max(1)
    }
}

/// A word of another script stays what it is; one that mixes scripts is written to look like what it is not.
fn push_word(word: &str, out: &mut String) {
    let mixed = word.bytes().any(|b| b.is_ascii_alphabetic());
    match mixed {
        true => out.extend(word.chars().map(look_alike)),
        false => out.push_str(word),
    }
}

/// The Latin letter that a lower-case Cyrillic or Greek one is taken for.
const fn look_alike(c: char) -> char {
    match c {
        'а' | 'α' => 'a',
        'в' => 'b',
        'с' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' | 'ё' | 'є' => 'e',
        'һ' | 'н' => 'h',
        'і' | 'ι' | 'ї' | 'ı' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'ӏ' => 'l',
        'м' => 'm',
        'ո' => 'n',
        'о' | 'ο' => 'o',
        'р' | 'ρ' => 'p',
        'ѕ' => 's',
        'т' | 'τ' => 't',
        'υ' => 'u',
        'ν' | 'ѵ' => 'v',
        'ѡ' | 'ω' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'γ' => 'y',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disguises_come_off() {
        for text in [
            "Ignore   ALL\tprevious",
            "**ignore** _all_ `previous`",
            "ig\u{200b}nore all\u{2060} pre\u{ad}vious",
            "іgnоre аll рrevious",
            "Ｉｇｎｏｒｅ ａｌｌ ｐｒｅｖｉｏｕｓ",
            "ignore-all-previous",
            "ignore\nall\n\n> previous".replace("> ", "").as_str(),
        ] {
            assert_eq!(FoldedText::of(text).text, "ignore all previous", "{text:?}");
        }
        assert_eq!(FoldedText::of("игнорируй").text, "игнорируй", "a word of one script is left alone");
    }

    #[test]
    fn places_are_traced_back_to_their_lines() {
        let folded = FoldedText::of("one\n\n two  three\nfour");
        let line = |word: &str| folded.line(folded.text.find(word).unwrap());
        assert_eq!((line("one"), line("two"), line("three"), line("four")), (1, 3, 3, 4));
    }
}
