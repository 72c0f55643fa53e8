//! A pod's way to krane: Connect unary over HTTP/1.1.

use std::net::Ipv4Addr;

use bytes::Bytes;
use http::Request;
use http::header::{CONTENT_TYPE, HOST};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use krane_proto::krane::v1::{DecryptSecretsBlobRequest, DecryptSecretsBlobResponse};
use krane_testharness::{Failure, Outcome};
use prost::Message as _;
use serde_json::Value;

/// What the caller got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Got {
    /// Names and values, in order.
    Secrets(Vec<(String, String)>),
    /// A Connect error.
    Refused {
        status: u16,
        code: String,
        message: String,
    },
}

/// One call on a connection of its own.
pub(super) async fn ask(port: u16, request: &DecryptSecretsBlobRequest) -> Outcome<Got> {
    let stream = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::post("/krane.v1.SecretsService/DecryptSecretsBlob")
        .header(HOST, "krane")
        .header(CONTENT_TYPE, "application/proto")
        .header("connect-protocol-version", "1")
        .body(Full::new(Bytes::from(request.encode_to_vec())))?;
    let exchange = async {
        let answer = sender.send_request(request).await?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await?.to_bytes();
        Ok::<_, hyper::Error>((status, body))
    };
    let mut exchange = std::pin::pin!(exchange);
    let (status, body) = tokio::select! {
        answer = &mut exchange => answer?,
        ended = connection => {
            ended?;
            exchange.await?
        }
    };
    if status == 200 {
        let answer = DecryptSecretsBlobResponse::decode(body)?;
        let mut secrets: Vec<_> = answer.env_vars.into_iter().collect();
        secrets.sort();
        return Ok(Got::Secrets(secrets));
    }
    let error: Value = serde_json::from_slice(&body)
        .map_err(|_| Failure::new(format!("status {status} without a Connect error")))?;
    let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
    Ok(Got::Refused {
        status,
        code: text("code"),
        message: text("message"),
    })
}
