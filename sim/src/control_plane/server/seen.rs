//! What reached the control plane.

use std::{collections::BTreeMap, time::Instant};

use http::HeaderMap;
use krane_proto::ctrl::v1::{RegionKey, ReportSentinelStatusRequest};
use tonic::Code;

use super::{Kind, Method};

pub use krane_proto::ctrl::v1::report_deployment_status_request::update::{
    Instance, instance::Status,
};

/// A request, whatever became of it.
#[derive(Clone, Debug)]
pub struct Request {
    /// How many arrived before it.
    pub number: usize,
    /// When it arrived.
    pub at: Instant,
    /// The method.
    pub method: Method,
    /// The headers.
    pub headers: HeaderMap,
    /// The region it names.
    pub region: Option<RegionKey>,
    /// What it asks or tells.
    pub asked: Asked,
    /// What it ended with, and when. `Cancelled` when the client went away; nothing while it is being served.
    pub ended: Option<(Code, Instant)>,
}

/// What a request asks or tells.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// The states after this version.
    Watch {
        /// `version_last_seen`
        cursor: u64,
    },
    /// The state of this object.
    Desired {
        /// Its id.
        id: String,
    },
    /// How an object really is.
    Report(Report),
    /// A heartbeat.
    Heartbeat,
    /// The request did not decode.
    Unreadable,
}

/// How an object really is.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// The instances of a deployment.
    Update {
        /// Name of the `ReplicaSet`.
        name: String,
        /// All of them.
        instances: Vec<Instance>,
    },
    /// A deployment is gone.
    Deleted {
        /// Name of the `ReplicaSet`.
        name: String,
    },
    /// A sentinel.
    Sentinel(ReportSentinelStatusRequest),
    /// Neither case was set.
    Neither,
}

impl Report {
    /// The name it is about, empty when it names none.
    pub fn name(&self) -> &str {
        match self {
            Self::Update { name, .. } | Self::Deleted { name } => name,
            Self::Sentinel(report) => &report.k8s_name,
            Self::Neither => "",
        }
    }

    /// The instances of an update; none of anything else.
    pub fn instances(&self) -> &[Instance] {
        match self {
            Self::Update { instances, .. } => instances,
            Self::Deleted { .. } | Self::Sentinel(_) | Self::Neither => &[],
        }
    }

    /// Whether all instances are running, and there is one.
    pub fn is_running(&self) -> bool {
        let instances = self.instances();
        !instances.is_empty()
            && instances
                .iter()
                .all(|instance| instance.status() == Status::Running)
    }
}

/// The newest report about an object that was answered with success.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// When it arrived.
    pub at: Instant,
    /// What it said.
    pub report: Report,
    /// How many reports of this object were delivered, this one included.
    pub count: u32,
}

/// Everything that reached the control plane.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// In the order of arrival: all of them, unless old ones are forgotten
    /// ([`ControlPlane::keep_requests`](super::ControlPlane::keep_requests)).
    pub requests: Vec<Request>,
    /// The newest delivered report per name, deployments and sentinels alike.
    pub reports: BTreeMap<String, Delivered>,
}

impl Seen {
    /// The newest delivered report about a name.
    pub fn report(&self, name: &str) -> Option<&Report> {
        self.reports.get(name).map(|delivered| &delivered.report)
    }

    /// Whether the newest report about a name has instances and all of them run.
    pub fn running(&self, name: &str) -> bool {
        self.report(name).is_some_and(Report::is_running)
    }

    /// Whether the newest report about a name says that it is gone.
    pub fn deleted(&self, name: &str) -> bool {
        matches!(self.report(name), Some(Report::Deleted { .. }))
    }

    /// The requests of one method, in the order of arrival.
    pub fn of(&self, method: Method) -> impl DoubleEndedIterator<Item = &Request> {
        self.requests
            .iter()
            .filter(move |request| request.method == method)
    }

    /// The cursors of all watches of a kind, in the order of arrival.
    pub fn cursors(&self, kind: Kind) -> Vec<u64> {
        self.of(Method::Watch(kind))
            .filter_map(Request::cursor)
            .collect()
    }

    /// How many watches of a kind are being served.
    pub fn open_watches(&self, kind: Kind) -> usize {
        self.of(Method::Watch(kind))
            .filter(|request| request.ended.is_none())
            .count()
    }

    /// All reports about a name, delivered or not, in the order of arrival.
    pub fn reports_of<'a>(
        &'a self,
        name: &'a str,
    ) -> impl Iterator<Item = (&'a Request, &'a Report)> {
        self.requests
            .iter()
            .filter_map(move |request| match &request.asked {
                Asked::Report(report) if report.name() == name => Some((request, report)),
                Asked::Report(_)
                | Asked::Watch { .. }
                | Asked::Desired { .. }
                | Asked::Heartbeat
                | Asked::Unreadable => None,
            })
    }

    pub(crate) fn deliver(&mut self, at: Instant, report: &Report) {
        let count = self
            .reports
            .get(report.name())
            .map_or(0, |delivered| delivered.count)
            + 1;
        let delivered = Delivered {
            at,
            report: report.clone(),
            count,
        };
        self.reports.insert(report.name().to_owned(), delivered);
    }
}

impl Request {
    /// The cursor of a watch.
    pub fn cursor(&self) -> Option<u64> {
        match self.asked {
            Asked::Watch { cursor } => Some(cursor),
            Asked::Desired { .. } | Asked::Report(_) | Asked::Heartbeat | Asked::Unreadable => None,
        }
    }

    /// What it ended with.
    pub fn code(&self) -> Option<Code> {
        self.ended.map(|(code, _)| code)
    }
}
