//! The index as its callers use it: against a plainer ranking, and against questions with known answers.

mod corpus;
mod known_answers;
mod plain_ranking;
mod reference;
