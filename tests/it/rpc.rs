//! The RPC port over real sockets: one service in two protocols, and peers that mean no good.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail them"
)]

mod crowds;
mod ending;
mod limits;
mod protocols;
mod raw;
mod scheduler;
mod slow;
mod windows;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use krane_domain::secret::Secret;
use krane_ports::SchedulerDesk;
use krane_ports::{DecryptRequest, Refused, SecretsDesk};
use krane_proto::krane::v1::DecryptSecretsBlobRequest;
use krane_proto::krane::v1::secrets_service_client::SecretsServiceClient;
use krane_server::calls::CallFamilies;
use krane_server::port::RpcPort;
use krane_server::serve::{Patience, ServeError, serve};
use krane_settings::SecretSource;
use prometheus::{Registry, TextEncoder};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};

use crate::health::Well;

const DECRYPT: &str = "/krane.v1.SecretsService/DecryptSecretsBlob";
/// In no answer and no log.
const CANARY: &str = "canary-of-a-token";

/// Does what the deployment's name says.
struct Desk {
    /// Calls that were begun.
    entered: Semaphore,
    /// A permit lets one call of `wait` go on.
    released: Semaphore,
}

#[async_trait]
impl SecretsDesk for Desk {
    async fn decrypt(&self, request: DecryptRequest) -> Result<BTreeMap<String, Secret>, Refused> {
        self.entered.add_permits(1);
        match request.deployment_id.as_str() {
            "refused" => return Err(Refused::Unauthenticated),
            "wait" => self.released.acquire().await.unwrap().forget(),
            _ => {}
        }
        let peer = request.peer.unwrap().to_string();
        Ok([("PEER", peer), ("ENVIRONMENT", request.environment_id)]
            .into_iter()
            .map(|(name, value)| (name.to_owned(), Secret::new(value)))
            .collect())
    }
}

/// A server of the RPC port on a free port of this machine.
struct Server {
    address: SocketAddr,
    desk: Arc<Desk>,
    registry: Registry,
    shutdown: CancellationToken,
    task: JoinSet<Result<(), ServeError>>,
}

impl Server {
    async fn start(patience: Patience) -> Self {
        Self::with(patience, false).await
    }

    async fn with(patience: Patience, reflection: bool) -> Self {
        Self::serving(patience, reflection, None).await
    }

    async fn serving(
        patience: Patience,
        reflection: bool,
        scheduler: Option<(Arc<dyn SchedulerDesk>, Option<SecretSource>)>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let desk = Arc::new(Desk {
            entered: Semaphore::new(0),
            released: Semaphore::new(0),
        });
        let registry = Registry::new();
        let port = RpcPort {
            health: Arc::new(Well),
            secrets: Some(desk.clone()),
            scheduler,
            reflection,
            families: CallFamilies::register(&registry).unwrap(),
        };
        let shutdown = CancellationToken::new();
        let app = port.app(shutdown.clone());
        let mut task = JoinSet::new();
        task.spawn(serve(listener, app, None, patience, shutdown.clone()));
        Self {
            address,
            desk,
            registry,
            shutdown,
            task,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).unwrap();
        endpoint.connect().await.unwrap()
    }

    async fn grpc(&self) -> SecretsServiceClient<Channel> {
        SecretsServiceClient::new(self.channel().await)
    }

    /// Waits until so many calls have reached the desk.
    async fn entered(&self, calls: u32) {
        self.desk
            .entered
            .acquire_many(calls)
            .await
            .unwrap()
            .forget();
    }

    /// Waits until the server has ended by itself.
    async fn ended(&mut self) {
        self.task.join_next().await.unwrap().unwrap().unwrap();
    }

    fn metrics(&self) -> String {
        TextEncoder::new()
            .encode_to_string(&self.registry.gather())
            .unwrap()
    }
}

fn message(deployment: &str) -> DecryptSecretsBlobRequest {
    DecryptSecretsBlobRequest {
        encrypted_blob: "{}".into(),
        environment_id: "env_1".to_owned(),
        token: CANARY.to_owned(),
        deployment_id: deployment.to_owned(),
    }
}

/// A request as the in-pod client sends it, in JSON.
fn post(deployment: &str) -> String {
    let body = format!(
        r#"{{"encryptedBlob":"e30=","environmentId":"env_1","token":"{CANARY}","deploymentId":"{deployment}"}}"#
    );
    post_body(&body)
}

fn post_body(body: &str) -> String {
    format!(
        "POST {DECRYPT} HTTP/1.1\r\nhost: krane\r\ncontent-type: application/json\r\n\
         connect-protocol-version: 1\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

const ANSWER: &str = r#"{"envVars":{"ENVIRONMENT":"env_1","PEER":"127.0.0.1"}}"#;
const REFUSAL: &str = r#"{"code":"unauthenticated","message":"the request cannot be answered"}"#;
