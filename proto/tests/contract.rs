//! The bytes on the wire, and that no secret shows in a `Debug`.
#![allow(clippy::unwrap_used, reason = "helpers of tests may fail them")]

use std::fmt::Debug;

use bytes::Bytes;
use krane_proto::{
    FILE_DESCRIPTOR_SET,
    ctrl::v1::{
        ApplyDeployment, DeploymentState, GetDesiredDeploymentStateRequest, Health,
        HeartbeatRequest, RegionKey, ReportDeploymentStatusRequest, ReportSentinelStatusRequest,
        SecretsConfig, WatchCiliumNetworkPoliciesRequest, WatchDeploymentsRequest,
        WatchSentinelsRequest, deployment_state, report_deployment_status_request as report,
    },
    krane::v1::{ApplyDeploymentRequest, DecryptSecretsBlobRequest, DecryptSecretsBlobResponse},
    vault::v1::{
        Algorithm, DataEncryptionKey, DecryptBulkRequest, DecryptBulkResponse, DecryptRequest,
        DecryptResponse, EncryptBulkRequest, EncryptBulkResponse, EncryptBulkResponseItem,
        EncryptRequest, EncryptResponse, Encrypted, EncryptedDataEncryptionKey, KeyEncryptionKey,
        ReEncryptRequest, ReEncryptResponse,
    },
};
use prost::Message;

#[allow(clippy::unnecessary_wraps, reason = "the type of the message field")]
fn region() -> Option<RegionKey> {
    Some(RegionKey {
        platform: "aws".into(),
        name: "us-east-1".into(),
    })
}

fn check_bytes<M: Message + Default + PartialEq + Debug>(message: &M, hex: &str) {
    let bytes = message.encode_to_vec();
    let got = bytes
        .iter()
        .fold(String::new(), |all, byte| format!("{all}{byte:02x}"));
    assert_eq!(got, hex);
    assert_eq!(
        M::decode(bytes.as_slice()).unwrap(),
        *message,
        "does not read back"
    );
}

#[test]
fn region_key_is_as_documented() {
    check_bytes(&region().unwrap(), "0a03617773120975732d656173742d31");
}

#[test]
fn requests_are_as_documented() {
    let key = "0a100a03617773120975732d656173742d31";
    let watch = |version_last_seen| WatchDeploymentsRequest {
        region: region(),
        version_last_seen,
    };
    check_bytes(&watch(0), key);
    check_bytes(&watch(300), &format!("{key}10ac02"));
    check_bytes(
        &WatchSentinelsRequest {
            region: region(),
            version_last_seen: 300,
        },
        &format!("{key}10ac02"),
    );
    check_bytes(
        &WatchCiliumNetworkPoliciesRequest {
            region: region(),
            version_last_seen: 300,
        },
        &format!("{key}10ac02"),
    );
    check_bytes(&HeartbeatRequest { region: region() }, key);
    check_bytes(
        &GetDesiredDeploymentStateRequest {
            region: region(),
            deployment_id: "d_abc".into(),
        },
        &format!("{key}1205645f616263"),
    );
    check_bytes(
        &ReportDeploymentStatusRequest {
            region: region(),
            change: Some(report::Change::Delete(report::Delete {
                k8s_name: "dep-1".into(),
            })),
        },
        "12070a056465702d311a100a03617773120975732d656173742d31",
    );
    check_bytes(
        &ReportSentinelStatusRequest {
            k8s_name: "sentinelx".into(),
            available_replicas: 2,
            health: Health::Healthy.into(),
            sentinel_id: "s_1".into(),
            running_image: "img:1".into(),
            region: region(),
        },
        "0a0973656e74696e656c78100218012203735f312a05696d673a3132100a03617773120975732d656173742d31",
    );
}

/// The stored objects of the vault, as the test vector of the vault format has them.
#[test]
fn data_encryption_key_is_as_documented() {
    check_bytes(
        &DataEncryptionKey {
            id: "dek_testvec1".into(),
            created_at: 1_767_225_600_001,
            key: (0x20..0x40).collect::<Vec<u8>>().into(),
        },
        "0a0c64656b5f74657374766563311081d0eab6b7331a20\
         202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f",
    );
}

const CANARY: &str = "hunter2-canary";

fn canary() -> Bytes {
    Bytes::from_static(CANARY.as_bytes())
}

fn check_hidden(message: &impl Debug) {
    let listed = format!("{:?}", CANARY.as_bytes());
    let listed = listed.trim_matches(['[', ']']).to_owned();
    for text in [
        format!("{message:?}"),
        format!("{message:#?}").replace([' ', '\n'], ""),
    ] {
        assert!(!text.contains(CANARY), "leaks its secret: {text}");
        assert!(
            !text.contains(&listed),
            "leaks its secret as numbers: {text}"
        );
        assert!(
            !text.contains(&listed.replace(' ', "")),
            "leaks its secret as numbers: {text}"
        );
    }
}

#[test]
fn debug_of_control_plane_messages_hides_secrets() {
    let apply = ApplyDeployment {
        k8s_name: "shown".into(),
        encrypted_environment_variables: canary(),
        command: vec![CANARY.into()],
        ..ApplyDeployment::default()
    };
    check_hidden(&apply);
    assert!(
        format!("{apply:?}").contains("shown"),
        "what is no secret stays readable"
    );
    assert!(
        format!("{apply:?}").contains("length 14"),
        "the size stays readable"
    );
    check_hidden(&DeploymentState {
        version: 1,
        state: Some(deployment_state::State::Apply(apply)),
    });
    check_hidden(&SecretsConfig {
        secrets: [("NAME".into(), CANARY.into())].into(),
    });
}

#[test]
fn debug_of_served_messages_hides_secrets() {
    check_hidden(&ApplyDeploymentRequest {
        encrypted_environment_variables: canary(),
        ..ApplyDeploymentRequest::default()
    });
    check_hidden(&DecryptSecretsBlobRequest {
        encrypted_blob: canary(),
        token: CANARY.into(),
        ..DecryptSecretsBlobRequest::default()
    });
    check_hidden(&DecryptSecretsBlobResponse {
        env_vars: [("N".into(), CANARY.into())].into(),
    });
}

#[test]
fn debug_of_vault_messages_hides_secrets() {
    let items = || [("NAME".to_owned(), CANARY.to_owned())].into();
    let text = || CANARY.to_owned();
    check_hidden(&EncryptRequest {
        keyring: "k".into(),
        data: text(),
    });
    check_hidden(&EncryptResponse {
        encrypted: text(),
        key_id: "k".into(),
    });
    check_hidden(&DecryptRequest {
        keyring: "k".into(),
        encrypted: text(),
    });
    check_hidden(&DecryptResponse { plaintext: text() });
    check_hidden(&EncryptBulkRequest {
        keyring: "k".into(),
        items: items(),
    });
    let item = EncryptBulkResponseItem {
        encrypted: text(),
        key_id: "k".into(),
    };
    check_hidden(&item);
    check_hidden(&EncryptBulkResponse {
        items: [("NAME".into(), item)].into(),
    });
    check_hidden(&DecryptBulkRequest {
        keyring: "k".into(),
        items: items(),
    });
    check_hidden(&DecryptBulkResponse { items: items() });
    check_hidden(&ReEncryptRequest {
        keyring: "k".into(),
        encrypted: text(),
        key_id: Some("k".into()),
    });
    check_hidden(&ReEncryptResponse {
        encrypted: text(),
        key_id: "k".into(),
    });
    let encrypted = Encrypted {
        algorithm: Algorithm::Aes256Gcm.into(),
        nonce: canary(),
        ciphertext: canary(),
        encryption_key_id: "dek".into(),
        time: 1,
    };
    check_hidden(&encrypted);
    check_hidden(&EncryptedDataEncryptionKey {
        id: "dek".into(),
        created_at: 1,
        encrypted: Some(encrypted),
    });
    check_hidden(&DataEncryptionKey {
        id: "dek".into(),
        created_at: 1,
        key: canary(),
    });
    check_hidden(&KeyEncryptionKey {
        id: "kek".into(),
        created_at: 1,
        key: canary(),
    });
}

#[test]
fn descriptor_set_names_every_service() {
    for service in [
        "ClusterService",
        "SecretsService",
        "SchedulerService",
        "VaultService",
    ] {
        assert!(
            FILE_DESCRIPTOR_SET
                .windows(service.len())
                .any(|part| part == service.as_bytes()),
            "{service} is missing"
        );
    }
}
