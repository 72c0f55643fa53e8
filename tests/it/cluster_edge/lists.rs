//! A list is complete or an error.

use std::sync::atomic::{AtomicUsize, Ordering};

use krane_domain::refusal::RefusalClass;
use krane_ports::{Cluster, Item};
use serde_json::{Value, json};

use super::server::Answer;
use super::{Rig, live, name, pod, pods, replica_sets, status};

fn page(items: &[Value], next: &str) -> Answer {
    let metadata = json!({"resourceVersion": "100", "continue": next});
    Answer::json(
        200,
        &json!({"kind": "PodList", "metadata": metadata, "items": items}),
    )
}

fn expired() -> Answer {
    let mut body = status(410, "Expired", "The provided continue parameter is too old");
    body["metadata"] = json!({"continue": "token-of-an-inconsistent-rest"});
    Answer::json(410, &body)
}

fn names(items: &[Item]) -> Vec<&str> {
    items.iter().map(name).collect()
}

/// unkeyed/unkey ea6f501c5a, PR #5624 (A40): the first list fetches each page once.
#[tokio::test]
async fn pages_are_joined_and_the_list_is_consistent() {
    let rig = Rig::new(|seen| match seen.query("continue") {
        None => page(&[pod("a", 1), pod("b", 2)], "next one"),
        Some("next one") => page(&[pod("c", 3)], ""),
        Some(other) => panic!("{other}"),
    })
    .await;
    let listed = rig.cluster.list(&pods()).await.unwrap();
    assert_eq!(names(&listed.items), ["a", "b", "c"]);
    assert_eq!(listed.resource_version, "100");
    let requests = rig.server.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert_eq!(request.path, "/api/v1/pods");
        assert_eq!(request.query("limit"), Some("500"));
        assert_eq!(
            request.query("labelSelector"),
            Some("app.kubernetes.io/managed-by=krane")
        );
        // With one, the answer may come from a cache that lags.
        assert_eq!(request.query("resourceVersion"), None);
    }
}

/// A server that lags behind may be at the other end of the connections there are (F3).
#[tokio::test]
async fn a_list_anew_takes_a_new_connection_and_asks_for_no_cached_answer() {
    let rig = Rig::answering(|| page(&[live(7)], "")).await;
    for _ in 0..2 {
        rig.cluster.list(&replica_sets()).await.unwrap();
    }
    assert_eq!(rig.server.connections(), 1);
    let listed = rig.cluster.list_anew(&replica_sets()).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    assert_eq!(rig.server.connections(), 2);
    for request in rig.server.requests() {
        assert_eq!(request.query("resourceVersion"), None);
    }
}

#[tokio::test]
async fn objects_krane_writes_are_listed_whole_and_an_empty_list_is_one() {
    let rig = Rig::answering(|| page(&[live(7)], "")).await;
    let listed = rig.cluster.list(&replica_sets()).await.unwrap();
    let [Item::Object(object)] = &listed.items[..] else {
        panic!("{listed:?}")
    };
    assert_eq!(object.value()["spec"]["replicas"], 1);

    let empty = json!({"metadata": {"resourceVersion": "5"}, "items": null});
    let rig = Rig::answering(move || Answer::json(200, &empty)).await;
    let listed = rig.cluster.list(&pods()).await.unwrap();
    assert!(listed.items.is_empty());
    assert_eq!(listed.resource_version, "5");
}

#[tokio::test]
async fn an_item_that_cannot_be_understood_costs_no_other() {
    let nameless = json!({"metadata": {"uid": "u", "resourceVersion": "3"}, "secret": "hunter2"});
    let items = vec![
        pod("a", 1),
        json!("hunter2"),
        nameless,
        pod("b", 2),
        json!(null),
    ];
    let rig = Rig::answering(move || page(&items, "")).await;
    let listed = rig.cluster.list(&pods()).await.unwrap();
    assert_eq!(names(&listed.items), ["a", "b"]);
    assert_eq!(listed.undecodable.len(), 3, "{:?}", listed.undecodable);
    assert!(!listed.undecodable.concat().contains("hunter2"));
}

/// kubernetes/kubernetes PR #67284, folio-pro/kdashboard#70, mlrun/mlrun PR #6360 (B10): the
/// continue token expires in a slow list, here on the third of five pages, and the answer offers
/// one for an inconsistent rest.
#[tokio::test]
async fn a_list_that_expires_half_way_starts_again_from_its_first_page() {
    let count = AtomicUsize::new(0);
    let rig = Rig::new(move |seen| {
        match (count.fetch_add(1, Ordering::SeqCst), seen.query("continue")) {
            (0, None) => page(&[pod("gone-by-now", 1)], "2"),
            (1, Some("2")) => page(&[pod("gone-too", 1)], "3"),
            (2, Some("3")) => expired(),
            (3, None) => page(&[pod("a", 2)], "2"),
            (4, Some("2")) => page(&[pod("b", 3)], "3"),
            (5, Some("3")) => page(&[pod("c", 4)], "4"),
            (6, Some("4")) => page(&[pod("d", 5)], "5"),
            (7, Some("5")) => page(&[pod("e", 6)], ""),
            other => panic!("{other:?}"),
        }
    })
    .await;
    let listed = rig.cluster.list(&pods()).await.unwrap();
    assert_eq!(names(&listed.items), ["a", "b", "c", "d", "e"]);
}

/// kubernetes/kubernetes PR #67284 (B10): never a part for the whole.
#[tokio::test]
async fn a_list_that_always_expires_is_an_error_after_four_attempts() {
    let rig = Rig::new(|seen| match seen.query("continue") {
        None => page(&[pod("a", 1)], "two"),
        Some(_) => expired(),
    })
    .await;
    let refusal = rig.cluster.list(&pods()).await.unwrap_err();
    assert_eq!(
        (refusal.class, refusal.code),
        (RefusalClass::Transient, 410)
    );
    assert!(refusal.message.contains("4 times"), "{refusal}");
    assert_eq!(rig.server.requests().len(), 8);
}

#[tokio::test]
async fn a_later_page_that_fails_fails_the_list() {
    for broken in [
        || Answer::json(500, &status(500, "InternalError", "boom")),
        || Answer::Cut(b"{\"metadata\":{\"resourceVersion\":\"100\"},\"items\":[".to_vec()),
        || {
            Answer::text(
                200,
                "application/json",
                "{\"metadata\":{\"resourceVersion\":\"100\"}",
            )
        },
        || Answer::Close,
    ] {
        let rig = Rig::new(move |seen| match seen.query("continue") {
            None => page(&[pod("a", 1)], "two"),
            Some(_) => broken(),
        })
        .await;
        let refusal = rig.cluster.list(&pods()).await.unwrap_err();
        assert_eq!(refusal.class, RefusalClass::Transient, "{refusal}");
    }
}

/// Nothing may pass for "the cluster is empty" but a list that says so.
#[tokio::test]
async fn an_answer_that_is_no_list_is_never_an_empty_one() {
    for body in [
        json!({}),
        json!({"items": []}),
        json!({"metadata": {}, "items": []}),
        json!({"metadata": {"resourceVersion": ""}, "items": []}),
        json!([]),
        status(0, "", ""),
    ] {
        let text = body.to_string();
        let rig = Rig::answering(move || Answer::json(200, &body)).await;
        assert!(rig.cluster.list(&pods()).await.is_err(), "{text}");
    }
}

#[tokio::test]
async fn a_server_that_repeats_a_page_for_ever_does_not_fill_the_memory() {
    let rig = Rig::answering(|| page(&[pod("a", 1)], "again")).await;
    let refusal = rig.cluster.list(&pods()).await.unwrap_err();
    assert_eq!(refusal.class, RefusalClass::Transient);
    assert_eq!(rig.server.requests().len(), 2);
}

#[tokio::test]
async fn a_page_of_huge_objects_is_asked_for_again_in_smaller_pieces() {
    let rig = Rig::new(|seen| match (seen.query("limit"), seen.query("continue")) {
        (Some("500"), None) => Answer::text(200, "application/json", &" ".repeat((64 << 20) + 1)),
        (Some("250"), None) => page(&[pod("a", 1)], "two"),
        (Some("250"), Some("two")) => page(&[pod("b", 2)], ""),
        other => panic!("{other:?}"),
    })
    .await;
    let listed = rig.cluster.list(&pods()).await.unwrap();
    assert_eq!(names(&listed.items), ["a", "b"]);
}
