//! The built-in tools, one file each, and one list per toolset.
//!
//! A new tool is its file and one line in the list of its toolset. Nothing here decides who may call what.

pub mod argo;
mod cursor;
mod grammar;
mod grep;
pub mod helm;
pub mod jenkins;
pub mod k8s;
mod marked;
pub mod memory;
mod reply;
mod toolbox;
mod written;

pub use cursor::{Clock, Cursors};
pub use toolbox::{Has, Kit, Toolbox};
