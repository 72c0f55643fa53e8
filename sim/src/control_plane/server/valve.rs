//! Connections that can be frozen and cut while both ends hold them.

use std::{
    io::{self, ErrorKind},
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll, ready},
};

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tonic::transport::server::{Connected, TcpConnectInfo};

/// What a connection lets through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Flow {
    #[default]
    Open,
    /// Nothing is read and nothing written, as if the process were stopped or the network dropped every packet.
    Frozen,
    /// Reading and writing fail.
    Cut,
}

#[derive(Debug, Default)]
struct Valve {
    flow: Mutex<Flow>,
    reader: AtomicWaker,
    writer: AtomicWaker,
}

impl Valve {
    fn set(&self, flow: Flow) {
        {
            let mut present = self.flow.lock();
            if *present != Flow::Cut {
                *present = flow;
            }
        }
        self.reader.wake();
        self.writer.wake();
    }

    fn poll(&self, waker: &AtomicWaker, context: &Context<'_>) -> Poll<io::Result<()>> {
        // Registered first: a change in between wakes.
        waker.register(context.waker());
        match *self.flow.lock() {
            Flow::Open => Poll::Ready(Ok(())),
            Flow::Frozen => Poll::Pending,
            Flow::Cut => Poll::Ready(Err(ErrorKind::ConnectionReset.into())),
        }
    }
}

/// The valves of all connections.
#[derive(Debug, Default)]
pub(crate) struct Valves {
    list: Mutex<Vec<Weak<Valve>>>,
    /// Whether connections to come begin frozen.
    frozen: Mutex<bool>,
}

impl Valves {
    pub(crate) fn wrap(&self, stream: TcpStream) -> Connection {
        // Answers are small and waited for. It fails only on a dead socket.
        let _ = stream.set_nodelay(true);
        let valve = Arc::<Valve>::default();
        if *self.frozen.lock() {
            valve.set(Flow::Frozen);
        }
        let mut list = self.list.lock();
        list.retain(|valve| valve.strong_count() > 0);
        list.push(Arc::downgrade(&valve));
        Connection { stream, valve }
    }

    /// Freezes everything, connections to come included.
    pub(crate) fn freeze(&self) {
        *self.frozen.lock() = true;
        self.set(Flow::Frozen);
    }

    /// Freezes the present connections for good; new ones work.
    pub(crate) fn blackhole(&self) {
        self.set(Flow::Frozen);
        self.list.lock().clear();
    }

    pub(crate) fn thaw(&self) {
        *self.frozen.lock() = false;
        self.set(Flow::Open);
    }

    pub(crate) fn cut(&self) {
        self.set(Flow::Cut);
    }

    fn set(&self, flow: Flow) {
        for valve in self.list.lock().iter().filter_map(Weak::upgrade) {
            valve.set(flow);
        }
    }
}

/// A connection behind a valve.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    valve: Arc<Valve>,
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.valve.poll(&self.valve.reader, context))?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.valve.poll(&self.valve.writer, context))?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.valve.poll(&self.valve.writer, context))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.valve.poll(&self.valve.writer, context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
