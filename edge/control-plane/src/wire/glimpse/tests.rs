use krane_proto::ctrl::v1::{
    ApplyDeployment, DeleteDeployment, DeploymentState, deployment_state::State,
};
use proptest::prelude::*;
use prost::Message as _;

use super::{Glimpse, glimpse};

fn message(namespace: &str, name: &str, image: &str, version: u64, is_delete: bool) -> Vec<u8> {
    let state = if is_delete {
        State::Delete(DeleteDeployment {
            k8s_namespace: namespace.to_owned(),
            k8s_name: name.to_owned(),
        })
    } else {
        State::Apply(ApplyDeployment {
            k8s_namespace: namespace.to_owned(),
            k8s_name: name.to_owned(),
            image: image.to_owned(),
            ..ApplyDeployment::default()
        })
    };
    DeploymentState {
        version,
        state: Some(state),
    }
    .encode_to_vec()
}

#[test]
fn reads_around_a_text_that_is_none() {
    // apply { namespace, name, image: not UTF-8 }, version 300
    let message = b"\x0a\x0d\x0a\x03abc\x12\x02de\x3a\x02\xff\xfe\x18\xac\x02";
    let seen = glimpse(message);
    assert_eq!(
        seen,
        Glimpse {
            first: Some("abc"),
            second: Some("de"),
            version: 300
        }
    );
}

#[test]
fn a_name_that_is_no_text_is_no_name() {
    let seen = glimpse(b"\x0a\x09\x0a\x03abc\x12\x02\xff\xfe\x18\x07");
    assert_eq!(
        seen,
        Glimpse {
            first: Some("abc"),
            second: None,
            version: 7
        }
    );
}

#[test]
fn garbage_gives_nothing() {
    assert_eq!(glimpse(b"\xff\xff\xff\xff"), Glimpse::default());
    assert_eq!(glimpse(b""), Glimpse::default());
}

proptest! {
    #[test]
    fn whole_messages_are_read_like_a_decoder_reads_them(
        namespace in "\\PC{0,20}", name in "\\PC{0,20}", image in "\\PC{0,40}",
        version: u64, is_delete: bool,
    ) {
        let bytes = message(&namespace, &name, &image, version, is_delete);
        let seen = glimpse(&bytes);
        prop_assert_eq!(seen.first.unwrap_or_default(), namespace);
        prop_assert_eq!(seen.second.unwrap_or_default(), name);
        prop_assert_eq!(seen.version, version);
    }

    #[test]
    fn a_cut_message_never_gives_another_name(
        namespace in "[a-z]{1,20}", name in "[a-z]{1,20}", image in "[a-z]{0,40}",
        is_delete: bool, cut in 0_usize..200,
    ) {
        let bytes = message(&namespace, &name, &image, 9, is_delete);
        let seen = glimpse(&bytes[..cut.min(bytes.len())]);
        prop_assert!(seen.first.is_none_or(|seen| seen == namespace));
        prop_assert!(seen.second.is_none_or(|seen| seen == name));
    }

    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>) {
        glimpse(&bytes);
    }
}
