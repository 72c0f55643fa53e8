//! A way to the API server on which requests are recorded, held up, answered by the test, or lost.

mod forward;
mod record;

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::StatusCode;
use krane_testcluster::client_of;
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    sync::{Notify, watch},
    task::JoinSet,
};

use crate::{Outcome, World};

pub use record::{Call, Recorded};

/// What becomes of a request.
#[derive(Clone, Debug)]
pub enum Action {
    /// It goes through.
    Pass,
    /// It goes through after this time.
    Delay(Duration),
    /// It never reaches the API server; the test answers.
    Answer {
        /// The status.
        code: StatusCode,
        /// Of a `Retry-After` header.
        retry_after: Option<u32>,
        /// The body.
        body: Bytes,
    },
    /// It never reaches the API server and is never answered.
    Hang,
    /// It reaches the API server; its answer is never sent.
    Swallow,
    /// It reaches the API server; instead of its answer the connection breaks.
    DropAnswer,
    /// It waits until this turns true, then goes through.
    Hold(watch::Receiver<bool>),
}

impl Action {
    /// An answer with a `Status` body, as the API server gives them.
    pub fn status(code: u16, reason: &str, message: &str) -> Self {
        let body = serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code,
        });
        Self::Answer {
            code: StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            retry_after: None,
            body: body.to_string().into(),
        }
    }
}

type Script = Arc<dyn Fn(&Call) -> Action + Send + Sync>;

struct State {
    /// Added to the user agent, so that the audit log tells by which way a request came.
    mark: String,
    script: Mutex<Script>,
    records: Mutex<Vec<Recorded>>,
    changed: Notify,
    cuts: watch::Sender<u64>,
}

/// The way to the API server. It ends when dropped.
pub struct Proxy {
    state: Arc<State>,
    address: SocketAddr,
    kubeconfig: PathBuf,
    tasks: JoinSet<()>,
    _folder: TempDir,
}

impl Proxy {
    /// To the cluster of this world, as krane.
    pub async fn start(world: &World) -> Outcome<Self> {
        Self::marked(world, "").await
    }

    /// The same; every request has this word at the end of its user agent.
    pub async fn marked(world: &World, mark: &str) -> Outcome<Self> {
        let client = client_of(world.kubeconfig()).await?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let folder = TempDir::with_prefix("krane-proxy-")?;
        let kubeconfig = folder.path().join("kubeconfig");
        fs::write(&kubeconfig, kubeconfig_for(address))?;
        let state = Arc::new(State {
            mark: mark.to_owned(),
            script: Mutex::new(Arc::new(|_: &Call| Action::Pass)),
            records: Mutex::default(),
            changed: Notify::new(),
            cuts: watch::Sender::new(0),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(forward::serve(listener, client, Arc::clone(&state)));
        Ok(Self {
            state,
            address,
            kubeconfig,
            tasks,
            _folder: folder,
        })
    }

    /// For an agent that is to go this way.
    pub fn kubeconfig(&self) -> &std::path::Path {
        &self.kubeconfig
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Decides about requests from now on.
    pub fn script(&self, script: impl Fn(&Call) -> Action + Send + Sync + 'static) {
        *self.state.script.lock() = Arc::new(script);
    }

    /// Everything goes through from now on.
    pub fn pass(&self) {
        self.script(|_| Action::Pass);
    }

    /// Breaks all present connections, watches included.
    pub fn cut(&self) {
        self.state.cuts.send_modify(|count| *count += 1);
    }

    /// Everything that was asked so far, in the order of arrival.
    pub fn records(&self) -> Vec<Recorded> {
        self.state.records.lock().clone()
    }

    /// Looks at everything that was asked, at every change, until it finds what it looks for.
    pub async fn wait_for<T>(
        &self,
        what: &str,
        limit: Duration,
        mut look: impl FnMut(&[Recorded]) -> Option<T>,
    ) -> Outcome<T> {
        let found = tokio::time::timeout(limit, async {
            loop {
                let changed = self.state.changed.notified();
                if let Some(found) = look(&self.state.records.lock()) {
                    return found;
                }
                changed.await;
            }
        });
        found.await.map_err(|_| {
            let records = self.state.records.lock();
            let newest: Vec<_> = records
                .iter()
                .rev()
                .take(8)
                .map(Recorded::summary)
                .collect();
            crate::Failure::new(format!(
                "{what}: not within {limit:?}; newest requests: {newest:#?}"
            ))
        })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.tasks.abort_all();
    }
}

fn kubeconfig_for(address: SocketAddr) -> String {
    serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
        "clusters": [{"name": "proxy", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "krane", "user": {"token": "eyJ-the-proxy-puts-the-real-one"}}],
        "contexts": [{"name": "proxy", "context": {
            "cluster": "proxy", "user": "krane", "namespace": "krane",
        }}],
    })
    .to_string()
}
