//! What the links do on the wire, against a server of either era on loopback.

mod bounds;
mod double;
mod notices;
mod older;
mod process;
mod sending;
mod talk;
mod tokens;
mod trust;
mod world;
