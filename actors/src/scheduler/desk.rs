//! Hands calls to the reconcilers, and followers to the stores.

use krane_ports::{SchedulerDesk, Watching};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::scheduler::{Call, CallFailure, CallFailureKind, Wish};
use krane_supervision::address::Address;
use tokio::sync::oneshot;

use crate::followers::Follower;
use crate::lease::Leadership;
use crate::reconciler::ReconcilerMessage;
use crate::refusals::{standby, starting, starting_over, stopping, unavailable};
use crate::status::StatusBoard;
use crate::store::{FollowRefusal, Store};

/// A call is answered after this long, whatever its lane does.
pub const CALL_DEADLINE: Duration = Duration::from_secs(30);

/// One controller, as far as the scheduler is concerned.
#[derive(Clone, Debug)]
pub struct Front {
    store: Arc<Store>,
    reconciler: Address<ReconcilerMessage>,
}

impl Front {
    /// The controller with this store and this reconciler.
    pub(crate) fn new(store: Arc<Store>, reconciler: Address<ReconcilerMessage>) -> Self {
        Self { store, reconciler }
    }
}

/// Who does what the scheduler calls for, in the controllers of this process.
#[derive(Clone, Debug)]
pub struct Desk {
    fronts: Vec<Front>,
    leadership: Leadership,
    board: StatusBoard,
}

impl Desk {
    /// A desk before these controllers. Those whose objects are never reported have nothing to do
    /// with the scheduler, and are left out.
    pub fn new(
        fronts: impl IntoIterator<Item = Front>,
        leadership: Leadership,
        board: StatusBoard,
    ) -> Self {
        let fronts = fronts.into_iter();
        let fronts = fronts.filter(|front| front.store.controller().has_reports());
        Self {
            fronts: fronts.collect(),
            leadership,
            board,
        }
    }

    fn term(&self) -> Result<u64, CallFailure> {
        let term = self.leadership.term(self.board.now());
        term.ok_or_else(standby)
    }

    fn front(&self, controller: Controller) -> Result<&Front, CallFailure> {
        let mut fronts = self.fronts.iter();
        let front = fronts.find(|front| front.store.controller() == controller);
        front.ok_or_else(|| unavailable(format!("no controller of {controller} runs here")))
    }
}

impl Front {
    /// Waits for the answer of a lane.
    async fn ask(&self, wish: Wish) -> Result<(), CallFailure> {
        let (answer, answered) = oneshot::channel();
        let call = Box::new((wish, answer));
        let lost = || {
            if self.store.is_stopping() {
                stopping()
            } else {
                starting_over()
            }
        };
        let sent = self.reconciler.send(ReconcilerMessage::Call(call)).await;
        sent.map_err(|_down| lost())?;
        answered.await.unwrap_or_else(|_lost| Err(lost()))
    }

    /// What a call waits for that was not answered in time.
    fn overdue(&self, key: &ObjectKey) -> CallFailure {
        let seconds = CALL_DEADLINE.as_secs();
        let waits_for = self.store.waits_for(key);
        let message = match waits_for {
            Some(why) => format!("not done within {seconds} s: {why}"),
            None => format!("not done within {seconds} s"),
        };
        CallFailure::new(CallFailureKind::DeadlineExceeded, message)
    }
}

/// Objects looked at under one lock when a follower comes.
const AT_ONCE: usize = 64;

/// Lets a follower hear of everything that this controller shows: what is there now, and from here
/// on whatever changes.
async fn join(follower: &Follower, store: &Store) -> Result<(), CallFailure> {
    let admitted = store.admit_follower(follower);
    let keys = admitted.map_err(|refusal| match refusal {
        FollowRefusal::NotListed => starting(),
        FollowRefusal::TooMany => unavailable("too many follow already"),
    })?;
    for some in keys.chunks(AT_ONCE) {
        store.show_present(follower, some);
        tokio::task::yield_now().await;
    }
    Ok(())
}

#[async_trait]
impl SchedulerDesk for Desk {
    async fn call(&self, call: Call) -> Result<(), CallFailure> {
        let term = self.term()?;
        let front = self.front(call.controller())?;
        let wish = call.into_wish(front.store.rules())?;
        let key = wish.key.clone();
        let answer = async {
            tokio::select! {
                answer = front.ask(wish) => answer,
                () = self.leadership.turned(Some(term)) => Err(standby()),
            }
        };
        let answer = tokio::time::timeout(CALL_DEADLINE, answer).await;
        answer.unwrap_or_else(|_elapsed| Err(front.overdue(&key)))
    }

    async fn watch(&self) -> Result<Watching, CallFailure> {
        let term = self.term()?;
        let follower = Follower::default();
        for front in &self.fronts {
            join(&follower, &front.store).await?;
        }
        let (leadership, board) = (self.leadership.clone(), self.board.clone());
        let states = futures::stream::unfold(Some(follower), move |follower| {
            let (leadership, board) = (leadership.clone(), board.clone());
            async move {
                let follower = follower?;
                let ends = leadership.turned(Some(term));
                // Of what is still to be told nothing is known to be true any more.
                if leadership.term(board.now()) != Some(term) {
                    return Some((Err(standby()), None));
                }
                let next = tokio::select! {
                    next = follower.next() => next,
                    () = ends => Err(standby()),
                };
                let rest = next.is_ok().then_some(follower);
                Some((next, rest))
            }
        });
        Ok(states.boxed())
    }
}
