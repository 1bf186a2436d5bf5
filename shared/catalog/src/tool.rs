//! What the author of a tool writes: a spec, typed arguments and output, a pure effect, and a run.

use domain::{Effect, Failure, Level, ToolOutput};
use policy::Permit;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// One thing that can be done. A new tool is one file with one of these, and one line in the list of its toolset.
pub trait Tool: Send + Sync + 'static {
    /// Name, toolset and what the model reads.
    const SPEC: ToolSpec;
    /// A line that stands before the text of every result, where whoever reads it must be told what it is.
    const PREFACE: Option<&'static str> = None;
    /// What is parsed; the strict schema comes from this very type. Add `#[serde(deny_unknown_fields)]`.
    type Args: DeserializeOwned + JsonSchema + Send + Sync + 'static;
    /// What comes back as structured content.
    type Output: Serialize + JsonSchema;

    /// What a call with these arguments does to the world. Pure, and judged before anything runs.
    fn effect(args: &Self::Args) -> Effect;

    /// What the arguments are about, where a tenant's rule may single it out (`k8s_get:secrets`). Several words have
    /// commas between them, and a rule about any of them counts.
    fn about(_: &Self::Args) -> Option<String> {
        None
    }

    /// What a call with these arguments would do, drawn from the target. `None`: the arguments say it all.
    /// The permit is for looking and dry-running only.
    fn preview(&self, _: &Permit, _: &Self::Args) -> impl Future<Output = Result<Option<ToolPreview>, Failure>> + Send {
        std::future::ready(Ok(None))
    }

    /// Looks whether an execution whose answer was lost has happened. The permit names the run.
    fn probe(&self, _: &Permit, _: &Self::Args) -> impl Future<Output = ProbeResult> + Send {
        std::future::ready(ProbeResult::Unknown)
    }

    /// Whether what came back is text that may speak to the model in somebody else's voice. Then the session is tainted
    /// before the result is handed out. For tools some of whose results do; those of [`ToolSpec::outside_text`] always do.
    fn taints(_: &Self::Output) -> bool {
        false
    }

    /// Does it. The permit carries tenant, caller and session; nothing else does.
    fn run(
        &self,
        permit: &Permit,
        args: Self::Args,
        progress: &Progress,
    ) -> impl Future<Output = Result<Self::Output, Failure>> + Send;
}

/// The fixed facts of a built-in tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolSpec {
    /// Its name, unique in the product.
    pub name: &'static str,
    /// The toolset it is loaded with.
    pub toolset: &'static str,
    /// For people.
    pub title: &'static str,
    /// For the model; every word is paid for on every turn.
    pub description: &'static str,
    /// For people who set up agents; no model reads it, so it may be a whole sentence.
    pub hint: &'static str,
    /// The highest effect any arguments can have. Decides the list it is in and its annotations.
    pub most: Effect,
    /// A promise that it may be repeated after a crash, for every argument.
    pub idempotent: bool,
    /// Whether it reaches beyond this service.
    pub open_world: bool,
    /// How long one call may take.
    pub deadline: Duration,
    /// Whether its results are text that somebody outside wrote, such as logs: then they taint the session.
    pub outside_text: bool,
    /// How long people may take to review what it asks for, where that is not urgent.
    pub reviewed: Option<Duration>,
    /// Whether its calls spend their time waiting: then they hold none of the tenant's call slots.
    pub waits: bool,
}

impl ToolSpec {
    /// A tool whose calls do at most `most`. Not idempotent and open to the world unless said otherwise.
    pub const fn new(name: &'static str, toolset: &'static str, most: Effect) -> ToolSpec {
        let (title, description, hint) = ("", "", "");
        let (idempotent, open_world, deadline) = (false, true, Duration::from_secs(30));
        let (outside_text, reviewed, waits) = (false, None, false);
        ToolSpec {
            name,
            toolset,
            title,
            description,
            hint,
            most,
            idempotent,
            open_world,
            deadline,
            outside_text,
            reviewed,
            waits,
        }
    }

    /// The words for people and for the model.
    #[must_use]
    pub const fn says(mut self, title: &'static str, description: &'static str) -> ToolSpec {
        self.title = title;
        self.description = description;
        self
    }

    /// Tells people who set up agents when to give one this tool, and what to mind.
    #[must_use]
    pub const fn hint(mut self, hint: &'static str) -> ToolSpec {
        self.hint = hint;
        self
    }

    /// Promises that a repeated call has the effect of one.
    #[must_use]
    pub const fn idempotent(mut self) -> ToolSpec {
        self.idempotent = true;
        self
    }

    /// Says that it acts on nothing outside this service.
    #[must_use]
    pub const fn closed_world(mut self) -> ToolSpec {
        self.open_world = false;
        self
    }

    /// Sets how long one call may take.
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> ToolSpec {
        self.deadline = deadline;
        self
    }

    /// Says that its results are text that somebody outside wrote.
    #[must_use]
    pub const fn outside_text(mut self) -> ToolSpec {
        self.outside_text = true;
        self
    }

    /// Says that its calls spend their time waiting for something outside.
    #[must_use]
    pub const fn waits(mut self) -> ToolSpec {
        self.waits = true;
        self
    }

    /// Says that people review its runs at their own pace, within this time unless the tenant says otherwise. Such a
    /// call answers with its run at once, a no never ends the step of the session, and whoever says no says why.
    #[must_use]
    pub const fn reviewed(mut self, within: Duration) -> ToolSpec {
        self.reviewed = Some(within);
        self
    }
}

/// The list a tool is in: the read list only if no arguments can do more than read.
pub(crate) const fn list_of(most: Effect) -> Level {
    match most {
        Effect::Read => Level::Read,
        Effect::Change | Effect::Disrupt => Level::Write,
    }
}

/// Where a running tool tells how far it is. Telling never waits and never fails; nobody may be listening.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<ProgressSink>>);

/// How far, of how much, and in which words.
type ProgressSink = dyn Fn(u64, Option<u64>, Option<&str>) + Send + Sync;

impl Progress {
    /// Progress that somebody listens to.
    pub fn to(sink: impl Fn(u64, Option<u64>, Option<&str>) + Send + Sync + 'static) -> Progress {
        Progress(Some(Arc::new(sink)))
    }

    /// Tells how far the work is.
    pub fn report(&self, done: u64, total: Option<u64>, message: Option<&str>) {
        if let Some(sink) = &self.0 {
            sink(done, total, message);
        }
    }
}

/// What a tool says a call would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPreview {
    /// One line.
    pub summary: String,
    /// What changes, for a person to read.
    pub text: String,
    /// Warnings that go with it.
    pub warnings: Vec<String>,
    /// The arguments as people are shown them, as JSON text, where some of them may not be seen; `None`: as they are.
    /// What will be executed is never hidden for its looks: whoever signs for it must be able to read it.
    pub arguments: Option<String>,
    /// What is hidden from people, in text and arguments: how much of what, and why.
    pub hidden: Vec<String>,
    /// What must still be so at execution: identity and version of the target, and whatever the approver judged.
    pub fingerprint: String,
}

/// What a look at the target says about an execution whose answer was lost.
#[derive(Debug, Clone, PartialEq)]
pub enum ProbeResult {
    /// It happened; this is its result as JSON text, if it can be told.
    Done(Option<String>),
    /// It did not happen.
    NotDone,
    /// It was tried, is over, and failed like this.
    Failed(Failure),
    /// Nobody can tell.
    Unknown,
}

/// A boxed future of a tool.
pub type BoxedFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The boxed future of a running tool.
pub type ToolFuture<'a> = BoxedFuture<'a, Result<ToolOutput, Failure>>;
