//! `krane.v1.SecretsService`: pods turn the blob they were started with into their variables.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use krane_domain::secret::Secret;
use krane_ports::{DecryptRequest, Refused, SecretsDesk};
use krane_proto::krane::v1::secrets_service_server::{SecretsService, SecretsServiceServer};
use krane_proto::krane::v1::{DecryptSecretsBlobRequest, DecryptSecretsBlobResponse};
use tonic::{Code, Request, Response, Status};

use super::connect::{self, LARGEST_REQUEST};
use super::serve::Peer;

/// The service as health and reflection name it.
pub const SERVICE: &str = "krane.v1.SecretsService";
/// Its method, as both protocols call it.
pub const DECRYPT: &str = "/krane.v1.SecretsService/DecryptSecretsBlob";

/// All that a caller is told, whatever the reason: the codes say how to go on.
const OPAQUE: &str = "the request cannot be answered";

/// The service over gRPC.
pub fn grpc(desk: Arc<dyn SecretsDesk>) -> SecretsServiceServer<Secrets> {
    SecretsServiceServer::new(Secrets { desk }).max_decoding_message_size(LARGEST_REQUEST)
}

/// The service over Connect.
pub fn connect(desk: Arc<dyn SecretsDesk>) -> Router {
    let secrets = Secrets { desk };
    let decrypt = connect::method(secrets, |it, request| it.decrypt_secrets_blob(request));
    Router::new().route(DECRYPT, decrypt)
}

/// What pods are told where there is nobody to ask.
pub fn without_a_vault() -> Router {
    let text = "this krane has no vault: set vault.url, or vault.master_keys and vault.s3";
    Router::new().route(DECRYPT, connect::unimplemented(text))
}

/// Hands requests to the desk, and tells its callers no more than they may know.
#[derive(Clone)]
pub struct Secrets {
    desk: Arc<dyn SecretsDesk>,
}

#[tonic::async_trait]
impl SecretsService for Secrets {
    async fn decrypt_secrets_blob(
        &self,
        request: Request<DecryptSecretsBlobRequest>,
    ) -> Result<Response<DecryptSecretsBlobResponse>, Status> {
        let peer = request.extensions().get::<Peer>().map(|peer| peer.0);
        let message = request.into_inner();
        let secrets = self.desk.decrypt(DecryptRequest {
            blob: message.encrypted_blob.into(),
            environment_id: message.environment_id,
            deployment_id: message.deployment_id,
            token: Secret::new(message.token),
            peer,
        });
        let secrets = secrets
            .await
            .map_err(|refused| Status::new(code(refused), OPAQUE))?;
        let exposed = secrets
            .into_iter()
            .map(|(name, value)| (name, value.expose().to_owned()));
        Ok(Response::new(DecryptSecretsBlobResponse {
            env_vars: exposed.collect(),
        }))
    }
}

const fn code(refused: Refused) -> Code {
    match refused {
        Refused::Unauthenticated => Code::Unauthenticated,
        Refused::ResourceExhausted => Code::ResourceExhausted,
        Refused::Unavailable => Code::Unavailable,
        Refused::Internal => Code::Internal,
    }
}
