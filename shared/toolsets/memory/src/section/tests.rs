//! What a tenant's file may say about memory, and exactly how each mistake is told.

use super::*;
use insta::assert_snapshot;
use tenancy::{KnownNames, Problem, TenantConfig};

fn parse(text: &str) -> Result<TenantConfig, Vec<Problem>> {
    let sections = [section()];
    tenancy::parse("acme.yaml", text, &KnownNames { tools: &["memory_read"], ..KnownNames::only(&sections) })
}

fn config(text: &str) -> TenantConfig {
    parse(text).expect("a configuration without problems")
}

fn memory(text: &str) -> MemoryConfig {
    config(text).section::<MemoryConfig>(KEY).unwrap().unwrap().clone()
}

/// Every problem as it is printed.
fn printed(text: &str) -> String {
    parse(text).expect_err("problems").iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

fn codes(text: &str) -> Vec<&'static str> {
    parse(text).expect_err("problems").iter().map(|problem| problem.code).collect()
}

/// The keys of a part of the schema.
fn keys(part: &str) -> Vec<String> {
    let schema = tenancy::json_schema(&[section()]);
    schema["$defs"][part]["properties"].as_object().unwrap().keys().cloned().collect()
}

fn sorted<const N: usize>(mut keys: [&str; N]) -> [&str; N] {
    keys.sort_unstable();
    keys
}

#[test]
fn the_schema_knows_the_keys_and_words_the_reader_knows() {
    assert_eq!(keys("MemoryPart"), sorted(MEMORY));
    assert_eq!(keys("StorePart"), sorted(STORE));
    let schema = tenancy::json_schema(&[section()]);
    let types = schema["$defs"]["TypeName"]["enum"].as_array().unwrap();
    assert_eq!(*types, DocumentKind::ALL.map(DocumentKind::as_str));
}

#[test]
fn a_rule_stands_where_a_session_must_ask() {
    let place = |text: &str| -> Vec<String> {
        let rules = tenancy::trace(text, &[section()]);
        rules.iter().map(|rule| format!("{}:{} {} {}", rule.line, rule.column, rule.kind.as_str(), rule.text)).collect()
    };
    let text = "tenant: acme\nmemory: { session_writes: ask }\n";
    assert_eq!(place(text), ["2:27 memory.session_writes ask"]);
    assert!(tenancy::trace(text, &[section()])[0].matches("memory_patch", Some("session")));
    assert_eq!(place("tenant: acme\nmemory: { session_writes: run }\n"), [] as [&str; 0]);
}

fn file(memory: &str) -> String {
    format!("tenant: acme\nmemory: {memory}\n")
}

fn store(of: &str) -> String {
    file(&format!("{{ stores: [{of}] }}"))
}

#[test]
fn memory_is_read_as_written() {
    let read = memory(
        "tenant: acme\nmemory:\n  \
           review: 7d\n  \
           session_writes: ask\n  \
           stores:\n  \
           - name: tenant/postmortems\n    \
             types: [incident, lesson]\n    \
             writable: people\n    \
             promotable: false\n    \
             documents: 100\n    \
             bytes: 1048576\n  \
           - name: session/drafts\n",
    );
    let full = MemoryStore {
        scope: DocumentScope::Tenant,
        name: "postmortems".into(),
        types: Some(vec![DocumentKind::Incident, DocumentKind::Lesson]),
        writable: Some(WriteAccess::People),
        promotable: Some(false),
        documents: Some(100),
        bytes: Some(1_048_576),
    };
    let bare = MemoryStore {
        scope: DocumentScope::Session,
        name: "drafts".into(),
        types: None,
        writable: None,
        promotable: None,
        documents: None,
        bytes: None,
    };
    let review = Some(Duration::from_secs(7 * 24 * 3600));
    assert_eq!(read, MemoryConfig { review, session_writes: SessionWrites::Ask, stores: vec![full, bare] });
}

#[test]
fn a_session_that_must_ask_asks_for_what_it_writes_and_for_nothing_it_reads() {
    assert!(config("tenant: acme").gates().is_empty());
    let gates =
        config("tenant: acme\npolicy: { require_approval: [memory_read] }\nmemory: { session_writes: ask }").gates();
    let asks = |tool, about| gates.iter().any(|gate| gate.pattern.matches(tool, Some(about)));
    for tool in ["memory_remember", "memory_patch", "memory_forget"] {
        assert!(asks(tool, "session"), "{tool}");
        assert!(!asks(tool, "tenant"), "{tool} asks there anyway");
    }
    assert!(asks("memory_read", "session") && !asks("memory_search", "session"));
}

#[test]
fn each_mistake_is_told_where_it_stands() {
    let text = "tenant: acme\nmemory:\n  \
           reviews: 1d\n  \
           review: 31d\n  \
           session_writes: never\n  \
           stores:\n  \
           - types: [note]\n  \
           - { name: team/notes }\n  \
           - { name: tenant/Post Mortems }\n  \
           - { name: tenant/a, types: [notes, lesson, lesson], writable: nobody, promotable: maybe }\n  \
           - { name: tenant/b, types: [], documents: 0, bytes: 1, size: 2 }\n  \
           - { name: session/notes, writable: people, promotable: true }\n";
    assert_snapshot!(printed(text), @"
        acme.yaml:3:3: unknown_key: `memory` has no key `reviews`
            hint: did you mean `review`? known keys here: review, session_writes, stores
        acme.yaml:4:11: out_of_range: `31d` is no span between 86400 s and 2592000 s
            hint: write a whole number and s, m, h or d, such as `30m`
        acme.yaml:5:19: bad_value: `never` says nothing about a session's writes
            hint: use `run` or `ask`
        acme.yaml:7:5: missing_key: the key `name` is missing
            hint: add `name:` with scope and store, such as `tenant/postmortems`
        acme.yaml:8:13: bad_value: `team/notes` begins with no scope
            hint: scopes: session, user, tenant
        acme.yaml:9:13: bad_value: `tenant/Post Mortems` names no store: after the scope comes one word of a-z, 0-9, '.', '_' and '-'
        acme.yaml:10:31: bad_value: `notes` is no type of document
            hint: did you mean `note`? types: preference, convention, runbook, incident, service, lesson, checklist, note
        acme.yaml:10:46: repeated_value: the type `lesson` is named twice
            hint: remove one of them
        acme.yaml:10:65: bad_value: `nobody` says nobody who could write
            hint: use `people` or `agents`
        acme.yaml:10:85: bad_value: `promotable` is `true` or `false`
        acme.yaml:11:30: bad_value: a store that takes no type can hold nothing
            hint: leave the key out to take every type
        acme.yaml:11:45: out_of_range: `documents` is `0`, which is out of range
            hint: choose from 1 to 2000
        acme.yaml:11:55: out_of_range: `bytes` is `1`, which is out of range
            hint: choose from 4096 to 104857600
        acme.yaml:11:58: unknown_key: a store has no key `size`
            hint: known keys here: name, types, writable, promotable, documents, bytes
        acme.yaml:12:38: bad_value: a session's notes are its own: it always writes there, and nothing is proposed for it
            hint: leave the key out
        acme.yaml:12:58: bad_value: a session's notes are its own: it always writes there, and nothing is proposed for it
            hint: leave the key out
    ");
}

#[test]
fn the_time_of_a_review_has_its_bounds() {
    for fine in ["1d", "24h", "14d", "30d"] {
        assert!(memory(&file(&format!("{{ review: {fine} }}"))).review.is_some(), "{fine}");
    }
    for bad in ["23h", "31d", "soon", "'7'"] {
        assert_eq!(codes(&file(&format!("{{ review: {bad} }}"))), ["out_of_range"], "{bad}");
    }
}

#[test]
fn a_store_is_named_by_scope_and_one_word_and_is_there_once() {
    for bad in ["tenant", "tenant/", "tenant/a/b", "tenant/.a", "tenant/A", "tenants/a", "'tenant/a b'", "/a"] {
        assert_eq!(codes(&store(&format!("{{ name: {bad} }}"))), ["bad_value"], "{bad}");
    }
    assert_eq!(codes(&store(&format!("{{ name: tenant/{} }}", "a".repeat(65)))), ["bad_value"]);
    assert_eq!(codes(&store("{ name: user/a }, { name: tenant/a }, { name: user/a }")), ["repeated_value"]);
    let many: Vec<String> = (0..49).map(|n| format!("{{ name: tenant/s{n} }}")).collect();
    assert_eq!(codes(&store(&many.join(", "))), ["out_of_range"]);
}

fn beyond(file: &str, text: &str) -> Vec<String> {
    let (file, text) = (format!("tenant: acme\n{file}"), format!("tenant: acme\n{text}"));
    let problems = tenancy::exceeding("config", &text, &[section()], &config(&file), &config(&text));
    problems.iter().map(|problem| problem.message.clone()).collect()
}

#[test]
fn a_text_only_tightens_the_rules_of_the_file_and_of_the_product() {
    let file = "memory:
  review: 7d
  session_writes: ask
  stores:
  - { name: tenant/runbooks, types: [runbook], writable: people, promotable: false, documents: 10, bytes: 4096 }
  - { name: tenant/own }
";
    let none = [] as [&str; 0];
    assert_eq!(beyond(file, file), none);
    assert_eq!(beyond("", ""), none);
    let stores = "memory: { review: 7d, session_writes: ask, stores: [{ name: tenant/runbooks, types: [runbook], writable: people, promotable: false, documents: 9, bytes: 4096 }, { name: tenant/new }] }\n";
    assert_eq!(beyond(file, stores), none, "a store may be left out, and a new one is the tenant's to have");
    assert_eq!(beyond("", "memory: { review: 14d }\n"), none, "as the product has it");
    assert_snapshot!(beyond(file, "").join("\n"), @r"
    `review`: the tenant's file gives 604800 s, and this asks for 1209600 s
    `session_writes`: the tenant's file gives ask, and this asks for run
    `types` of the store `tenant/runbooks`: the tenant's file gives runbook, and this asks for preference, convention, runbook, incident, service, lesson, checklist, note
    `writable` of the store `tenant/runbooks`: the tenant's file gives people, and this asks for agents
    `promotable` of the store `tenant/runbooks`: the tenant's file gives false, and this asks for true
    `documents` of the store `tenant/runbooks`: the tenant's file gives 10, and this asks for 2000
    `bytes` of the store `tenant/runbooks`: the tenant's file gives 4096, and this asks for 104857600
    ");
    assert_snapshot!(beyond("", "memory: { review: 15d, stores: [{ name: tenant/conventions, writable: agents }] }\n").join("\n"), @r"
    `review`: the tenant's file gives 1209600 s, and this asks for 1296000 s
    `writable` of the store `tenant/conventions`: the tenant's file gives people, and this asks for agents
    ");
}

#[test]
fn what_is_beyond_the_file_is_told_at_its_store() {
    let stores = |bytes: u32| {
        format!("tenant: acme\nmemory:\n  stores:\n  - {{ name: user/a }}\n  - {{ name: tenant/b, bytes: {bytes} }}\n")
    };
    let (file, text) = (stores(4096), stores(8192));
    let problems = tenancy::exceeding("config", &text, &[section()], &config(&file), &config(&text));
    let places: Vec<_> = problems.iter().map(|problem| (problem.line, problem.column)).collect();
    assert_eq!(places, [(5, 30)]);
}
