//! Desired-state streams.

use futures::FutureExt as _;
use krane_sim::control_plane::{Code, Kind, Method, samples};
use prost::Message as _;

use crate::support::{LIMIT, client, control, versions, watch};

#[tokio::test]
async fn rows_after_the_cursor_come_in_order_and_then_as_they_are_pushed() {
    let control = control().await;
    let mut client = client(&control).await;
    let all = (1..=250).map(|n| samples::apply(samples::deployment("ws", &format!("d{n}"))));
    assert_eq!(control.push_all(all).last(), Some(&250));

    let mut stream = watch(&mut client, 30).await.unwrap();
    assert_eq!(
        versions(&mut stream, 220).await,
        (31..=250).collect::<Vec<_>>()
    );
    control.push(samples::apply(samples::deployment("ws", "new")));
    assert_eq!(versions(&mut stream, 1).await, [251]);
    assert_eq!(control.look(|seen| seen.cursors(Kind::Deployments)), [30]);
}

#[tokio::test]
async fn a_replaced_row_is_streamed_only_when_history_is_kept() {
    for (keep, expected) in [(false, vec![2, 3]), (true, vec![1, 2, 3])] {
        let control = control().await;
        control.keep_history(keep);
        let web = samples::deployment("ws", "web");
        control.push(samples::apply(web.clone()));
        control.push(samples::apply(samples::deployment("ws", "other")));
        control.push(samples::delete(&web));
        let mut stream = watch(&mut client(&control).await, 0).await.unwrap();
        assert_eq!(versions(&mut stream, expected.len()).await, expected);
    }
}

/// As connect-go does it (D2a).
#[tokio::test]
async fn headers_wait_for_the_first_message() {
    let control = control().await;
    let mut client = client(&control).await;
    let mut opening = Box::pin(watch(&mut client, 0));
    let opened = |seen: &krane_sim::control_plane::Seen| {
        (seen.open_watches(Kind::Deployments) == 1).then_some(())
    };
    tokio::select! {
        biased;
        _ = &mut opening => panic!("headers came before a message"),
        opened = control.wait_for("the watch", LIMIT, opened) => opened.unwrap(),
    }
    assert!((&mut opening).now_or_never().is_none());
    control.push(samples::apply(samples::deployment("ws", "web")));
    let mut stream = opening.await.unwrap();
    assert_eq!(versions(&mut stream, 1).await, [1]);
}

#[tokio::test]
async fn a_cut_ends_open_streams_with_its_code_and_leaves_later_ones_alone() {
    let control = control().await;
    let mut client = client(&control).await;
    control.push(samples::apply(samples::deployment("ws", "web")));

    let mut stream = watch(&mut client, 0).await.unwrap();
    versions(&mut stream, 1).await;
    control.cut_streams(Code::Unavailable);
    assert_eq!(
        stream.message().await.unwrap_err().code(),
        Code::Unavailable
    );

    let mut stream = watch(&mut client, 0).await.unwrap();
    versions(&mut stream, 1).await;
    control.cut_streams(Code::Ok);
    assert!(stream.message().await.unwrap().is_none());

    let codes = |seen: &krane_sim::control_plane::Seen| {
        let watches = seen.of(Method::Watch(Kind::Deployments));
        watches
            .map(krane_sim::control_plane::Request::code)
            .collect::<Option<Vec<_>>>()
    };
    let codes = control.wait_for("both ends", LIMIT, codes).await.unwrap();
    assert_eq!(codes, [Code::Unavailable, Code::Ok]);
}

#[tokio::test]
async fn a_refused_watch_ends_before_its_first_message() {
    let control = control().await;
    let mut client = client(&control).await;
    control.push(samples::apply(samples::deployment("ws", "web")));
    control.fail(Method::Watch(Kind::Deployments), Code::PermissionDenied, 1);
    assert_eq!(
        watch(&mut client, 0).await.unwrap_err().code(),
        Code::PermissionDenied
    );
    control.fail(Method::Watch(Kind::Deployments), Code::Ok, 1);
    let mut stream = watch(&mut client, 0).await.unwrap();
    assert!(stream.message().await.unwrap().is_none());
    let mut stream = watch(&mut client, 0).await.unwrap();
    assert_eq!(versions(&mut stream, 1).await, [1]);
}

#[tokio::test]
async fn spoiled_and_raw_messages_go_out_as_they_are() {
    let control = control().await;
    let web = samples::apply(samples::deployment("ws", "web"));
    let version = control.push_spoiled(web.clone(), samples::truncated);
    let mut stream = watch(&mut client(&control).await, 0).await.unwrap();
    assert_eq!(
        stream.message().await.unwrap_err().code(),
        Code::Internal,
        "does not decode"
    );
    assert!(
        krane_proto::ctrl::v1::DeploymentState::decode(samples::truncated(&web.encode_to_vec()))
            .is_err()
    );

    // A good state of the same object takes the place of a bad one; raw bytes belong to no object.
    assert_eq!(control.push(web), version + 1);
    assert_eq!(
        control.push_raw(Kind::Deployments, |_| samples::garbage()),
        version + 2
    );
    let mut stream = watch(&mut client(&control).await, 0).await.unwrap();
    assert_eq!(versions(&mut stream, 1).await, [version + 1]);
    assert!(stream.message().await.is_err());
}

#[tokio::test]
async fn a_restored_copy_is_streamed_and_its_versions_repeat() {
    let control = control().await;
    let mut client = client(&control).await;
    control.push(samples::apply(samples::deployment("ws", "old")));
    let backup = control.backup();
    control.push(samples::apply(samples::deployment("ws", "lost")));
    let mut before = watch(&mut client, 0).await.unwrap();
    assert_eq!(versions(&mut before, 2).await, [1, 2]);

    control.restore(&backup);
    assert_eq!(control.newest(Kind::Deployments), 1);
    let mut after = watch(&mut client, 0).await.unwrap();
    assert_eq!(versions(&mut after, 1).await, [1]);
    assert_eq!(
        control.push(samples::apply(samples::deployment("ws", "new"))),
        2
    );
    assert_eq!(versions(&mut after, 1).await, [2]);
    // Who is past the copy hears of nothing until its versions are passed.
    assert!(before.message().now_or_never().is_none());
}
