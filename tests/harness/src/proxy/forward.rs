//! The server, and what it does with one request.

use std::{future::pending, io, sync::Arc, time::Instant};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kube::Client;
use tokio::{net::TcpListener, task::JoinSet, time::sleep};

use super::{Action, Call, Recorded, State};

type Answer = Response<UnsyncBoxBody<Bytes, io::Error>>;

pub(super) async fn serve(listener: TcpListener, client: Client, state: Arc<State>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        while connections.try_join_next().is_some() {}
        let _ = stream.set_nodelay(true);
        let (client, state) = (client.clone(), Arc::clone(&state));
        let mut cuts = state.cuts.subscribe();
        connections.spawn(async move {
            let service = service_fn(move |request| {
                let (client, state) = (client.clone(), Arc::clone(&state));
                async move { handle(request, client, &state).await }
            });
            let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // Broken connections are part of the game, and so are requests that never end.
            tokio::select! {
                _ = served => {}
                _ = cuts.changed() => {}
            }
        });
    }
}

async fn handle(request: Request<Incoming>, client: Client, state: &State) -> io::Result<Answer> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let call = {
        let mut records = state.records.lock();
        let call = Call::new(records.len(), &parts, body.clone());
        records.push(Recorded {
            call: call.clone(),
            answered: None,
        });
        call
    };
    state.changed.notify_waiters();
    let script = Arc::clone(&*state.script.lock());
    let action = script(&call);
    match &action {
        Action::Pass | Action::Swallow | Action::DropAnswer => {}
        Action::Delay(delay) => sleep(*delay).await,
        Action::Hold(gate) => {
            // A gate that nobody can open any more is open.
            let _ = gate.clone().wait_for(|open| *open).await;
        }
        Action::Hang => return pending().await,
        Action::Answer {
            code,
            retry_after,
            body,
        } => {
            state.answered(call.number, *code);
            let mut answer = Response::builder()
                .status(code)
                .header(header::CONTENT_TYPE, "application/json");
            if let Some(seconds) = retry_after {
                answer = answer.header(header::RETRY_AFTER, *seconds);
            }
            let body = Full::new(body.clone())
                .map_err(|never| match never {})
                .boxed_unsync();
            return answer.body(body).map_err(io::Error::other);
        }
    }
    let answer = forward(parts, body, &client, &state.mark).await?;
    state.answered(call.number, answer.status());
    match action {
        Action::Swallow => pending().await,
        Action::DropAnswer => Err(io::ErrorKind::ConnectionReset.into()),
        Action::Pass
        | Action::Delay(_)
        | Action::Hold(_)
        | Action::Answer { .. }
        | Action::Hang => Ok(answer),
    }
}

async fn forward(
    mut parts: http::request::Parts,
    body: Bytes,
    client: &Client,
    mark: &str,
) -> io::Result<Answer> {
    // The client puts its own.
    parts.headers.remove(header::AUTHORIZATION);
    parts.headers.remove(header::HOST);
    if !mark.is_empty() {
        let agent = parts.headers.get(header::USER_AGENT);
        let agent = agent
            .and_then(|agent| agent.to_str().ok())
            .unwrap_or_default();
        let marked = format!("{agent} {mark}")
            .parse()
            .map_err(io::Error::other)?;
        parts.headers.insert(header::USER_AGENT, marked);
    }
    let request = Request::from_parts(parts, kube::client::Body::from(body.to_vec()));
    let answer = client.send(request).await.map_err(io::Error::other)?;
    let (mut parts, body) = answer.into_parts();
    for hop in [header::CONNECTION, header::TRANSFER_ENCODING] {
        parts.headers.remove(hop);
    }
    parts.version = http::Version::HTTP_11;
    Ok(Response::from_parts(
        parts,
        BodyExt::boxed_unsync(body.map_err(io::Error::other)),
    ))
}

impl State {
    fn answered(&self, number: usize, code: StatusCode) {
        if let Some(record) = self.records.lock().get_mut(number) {
            record.answered = Some((code.as_u16(), Instant::now()));
        }
        self.changed.notify_waiters();
    }
}
