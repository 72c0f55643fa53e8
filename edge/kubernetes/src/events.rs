//! Events of the cluster as the port [`EventSink`].
//!
//! They have a limit of their own on requests (D22a): what krane tells holds up nothing that it
//! does. An Event that says the same again is patched; the rights are create and patch.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use krane_domain::labels;
use krane_domain::refusal::Refusal;
use krane_ports::EventSink;
use krane_ports::Notice;
use serde_json::{Value, json};

use super::request::{event_path, push_query};
use super::{Call, CallLimits, CallTimeouts, JSON, KubeCalls, KubeConnection, MERGE_PATCH, Verb};

const PLURAL: &str = "events";
/// Longest note that the API server takes, in bytes.
const LONGEST_NOTE: usize = 1024;
/// Longest name, less the suffix that makes it one of its own.
const LONGEST_NAME: usize = 253 - 17;
/// Where Events about objects without a namespace belong.
const DEFAULT_NAMESPACE: &str = "default";

/// Events behind a [`KubeConnection`].
#[derive(Debug)]
pub struct KubeEvents {
    calls: KubeCalls,
    instance: String,
}

impl KubeEvents {
    /// Events that this process reports.
    pub fn new(connection: Arc<KubeConnection>, instance: &str) -> Self {
        let limits = CallLimits {
            max_in_flight: 1,
            ..CallLimits::default()
        };
        Self {
            calls: KubeCalls::new(connection, limits, CallTimeouts::default()),
            instance: cut(instance, 128).to_owned(),
        }
    }
}

#[async_trait]
impl EventSink for KubeEvents {
    async fn create(&self, notice: &Notice) -> Result<Arc<str>, Refusal> {
        let now = jiff_now();
        let name = name_of(notice, now);
        let mut target = event_path(namespace_of(notice), None)?;
        push_query(&mut target, &[("fieldManager", labels::MANAGER)]);
        let body = Bytes::from(body(notice, &name, &self.instance, now).to_string());
        let call = Call::new(Verb::Create, PLURAL, target).with_body(JSON, body);
        let reply = self.calls.run(&call).await?;
        if reply.is_success() {
            Ok(name.into())
        } else {
            Err(reply.refusal())
        }
    }

    async fn recur(&self, notice: &Notice, event: &str, count: u32) -> Result<bool, Refusal> {
        let mut target = event_path(namespace_of(notice), Some(event))?;
        push_query(&mut target, &[("fieldManager", labels::MANAGER)]);
        let series = json!({
            "series": {"count": count.max(2), "lastObservedTime": format!("{:.6}", jiff_now())},
        });
        let call = Call::new(Verb::Patch, PLURAL, target)
            .with_body(MERGE_PATCH, Bytes::from(series.to_string()));
        let reply = self.calls.run(&call).await?;
        if reply.is_success() {
            Ok(true)
        } else if reply.code == 404 {
            Ok(false)
        } else {
            Err(reply.refusal())
        }
    }
}

/// The time of day, for people who look at the Event.
#[expect(
    clippy::disallowed_methods,
    reason = "an adapter; nothing of krane reckons with it"
)]
fn jiff_now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

fn namespace_of(notice: &Notice) -> &str {
    match &*notice.regarding.namespace {
        "" => DEFAULT_NAMESPACE,
        namespace => namespace,
    }
}

fn name_of(notice: &Notice, now: jiff::Timestamp) -> String {
    let object = cut(&notice.regarding.name, LONGEST_NAME).trim_end_matches(['.', '-']);
    format!("{object}.{:016x}", now.as_nanosecond())
}

fn body(notice: &Notice, name: &str, instance: &str, now: jiff::Timestamp) -> Value {
    let about = &notice.regarding;
    let mut regarding = json!({
        "apiVersion": about.resource.api_version(),
        "kind": about.resource.kind(),
        "name": about.name,
    });
    if !about.namespace.is_empty() {
        regarding["namespace"] = json!(about.namespace);
    }
    if let Some(uid) = &notice.uid {
        regarding["uid"] = json!(uid);
    }
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace_of(notice)},
        "eventTime": format!("{now:.6}"),
        "reportingController": labels::MANAGER,
        "reportingInstance": instance,
        "action": notice.reason.action(),
        "reason": notice.reason.name(),
        "type": if notice.reason.is_warning() { "Warning" } else { "Normal" },
        "note": cut(&notice.note, LONGEST_NOTE),
        "regarding": regarding,
    })
}

/// The beginning of a text, at most so many bytes.
fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use krane_domain::object::{ObjectRef, Resource};
    use krane_ports::Reason;

    use super::*;

    fn notice(regarding: ObjectRef, note: &str) -> Notice {
        Notice {
            subject: "deployments ws-1/a".into(),
            regarding,
            uid: None,
            reason: Reason::Recovered,
            note: note.to_owned(),
        }
    }

    #[test]
    fn what_has_no_namespace_is_told_where_such_things_are() {
        let namespace = ObjectRef::new(Resource::Namespace, "", "ws-1");
        let body = body(
            &notice(namespace, "x"),
            "n",
            "i",
            jiff::Timestamp::UNIX_EPOCH,
        );
        assert_eq!(body["metadata"]["namespace"], "default");
        assert_eq!(body["regarding"].get("namespace"), None);
        assert_eq!(body["eventTime"], "1970-01-01T00:00:00.000000Z");
    }

    #[test]
    fn names_and_notes_are_as_long_as_the_api_server_takes() {
        let object = ObjectRef::new(
            Resource::ReplicaSet,
            "ws-1",
            format!("a{}", "-b".repeat(126)),
        );
        let long = notice(object, &"ü".repeat(1000));
        let name = name_of(&long, "2026-11-28T10:00:00Z".parse().unwrap());
        assert!(name.len() <= 253, "{}", name.len());
        assert!(!name.contains("-."), "{name}");
        let body = body(&long, &name, "i", jiff::Timestamp::UNIX_EPOCH);
        assert_eq!(body["note"].as_str().unwrap().len(), 1024);
    }
}
