//! One request to a server, its address built from judged parts.

use crate::client::path::{BuildSelector, JobPath, encode};

/// What is sent, and how it is told about.
#[derive(Debug, Clone)]
pub(in crate::client) struct ServerRequest {
    pub(in crate::client) verb: Verb,
    path: String,
    query: Vec<(&'static str, String)>,
    /// The fields of a form; only a POST has one.
    pub(in crate::client) form: Vec<(String, String)>,
    /// The template of the address, for telemetry: never the address itself.
    pub(in crate::client) route: &'static str,
    /// What it means that nothing is there.
    pub(in crate::client) absent: MissingSubject,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::client) enum Verb {
    Get,
    Post,
}

/// What a 404 is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::client) enum MissingSubject {
    /// Something every server has.
    Server,
    /// A job or folder.
    Job(JobPath),
    /// A build.
    Build(JobPath, BuildSelector),
    /// An item of the queue.
    Item(u64),
    /// The report of a build's tests.
    Report,
    /// What the named plugin brings.
    Plugin(&'static str),
    /// An artifact of a build.
    Artifact(String),
}

impl ServerRequest {
    pub(in crate::client) fn get(
        path: impl Into<String>,
        route: &'static str,
        absent: MissingSubject,
    ) -> ServerRequest {
        ServerRequest::new(Verb::Get, path.into(), route, absent)
    }

    pub(in crate::client) fn post(
        path: impl Into<String>,
        route: &'static str,
        absent: MissingSubject,
    ) -> ServerRequest {
        ServerRequest::new(Verb::Post, path.into(), route, absent)
    }

    fn new(verb: Verb, path: String, route: &'static str, absent: MissingSubject) -> ServerRequest {
        ServerRequest { verb, path, query: Vec::new(), form: Vec::new(), route, absent }
    }

    /// Something about a job.
    pub(in crate::client) fn job(verb: Verb, job: &JobPath, rest: &str, route: &'static str) -> ServerRequest {
        ServerRequest::new(verb, format!("{}{rest}", job.address()), route, MissingSubject::Job(job.clone()))
    }

    /// Something about a build.
    pub(in crate::client) fn build(
        verb: Verb,
        (job, which): (&JobPath, BuildSelector),
        rest: &str,
        route: &'static str,
    ) -> ServerRequest {
        let path = format!("{}/{}{rest}", job.address(), which.segment());
        ServerRequest::new(verb, path, route, MissingSubject::Build(job.clone(), which))
    }

    pub(in crate::client) fn or(mut self, absent: MissingSubject) -> ServerRequest {
        self.absent = absent;
        self
    }

    pub(in crate::client) fn query(mut self, key: &'static str, value: impl Into<String>) -> ServerRequest {
        self.query.push((key, value.into()));
        self
    }

    /// What is wanted of a JSON answer, and no more.
    pub(in crate::client) fn tree(self, tree: impl Into<String>) -> ServerRequest {
        self.query("tree", tree)
    }

    pub(in crate::client) fn field(mut self, key: impl Into<String>, value: impl Into<String>) -> ServerRequest {
        self.form.push((key.into(), value.into()));
        self
    }

    /// Path and query, encoded, as they follow the base address.
    pub(in crate::client) fn target(&self) -> String {
        let mut out = self.path.clone();
        pairs(&mut out, self.query.iter().map(|(key, value)| (*key, value.as_str())), Some('?'));
        out
    }

    /// The body of the form.
    pub(in crate::client) fn body(&self) -> Option<Vec<u8>> {
        match self.verb {
            Verb::Get => None,
            Verb::Post => {
                let mut out = String::new();
                pairs(&mut out, self.form.iter().map(|(key, value)| (key.as_str(), value.as_str())), None);
                Some(out.into_bytes())
            }
        }
    }
}

fn pairs<'a>(out: &mut String, pairs: impl Iterator<Item = (&'a str, &'a str)>, first: Option<char>) {
    for (n, (key, value)) in pairs.enumerate() {
        match (n, first) {
            (0, Some(first)) => out.push(first),
            (0, None) => {}
            (1.., _) => out.push('&'),
        }
        encode(out, key);
        out.push('=');
        encode(out, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_stays_in_its_place() {
        let job = JobPath::parse("a/b?c").unwrap();
        let request =
            ServerRequest::build(Verb::Post, (&job, BuildSelector::Number(7)), "/stop", "x").tree("jobs[a,b]{0,9}");
        assert_eq!(request.target(), "/job/a/job/b%3Fc/7/stop?tree=jobs%5Ba%2Cb%5D%7B0%2C9%7D");
        assert_eq!(request.body(), Some(Vec::new()), "a form without fields is still a form");
        let request = request.field("A", "x&B=y\r\n").field("token", "=");
        assert_eq!(request.body().unwrap(), b"A=x%26B%3Dy%0D%0A&token=%3D");
        assert_eq!(ServerRequest::job(Verb::Get, &job, "/api/json", "x").body(), None);
    }
}
