//! Two thousand documents of a made-up company, and questions whose answers are known.
//!
//! Everything is drawn from one seed, so the corpus is the same everywhere. Runbooks, incidents and service pages share
//! their vocabulary: each service has a runbook for each symptom, many pairs had incidents, and notes mention services
//! and symptoms in passing. Questions are put in other words than the documents, with the small words people use.

mod vocabulary;

use vocabulary::{CITIES, CODES, PEOPLE, SERVICES, SMALL_TALK, SYMPTOMS, Service, Symptom, TOPICS};

/// How many documents there are.
pub(crate) const DOCUMENTS: usize = 2_000;
const INCIDENTS: usize = 700;
const DAY_MS: u64 = 86_400_000;
/// When the questions are asked.
pub(crate) const NOW_MS: u64 = 1_763_280_000_000;

/// One document.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) path: String,
    pub(crate) title: String,
    pub(crate) tags: Vec<String>,
    pub(crate) content: String,
    pub(crate) kind: &'static str,
    pub(crate) trust_weight: f64,
    pub(crate) type_weight: f64,
    pub(crate) updated_ms: u64,
}

/// One question and the path of the document that answers it.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) answer: String,
}

/// Documents and questions.
pub(crate) struct Corpus {
    pub(crate) pages: Vec<Page>,
    pub(crate) questions: Vec<Question>,
}

/// A small generator of numbers that look random (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.roll() % most as u64).unwrap_or(0)
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Makes the corpus.
pub(crate) fn make() -> Corpus {
    let mut dice = Dice(20_261_116);
    let mut corpus = Corpus { pages: Vec::with_capacity(DOCUMENTS), questions: Vec::new() };
    for (number, service) in SERVICES.iter().enumerate() {
        service_page(&mut corpus, &mut dice, service, number);
        for symptom in SYMPTOMS {
            runbook(&mut corpus, &mut dice, service, symptom);
        }
    }
    for number in 0..INCIDENTS {
        incident(&mut corpus, &mut dice, number);
    }
    for number in 0.. {
        if corpus.pages.len() == DOCUMENTS {
            break;
        }
        note(&mut corpus, &mut dice, number);
    }
    corpus
}

fn age(dice: &mut Dice) -> u64 {
    NOW_MS - dice.roll() % (200 * DAY_MS)
}

fn chatter(dice: &mut Dice, sentences: usize) -> String {
    (0..sentences).map(|_| *dice.pick(SMALL_TALK)).collect::<Vec<_>>().join(" ")
}

fn runbook(corpus: &mut Corpus, dice: &mut Dice, service: &Service, symptom: &Symptom) {
    let path = format!("tenant/runbooks/{}-{}", service.name, symptom.slug);
    let told = dice.below(3);
    let other = (told + 1 + dice.below(2)) % 3;
    let content = format!(
        "# {} of {}\n\nUse this when {}. It may also show as: {}.\n\n{}\n\nSteps:\n1. {}\n2. {}\n3. {}\n\n{}",
        symptom.title,
        service.name,
        symptom.told[told],
        symptom.told[other],
        chatter(dice, 3),
        symptom.steps[0],
        symptom.steps[1],
        symptom.steps[2],
        chatter(dice, 2),
    );
    if dice.below(100) < 40 {
        let name = if dice.below(2) == 0 { service.name.to_owned() } else { service.name.replace('-', " ") };
        let asked = symptom.asked[dice.below(symptom.asked.len())];
        let text = match dice.below(5) {
            0 => format!("{name} {asked}"),
            1 => format!("what do we do when {asked} on {name}"),
            2 => format!("how do I fix it if {asked} in the {name} service"),
            3 => format!("{asked} ({name}), what are the steps to take"),
            _ => format!("is there a runbook for {name}: {asked}?"),
        };
        corpus.questions.push(Question { text, answer: path.clone() });
    }
    corpus.pages.push(Page {
        path,
        title: format!("{}: {}", service.name, symptom.title),
        tags: vec![service.name.into(), symptom.slug.into()],
        content,
        kind: "runbook",
        trust_weight: 0.95,
        type_weight: 1.0,
        updated_ms: age(dice),
    });
}

fn service_page(corpus: &mut Corpus, dice: &mut Dice, service: &Service, number: usize) {
    let path = format!("tenant/services/{}", service.name);
    let owner = PEOPLE[number % PEOPLE.len()];
    let content = format!(
        "# {}\n\nOwned by the team of {owner}. Keeps its data in {}. Depends on {} and {}.\n{}\n\n{}",
        service.name,
        service.database,
        dice.pick(SERVICES).name,
        dice.pick(SERVICES).name,
        service.purpose,
        chatter(dice, 6),
    );
    for text in [
        format!("which database does {} keep its data in", service.name),
        format!("who owns the {} service and what is it for", service.name.replace('-', " ")),
    ] {
        corpus.questions.push(Question { text, answer: path.clone() });
    }
    corpus.pages.push(Page {
        path,
        title: format!("{}, the service", service.name),
        tags: vec![service.name.into()],
        content,
        kind: "service",
        trust_weight: 0.95,
        type_weight: 0.7,
        updated_ms: age(dice),
    });
}

fn incident(corpus: &mut Corpus, dice: &mut Dice, number: usize) {
    let (service, symptom) = (dice.pick(SERVICES), dice.pick(SYMPTOMS));
    let (city, code, person) = (*dice.pick(CITIES), *dice.pick(CODES), *dice.pick(PEOPLE));
    let (day, told) = (dice.below(28) + 1, dice.below(3));
    let path = format!("tenant/incidents/inc-{}", 3_000 + number);
    let content = format!(
        "On day {day} {} in {city}: {}. Clients saw {code}. {person} was on call.\n\n{}\n\nWhat helped: {}.\n{}",
        service.name,
        symptom.told[told],
        chatter(dice, 5),
        symptom.steps[dice.below(3)],
        chatter(dice, 3),
    );
    if dice.below(100) < 25 {
        let text = format!("the incident when {} had {code} errors in {city} and {person} was on call", service.name);
        corpus.questions.push(Question { text, answer: path.clone() });
    }
    corpus.pages.push(Page {
        path,
        title: format!("INC-{}: {} in {city}", 3_000 + number, symptom.title),
        tags: vec![service.name.into(), "incident".into()],
        content,
        kind: "incident",
        trust_weight: 0.85,
        type_weight: 0.7,
        updated_ms: age(dice),
    });
}

fn note(corpus: &mut Corpus, dice: &mut Dice, number: usize) {
    let topic = dice.pick(TOPICS);
    let mentions: Vec<String> = (0..3)
        .map(|_| format!("Somebody asked about {} and {}.", dice.pick(SERVICES).name, dice.pick(SYMPTOMS).title))
        .collect();
    let content = format!("{}\n{}\n{}", chatter(dice, 8), mentions.join(" "), chatter(dice, 8));
    corpus.pages.push(Page {
        path: format!("tenant/notes/{number}"),
        title: format!("{topic}, number {number}"),
        tags: vec!["meeting".into()],
        content,
        kind: "note",
        trust_weight: 0.45,
        type_weight: 0.3,
        updated_ms: age(dice),
    });
}
