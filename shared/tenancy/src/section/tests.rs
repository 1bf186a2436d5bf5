//! What a section gets from the rest of the file, and what becomes of it.

use super::*;
use crate::check::{KnownNames, parse};
use crate::problem::Problem;
use crate::{ParameterValue, SecretValue, TenantConfig};
use policy::Pattern;
use serde::Deserialize;

/// A section that reads the YAML itself: a lamp with a key, an address and a word.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Lamp {
    key: String,
    url: Option<String>,
    word: Option<ParameterValue>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its shape is used")]
struct LampFile {
    /// What shines.
    #[schemars(default, with = "LampPart")]
    lamp: Option<LampPart>,
}

/// A lamp.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct LampPart {
    key: SecretValue,
    url: String,
    word: String,
}

fn lamp(reader: &mut SectionReader<'_>, node: &YamlNode) -> Option<Lamp> {
    let fields = reader.values.fields(node, "`lamp`", &["key", "url", "word"], None)?;
    let url = fields.find("url").and_then(|node| reader.address(node));
    let word = fields.find("word").and_then(|node| reader.given(node, "`word`"));
    let pattern = Pattern::parse("lamp_on").ok()?;
    reader.add_gate(policy::Gate { pattern, on_reject: domain::run::OnReject::Fail });
    reader.add_tools(ToolFamily { toolset: "lamp".into(), prefix: "lamp_".into() });
    let Some(key) = fields.find("key") else { return reader.values.missing(node, "key", "which opens it") };
    Some(Lamp { key: reader.secret(key, "key", "a key")?, url, word })
}

/// A section that is read as a type.
#[derive(Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Horn {
    tones: Vec<u8>,
}

fn horn(horn: &Horn) -> Vec<SectionProblem> {
    let high = horn.tones.iter().position(|tone| *tone > 9);
    high.into_iter()
        .map(|n| SectionProblem { at: format!("/tones/{n}"), message: "too high".to_owned(), hint: None })
        .collect()
}

fn sections() -> [Section; 2] {
    [Section::new::<LampFile, _>("lamp", Place::Root, lamp).after("mode"), Section::of("horn", horn)]
}

fn read(text: &str) -> Result<TenantConfig, Vec<String>> {
    let addresses = |used: &crate::AddressUse<'_>| match (used.section, used.address) {
        ("lamp", "http://bad") => Err(format!("{} may not", used.tenant.map_or("nobody", domain::Tenant::as_str))),
        (_, _) => Ok(()),
    };
    let sections = sections();
    let known = KnownNames { addresses: &addresses, ..KnownNames::only(&sections) };
    parse("acme.yaml", text, &known).map_err(|problems| problems.iter().map(Problem::to_string).collect())
}

#[test]
fn a_section_is_kept_as_its_own_type_with_all_that_follows_from_it() {
    let config = read(
        "tenant: acme\ndefault_toolsets: [lamp]\nparams: { k: { secret: true, from: kept }, w: { default: x } }\n\
         lamp: { key: '{{ params.k }}', url: 'http://good', word: 'a{{ params.w }}' }\n\
         toolsets: { horn: { tones: [1, 2] } }\npolicy: { deny: [lamp_off] }\n",
    )
    .unwrap();
    let word = Some(ParameterValue::Text("ax".into()));
    let expected = Lamp { key: "kept".into(), url: Some("http://good".into()), word };
    assert_eq!(config.section("lamp"), Ok(Some(&expected)));
    assert_eq!(config.section("horn"), Ok(Some(&Horn { tones: vec![1, 2] })));
    assert!(config.section::<Horn>("lamp").is_err(), "another type is no absent section");
    assert_eq!(config.secrets.into_iter().collect::<Vec<_>>(), ["kept"]);
    assert_eq!(config.section_gates.len(), 1);
}

#[test]
fn mistakes_in_sections_have_their_positions() {
    let text = "tenant: acme\nlamp: { url: 'http://bad', colour: red }\ntoolsets:\n  horn:\n    tones: [1, 10]\n";
    insta::assert_snapshot!(read(text).unwrap_err().join("\n"), @"
    acme.yaml:2:7: missing_key: the key `key` is missing
        hint: add `key:`, which opens it
    acme.yaml:2:14: bad_value: `http://bad` cannot be used: acme may not
    acme.yaml:2:28: unknown_key: `lamp` has no key `colour`
        hint: known keys here: key, url, word
    acme.yaml:5:16: bad_value: `horn`: too high
    ");
    let text = "tenant: acme\nparams: { k: { secret: no } }\nlamp: { key: '{{ params.k }}' }\n";
    assert_eq!(read(text).unwrap_err().len(), 1, "a mistake in a parameter is told once");
    let text = "tenant: acme\ntoolsets: { horn: { tones: loud } }\n";
    insta::assert_snapshot!(read(text).unwrap_err().join("\n"), @"
    acme.yaml:2:19: bad_value: `horn`: invalid type: string \"loud\", expected a sequence
    ");
}

#[test]
fn keys_are_listed_where_sections_belong_whatever_order_they_come_in() {
    let make = |key, after: Option<&'static str>| {
        let section = Section::new::<LampFile, _>(key, Place::Root, lamp);
        after.map_or(section.clone(), |after| section.after(after))
    };
    let sections = [make("d", Some("c")), make("c", Some("a")), make("z", Some("nowhere")), make("y", None)];
    assert_eq!(keys_at(Place::Root, &["a", "b"], &sections), ["a", "c", "d", "b", "y", "z"]);
    assert_eq!(keys_at(Place::Toolsets, &["a"], &sections), ["a"]);
}

#[test]
fn the_schema_has_the_sections_with_their_words() {
    let schema = crate::json_schema(&sections());
    assert_eq!(schema["properties"]["lamp"]["description"], "What shines.");
    assert_eq!(schema["$defs"]["LampPart"]["properties"]["key"]["$ref"], "#/$defs/SecretValue");
    let horn = &schema["$defs"]["ToolsetsPart"]["properties"]["horn"];
    assert_eq!(horn["$ref"], "#/$defs/Horn");
    assert!(schema["$defs"]["Horn"]["properties"]["tones"].is_object());
}

#[test]
fn a_section_that_cannot_compare_itself_is_the_files_to_change() {
    let beyond = |file: &str, text: &str| {
        let text = format!("tenant: acme\n{text}");
        let (given, asked) = (read(&format!("tenant: acme\n{file}")).unwrap(), read(&text).unwrap());
        let problems = crate::exceeding("config", &text, &sections(), &given, &asked);
        problems
            .iter()
            .map(|problem| format!("{}:{} {}", problem.line, problem.column, problem.code))
            .collect::<Vec<_>>()
    };
    let horn = "toolsets: { horn: { tones: [1, 2] } }\n";
    assert_eq!(beyond(horn, horn), [] as [&str; 0]);
    assert_eq!(beyond(horn, "toolsets: { horn: { tones: [1] } }\n"), ["2:19 operator_only"]);
    assert_eq!(beyond("", horn), ["2:19 operator_only"]);
    assert_eq!(beyond(horn, ""), ["1:1 operator_only"]);
}

#[test]
fn a_section_that_compares_itself_decides_what_is_beyond_the_file() {
    let quieter = |file: Option<&Horn>, asked: Option<&Horn>| {
        let tones = |horn: Option<&Horn>| horn.map_or(0, |horn| horn.tones.len());
        let excess = || Excess::new("/tones", "`tones`", tones(file), tones(asked));
        (tones(asked) > tones(file)).then(excess).into_iter().collect()
    };
    let beyond = |file: &str, text: &str| -> Vec<String> {
        let text = format!("tenant: acme\n{text}");
        let (given, asked) = (read(&format!("tenant: acme\n{file}")).unwrap(), read(&text).unwrap());
        let sections = [Section::of("horn", horn).bounded(quieter)];
        let problems = crate::exceeding("acme.yaml", &text, &sections, &given, &asked);
        problems.iter().map(|problem| format!("{}:{} {}", problem.line, problem.column, problem.message)).collect()
    };
    let horn = |tones: &str| format!("toolsets: {{ horn: {{ tones: [{tones}] }} }}\n");
    assert_eq!(beyond(&horn("1, 2"), &horn("3")), [] as [&str; 0], "fewer tones are less, whichever they are");
    assert_eq!(beyond(&horn("1"), &horn("1, 2")), ["2:28 `tones`: the tenant's file gives 1, and this asks for 2"]);
}

#[test]
fn a_configuration_grants_the_secrets_that_its_sections_hand_out_and_no_other_use() {
    let used = |place: &str| crate::SecretUse { section: "lamp", secret: "kept".to_owned(), place: place.to_owned() };
    let sections = [Section::new::<LampFile, _>("lamp", Place::Root, lamp).with_secret_uses(|values| {
        let lamp = values.get::<Lamp>("lamp")?;
        let used = |lamp: &Lamp| crate::SecretUse {
            section: "lamp",
            secret: lamp.key.clone(),
            place: lamp.url.clone().unwrap_or_default(),
        };
        Ok(lamp.map(used).into_iter().collect())
    })];
    let text = "tenant: acme\nlamp: { key: { secret: kept }, url: https://here.example/ }\n";
    let config = parse("acme.yaml", text, &KnownNames::only(&sections)).unwrap();
    assert!(config.grants(&used("https://here.example/")));
    assert!(!config.grants(&used("https://elsewhere.example/")));
}

#[test]
fn the_rules_that_follow_from_a_section_are_told_where_they_stand() {
    let sections = [Section::of("horn", horn).with_rules(|node| {
        node.find("tones")
            .map(|node| RuleAt::new(crate::RuleKind::Section("horn.tones"), node, Vec::new()))
            .into_iter()
            .collect()
    })];
    let rules = crate::trace("tenant: acme\ntoolsets: { horn: { tones: [1] } }\n", &sections);
    let told: Vec<_> = rules.iter().map(|rule| (rule.kind.as_str(), rule.line, rule.column)).collect();
    assert_eq!(told, [("horn.tones", 2, 28)]);
    assert_eq!(crate::trace("tenant: acme\n", &sections), []);
}
