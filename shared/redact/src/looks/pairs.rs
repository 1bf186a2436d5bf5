//! Names and their values within one line: `name=value`, `name: value`, `--name value`, `<name>value</name>` and the
//! like, in whatever language. The name decides with the value; a value ends at a blank or a quote.

use super::names::{self, NameClass};
use super::values::{self, SettingPlace};
use super::{LookCost, SecretSpan};
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

const ASSIGNED: &str = "password-like assignment";
const HEADER: &str = "authorization header";
const HOOK: &str = "webhook address";

/// How far a name may reach back, and how much of a value is judged.
const LONGEST_NAME: usize = 128;
const JUDGED: usize = 256;

/// The name before a sign.
struct PairName<'a> {
    text: &'a str,
    start: usize,
    /// With the words before it, where it is one of several: `API key`.
    phrase: &'a str,
}

/// A value behind a sign.
struct PairValue {
    range: Range<usize>,
    quoted: bool,
}

/// Adds the secret values of a line.
pub(super) fn find(line: &str, spans: &mut Vec<SecretSpan>, cost: &mut LookCost) {
    assigned(line, spans, cost);
    if line.contains('-') {
        each_named(&FLAGS, line, spans, cost);
    }
    if line.contains('<') || line.contains("alue") || line.contains("default") {
        each_named(&ATTRIBUTES, line, spans, cost);
    }
    if line.contains("Secret") {
        manifest(line, spans, cost);
    }
}

/// `name = value` and `name: value`.
fn assigned(line: &str, spans: &mut Vec<SecretSpan>, cost: &mut LookCost) {
    let bytes = line.as_bytes();
    cost.bytes(line.len());
    let mut at = 0;
    while let Some(offset) = bytes[at..].iter().position(|b| matches!(b, b'=' | b':')) {
        let sign = at + offset;
        at = sign + 1;
        let run = bytes[sign..].iter().take_while(|b| matches!(b, b'=' | b':' | b'>')).count();
        if bytes[sign..].starts_with(b"::") {
            at = sign + run;
            continue;
        }
        let differs = bytes[..sign].ends_with(b"!");
        let Some(name) = name_before(line, sign - usize::from(differs)) else { continue };
        cost.bytes(sign - name.start);
        let class = class_of(&name);
        if class == NameClass::Plain {
            continue;
        }
        let compares = differs || bytes[sign..].starts_with(b"==");
        let value = value_behind(line, sign + run, class, name.start);
        cost.bytes(value.range.len().min(JUDGED));
        if (compares && !value.quoted) || !is_secret(&name, class, line, &value, bytes[sign]) {
            continue;
        }
        at = value.range.end.max(at);
        cost.bytes(value.range.len());
        let rule = match class {
            NameClass::Header => HEADER,
            NameClass::Webhook => HOOK,
            NameClass::Plain
            | NameClass::Strong
            | NameClass::SecretObject
            | NameClass::Pass
            | NameClass::Auth
            | NameClass::Key
            | NameClass::BareKey
            | NameClass::Pin
            | NameClass::Loose => ASSIGNED,
        };
        spans.push(SecretSpan { rule, hit: name.start..value.range.end, secret: value.range });
    }
}

fn class_of(name: &PairName<'_>) -> NameClass {
    let alone = names::class(name.text);
    let is_vague = matches!(alone, NameClass::Plain | NameClass::BareKey | NameClass::SecretObject);
    if !is_vague {
        return alone;
    }
    let phrase = names::class(name.phrase);
    let says_more = matches!(phrase, NameClass::Strong | NameClass::Header | NameClass::Pass);
    // `public key:` is no secret, whatever stands behind it.
    let is_public = phrase == NameClass::Plain && alone == NameClass::BareKey;
    if says_more || is_public { phrase } else { alone }
}

/// Whether the value of a pair is secret.
fn is_secret(name: &PairName<'_>, class: NameClass, line: &str, value: &PairValue, sign: u8) -> bool {
    let text = prefix(&line[value.range.clone()]);
    let opens = !value.quoted && text.starts_with(['{', '[']);
    if opens && (sign == b':' || text.starts_with('[') || class == NameClass::SecretObject) {
        // A map or a list: what is in it is looked at by itself.
        return false;
    }
    let bare = text.trim_end_matches([',', ';', ')']);
    // What a test runner says of a test that passed, and where a shell is.
    if (name.text == "PASS" && sign == b':') || names::is_directory(name.text, text) {
        return false;
    }
    let counts = name.text.to_ascii_lowercase().ends_with("tokens") && bare.parse::<f64>().is_ok();
    let echoes = sign == b'=' && !value.quoted && bare == name.text;
    !counts && !echoes && values::is_secret(class, text, place_of(name.text, value.quoted))
}

/// A name in capitals is a variable; everything else in a text may be prose. What is quoted is no prose.
pub(super) fn place_of(name: &str, quoted: bool) -> SettingPlace {
    let capitals = !name.bytes().any(|b| b.is_ascii_lowercase()) && !name.contains('-');
    if capitals && (quoted || name.contains('_')) { SettingPlace::Setting } else { SettingPlace::Text }
}

/// The name that ends before a sign, without quotes, brackets and colours around it.
fn name_before(line: &str, sign: usize) -> Option<PairName<'_>> {
    let bytes = line.as_bytes();
    let blank = |b: &u8| matches!(b, b' ' | b'\t');
    let mut end = sign - bytes[..sign].iter().rev().take(32).take_while(|b| blank(b)).count();
    end = without_colour(line, end);
    let is_index = bytes[..end].ends_with(b"\"]") || bytes[..end].ends_with(b"']");
    end -= usize::from(is_index);
    let quote = end.checked_sub(1).map(|n| bytes[n]).filter(|b| matches!(b, b'"' | b'\'' | b'`'));
    if let Some(quote) = quote {
        end -= 1;
        end -= bytes[..end].iter().rev().take(8).take_while(|b| **b == b'\\').count();
        let floor = end.saturating_sub(LONGEST_NAME);
        let start = floor + bytes[floor..end].iter().rposition(|b| *b == quote)? + 1;
        let text = line.get(start..end).filter(|text| !text.is_empty())?;
        return Some(PairName { text, start, phrase: text });
    }
    let letter = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let start = end - bytes[..end].iter().rev().take(LONGEST_NAME).take_while(|b| letter(b)).count();
    let text = line.get(start..end).filter(|text| text.bytes().any(|b| b.is_ascii_alphanumeric()))?;
    let mut phrase = start;
    for _ in 0..2 {
        let gap = phrase.checked_sub(1).filter(|n| bytes[*n] == b' ');
        let Some(gap) = gap else { break };
        let word = bytes[..gap].iter().rev().take(24).take_while(|b| b.is_ascii_alphabetic()).count();
        if word == 0 {
            break;
        }
        phrase = gap - word;
    }
    Some(PairName { text, start, phrase: line.get(phrase..end)? })
}

/// Where a name ends before the codes that set a colour back: `[0m`, with or without the escape sign.
fn without_colour(line: &str, end: usize) -> usize {
    let code = line.get(..end).and_then(|text| text.strip_suffix('m'));
    let Some(code) = code else { return end };
    let digits = code.trim_end_matches(|c: char| c.is_ascii_digit() || c == ';');
    let Some(open) = digits.strip_suffix('[') else { return end };
    let open =
        ["\\u001b", "\\x1b", "\\033", "\\e", "\u{1b}"].iter().find_map(|sign| open.strip_suffix(sign)).unwrap_or(open);
    open.len()
}

/// The value behind a sign.
fn value_behind(line: &str, from: usize, class: NameClass, name: usize) -> PairValue {
    let mut at = skip_blanks(line, from);
    at = skip_decoration(line, at);
    if class == NameClass::Header {
        at = skip_scheme(line, at);
    }
    let bytes = line.as_bytes();
    let slashes = bytes[at..].iter().take(8).take_while(|b| **b == b'\\').count();
    let quote = bytes.get(at + slashes).copied().filter(|b| matches!(b, b'"' | b'\'' | b'`'));
    if let Some(quote) = quote {
        let start = at + slashes + 1;
        let end = closing(bytes, start, quote, slashes).max(reference_end(line, start));
        return PairValue { range: start..end, quoted: true };
    }
    let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`');
    let mut end = bytes[at..].iter().position(ends).map_or(bytes.len(), |n| at + n);
    if class == NameClass::Header {
        end = bytes[at..].iter().position(|b| matches!(b, b'"' | b'\'' | b'`')).map_or(bytes.len(), |n| at + n);
    } else if let Some(part) = part_of_list(bytes, at, name) {
        end = part;
    } else if bytes.get(at) == Some(&b'{') && bytes.get(from.wrapping_sub(1)) == Some(&b'=') && name == 0 {
        end = bytes.len();
    }
    PairValue { range: at..end.max(reference_end(line, at)), quoted: false }
}

/// Where a reference ends that begins here, with the blanks and quotes in it: `$(cat pw)`, `{{ .x | default "y" }}`.
fn reference_end(line: &str, at: usize) -> usize {
    at + line.get(at..).and_then(|rest| values::reference(prefix(rest))).unwrap_or_default()
}

/// The end of a value in `a=b;c=d`, where values may hold blanks.
fn part_of_list(bytes: &[u8], at: usize, name: usize) -> Option<usize> {
    let listed = name == 0 || bytes[name.saturating_sub(64)..name].contains(&b';');
    let stop = bytes[at..].iter().take(JUDGED).position(|b| matches!(b, b';' | b'=' | b'"' | b'\'')).map(|n| at + n)?;
    (listed && bytes[stop] == b';' && bytes[at..stop].contains(&b' ')).then_some(stop)
}

fn skip_blanks(line: &str, at: usize) -> usize {
    at + line.as_bytes()[at..].iter().take(64).take_while(|b| matches!(b, b' ' | b'\t')).count()
}

/// What may stand before a value: an anchor or tag of YAML, a type, the letter of a kind of string, a call around it.
fn skip_decoration(line: &str, at: usize) -> usize {
    static BEFORE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let calls = r"String::from\(|str\(|Some\(|new\s+String\(|Buffer\.from\(|SecretString::(?:new|from)\(|bytes\(";
        let types = r"&?(?:'static\s+)?(?:[Ss]tring|str|Str|char\*|Option<String>|SecretStr|bytes)\s*=\s*";
        Regex::new(&format!(r"^(?:&[A-Za-z0-9_-]+[ \t]+|!!?(?:str|binary|vault|string)[ \t]+|{types}|{calls}|[bfruBFRU]{{1,2}}(?-u:\b))+")).ok()
    });
    let Some(rest) = line.get(at..) else { return at };
    let Some(before) = BEFORE.as_ref().and_then(|before| before.find(prefix(rest))) else { return at };
    let end = at + before.end();
    let letters = before.as_str().bytes().last().is_some_and(|b| b.is_ascii_alphabetic());
    // A letter is a kind of string only before a quote.
    match letters && !line[end..].starts_with(['"', '\'']) {
        true => at,
        false => end,
    }
}

/// The scheme before a credential, and the bracket of a list around it.
fn skip_scheme(line: &str, at: usize) -> usize {
    const SCHEMES: [&str; 9] =
        ["bearer ", "basic ", "token ", "apikey ", "digest ", "negotiate ", "bot ", "splunk ", "jwt "];
    let open = at + line[at..].bytes().take_while(|b| *b == b'[').count();
    let rest = &line[open..];
    let scheme =
        SCHEMES.iter().find(|scheme| rest.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme)));
    scheme.map_or(open, |scheme| skip_blanks(line, open + scheme.len()))
}

/// Where a quoted value ends: at the same quote, escaped as often as the first or less. Without one, with the line.
fn closing(bytes: &[u8], start: usize, quote: u8, slashes: usize) -> usize {
    let mut run = 0;
    for (n, byte) in bytes.iter().enumerate().skip(start) {
        match *byte {
            b'\\' => run += 1,
            b if b == quote && (run <= slashes || (slashes == 0 && run % 2 == 0)) => return n - run.min(slashes),
            _ => run = 0,
        }
    }
    bytes.len()
}

/// The first part of a text, which is enough to judge it.
fn prefix(text: &str) -> &str {
    text.char_indices().nth(JUDGED).map_or(text, |(end, _)| &text[..end])
}

/// Patterns with a name in group `n` and its value in group `s`.
type NamedPatterns = LazyLock<Option<Vec<Regex>>>;

static FLAGS: NamedPatterns = LazyLock::new(|| {
    let flag = r#"(?:^|[\s"'\[,])--?(?P<n>[A-Za-z][A-Za-z0-9_.-]*)["']?(?:[ \t]+|\s*,\s*)"#;
    [r#""(?P<s>[^"]+)""#, r"'(?P<s>[^']+)'", r#"(?P<s>[^\s"'-][^\s"']*)"#]
        .map(|value| Regex::new(&format!("{flag}{value}")).ok())
        .into_iter()
        .collect()
});

static ATTRIBUTES: NamedPatterns = LazyLock::new(|| {
    let name = r#"\\*"(?:[Nn]ame|[Kk]ey|ParameterKey|id)\\*"\s*:\s*\\*"(?P<n>[^"\\]{1,128})\\*"\s*,\s*"#;
    [
        r"<(?:[A-Za-z0-9_-]+:)?(?P<n>[A-Za-z0-9_.-]+)(?:\s[^<>]*)?>(?P<s>[^<]+)</".to_owned(),
        r#"(?-u:\b)(?:key|name|id)\s*=\s*["'](?P<n>[^"']{1,128})["']\s*>(?P<s>[^<]+)</"#.to_owned(),
        r#"(?-u:\b)(?:key|name|id)\s*=\s*["'](?P<n>[^"']{1,128})["']\s+(?:value|default)\s*=\s*["'](?P<s>[^"']+)"#
            .to_owned(),
        r#"(?-u:\b)variable\s+"(?P<n>[^"]{1,128})"\s*\{[^{}]*default\s*=\s*"(?P<s>[^"]+)"#.to_owned(),
        format!(r#"{name}\\*"(?:[Vv]alue|ParameterValue)\\*"\s*:\s*\\*"(?P<s>(?:[^"\\]|\\[^"])+)"#),
    ]
    .into_iter()
    .map(|pattern| Regex::new(&pattern).ok())
    .collect()
});

fn each_named(patterns: &NamedPatterns, line: &str, spans: &mut Vec<SecretSpan>, cost: &mut LookCost) {
    for pattern in patterns.as_ref().into_iter().flatten() {
        cost.bytes(line.len());
        let mut at = 0;
        while let Some(hit) = pattern.captures_at(line, at) {
            let (Some(whole), Some(name), Some(value)) = (hit.get(0), hit.name("n"), hit.name("s")) else { break };
            let text = &line[value.start()..value.end().max(reference_end(line, value.start()))];
            let secret = values::is_secret(names::class(name.as_str()), prefix(text), place_of(name.as_str(), true));
            if secret {
                spans.push(SecretSpan { rule: ASSIGNED, hit: whole.range(), secret: value.range() });
            }
            // A value may itself be the next flag's name; its name is done with.
            at = if secret { value.end() } else { name.end() };
        }
    }
}

/// The contents of a Secret that stands on one line as JSON.
fn manifest(line: &str, spans: &mut Vec<SecretSpan>, cost: &mut LookCost) {
    static KIND: LazyLock<Option<[Regex; 2]>> = LazyLock::new(|| {
        let kind = Regex::new(r#"\\*"kind\\*"\s*:\s*\\*"Secret(?:List)?\\*""#).ok()?;
        let data = Regex::new(r#"\\*"(?:data|stringData)\\*"\s*:\s*\{(?P<s>[^{}]*)\}"#).ok()?;
        Some([kind, data])
    });
    let Some([kind, data]) = KIND.as_ref() else { return };
    cost.bytes(line.len());
    if !kind.is_match(line) {
        return;
    }
    cost.bytes(line.len());
    for hit in data.captures_iter(line) {
        if let (Some(whole), Some(secret)) = (hit.get(0), hit.name("s").filter(|secret| !secret.is_empty())) {
            spans.push(SecretSpan { rule: "contents of a Secret", hit: whole.range(), secret: secret.range() });
        }
    }
}
