//! Who wants an object: the control plane, or the scheduler beside it (D32).

use serde_json::{Map, Value};

use crate::labels;
use crate::object::LiveObject;

/// Who wants an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// The control plane.
    #[default]
    ControlPlane,
    /// A call of the scheduler.
    Scheduler,
}

impl Origin {
    /// Adds what tells the scheduler's objects from all others to the labels of one.
    pub(crate) fn mark(self, all: &mut Map<String, Value>) {
        match self {
            Self::ControlPlane => {}
            Self::Scheduler => {
                let mark = Value::from(labels::SCHEDULER);
                all.insert(labels::DESIRED_BY.to_owned(), mark);
            }
        }
    }
}

/// Whether a live object says that the scheduler wants it.
pub fn is_marked(live: &LiveObject) -> bool {
    live.label(labels::DESIRED_BY) == Some(labels::SCHEDULER)
}

/// Who wants a live object, by what it says itself.
pub fn of_live(live: &LiveObject) -> Origin {
    if is_marked(live) {
        Origin::Scheduler
    } else {
        Origin::ControlPlane
    }
}
