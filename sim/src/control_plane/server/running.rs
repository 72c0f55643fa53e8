//! The server: its start, its end, and what happens to its connections.

use std::{
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    net::TcpListener,
    task::JoinSet,
    time::{Instant, sleep},
};
use tokio_stream::{StreamExt as _, wrappers::TcpListenerStream};
use tonic::transport::Server;

use super::{Error, service::Service, shared::Shared, valve::Valves};

/// How long a restart waits for its port: another program may hold it for a moment.
const PORT_LIMIT: Duration = Duration::from_secs(20);
const PORT_PAUSE: Duration = Duration::from_millis(50);

/// A running control plane. It ends when dropped.
#[derive(Debug)]
pub struct ControlPlane {
    pub(crate) shared: Arc<Shared>,
    address: SocketAddr,
    valves: Arc<Valves>,
    tasks: Mutex<JoinSet<()>>,
}

impl ControlPlane {
    /// Starts on a free port of 127.0.0.1; `token` is the bearer token it wants.
    pub async fn start(token: &str) -> Result<Self, Error> {
        let listener = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let unknown = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let address = listener.local_addr().map_err(|source| Error::Listen {
            address: unknown,
            source,
        })?;
        let control = Self {
            shared: Arc::new(Shared::new(token)),
            address,
            valves: Arc::default(),
            tasks: Mutex::default(),
        };
        control.serve(listener);
        Ok(control)
    }

    /// Where it listens, also while it is down.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The bearer token it wants.
    pub fn token(&self) -> &str {
        &self.shared.token
    }

    /// Ends it as a kill would: connections break, new ones are refused. What it knows is kept.
    pub async fn stop(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.shutdown().await;
        self.valves.cut();
    }

    /// Starts it again after [`stop`](Self::stop), on the same port.
    pub async fn start_again(&self) -> Result<(), Error> {
        let listener = listen(self.address).await?;
        self.valves.thaw();
        self.serve(listener);
        Ok(())
    }

    /// Stops answering without closing anything, as a stopped process does; new connections are taken and get no
    /// answer either.
    pub fn freeze(&self) {
        self.valves.freeze();
    }

    /// Ends a [`freeze`](Self::freeze).
    pub fn thaw(&self) {
        self.valves.thaw();
    }

    /// The network loses the present connections without telling either side; new ones work.
    pub fn blackhole(&self) {
        self.valves.blackhole();
    }

    /// Breaks the present connections; new ones work.
    pub fn break_connections(&self) {
        self.valves.cut();
    }

    fn serve(&self, listener: TcpListener) {
        let valves = Arc::clone(&self.valves);
        let connections = TcpListenerStream::new(listener)
            .map(move |stream| stream.map(|stream| valves.wrap(stream)));
        let service = Service {
            shared: Arc::clone(&self.shared),
        };
        self.tasks.lock().spawn(async move {
            // It ends with an error only when it cannot accept any more, which every test notices.
            let _ = Server::builder()
                .add_service(service)
                .serve_with_incoming(connections)
                .await;
        });
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.valves.cut();
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    let deadline = Instant::now() + PORT_LIMIT;
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < deadline => {
                sleep(PORT_PAUSE).await;
            }
            Err(source) => return Err(Error::Listen { address, source }),
        }
    }
}
