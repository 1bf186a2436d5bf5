//! The index against the plainest ranking there is: the same answers for any documents, whatever was replaced or removed.

#[cfg(test)]
mod tests {
    use crate::reference::{Plain, Ranking, rare_words_count};
    use proptest::prelude::*;
    use recall::{DocumentText, IndexHit, RankFacts, TextIndex, search};
    use std::collections::BTreeMap;

    const NOW_MS: u64 = 100 * 86_400_000;

    /// Few enough that documents share them, odd enough to be split.
    const WORDS: [&str; 19] = [
        "owns",
        "owned",
        "stopping",
        "stop",
        "queries",
        "redis",
        "Redis",
        "failover",
        "web-frontend",
        "frontend",
        "getUserName",
        "HTTPServer",
        "CPUs",
        "v1.2",
        "user",
        "größe",
        "--",
        "a/b",
        "x_y",
    ];

    fn text(most: usize) -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(&WORDS[..]), 0..most).prop_map(|words| words.join(" "))
    }

    fn document() -> impl Strategy<Value = Plain> {
        let weight = || prop::sample::select(vec![0.3, 0.45, 0.85, 1.0]);
        let ages = prop::sample::select(vec![0_u64, 1, 30, 60]);
        let tags = prop::collection::vec(prop::sample::select(&WORDS[..]).prop_map(str::to_owned), 0..3);
        (0..12_u8, text(4), tags, text(20), weight(), weight(), ages, prop::bool::weighted(0.2)).prop_map(
            |(path, title, tags, content, trust_weight, type_weight, age, suspect)| Plain {
                path: format!("notes/{path}"),
                title,
                tags,
                content,
                trust_weight,
                type_weight,
                updated_ms: NOW_MS - age * 86_400_000,
                suspect,
            },
        )
    }

    /// A document is put, or the one at a path is taken out.
    fn change() -> impl Strategy<Value = Result<Plain, u8>> {
        prop_oneof![3 => document().prop_map(Ok), 1 => (0..12_u8).prop_map(Err)]
    }

    fn put(index: &mut TextIndex, document: &Plain) {
        let Plain { path, title, tags, content, trust_weight, type_weight, updated_ms, suspect } = document;
        let facts = RankFacts {
            trust_weight: *trust_weight,
            type_weight: *type_weight,
            updated_ms: *updated_ms,
            suspect: *suspect,
            kind: "note".into(),
        };
        index.put(DocumentText { path, title, tags, content }, facts);
    }

    /// Two parts, as a tenant's and a session's documents are; which one is told by the path.
    fn part(path: &str) -> usize {
        path.len() % 2
    }

    fn agree(hits: &[IndexHit], plain: &[(String, f64)]) -> Result<(), TestCaseError> {
        let paths = |hits: &[IndexHit]| hits.iter().map(|hit| hit.path.clone()).collect::<Vec<_>>();
        prop_assert_eq!(paths(hits), plain.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>());
        for (hit, (_, score)) in hits.iter().zip(plain) {
            prop_assert!((hit.score - score).abs() < 1e-9, "{} and {score}", hit.score);
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_index_answers_like_the_plain_ranking(
            changes in prop::collection::vec(change(), 0..60),
            questions in prop::collection::vec(text(4), 1..4),
            limit in 0..8_usize,
        ) {
            let (mut whole, mut parts) = (TextIndex::default(), [TextIndex::default(), TextIndex::default()]);
            let mut plain: BTreeMap<String, Plain> = BTreeMap::new();
            for change in changes {
                match change {
                    Ok(document) => {
                        put(&mut whole, &document);
                        put(&mut parts[part(&document.path)], &document);
                        plain.insert(document.path.clone(), document);
                    }
                    Err(path) => {
                        let path = format!("notes/{path}");
                        let was_there = plain.remove(&path).is_some();
                        prop_assert_eq!(whole.remove(&path), was_there);
                        prop_assert_eq!(parts[part(&path)].remove(&path), was_there);
                    }
                }
            }
            prop_assert_eq!(whole.len(), plain.len());
            let plain: Vec<Plain> = plain.into_values().collect();
            let ranking = Ranking::of(&plain);
            for question in questions {
                let mut expected = ranking.rank(&question, NOW_MS, rare_words_count);
                let all = whole.search(&question, |_| true, NOW_MS, usize::MAX);
                agree(&all, &expected)?;
                agree(&search(&[&parts[0], &parts[1]], &question, |_| true, NOW_MS, usize::MAX), &expected)?;
                expected.truncate(limit);
                agree(&whole.search(&question, |_| true, NOW_MS, limit), &expected)?;
            }
            let empty = TextIndex::default().bytes();
            for document in &plain {
                prop_assert!(whole.bytes() > empty);
                prop_assert!(whole.remove(&document.path));
            }
            prop_assert_eq!((whole.len(), whole.bytes()), (0, empty));
        }
    }
}
