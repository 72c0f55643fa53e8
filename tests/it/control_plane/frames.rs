//! HTTP/2 frame by frame, for what no library lets a server do.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// One frame of HTTP/2.
pub(super) async fn frame(socket: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 9];
    socket.read_exact(&mut head).await.ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; length as usize];
    socket.read_exact(&mut payload).await.ok()?;
    Some((head[3], payload))
}

pub(super) const HEADERS: u8 = 1;
pub(super) const PING: u8 = 6;

/// Begins to speak HTTP/2 with whoever connects.
pub(super) async fn accept(listener: &TcpListener) -> TcpStream {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const PREFACE: usize = 24;
    let (mut socket, _) = listener.accept().await.unwrap();
    socket.write_all(&SETTINGS).await.unwrap();
    socket.read_exact(&mut [0; PREFACE]).await.unwrap();
    socket
}

/// A GOAWAY that leaves out every stream.
pub(super) fn goaway(reason: u8, text: &[u8]) -> Vec<u8> {
    let length = 8 + u8::try_from(text.len()).unwrap();
    let mut frame = vec![0, 0, length, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, reason];
    frame.extend(text);
    frame
}
