//! What a controller watches.

use std::collections::BTreeMap;

use crate::labels;
use crate::object::Resource;

/// What a controller watches: one list and watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchSpec {
    /// The kind of objects.
    pub resource: Resource,
    /// Restrict to one namespace; all when absent.
    pub namespace: Option<&'static str>,
    /// Label selector, empty for none.
    pub label_selector: String,
    /// Field selector, empty for none.
    pub field_selector: String,
}

impl WatchSpec {
    /// Objects of ours of this kind, everywhere, that satisfy these terms too.
    pub(super) fn ours(resource: Resource, terms: &[&str]) -> Self {
        let ours = is(labels::MANAGED_BY, labels::MANAGER);
        let terms: Vec<&str> = std::iter::once(&*ours)
            .chain(terms.iter().copied())
            .collect();
        Self::of(resource, &terms)
    }

    /// Objects of this kind that satisfy these terms, whoever manages them.
    pub(super) fn of(resource: Resource, terms: &[&str]) -> Self {
        Self {
            resource,
            namespace: None,
            label_selector: terms.join(","),
            field_selector: String::new(),
        }
    }

    /// The same in one namespace.
    pub(super) fn within(self, namespace: &'static str) -> Self {
        Self {
            namespace: Some(namespace),
            ..self
        }
    }

    /// Whether an object with these labels is shown. Knows the terms that are used: `key=value`,
    /// `key` and `!key`.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let mut terms = self
            .label_selector
            .split(',')
            .filter(|term| !term.is_empty());
        terms.all(
            |term| match (term.strip_prefix('!'), term.split_once('=')) {
                (Some(key), _) => !labels.contains_key(key),
                (None, Some((key, value))) => labels.get(key).is_some_and(|live| live == value),
                (None, None) => labels.contains_key(term),
            },
        )
    }
}

/// The term that a label has this value.
pub(super) fn is(key: &str, value: &str) -> String {
    format!("{key}={value}")
}
