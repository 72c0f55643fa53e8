use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use krane_domain::backlog::{Trouble, TroubleKind};
use krane_domain::ids::{Controller, ObjectKey, WorkKey};
use krane_domain::kinds::Rules;
use krane_domain::object::{LiveObject, ObjectRef, Resource};
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_ports::{EventSink, Item, Notice, Reason};
use parking_lot::Mutex;

use super::{NoticeParts, Notices};
use crate::chance::Chance;
use crate::events::Happening;
use crate::lease::Leadership;
use crate::status::StatusBoard;
use crate::store::Store;
use crate::testing::pass;

#[derive(Default)]
struct Sink {
    made: Mutex<Vec<Notice>>,
    recurred: Mutex<Vec<u32>>,
    asked: AtomicUsize,
    is_away: AtomicBool,
    refuses: AtomicBool,
    asks_for: Mutex<Option<Duration>>,
    hangs: AtomicBool,
    panics: AtomicBool,
    /// Switches writes off while the next answer is on its way.
    ends: Mutex<Option<Arc<AtomicBool>>>,
}

impl Sink {
    async fn answer(&self) -> Result<(), Refusal> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        assert!(
            !self.panics.swap(false, Ordering::Relaxed),
            "as the test wants it"
        );
        if let Some(writes) = self.ends.lock().take() {
            writes.store(false, Ordering::Relaxed);
        }
        if self.hangs.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        if self.refuses.load(Ordering::Relaxed) {
            return Err(Refusal {
                class: RefusalClass::Permanent,
                code: 422,
                message: "that is no name".to_owned(),
                retry_after: None,
            });
        }
        if let Some(pause) = *self.asks_for.lock() {
            return Err(Refusal {
                class: RefusalClass::Transient,
                code: 429,
                message: "later".to_owned(),
                retry_after: Some(pause),
            });
        }
        if self.is_away.load(Ordering::Relaxed) {
            return Err(Refusal {
                class: RefusalClass::Transient,
                code: 0,
                message: "away".to_owned(),
                retry_after: None,
            });
        }
        Ok(())
    }
}

#[async_trait]
impl EventSink for Sink {
    async fn create(&self, notice: &Notice) -> Result<Arc<str>, Refusal> {
        self.answer().await?;
        let mut made = self.made.lock();
        made.push(notice.clone());
        Ok(format!("e{}", made.len()).into())
    }

    async fn recur(&self, _: &Notice, _: &str, count: u32) -> Result<bool, Refusal> {
        self.answer().await?;
        self.recurred.lock().push(count);
        Ok(true)
    }
}

struct Rig {
    board: StatusBoard,
    store: Arc<Store>,
    sink: Arc<Sink>,
    writes: Arc<AtomicBool>,
    _notices: Notices,
}

impl Rig {
    fn start() -> Self {
        let board = StatusBoard::new();
        Self::led_by(board, Leadership::default())
    }

    fn led_by(board: StatusBoard, leadership: Leadership) -> Self {
        let controller = Controller::Deployments;
        let store = Store::new(controller, Rules::default(), 1 << 20, Chance::new(7));
        let (store, sink) = (Arc::new(store), Arc::new(Sink::default()));
        let writes = Arc::new(AtomicBool::new(true));
        let notices = Notices::start(NoticeParts {
            board: board.clone(),
            stores: vec![Arc::clone(&store)],
            sink: Arc::<Sink>::clone(&sink),
            leadership,
            writes: Arc::clone(&writes),
            namespace: "krane".into(),
        });
        Self {
            board,
            store,
            sink,
            writes,
            _notices: notices,
        }
    }

    fn record(&self, what: Happening) {
        self.board.record(Some(Controller::Deployments), what);
    }

    fn fail(&self, name: &str, kind: TroubleKind) {
        self.record(Happening::Troubled {
            key: WorkKey::Workload(ObjectKey::new("ns", name)),
            version: 7,
            trouble: Trouble::new(kind, "refused").remedy("send another state"),
        });
    }

    fn is_live(&self, reference: ObjectRef, uid: &str) {
        let ours = (
            krane_domain::labels::MANAGED_BY.to_owned(),
            krane_domain::labels::MANAGER.to_owned(),
        );
        let live = LiveObject {
            reference,
            uid: uid.into(),
            resource_version: 1,
            labels: [ours].into(),
            is_terminating: false,
            fingerprint: 1,
            content: "{}".into(),
        };
        let now = self.board.now();
        self.store
            .arrange(|memory| memory.see(Item::Object(live), now));
    }

    async fn told(&self) -> Vec<(String, Option<Arc<str>>, Reason)> {
        pass(Duration::from_secs(3)).await;
        let made = std::mem::take(&mut *self.sink.made.lock());
        made.into_iter()
            .map(|it| (it.regarding.to_string(), it.uid, it.reason))
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn trouble_is_told_on_the_object_or_on_its_namespace_with_the_remedy() {
    let rig = Rig::start();
    let workload = ObjectRef::new(Controller::Deployments.primary(), "ns", "d1");
    rig.is_live(workload.clone(), "u1");
    rig.is_live(ObjectRef::new(Resource::Namespace, "", "ns"), "u2");
    rig.fail("d1", TroubleKind::Quarantined);
    rig.fail("d2", TroubleKind::Transient);
    rig.fail("d3", TroubleKind::Waiting);
    rig.fail("d4", TroubleKind::Transient);
    pass(Duration::from_secs(3)).await;
    let made = rig.sink.made.lock().clone();
    let told: Vec<_> = made
        .iter()
        .map(|it| (&it.regarding, it.uid.as_deref(), it.reason))
        .collect();
    let namespace = ObjectRef::new(Resource::Namespace, "", "ns");
    assert_eq!(
        told,
        [
            (&workload, Some("u1"), Reason::Quarantined),
            (&namespace, Some("u2"), Reason::ApplyFailed),
            (&namespace, Some("u2"), Reason::ApplyFailed),
        ]
    );
    assert_eq!(made[0].note, "refused; send another state");
}

/// A process that stood still finds the right to write gone between two requests of one round.
#[tokio::test(start_paused = true)]
async fn nothing_more_is_told_once_this_process_may_not_write() {
    let rig = Rig::start();
    *rig.sink.ends.lock() = Some(Arc::clone(&rig.writes));
    for name in ["d1", "d2", "d3"] {
        rig.fail(name, TroubleKind::Quarantined);
    }
    assert_eq!(rig.told().await.len(), 1);
    assert_eq!(rig.sink.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn recovery_held_deletes_and_what_a_person_did_are_told() {
    let rig = Rig::start();
    rig.record(Happening::Recovered {
        key: WorkKey::Workload(ObjectKey::new("ns", "d1")),
        attempts: 3,
    });
    rig.store.inside(|memory| {
        let unknown = (0..9).map(|it| ObjectKey::new("ns", format!("d{it}")));
        memory
            .brake
            .judge(unknown.collect(), 10, 10, Duration::ZERO);
    });
    rig.record(Happening::DeletesHeld { found: 9 });
    rig.record(Happening::DeletesAllowed { objects: 9 });
    let told = rig.told().await;
    let reasons: Vec<_> = told.iter().map(|(_, _, reason)| *reason).collect();
    assert!(reasons.contains(&Reason::Recovered), "{told:?}");
    assert!(reasons.contains(&Reason::DeleteHeld), "{told:?}");
    let allowed = told.iter().find(|it| it.2 == Reason::DeletesAllowed);
    let allowed = allowed.expect("told");
    assert!(allowed.0.contains("krane"), "{allowed:?}");
}

/// What a container was started with may stand in the kubelet's words.
#[tokio::test(start_paused = true)]
async fn the_kubelets_words_are_left_out() {
    let rig = Rig::start();
    rig.record(Happening::PodsCannotStart {
        key: ObjectKey::new("ns", "d1"),
        error: "exec: --password=hunter2".into(),
    });
    pass(Duration::from_secs(3)).await;
    let made = rig.sink.made.lock().clone();
    assert_eq!(made.len(), 1);
    assert!(!made[0].note.contains("hunter2"), "{made:?}");
}

#[tokio::test(start_paused = true)]
async fn a_flapping_object_is_one_event_with_a_count() {
    let rig = Rig::start();
    for _ in 0..60 {
        rig.fail("d1", TroubleKind::Transient);
        pass(Duration::from_secs(10)).await;
    }
    assert_eq!(rig.sink.made.lock().len(), 1);
    let recurred = rig.sink.recurred.lock().clone();
    assert!((1..=2).contains(&recurred.len()), "{recurred:?}");
    assert!(recurred[0] > 20, "{recurred:?}");
}

#[tokio::test(start_paused = true)]
async fn who_may_not_write_says_nothing_now_or_later() {
    let rig = Rig::start();
    rig.writes.store(false, Ordering::Relaxed);
    rig.fail("d1", TroubleKind::Quarantined);
    assert_eq!(rig.told().await, []);
    rig.writes.store(true, Ordering::Relaxed);
    assert_eq!(rig.told().await, []);

    let board = StatusBoard::new();
    let standby = Leadership::elected("me".into(), board.clone());
    let rig = Rig::led_by(board, standby);
    rig.fail("d1", TroubleKind::Quarantined);
    assert_eq!(rig.told().await, []);
    assert_eq!(rig.sink.asked.load(Ordering::Relaxed), 0);
}

/// A hundred objects with names that are none must not keep the others untold.
#[tokio::test(start_paused = true)]
async fn what_can_never_be_told_is_given_up() {
    let rig = Rig::start();
    rig.sink.refuses.store(true, Ordering::Relaxed);
    for object in 0..15 {
        rig.fail(&format!("Bad Name {object}"), TroubleKind::Quarantined);
    }
    pass(Duration::from_secs(120)).await;
    let asked = rig.sink.asked.load(Ordering::Relaxed);
    assert_eq!(asked, 15, "each once");
    pass(Duration::from_secs(3_600)).await;
    assert_eq!(rig.sink.asked.load(Ordering::Relaxed), asked);
    rig.sink.refuses.store(false, Ordering::Relaxed);
    rig.fail("good", TroubleKind::Quarantined);
    assert_eq!(rig.told().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_a_pause_has_it() {
    let rig = Rig::start();
    *rig.sink.asks_for.lock() = Some(Duration::from_secs(30));
    rig.fail("a", TroubleKind::Quarantined);
    rig.fail("b", TroubleKind::Quarantined);
    pass(Duration::from_secs(20)).await;
    assert_eq!(rig.sink.asked.load(Ordering::Relaxed), 1);
    *rig.sink.asks_for.lock() = None;
    pass(Duration::from_secs(20)).await;
    assert_eq!(rig.sink.made.lock().len(), 1, "b; a has its turn later");
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_away_or_silent_is_asked_rarely_and_told_later() {
    let rig = Rig::start();
    for hangs in [false, true] {
        rig.sink.is_away.store(!hangs, Ordering::Relaxed);
        rig.sink.hangs.store(hangs, Ordering::Relaxed);
        for object in 0..500 {
            rig.fail(&format!("d{object}"), TroubleKind::Transient);
        }
        let before = rig.sink.asked.load(Ordering::Relaxed);
        pass(Duration::from_secs(60)).await;
        let asked = rig.sink.asked.load(Ordering::Relaxed) - before;
        assert!((1..=60).contains(&asked), "{asked}");
    }
    rig.sink.hangs.store(false, Ordering::Relaxed);
    pass(Duration::from_secs(600)).await;
    assert!(!rig.sink.made.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_panic_ends_one_round() {
    let rig = Rig::start();
    rig.sink.panics.store(true, Ordering::Relaxed);
    rig.fail("d1", TroubleKind::Transient);
    assert_eq!(rig.told().await, []);
    rig.fail("d2", TroubleKind::Transient);
    assert_eq!(rig.told().await.len(), 1);
}
