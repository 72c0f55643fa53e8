//! What ties spans of one trace together, carried as a value.

/// Names a span, so that what happens later becomes a part of its trace. Nothing is decided on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace_id: [u8; 16],
    /// The span in it.
    pub span_id: [u8; 8],
    /// Whether the trace is kept; what belongs to one that is not is not kept either.
    pub is_sampled: bool,
}
