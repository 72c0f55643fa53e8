//! The two control planes, told what to do in the same words.

use std::sync::Arc;

use krane::edge::control_plane::{ControlPlaneAccess, GrpcControlPlane, Timing};
use krane::edge::wire::Wire;
use krane_actors::ports::{Answer as PortAnswer, ControlPlane};
use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::kinds::deployment::{DeploymentInput, validate};
use krane_domain::kinds::{Desired, Rules};
use krane_domain::report::{Instance, InstanceStatus, Report};
use krane_sim::control_plane::memory::{self, Reply, answered};
use krane_sim::control_plane::{
    self as server, Answer, Asked, Code, Kind, Method, PLATFORM, REGION, SimControlPlane, samples,
};
use secrecy::SecretString;

const NAMESPACE: &str = "ws";
const TOKEN: &str = "hunter2";

pub(super) fn key(name: &str) -> ObjectKey {
    ObjectKey::new(NAMESPACE, name)
}

pub(super) fn id(name: &str) -> String {
    samples::deployment(NAMESPACE, name).deployment_id
}

/// The methods that are failed on purpose.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    Watch,
    Report,
    Heartbeat,
}

/// A control plane behind its port.
pub(super) trait World {
    fn port(&self) -> Arc<dyn ControlPlane>;
    fn apply(&self, name: &str, image: &str);
    fn delete(&self, name: &str);
    fn garbage(&self);
    fn forget(&self, name: &str);
    fn answer_empty(&self, name: &str, empty: bool);
    fn cut(&self, code: &'static str);
    /// The next call ends with this code.
    fn fail(&self, call: Call, code: &'static str);
    fn freeze(&self);
    fn thaw(&self);
    async fn take_away(&self);
    async fn give_back(&self);
    /// Restores, when called, what is wanted now.
    fn backup(&self) -> Box<dyn Fn() + '_>;
    fn cursors(&self) -> Vec<u64>;
    fn reports(&self) -> Vec<Report>;
    fn heartbeats(&self) -> usize;
    fn open_watches(&self) -> usize;
    async fn no_watch_is_open(&self);
}

/// The one in memory.
pub(super) struct Memory(SimControlPlane);

impl Default for Memory {
    fn default() -> Self {
        Self(SimControlPlane::new(1))
    }
}

impl World for Memory {
    fn port(&self) -> Arc<dyn ControlPlane> {
        Arc::new(self.0.clone())
    }

    fn apply(&self, name: &str, image: &str) {
        let message = samples::deployment(NAMESPACE, name);
        let input = DeploymentInput {
            k8s_namespace: message.k8s_namespace,
            k8s_name: message.k8s_name,
            workspace_id: message.workspace_id,
            project_id: message.project_id,
            environment_id: message.environment_id,
            deployment_id: message.deployment_id,
            app_id: message.app_id,
            image: image.to_owned(),
            replicas: message.replicas,
            cpu_millicores: message.cpu_millicores,
            memory_mib: message.memory_mib,
            port: message.port,
            ..DeploymentInput::default()
        };
        match validate(input, &Rules::default()) {
            Ok(desired) => self.0.apply(Desired::Deployment(Box::new(desired))),
            Err(invalid) => self.0.poison(&key(name), invalid),
        };
    }

    fn delete(&self, name: &str) {
        self.0.delete(&key(name));
    }

    fn garbage(&self) {
        self.0.garbage("no message at all");
    }

    fn forget(&self, name: &str) {
        self.0.forget(&key(name));
    }

    fn answer_empty(&self, name: &str, empty: bool) {
        let reply = empty.then_some(Reply::Answer(PortAnswer::Empty));
        self.0.set_answer(&key(name), reply);
    }

    fn cut(&self, code: &'static str) {
        self.0.cut_streams(code);
    }

    fn fail(&self, call: Call, code: &'static str) {
        let call = match call {
            Call::Watch => memory::Call::Watch,
            Call::Report => memory::Call::Report,
            Call::Heartbeat => memory::Call::Heartbeat,
        };
        self.0.fail(call, answered(code), 1);
    }

    fn freeze(&self) {
        self.0.freeze();
    }

    fn thaw(&self) {
        self.0.give_back();
    }

    async fn take_away(&self) {
        self.0.take_away();
    }

    async fn give_back(&self) {
        self.0.give_back();
    }

    fn backup(&self) -> Box<dyn Fn() + '_> {
        let backup = self.0.backup();
        Box::new(move || self.0.restore(&backup))
    }

    fn cursors(&self) -> Vec<u64> {
        self.0.look(memory::Told::cursors)
    }

    fn reports(&self) -> Vec<Report> {
        self.0.look(|told| {
            let reports = told.reports.iter();
            reports.map(|told| told.report.clone()).collect()
        })
    }

    fn heartbeats(&self) -> usize {
        self.0.look(|told| told.heartbeats.len())
    }

    fn open_watches(&self) -> usize {
        self.0.look(memory::Told::open_watches)
    }

    async fn no_watch_is_open(&self) {
        self.0
            .until(|told| (told.open_watches() == 0).then_some(()))
            .await;
    }
}

/// The real adapter in front of the scripted server.
pub(super) struct Grpc {
    server: server::ControlPlane,
    port: Arc<GrpcControlPlane>,
}

impl Grpc {
    pub(super) async fn start() -> Self {
        let server = server::ControlPlane::start(TOKEN).await.unwrap();
        let access = ControlPlaneAccess {
            url: server.url(),
            ca_file: None,
            token: Arc::new(|| SecretString::from(TOKEN)),
            timing: Timing::default(),
            observer: Arc::new(()),
        };
        let wire = Wire::new(
            PLATFORM,
            REGION,
            Controller::Deployments,
            Arc::new(Rules::default()),
        );
        let port = Arc::new(GrpcControlPlane::new(&access, wire).unwrap());
        Self { server, port }
    }
}

fn code(name: &str) -> Code {
    let named = [
        ("ok", Code::Ok),
        ("internal", Code::Internal),
        ("permission_denied", Code::PermissionDenied),
        ("resource_exhausted", Code::ResourceExhausted),
        ("unavailable", Code::Unavailable),
    ];
    let found = named.into_iter().find(|(known, _)| *known == name);
    found.expect("a code of the contract").1
}

impl World for Grpc {
    fn port(&self) -> Arc<dyn ControlPlane> {
        Arc::clone(&self.port) as Arc<dyn ControlPlane>
    }

    fn apply(&self, name: &str, image: &str) {
        let mut message = samples::deployment(NAMESPACE, name);
        image.clone_into(&mut message.image);
        self.server.push(samples::apply(message));
    }

    fn delete(&self, name: &str) {
        let message = samples::deployment(NAMESPACE, name);
        self.server.push(samples::delete(&message));
    }

    fn garbage(&self) {
        // A version, and no case.
        self.server
            .push(krane_proto::ctrl::v1::DeploymentState::default());
    }

    fn forget(&self, name: &str) {
        self.server.forget(Kind::Deployments, &id(name));
    }

    fn answer_empty(&self, name: &str, empty: bool) {
        let answer = empty.then_some(Answer::Empty);
        self.server.set_answer(Kind::Deployments, &id(name), answer);
    }

    fn cut(&self, name: &'static str) {
        self.server.cut_streams(code(name));
    }

    fn fail(&self, call: Call, name: &'static str) {
        let method = match call {
            Call::Watch => Method::Watch(Kind::Deployments),
            Call::Report => Method::ReportDeployment,
            Call::Heartbeat => Method::Heartbeat,
        };
        self.server.fail(method, code(name), 1);
    }

    fn freeze(&self) {
        self.server.freeze();
    }

    fn thaw(&self) {
        self.server.thaw();
    }

    async fn take_away(&self) {
        self.server.stop().await;
    }

    async fn give_back(&self) {
        self.server.start_again().await.unwrap();
    }

    fn backup(&self) -> Box<dyn Fn() + '_> {
        let backup = self.server.backup();
        Box::new(move || self.server.restore(&backup))
    }

    fn cursors(&self) -> Vec<u64> {
        self.server.look(|seen| seen.cursors(Kind::Deployments))
    }

    fn reports(&self) -> Vec<Report> {
        self.server.look(|seen| {
            let taken = seen
                .requests
                .iter()
                .filter(|request| request.code() == Some(Code::Ok));
            taken
                .filter_map(|request| match &request.asked {
                    Asked::Report(report) => Some(report_of(report)),
                    Asked::Watch { .. }
                    | Asked::Desired { .. }
                    | Asked::Heartbeat
                    | Asked::Unreadable => None,
                })
                .collect()
        })
    }

    fn heartbeats(&self) -> usize {
        self.server.look(|seen| {
            let heartbeats = seen.of(Method::Heartbeat);
            heartbeats
                .filter(|request| request.code() == Some(Code::Ok))
                .count()
        })
    }

    fn open_watches(&self) -> usize {
        self.server
            .look(|seen| seen.open_watches(Kind::Deployments))
    }

    async fn no_watch_is_open(&self) {
        let limit = std::time::Duration::from_secs(40);
        self.server
            .wait_for("the end of the watch", limit, |seen| {
                (seen.open_watches(Kind::Deployments) == 0).then_some(())
            })
            .await
            .unwrap();
    }
}

/// A report off the wire, in the domain's words. The wire carries no namespace.
fn report_of(report: &server::Report) -> Report {
    match report {
        server::Report::Update { name, instances } => Report::Instances {
            key: key(name),
            instances: instances.iter().map(instance_of).collect(),
        },
        server::Report::Deleted { name } => Report::Gone {
            key: key(name),
            id: None,
        },
        server::Report::Sentinel(_) | server::Report::Neither => panic!("no workload: {report:?}"),
    }
}

fn instance_of(instance: &server::Instance) -> Instance {
    Instance {
        pod: instance.k8s_name.as_str().into(),
        address: instance.address.clone(),
        status: match instance.status() {
            server::Status::Running => InstanceStatus::Running,
            server::Status::Pending => InstanceStatus::Pending,
            other @ (server::Status::Unspecified | server::Status::Failed) => {
                panic!("krane never says {other:?}")
            }
        },
        cpu_millicores: instance.cpu_millicores,
        memory_mib: instance.memory_mib,
    }
}
