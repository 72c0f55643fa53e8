//! `Debug` of the messages that carry a secret: sizes, never content.
//!
//! Every field is named, so that a new field does not compile until somebody decided whether it
//! is a secret.

use std::fmt;

use crate::{
    ctrl::v1::{ApplyDeployment, SecretsConfig},
    krane::v1::{ApplyDeploymentRequest, DecryptSecretsBlobRequest, DecryptSecretsBlobResponse},
    vault::v1::{
        DataEncryptionKey, DecryptBulkRequest, DecryptBulkResponse, DecryptRequest,
        DecryptResponse, EncryptBulkRequest, EncryptBulkResponseItem, EncryptRequest,
        EncryptResponse, Encrypted, KeyEncryptionKey, ReEncryptRequest, ReEncryptResponse,
    },
};

macro_rules! redacted_debug {
    ($($message:ident { show: [$($shown:ident),*], hide: [$($hidden:ident),*] })*) => {$(
        impl fmt::Debug for $message {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let Self { $($shown,)* $($hidden,)* } = self;
                f.debug_struct(stringify!($message))
                    $(.field(stringify!($shown), $shown))*
                    $(.field(stringify!($hidden), &Redacted($hidden.len())))*
                    .finish()
            }
        }
    )*};
}

/// Stands for bytes, a text, or a map of this length.
struct Redacted(usize);

impl fmt::Debug for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<redacted, length {}>", self.0)
    }
}

redacted_debug! {
    ApplyDeployment {
        show: [
            k8s_namespace, k8s_name, workspace_id, project_id, environment_id, deployment_id,
            image, replicas, cpu_millicores, memory_mib, build_id, port, shutdown_signal,
            healthcheck, app_id, environment_slug, region, git_commit_sha, git_branch, git_repo,
            git_commit_message, autoscaling, ephemeral_storage
        ],
        // People put passwords into arguments.
        hide: [encrypted_environment_variables, command]
    }
    SecretsConfig { show: [], hide: [secrets] }

    ApplyDeploymentRequest {
        show: [
            k8s_namespace, k8s_name, workspace_id, project_id, environment_id, deployment_id,
            image, replicas, cpu_millicores, memory_mib, build_id, readiness_id
        ],
        hide: [encrypted_environment_variables]
    }
    DecryptSecretsBlobRequest {
        show: [environment_id, deployment_id],
        hide: [encrypted_blob, token]
    }
    DecryptSecretsBlobResponse { show: [], hide: [env_vars] }

    EncryptRequest { show: [keyring], hide: [data] }
    EncryptResponse { show: [key_id], hide: [encrypted] }
    DecryptRequest { show: [keyring], hide: [encrypted] }
    DecryptResponse { show: [], hide: [plaintext] }
    EncryptBulkRequest { show: [keyring], hide: [items] }
    EncryptBulkResponseItem { show: [key_id], hide: [encrypted] }
    DecryptBulkRequest { show: [keyring], hide: [items] }
    DecryptBulkResponse { show: [], hide: [items] }
    ReEncryptRequest { show: [keyring, key_id], hide: [encrypted] }
    ReEncryptResponse { show: [key_id], hide: [encrypted] }

    Encrypted { show: [algorithm, encryption_key_id, time], hide: [nonce, ciphertext] }
    DataEncryptionKey { show: [id, created_at], hide: [key] }
    KeyEncryptionKey { show: [id, created_at], hide: [key] }
}
