//! The two control planes, told what to do in the same words.

use std::sync::Arc;

use krane_control_plane::wire::Wire;
use krane_control_plane::{ControlPlaneAccess, GrpcControlPlane, Timing};
use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::kinds::Rules;
use krane_domain::report::Report;
use krane_ports::{Answer as PortAnswer, ControlPlane};
use krane_sim::control_plane::memory::{self, Reply, answered};
use krane_sim::control_plane::{
    self as server, Answer, Asked, Code, Kind, Method, PLATFORM, REGION, SimControlPlane,
};
use secrecy::SecretString;

use super::kinds;

const TOKEN: &str = "hunter2";

/// The methods that are failed on purpose.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    Watch,
    Report,
    Heartbeat,
}

/// A control plane behind its port.
pub(super) trait World {
    /// What it is the control plane of.
    fn controller(&self) -> Controller;
    fn key(&self, name: &str) -> ObjectKey {
        kinds::key(self.controller(), name)
    }
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
pub(super) struct Memory(SimControlPlane, Controller);

impl Memory {
    pub(super) fn new(controller: Controller) -> Self {
        Self(SimControlPlane::new(1), controller)
    }
}

impl World for Memory {
    fn controller(&self) -> Controller {
        self.1
    }

    fn port(&self) -> Arc<dyn ControlPlane> {
        Arc::new(self.0.clone())
    }

    fn apply(&self, name: &str, image: &str) {
        match kinds::desired(self.1, name, image) {
            Ok(desired) => self.0.apply(desired),
            Err(invalid) => self.0.poison(&self.key(name), invalid),
        };
    }

    fn delete(&self, name: &str) {
        self.0.delete(&self.key(name));
    }

    fn garbage(&self) {
        self.0.garbage("no message at all");
    }

    fn forget(&self, name: &str) {
        self.0.forget(&self.key(name));
    }

    fn answer_empty(&self, name: &str, empty: bool) {
        let reply = empty.then_some(Reply::Answer(PortAnswer::Empty));
        self.0.set_answer(&self.key(name), reply);
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
    controller: Controller,
}

impl Grpc {
    pub(super) async fn start(controller: Controller) -> Self {
        let server = server::ControlPlane::start(TOKEN).await.unwrap();
        let access = ControlPlaneAccess {
            url: server.url(),
            ca_file: None,
            token: Arc::new(|| SecretString::from(TOKEN)),
            timing: Timing::default(),
            observer: Arc::new(()),
        };
        let wire = Wire::new(PLATFORM, REGION, controller, Arc::new(Rules::default()));
        let port = Arc::new(GrpcControlPlane::new(&access, wire).unwrap());
        Self {
            server,
            port,
            controller,
        }
    }
}

impl Grpc {
    const fn kind(&self) -> Kind {
        kinds::kind(self.controller)
    }

    fn id(&self, name: &str) -> String {
        kinds::id(self.controller, name)
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
    fn controller(&self) -> Controller {
        self.controller
    }

    fn port(&self) -> Arc<dyn ControlPlane> {
        Arc::clone(&self.port) as Arc<dyn ControlPlane>
    }

    fn apply(&self, name: &str, image: &str) {
        kinds::push(&self.server, self.controller, name, image);
    }

    fn delete(&self, name: &str) {
        kinds::push_delete(&self.server, self.controller, name);
    }

    fn garbage(&self) {
        kinds::push_garbage(&self.server, self.controller);
    }

    fn forget(&self, name: &str) {
        self.server.forget(self.kind(), &self.id(name));
    }

    fn answer_empty(&self, name: &str, empty: bool) {
        let answer = empty.then_some(Answer::Empty);
        self.server.set_answer(self.kind(), &self.id(name), answer);
    }

    fn cut(&self, name: &'static str) {
        self.server.cut_streams(code(name));
    }

    fn fail(&self, call: Call, name: &'static str) {
        let method = match call {
            Call::Watch => Method::Watch(self.kind()),
            Call::Report => kinds::report_method(self.controller),
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
        self.server.look(|seen| seen.cursors(self.kind()))
    }

    fn reports(&self) -> Vec<Report> {
        self.server.look(|seen| {
            let taken = seen
                .requests
                .iter()
                .filter(|request| request.code() == Some(Code::Ok));
            taken
                .filter_map(|request| match &request.asked {
                    Asked::Report(report) => Some(kinds::report_of(report)),
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
        self.server.look(|seen| seen.open_watches(self.kind()))
    }

    async fn no_watch_is_open(&self) {
        let limit = std::time::Duration::from_secs(40);
        self.server
            .wait_for("the end of the watch", limit, |seen| {
                (seen.open_watches(self.kind()) == 0).then_some(())
            })
            .await
            .unwrap();
    }
}
