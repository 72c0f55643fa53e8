//! A scripted API server: HTTP/1.1 by hand, so that it can also misbehave.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use serde_json::Value;
use socket2::{SockFilter, SockRef};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Duration, timeout};

/// Longer than anything here takes; only a broken test waits so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// One request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    /// By lower-case name.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn query(&self, key: &str) -> Option<&str> {
        self.query.get(key).map(String::as_str)
    }

    pub(crate) fn bearer(&self) -> &str {
        self.headers
            .get("authorization")
            .map_or("", |value| value.trim_start_matches("Bearer "))
    }
}

/// What the server does with a request.
pub(crate) enum Answer {
    /// A complete answer.
    Full {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: Vec<u8>,
    },
    /// Headers, then pieces as they come; ends well when the sender is dropped.
    Stream(mpsc::Receiver<Vec<u8>>),
    /// Headers that promise more than the piece that follows, then the connection closes.
    Cut(Vec<u8>),
    /// The connection closes without an answer.
    Close,
    /// No answer for ever.
    Hang,
    /// From here on nothing that the client sends arrives, not even an acknowledgement leaves: a
    /// cable that was pulled.
    BlackHole,
    /// Headers of a watch, and then the same.
    BlackHoleInside,
    /// The answer once the gate is open.
    After(watch::Receiver<bool>, Box<Answer>),
}

impl Answer {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        let body = body.to_string().into_bytes();
        Self::Full {
            status,
            headers: vec![("content-type", "application/json".to_owned())],
            body,
        }
    }

    pub(crate) fn text(status: u16, kind: &str, body: &str) -> Self {
        let headers = vec![("content-type", kind.to_owned())];
        Self::Full {
            status,
            headers,
            body: body.as_bytes().to_vec(),
        }
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: &str) -> Self {
        if let Self::Full { headers, .. } = &mut self {
            headers.push((name, value.to_owned()));
        }
        self
    }
}

type Script = dyn Fn(&Seen) -> Answer + Send + Sync;

/// Runs until dropped.
pub(crate) struct Server {
    pub(crate) address: String,
    seen: watch::Receiver<Vec<Seen>>,
    open: watch::Receiver<usize>,
    accepted: watch::Receiver<usize>,
    task: JoinSet<()>,
}

struct Shared {
    script: Box<Script>,
    seen: watch::Sender<Vec<Seen>>,
    open: watch::Sender<usize>,
}

impl Server {
    pub(crate) async fn start(script: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0", script).await
    }

    pub(crate) async fn start_at(
        address: &str,
        script: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (seen_tx, seen) = watch::channel(Vec::new());
        let (open_tx, open) = watch::channel(0);
        let (accepted_tx, accepted) = watch::channel(0);
        let shared = Arc::new(Shared {
            script: Box::new(script),
            seen: seen_tx,
            open: open_tx,
        });
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&shared);
                accepted_tx.send_modify(|accepted| *accepted += 1);
                connections.spawn(async move {
                    shared.open.send_modify(|open| *open += 1);
                    let _ = serve(stream, &shared).await;
                    shared.open.send_modify(|open| *open -= 1);
                });
            }
        });
        Self {
            address,
            seen,
            open,
            accepted,
            task,
        }
    }

    /// Ends it with its connections; when this returns nobody listens any more.
    pub(crate) async fn stop(mut self) {
        self.task.shutdown().await;
    }

    /// Everything asked so far.
    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.seen.borrow().clone()
    }

    /// Connections that were ever made.
    pub(crate) fn connections(&self) -> usize {
        *self.accepted.borrow()
    }

    pub(crate) fn only_request(&self) -> Seen {
        let requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests.into_iter().next().unwrap()
    }

    pub(crate) async fn wait_for_requests(&self, count: usize) {
        let mut seen = self.seen.clone();
        timeout(PATIENCE, seen.wait_for(|seen| seen.len() >= count))
            .await
            .unwrap()
            .unwrap();
    }

    pub(crate) async fn wait_for_no_connection(&self) {
        let mut open = self.open.clone();
        timeout(PATIENCE, open.wait_for(|open| *open == 0))
            .await
            .unwrap()
            .unwrap();
    }
}

async fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut buffer = Vec::new();
    while let Some(seen) = read_request(&mut stream, &mut buffer).await? {
        let mut answer = (shared.script)(&seen);
        shared.seen.send_modify(|all| all.push(seen));
        while let Answer::After(mut gate, next) = answer {
            let _ = gate.wait_for(|is_open| *is_open).await;
            answer = *next;
        }
        match answer {
            Answer::Full {
                status,
                headers,
                body,
            } => {
                let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
                for (name, value) in headers {
                    let _ = write!(head, "{name}: {value}\r\n");
                }
                stream.write_all(head.as_bytes()).await?;
                stream.write_all(b"\r\n").await?;
                stream.write_all(&body).await?;
            }
            Answer::Stream(mut pieces) => {
                let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                    transfer-encoding: chunked\r\n\r\n";
                stream.write_all(head).await?;
                let mut byte = [0];
                loop {
                    tokio::select! {
                        piece = pieces.recv() => match piece {
                            Some(piece) => {
                                let size = format!("{:x}\r\n", piece.len());
                                stream.write_all(size.as_bytes()).await?;
                                stream.write_all(&piece).await?;
                                stream.write_all(b"\r\n").await?;
                            }
                            None => break,
                        },
                        // The client never pipelines: anything here means that it went away.
                        _ = stream.read(&mut byte) => return Ok(()),
                    }
                }
                stream.write_all(b"0\r\n\r\n").await?;
            }
            Answer::Cut(body) => {
                let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                    content-length: 100000\r\n\r\n";
                stream.write_all(head).await?;
                stream.write_all(&body).await?;
                return Ok(());
            }
            Answer::Close => return Ok(()),
            Answer::BlackHole => {
                pull_cable(&stream)?;
                std::future::pending::<()>().await;
            }
            Answer::BlackHoleInside => {
                let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                    transfer-encoding: chunked\r\n\r\n";
                stream.write_all(head).await?;
                pull_cable(&stream)?;
                std::future::pending::<()>().await;
            }
            Answer::Hang | Answer::After(..) => {
                let mut byte = [0];
                let _ = stream.read(&mut byte).await;
                return Ok(());
            }
        }
    }
    Ok(())
}

/// A filter of the kernel that takes no packet of this connection any more.
fn pull_cable(stream: &TcpStream) -> io::Result<()> {
    const RETURN: u16 = 0x06;
    let nothing = [SockFilter::new(RETURN, 0, 0, 0)];
    SockRef::from(stream).attach_filter(&nothing)
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<Seen>> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
    buffer.drain(..end + 4);
    let mut lines = head.lines();
    let mut first = lines.next().unwrap_or_default().split(' ');
    let method = first.next().unwrap_or_default().to_owned();
    let target = first.next().unwrap_or_default();
    let headers: BTreeMap<_, _> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers
        .get("content-length")
        .and_then(|value| value.parse().ok())
        .unwrap_or(0);
    while buffer.len() < length {
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    let body = buffer.drain(..length).collect();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.to_owned(), percent_decode(value)))
        .collect();
    Ok(Some(Seen {
        method,
        path: path.to_owned(),
        query,
        headers,
        body,
    }))
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first == b'%' {
            let hex = std::str::from_utf8(&tail[..2]).unwrap();
            bytes.push(u8::from_str_radix(hex, 16).unwrap());
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).unwrap()
}
