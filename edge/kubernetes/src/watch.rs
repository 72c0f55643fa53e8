//! Watches: one JSON event per line, decoded here so that one bad event costs no other.

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use http_body_util::BodyExt;
use krane_domain::kinds::WatchSpec;
use krane_domain::object::Resource;
use krane_domain::refusal::Refusal;
use krane_domain::words::cut;
use krane_ports::{WatchEnd, WatchEvent};
use kube::client::Body;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::calls::KubeCalls;
use super::lines::Lines;
use super::list::decode;
use super::reply::{chain, is_version_unusable, json_problem, status_of, unreadable};
use super::request::{Call, Verb, collection_path, push_query};

const LONGEST_EVENT: usize = 64 << 20;

/// Events after `version`. Dropping the stream closes its connection.
pub(super) async fn watch(
    calls: &KubeCalls,
    spec: &WatchSpec,
    version: &str,
) -> Result<BoxStream<'static, WatchEvent>, Refusal> {
    if version.is_empty() {
        // The server would begin at a moment of its choice.
        return Ok(expired());
    }
    let mut target = collection_path(spec.resource, spec.namespace)?;
    let seconds = calls.timeouts().watch.as_secs().max(1).to_string();
    push_query(
        &mut target,
        &[
            ("labelSelector", &spec.label_selector),
            ("fieldSelector", &spec.field_selector),
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", &seconds),
            ("resourceVersion", version),
        ],
    );
    let call = Call::new(Verb::Watch, spec.resource.plural(), target);
    let answer = calls.start(&call).await?;
    if !answer.status().is_success() {
        let reply = calls.finish(answer).await?;
        // An API server says this inside the stream; proxies and aggregated APIs say it here.
        if reply.is_version_unusable() {
            return Ok(expired());
        }
        return Err(reply.refusal());
    }
    if !is_json(&answer) {
        return Err(unreadable(
            answer.status().as_u16(),
            "the answer to a watch is no JSON",
        ));
    }
    let events = Events {
        resource: spec.resource,
        body: answer.into_body(),
        lines: Lines::new(LONGEST_EVENT),
        is_over: false,
    };
    Ok(stream::unfold(events, Events::step).boxed())
}

fn expired() -> BoxStream<'static, WatchEvent> {
    stream::iter([WatchEvent::Ended(WatchEnd::Expired)]).boxed()
}

fn is_json(answer: &http::Response<Body>) -> bool {
    let content_type = answer.headers().get(http::header::CONTENT_TYPE);
    content_type.is_none_or(|kind| kind.to_str().is_ok_and(|kind| kind.contains("json")))
}

struct Events {
    resource: Resource,
    body: Body,
    lines: Lines,
    is_over: bool,
}

impl Events {
    async fn step(mut self) -> Option<(WatchEvent, Self)> {
        if self.is_over {
            return None;
        }
        let event = self.next().await;
        self.is_over = matches!(event, WatchEvent::Ended(_));
        Some((event, self))
    }

    async fn next(&mut self) -> WatchEvent {
        loop {
            match self.lines.next_line() {
                Ok(Some(line)) => return event(self.resource, &line),
                Ok(None) => {}
                Err(_) => return failed(format!("an event is over {LONGEST_EVENT} bytes")),
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Some(bytes) = frame.data_ref() {
                        self.lines.push(bytes);
                    }
                }
                Some(Err(error)) => return failed(chain(&error)),
                None if self.lines.has_rest() => {
                    return failed("the stream ended inside an event".to_owned());
                }
                None => return WatchEvent::Ended(WatchEnd::Closed),
            }
        }
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMetadata,
}

#[derive(Deserialize)]
struct BookmarkMetadata {
    #[serde(rename = "resourceVersion")]
    resource_version: String,
}

/// The type decides what the object is: that of an ERROR is a `Status`, never one of ours.
fn event(resource: Resource, line: &[u8]) -> WatchEvent {
    let plural = resource.plural();
    let Line { kind, object } = match serde_json::from_slice(line) {
        Ok(line) => line,
        Err(error) => {
            let problem = json_problem(&error);
            return WatchEvent::Undecodable(format!("an event of {plural}: {problem}"));
        }
    };
    let json = object.get().as_bytes();
    let item = |wrap: fn(_) -> WatchEvent| match decode(resource, json) {
        Ok(item) => wrap(item),
        Err(problem) => WatchEvent::Undecodable(problem.to_string()),
    };
    match kind.as_str() {
        "ADDED" | "MODIFIED" => item(WatchEvent::Applied),
        "DELETED" => item(WatchEvent::Deleted),
        "BOOKMARK" => match serde_json::from_str::<Bookmark>(object.get()) {
            Ok(bookmark) if !bookmark.metadata.resource_version.is_empty() => {
                WatchEvent::Bookmark(bookmark.metadata.resource_version)
            }
            Ok(_) | Err(_) => {
                WatchEvent::Undecodable(format!("a bookmark of {plural} without a version"))
            }
        },
        "ERROR" => WatchEvent::Ended(error_end(json)),
        _ => {
            let problem = format!("an event of {plural} of unknown type {kind}");
            WatchEvent::Undecodable(cut(problem))
        }
    }
}

fn error_end(json: &[u8]) -> WatchEnd {
    let Some(status) = status_of(json) else {
        return WatchEnd::Failed("an ERROR event without a readable Status".to_owned());
    };
    if is_version_unusable(&status) {
        return WatchEnd::Expired;
    }
    let text = format!(
        "ERROR event {} {}: {}",
        status.code, status.reason, status.message
    );
    WatchEnd::Failed(cut(text))
}

fn failed(text: String) -> WatchEvent {
    WatchEvent::Ended(WatchEnd::Failed(cut(text)))
}
