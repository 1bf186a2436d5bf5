//! How often a question finds its answer among the first five of two thousand documents.
//!
//! The measure has to be able to fail: the same ranking without the rarity of words does not reach it.

#[cfg(test)]
mod tests {
    use crate::corpus::{self, Corpus, DOCUMENTS, NOW_MS, Page};
    use crate::reference::{Plain, Ranking, rare_words_count};
    use recall::{DocumentText, RankFacts, TextIndex};

    const SHOWN: usize = 5;
    const AIM: f64 = 0.9;

    fn facts(page: &Page) -> RankFacts {
        let Page { trust_weight, type_weight, updated_ms, kind, .. } = page;
        let (trust_weight, type_weight, updated_ms) = (*trust_weight, *type_weight, *updated_ms);
        RankFacts { trust_weight, type_weight, updated_ms, suspect: false, kind: (*kind).into() }
    }

    fn index(corpus: &Corpus) -> TextIndex {
        let mut index = TextIndex::default();
        for page in &corpus.pages {
            let Page { path, title, tags, content, .. } = page;
            index.put(DocumentText { path, title, tags, content }, facts(page));
        }
        index
    }

    /// The share of questions whose answer is shown.
    fn share(corpus: &Corpus, every: usize, shown: impl Fn(&str) -> Vec<String>) -> f64 {
        let asked: Vec<_> = corpus.questions.iter().step_by(every).collect();
        let found = asked.iter().filter(|question| shown(&question.text).contains(&question.answer)).count();
        found as f64 / asked.len() as f64
    }

    #[test]
    fn nine_of_ten_questions_find_their_answer_among_the_first_five() {
        let corpus = corpus::make();
        assert_eq!(corpus.pages.len(), DOCUMENTS);
        assert!(corpus.questions.len() >= 300, "{}", corpus.questions.len());
        let index = index(&corpus);
        let recall = share(&corpus, 1, |question| {
            index.search(question, |_| true, NOW_MS, SHOWN).into_iter().map(|hit| hit.path).collect()
        });
        assert!(recall >= AIM, "{recall:.3}");
    }

    #[test]
    fn a_ranking_that_ignores_how_rare_words_are_does_not_reach_that() {
        let corpus = corpus::make();
        let plain: Vec<Plain> = corpus.pages.iter().map(plain).collect();
        let ranking = Ranking::of(&plain);
        // Some of the questions will do: looking at every document each time takes a while.
        let recall = |rarity: fn(f64, f64) -> f64| {
            share(&corpus, 5, |question| {
                ranking.rank(question, NOW_MS, rarity).into_iter().take(SHOWN).map(|(path, _)| path).collect()
            })
        };
        let (whole, broken) = (recall(rare_words_count), recall(|_, _| 1.0));
        assert!(whole >= AIM && broken < AIM, "{whole:.3} and {broken:.3}");
    }

    #[test]
    fn what_an_index_takes_is_counted_and_bounded_by_its_texts() {
        let corpus = corpus::make();
        let index = index(&corpus);
        let texts: usize = corpus.pages.iter().map(|page| page.content.len()).sum();
        let postings = texts / 40 * size_of::<u64>();
        assert!((postings..3 * texts).contains(&index.bytes()), "{} for {texts}", index.bytes());
    }

    fn plain(page: &Page) -> Plain {
        let Page { path, title, tags, content, trust_weight, type_weight, updated_ms, .. } = page.clone();
        Plain { path, title, tags, content, trust_weight, type_weight, updated_ms, suspect: false }
    }
}
