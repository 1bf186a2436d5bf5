//! What callers are told when a chart or a repository cannot be had.

use super::archive::BadArchive;
use super::range::Range;
use domain::{Code, Failure};

pub(crate) fn bad_archive(bad: BadArchive) -> Failure {
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
pub(crate) fn not_the_chart(why: &str) -> Failure {
    Failure::new(Code::ChartNotFound, format!("what the repository holds there is not used: {why}"))
        .next("tell an admin of the repository; do not retry")
}

pub(crate) fn no_chart(name: &str, near: Vec<String>) -> Failure {
    Failure::new(Code::ChartNotFound, format!("the repository has no chart {name}"))
        .next("find charts with helm_search")
        .did_you_mean(near)
}

pub(crate) fn no_version(name: &str, range: &Range, newest: &[String]) -> Failure {
    let failure = Failure::new(Code::VersionNotFound, format!("the chart {name} has no version {range}"));
    match newest {
        [] => failure.next("find versions with helm_search all_versions=true"),
        some => failure.next(format!("the newest are {}", some.join(", "))).did_you_mean(some.to_vec()),
    }
}

pub(crate) fn no_registry() -> Failure {
    Failure::new(Code::HostDenied, "the tenant has no registry that this chart would be in")
        .next("list the repositories with helm_search, or add the registry with helm_repo")
}

pub(crate) fn taken(name: &str) -> Failure {
    Failure::new(Code::AlreadyExists, format!("there is another repository {name}"))
        .next("remove it first, or choose another name")
}

pub(crate) fn full(most: usize) -> Failure {
    Failure::new(Code::QuotaExceeded, format!("a tenant has at most {most} repositories")).next("remove one first")
}
