//! What is seen becomes reports, and what is wrong with it is told.

use std::sync::Arc;

use krane_domain::object::LiveObject;

use super::{Reporter, ReporterMessage, WARNINGS};
use crate::events::Happening;
use crate::status::Context;
use crate::store::StatusProblem;

impl Reporter {
    /// Looks at everything once: live objects are reported, and what the control plane was told
    /// of and is no longer there is reported as gone.
    pub(super) fn look_at_all(&mut self, context: &Context<ReporterMessage>) {
        for problem in self.store.observe_all(context.board.now()) {
            self.tell_problem(problem, context);
        }
    }

    pub(super) fn look_at_changed(&mut self, context: &Context<ReporterMessage>) {
        if !self.duty.is_on() {
            self.store.skip_changed();
            return;
        }
        for problem in self.store.observe_changed(context.board.now()) {
            self.tell_problem(problem, context);
        }
    }

    fn tell_problem(&mut self, problem: StatusProblem, context: &Context<ReporterMessage>) {
        match problem {
            StatusProblem::NoId(live) => {
                if self.warn_once(&live) {
                    tracing::warn!(object = %live.reference, "its id label is missing: left alone");
                }
            }
            StatusProblem::NameTaken(live) => {
                if self.warn_once(&live) {
                    tracing::error!(
                        object = %live.reference,
                        "another namespace has a workload of this name; reports carry no namespace, so \
                     this one is not reported: rename one of them"
                    );
                }
            }
            StatusProblem::Panicked(live) => {
                self.metrics.lane_panics.inc();
                tracing::error!(object = %live.reference, "its pods made krane panic: not reported");
            }
            StatusProblem::PodsCannotStart { key, error } => {
                let controller = self.store.controller().name();
                tracing::warn!(controller, %key, %error, "its pods cannot start");
                self.record(Happening::PodsCannotStart { key, error }, context);
            }
        }
    }

    fn warn_once(&mut self, live: &LiveObject) -> bool {
        if self.warned.len() > WARNINGS {
            self.warned.clear();
        }
        self.warned.insert(Arc::clone(&live.uid))
    }
}
