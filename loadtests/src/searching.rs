//! How long a search of memory takes, against the same question put to a bare search library.
//!
//! Ours is all that `memory_search` does: a look at the changes of each scope, the ranking, the few documents that were
//! found, read from the store's file, and an excerpt of each. Theirs has its index in memory, the same fields with
//! the same weights, and reads the stored text of what it found. Both answer every question in turns, so that a busy
//! moment of the machine falls on both.
//!
//! Reading order: [`ours`], [`theirs`]; the documents and questions are those the index is tested with.

mod ours;
mod theirs;

#[path = "../../shared/recall/tests/suite/corpus/mod.rs"]
#[expect(dead_code, reason = "how old and how trusted a page would be is for the tests of the ranking")]
mod corpus;

use crate::report;
use anyhow::ensure;
use ours::OurSearch;
use std::time::{Duration, Instant};
use theirs::TheirSearch;

/// How many hits a search shows.
const SHOWN: usize = 6;
/// How often all questions are asked; odd, so that there is a middle round.
const ROUNDS: usize = 7;
/// The most that the middle of ours may be of the middle of theirs.
const AIM: f64 = 2.0;

/// One document that was found, as it is shown.
struct ShownDocument {
    path: String,
    text: String,
}

/// Measures, prints, and gives how many aims were missed.
pub(crate) async fn run() -> anyhow::Result<usize> {
    if cfg!(debug_assertions) {
        report::print("This is a debug build, and the library is built for speed all the same. Use --profile dist.\n");
    }
    let corpus = corpus::make();
    let (mut ours, theirs) = (OurSearch::of(&corpus).await?, TheirSearch::of(&corpus)?);
    let (mut found_here, mut found_there) = (0, 0);
    for question in &corpus.questions {
        let (one, other) = (ours.search(&question.text).await?, theirs.search(&question.text)?);
        ensure!(one.len() == SHOWN && other.len() == SHOWN, "`{}` finds too little", question.text);
        ensure!(
            one.iter().chain(&other).all(|shown| !shown.text.is_empty()),
            "`{}` finds nothing to show",
            question.text
        );
        let answers = |shown: &Vec<ShownDocument>| usize::from(shown.iter().any(|shown| shown.path == question.answer));
        (found_here, found_there) = (found_here + answers(&one), found_there + answers(&other));
    }
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for question in &corpus.questions {
            let started = Instant::now();
            std::hint::black_box(ours.search(&question.text).await?);
            here.push(started.elapsed());
            let started = Instant::now();
            std::hint::black_box(theirs.search(&question.text)?);
            there.push(started.elapsed());
        }
        rounds.push((middle(here), middle(there)));
    }
    let mut ratios: Vec<f64> = rounds.iter().map(|(ours, theirs)| ours.as_secs_f64() / theirs.as_secs_f64()).collect();
    ratios.sort_by(f64::total_cmp);
    let ratio = ratios[ROUNDS / 2];
    let (ours_p50, theirs_p50) = rounds[ROUNDS / 2];
    report::print(&format!(
        "{} documents, {} questions; answers among {SHOWN} hits: ours {found_here}, theirs {found_there}\n\
         p50: ours {ours_p50:?}, theirs {theirs_p50:?}; ratio {ratio:.2} ({:.2} to {:.2}), aim at most {AIM}: {}",
        corpus.pages.len(),
        corpus.questions.len(),
        ratios[0],
        ratios[ROUNDS - 1],
        if ratio <= AIM { "ok" } else { "MISSED" },
    ));
    Ok(usize::from(ratio > AIM))
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
