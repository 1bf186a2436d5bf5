//! Which traces are kept.
//!
//! By default the configured share of them, chosen by the trace's id. What a person has to do with is always kept: a call
//! that waits for one, the decision, the execution. What failed is kept too, as far as it was recorded: of a trace that is
//! not kept, requests and calls are recorded all the same and judged when they end, their steps are not.
//!
//! A caller's word that its trace is to be kept counts up to a rate for each tenant. Whoever is nobody, because no valid
//! token came along, has no word, and all of them together get a few spans a minute.
//!
//! Without a collector none of this exists.

use crate::metrics::TELEMETRY_DROPPED;
use crate::names;
use opentelemetry::trace::{Link, SpanContext, SpanKind, Status, TraceContextExt, TraceId, TraceState};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    Sampler, SamplingDecision, SamplingResult, ShouldSample, Span, SpanData, SpanProcessor,
};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Spans a minute of all those together who sent no valid token.
const STRANGERS_A_MINUTE: u32 = 60;
/// How many traces are remembered that turned out to be worth keeping, until their last spans have ended.
const REMEMBERED: usize = 1_024;
/// How many tenants' rates are remembered at once.
const MOST_TENANTS: usize = 10_000;
const MINUTE: Duration = Duration::from_secs(60);

/// Decides when a span begins.
#[derive(Debug, Clone)]
pub(crate) struct KeepSampler {
    share: Sampler,
}

impl KeepSampler {
    pub(crate) fn new(ratio: f64) -> KeepSampler {
        KeepSampler { share: Sampler::TraceIdRatioBased(ratio) }
    }

    /// Whether a trace is in the share that is kept, whoever began it.
    pub(crate) fn in_share(&self, trace: TraceId) -> bool {
        let judged = self.share.should_sample(None, trace, "", &SpanKind::Internal, &[], &[]);
        judged.decision == SamplingDecision::RecordAndSample
    }
}

impl ShouldSample for KeepSampler {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        trace: TraceId,
        name: &str,
        kind: &SpanKind,
        attributes: &[KeyValue],
        _: &[Link],
    ) -> SamplingResult {
        let parent = parent.map(|context| context.span().span_context().clone()).filter(SpanContext::is_valid);
        let kept = match &parent {
            _ if has(attributes, names::RUN_ID) => true,
            Some(parent) => parent.is_sampled(),
            None => self.in_share(trace),
        };
        let judged_later = *kind == SpanKind::Server || name.starts_with(names::SPAN_EXECUTE_TOOL);
        let decision = match (kept, judged_later) {
            (true, _) => SamplingDecision::RecordAndSample,
            (false, true) => SamplingDecision::RecordOnly,
            (false, false) => SamplingDecision::Drop,
        };
        let trace_state = parent.map_or_else(TraceState::default, |parent| parent.trace_state().clone());
        SamplingResult { decision, attributes: Vec::new(), trace_state }
    }
}

/// Decides when a span ends, and counts those that wait to be sent.
#[derive(Debug)]
pub(crate) struct KeepProcessor<P> {
    next: P,
    waiting: WaitingCount,
    most: usize,
    worth: Mutex<WorthKeeping>,
    strangers: Mutex<MinuteCount>,
}

/// How many spans wait to be sent.
pub(crate) type WaitingCount = Arc<AtomicUsize>;

impl<P> KeepProcessor<P> {
    pub(crate) fn new(next: P, waiting: WaitingCount, most: usize) -> KeepProcessor<P> {
        KeepProcessor { next, waiting, most, worth: Mutex::default(), strangers: Mutex::default() }
    }

    fn keeps(&self, span: &SpanData) -> bool {
        let is_claimed =
            |pair: &KeyValue| pair.key.as_str() != names::CODE || pair.value.as_str() != names::NOT_CLAIMED;
        if !span.attributes.iter().all(is_claimed) {
            return false;
        }
        let trace = span.span_context.trace_id();
        let worth = is_worth_keeping(span);
        let mut traces = self.worth.lock().unwrap_or_else(PoisonError::into_inner);
        if worth {
            traces.note(trace);
        }
        let kept = span.span_context.is_sampled() || worth || traces.traces.contains(&trace);
        drop(traces);
        // Whoever is somebody has a tenant by the time the request ends.
        let of_nobody = has(&span.attributes, names::HTTP_ROUTE) || has(&span.attributes, names::HTTP_REQUEST_METHOD);
        let of_nobody = of_nobody && span.span_kind == SpanKind::Server && !has(&span.attributes, names::TENANT);
        if kept && of_nobody {
            let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
            return strangers.take(STRANGERS_A_MINUTE, Instant::now());
        }
        kept
    }
}

impl<P: SpanProcessor> SpanProcessor for KeepProcessor<P> {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.next.on_start(span, context);
    }

    fn on_end(&self, mut span: SpanData) {
        if !self.keeps(&span) {
            return;
        }
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.most {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            TELEMETRY_DROPPED.add(["traces"], 1);
            return;
        }
        let own = &span.span_context;
        if !own.is_sampled() {
            let flags = own.trace_flags().with_sampled(true);
            let state = own.trace_state().clone();
            span.span_context = SpanContext::new(own.trace_id(), own.span_id(), flags, own.is_remote(), state);
        }
        self.next.on_end(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.next.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.next.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.next.set_resource(resource);
    }
}

/// Whether a span failed, or is of something that a person is asked about.
fn is_worth_keeping(span: &SpanData) -> bool {
    let asked = span.attributes.iter().any(|pair| pair.key.as_str() == names::DECISION && pair.value.as_str() == "ask");
    let failed = matches!(span.status, Status::Error { .. }) || has(&span.attributes, names::ERROR_TYPE);
    asked || failed || has(&span.attributes, names::RUN_ID)
}

fn has(attributes: &[KeyValue], name: &str) -> bool {
    attributes.iter().any(|pair| pair.key.as_str() == name)
}

/// Traces of which a span was worth keeping; what ends later in them is kept too.
#[derive(Debug, Default)]
struct WorthKeeping {
    traces: HashSet<TraceId>,
    order: VecDeque<TraceId>,
}

impl WorthKeeping {
    fn note(&mut self, trace: TraceId) {
        if !self.traces.insert(trace) {
            return;
        }
        self.order.push_back(trace);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.traces.remove(&oldest);
        }
    }
}

/// How many traces of each tenant were kept on its callers' word in this minute.
#[derive(Debug, Default)]
pub(crate) struct CallersWord(Mutex<HashMap<Box<str>, MinuteCount>>);

impl CallersWord {
    /// Whether one more of this tenant counts.
    pub(crate) fn counts(&self, tenant: &str, most: u32, now: Instant) -> bool {
        let mut tenants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tenants.len() >= MOST_TENANTS && !tenants.contains_key(tenant) {
            tenants.retain(|_, count| !count.is_over(now));
        }
        if tenants.len() >= MOST_TENANTS && !tenants.contains_key(tenant) {
            return false;
        }
        tenants.entry(tenant.into()).or_default().take(most, now)
    }
}

/// How many there were since the minute began.
#[derive(Debug, Default)]
struct MinuteCount {
    since: Option<Instant>,
    count: u32,
}

impl MinuteCount {
    fn is_over(&self, now: Instant) -> bool {
        self.since.is_none_or(|since| now.saturating_duration_since(since) >= MINUTE)
    }

    fn take(&mut self, most: u32, now: Instant) -> bool {
        if self.is_over(now) {
            (self.since, self.count) = (Some(now), 0);
        }
        self.count = self.count.saturating_add(1);
        self.count <= most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenants_word_counts_so_often_a_minute() {
        let (words, now) = (CallersWord::default(), Instant::now());
        assert_eq!((0..5).filter(|_| words.counts("acme", 3, now)).count(), 3);
        assert!(words.counts("bolt", 3, now), "another tenant's word is its own");
        assert!(!words.counts("acme", 3, now + MINUTE / 2));
        assert!(words.counts("acme", 3, now + MINUTE));
        assert!(!words.counts("acme", 0, now + MINUTE * 3), "no rate, no word");
    }

    #[test]
    fn only_the_newest_traces_are_remembered() {
        let mut worth = WorthKeeping::default();
        for number in 0..=REMEMBERED as u128 {
            worth.note(TraceId::from(number + 1));
            worth.note(TraceId::from(number + 1));
        }
        assert_eq!((worth.traces.len(), worth.order.len()), (REMEMBERED, REMEMBERED));
        assert!(!worth.traces.contains(&TraceId::from(1)) && worth.traces.contains(&TraceId::from(2)));
    }
}
