//! The two forms of a message: protobuf and its JSON.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderValue};
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tonic::Status;

/// How a request is written; its answer is written the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Proto,
    Json,
}

impl Codec {
    /// The codec that the headers name, if it is a known one.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut named = headers.get_all(CONTENT_TYPE).into_iter();
        let (Some(content_type), None) = (named.next(), named.next()) else {
            return None;
        };
        let content_type = content_type.to_str().ok()?.to_ascii_lowercase();
        match content_type.split_once(';') {
            None if content_type.trim() == "application/proto" => Some(Self::Proto),
            None if content_type.trim() == "application/json" => Some(Self::Json),
            Some((kind, charset)) if kind.trim() == "application/json" => {
                let charset = charset.trim().strip_prefix("charset=")?;
                matches!(charset, "utf-8" | "\"utf-8\"").then_some(Self::Json)
            }
            None | Some(_) => None,
        }
    }

    pub(super) const fn content_type(self) -> HeaderValue {
        match self {
            Self::Proto => HeaderValue::from_static("application/proto"),
            Self::Json => HeaderValue::from_static("application/json"),
        }
    }

    /// Reads a message. The error does not repeat what was sent: it may be a secret.
    pub(super) fn decode<Q>(self, body: &Bytes) -> Result<Q, Status>
    where
        Q: Message + Default + DeserializeOwned,
    {
        let message = match self {
            Self::Proto => Q::decode(body.clone()).ok(),
            // Some clients send nothing for a message without fields.
            Self::Json if body.is_empty() => Some(Q::default()),
            Self::Json => serde_json::from_slice(body).ok(),
        };
        message.ok_or_else(malformed)
    }

    pub(super) fn encode<A: Message + Serialize>(self, message: &A) -> Result<Bytes, Status> {
        match self {
            Self::Proto => Ok(message.encode_to_vec().into()),
            Self::Json => serde_json::to_vec(message)
                .map(Bytes::from)
                .map_err(|_| Status::internal("the answer cannot be written as JSON")),
        }
    }
}

/// What a request is answered that is not the message it should be, in every protocol.
pub(crate) fn malformed() -> Status {
    Status::invalid_argument("the request is not a valid message")
}
