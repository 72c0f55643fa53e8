//! What the servers show of the running agent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use krane_actors::breaker::BreakerState;
use krane_actors::lease::{Leadership, Role};
use krane_actors::store::Store;
use krane_server::health::{CheckState, HealthView, Readiness, Standing};
use krane_supervision::watchdog::Watchdog;

use krane_admin::model::Epoch;

/// Health as the published copies tell it.
pub(super) struct AgentView {
    stores: Vec<Arc<Store>>,
    leadership: Leadership,
    epoch: Epoch,
    watchdog: ArcSwapOption<Watchdog>,
    is_stopping: AtomicBool,
}

impl AgentView {
    pub(super) fn new(stores: Vec<Arc<Store>>, leadership: Leadership, epoch: Epoch) -> Self {
        Self {
            stores,
            leadership,
            epoch,
            watchdog: ArcSwapOption::empty(),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// The tree runs, and this tells whether it is alive.
    pub(super) fn watch(&self, watchdog: Arc<Watchdog>) {
        self.watchdog.store(Some(watchdog));
    }

    pub(super) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }
}

impl HealthView for AgentView {
    fn live(&self) -> bool {
        self.watchdog
            .load()
            .as_ref()
            .is_none_or(|watchdog| watchdog.live())
    }

    fn readiness(&self) -> Readiness {
        let mut checks = BTreeMap::new();
        let started = self.watchdog.load().is_some();
        let mut ready = started;
        let shown = self.leadership.shown();
        let is_standby = shown.as_ref().is_some_and(|it| it.role == Role::Standby);
        for store in &self.stores {
            let seen = store.connection();
            let is_open = (seen.is_open || is_standby) && seen.is_seeing;
            // Once is enough: a controller that starts over must not take secrets from pods.
            ready &= store.was_read();
            let state = match (seen.is_listed, is_open, seen.breaker) {
                (false, _, _) => CheckState::Fail,
                (true, true, BreakerState::Closed) => CheckState::Ok,
                (true, _, _) => CheckState::Degraded,
            };
            checks.insert(store.controller().name().to_owned(), state);
        }
        Readiness {
            started,
            ready,
            stopping: self.is_stopping(),
            checks,
            lease: shown.map(|shown| Standing {
                role: shown.role.name(),
                since: self.epoch.at(shown.since).to_string(),
                holder: shown.holder.map(|holder| holder.to_string()),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::Body;
    use futures::stream::BoxStream;
    use http::Request;
    use http_body_util::BodyExt;
    use krane_actors::chance::Chance;
    use krane_actors::status::StatusBoard;
    use krane_actors::store::BrokenWatch;
    use krane_actors::watch::first_lists;
    use krane_domain::ids::Controller;
    use krane_domain::kinds::{Rules, WatchSpec};
    use krane_domain::object::{LiveObject, Metadata, ObjectRef, Rendered, Resource};
    use krane_domain::refusal::{Refusal, RefusalClass};
    use krane_ports::{Cluster, Deletion, Listed, StreamEnd, WatchEvent};
    use krane_supervision::status::Board;
    use tower::ServiceExt;

    use super::*;

    /// (F31) A kind that krane may not list is waited for by nobody, even if its controller does not
    /// start without it; one that no answer came for is.
    #[tokio::test]
    async fn a_forbidden_kind_makes_no_process_less_ready_and_an_unanswered_list_does() {
        let store = Arc::new(Store::new(
            Controller::Cilium,
            Rules::default(),
            1 << 20,
            Chance::new(7),
        ));
        let epoch = Epoch::new(1_800_000_000, Duration::ZERO);
        let view = AgentView::new(vec![Arc::clone(&store)], Leadership::default(), epoch);
        assert!(!view.readiness().started);
        let watchdog = Watchdog::new(Board::new(), Duration::from_secs(1));
        view.watch(Arc::new(watchdog));
        let answer = |code, class| Refusal {
            class,
            code,
            message: String::new(),
            retry_after: None,
        };
        let board = StatusBoard::new();
        let unanswered = Lists(answer(0, RefusalClass::Transient));
        let started = first_lists(&store, &unanswered, &board).await;
        let readiness = view.readiness();
        assert!(started.is_err() && readiness.started && !readiness.ready);
        let forbidden = Lists(answer(403, RefusalClass::Configuration));
        let started = first_lists(&store, &forbidden, &board).await;
        assert!(started.is_err() && view.readiness().ready);
        assert_eq!(view.readiness().checks["cilium"], CheckState::Fail);
    }

    /// A cluster whose lists are answered like this.
    struct Lists(Refusal);

    #[async_trait::async_trait]
    impl Cluster for Lists {
        async fn apply(&self, _: &Rendered, _: Option<&str>) -> Result<LiveObject, Refusal> {
            Err(self.0.clone())
        }

        async fn adopt(&self, _: &ObjectRef, _: &str) -> Result<LiveObject, Refusal> {
            Err(self.0.clone())
        }

        async fn hold(
            &self,
            _: &ObjectRef,
            _: &str,
            _: Option<&str>,
        ) -> Result<LiveObject, Refusal> {
            Err(self.0.clone())
        }

        async fn delete(&self, _: &ObjectRef, _: &str) -> Result<Deletion, Refusal> {
            Err(self.0.clone())
        }

        async fn metadata(&self, _: &ObjectRef) -> Result<Option<Metadata>, Refusal> {
            Err(self.0.clone())
        }

        async fn get(&self, _: &ObjectRef) -> Result<Option<LiveObject>, Refusal> {
            Err(self.0.clone())
        }

        async fn list(&self, _: &WatchSpec) -> Result<Listed, Refusal> {
            Err(self.0.clone())
        }

        async fn list_anew(&self, _: &WatchSpec) -> Result<Listed, Refusal> {
            Err(self.0.clone())
        }

        async fn watch(
            &self,
            _: &WatchSpec,
            _: &str,
        ) -> Result<BoxStream<'static, WatchEvent>, Refusal> {
            Err(self.0.clone())
        }
    }

    /// unkeyed/unkey ecbe818920, PR #6668 (A66): raw errors with addresses were shown to anyone.
    #[tokio::test]
    async fn what_is_away_makes_a_check_degraded_and_tells_nothing_about_it() {
        let rules = Rules::default();
        let store = Store::new(Controller::Deployments, rules, 1 << 20, Chance::new(7));
        store.listed();
        store.inside(|memory| {
            let broken = BrokenWatch {
                since: Duration::ZERO,
                error: "dial tcp 10.96.0.1:443: connection refused".into(),
                is_refused: false,
            };
            memory.broken_watches.insert(Resource::Pod, broken);
            memory.stream.last_end = Some(StreamEnd {
                code: "unavailable",
                message: "tcp connect to 10.0.0.9:7091 failed".to_owned(),
                is_oversize: false,
            });
            for _ in 0..5 {
                memory.breaker.transport_failure(Duration::ZERO, 0.5);
            }
        });
        let epoch = Epoch::new(1_800_000_000, Duration::ZERO);
        let view = AgentView::new(vec![Arc::new(store)], Leadership::default(), epoch);
        let watchdog = Watchdog::new(Board::new(), Duration::from_secs(1));
        view.watch(Arc::new(watchdog));
        let router = krane_server::health::router(Arc::new(view));
        for (path, expected) in [
            ("/health/live", r#"{"status":"ok"}"#),
            (
                "/health/ready",
                r#"{"status":"ok","checks":{"deployments":"degraded"}}"#,
            ),
        ] {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status(), 200, "{path}");
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body, format!("{expected}\n"), "{path}");
        }
    }
}
