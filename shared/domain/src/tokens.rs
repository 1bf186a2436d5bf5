//! How many tokens a text costs a model, about.
//!
//! A tokenizer takes a second to load and tens of megabytes; this is one pass over the text without a table.
//! It cuts a text where o200k_base cuts it (words, numbers of three digits, runs of signs, white space) and charges each
//! piece what such pieces cost on average. A test in `catalog` holds it to the tokenizer.

/// Quarters of a token, so that nothing is rounded before the end.
const TOKEN: u64 = 4;
/// The fewest characters that are taken for encoded bytes.
const ENCODED_LEAST: u64 = 16;
/// What a hundred characters of base64 cost: no piece of it is a word.
const ENCODED_HUNDRED: u64 = 66 * TOKEN;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Upper,
    Lower,
    /// A letter of another script that is written with spaces between words.
    Letter,
    /// A sign of a script that is written without spaces.
    Ideograph,
    Digit,
    Sign,
    Blank,
    LineEnd,
}

/// The tokens of a text in o200k_base, estimated.
pub fn estimate(text: &str) -> u64 {
    let (mut quarters, mut length, mut last, mut before) = (0, 0_u64, None, None);
    let mut run = EncodedRun::default();
    for c in text.chars() {
        let kind = kind_of(c);
        match last {
            Some(last) if goes_on(last, kind) => length += 1,
            _ => {
                quarters += last.map_or(0, |last| cost(before, last, length, Some(kind)));
                (before, length) = (last, 1);
            }
        }
        quarters += run.push(c, kind, last, quarters);
        last = Some(kind);
    }
    quarters += last.map_or(0, |last| cost(before, last, length, None));
    (quarters + run.end(quarters)).div_ceil(TOKEN)
}

/// Characters without a blank or a sign between them, which may be bytes in base64: these change between large, small and
/// digits all the time, as no word or name does.
#[derive(Default)]
struct EncodedRun {
    length: u64,
    /// From small to large, and between letters and digits.
    changes: u64,
    /// From small to large: digests in hex have none.
    to_large: u64,
    /// What was charged before it.
    before: u64,
}

impl EncodedRun {
    /// Takes the next character; gives what is to be charged on top, where a run has ended.
    fn push(&mut self, c: char, kind: Kind, last: Option<Kind>, charged: u64) -> u64 {
        if !matches!(kind, Kind::Upper | Kind::Lower | Kind::Digit) && !matches!(c, '+' | '/') {
            return self.end(charged);
        }
        if self.length == 0 {
            self.before = charged;
        } else {
            let is_letter = |kind| matches!(kind, Kind::Upper | Kind::Lower);
            let to_large = last == Some(Kind::Lower) && kind == Kind::Upper;
            let by_digit = last.is_some_and(|last| {
                (is_letter(last) && kind == Kind::Digit) || (last == Kind::Digit && is_letter(kind))
            });
            self.to_large += u64::from(to_large);
            self.changes += u64::from(to_large || by_digit);
        }
        self.length += 1;
        0
    }

    fn end(&mut self, charged: u64) -> u64 {
        let run = std::mem::take(self);
        let encoded = run.length >= ENCODED_LEAST && run.changes * 4 >= run.length && run.to_large * 12 >= run.length;
        match encoded {
            true => (run.length * ENCODED_HUNDRED / 100).saturating_sub(charged - run.before),
            false => 0,
        }
    }
}

fn kind_of(c: char) -> Kind {
    match c {
        'a'..='z' => Kind::Lower,
        'A'..='Z' => Kind::Upper,
        '0'..='9' => Kind::Digit,
        '\n' | '\r' => Kind::LineEnd,
        ' ' | '\t' => Kind::Blank,
        '\0'..='\u{7f}' => Kind::Sign,
        '\u{80}'..='\u{2dff}' if c.is_alphanumeric() => Kind::Letter,
        _ if c.is_alphanumeric() => Kind::Ideograph,
        _ if c.is_whitespace() => Kind::Blank,
        _ => Kind::Sign,
    }
}

/// Whether two neighbours are in one piece.
fn goes_on(last: Kind, next: Kind) -> bool {
    match (last, next) {
        (Kind::Upper, Kind::Lower) | (Kind::Lower | Kind::Upper, Kind::Letter) | (Kind::Letter, Kind::Lower) => true,
        _ => last == next,
    }
}

/// What a piece that ends with this kind costs between its neighbours, in quarters of a token.
fn cost(before: Option<Kind>, kind: Kind, length: u64, behind: Option<Kind>) -> u64 {
    match (kind, behind) {
        // Letters behind a digit are seldom a word: digests, encoded bytes, generated names.
        (Kind::Lower | Kind::Upper, _) if before == Some(Kind::Digit) => TOKEN.max(length * 2),
        (Kind::Lower, _) => TOKEN + length.saturating_sub(7),
        (Kind::Upper, _) => TOKEN + length.saturating_sub(3) * 2,
        (Kind::Letter, _) => TOKEN + length.saturating_sub(3),
        (Kind::Ideograph, _) => length * 3,
        (Kind::Digit, _) => length.div_ceil(3) * TOKEN,
        // A single sign or blank in front of a word mostly belongs to it.
        (Kind::Sign, Some(Kind::Lower | Kind::Upper | Kind::Letter)) if length == 1 => TOKEN / 2,
        (Kind::Sign, _) => TOKEN + length.saturating_sub(3),
        (Kind::Blank, _) if length == 1 => 0,
        // And a line end to the signs before it.
        (Kind::LineEnd, _) if before == Some(Kind::Sign) => 0,
        (Kind::Blank | Kind::LineEnd, _) => TOKEN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_where_the_tokenizer_cuts_them() {
        for (text, tokens) in
            [("", 0), ("a", 1), ("hello world", 2), ("maxSurge", 2), ("1234567", 3), ("{}", 1), ("a\n", 2)]
        {
            assert_eq!(estimate(text), tokens, "{text:?}");
        }
    }

    #[test]
    fn a_longer_text_never_costs_less_than_a_part_of_it_by_more_than_a_token() {
        let text = "Pod web-7c9d6f5b4 \u{1f642} 漢字 größer {\"a\":[1,22,333]}\n\n  end\u{0}";
        let ends = text.char_indices().map(|(at, _)| at);
        let costs: Vec<u64> = ends.map(|at| estimate(&text[..at])).collect();
        assert!(costs.windows(2).all(|pair| pair[1] + 1 >= pair[0]), "{costs:?}");
    }
}
