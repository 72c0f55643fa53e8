//! One GET of a server on this machine.

use std::{io, net::Ipv4Addr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

const LIMIT: Duration = Duration::from_secs(10);

/// Status and body.
pub(crate) async fn get(port: u16, path: &str) -> io::Result<(u16, String)> {
    let exchange = async {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok::<_, io::Error>(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = timeout(LIMIT, exchange)
        .await
        .map_err(|_| io::ErrorKind::TimedOut)??;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or(io::ErrorKind::InvalidData)?;
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let body = if head
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked")
    {
        unchunk(body)
    } else {
        body.to_owned()
    };
    Ok((code.ok_or(io::ErrorKind::InvalidData)?, body))
}

fn unchunk(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, following)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let Some(chunk) = following.get(..size).filter(|_| size > 0) else {
            break;
        };
        body.push_str(chunk);
        rest = following.get(size + 2..).unwrap_or_default();
    }
    body
}
