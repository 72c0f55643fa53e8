//! What a test makes the control plane want and do.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use tonic::Code;

use super::{
    Answer, ControlPlane, Delivered, Kind, Method, Seen, State, row::Row, shared::Stores,
    store::Store,
};

/// Everything a control plane wanted at one moment.
#[derive(Clone, Debug)]
pub struct Backup(Stores);

impl ControlPlane {
    /// Wants this from now on: streams get it at once, `GetDesired…` answers it. A state without a version gets the
    /// next one of its kind; the version is returned.
    pub fn push<S: State>(&self, state: S) -> u64 {
        self.push_spoiled(state, Bytes::copy_from_slice)
    }

    /// [`push`](Self::push) of many at once: no stream sees one without the others.
    pub fn push_all<S: State>(&self, states: impl IntoIterator<Item = S>) -> Vec<u64> {
        self.shared.change(|inner| {
            let store = inner.store(S::KIND);
            states
                .into_iter()
                .map(|state| insert(store, state, &Bytes::copy_from_slice))
                .collect()
        })
    }

    /// A state whose bytes are changed on the way out; the store knows what it was.
    pub fn push_spoiled<S: State>(&self, state: S, spoil: impl Fn(&[u8]) -> Bytes) -> u64 {
        self.shared
            .change(|inner| insert(inner.store(S::KIND), state, &spoil))
    }

    /// Bytes that name no object; `make` gets the version of the row.
    pub fn push_raw(&self, kind: Kind, make: impl FnOnce(u64) -> Bytes) -> u64 {
        self.shared.change(|inner| {
            let store = inner.store(kind);
            let version = store.next_version();
            let message = make(version);
            store.insert(
                Row {
                    version,
                    answer: message.clone(),
                    message,
                },
                None,
                None,
            );
            version
        })
    }

    /// Forgets an object: no row is left, `GetDesired…` answers `NOT_FOUND`.
    pub fn forget(&self, kind: Kind, id: &str) {
        self.shared.change(|inner| inner.store(kind).forget(id));
    }

    /// Forgets everything it wants, as a control plane restored from nothing: versions begin at 1 again.
    pub fn lose_memory(&self) {
        self.shared.change(|inner| inner.restore(Stores::default()));
    }

    /// A copy of everything it wants, for [`restore`](Self::restore).
    pub fn backup(&self) -> Backup {
        Backup(self.shared.look().stores())
    }

    /// Wants again what it wanted when the copy was made, as a control plane restored from an old backup: versions
    /// continue behind the copy's newest, so they repeat. Streams that are open go on behind what they have sent.
    pub fn restore(&self, backup: &Backup) {
        self.shared.change(|inner| inner.restore(backup.0.clone()));
    }

    /// Whether replaced rows are kept and streamed, too.
    pub fn keep_history(&self, keep: bool) {
        self.shared.change(|inner| {
            for kind in Kind::ALL {
                inner.store(kind).keeps_history = keep;
            }
        });
    }

    /// The newest version of a kind.
    pub fn newest(&self, kind: Kind) -> u64 {
        self.shared.look().store(kind).newest()
    }

    /// What `GetDesired…` says about an id, instead of its newest row; `None` goes back to that.
    pub fn set_answer(&self, kind: Kind, id: &str, answer: impl Into<Option<Answer>>) {
        self.shared
            .change(|inner| inner.store(kind).set_answer(id, answer.into()));
    }

    /// Ends all open streams with this code. `Ok` is a clean end.
    pub fn cut_streams(&self, code: Code) {
        for kind in Kind::ALL {
            self.cut_streams_of(kind, code);
        }
    }

    /// Ends the open streams of one kind with this code.
    pub fn cut_streams_of(&self, kind: Kind, code: Code) {
        self.shared.change(|inner| {
            let so_far = inner.arrived;
            inner.cuts.cut(kind, so_far, code);
        });
    }

    /// The next `times` requests of a method end with this code; `u32::MAX` stands for ever. A watch that ends with
    /// `Ok` ends before its first message.
    pub fn fail(&self, method: Method, code: Code, times: u32) {
        self.shared
            .change(|inner| inner.faults.fail(method, code, times));
    }

    /// Answers to a method take this long.
    pub fn delay(&self, method: Method, delay: Duration) {
        self.shared
            .change(|inner| inner.faults.delay(method, delay));
    }

    /// Takes all [`fail`](Self::fail) and [`delay`](Self::delay) back.
    pub fn heal(&self) {
        self.shared.change(|inner| inner.faults.heal());
    }

    /// Remembers, of the requests that have ended, only about the newest `count`: for one that runs for days.
    pub fn keep_requests(&self, count: usize) {
        self.shared.change(|inner| inner.kept = Some(count));
    }

    /// Looks at everything that reached it.
    pub fn look<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.shared.look().seen)
    }

    /// The newest delivered report per name.
    pub fn reports(&self) -> BTreeMap<String, Delivered> {
        self.look(|seen| seen.reports.clone())
    }
}

fn insert<S: State>(store: &mut Store, mut state: S, spoil: &impl Fn(&[u8]) -> Bytes) -> u64 {
    if state.version() == 0 {
        state.set_version(store.next_version());
    }
    let version = state.version();
    let message = spoil(&state.encode_to_vec());
    let mut answer = state.clone();
    answer.set_version(0);
    let answer = spoil(&answer.encode_to_vec());
    store.insert(
        Row {
            version,
            message,
            answer,
        },
        state.key(),
        state.id(),
    );
    version
}
