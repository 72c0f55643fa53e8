//! Pods compared with the desired states, as far as they are known (D50, X4).

use std::sync::Arc;
use std::time::Duration;

use krane_domain::desired::{Change, State, StreamItem};
use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::kinds::deployment::{DeploymentInput, validate};
use krane_domain::kinds::{Desired, Rules};
use krane_domain::secrets::{Denial, Unproved};
use krane_ports::Refused;
use krane_supervision::testing::pause;

use super::scene::{Setting, request};
use crate::chance::Chance;
use crate::lease::Leadership;
use crate::secrets::{Outcome, PodOwnership, SecretsStatus};
use crate::status::StatusBoard;
use crate::store::{QUIET, Store};

/// Bytes of waiting states that stop the stream.
const MAX_BACKLOG: usize = 1_000;

/// A secrets actor beside the store of the deployments.
struct Beside {
    setting: Setting,
    store: Arc<Store>,
    status: SecretsStatus,
}

impl Beside {
    async fn start(leadership: Leadership) -> Self {
        let (rules, chance) = (Rules::default(), Chance::new(7));
        let controller = Controller::Deployments;
        let store = Arc::new(Store::new(controller, rules, MAX_BACKLOG, chance));
        let ownership = PodOwnership::new(Some(Arc::clone(&store)), leadership);
        let setting = Setting::start_with(ownership.clone()).await;
        let status = SecretsStatus::new(ownership, setting.metrics.clone());
        Self {
            setting,
            store,
            status,
        }
    }

    /// One that leads, and whose stream is open since now.
    async fn leading() -> Self {
        let beside = Self::start(Leadership::default()).await;
        beside.enter(0);
        beside
    }

    fn enter(&self, term: u64) {
        let now = self.setting.now();
        self.store.enter_term(term, now);
        self.store
            .inside(|memory| memory.stream.opened_at = Some(now));
    }

    fn receive(&self, version: u64, namespace: &str, deployment_id: &str, size: usize) {
        let input = DeploymentInput {
            k8s_namespace: namespace.to_owned(),
            k8s_name: format!("app-{deployment_id}").replace('_', "-"),
            workspace_id: "ws_1".to_owned(),
            project_id: "proj_1".to_owned(),
            environment_id: "env_1".to_owned(),
            deployment_id: deployment_id.to_owned(),
            image: "app:1".to_owned(),
            replicas: 1,
            cpu_millicores: 100,
            memory_mib: 64,
            ..DeploymentInput::default()
        };
        let desired = validate(input, &Rules::default()).unwrap();
        let state = State {
            key: desired.key.clone(),
            version,
            change: Ok(Change::Apply(Desired::Deployment(Box::new(desired)))),
            size,
        };
        let now = self.setting.now();
        self.store
            .arrange(|memory| memory.receive(StreamItem::State(state), now));
    }

    /// How the pod `a` of namespace `tenant` and deployment `d_1` fares.
    async fn outcome(&self) -> Result<(), Refused> {
        self.setting.ask(request("a")).await.map(drop)
    }

    fn unproved(&self) -> Vec<(&'static str, u64)> {
        let counted = self.status.unproved().filter(|(_, count)| *count > 0);
        counted.map(|(why, count)| (why.name(), count)).collect()
    }

    fn cannot_judge(&self) -> Option<Unproved> {
        self.status.cannot_judge(self.setting.now())
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_a_desired_deployment_is_proved_before_the_stream_was_read_whole() {
    let beside = Beside::leading().await;
    beside.receive(1, "tenant", "d_1", 10);
    assert_eq!(beside.outcome().await, Ok(()));
    assert_eq!(beside.cannot_judge(), Some(Unproved::StreamUnread));
    pause(QUIET).await;
    assert_eq!(beside.outcome().await, Ok(()));
    assert_eq!(beside.cannot_judge(), None);
    assert_eq!(beside.unproved(), []);
}

/// (X4) The pod's labels, ids, blob and owner are right, and its namespace is not the deployment's.
#[tokio::test(start_paused = true)]
async fn a_pod_of_a_forged_replica_set_is_refused_once_the_stream_was_read_whole() {
    let beside = Beside::leading().await;
    beside.receive(1, "victim", "d_1", 10);
    assert_eq!(beside.outcome().await, Ok(()), "not all states are known");
    assert_eq!(beside.unproved(), [("stream_unread", 1)]);
    pause(QUIET).await;
    assert_eq!(beside.outcome().await, Err(Refused::Unauthenticated));
    let denied = Outcome::Denied(Denial::NotDesired);
    assert_eq!(beside.setting.count(denied), 1);
    assert_eq!(beside.setting.scene.vault_calls(), 1, "only for the first");
    assert_eq!(beside.unproved(), [("stream_unread", 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_a_deployment_that_no_state_names_is_refused_once_the_stream_was_read_whole() {
    let beside = Beside::leading().await;
    beside.receive(1, "tenant", "d_other", 10);
    pause(QUIET).await;
    assert_eq!(beside.outcome().await, Err(Refused::Unauthenticated));
}

/// What lies behind a full backlog was not read: no silence, however long it lasts.
#[tokio::test(start_paused = true)]
async fn a_stream_that_krane_itself_does_not_read_on_is_not_read_whole() {
    let beside = Beside::leading().await;
    beside.receive(1, "tenant", "d_other", MAX_BACKLOG + 1);
    pause(Duration::from_secs(400)).await;
    assert_eq!(beside.outcome().await, Ok(()));
    assert_eq!(beside.cannot_judge(), Some(Unproved::StreamUnread));
    // It is applied; the next message may come now.
    beside.store.inside(|memory| {
        let now = Duration::from_secs(400);
        while let Some(task) = memory.backlog.next_for(1, now) {
            let done = krane_domain::backlog::Outcome::NOTHING_TO_DO;
            memory.backlog.finish(&task.key, done, now, 0.5);
        }
    });
    assert_eq!(beside.outcome().await, Ok(()));
    pause(QUIET).await;
    assert_eq!(beside.outcome().await, Err(Refused::Unauthenticated));
}

/// A control plane that is slow to say the first word has not said that there is nothing.
#[tokio::test(start_paused = true)]
async fn a_stream_that_said_nothing_at_all_is_not_read_whole() {
    let beside = Beside::leading().await;
    pause(Duration::from_secs(60)).await;
    assert_eq!(beside.outcome().await, Ok(()));
    assert_eq!(beside.unproved(), [("stream_unread", 1)]);
}

/// What is known of an earlier term proves and refutes nothing: another process wrote meanwhile.
#[tokio::test(start_paused = true)]
async fn another_term_and_a_reset_begin_without_knowledge() {
    let beside = Beside::leading().await;
    let learn = || beside.receive(1, "victim", "d_1", 10);
    learn();
    pause(QUIET).await;
    assert_eq!(beside.outcome().await, Err(Refused::Unauthenticated));
    beside.store.reset();
    assert_eq!(beside.outcome().await, Ok(()), "after a reset");
    beside.enter(0);
    learn();
    pause(QUIET).await;
    assert_eq!(beside.outcome().await, Err(Refused::Unauthenticated));
    beside.enter(7);
    assert_eq!(beside.outcome().await, Ok(()), "in another term");
    assert_eq!(beside.unproved(), [("stream_unread", 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_standby_refuses_nothing_by_the_desired_states_and_counts_it() {
    let leadership = Leadership::elected("second".into(), StatusBoard::new());
    let beside = Beside::start(leadership).await;
    beside.enter(0);
    beside.receive(1, "victim", "d_1", 10);
    pause(QUIET).await;
    assert_eq!(beside.outcome().await, Ok(()));
    assert_eq!(beside.unproved(), [("standby", 1)]);
    assert_eq!(beside.cannot_judge(), Some(Unproved::Standby));
}

/// Stream lost, control plane unreachable: what was read stays read, for nothing is created without
/// a state.
#[tokio::test(start_paused = true)]
async fn what_was_read_whole_stays_known_while_the_stream_is_down() {
    let beside = Beside::leading().await;
    beside.receive(1, "victim", "d_1", 10);
    pause(QUIET).await;
    assert_eq!(beside.cannot_judge(), None);
    beside.store.inside(|memory| memory.stream.opened_at = None);
    pause(Duration::from_secs(600)).await;
    assert_eq!(beside.outcome().await, Err(Refused::Unauthenticated));
}

/// A delete whose pods still terminate: what this process knew of it is kept as long as the delete.
#[tokio::test(start_paused = true)]
async fn pods_of_a_deployment_whose_delete_has_just_arrived_keep_their_secrets() {
    let beside = Beside::leading().await;
    beside.receive(1, "tenant", "d_1", 10);
    pause(QUIET).await;
    let delete = State {
        key: ObjectKey::new("tenant", "app-d-1"),
        version: 2,
        change: Ok(Change::Delete),
        size: 1,
    };
    let now = beside.setting.now();
    beside
        .store
        .arrange(|memory| memory.receive(StreamItem::State(delete), now));
    assert_eq!(beside.outcome().await, Ok(()));
    assert_eq!(beside.unproved(), []);
}
