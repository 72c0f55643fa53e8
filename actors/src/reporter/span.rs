//! The spans of reports.

use krane_domain::ids::ObjectKey;
use krane_ports::StateSpan;
use tracing::{Span, field};

use super::{Reporter, ReporterMessage};
use crate::status::Context;

impl Reporter {
    /// The span of a report that may tell of a state that was just brought about; other reports
    /// are no part of a trace.
    pub(super) fn span(&self, key: &ObjectKey, context: &Context<ReporterMessage>) -> Span {
        let Some(traces) = context.board.traces() else {
            return Span::none();
        };
        let trace = self.store.report_trace(key, context.board.now());
        let Some((version, trace)) = trace else {
            return Span::none();
        };
        let controller = self.store.controller();
        let span = tracing::info_span!(
            "report",
            controller = controller.name(),
            %key,
            version,
            code = field::Empty,
            otel.status_code = field::Empty,
        );
        let state = StateSpan {
            controller,
            key,
            version,
        };
        traces.join(state, trace, &span);
        span
    }
}
