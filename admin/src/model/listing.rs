//! Which workloads are listed, and in which order.

use serde::{Deserialize, Serialize};

use super::{View, WorkloadView};

/// Rows of one page of a list.
pub const PAGE: usize = 100;

/// What a person asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ListQuery {
    /// Words that a workload must have in namespace, name, id or state.
    #[serde(default)]
    pub filter: String,
    /// The order.
    #[serde(default)]
    pub sort: Sort,
    /// Which page, from 1 on.
    #[serde(default)]
    pub page: usize,
}

/// An order of workloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sort {
    /// The worst first.
    #[default]
    State,
    /// By namespace and name.
    Name,
    /// The fewest ready pods of those wanted first.
    Pods,
    /// The newest version first.
    Version,
    /// The one written last first.
    Applied,
}

impl Sort {
    /// Its name in queries.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Name => "name",
            Self::Pods => "pods",
            Self::Version => "version",
            Self::Applied => "applied",
        }
    }
}

/// A page of a list.
#[derive(Debug)]
pub struct Listing<'a> {
    /// The rows.
    pub rows: Vec<&'a WorkloadView>,
    /// Workloads that match, on all pages.
    pub matching: usize,
    /// Which page it is, from 1 on.
    pub page: usize,
    /// How many there are, at least one.
    pub pages: usize,
}

impl View {
    /// The page asked for, or the last one where there are fewer.
    #[must_use]
    pub fn list(&self, query: &ListQuery) -> Listing<'_> {
        let mut rows: Vec<&WorkloadView> = self.matching(&query.filter).collect();
        let matching = rows.len();
        match query.sort {
            // They are in that order.
            Sort::State => {}
            Sort::Name => rows.sort_by_key(|it| (&it.namespace, &it.name, it.kind)),
            Sort::Pods => rows.sort_by_key(|it| {
                let wanted = it.replicas.map_or(0, |wanted| wanted as usize);
                let missing = wanted.saturating_sub(it.ready);
                (std::cmp::Reverse(missing), &it.namespace, &it.name)
            }),
            Sort::Version => rows.sort_by_key(|it| std::cmp::Reverse(it.version)),
            Sort::Applied => rows.sort_by_key(|it| std::cmp::Reverse(it.applied_at)),
        }
        let pages = matching.div_ceil(PAGE).max(1);
        let page = query.page.clamp(1, pages);
        let rows = rows.into_iter().skip((page - 1) * PAGE).take(PAGE);
        Listing {
            rows: rows.collect(),
            matching,
            page,
            pages,
        }
    }
}
