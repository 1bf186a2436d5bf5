//! Which spans and events are of interest, decided once for each place in the code where it can be.
//!
//! One filter for everything: with one for each layer, every entry into a span would ask each of them again.

use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::filter::{EnvFilter, LevelFilter};
use tracing_subscriber::layer::{Context, Layer};

/// The filter.
#[derive(Debug)]
pub(crate) struct CallsiteFilter {
    log: EnvFilter,
    /// Whether the log directives speak of spans: then they have to see them.
    follows_spans: bool,
    /// The finest spans that are recorded. Those of log lines always are, because a warning without its tenant helps
    /// nobody; a collector gets more.
    finest: Level,
}

impl CallsiteFilter {
    /// `log` judges events; its `directives` are what it was made from.
    pub(crate) fn new(log: EnvFilter, directives: &str, is_collecting: bool) -> CallsiteFilter {
        let finest = if is_collecting { Level::DEBUG } else { Level::INFO };
        CallsiteFilter { log, follows_spans: directives.contains('['), finest }
    }

    fn records(&self, span: &Metadata<'_>) -> bool {
        *span.level() <= self.finest && span.file().is_some_and(is_ours)
    }
}

/// Whether a file is of this workspace. The compiler names its files by where they stand in the checkout, and those of
/// third parties by where they stand on the machine, so a new toolset is ours without being named here.
pub(crate) fn is_ours(file: &str) -> bool {
    file.starts_with("shared/") || file.starts_with("services/")
}

impl<S: Subscriber> Layer<S> for CallsiteFilter {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        let logged = Layer::<S>::register_callsite(&self.log, metadata);
        match (metadata.is_span(), self.follows_spans && !logged.is_never()) {
            (false, _) => logged,
            (true, false) if !self.records(metadata) => Interest::never(),
            (true, _) => Interest::always(),
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>, context: Context<'_, S>) -> bool {
        match metadata.is_span() {
            true => self.follows_spans || self.records(metadata),
            false => self.log.enabled(metadata, context),
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let events = Layer::<S>::max_level_hint(&self.log)?;
        Some(events.max(LevelFilter::from_level(self.finest)))
    }

    fn on_new_span(&self, attrs: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if self.follows_spans {
            self.log.on_new_span(attrs, id, context);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if self.follows_spans {
            self.log.on_record(id, values, context);
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if self.follows_spans {
            self.log.on_enter(id, context);
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        if self.follows_spans {
            self.log.on_exit(id, context);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if self.follows_spans {
            self.log.on_close(id, context);
        }
    }
}
