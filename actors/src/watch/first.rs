//! The complete lists before a controller starts.

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use krane_domain::refusal::RefusalClass;
use krane_ports::Cluster;

use super::follow::{failure, pause};
use super::outage;
use crate::forbidden::tell_forbidden;
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
    specs.retain(|spec| !store.is_listed_already(spec.resource, board.now()));
    let lists = specs.iter().map(|spec| async move {
        let asked_for = store.list_wait(spec.resource, board.now());
        if !asked_for.is_zero() {
            pause(asked_for).await;
        }
        store.begin_list(spec.resource);
        (spec, cluster.list(spec).await)
    });
    let mut lists: FuturesUnordered<_> = lists.collect();
    let mut failed = None;
    let mut is_read = true;
    while let Some((spec, listed)) = lists.next().await {
        let resource = spec.resource;
        match listed {
            Ok(listed) => store.receive_first_list(resource, listed, board.now()),
            Err(refusal) if refusal.class == RefusalClass::KindMissing => {
                store.note_kind_missing(resource, board.now());
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
                let now = board.now();
                if !is_forbidden {
                    store.note_first_list_failed(resource, failure, asked_for, now);
                } else if store.note_first_list_forbidden(resource, failure, asked_for, now) {
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
