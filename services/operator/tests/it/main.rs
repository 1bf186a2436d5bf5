//! Tests of the operator from outside.

#[cfg(test)]
mod asking;
#[cfg(test)]
mod on_a_cluster;
