//! What callers are told when a chart or a repository cannot be had.

use super::archive::BadArchive;
use super::range::Range;
use crate::codes;
use domain::{Code, Failure};

pub(in crate::client) fn bad_archive(bad: BadArchive) -> Failure {
    match bad {
        BadArchive::TooLarge | BadArchive::TooMany => {
            Failure::new(Code::TooLarge, format!("the archive is not used: {bad}")).next("use another chart or version")
        }
        BadArchive::NotAnArchive | BadArchive::Name | BadArchive::Link | BadArchive::NotAChart => {
            not_the_chart(&bad.to_string())
        }
    }
}

/// What came is not what was asked for.
pub(in crate::client) fn not_the_chart(why: &str) -> Failure {
    Failure::new(codes::CHART_NOT_FOUND, format!("what the repository holds there is not used: {why}"))
        .next("tell an admin of the repository; do not retry")
}

pub(in crate::client) fn no_chart(name: &str, near: Vec<String>) -> Failure {
    Failure::new(codes::CHART_NOT_FOUND, format!("the repository has no chart {name}"))
        .next("find charts with helm_search")
        .did_you_mean(near)
}

pub(in crate::client) fn no_version(name: &str, range: &Range, newest: &[String]) -> Failure {
    let failure = Failure::new(codes::VERSION_NOT_FOUND, format!("the chart {name} has no version {range}"));
    match newest {
        [] => failure.next("find versions with helm_search all_versions=true"),
        some => failure.next(format!("the newest are {}", some.join(", "))).did_you_mean(some.to_vec()),
    }
}

pub(in crate::client) fn no_registry() -> Failure {
    Failure::new(target::codes::HOST_DENIED, "the tenant has no registry that this chart would be in")
        .next("list the repositories with helm_search, or add the registry with helm_repo")
}

pub(in crate::client) fn taken(name: &str) -> Failure {
    Failure::new(kubernetes::codes::ALREADY_EXISTS, format!("there is another repository {name}"))
        .next("remove it first, or choose another name")
}

pub(in crate::client) fn full(most: usize) -> Failure {
    Failure::new(Code::QuotaExceeded, format!("a tenant has at most {most} repositories")).next("remove one first")
}
