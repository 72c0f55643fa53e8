//! Lists of metadata alone: of kinds krane does not write, read with the rights of a person.

use std::collections::BTreeMap;
use std::sync::Arc;

use krane_domain::labels;
use krane_domain::refusal::Refusal;
use serde::Deserialize;

use super::calls::KubeCalls;
use super::connection::KubeConnection;
use super::limits::{CallLimits, CallTimeouts};
use super::list::Pages;
use super::reply::json_problem;
use super::request::Verb;

/// Lists what there is of a kind, without looking into it.
#[derive(Debug)]
pub struct MetadataLister {
    calls: KubeCalls,
}

/// Name and labels of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ObjectMetadata {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

impl ObjectMetadata {
    /// Whether it carries krane's label.
    pub fn is_ours(&self) -> bool {
        self.labels
            .get(labels::MANAGED_BY)
            .is_some_and(|manager| manager == labels::MANAGER)
    }
}

impl MetadataLister {
    /// Over this connection.
    pub fn new(
        connection: Arc<KubeConnection>,
        limits: CallLimits,
        timeouts: CallTimeouts,
    ) -> Self {
        Self {
            calls: KubeCalls::new(connection, limits, timeouts),
        }
    }

    /// All objects of a kind in all namespaces, page by page. `api` is the path of its API:
    /// `/api/v1`, `/apis/apps/v1`, …
    pub async fn list(
        &self,
        api: &str,
        resource: &'static str,
        label_selector: &str,
    ) -> Result<Vec<ObjectMetadata>, Refusal> {
        let path = format!("{api}/{resource}");
        let pages = Pages {
            verb: Verb::ListMetadata,
            resource,
            path: &path,
            label_selector,
            field_selector: "",
        };
        let collect = |json: &[u8], all: &mut Vec<ObjectMetadata>| {
            let page: Page = serde_json::from_slice(json)
                .map_err(|error| format!("{resource}: {}", json_problem(&error)))?;
            let items = page.items.unwrap_or_default();
            all.extend(items.into_iter().map(|item| item.metadata));
            Ok(page.metadata.token)
        };
        pages.read(&self.calls, collect).await
    }
}

#[derive(Deserialize)]
struct Page {
    metadata: PageMetadata,
    /// Null for none.
    items: Option<Vec<PageItem>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PageMetadata {
    #[serde(rename = "continue")]
    token: String,
}

#[derive(Deserialize)]
struct PageItem {
    metadata: ObjectMetadata,
}
