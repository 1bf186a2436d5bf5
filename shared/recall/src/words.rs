//! What a word is: lower-case, without its usual English ending, and an identifier is one word and each of its parts.
//!
//! Endings go because people ask who *owns* what documents call *owned*. Only the commonest go, by rule and without a
//! list of words: what is cut off too much is cut off on both sides.

/// Calls `each` with every word of a text, in order.
pub(crate) fn each_word(text: &str, mut each: impl FnMut(&str)) {
    let mut lower = String::new();
    for (_, token) in tokens(text) {
        words_of(token, &mut lower, &mut each);
    }
}

/// Calls `each` with the words that one token stands for: its parts if it has several, and itself.
pub(crate) fn words_of(token: &str, lower: &mut String, each: &mut impl FnMut(&str)) {
    let mut whole = true;
    for part in TokenParts(token) {
        whole &= part.len() == token.len();
        lower_case(part, lower);
        cut_ending(lower);
        each(lower);
    }
    if !whole {
        lower_case(token, lower);
        cut_ending(lower);
        each(lower);
    }
}

/// The tokens of a text and where they begin: letters and digits, held together by `-`, `_`, `.` and `/`.
pub(crate) fn tokens(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let inside = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/');
    let mut rest = 0;
    std::iter::from_fn(move || {
        loop {
            let start = rest + text[rest..].find(inside)?;
            let end = text[start..].find(|letter| !inside(letter)).map_or(text.len(), |length| start + length);
            rest = end;
            let ahead = text[start..end].trim_start_matches(|letter: char| !letter.is_alphanumeric());
            let token = ahead.trim_end_matches(|letter: char| !letter.is_alphanumeric());
            if !token.is_empty() {
                return Some((end - ahead.len(), token));
            }
        }
    })
}

/// The parts of a token, split at punctuation and where the case changes.
struct TokenParts<'a>(&'a str);

impl<'a> Iterator for TokenParts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let token = self.0.trim_start_matches(|letter: char| !letter.is_alphanumeric());
        if token.is_empty() {
            return None;
        }
        let mut before: Option<char> = None;
        let mut end = token.len();
        for (at, letter) in token.char_indices() {
            let turns = before.is_some_and(|before| turns(before, letter, &token[at + letter.len_utf8()..]));
            if !letter.is_alphanumeric() || turns {
                end = at;
                break;
            }
            before = Some(letter);
        }
        let (part, rest) = token.split_at(end);
        self.0 = rest;
        Some(part)
    }
}

/// Whether a new word begins at `letter`: `getName` is two, `HTTPServer` as well, `CPUs` is one.
fn turns(before: char, letter: char, behind: &str) -> bool {
    letter.is_uppercase()
        && (before.is_lowercase()
            || before.is_uppercase() && behind.chars().take(2).filter(|next| next.is_lowercase()).count() == 2)
}

fn lower_case(word: &str, lower: &mut String) {
    lower.clear();
    if word.is_ascii() {
        lower.push_str(word);
        lower.make_ascii_lowercase();
    } else {
        lower.extend(word.chars().flat_map(char::to_lowercase));
    }
}

/// Takes the ending of a plain English word off, so that `pile`, `piles`, `piled` and `piling` are one word.
fn cut_ending(word: &mut String) {
    if word.len() < 4 || !word.bytes().all(|letter| letter.is_ascii_lowercase()) {
        return;
    }
    if word.len() > 4 && word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if word.ends_with('s') && !["ss", "us", "is"].iter().any(|ending| word.ends_with(ending)) {
        word.pop();
    }
    let stem = word.strip_suffix("ing").or_else(|| word.strip_suffix("ed")).map_or(0, str::len);
    if stem >= 3 && word[..stem].contains(['a', 'e', 'i', 'o', 'u', 'y']) {
        word.truncate(stem);
        let doubled = word.as_bytes()[stem - 1] == word.as_bytes()[stem - 2];
        if doubled && !word.ends_with(['l', 's', 'z', 'e', 'o']) {
            word.pop();
        }
    }
    if word.len() > 3 && word.ends_with('e') {
        word.pop();
    }
}

/// The words of a query, each once, in order.
pub(crate) fn wanted(query: &str) -> Vec<String> {
    let mut wanted = Vec::new();
    each_word(query, |word| wanted.push(word.to_owned()));
    wanted.sort_unstable();
    wanted.dedup();
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        each_word(text, |word| all.push(word.to_owned()));
        all
    }

    #[test]
    fn an_identifier_is_one_word_and_each_of_its_parts() {
        assert_eq!(all("web-frontend"), ["web", "frontend", "web-frontend"]);
        assert_eq!(all("getUserName"), ["get", "user", "nam", "getusernam"]);
        assert_eq!(all("HTTPServer"), ["http", "server", "httpserver"]);
        assert_eq!(all("v1.2/a_b"), ["v1", "2", "a", "b", "v1.2/a_b"]);
        assert_eq!(all("CPUs and IDs"), ["cpus", "and", "ids"]);
    }

    #[test]
    fn punctuation_around_a_word_does_not_belong_to_it() {
        assert_eq!(all("(--flag), done. ../x/ - ... \u{201c}quoted\u{201d}"), ["flag", "don", "x", "quot"]);
        assert_eq!(all(""), Vec::<String>::new());
    }

    #[test]
    fn every_script_is_lower_cased() {
        assert_eq!(all("STRASSE Über ΣΊΣΥΦΟΣ"), ["strass", "über", "σίσυφοσ"]);
    }

    #[test]
    fn forms_of_one_word_are_one_word_and_names_stay() {
        for forms in [
            "pile piles piled piling",
            "own owns owned owning",
            "stop stopped stopping",
            "query queries",
            "roll rolled",
        ] {
            let words = all(forms);
            assert!(words.iter().all(|word| *word == words[0]), "{words:?}");
        }
        for name in ["redis", "status", "dns", "string", "need", "access", "v1s", "https"] {
            assert_eq!(all(name), all(name.to_uppercase().as_str()));
        }
        assert_eq!(all("redis status dns string need access"), ["redis", "status", "dns", "string", "need", "access"]);
        assert_eq!(all("web-servers"), ["web", "server", "web-servers"], "an identifier keeps its spelling");
    }

    #[test]
    fn tokens_know_where_they_begin() {
        let text = "ä (--flag) x";
        assert!(tokens(text).all(|(at, token)| text[at..].starts_with(token)));
        assert_eq!(tokens(text).count(), 3);
    }

    #[test]
    fn the_words_of_a_query_are_told_once_and_in_order() {
        assert_eq!(wanted("pod Pod web-pod"), ["pod", "web", "web-pod"]);
    }
}
