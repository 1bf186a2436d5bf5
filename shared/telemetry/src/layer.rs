//! Records spans, and decides at the end of each whether it is sent.
//!
//! Whether a trace is kept is decided when it begins. Of a trace that is not kept, each span that ends waits at the one
//! above it: if something above or below turns out to be worth it, all of them are sent; if not, they are dropped with
//! the first span of the trace in this process. So nothing is built for a trace that nobody will see, and a trace that
//! failed is whole.
//!
//! Not here: which callsites are of interest at all (see `callsites`), what a collector reads (see `otlp::spans`).

use crate::config::Config;
use crate::names;
use crate::otlp::queue::OtlpQueue;
use crate::record::{AttributeValue, SpanAttributes, SpanPlace, SpanRecord};
use crate::sampling::{CallersWord, MinuteCount, TraceShare};
use crate::trace_context::TraceContext;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::{LookupSpan, Registry, SpanRef};

/// Spans a minute of all those together who sent no valid token.
const STRANGERS_A_MINUTE: u32 = 60;

/// Whether anybody collects spans in this process; never taken back.
static COLLECTING: AtomicBool = AtomicBool::new(false);

/// Whether anybody collects spans; if not, what is known only for them need not be found out.
pub fn collects_spans() -> bool {
    COLLECTING.load(Ordering::Relaxed)
}

/// The layer that records spans.
#[derive(Debug)]
pub(crate) struct SpanLayer {
    collector: Option<SpanCollector>,
}

/// Where spans go, and by which rules.
#[derive(Debug)]
pub(crate) struct SpanCollector {
    pub(crate) share: TraceShare,
    pub(crate) words: CallersWord,
    queue: OtlpQueue<Box<SpanRecord>>,
    strangers: Mutex<MinuteCount>,
}

impl SpanCollector {
    pub(crate) fn new(config: &Config, queue: OtlpQueue<Box<SpanRecord>>) -> SpanCollector {
        let (share, words) = (TraceShare::new(config.sample_ratio), CallersWord::new(config.caller_samples_per_minute));
        SpanCollector { share, words, queue, strangers: Mutex::default() }
    }

    /// Where a span stands that begins now below this one.
    fn place(&self, parent: Option<TraceContext>, is_of_run: bool) -> SpanPlace {
        let parent_span = parent.as_ref().map(|parent| parent.span);
        let mut context = match parent {
            Some(parent) => parent.child(),
            None => TraceContext::root(|trace| self.share.contains(trace)),
        };
        // What a person has to do with is always kept.
        context.sampled |= is_of_run;
        SpanPlace::now(context, parent_span)
    }

    /// Sends a span and those that waited for it.
    fn send(&self, mut record: Box<SpanRecord>) {
        if is_strangers(&record.attributes) {
            let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
            if !strangers.take(STRANGERS_A_MINUTE, Instant::now()) {
                return;
            }
        }
        let waiting = std::mem::take(&mut record.waiting);
        self.queue.push(record);
        waiting.into_iter().for_each(|span| self.queue.push(span));
    }

    /// Sends a span that has ended, or hands it to the one above.
    fn end(&self, mut record: Box<SpanRecord>, parent: Option<SpanRef<'_, impl for<'a> LookupSpan<'a>>>) {
        let Some(place) = &mut record.place else { return };
        place.ended = SystemTime::now();
        let is_kept = place.context.sampled;
        match judge(&record.attributes) {
            SpanWorth::Nothing => return,
            SpanWorth::Send => record.worth = true,
            SpanWorth::AsItsTrace => {}
        }
        let is_worth = record.worth;
        let mut above = parent.as_ref().map(SpanRef::extensions_mut);
        let above = above.as_mut().and_then(|above| above.get_mut::<Box<SpanRecord>>());
        match above {
            // What is above goes with it, whichever trace a message said that it belongs to.
            Some(above) if is_worth => above.worth = true,
            Some(above) if !is_kept => {
                let below = std::mem::take(&mut record.waiting);
                above.wait(std::iter::once(record).chain(below));
                return;
            }
            Some(_) | None => {}
        }
        if is_kept || is_worth {
            self.send(record);
        }
    }
}

/// What the attributes of a span say about sending it.
enum SpanWorth {
    /// It failed, or a person is asked about it.
    Send,
    /// Nothing happened: another replica was quicker.
    Nothing,
    /// Nothing of its own.
    AsItsTrace,
}

fn judge(attributes: &SpanAttributes) -> SpanWorth {
    let mut worth = SpanWorth::AsItsTrace;
    for (name, value) in attributes.iter() {
        match name {
            names::CODE if value == AttributeValue::Text(names::NOT_CLAIMED) => return SpanWorth::Nothing,
            names::ERROR_TYPE | names::RUN_ID => worth = SpanWorth::Send,
            names::DECISION if value == AttributeValue::Text("ask") => worth = SpanWorth::Send,
            _ => {}
        }
    }
    worth
}

/// Whether it is an HTTP request of nobody: whoever is somebody has a tenant by the time it ends.
fn is_strangers(attributes: &SpanAttributes) -> bool {
    attributes.find(names::HTTP_REQUEST_METHOD).is_some()
        && attributes.find(names::OTEL_KIND) == Some(AttributeValue::Text("server"))
        && attributes.find(names::TENANT).is_none()
}

impl SpanLayer {
    /// A layer whose spans go there, if anywhere.
    pub(crate) fn new(collector: Option<SpanCollector>) -> SpanLayer {
        COLLECTING.fetch_or(collector.is_some(), Ordering::Relaxed);
        SpanLayer { collector }
    }

    pub(crate) fn collector(&self) -> Option<&SpanCollector> {
        self.collector.as_ref()
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanLayer {
    fn on_new_span(&self, attrs: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let fields = attrs.metadata().fields().len();
        let mut attributes = SpanAttributes::with_capacity(fields, self.collector.is_none());
        attrs.record(&mut attributes);
        let attributes = attributes.filled();
        let place = self.collector.as_ref().map(|collector| {
            let parent = span.parent().and_then(|parent| context_of(&parent));
            collector.place(parent, attributes.find(names::RUN_ID).is_some())
        });
        if place.is_some() || !attributes.is_empty() {
            let record = Box::new(SpanRecord::new(attrs.metadata().name(), attributes, place));
            span.extensions_mut().insert(record);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        if let Some(record) = extensions.get_mut::<Box<SpanRecord>>() {
            values.record(&mut record.attributes);
            return;
        }
        let mut attributes = SpanAttributes::with_capacity(0, self.collector.is_none()).filled();
        values.record(&mut attributes);
        if !attributes.is_empty() {
            extensions.insert(Box::new(SpanRecord::new(span.name(), attributes, None)));
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let (Some(collector), Some(span)) = (&self.collector, context.span(&id)) else { return };
        let record = span.extensions_mut().remove::<Box<SpanRecord>>();
        if let Some(record) = record {
            collector.end(record, span.parent());
        }
    }
}

/// The trace of the nearest span that has one, from this one upwards.
pub(crate) fn context_of<'a, R: LookupSpan<'a>>(span: &SpanRef<'a, R>) -> Option<TraceContext> {
    let own = |span: &SpanRef<'a, R>| {
        let extensions = span.extensions();
        let record = extensions.get::<Box<SpanRecord>>()?;
        record.place.as_ref().map(|place| place.context.clone())
    };
    span.scope().find_map(|span| own(&span))
}

/// Looks at the layer, and at the span that this thread is working in.
pub(crate) fn at_current<T>(work: impl FnOnce(&SpanLayer, SpanRef<'_, Registry>) -> Option<T>) -> Option<T> {
    let mut work = Some(work);
    tracing::dispatcher::get_default(|dispatch| {
        let (layer, registry) = parts(dispatch)?;
        let current = registry.current_span();
        let span = registry.span(current.id()?)?;
        work.take().and_then(|work| work(layer, span))
    })
}

/// The same, for a span that is at hand.
pub(crate) fn at_span<T>(
    span: &tracing::Span,
    work: impl FnOnce(&SpanLayer, SpanRef<'_, Registry>) -> Option<T>,
) -> Option<T> {
    let found = span.with_subscriber(|(id, dispatch)| {
        let (layer, registry) = parts(dispatch)?;
        work(layer, registry.span(id)?)
    });
    found.flatten()
}

/// The layer of this subscriber, without a span.
pub(crate) fn parts(dispatch: &Dispatch) -> Option<(&SpanLayer, &Registry)> {
    Some((dispatch.downcast_ref::<SpanLayer>()?, dispatch.downcast_ref::<Registry>()?))
}

/// Records a span that has ended now, below the one of this moment. Outside of every trace it is not told.
#[cold]
pub(crate) fn end_now(name: &'static str, took: Duration, set: impl FnOnce(&mut SpanAttributes)) {
    at_current(|layer, span| {
        let collector = layer.collector()?;
        let above = span.scope().find(|span| span.extensions().get::<Box<SpanRecord>>().is_some())?;
        let mut extensions = above.extensions_mut();
        let above = extensions.get_mut::<Box<SpanRecord>>()?;
        let parent = &above.place.as_ref()?.context;
        let mut place = SpanPlace::now(parent.child(), Some(parent.span));
        place.began = place.ended.checked_sub(took)?;
        let is_kept = place.context.sampled;
        let mut attributes = SpanAttributes::with_capacity(4, false);
        set(&mut attributes);
        let record = Box::new(SpanRecord::new(name, attributes, Some(place)));
        match is_kept {
            true => collector.send(record),
            false => above.wait([record]),
        }
        Some(())
    });
}
