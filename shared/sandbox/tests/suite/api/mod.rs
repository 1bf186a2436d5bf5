//! The sandbox at its HTTP border, asked by the real client and, where the client hides the wire, by plain requests.

mod access;
mod apply;
mod controllers;
mod custom;
mod discovery;
mod exec;
mod faults;
mod lists;
mod logs;
mod pods;
mod rollouts;
mod story;
mod support;
mod watches;
mod writes;
