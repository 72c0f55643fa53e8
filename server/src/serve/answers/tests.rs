//! What of an answer counts, and until when.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::stream;
use http_body_util::BodyExt;

use super::{StaysOpen, UnderWay};
use crate::bounds::{Bounds, Quota};
use crate::room::Room;
use crate::serve::Patience;
use crate::serve::crowd::Crowd;

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const MOST: usize = 4_096;

fn room() -> Room {
    Room::new(Quota {
        shared: 2 * MOST,
        reserved: 0,
        guaranteed: 0,
        per_sender: MOST,
    })
}

/// An answer that stays open, in parts of these sizes.
fn answer(room: &Room, parts: &[usize]) -> Body {
    let place = Room::new(Bounds::RPC.requests).enter(Some(PEER)).unwrap();
    let entry = Crowd::new(Bounds::RPC).enter(PEER).unwrap();
    let under_way = UnderWay::new(
        place,
        (room.clone(), Some(PEER)),
        entry.activity().begin(),
        Patience::draining(Duration::from_secs(1)),
    );
    let parts: Vec<Result<Bytes, Infallible>> = parts
        .iter()
        .map(|length| Ok(Bytes::from(vec![0_u8; *length])))
        .collect();
    let mut response = Response::new(Body::from_stream(stream::iter(parts)));
    response.extensions_mut().insert(StaysOpen);
    under_way.answer(response).into_body()
}

/// The next part, as hyper and h2 have it until it was written.
async fn part(answer: &mut Body) -> Option<Result<Bytes, axum::Error>> {
    let frame = answer.frame().await?;
    Some(frame.map(|frame| frame.into_data().unwrap()))
}

fn all_is_free(room: &Room) -> bool {
    room.none_yet(Some(PEER)).grow(MOST)
}

/// (X1): a watch may say more than fits at once, to a peer that takes all of it.
#[tokio::test]
async fn of_an_answer_that_stays_open_only_what_is_not_written_counts() {
    let room = room();
    let mut answer = answer(&room, &[MOST / 4; 12]);
    let mut taken = 0;
    for _ in 0..12 {
        let part = part(&mut answer).await.unwrap().unwrap();
        assert!(!all_is_free(&room), "it counts until it is written");
        taken += part.len();
        drop(part);
        assert!(all_is_free(&room), "though the answer goes on");
    }
    assert_eq!(taken, 3 * MOST);
    assert!(part(&mut answer).await.is_none());
}

#[tokio::test]
async fn an_answer_is_broken_off_when_too_much_of_it_waits() {
    let room = room();
    let mut slow = answer(&room, &[MOST / 4; 5]);
    let mut waiting = Vec::new();
    for _ in 0..4 {
        waiting.push(part(&mut slow).await.unwrap().unwrap());
    }
    assert!(part(&mut slow).await.unwrap().is_err());
    drop(waiting);
    assert!(all_is_free(&room));

    let mut large = answer(&room, &[MOST + 1]);
    assert!(part(&mut large).await.unwrap().is_err());
    assert!(all_is_free(&room));
}

/// hyper is done with such an answer long before its peer is.
#[tokio::test]
async fn an_answer_in_one_part_counts_until_it_is_written() {
    let room = room();
    let mut whole = answer(&room, &[MOST]);
    let part = part(&mut whole).await.unwrap().unwrap();
    drop(whole);
    assert!(!room.none_yet(Some(PEER)).grow(1));
    drop(part);
    assert!(all_is_free(&room));
}
