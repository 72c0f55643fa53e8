//! Senders that mean no good, each from an address of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use futures::FutureExt as _;
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::Request;
use prost::Message;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::{Failure, Outcome};

/// Names another binary to be attacked, such as one of a release.
const BINARY_VARIABLE: &str = "KRANE_ATTACKED";
/// An honest caller has no more patience than a kubelet.
const HONEST: Duration = Duration::from_secs(2);

/// What is attacked: this binary, unless `KRANE_ATTACKED` names another one.
pub fn binary(own: &str) -> PathBuf {
    std::env::var_os(BINARY_VARIABLE).map_or_else(|| own.into(), PathBuf::from)
}

/// The attackers of this process need files as well.
pub fn raise_open_files() -> Outcome {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = maximum;
    Ok(setrlimit(Resource::Nofile, Rlimit { current, maximum })?)
}

/// A connection from one of the many addresses of this machine.
pub async fn connect_from(from: Ipv4Addr, port: u16) -> Outcome<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    Ok(timeout(HONEST, socket.connect(to)).await??)
}

/// The address of an attacker.
pub fn attacker(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 1, number)
}

/// The status of a GET by an honest caller, if there is an answer in time.
pub async fn honest_get(number: u8, port: u16, path: &str) -> Option<u16> {
    let exchange = async {
        let mut stream = connect_from(Ipv4Addr::new(127, 0, 2, number), port).await?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: krane\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let status = answer.split(' ').nth(1).unwrap_or_default();
        status
            .parse()
            .map_err(|_| Failure::new(format!("no status: {answer:?}")))
    };
    timeout(HONEST, exchange).await.ok()?.ok()
}

/// A connection of HTTP/2 that gives no answer any window, and answers every PING.
pub struct Mean {
    client: SendRequest<Bytes>,
    asked: Vec<ResponseFuture>,
    begun: Vec<SendStream<Bytes>>,
    answers: Vec<RecvStream>,
    _connection: JoinSet<()>,
}

impl Mean {
    /// Opens one from this address.
    pub async fn connect(from: Ipv4Addr, port: u16) -> Outcome<Self> {
        let stream = connect_from(from, port).await?;
        let mut builder = Builder::new();
        let handshake = builder.initial_window_size(0).handshake(stream);
        let (client, connection) = timeout(HONEST, handshake).await??;
        let mut tasks = JoinSet::new();
        tasks.spawn(async {
            let _ = connection.await;
        });
        Ok(Self {
            client,
            asked: Vec::new(),
            begun: Vec::new(),
            answers: Vec::new(),
            _connection: tasks,
        })
    }

    /// Asks without end; whether it may still ask.
    pub fn get(&mut self, path: &str) -> Outcome<bool> {
        let request = Request::get(format!("http://krane{path}")).body(())?;
        let Some(Ok(client)) = self.client.clone().ready().now_or_never() else {
            return Ok(false);
        };
        self.client = client;
        let (answer, _) = self.client.send_request(request, true)?;
        self.asked.push(answer);
        Ok(true)
    }

    /// Begins a call whose message never ends.
    pub fn begin(&mut self, path: &str) -> Outcome<bool> {
        let request = Request::post(format!("http://krane{path}"))
            .header("content-type", "application/proto")
            .body(())?;
        let Some(Ok(client)) = self.client.clone().ready().now_or_never() else {
            return Ok(false);
        };
        self.client = client;
        let (answer, body) = self.client.send_request(request, false)?;
        self.asked.push(answer);
        self.begun.push(body);
        Ok(true)
    }

    /// A call over gRPC, whose answer is left lying; its code, where that is in its header.
    pub async fn call(&mut self, path: &str, message: &impl Message) -> Outcome<Option<String>> {
        let request = Request::post(format!("http://krane{path}"))
            .header("content-type", "application/grpc")
            .body(())?;
        self.client = timeout(HONEST, self.client.clone().ready()).await??;
        let (answer, mut body) = self.client.send_request(request, false)?;
        let mut framed = BytesMut::new();
        framed.put_u8(0);
        framed.put_u32(u32::try_from(message.encoded_len())?);
        message.encode(&mut framed)?;
        body.send_data(framed.freeze(), true)?;
        let answer = timeout(4 * HONEST, answer).await??;
        let code = answer.headers().get("grpc-status");
        let code = code.map(|code| String::from_utf8_lossy(code.as_bytes()).into_owned());
        self.answers.push(answer.into_body());
        Ok(code)
    }
}
