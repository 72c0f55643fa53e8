//! What a request has to get past: room for what it sends, and once all of it is there, for its call.
//!
//! A place in the room of calls is taken when the request has arrived, so that whoever sends slowly
//! keeps nobody out. Until then a sender is limited in how many requests it is sending, and in how
//! many bytes of them are here; the bytes count until the call was answered.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use http::Request;
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;
use tonic::Status;

use crate::bounds::{BYTES, CALLS, SENDING};
use crate::connect::{self, LARGEST_REQUEST};
use crate::room::{Place, Room};

/// The rooms of one server; clones share them.
#[derive(Clone, Debug)]
pub(super) struct Rooms {
    secrets: Room,
    scheduler: Room,
    others: Room,
    sending: Room,
    bytes: Room,
}

/// What is held for one call, by the call and by the body of its request.
#[derive(Debug)]
struct Held {
    place: Option<Place>,
    bytes: Place,
}

/// The way of one call into its room.
#[derive(Clone, Debug)]
pub(super) struct Admission {
    /// None for calls that are always answered.
    room: Option<Room>,
    sending: Room,
    bytes: Room,
    peer: Option<IpAddr>,
    /// Whether its request is a stream of many messages, which may never end.
    is_open: bool,
    stays_open: bool,
    held: Arc<Mutex<Held>>,
}

fn full() -> Status {
    Status::unavailable("too many calls at once")
}

fn too_much() -> Status {
    Status::unavailable("too much is being sent at once")
}

impl Rooms {
    pub(super) fn new() -> Self {
        let calls = || Room::new(CALLS);
        Self {
            secrets: calls(),
            scheduler: calls(),
            others: calls(),
            sending: Room::new(SENDING),
            bytes: Room::new(BYTES),
        }
    }

    /// The way of a call of this path.
    pub(super) fn admission(&self, path: &str, peer: Option<IpAddr>) -> Admission {
        let is_of = |service: &str| path.starts_with(service);
        // Probes are answered however busy the server is.
        let room = if path == "/grpc.health.v1.Health/Check" {
            None
        } else if is_of("/krane.v1.SecretsService/") {
            Some(&self.secrets)
        } else if is_of("/krane.v1.SchedulerService/") {
            Some(&self.scheduler)
        } else {
            Some(&self.others)
        };
        Admission {
            room: room.cloned(),
            sending: self.sending.clone(),
            bytes: self.bytes.clone(),
            peer,
            is_open: is_of("/grpc.reflection."),
            stays_open: is_of("/grpc.reflection.") || path.ends_with("/Watch"),
            held: Arc::new(Mutex::new(Held {
                place: None,
                bytes: self.bytes.none_yet(peer),
            })),
        }
    }
}

impl Admission {
    /// Takes the place of the call in its room.
    fn enter(&self) -> Result<(), Status> {
        let Some(room) = &self.room else {
            return Ok(());
        };
        let mut held = self.held.lock();
        if held.place.is_none() {
            held.place = Some(room.enter(self.peer).ok_or_else(full)?);
        }
        Ok(())
    }

    /// Gives back all that the call holds: its handler has answered, and how long its peer takes
    /// for the answer is not the room's concern.
    pub(super) fn leave(&self) {
        let mut held = self.held.lock();
        *held = Held {
            place: None,
            bytes: self.bytes.none_yet(self.peer),
        };
    }

    /// Whether its answer has no end of its own.
    pub(super) const fn stays_open(&self) -> bool {
        self.stays_open
    }

    /// The request as its handler reads it: its body ends in an error where there is no room.
    pub(super) fn receive(&self, request: Request<Body>) -> Result<Request<Body>, Status> {
        if self.is_open || request.body().is_end_stream() {
            self.enter()?;
            return Ok(request);
        }
        let sending = self.sending.enter(self.peer).ok_or_else(too_much)?;
        Ok(request.map(|body| {
            Body::new(Received {
                body,
                admission: self.clone(),
                sending: Some(sending),
                counted: 0,
            })
        }))
    }
}

/// The body of a request on its way in.
struct Received {
    body: Body,
    admission: Admission,
    /// Until all of it is there.
    sending: Option<Place>,
    counted: usize,
}

impl Received {
    fn count(&mut self, length: usize) -> Result<(), Status> {
        // What is beyond is dropped as it comes.
        let more = length.min(LARGEST_REQUEST.saturating_sub(self.counted));
        self.counted += more;
        let has_room = self.admission.held.lock().bytes.grow(more);
        if has_room { Ok(()) } else { Err(too_much()) }
    }
}

impl HttpBody for Received {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let this = self.get_mut();
        if this.sending.is_none() {
            return Poll::Ready(None);
        }
        let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        let is_last = frame.as_ref().is_none_or(|frame| {
            frame.as_ref().map_or(true, Frame::is_trailers) || this.body.is_end_stream()
        });
        let checked = match &frame {
            Some(Ok(frame)) => frame
                .data_ref()
                .map_or(Ok(()), |data| this.count(data.len())),
            Some(Err(_)) | None => Ok(()),
        };
        let is_whole = is_last && !matches!(frame, Some(Err(_)));
        let checked = checked.and_then(|()| {
            if is_whole {
                this.admission.enter()
            } else {
                Ok(())
            }
        });
        if is_last || checked.is_err() {
            this.sending = None;
        }
        Poll::Ready(match (checked, frame) {
            (Err(refused), _) => Some(Err(refused.into())),
            (Ok(()), frame) => {
                frame.map(|frame| frame.map_err(|error| connect::unreadable(error).into()))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.sending.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
