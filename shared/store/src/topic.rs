//! What a wake-up is about, in the compact text that travels over the channel.
//!
//! A wake-up says only where to look. Nothing may depend on one arriving.

use domain::job::RunnerLabel;
use domain::{JobId, RunId, SessionId};

/// What moved.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Topic {
    /// A session's record.
    Session(SessionId),
    /// A run's record.
    Run(RunId),
    /// The tenant's catalog.
    Catalog,
    /// Somebody withdrew a request of a session.
    Cancel {
        /// The session the request was made in.
        session: SessionId,
        /// The request's id, as its client wrote it.
        request: String,
    },
    /// The open stream of a session has a new holder.
    StreamOwner {
        /// The session.
        session: SessionId,
        /// The new holder's token.
        owner: String,
    },
    /// A document.
    Document,
    /// The tenant's configuration.
    Config,
    /// The tenant's secrets.
    Secrets,
    /// The kill switches of all tenants.
    Switches,
    /// What an external server of the tenant offers, or what of it was accepted.
    Servers,
    /// A job's record, or its output.
    Job(JobId),
    /// There is a new job for runners of this label.
    Jobs(RunnerLabel),
    /// A person signed out.
    SignedOut,
}

impl Topic {
    pub(crate) fn to_text(&self) -> String {
        match self {
            Topic::Session(session) => format!("s:{session}"),
            Topic::Run(run) => format!("r:{run}"),
            Topic::Catalog => "c".to_owned(),
            Topic::Cancel { session, request } => format!("x:{session}:{request}"),
            Topic::StreamOwner { session, owner } => format!("o:{session}:{owner}"),
            Topic::Document => "d".to_owned(),
            Topic::Config => "f".to_owned(),
            Topic::Secrets => "k".to_owned(),
            Topic::Switches => "w".to_owned(),
            Topic::Servers => "u".to_owned(),
            Topic::Job(job) => format!("j:{job}"),
            Topic::Jobs(label) => format!("q:{label}"),
            Topic::SignedOut => "b".to_owned(),
        }
    }

    /// Reads the text back. A newer replica may speak of what this one does not know: that is `None`.
    pub(crate) fn parse(text: &str) -> Option<Topic> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let pair = |rest: &str| {
            let (session, tail) = rest.split_once(':')?;
            Some((SessionId::parse(session).ok()?, tail.to_owned()))
        };
        match kind {
            "s" => SessionId::parse(rest).ok().map(Topic::Session),
            "r" => RunId::parse(rest).ok().map(Topic::Run),
            "c" if rest.is_empty() => Some(Topic::Catalog),
            "x" => pair(rest).map(|(session, request)| Topic::Cancel { session, request }),
            "o" => pair(rest).map(|(session, owner)| Topic::StreamOwner { session, owner }),
            "d" if rest.is_empty() => Some(Topic::Document),
            "f" if rest.is_empty() => Some(Topic::Config),
            "k" if rest.is_empty() => Some(Topic::Secrets),
            "w" if rest.is_empty() => Some(Topic::Switches),
            "u" if rest.is_empty() => Some(Topic::Servers),
            "j" => JobId::parse(rest).ok().map(Topic::Job),
            "q" => RunnerLabel::parse(rest).map(Topic::Jobs),
            "b" if rest.is_empty() => Some(Topic::SignedOut),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_reads_back_as_itself() {
        let session = SessionId::from_random([9; 16]);
        for topic in [
            Topic::Session(session),
            Topic::Run(RunId::from_random([3; 16])),
            Topic::Catalog,
            Topic::Cancel { session, request: "7:\"a b\"".into() },
            Topic::Cancel { session, request: String::new() },
            Topic::StreamOwner { session, owner: "rep_1/2".into() },
            Topic::Document,
            Topic::Config,
            Topic::Secrets,
            Topic::Switches,
            Topic::Servers,
            Topic::Job(JobId::of("run_1")),
            Topic::Jobs(RunnerLabel::parse("shop-hosts").unwrap()),
            Topic::SignedOut,
        ] {
            assert_eq!(Topic::parse(&topic.to_text()), Some(topic));
        }
    }

    #[test]
    fn what_is_not_ours_wakes_nobody() {
        for text in ["", "s", "s:", "s:call_1", "x:ses_1:a", "c:more", "z:1", "o:", "j:", "q:A b"] {
            assert_eq!(Topic::parse(text), None, "{text}");
        }
    }
}
