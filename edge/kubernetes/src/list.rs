//! Lists: page by page, each item cut down as soon as its page is there, complete or an error.

use std::mem;

use krane_domain::kinds::WatchSpec;
use krane_domain::object::{LiveObject, Resource, Undecodable};
use krane_domain::pod::PodDigest;
use krane_domain::refusal::{Refusal, RefusalClass};
use krane_ports::{Item, Listed};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::calls::KubeCalls;
use super::connection::CallError;
use super::reply::{json_problem, unreadable};
use super::request::{Call, Verb, collection_path, push_query};

const PAGE_ITEMS: usize = 500;
/// Above this a page is asked for again with half its items, so that memory stays bounded.
const PAGE_BYTES: usize = 64 << 20;
/// A page that timed out is asked again with a part of its items, and twice the time (D49) …
const SMALLER: usize = 4;
/// … unless it had so few.
const FEWEST: usize = 10;
const RESTARTS: usize = 3;

/// A list to be read page by page.
pub(super) struct Pages<'a> {
    /// Whole objects or their metadata.
    pub(super) verb: Verb,
    /// Plural of the kind.
    pub(super) resource: &'static str,
    /// Path of the collection.
    pub(super) path: &'a str,
    /// Empty for none.
    pub(super) label_selector: &'a str,
    /// Empty for none.
    pub(super) field_selector: &'a str,
}

/// Lists everything a watch tells about, consistent at one resource version.
pub(super) async fn list(calls: &KubeCalls, spec: &WatchSpec) -> Result<Listed, Refusal> {
    let path = collection_path(spec.resource, spec.namespace)?;
    let pages = Pages {
        verb: Verb::List,
        resource: spec.resource.plural(),
        path: &path,
        label_selector: &spec.label_selector,
        field_selector: &spec.field_selector,
    };
    let collect = |json: &[u8], listed: &mut Listed| collect(spec.resource, json, listed);
    pages.read(calls, collect).await
}

impl Pages<'_> {
    /// Reads all pages of one moment. `collect` adds the items of a page and gives the token of the
    /// next one, empty after the last.
    pub(super) async fn read<T: Default>(
        &self,
        calls: &KubeCalls,
        collect: impl Fn(&[u8], &mut T) -> Result<String, String>,
    ) -> Result<T, Refusal> {
        let mut expired = None;
        for _ in 0..=RESTARTS {
            match self.attempt(calls, &collect).await {
                Ok(listed) => return Ok(listed),
                // The continue token of a slow list expires; the rest that the server offers then
                // is of another moment, and objects in between would look as if they were gone.
                Err(refusal) if refusal.code == 410 => expired = Some(refusal),
                Err(refusal) => return Err(refusal),
            }
        }
        let last = expired.map(|refusal| refusal.message).unwrap_or_default();
        Err(Refusal {
            class: RefusalClass::Transient,
            code: 410,
            message: format!(
                "the list expired {} times before its last page: {last}",
                RESTARTS + 1
            ),
            retry_after: None,
        })
    }

    async fn attempt<T: Default>(
        &self,
        calls: &KubeCalls,
        collect: &impl Fn(&[u8], &mut T) -> Result<String, String>,
    ) -> Result<T, Refusal> {
        let mut listed = T::default();
        let mut token = String::new();
        let mut most_items = PAGE_ITEMS;
        let mut page_items = PAGE_ITEMS;
        loop {
            let mut target = self.path.to_owned();
            let limit = page_items.to_string();
            push_query(
                &mut target,
                &[
                    ("labelSelector", self.label_selector),
                    ("fieldSelector", self.field_selector),
                    ("limit", &limit),
                    ("continue", &token),
                ],
            );
            let call = Call::new(self.verb, self.resource, target);
            let reply = match calls.run_within(&call, PAGE_BYTES).await {
                Err(CallError::TooLarge { .. }) if page_items > 1 => {
                    page_items /= 2;
                    most_items = page_items;
                    continue;
                }
                Err(CallError::TimedOut(_))
                    if page_items > FEWEST && calls.timeouts().reads_grow() =>
                {
                    page_items /= SMALLER;
                    continue;
                }
                other => other?,
            };
            if !reply.is_success() {
                return Err(reply.refusal());
            }
            page_items = page_items.saturating_mul(2).min(most_items);
            let next = collect(&reply.body, &mut listed)
                .map_err(|problem| unreadable(reply.code, problem))?;
            if next.is_empty() {
                return Ok(listed);
            }
            if next == mem::replace(&mut token, next.clone()) {
                return Err(unreadable(
                    reply.code,
                    "the list does not advance: the same page again",
                ));
            }
        }
    }
}

#[derive(Deserialize)]
struct Page<'a> {
    metadata: PageMetadata,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct PageMetadata {
    #[serde(rename = "resourceVersion")]
    resource_version: String,
    #[serde(default, rename = "continue")]
    token: Option<String>,
}

/// Adds a page's items and returns the token of the next page.
fn collect(resource: Resource, json: &[u8], listed: &mut Listed) -> Result<String, String> {
    let page: Page<'_> = serde_json::from_slice(json)
        .map_err(|error| format!("no list of {}: {}", resource.plural(), json_problem(&error)))?;
    if page.metadata.resource_version.is_empty() {
        return Err(format!(
            "a list of {} without a resourceVersion",
            resource.plural()
        ));
    }
    if listed.resource_version.is_empty() {
        listed.resource_version = page.metadata.resource_version;
    }
    for json in page.items.unwrap_or_default() {
        match decode(resource, json.get().as_bytes()) {
            Ok(item) => listed.items.push(item),
            Err(problem) => listed.undecodable.push(problem.to_string()),
        }
    }
    Ok(page.metadata.token.unwrap_or_default())
}

/// One object, as its kind is kept.
pub(super) fn decode(resource: Resource, json: &[u8]) -> Result<Item, Undecodable> {
    match resource {
        Resource::Pod => PodDigest::from_slice(json).map(Item::Pod),
        Resource::Namespace
        | Resource::CiliumNetworkPolicy
        | Resource::Secret
        | Resource::ReplicaSet
        | Resource::Deployment
        | Resource::Service
        | Resource::PodDisruptionBudget
        | Resource::HorizontalPodAutoscaler => {
            LiveObject::from_slice(resource, json).map(Item::Object)
        }
    }
}
