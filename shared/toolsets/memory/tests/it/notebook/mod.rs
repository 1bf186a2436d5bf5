//! The notebook on an embedded store: who may keep what where, and who finds it again.

mod forgetting;
mod promoting;
mod searching;
mod world;
mod writing;
