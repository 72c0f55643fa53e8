//! Stores filled by hand, as actors would fill them, and the router over them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use krane_actors::chance::Chance;
use krane_actors::events::Happening;
use krane_actors::operator::Operator;
use krane_actors::status::StatusBoard;
use krane_actors::store::Store;
use krane_actors::store::WatchFailure;
use krane_actors::tree::TREE;
use krane_admin::Desk;
use krane_admin::actions::Controls;
use krane_admin::feed::Feed;
use krane_admin::guard::Access;
use krane_admin::model::{Epoch, Identity, Sources};
use krane_admin::operate::Hands;
use krane_domain::backlog::{Outcome, Trouble, TroubleKind};
use krane_domain::desired::{Change, State, StreamItem};
use krane_domain::ids::{Controller, Moment, ObjectKey, WorkKey};
use krane_domain::kinds::deployment::{self, DeploymentInput};
use krane_domain::kinds::{Desired, Rules};
use krane_domain::object::Resource;
use krane_domain::report::{Instance, InstanceStatus, Report};
use krane_ports::StreamEnd;
use krane_settings::{SecretFiles, SecretSource};
use krane_sim::cluster::SimCluster;
use krane_supervision::address::Address;
use krane_telemetry::{LogLine, LogTail};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::health::Well;

/// Stands for every secret that may be in a store.
pub(super) const CANARY: &str = "canary-7b1f-secret";

/// A world without actors, and the page over it.
pub(super) struct World {
    pub(super) board: StatusBoard,
    pub(super) store: Arc<Store>,
    pub(super) feed: Arc<Feed>,
    pub(super) log: LogTail,
    pub(super) router: Router,
    pub(super) stop: CancellationToken,
    /// What is held there, is held in the cluster.
    pub(super) cluster: SimCluster,
    pub(super) writes: Arc<AtomicBool>,
}

/// An answer, read to its end.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl World {
    pub(super) fn new() -> Self {
        Self::with("127.0.0.1:9091", None, None)
    }

    pub(super) fn with(listen: &str, token: Option<&str>, controls: Controls) -> Self {
        Self::of(listen, token, controls, false, SecretFiles::default())
    }

    /// Where a person may act.
    pub(super) fn with_actions(token: &str) -> Self {
        Self::of(
            "127.0.0.1:9091",
            Some(token),
            None,
            true,
            SecretFiles::default(),
        )
    }

    /// Whose secrets are in these files.
    pub(super) fn with_files(files: SecretFiles) -> Self {
        Self::of("127.0.0.1:9091", None, None, false, files)
    }

    fn of(
        listen: &str,
        token: Option<&str>,
        controls: Controls,
        are_allowed: bool,
        files: SecretFiles,
    ) -> Self {
        let cluster = SimCluster::new(krane_sim::cluster::Options::default());
        let writes = Arc::new(AtomicBool::new(true));
        let board = StatusBoard::new();
        TREE.declare(&board);
        let store = Arc::new(Store::new(
            Controller::Deployments,
            Rules::default(),
            1 << 20,
            Chance::new(7),
        ));
        let log = LogTail::default();
        let sources = Sources {
            secrets: None,
            identity: Identity {
                instance: "krane-0".to_owned(),
                platform: "aws".to_owned(),
                region: "us-east-1".to_owned(),
                version: "0.0.0 (test)",
                short_version: "0.0.0",
            },
            board: board.clone(),
            stores: vec![Arc::clone(&store)],
            health: Arc::new(Well),
            writes: Arc::clone(&writes),
            writes_configured: true,
            observes: false,
            leadership: krane_actors::lease::Leadership::default(),
            epoch: Epoch::new(1_800_000_000, Duration::ZERO),
            log: log.clone(),
            files,
        };
        let feed = Feed::new(sources);
        let access = Access::new(listen.parse().unwrap(), token.map(SecretSource::fixed));
        let stop = CancellationToken::new();
        let desk = Desk::new(controls, "form-token".to_owned());
        let operator = Operator {
            store: Arc::clone(&store),
            reconciler: Address::vacant("root/deployments/intake/reconciler", 1),
            resync: Address::vacant("root/deployments/intake/resync", 1),
            writes: Arc::clone(&writes),
            leadership: krane_actors::lease::Leadership::default(),
            cluster: Arc::new(cluster.client()),
            board: board.clone(),
        };
        let hands = Hands {
            operators: [operator].into(),
            are_allowed,
            epoch: Epoch::new(1_800_000_000, Duration::ZERO),
        };
        let router = krane_admin::router(&feed, &Arc::new(access), &desk, &hands, stop.clone());
        Self {
            board,
            store,
            feed,
            log,
            router,
            stop,
            cluster,
            writes,
        }
    }

    /// The log has one more line.
    pub(super) fn logs(&self, level: tracing::Level, text: &str, fields: &str) {
        self.log.keep(LogLine {
            number: 0,
            at: jiff::Timestamp::UNIX_EPOCH,
            level,
            target: "krane::edge",
            text: text.to_owned(),
            fields: fields.to_owned(),
        });
    }

    /// A controller that has seen the cluster and whose stream is open.
    pub(super) fn is_up(&self) {
        self.store.listed();
        let now = self.board.now();
        self.store
            .inside(|memory| memory.stream.opened_at = Some(now));
        for (_, cell) in self.board.all() {
            cell.update(|status| status.activity = krane_supervision::status::Activity::Idle);
        }
    }

    /// A state arrives.
    pub(super) fn wants(&self, version: u64, key: ObjectKey, change: Change) {
        let now = self.board.now();
        let state = State {
            key,
            version,
            change: Ok(change),
            size: 100,
        };
        self.store
            .arrange(|memory| memory.receive(StreamItem::State(state), now));
    }

    /// A deployment is wanted and in place, and its pods are reported.
    pub(super) fn in_place(&self, version: u64, name: &str) {
        let (key, change) = wanted("shop", name);
        self.wants(version, key.clone(), change);
        self.settle(&key);
        let now = self.board.now();
        let report = Report::Instances {
            key: key.clone(),
            instances: vec![Instance {
                pod: format!("{name}-abcde").into(),
                address: "10-0-0-1.shop.pod.cluster.local:8080".to_owned(),
                status: InstanceStatus::Running,
                cpu_millicores: 100,
                memory_mib: 64,
            }],
        };
        self.store.inside(|memory| {
            memory.outbox.observe(report, now, now);
            let sending = memory.outbox.next(now).unwrap();
            let delivered = krane_domain::outbox::Delivery::Delivered;
            memory.outbox.finish(&sending.id, delivered, now, now, 0.5);
        });
    }

    pub(super) fn settle(&self, key: &ObjectKey) {
        self.finish(
            key,
            Outcome::Done {
                live: Some(1),
                wrote: true,
                repaired: None,
            },
        );
    }

    /// A lane of this key ends like this.
    pub(super) fn finish(&self, key: &ObjectKey, outcome: Outcome) {
        let now = self.board.now();
        let work = WorkKey::Workload(key.clone());
        self.store.inside(|memory| {
            // Whatever is ready goes first, as the lanes would take it.
            while let Some(task) = memory.backlog.next_for(usize::MAX, now) {
                if task.key == work {
                    memory.backlog.finish(&work, outcome, now, 0.5);
                    return;
                }
                let nothing = Outcome::NOTHING_TO_DO;
                memory.backlog.finish(&task.key, nothing, now, 0.5);
            }
            panic!("{key} is not ready");
        });
    }

    /// A state of this name that is set aside for this reason.
    pub(super) fn quarantined(&self, version: u64, name: &str, reason: &str, remedy: &str) {
        let (key, change) = wanted("shop", name);
        self.wants(version, key.clone(), change);
        let trouble = Trouble::new(TroubleKind::Quarantined, reason).remedy(remedy);
        self.finish(&key, Outcome::Trouble(trouble.clone()));
        let troubled = Happening::Troubled {
            key: WorkKey::Workload(key),
            version,
            trouble,
        };
        self.board.record(Some(Controller::Deployments), troubled);
    }

    /// The watches of these kinds do not work from now on.
    pub(super) fn watches_break(&self, kinds: &[Resource], is_refused: bool, text: &str) {
        let now = self.board.now();
        self.store.arrange(|memory| {
            for kind in kinds {
                let text = text.to_owned();
                memory.watch_failed(*kind, WatchFailure { is_refused, text }, now);
            }
        });
    }

    /// The stream is lost.
    pub(super) fn stream_lost(&self, code: &'static str, message: &str) {
        let now = self.board.now();
        self.store.inside(|memory| {
            memory.stream.opened_at = None;
            memory.stream.lost_at = Some(now);
            memory.stream.ended_at = Some(now);
            memory.stream.down_since.get_or_insert(now);
            memory.stream.was_open_since = false;
            memory.stream.last_end = Some(StreamEnd {
                code,
                message: message.to_owned(),
                is_oversize: false,
            });
        });
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.ask(Request::get(path).header("host", "localhost:9091"))
            .await
    }

    pub(super) async fn json(&self, path: &str) -> serde_json::Value {
        let answer = self.get(path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text);
        serde_json::from_str(&answer.text).unwrap()
    }

    pub(super) async fn ask(&self, request: http::request::Builder) -> Answer {
        self.send(request.body(Body::empty()).unwrap()).await
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    /// Lets the present view become old, so that the next answer takes a new one.
    pub(super) async fn pass(&self) {
        tokio::time::advance(Moment::from_millis(300)).await;
    }
}

/// A valid deployment with a secret in every place that may hold one.
pub(super) fn wanted(namespace: &str, name: &str) -> (ObjectKey, Change) {
    let input = DeploymentInput {
        k8s_namespace: namespace.into(),
        k8s_name: name.into(),
        workspace_id: "ws_1".into(),
        project_id: "proj_1".into(),
        environment_id: "env_1".into(),
        deployment_id: format!("d_{name}"),
        image: "registry.example/app:1".into(),
        replicas: 2,
        cpu_millicores: 100,
        memory_mib: 64,
        encrypted_environment_variables: format!("{{\"KEY\":\"{CANARY}\"}}").into_bytes(),
        command: vec![format!("--password={CANARY}")],
        git_commit_message: Some(CANARY.to_owned()),
        ..DeploymentInput::default()
    };
    let desired = deployment::validate(input, &Rules::default()).unwrap();
    let change = Change::Apply(Desired::Deployment(Box::new(desired)));
    (ObjectKey::new(namespace, name), change)
}
