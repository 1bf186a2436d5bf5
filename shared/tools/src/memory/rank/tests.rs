use super::*;
use domain::Principal;
use store::Provenance;

fn document(path: &str, title: &str, kind: &str, content: &str, age_days: u64) -> Document {
    let at = Moment::from_secs(100 * 86_400 - age_days * 86_400);
    Document {
        path: path.into(),
        title: title.into(),
        kind: kind.into(),
        tags: vec![],
        trust: Trust::Draft,
        version: 1,
        sha256: String::new(),
        content: content.into(),
        evidence: String::new(),
        provenance: Provenance {
            actor: Principal { issuer: "i".into(), subject: "s".into() },
            kind: "agent".into(),
            session: None,
            at,
            tainted: false,
            run: None,
        },
        updated_at: at,
    }
}

fn paths(documents: &[Document], query: &str) -> Vec<String> {
    let now = Moment::from_secs(100 * 86_400);
    best(documents, query, now, 10).into_iter().map(|hit| hit.document.path.clone()).collect()
}

#[test]
fn a_word_in_the_title_counts_more_than_one_in_the_text() {
    let documents = [
        document("session/notes/a", "Checkout errors", "note", "the database was slow", 0),
        document("session/notes/b", "Database failover", "note", "promote the replica, then check", 0),
        document("session/notes/c", "Lunch", "note", "pizza on fridays", 0),
    ];
    assert_eq!(paths(&documents, "database"), ["session/notes/b", "session/notes/a"]);
    assert_eq!(paths(&documents, "submarine"), Vec::<String>::new());
}

#[test]
fn identifiers_are_found_whole_and_in_parts() {
    let documents = [document("session/notes/a", "x", "note", "restart web-frontend; see getUserName in v1.2", 0)];
    for query in ["web-frontend", "frontend", "user name", "getusername", "v1.2"] {
        assert_eq!(paths(&documents, query).len(), 1, "{query}");
    }
}

#[test]
fn among_equals_the_newer_and_the_runbook_come_first() {
    let newer = document("session/notes/new", "redis", "note", "text", 0);
    let older = document("session/notes/old", "redis", "note", "text", 60);
    assert_eq!(paths(&[older.clone(), newer], "redis"), ["session/notes/new", "session/notes/old"]);
    let runbook = document("session/notes/run", "redis", "runbook", "text", 60);
    assert_eq!(paths(&[older, runbook], "redis"), ["session/notes/run", "session/notes/old"]);
}

#[test]
fn the_excerpt_shows_the_match_and_survives_any_script() {
    let long = format!("{} needle in a haystack {}", "Straße İstanbul ".repeat(500), "tail ".repeat(500));
    let documents = [document("session/notes/a", "x", "note", &long, 0)];
    let hits = best(&documents, "needle", Moment::from_secs(0), 1);
    assert!(hits[0].excerpt.chars().count() <= EXCERPT_CHARS);
    assert!(hits[0].excerpt.contains("needle"), "{}", hits[0].excerpt);
}
