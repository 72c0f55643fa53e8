//! Traces of states: from received to reported, across actors and attempts.
//!
//! No span stays open between actors. The first one is over as soon as it began; its context is
//! kept with the state, and whatever happens to the state later is a span below it.

use std::fmt;
use std::time::Duration;

use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::trace::TraceContext;
use tracing::Span;

/// Which state a span is about. Never a value of it.
#[derive(Clone, Copy, Debug)]
pub struct StateSpan<'a> {
    /// Who keeps it.
    pub controller: Controller,
    /// Its object.
    pub key: &'a ObjectKey,
    /// Its version.
    pub version: u64,
}

/// Where spans go. A board has one only while traces are on.
pub trait Traces: Send + Sync + fmt::Debug + 'static {
    /// A state was received: the first span of its trace, over already.
    fn received(&self, state: StateSpan<'_>) -> TraceContext;

    /// It waited this long, until now.
    fn waited(&self, state: StateSpan<'_>, parent: TraceContext, time: Duration);

    /// A span that was just made, and not entered yet, belongs below `parent`.
    fn join(&self, state: StateSpan<'_>, parent: TraceContext, span: &Span);

    /// A span that was just made is about the same state, long after that was brought about.
    fn link(&self, state: StateSpan<'_>, earlier: TraceContext, span: &Span);
}
