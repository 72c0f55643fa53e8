//! The era of three watches and a `RegionKey` on every request.

mod cilium;
mod deployments;
mod sentinels;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use krane_domain::desired::{Change, State, StreamItem};
use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::invalid::Invalid;
use krane_domain::kinds::Rules;
use krane_domain::report::Report;
use krane_ports::{Answer, Question};
use krane_proto::ctrl::v1::{HeartbeatRequest, RegionKey};
use prost::{DecodeError, Message};

use self::cilium::Cilium;
use self::deployments::Deployments;
use self::sentinels::Sentinels;
use super::WireRequest;
use super::glimpse::glimpse;

/// No Kubernetes name is longer; what is longer names nothing, and would only fill memory.
const LONGEST_NAME: usize = 253;

/// Speaks for one region, about the objects of one controller.
#[derive(Clone, Debug)]
pub struct Wire {
    region: RegionKey,
    controller: Controller,
    rules: Arc<Rules>,
}

impl Wire {
    /// A mapping for this region and controller.
    pub fn new(
        platform: impl Into<String>,
        region: impl Into<String>,
        controller: Controller,
        rules: Arc<Rules>,
    ) -> Self {
        let region = RegionKey {
            platform: platform.into(),
            name: region.into(),
        };
        Self {
            region,
            controller,
            rules,
        }
    }

    fn kind(&self) -> &'static dyn Kind {
        match self.controller {
            Controller::Deployments => &Deployments,
            Controller::Sentinels => &Sentinels,
            Controller::Cilium => &Cilium,
        }
    }

    /// Opens the stream of desired states after `cursor`.
    pub fn watch(&self, cursor: u64) -> WireRequest {
        self.kind().watch(self.region(), cursor)
    }

    /// Asks what is wanted of one object.
    pub fn question(&self, question: &Question) -> WireRequest {
        self.kind().question(self.region(), &question.id)
    }

    /// Delivers a report; `None` for one that says nothing about objects of this kind.
    pub fn report(&self, report: &Report) -> Option<WireRequest> {
        self.kind().report(self.region(), report)
    }

    /// Says that the region is alive.
    pub fn heartbeat(&self) -> WireRequest {
        request(
            "Heartbeat",
            "/ctrl.v1.ClusterService/Heartbeat",
            &HeartbeatRequest {
                region: self.region(),
            },
        )
    }

    /// Reads one message of the stream.
    pub fn stream_item(&self, message: &Bytes) -> StreamItem {
        let size = message.len();
        let (named, version) = self.read(message);
        match named {
            Named::Object { key, change } => StreamItem::State(State {
                key,
                version,
                change,
                size,
            }),
            Named::Nothing(reason) => StreamItem::Unnamed {
                version,
                reason: reason.into_owned(),
            },
        }
    }

    /// Reads the answer to a question. One that does not decode is none: unlike a state of the
    /// stream it replaces nothing.
    pub fn answer(&self, message: &Bytes) -> Answer {
        match self.decode(message) {
            Ok((Named::Object { key, change }, _)) => Answer::State { key, change },
            Ok((Named::Nothing(_), _)) => Answer::Empty,
            Err(error) => {
                let (named, _) = self.undecodable(message, &error);
                tracing::error!(
                    controller = self.controller.name(),
                    object = named.key().map(tracing::field::display),
                    %error,
                    "an answer of the control plane does not decode and is ignored; look for a \
                     control plane that speaks another protocol than this krane"
                );
                Answer::Empty
            }
        }
    }

    fn read(&self, message: &Bytes) -> (Named, u64) {
        self.decode(message)
            .unwrap_or_else(|error| self.undecodable(message, &error))
    }

    fn decode(&self, message: &Bytes) -> Result<(Named, u64), DecodeError> {
        self.kind().decode(message, &self.rules)
    }

    fn undecodable(&self, message: &[u8], error: &DecodeError) -> (Named, u64) {
        let seen = glimpse(message);
        let key = match self.kind().glimpsed(seen.first, seen.second) {
            Some((namespace, name)) => named_key(namespace, name),
            None => Err(format!("it does not decode: {error}")),
        };
        let named = named(key, || {
            Err(Invalid::new(
                "message",
                format!("does not decode ({error})"),
                "look for a control plane that speaks another protocol than this krane",
            ))
        });
        (named, seen.version)
    }

    // `Some` because a message field is optional in proto3; a request never goes without it.
    #[allow(clippy::unnecessary_wraps, reason = "the type of the message field")]
    fn region(&self) -> Option<RegionKey> {
        Some(self.region.clone())
    }
}

/// What differs between kinds on the wire.
trait Kind: Sync {
    fn watch(&self, region: Option<RegionKey>, version_last_seen: u64) -> WireRequest;

    fn question(&self, region: Option<RegionKey>, id: &str) -> WireRequest;

    fn report(&self, region: Option<RegionKey>, report: &Report) -> Option<WireRequest>;

    /// A state and its version.
    fn decode(&self, message: &[u8], rules: &Rules) -> Result<(Named, u64), DecodeError>;

    /// Namespace and name, from the first two texts of a state that does not decode.
    fn glimpsed<'a>(
        &self,
        first: Option<&'a str>,
        second: Option<&'a str>,
    ) -> Option<(&'a str, &'a str)> {
        Some((first?, second?))
    }
}

/// A message, or as much of it as can be understood.
enum Named {
    Object {
        key: ObjectKey,
        change: Result<Change, Invalid>,
    },
    Nothing(Cow<'static, str>),
}

impl Named {
    fn key(&self) -> Option<&ObjectKey> {
        match self {
            Self::Object { key, .. } => Some(key),
            Self::Nothing(_) => None,
        }
    }

    const NOTHING_SAID: Self = Self::Nothing(Cow::Borrowed("it holds neither apply nor delete"));
}

fn named(
    key: Result<ObjectKey, String>,
    change: impl FnOnce() -> Result<Change, Invalid>,
) -> Named {
    match key {
        Ok(key) => Named::Object {
            key,
            change: change(),
        },
        Err(reason) => Named::Nothing(reason.into()),
    }
}

fn named_key(namespace: &str, name: &str) -> Result<ObjectKey, String> {
    for (field, value) in [("k8s_namespace", namespace), ("k8s_name", name)] {
        match value.len() {
            0 => return Err(format!("its {field} is empty")),
            1..=LONGEST_NAME => {}
            length => return Err(format!("its {field} has {length} bytes")),
        }
    }
    Ok(ObjectKey::new(namespace, name))
}

fn request(method: &'static str, path: &'static str, message: &impl Message) -> WireRequest {
    WireRequest {
        method,
        path,
        body: message.encode_to_vec().into(),
    }
}
