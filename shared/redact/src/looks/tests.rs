use super::*;

/// Texts that would be costly for whoever looks at them twice.
fn hostile(size: usize) -> Vec<(&'static str, String)> {
    let filled = |piece: &str| piece.repeat(size / piece.len());
    vec![
        ("plain", filled("a line of a log without anything\n")),
        ("one line", filled("a line without an end and without anything ")),
        ("almost tokens", filled("eyJaaaaaaaa.eyJ ")),
        ("signs", filled("=:")),
        ("names without values", filled("password=")),
        ("references", filled("password=${")),
        ("open quotes", filled("password=\"")),
        ("escapes", filled("password=\\\"\\\\")),
        ("addresses", filled("https://a:b")),
        ("commands", filled("docker -p mysql -p ")),
        ("flags", filled("--password -")),
        ("elements", filled("<password>")),
        ("base64", filled("cGFzc3dvcmQ9aHVudGVyMg==")),
        ("keys", filled("-----BEGIN PRIVATE KEY-----\n")),
        ("documents", filled("kind: Secret\ndata:\n---\n")),
        ("blocks", filled("password: |\n")),
        ("lists", filled("Server=a b;Password=c d;")),
    ]
}

#[test]
fn the_cost_grows_with_the_length_and_no_faster() {
    for ((name, short), (_, long)) in hostile(20_000).into_iter().zip(hostile(80_000)) {
        let (cost, more) = (find_counted(&short).1, find_counted(&long).1);
        let length = |text: &str| u64::try_from(text.len()).unwrap();
        // Four times the text costs at most four times as much, and a little for rounding.
        assert!(more * 10 <= cost * 45, "{name}: {cost} for {}, {more} for {}", short.len(), long.len());
        assert!(more <= LOOKS_PER_BYTE * length(&long), "{name}: {more} for {}", long.len());
    }
}

#[test]
fn what_is_too_long_is_masked_from_there_on() {
    let text = "a harmless line\n".repeat(20);
    let mut cost = LookCost { longest: 100, ..LookCost::of(text.len()) };
    let spans = find_within(&text, 0, &mut cost);
    assert_eq!(spans.iter().map(|span| span.rule).collect::<Vec<_>>(), [UNSEEN]);
    assert_eq!(spans[0].secret, 96..text.len());
    assert_eq!(LineLooker::new().alone(&"x".repeat(LONGEST + 1))[0].rule, UNSEEN);
}

#[test]
fn exactly_as_much_as_may_be_is_looked_at() {
    let text = "a harmless line\n".repeat(20);
    let mut cost = LookCost { longest: text.len(), ..LookCost::of(text.len()) };
    assert_eq!(find_within(&text, 0, &mut cost), []);
    let spent = |bytes| LookCost { bytes, most: 100, longest: LONGEST }.is_spent();
    assert!(!spent(100) && spent(101));
    assert_eq!(LineLooker::new().alone(&" ".repeat(LONGEST)), []);
}

#[test]
fn only_a_text_that_speaks_of_secrets_is_read_for_documents() {
    for (text, reads, documents) in
        [("kind: Pod\n---\n", 1, vec![]), ("kind: Secret\n---\na: b\n", 2, vec![(0, true), (17, false)])]
    {
        let mut cost = LookCost::of(text.len());
        assert_eq!(secret_documents(text, &mut cost), documents);
        assert_eq!(cost.bytes, reads * u64::try_from(text.len()).unwrap());
    }
}

#[test]
fn a_setting_is_judged_by_name_and_value() {
    let setting = |name: &str, value: &str| is_secret_setting(name, value, SettingPlace::Setting);
    assert!(setting("DB_PASSWORD", "hunter2"));
    assert!(!setting("DB_HOST", "hunter2") && !setting("PWD", "/srv") && !setting("DB_PASSWORD", "$(FROM)"));
    assert!(is_secret_field("clientSecret", "x") && !is_secret_field("name", "x"));
    assert!(is_secret_setting("salt", "s4lty9", SettingPlace::Setting) && !is_secret_field("salt", "s4lty9"));
}

#[test]
fn a_text_holds_a_secret_as_a_manifest_or_by_its_looks() {
    assert!(holds_secret_manifest("apiVersion: v1\nkind: Secret\n"));
    assert!(!holds_secret_manifest("kind: Pod\n") && !holds_secret_manifest("the secret of a kind: Pod\n"));
    assert!(holds_secret(b"password=hunter2x9") && holds_secret(b"\xff\xfe") && !holds_secret(b"nothing to see"));
}

#[test]
fn what_costs_too_much_is_masked_from_there_on() {
    let text = "a harmless line\n".repeat(20);
    let mut cost = LookCost { most: 100, ..LookCost::of(text.len()) };
    let spans = find_within(&text, 0, &mut cost);
    assert_eq!(spans.iter().map(|span| span.rule).collect::<Vec<_>>(), [UNSEEN]);
    assert_eq!(spans[0].secret.end, text.len());
}

#[test]
fn a_value_ends_at_a_blank_or_a_quote() {
    for (text, secret) in [
        ("password=ab$cdefghijk", "ab$cdefghijk"),
        ("token=s3&cretsecret x", "s3&cretsecret"),
        ("password=hunter2$ecretTail", "hunter2$ecretTail"),
        ("password='a,b;{c}<d>' next", "a,b;{c}<d>"),
        (r#"{\"password\":\"a\\b\",\"x\":1}"#, r"a\\b"),
    ] {
        let spans = find(text);
        assert_eq!(spans.len(), 1, "{text}: {spans:?}");
        assert_eq!(&text[spans[0].secret.clone()], secret, "{text}");
    }
}

#[test]
fn a_secret_is_found_with_the_name_before_it() {
    for (text, hit) in [
        (r#"{"user":"x","dbPassword":"hunter22"}"#, r#"dbPassword":"hunter22"#),
        ("x, db.password = hunter22 y", "db.password = hunter22"),
        ("os.environ['API_TOKEN'] = 'hunter22'", "API_TOKEN'] = 'hunter22"),
        ("\u{1b}[32m password\u{1b}[0m=hunter22", "password\u{1b}[0m=hunter22"),
    ] {
        let spans = find(text);
        assert_eq!(spans.len(), 1, "{text}: {spans:?}");
        assert_eq!(&text[spans[0].hit.clone()], hit, "{text}");
    }
}

#[test]
fn a_variable_is_a_name_in_capitals_that_is_quoted_or_has_several_words() {
    for (name, quoted, place) in [
        ("DB_PASSWORD", false, SettingPlace::Setting),
        ("PASSWORD", true, SettingPlace::Setting),
        ("PASSWORD", false, SettingPlace::Text),
        ("DB_Password", true, SettingPlace::Text),
        ("DB-PASSWORD", true, SettingPlace::Text),
    ] {
        assert_eq!(pairs::place_of(name, quoted), place, "{name}");
    }
}

#[test]
fn spans_that_overlap_are_one_and_those_that_touch_are_two() {
    let span = |rule, range: Range<usize>| SecretSpan { rule, hit: range.clone(), secret: range };
    let spans = vec![span("c", 6..9), span("b", 3..6), span("a", 0..2), span("b", 4..5)];
    assert_eq!(apart(spans), [span("a", 0..2), span("b", 3..6), span("c", 6..9)]);
    assert_eq!(apart(vec![span("b", 3..6), span("a", 0..4)]), [span("a", 0..6)]);
}

#[test]
fn what_is_encoded_twice_is_found_and_what_is_encoded_three_times_is_not() {
    use base64::Engine;
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let twice = encode(&encode("password=hunter22\u{1}"));
    assert_eq!(find(&twice).len(), 1);
    assert_eq!(find(&encode(&twice)), [], "every further one would cost as much again");
}

#[test]
fn spans_lie_in_order_and_on_borders_of_letters() {
    let text = "é password=é1é2é3é token=abcdefgh\nкlюч: x\npassword: 日本語のパスワード\n";
    let mut end = 0;
    for span in find(text) {
        assert!(
            span.secret.start >= end && text.get(span.secret.clone()).is_some() && text.get(span.hit.clone()).is_some()
        );
        end = span.secret.end;
    }
    assert!(end > 0);
}

proptest::proptest! {
    #[test]
    fn any_text_can_be_looked_at(text in "(\\PC|[\\n\"'=:$@/\\\\-]|password|token|://|--){0,80}") {
        let mut end = 0;
        for span in find(&text) {
            proptest::prop_assert!(span.secret.start >= end && text.get(span.secret.clone()).is_some());
            proptest::prop_assert!(text.get(span.hit.clone()).is_some());
            end = span.secret.end;
        }
    }
}
