use super::*;

fn facts(kind: &str) -> RankFacts {
    RankFacts { trust_weight: 0.45, type_weight: 0.3, updated_ms: 0, suspect: false, kind: kind.into() }
}

fn text<'a>(path: &'a str, title: &'a str, content: &'a str) -> DocumentText<'a> {
    DocumentText { path, title, tags: &[], content }
}

fn paths(index: &TextIndex, query: &str) -> Vec<String> {
    index.search(query, |_| true, 0, 10).into_iter().map(|hit| hit.path).collect()
}

#[test]
fn a_word_in_the_title_counts_more_than_one_in_the_content() {
    let mut index = TextIndex::default();
    index.put(text("notes/a", "Checkout errors", "the database was slow"), facts("note"));
    index.put(text("notes/b", "Database failover", "promote the replica, then check"), facts("note"));
    index.put(text("notes/c", "Lunch", "pizza on fridays"), facts("note"));
    assert_eq!(paths(&index, "database"), ["notes/b", "notes/a"]);
    assert_eq!(paths(&index, "submarine"), Vec::<String>::new());
    assert_eq!(paths(&index, ""), Vec::<String>::new());
}

#[test]
fn identifiers_are_found_whole_and_in_parts() {
    let mut index = TextIndex::default();
    index.put(text("a", "x", "restart web-frontend; see getUserName in v1.2"), facts("note"));
    for query in ["web-frontend", "frontend", "user name", "getusername", "v1.2"] {
        assert_eq!(paths(&index, query).len(), 1, "{query}");
    }
}

#[test]
fn what_stands_beyond_the_head_of_a_content_is_not_found() {
    let mut index = TextIndex::default();
    let long = format!("{} needle", "x".repeat(LOOKED_AT));
    index.put(text("a", "t", &long), facts("note"));
    assert_eq!(paths(&index, "needle"), Vec::<String>::new());
}

#[test]
fn newer_more_useful_and_more_trusted_documents_come_first_and_suspect_ones_last() {
    const DAY: u64 = 86_400_000;
    let mut index = TextIndex::default();
    let put = |index: &mut TextIndex, path: &str, facts: RankFacts| index.put(text(path, "redis", "text"), facts);
    put(&mut index, "e-old", facts("note"));
    put(&mut index, "d-new", RankFacts { updated_ms: 60 * DAY, ..facts("note") });
    put(&mut index, "c-runbook", RankFacts { type_weight: 1.0, updated_ms: 60 * DAY, ..facts("runbook") });
    put(
        &mut index,
        "b-seeded",
        RankFacts { trust_weight: 1.0, type_weight: 1.0, updated_ms: 60 * DAY, ..facts("runbook") },
    );
    let best =
        RankFacts { trust_weight: 1.0, type_weight: 1.0, updated_ms: 60 * DAY, suspect: true, ..facts("runbook") };
    put(&mut index, "a-suspect", best);
    let hits = index.search("redis", |_| true, 60 * DAY, 10);
    let order: Vec<&str> = hits.iter().map(|hit| hit.path.as_str()).collect();
    assert_eq!(order, ["b-seeded", "c-runbook", "d-new", "e-old", "a-suspect"]);
    let old = hits[3].score;
    let expected = 0.60 * hits_share(&hits, &index) + 0.20 * 0.45 + 0.10 * 0.3 + 0.10 * 0.25;
    assert!((old - expected).abs() < 1e-9, "two half-lives are a quarter: {old} and {expected}");
    assert!((hits[4].score * 2.0 - (0.60 * 1.0 + 0.30 + 0.10)).abs() < 0.02);
}

/// The share of the best hit's words that all of equal length have.
fn hits_share(hits: &[IndexHit], index: &TextIndex) -> f64 {
    let length = |path: &str| f64::from(index.entry(index.by_path[path]).unwrap().length);
    let average = hits.iter().map(|hit| length(&hit.path)).sum::<f64>() / 5.0;
    let words = |path: &str| 1.0 / (3.0 + 1.2 * (0.25 + 0.75 * length(path) / average));
    words("e-old") / hits.iter().map(|hit| words(&hit.path)).fold(0.0, f64::max)
}

#[test]
fn a_filter_takes_part_before_the_best_is_known() {
    let mut index = TextIndex::default();
    index.put(text("a", "redis redis redis", "redis"), facts("runbook"));
    index.put(text("b", "x", "redis"), facts("note"));
    let hits = index.search("redis", |facts| facts.kind == "note", 0, 10);
    assert_eq!(hits.len(), 1);
    assert!((hits[0].score - (0.60 + 0.20 * 0.45 + 0.10 * 0.3 + 0.10)).abs() < 1e-9, "it is the best there is");
}

#[test]
fn several_indexes_are_searched_as_one() {
    let documents = [("t/a", "redis failover", "x"), ("t/b", "redis", "slow"), ("s/c", "failover of redis", "redis")];
    let (mut one, mut tenant, mut session) = (TextIndex::default(), TextIndex::default(), TextIndex::default());
    for (path, title, content) in documents {
        one.put(text(path, title, content), facts("note"));
        let part = if path.starts_with('t') { &mut tenant } else { &mut session };
        part.put(text(path, title, content), facts("note"));
    }
    let scores = |hits: Vec<IndexHit>| hits.into_iter().map(|hit| (hit.path, hit.score)).collect::<Vec<_>>();
    let apart = search::search(&[&tenant, &session], "redis failover", |_| true, 0, 10);
    assert!(apart.iter().all(|hit| hit.index == usize::from(hit.path.starts_with('s'))));
    assert_eq!(scores(apart), scores(one.search("redis failover", |_| true, 0, 10)));
}

#[test]
fn what_is_replaced_or_removed_leaves_nothing_behind() {
    let mut index = TextIndex::default();
    index.put(text("kept", "one", "common words"), facts("note"));
    let (before, empty) = (index.bytes(), TextIndex::default().bytes());
    for round in 0..20 {
        let content = format!("common {} words{round}", "other ".repeat(round));
        index.put(text("a", "two", &content), facts("note"));
        index.put(text(&format!("b{round}"), "two", &content), facts("note"));
    }
    assert_eq!(index.len(), 22);
    assert_eq!(paths(&index, "words3"), ["b3"], "the text of a before its last is forgotten");
    assert!(index.bytes() > before);

    (0..20).for_each(|round| assert!(index.remove(&format!("b{round}"))));
    assert!(index.remove("a") && !index.remove("a"));
    assert_eq!(
        (index.len(), index.total, index.by_word.len()),
        (1, u64::from(index.documents[0].as_ref().unwrap().length), 4)
    );
    assert!(index.bytes() <= before + 8 * 64, "lists that shrank keep a little room");
    assert!(index.remove("kept") && index.is_empty());
    assert_eq!((index.bytes(), index.total, index.by_word.len()), (empty, 0, 0));
}
