//! Tests of the operator from outside.

mod asking;
mod on_a_cluster;
