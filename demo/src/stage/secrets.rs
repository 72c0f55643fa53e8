//! Pods that ask krane for secrets: their own, and somebody else's.

use crate::summary::Requests;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use krane_proto::krane::v1::DecryptSecretsBlobRequest;
use krane_proto::krane::v1::secrets_service_client::SecretsServiceClient;
use krane_sim::vault::SimVault;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;
use tonic::Code;

use super::{PATIENCE, Stage, pause};
use crate::wish::App;

/// Between two requests of a pod that got no answer.
const AGAIN: Duration = Duration::from_millis(100);

/// What the variables of every app are called.
pub(crate) const VARIABLES: [&str; 2] = ["API_KEY", "DATABASE_URL"];

/// The vault behind krane, and what came of those who asked.
pub(crate) struct Secrets {
    vault: SimVault,
    /// What the control plane sends of each app's variables, by the app's name.
    blobs: Mutex<BTreeMap<&'static str, Bytes>>,
    /// Where krane answers pods.
    rpc: SocketAddr,
    served: AtomicU64,
    refused: AtomicU64,
    leaked: AtomicU64,
}

impl Secrets {
    pub(crate) fn new(vault: SimVault, rpc: SocketAddr) -> Self {
        Self {
            vault,
            blobs: Mutex::default(),
            rpc,
            served: AtomicU64::default(),
            refused: AtomicU64::default(),
            leaked: AtomicU64::default(),
        }
    }

    /// The variables of an app as only the vault can read them. They stay the same for as long as
    /// the demo runs.
    pub(super) fn blob(&self, app: &App, environment_id: &str) -> Bytes {
        let mut blobs = self.blobs.lock();
        let blob = blobs.entry(app.name).or_insert_with(|| {
            let variables = variables_of(app);
            let variables = variables
                .each_ref()
                .map(|(name, value)| (&**name, &**value));
            self.vault.blob(environment_id, &variables).into()
        });
        blob.clone()
    }

    /// How often the vault was asked.
    pub(crate) fn vault_calls(&self) -> u64 {
        self.vault.calls()
    }

    pub(super) fn requests(&self) -> Requests {
        Requests {
            served: self.served.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            leaked: self.leaked.load(Ordering::Relaxed),
        }
    }
}

/// What a pod was answered.
enum Answer {
    Variables(BTreeMap<String, String>),
    Refused,
    /// krane or something behind it is not well: whoever asks asks again.
    None,
}

impl Stage {
    /// A pod of the app asks for its own secrets until it has them. Returns how long that took.
    pub(crate) async fn fetched(&self, app: &App) -> Option<Duration> {
        let answer = self.answered(app, app).await;
        let (Answer::Variables(variables), took) = answer? else {
            return None;
        };
        let is_own = variables.into_iter().eq(variables_of(app));
        is_own.then(|| {
            self.secrets.served.fetch_add(1, Ordering::Relaxed);
            took
        })
    }

    /// A pod of the thief asks for the victim's secrets, with all that it can know of the victim
    /// and a token of its own, and is refused. Returns how long that took.
    pub(crate) async fn refused(&self, thief: &App, victim: &App) -> Option<Duration> {
        let (answer, took) = self.answered(thief, victim).await?;
        let is_refused = matches!(answer, Answer::Refused);
        let count = if is_refused {
            &self.secrets.refused
        } else {
            &self.secrets.leaked
        };
        count.fetch_add(1, Ordering::Relaxed);
        is_refused.then_some(took)
    }

    /// One app's pod asks for what belongs to another, until krane says yes or no.
    async fn answered(&self, asking: &App, owner: &App) -> Option<(Answer, Duration)> {
        let start = Instant::now();
        loop {
            let asked = Instant::now();
            match self.ask(asking, owner).await {
                Some(answer @ (Answer::Variables(_) | Answer::Refused)) => {
                    return Some((answer, asked.elapsed()));
                }
                Some(Answer::None) | None => {}
            }
            self.undisturbed().await;
            if start.elapsed() > PATIENCE {
                return None;
            }
            pause(AGAIN).await;
        }
    }

    /// Nothing while one of the two has no pod that runs.
    async fn ask(&self, asking: &App, owner: &App) -> Option<Answer> {
        let token = self.cluster.token_of(asking)?;
        let pod = self.cluster.ready_pod(owner)?;
        let blob = STANDARD.decode(variable(&pod, "UNKEY_ENCRYPTED_ENV")?);
        let request = DecryptSecretsBlobRequest {
            encrypted_blob: blob.ok()?.into(),
            environment_id: variable(&pod, "UNKEY_ENVIRONMENT_ID")?.to_owned(),
            token: token.expose().to_owned(),
            deployment_id: variable(&pod, "UNKEY_DEPLOYMENT_ID")?.to_owned(),
        };
        let url = format!("http://{}", self.secrets.rpc);
        let Ok(mut krane) = SecretsServiceClient::connect(url).await else {
            return Some(Answer::None);
        };
        Some(match krane.decrypt_secrets_blob(request).await {
            Ok(answer) => Answer::Variables(answer.into_inner().env_vars.into_iter().collect()),
            Err(status) if status.code() == Code::Unauthenticated => Answer::Refused,
            Err(_) => Answer::None,
        })
    }
}

/// Names and values, in the order of their names.
fn variables_of(app: &App) -> [(String, String); 2] {
    VARIABLES.map(|name| (name.to_owned(), format!("the {name} of {}", app.name)))
}

/// A variable of a pod's first container.
fn variable<'a>(pod: &'a Value, name: &str) -> Option<&'a str> {
    let variables = pod["spec"]["containers"][0]["env"].as_array()?;
    let variable = variables.iter().find(|variable| variable["name"] == name)?;
    variable["value"].as_str()
}
