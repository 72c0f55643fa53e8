//! The survey over a cluster and a control plane in memory.

use krane_domain::ids::Controller;
use krane_domain::kinds::deployment::{AutoscalingInput, DeploymentInput, validate};
use krane_domain::kinds::sentinel::{self, SentinelInput};
use krane_domain::labels;
use krane_domain::refusal::Refusal;
use krane_ports::Cluster as _;
use krane_sim::cluster::{Admin, Options, Patch, SimClient, SimCluster};
use krane_sim::control_plane::SimControlPlane;
use krane_sim::hooks::{Side, Verdict};
use serde_json::json;

use super::*;

struct Rig {
    client: SimClient,
    admin: Admin,
    control: SimControlPlane,
    rules: Rules,
}

impl Rig {
    fn new() -> Self {
        let cluster = SimCluster::new(Options {
            has_controllers: false,
            ..Options::default()
        });
        Self {
            client: cluster.client(),
            admin: cluster.admin(),
            control: SimControlPlane::new(1),
            rules: Rules::default(),
        }
    }

    /// Makes every object of the state.
    async fn has(&self, desired: &Desired) -> LiveObject {
        let (key, rules) = (desired.key(), &self.rules);
        drop(self.admin.create_namespace(&key.namespace));
        for shared in desired.needs(rules) {
            let members = [desired.member()];
            if let Some(rendered) = kinds::render_shared(&shared, &members, rules)
                && !matches!(shared, SharedKey::Namespace(_))
            {
                self.client.apply(&rendered, None).await.unwrap();
            }
        }
        let primary = desired.render(rules, None);
        let live = self.client.apply(&primary, None).await.unwrap();
        for rendered in desired.dependants(rules, &live) {
            self.client.apply(&rendered, None).await.unwrap();
        }
        live
    }

    fn hold(&self, object: &ObjectRef) {
        let now = SystemClock.unix_seconds().cast_signed();
        let until = jiff::Timestamp::from_second(now + 3_600).unwrap();
        let annotations = json!({ labels::HOLD_ANNOTATION: until.to_string() });
        self.edit(
            object,
            json!({ "metadata": { "annotations": annotations } }),
        );
    }

    fn edit(&self, object: &ObjectRef, edit: serde_json::Value) {
        let patch = Patch::Merge(edit);
        self.admin
            .patch(object, "kubectl-edit", "", &patch)
            .unwrap();
    }

    async fn survey(&self, controller: Controller) -> Findings {
        let side = Ports {
            controller,
            cluster: std::sync::Arc::new(self.client.clone()),
            control_plane: std::sync::Arc::new(self.control.clone()),
        };
        let mut findings = Findings::default();
        plan(&side, &self.rules, &mut findings).await;
        findings
    }

    async fn changes(&self, controller: Controller) -> Vec<(Action, String)> {
        let findings = self.survey(controller).await;
        assert_eq!(findings.problems, [""; 0]);
        let changes = findings.changes.into_iter();
        changes
            .map(|planned| (planned.action, planned.object))
            .collect()
    }
}

fn workload(is_scaled: bool) -> Desired {
    let input = DeploymentInput {
        k8s_namespace: "tenant-0".to_owned(),
        k8s_name: "app-0".to_owned(),
        workspace_id: "ws_1".to_owned(),
        project_id: "proj_1".to_owned(),
        environment_id: "env_1".to_owned(),
        deployment_id: "d_1".to_owned(),
        image: "nginx:1".to_owned(),
        replicas: 2,
        cpu_millicores: 250,
        memory_mib: 256,
        autoscaling: is_scaled.then_some(AutoscalingInput {
            min_replicas: 1,
            max_replicas: 4,
            cpu_threshold: Some(80),
            memory_threshold: None,
        }),
        ..DeploymentInput::default()
    };
    Desired::Deployment(Box::new(validate(input, &Rules::default()).unwrap()))
}

fn autoscaler() -> ObjectRef {
    ObjectRef::new(Resource::HorizontalPodAutoscaler, "tenant-0", "app-0")
}

#[tokio::test]
async fn an_autoscaler_that_the_state_does_not_need_any_more_is_listed_unless_it_is_held() {
    let rig = Rig::new();
    rig.has(&workload(true)).await;
    rig.control.apply(workload(true));
    assert_eq!(rig.changes(Controller::Deployments).await, []);
    rig.control.apply(workload(false));
    let goes = (Action::Delete, autoscaler().to_string());
    let changes = rig.changes(Controller::Deployments).await;
    assert!(changes.contains(&goes), "{changes:?}");
    rig.hold(&autoscaler());
    let changes = rig.changes(Controller::Deployments).await;
    assert!(!changes.contains(&goes), "{changes:?}");
}

#[tokio::test]
async fn an_object_that_a_person_holds_is_no_change() {
    let rig = Rig::new();
    let live = rig.has(&workload(false)).await;
    rig.control.apply(workload(false));
    let edit = json!({ "spec": { "replicas": 7 } });
    rig.edit(&live.reference, edit);
    let change = (Action::Change, live.reference.to_string());
    assert_eq!(rig.changes(Controller::Deployments).await, [change]);
    rig.hold(&live.reference);
    assert_eq!(rig.changes(Controller::Deployments).await, []);
}

#[tokio::test]
async fn of_a_sentinel_to_be_deleted_every_object_is_listed_the_deployment_last() {
    let rig = Rig::new();
    let input = SentinelInput {
        k8s_name: "sen-1".to_owned(),
        workspace_id: "ws_1".to_owned(),
        project_id: "proj_1".to_owned(),
        app_id: String::new(),
        environment_id: "env_1".to_owned(),
        sentinel_id: "sen_1".to_owned(),
        image: "sentinel:1".to_owned(),
        replicas: 2,
        cpu_millicores: 256,
        memory_mib: 1024,
    };
    let sentinel = sentinel::validate(input, &rig.rules).unwrap();
    let desired = Desired::Sentinel(Box::new(sentinel));
    rig.has(&desired).await;
    rig.control.apply(desired.clone());
    assert_eq!(rig.changes(Controller::Sentinels).await, []);
    rig.control.delete(desired.key());
    let changes = rig.changes(Controller::Sentinels).await;
    assert!(changes.iter().all(|(action, _)| *action == Action::Delete));
    assert_eq!(changes.len(), 5, "{changes:?}");
    assert_eq!(changes[4].1, desired.reference().to_string());
}

/// What cannot be listed is not taken for absent.
#[tokio::test]
async fn where_autoscalers_cannot_be_listed_none_is_listed_as_missing() {
    let rig = Rig::new();
    rig.has(&workload(true)).await;
    rig.control.apply(workload(true));
    rig.client.hooks().set(|side, op| match (side, op.call) {
        (Side::Before, "list") if op.subject.contains("horizontalpodautoscalers") => {
            Verdict::Fail(Refusal {
                class: RefusalClass::Configuration,
                code: 403,
                message: "forbidden".to_owned(),
                retry_after: None,
            })
        }
        _ => Verdict::Proceed,
    });
    let findings = rig.survey(Controller::Deployments).await;
    assert_eq!(findings.changes, []);
    assert_eq!(findings.problems.len(), 1, "{:?}", findings.problems);
}
