//! The contract of every vault, with a service that looks values up in a table.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use krane_proto::vault::v1::{DecryptBulkRequest, DecryptBulkResponse};
use krane_testcontract::vault_contract;
use krane_testcontract::vaults::{Owner, World};
use krane_vault::RemoteTiming;
use parking_lot::Mutex;
use prost::Message as _;

use super::{proto, vault};
use crate::cluster_edge::server::{Answer, Seen, Server};

/// A table instead of cryptography.
struct Table {
    address: String,
    values: Arc<Mutex<BTreeMap<(String, String), String>>>,
    server: tokio::sync::Mutex<Option<Server>>,
}

impl Table {
    async fn serve(&self) -> Server {
        let values = Arc::clone(&self.values);
        let look_up = move |seen: &Seen| {
            let request = DecryptBulkRequest::decode(&seen.body[..]).unwrap();
            let values = values.lock();
            let mut texts = DecryptBulkResponse::default();
            for (name, encrypted) in request.items {
                let Some(text) = values.get(&(request.keyring.clone(), encrypted.clone())) else {
                    let message = format!("{name}: cannot decrypt {encrypted}");
                    let body = serde_json::json!({ "code": "internal", "message": message });
                    return Answer::json(500, &body);
                };
                texts.items.insert(name, text.clone());
            }
            proto(&texts)
        };
        let address = match self.address.as_str() {
            "" => "127.0.0.1:0",
            address => address,
        };
        Server::start_at(address, look_up).await
    }
}

#[async_trait]
impl Owner for Table {
    async fn encrypt(&self, key_ring: &str, text: &str) -> String {
        let mut values = self.values.lock();
        let encrypted = format!("encrypted/{}+{key_ring}==", values.len());
        values.insert((key_ring.to_owned(), encrypted.clone()), text.to_owned());
        encrypted
    }

    async fn stop(&self) {
        let server = self.server.lock().await.take();
        server.unwrap().stop().await;
    }

    async fn start(&self) {
        *self.server.lock().await = Some(self.serve().await);
    }
}

async fn world() -> World {
    let mut table = Table {
        address: String::new(),
        values: Arc::default(),
        server: tokio::sync::Mutex::default(),
    };
    let server = table.serve().await;
    table.address.clone_from(&server.address);
    table.server = Some(server).into();
    World {
        vault: Arc::new(vault(&table.address, RemoteTiming::default())),
        owner: Box::new(table),
    }
}

vault_contract! { #[tokio::test] world }
