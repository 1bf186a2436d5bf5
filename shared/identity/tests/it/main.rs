//! Tokens against a verifier, with real keys and a real server for key sets.

mod bounds;
mod fixed;
mod fuzz;
mod hostile;
mod id_token;
mod published;
mod support;
