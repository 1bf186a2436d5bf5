//! The wire from outside: bytes and headers in, requests or exact refusals out.

mod cancelled_and_other_notices;
mod envelope;
mod examples;
mod legacy;
mod modern_ladder;
mod properties;
mod stdio;
mod support;
