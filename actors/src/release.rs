//! How a person lets go of what the brake holds (D7).

use std::collections::BTreeSet;
use std::sync::Arc;

use krane_domain::ids::{Controller, ObjectKey};

use crate::address::Address;
use crate::events::Happening;
use crate::reconciler::{self, ReconcilerMessage};
use crate::status::StatusBoard;
use crate::store::Store;

/// The held deletions of one controller.
#[derive(Clone, Debug)]
pub struct HeldDeletes {
    store: Arc<Store>,
    reconciler: Address<ReconcilerMessage>,
    board: StatusBoard,
}

impl HeldDeletes {
    /// Those in this store; the reconciler is told when they are let go.
    pub fn new(
        store: Arc<Store>,
        reconciler: Address<ReconcilerMessage>,
        board: StatusBoard,
    ) -> Self {
        Self {
            store,
            reconciler,
            board,
        }
    }

    /// Whose they are.
    pub fn controller(&self) -> Controller {
        self.store.controller()
    }

    /// Deletes all of them now. Returns which.
    pub fn allow(&self) -> BTreeSet<ObjectKey> {
        let now = self.board.now();
        let keys = self.store.with(|memory| memory.allow_deletes(now));
        if !keys.is_empty() {
            tracing::warn!(
                controller = self.controller().name(),
                objects = keys.len(),
                "a person allowed the deletions that were held"
            );
            let objects = keys.len();
            let controller = Some(self.controller());
            self.board
                .record(controller, Happening::DeletesAllowed { objects });
            reconciler::nudge(&self.reconciler);
        }
        keys
    }
}
