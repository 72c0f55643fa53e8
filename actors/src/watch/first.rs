//! The complete lists before a controller starts.

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use krane_domain::refusal::RefusalClass;
use krane_ports::Cluster;

use super::follow::{failure, pause};
use super::words::tell_forbidden;
use crate::outage;
use crate::status::StatusBoard;
use crate::store::Store;

/// Lists everything a controller watches, once, into its store. A controller starts only after
/// this: an unknown cluster must not look like an empty one. A kind that the API server does not
/// know counts as listed and empty; one that krane may not list is unknown, and only the primary
/// kind and pods are waited for.
pub async fn first_lists(
    store: &Store,
    cluster: &dyn Cluster,
    board: &StatusBoard,
) -> Result<(), String> {
    let mut specs = store.controller().watches(store.rules());
    // One kind that cannot be listed must not make the others list again and again.
    specs.retain(|spec| store.with(|memory| !memory.is_listed_already(spec.resource, board.now())));
    let lists = specs.iter().map(|spec| async move {
        let asked_for = store.with(|memory| memory.list_wait(spec.resource, board.now()));
        if !asked_for.is_zero() {
            pause(asked_for).await;
        }
        store.with(|memory| memory.view.list_begins(spec.resource));
        (spec, cluster.list(spec).await)
    });
    let mut lists: FuturesUnordered<_> = lists.collect();
    let mut failed = None;
    let mut is_read = true;
    while let Some((spec, listed)) = lists.next().await {
        let resource = spec.resource;
        match listed {
            Ok(listed) => store.with(|memory| {
                memory
                    .listed
                    .insert(resource, listed.resource_version.clone());
                memory.note_first_list(resource, None, board.now());
                memory.replace(resource, listed, board.now());
                memory.broken_watches.remove(&resource);
            }),
            Err(refusal) if refusal.class == RefusalClass::KindMissing => {
                store.with(|memory| memory.kind_is_missing(resource, board.now()));
            }
            Err(refusal) => {
                let failure = failure(&refusal);
                let asked_for = refusal.retry_after.unwrap_or_default();
                let is_forbidden = refusal.is_forbidden();
                is_read &= is_forbidden;
                if !is_forbidden || store.controller().is_essential(resource) {
                    let kinds = resource.plural();
                    failed.get_or_insert_with(|| {
                        format!("the first list of {kinds} failed: {refusal}")
                    });
                }
                let is_news = store.with(|memory| {
                    memory.note_first_list(resource, Some(asked_for), board.now());
                    if is_forbidden {
                        return memory.kind_is_forbidden(resource, failure, board.now());
                    }
                    memory.watch_failed(resource, failure, board.now());
                    false
                });
                if is_news {
                    let controller = store.controller().name();
                    tell_forbidden(controller, resource, &refusal.to_string());
                }
            }
        }
    }
    if is_read {
        store.read();
    }
    if failed.is_none() {
        store.listed();
    }
    outage::look(store, board);
    failed.map_or(Ok(()), Err)
}
