//! Bytes in, bytes out, for one region.

mod fuzz;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use krane_domain::desired::{Change, StreamItem};
use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::kinds::deployment::{AutoscalingInput, DeploymentInput, FIELD_TABLE};
use krane_domain::kinds::{Desired, Rules};
use krane_domain::report::{Health, Report};
use krane_ports::{Answer, Question};
use krane_proto::FILE_DESCRIPTOR_SET;
use krane_proto::ctrl::v1::{
    ApplyCiliumNetworkPolicy, ApplyDeployment, ApplySentinel, AutoscalingPolicy,
    CiliumNetworkPolicyState, DeleteDeployment, DeleteSentinel, DeploymentState, EphemeralStorage,
    SentinelState, cilium_network_policy_state, deployment_state, sentinel_state,
};
use proptest::prelude::*;
use prost::Message;

use super::Wire;
use super::deployments::deployment_input;

fn wire() -> Wire {
    let rules = Arc::new(Rules::default());
    Wire::new("aws", "us-east-1", Controller::Deployments, rules)
}

fn check_bytes(body: &Bytes, hex: &str) {
    let got = body
        .iter()
        .fold(String::new(), |all, byte| format!("{all}{byte:02x}"));
    assert_eq!(got, hex);
}

#[test]
fn requests_are_as_documented() {
    let key = "0a100a03617773120975732d656173742d31";
    check_bytes(&wire().watch(0).body, key);
    check_bytes(&wire().watch(300).body, &format!("{key}10ac02"));
    check_bytes(&wire().heartbeat().body, key);
    let question = Question {
        key: ObjectKey::new("ns", "n"),
        id: Arc::from("d_abc"),
    };
    check_bytes(
        &wire().question(&question).body,
        &format!("{key}1205645f616263"),
    );
    let report = Report::Gone {
        key: ObjectKey::new("ns", "dep-1"),
        id: None,
    };
    let hex = "12070a056465702d311a100a03617773120975732d656173742d31";
    check_bytes(&wire().report(&report).expect("a deployment's").body, hex);
}

fn wire_of(controller: Controller) -> Wire {
    Wire::new("aws", "us-east-1", controller, Arc::new(Rules::default()))
}

/// unkeyed/unkey d86e9fe802, PR #5826, #5628 (A08): the region is in every message.
#[test]
fn a_sentinels_report_is_as_documented() {
    let report = Report::Health {
        key: ObjectKey::new("sentinel", "sentinelx"),
        id: "s_1".into(),
        available: 2,
        health: Health::Healthy,
        running_image: "img:1".to_owned(),
    };
    let hex = "0a0973656e74696e656c78100218012203735f312a05696d673a31\
               32100a03617773120975732d656173742d31";
    let sentinels = wire_of(Controller::Sentinels);
    check_bytes(&sentinels.report(&report).expect("a sentinel's").body, hex);
    let gone = Report::Gone {
        key: ObjectKey::new("sentinel", "sentinelx"),
        id: Some("s_1".into()),
    };
    let hex = "0a0973656e74696e656c7818022203735f3132100a03617773120975732d656173742d31";
    check_bytes(&sentinels.report(&gone).expect("a sentinel's").body, hex);
    assert!(wire().report(&report).is_none());
    assert!(wire_of(Controller::Cilium).report(&gone).is_none());
}

/// unkeyed/unkey d86e9fe802, PR #5826, #5628 (A08): the region is in every message. Each kind has
/// calls of its own, alike but for their names and what identifies an object.
#[test]
fn every_kind_asks_for_its_own() {
    let key = "0a100a03617773120975732d656173742d31";
    for (controller, name) in [
        (Controller::Deployments, "Deployment"),
        (Controller::Sentinels, "Sentinel"),
        (Controller::Cilium, "CiliumNetworkPolicy"),
    ] {
        let wire = wire_of(controller);
        let question = wire.question(&Question {
            key: ObjectKey::new("ns", "n"),
            id: Arc::from("x"),
        });
        check_bytes(&question.body, &format!("{key}120178"));
        let path = format!("/ctrl.v1.ClusterService/GetDesired{name}State");
        assert_eq!((question.path, question.method), (&*path, &path[24..]));
        check_bytes(&wire.watch(7).body, &format!("{key}1007"));
        let plural = name.strip_suffix('y').map(|name| format!("{name}ies"));
        let plural = plural.unwrap_or_else(|| format!("{name}s"));
        assert_eq!(
            wire.watch(7).path,
            format!("/ctrl.v1.ClusterService/Watch{plural}")
        );
    }
}

#[test]
fn states_of_sentinels_and_policies_are_read() {
    let sentinel = SentinelState {
        version: 7,
        state: Some(sentinel_state::State::Apply(ApplySentinel {
            k8s_name: "sen-1".into(),
            workspace_id: "2".into(),
            project_id: "3".into(),
            app_id: "4".into(),
            environment_id: "5".into(),
            sentinel_id: "6".into(),
            image: "seven".into(),
            replicas: 8,
            cpu_millicores: 9,
            memory_mib: 10,
        })),
    };
    let StreamItem::State(state) = read(Controller::Sentinels, &sentinel) else {
        panic!("it names a sentinel");
    };
    assert_eq!(
        (state.version, state.key.to_string()),
        (7, "sentinel/sen-1".to_owned())
    );
    let Ok(Change::Apply(Desired::Sentinel(desired))) = state.change else {
        panic!("{:?}", state.change);
    };
    let ids = [
        &desired.workspace_id,
        &desired.project_id,
        &desired.app_id,
        &desired.environment_id,
        &desired.sentinel_id,
    ];
    assert_eq!(ids.map(|id| &**id), ["2", "3", "4", "5", "6"]);
    assert_eq!(desired.image, "seven");
    let numbers = (desired.replicas, desired.cpu_millicores, desired.memory_mib);
    assert_eq!(numbers, (8, 9, 10));

    let policy = CiliumNetworkPolicyState {
        version: 8,
        state: Some(cilium_network_policy_state::State::Apply(
            ApplyCiliumNetworkPolicy {
                k8s_namespace: "ns".into(),
                k8s_name: "p".into(),
                cilium_network_policy_id: "net_1".into(),
                policy: Bytes::from_static(b"{\"spec\":{}}"),
            },
        )),
    };
    let StreamItem::State(state) = read(Controller::Cilium, &policy) else {
        panic!("it names a policy");
    };
    let Ok(Change::Apply(desired)) = state.change else {
        panic!("{:?}", state.change);
    };
    assert_eq!((&**desired.id(), desired.replicas()), ("net_1", None));

    let gone = SentinelState {
        version: 9,
        state: Some(sentinel_state::State::Delete(DeleteSentinel {
            k8s_name: "sen-1".into(),
        })),
    };
    let item = read(Controller::Sentinels, &gone);
    assert!(matches!(item, StreamItem::State(state) if state.change == Ok(Change::Delete)));
}

/// Half a message of a sentinel names it by its first text; of the others, by two.
#[test]
fn what_does_not_decode_is_kept_under_the_name_it_has() {
    // apply { "abc", "de", field 7: not UTF-8 }, version 300
    let message = Bytes::from_static(b"\x0a\x0d\x0a\x03abc\x12\x02de\x3a\x02\xff\xfe\x18\xac\x02");
    for (controller, key) in [
        (Controller::Deployments, "abc/de"),
        (Controller::Sentinels, "sentinel/abc"),
    ] {
        let item = wire_of(controller).stream_item(&message);
        let StreamItem::State(state) = item else {
            panic!("{item:?}");
        };
        assert_eq!((state.key.to_string().as_str(), state.version), (key, 300));
        assert_eq!(
            state.change.map_err(|invalid| invalid.field),
            Err("message".to_owned())
        );
    }
}

fn read(controller: Controller, message: &impl Message) -> StreamItem {
    wire_of(controller).stream_item(&message.encode_to_vec().into())
}

/// An update without instances clears them, so it must not be lost on the way.
#[test]
fn a_report_without_instances_names_its_workload() {
    let report = Report::Instances {
        key: ObjectKey::new("ns", "dep-1"),
        instances: vec![],
    };
    let hex = "0a070a056465702d311a100a03617773120975732d656173742d31";
    check_bytes(&wire().report(&report).expect("a deployment's").body, hex);
}

#[test]
fn a_request_shows_no_message_in_its_debug() {
    assert!(!format!("{:?}", wire().heartbeat()).contains("us-east-1"));
}

/// unkeyed/unkey deea720808, PR #6545; 131a54126f, PR #6544 (A12).
#[test]
fn every_field_reaches_the_domain_under_its_own_name() {
    let message = ApplyDeployment {
        k8s_namespace: "1".into(),
        k8s_name: "2".into(),
        workspace_id: "3".into(),
        project_id: "4".into(),
        environment_id: "5".into(),
        deployment_id: "6".into(),
        image: "7".into(),
        replicas: 8,
        cpu_millicores: 9,
        memory_mib: 10,
        build_id: Some("11".into()),
        encrypted_environment_variables: Bytes::from_static(b"12"),
        command: vec!["13".into(), "b".into()],
        port: 14,
        shutdown_signal: "15".into(),
        healthcheck: Some(Bytes::from_static(b"17")),
        app_id: "18".into(),
        environment_slug: Some("21".into()),
        region: Some("22".into()),
        git_commit_sha: Some("23".into()),
        git_branch: Some("24".into()),
        git_repo: Some("25".into()),
        git_commit_message: Some("26".into()),
        autoscaling: Some(AutoscalingPolicy {
            min_replicas: 271,
            max_replicas: 272,
            cpu_threshold: Some(273),
            memory_threshold: Some(274),
        }),
        ephemeral_storage: Some(EphemeralStorage { size_mib: 29 }),
    };
    let expected = DeploymentInput {
        k8s_namespace: "1".into(),
        k8s_name: "2".into(),
        workspace_id: "3".into(),
        project_id: "4".into(),
        environment_id: "5".into(),
        deployment_id: "6".into(),
        image: "7".into(),
        replicas: 8,
        cpu_millicores: 9,
        memory_mib: 10,
        build_id: Some("11".into()),
        encrypted_environment_variables: b"12".to_vec(),
        command: vec!["13".into(), "b".into()],
        port: 14,
        shutdown_signal: "15".into(),
        healthcheck: Some(b"17".to_vec()),
        app_id: "18".into(),
        environment_slug: Some("21".into()),
        region: Some("22".into()),
        git_commit_sha: Some("23".into()),
        git_branch: Some("24".into()),
        git_repo: Some("25".into()),
        git_commit_message: Some("26".into()),
        autoscaling: Some(AutoscalingInput {
            min_replicas: 271,
            max_replicas: 272,
            cpu_threshold: Some(273),
            memory_threshold: Some(274),
        }),
        ephemeral_storage_mib: Some(29),
    };
    assert!(deployment_input(message) == expected);
    assert!(deployment_input(ApplyDeployment::default()) == DeploymentInput::default());
}

/// As much of a `FileDescriptorSet` as it takes to list the fields of a message.
#[derive(Clone, PartialEq, Message)]
struct Files {
    #[prost(message, repeated, tag = "1")]
    file: Vec<File>,
}

#[derive(Clone, PartialEq, Message)]
struct File {
    #[prost(message, repeated, tag = "4")]
    message_type: Vec<MessageType>,
}

#[derive(Clone, PartialEq, Message)]
struct MessageType {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    field: Vec<Field>,
}

#[derive(Clone, PartialEq, Message)]
struct Field {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(uint32, tag = "3")]
    number: u32,
}

/// unkeyed/unkey deea720808, PR #6545; 131a54126f, PR #6544 (A12).
#[test]
fn every_field_of_the_protocol_has_its_row_in_the_field_table() {
    let files = Files::decode(FILE_DESCRIPTOR_SET).unwrap();
    let apply = files
        .file
        .iter()
        .flat_map(|file| &file.message_type)
        .find(|message| message.name == "ApplyDeployment")
        .unwrap();
    let protocol: BTreeMap<u32, &str> = apply
        .field
        .iter()
        .map(|field| (field.number, field.name.as_str()))
        .collect();
    let table: BTreeMap<u32, &str> = FIELD_TABLE
        .iter()
        .map(|field| (field.number, field.name))
        .collect();
    assert_eq!(table, protocol);
}

fn state(state: Option<deployment_state::State>, version: u64) -> Bytes {
    DeploymentState { version, state }.encode_to_vec().into()
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the oneof is optional on the wire"
)]
fn delete(namespace: &str, name: &str) -> Option<deployment_state::State> {
    Some(deployment_state::State::Delete(DeleteDeployment {
        k8s_namespace: namespace.into(),
        k8s_name: name.into(),
    }))
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "callers make one for each check"
)]
fn check_unnamed(message: Bytes, expected_version: u64, expected_reason: &str) {
    match wire().stream_item(&message) {
        StreamItem::Unnamed { version, reason } => {
            assert_eq!(version, expected_version);
            assert!(reason.contains(expected_reason), "{reason}");
        }
        StreamItem::State(state) => panic!("{state:?} names something"),
    }
}

#[test]
fn a_state_that_names_nothing_keeps_its_version() {
    check_unnamed(state(None, 3), 3, "neither apply nor delete");
    check_unnamed(state(delete("", "n"), 4), 4, "k8s_namespace is empty");
    check_unnamed(state(delete("ns", ""), 5), 5, "k8s_name is empty");
    check_unnamed(state(delete("ns", &"n".repeat(254)), 6), 6, "254 bytes");
    check_unnamed(Bytes::from_static(b"\x18\x07\xff"), 7, "does not decode");
}

#[test]
fn an_invalid_state_keeps_its_key_version_and_field() {
    let apply = ApplyDeployment {
        k8s_namespace: "ns".into(),
        k8s_name: "n".into(),
        ..ApplyDeployment::default()
    };
    let message = state(Some(deployment_state::State::Apply(apply)), 9);
    let size = message.len();
    match wire().stream_item(&message) {
        StreamItem::State(state) => {
            assert_eq!((state.key, state.version), (ObjectKey::new("ns", "n"), 9));
            assert_eq!(state.size, size);
            assert!(!state.change.unwrap_err().field.is_empty());
        }
        StreamItem::Unnamed { reason, .. } => panic!("unnamed: {reason}"),
    }
}

#[test]
fn an_answer_keeps_the_name_it_came_with() {
    let answer = wire().answer(&state(delete("ns", "other"), 0));
    let key = ObjectKey::new("ns", "other");
    assert_eq!(
        answer,
        Answer::State {
            key,
            change: Ok(Change::Delete)
        }
    );
    assert_eq!(wire().answer(&state(None, 0)), Answer::Empty);
}

/// A broken answer says nothing about the object: what was wanted of it before still is.
#[test]
fn an_answer_that_does_not_decode_is_none() {
    let mut message = state(delete("ns", "n"), 0).to_vec();
    message.extend(b"\x9a\x06\x7f");
    assert_eq!(wire().answer(&message.into()), Answer::Empty);
}

/// What does not decode is quarantined or acknowledged, and never shows what was in it.
#[test]
fn an_undecodable_state_does_not_repeat_its_content() {
    // apply { namespace, name, encrypted variables, image: no text }
    let apply = ApplyDeployment {
        k8s_namespace: "ns".into(),
        k8s_name: "n".into(),
        encrypted_environment_variables: Bytes::from_static(b"hunter2-canary"),
        ..ApplyDeployment::default()
    };
    let mut message = apply.encode_to_vec();
    message.extend(b"\x3a\x02\xff\xfe");
    let mut outer = vec![0x0a, u8::try_from(message.len()).unwrap()];
    outer.extend(message);
    let item = wire().stream_item(&outer.into());
    let StreamItem::State(state) = &item else {
        panic!("{item:?}")
    };
    let invalid = state.change.clone().unwrap_err();
    assert!(invalid.problem.contains("image"), "{invalid}");
    assert!(!format!("{item:?}").contains("hunter2-canary"));
}

proptest! {
    #[test]
    fn any_bytes_become_an_item(bytes: Vec<u8>) {
        let message = Bytes::from(bytes);
        wire().stream_item(&message);
        wire().answer(&message);
    }
}
