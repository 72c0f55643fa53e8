//! Calls with one answer: a deadline around the whole, a second try when the connection broke.

use bytes::Bytes;
use http::HeaderValue;
use http::uri::PathAndQuery;
use krane_proto::codes;
use krane_proto::raw::RawCodec;
use secrecy::{ExposeSecret as _, SecretString};
use tonic::client::Grpc;
use tonic::{Request, Status};

use super::Shared;
use super::call::{Answered, Call};
use super::dial::Connection;
use super::failure::{Failure, SecondTry};
use crate::wire::WireRequest;

/// Large enough for every state there is, small enough for the memory of a pod.
const LARGEST_MESSAGE: usize = 64 << 20;

/// The message that answers `request`.
pub(super) async fn call(shared: &Shared, request: &WireRequest) -> Result<Bytes, Failure> {
    let deadline = shared.timing.unary;
    // Around everything: tonic's own deadlines end with the headers of the answer.
    let result = match tokio::time::timeout(deadline, twice(shared, request)).await {
        Ok(result) => result,
        Err(_) => Err(Failure::timed_out(deadline)),
    };
    let code = result
        .as_ref()
        .map_or_else(|failure| codes::name(failure.code), |_| "ok");
    shared.observer.call(request.method, code);
    result
}

async fn twice(shared: &Shared, request: &WireRequest) -> Result<Bytes, Failure> {
    match once(shared, request).await {
        Err(failure) if failure.second_try != SecondTry::Pointless => once(shared, request).await,
        result => result,
    }
}

async fn once(shared: &Shared, request: &WireRequest) -> Result<Bytes, Failure> {
    Exchange::start(shared, request)
        .await?
        .unary(shared, request)
        .await
}

/// One try, and the date of its answer.
pub(super) async fn dated(
    shared: &Shared,
    request: &WireRequest,
) -> (Result<Bytes, Failure>, Option<String>) {
    match Exchange::start(shared, request).await {
        Ok(mut exchange) => {
            let result = exchange.unary(shared, request).await;
            (result, exchange.answered.date())
        }
        Err(failure) => (Err(failure), None),
    }
}

/// A call about to go out.
pub(super) struct Exchange {
    pub grpc: Grpc<Call>,
    pub path: PathAndQuery,
    pub connection: Connection,
    answered: Answered,
    token: SecretString,
}

impl Exchange {
    pub(super) async fn start(shared: &Shared, request: &WireRequest) -> Result<Self, Failure> {
        let token = (shared.token)();
        let mut authorization = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()))
            .map_err(|error| Failure::unusable_token(&error))?;
        authorization.set_sensitive(true);
        let path = PathAndQuery::from_static(request.path);
        let connection = shared
            .link
            .connection()
            .await
            .map_err(|error| Failure::dial(&error))?;
        let answered = Answered::default();
        let call = Call::new(connection.sender.clone(), authorization, answered.clone());
        let grpc = Grpc::with_origin(call, shared.link.origin().clone())
            .max_decoding_message_size(LARGEST_MESSAGE);
        Ok(Self {
            grpc,
            path,
            connection,
            answered,
            token,
        })
    }

    async fn unary(&mut self, shared: &Shared, request: &WireRequest) -> Result<Bytes, Failure> {
        let path = self.path.clone();
        let message = Request::new(request.body.clone());
        let result = self.grpc.unary(message, path, RawCodec).await;
        result
            .map(tonic::Response::into_inner)
            .map_err(|status| self.failure(shared, &status))
    }

    /// What a status of this exchange means.
    pub(super) fn failure(&self, shared: &Shared, status: &Status) -> Failure {
        shared.link.note(&self.connection, status);
        Failure::of(status, self.answered.get(), &self.token)
    }
}
