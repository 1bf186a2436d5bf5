//! Faults a test can plant at the border.

use std::time::Duration;

/// One kind of trouble for matching requests, a given number of times.
#[derive(Debug, Clone)]
pub struct JenkinsFault {
    /// The HTTP method it is for, or all.
    pub method: Option<String>,
    /// Text the path and query must contain.
    pub path: String,
    /// How many requests it hits.
    pub times: u32,
    /// What happens to them.
    pub harm: JenkinsHarm,
}

impl JenkinsFault {
    /// Trouble for the next request whose path and query contain this text.
    pub fn once(path: &str, harm: JenkinsHarm) -> JenkinsFault {
        JenkinsFault { method: None, path: path.to_owned(), times: 1, harm }
    }

    /// Only for requests of this method.
    #[must_use]
    pub fn on(mut self, method: &str) -> JenkinsFault {
        self.method = Some(method.to_owned());
        self
    }

    /// So many times.
    #[must_use]
    pub fn times(mut self, times: u32) -> JenkinsFault {
        self.times = times;
        self
    }
}

/// What a fault does.
#[derive(Debug, Clone)]
pub enum JenkinsHarm {
    /// Answers this status at once, with `Retry-After` in seconds if given; nothing is carried out.
    Answer(u16, Option<u64>),
    /// Carries the request out and answers this status all the same, as a proxy that gave up waiting does.
    LateAnswer(u16),
    /// Takes the request and never answers.
    Silence,
    /// Carries the request out and never answers.
    SilenceAfter,
    /// Cuts the connection before anything is done.
    Cut,
    /// Carries the request out and cuts the connection instead of answering.
    CutAfter,
    /// Answers the head and the first half of the body, then cuts.
    CutMidway,
    /// Answers after a while.
    Delay(Duration),
    /// Refuses for want of a crumb; nothing is carried out.
    NoCrumb,
    /// Sends the client elsewhere; nothing is carried out.
    Redirect(String),
    /// Answers with a page that says it is JSON, as a login proxy does.
    NotJson,
    /// Answers a JSON text of at least so many bytes.
    Huge(usize),
    /// Begins a body and never ends it.
    Endless,
    /// The true answer, compressed though nobody asked for it.
    Gzip,
}

/// The planted faults.
#[derive(Debug, Default)]
pub(super) struct JenkinsFaults(Vec<JenkinsFault>);

impl JenkinsFaults {
    pub(super) fn plant(&mut self, fault: JenkinsFault) {
        self.0.push(fault);
    }

    /// The harm that meets this request, counted down.
    pub(super) fn meet(&mut self, method: &str, path: &str) -> Option<JenkinsHarm> {
        let fits = |fault: &JenkinsFault| {
            let method_fits = fault.method.as_deref().is_none_or(|wanted| wanted == method);
            fault.times > 0 && method_fits && path.contains(&fault.path)
        };
        let found = self.0.iter().position(fits)?;
        self.0[found].times -= 1;
        let harm = self.0[found].harm.clone();
        self.0.retain(|fault| fault.times > 0);
        Some(harm)
    }
}
