use super::*;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use proptest::prelude::*;

fn scrubber(values: &[&str]) -> Scrubber {
    Scrubber::new(values.iter().map(|value| SecretText::new(*value)))
}

/// Everything but letters and digits, as the strictest encoder has it.
fn percent(text: &str) -> String {
    text.bytes()
        .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}

fn json(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '"' | '\\' | '/' => format!("\\{c}"),
            '\n' => "\\n".to_owned(),
            c if c.is_ascii() && !c.is_ascii_control() => c.to_string(),
            c => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
        })
        .collect()
}

#[test]
fn a_value_goes_in_every_form_and_what_surrounds_it_stays() {
    let value = "p/w+\"0rd\" é%😀";
    let scrubber = scrubber(&[value]);
    for form in [
        value.to_owned(),
        percent(value),
        percent(value).to_lowercase(),
        percent(&percent(value)),
        percent(value).replace("%20", "+"),
        value.replace('%', "%25").replace('"', "%22"),
        json(value),
        json(&json(value)),
        json(&percent(value)),
        percent(&json(value)),
        STANDARD.encode(value),
        STANDARD_NO_PAD.encode(value),
        URL_SAFE.encode(value),
        URL_SAFE_NO_PAD.encode(value),
        percent(&STANDARD.encode(value)),
        json(&STANDARD.encode(value)),
    ] {
        assert_eq!(scrubber.scrub(&format!("é before {form} behind")), "é before [redacted: secret] behind", "{form}");
    }
}

#[test]
fn a_value_goes_out_of_basic_authorization_whoever_the_user_is() {
    let scrubber = scrubber(&["sesame-open"]);
    for user in ["a", "ab", "abc", "robot", ""] {
        for behind in ["", "x", "\n", "xy"] {
            let pair = STANDARD.encode(format!("{user}:sesame-open{behind}"));
            let shown = scrubber.scrub(&pair).into_owned();
            assert!(shown.contains(MASK), "{user} {behind:?}: {shown}");
            // The letters that hold bits of the value beside others are gone as well.
            let kept = shown.replace(MASK, "").len();
            assert!(kept <= 4 * (user.len() + behind.len() + 3).div_ceil(3) + 2, "{shown}");
        }
    }
    assert_eq!(scrubber.scrub(&STANDARD.encode("sesame-open")), MASK);
}

#[test]
fn of_base64_only_letters_without_a_bit_of_the_value_are_left() {
    let scrubber = scrubber(&["sesame-open", "sesame-gates", "sesame-portal"]);
    for value in ["sesame-open", "sesame-gates", "sesame-portal"] {
        for (before, behind) in (0..5).flat_map(|before| (0..5).map(move |behind| (before, behind))) {
            let encoded = STANDARD.encode(format!("{}{value}{}", "~".repeat(before), "~".repeat(behind)));
            let (from, to) = (before * 8 / 6, ((before + value.len()) * 8).div_ceil(6));
            let rest = if behind == 0 { "" } else { &encoded[to..] };
            assert_eq!(scrubber.scrub(&encoded), format!("{}{MASK}{rest}", &encoded[..from]), "{encoded}");
            // Cut so that only what is certain is left: what stands around it is no letter, or nothing.
            let certain = &encoded[(before * 8).div_ceil(6)..(before + value.len()) * 8 / 6];
            assert_eq!(scrubber.scrub(certain), MASK, "{encoded}");
            assert_eq!(scrubber.scrub(&format!("\"{certain}\"")), format!("\"{MASK}\""), "{encoded}");
        }
    }
    assert_eq!(scrubber.scrub("xsesame-openx"), format!("x{MASK}x"), "as it is, it shares no letter");
}

#[test]
fn what_stands_between_secrets_stays_and_what_is_hidden_is_counted() {
    let both = scrubber(&["hünter22", "sesame-open"]);
    let (shown, hidden) = both.scrub_and_count("a hünter22 b sesame-open c hünter22sesame-open d");
    assert_eq!(shown, format!("a {MASK} b {MASK} c {MASK} d"));
    assert_eq!(hidden, 2 * (8 + 11), "characters, not bytes");
    let escaped = json("a h/ünter22 b h/ünter22 c");
    assert_eq!(scrubber(&["h/ünter22"]).scrub(&escaped), format!("a {MASK} b {MASK} c"));
}

#[test]
fn every_short_escape_of_json_is_undone() {
    for (letter, escape) in [('\u{8}', "b"), ('\u{c}', "f"), ('\n', "n"), ('\r', "r"), ('\t', "t"), ('/', "/")] {
        let scrubber = scrubber(&[&format!("open{letter}sesame")]);
        assert_eq!(scrubber.scrub(&format!("a open\\{escape}sesame b")), format!("a {MASK} b"), "{escape}");
    }
}

#[test]
fn two_escapings_are_undone_and_no_third() {
    let scrubber = scrubber(&["p/w+\"0rd\""]);
    let twice = percent(&percent("p/w+\"0rd\""));
    assert_eq!(scrubber.scrub(&twice), MASK);
    assert_eq!(scrubber.scrub(&percent(&twice)), percent(&twice), "every further one would cost as much again");
}

#[test]
fn a_long_value_that_differs_within_a_letter_takes_that_letter_with_it() {
    for same in [HEAD - 1, HEAD + 9] {
        let scrubber = scrubber(&[&format!("{}é, and more", "a".repeat(same))]);
        assert_eq!(scrubber.scrub(&format!("{}è b", "a".repeat(same))), format!("{MASK} b"), "{same}");
    }
}

#[test]
fn secrets_that_overlap_go_together_with_what_each_covers() {
    let scrubber = scrubber(&["abcdef", "defghi", "abcdefgh"]);
    assert_eq!(scrubber.scrub("x abcdefghi y"), "x [redacted: secret] y");
    assert_eq!(scrubber.scrub("abcdefabcdef"), "[redacted: secret]");
    assert_eq!(scrubber.scrub("abcdeg"), "abcdeg");
}

#[test]
fn short_values_are_left_alone_and_blanks_around_one_are_not_part_of_it() {
    assert!(scrubber(&["", "12345", "  123\n"]).is_empty());
    assert_eq!(scrubber(&["12345"]).scrub("12345"), "12345");
    assert_eq!(scrubber(&[" hunter2\n"]).scrub("hunter2"), "[redacted: secret]");
}

#[test]
fn a_text_without_secrets_is_not_copied() {
    let scrubber = scrubber(&["hunter22"]);
    for text in ["", "plain", "100% \\o/ %zz \\u00", "\\ud800\\u0041"] {
        assert!(matches!(scrubber.scrub(text), Cow::Borrowed(same) if same == text));
    }
}

#[test]
fn a_long_value_goes_whole_and_also_when_it_is_cut_off() {
    let value: String = (0..4000_u32).map(|n| char::from(b'!' + u8::try_from(n * n % 89).unwrap())).collect();
    let scrubber = scrubber(&[&value]);
    assert_eq!(scrubber.scrub(&format!("a {value} b")), "a [redacted: secret] b");
    assert_eq!(scrubber.scrub(&format!("a {} b", STANDARD.encode(&value))), "a [redacted: secret] b");
    assert_eq!(scrubber.scrub(&format!("a {}", &value[..300])), "a [redacted: secret]");
}

#[test]
fn a_secret_of_one_letter_is_followed_in_linear_time() {
    let scrubber = scrubber(&[&"a".repeat(65_536)]);
    let almost = format!("{}b", "a".repeat(65_535)).repeat(64);
    assert!(!scrubber.scrub(&almost).contains("aa"));
    assert_eq!(scrubber.scrub(&"a".repeat(4_000_000)), MASK);
}

#[test]
fn it_does_not_print_what_it_knows() {
    let printed = format!("{:?}", scrubber(&["hunter22"]));
    assert!(!printed.contains("hunter") && printed.starts_with("Scrubber("), "{printed}");
}

/// Letters of which the mask has none, so that what is left can be searched for parts of the value.
fn value() -> impl Strategy<Value = String> {
    "[A-Z0-9+/%\"\\\\ é]{4,40}[A-Z0-9]{2,4}"
        .prop_map(|text| text.trim().to_owned())
        .prop_filter("long enough", |text| text.len() >= SHORTEST)
}

proptest! {
    #[test]
    fn nothing_of_a_value_is_left_in_any_form(value in value(), before in "[a-z%\\\\ é]{0,9}", behind in "[a-z ]{0,9}", form in 0..8) {
        let written = match form {
            0 => value.clone(),
            1 => percent(&value),
            2 => json(&value),
            3 => STANDARD.encode(&value),
            4 => URL_SAFE_NO_PAD.encode(&value),
            5 => json(&json(&value)),
            6 => percent(&json(&value)),
            _ => percent(&percent(&value)),
        };
        // A sign of an escape before it would make another text of it.
        let before = before.trim_end_matches(['%', '\\']).to_owned() + " ";
        let shown = scrubber(&[&value]).scrub(&format!("{before}{written} {behind}")).into_owned();
        prop_assert_eq!(shown, format!("{before}{MASK} {behind}"));
    }

    #[test]
    fn a_value_is_found_wherever_it_stands_in_what_was_encoded(value in "[ -~]{6,30}[!-~]", before in "[ -~]{0,7}", behind in "[ -~]{0,7}") {
        let value = value.trim();
        prop_assume!(value.len() >= SHORTEST);
        let encoded = STANDARD.encode(format!("{before}{value}{behind}"));
        let shown = scrubber(&[value]).scrub(&encoded).into_owned();
        prop_assert!(shown.contains(MASK));
        // At most the letters of what stood around it are left.
        prop_assert!(shown.replace(MASK, "").len() <= (before.len() + behind.len()) * 4 / 3 + 4);
    }

    #[test]
    fn any_text_is_scrubbed_without_a_panic_and_keeps_what_is_no_secret(text in "\\PC{0,60}", value in "\\PC{6,12}") {
        let shown = scrubber(&[&value]).scrub(&text).into_owned();
        if !shown.contains(MASK) {
            prop_assert_eq!(shown, text);
        }
    }

    #[test]
    fn several_values_in_one_text_all_go(values in prop::collection::vec("[A-Z]{6,12}", 1..6), gaps in prop::collection::vec("[a-z ]{0,5}", 6)) {
        let text: String = values.iter().zip(&gaps).flat_map(|(value, gap)| [value.as_str(), gap.as_str()]).collect();
        let all: Vec<&str> = values.iter().map(String::as_str).collect();
        let shown = scrubber(&all).scrub(&text).into_owned();
        prop_assert!(!shown.bytes().any(|byte| byte.is_ascii_uppercase()), "{}", shown);
    }
}
