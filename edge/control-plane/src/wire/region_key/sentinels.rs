//! Sentinels. Their namespace is always the same and not in the messages.

use krane_domain::desired::Change;
use krane_domain::kinds::sentinel::{SentinelInput, validate, validate_delete};
use krane_domain::kinds::{Desired, Rules};
use krane_domain::labels;
use krane_domain::report::{self, Report};
use krane_proto::ctrl::v1::{
    ApplySentinel, GetDesiredSentinelStateRequest, Health, RegionKey, ReportSentinelStatusRequest,
    SentinelState, WatchSentinelsRequest, sentinel_state,
};
use prost::{DecodeError, Message};

use super::{Kind, Named, WireRequest, named, named_key, request};

pub(super) struct Sentinels;

impl Kind for Sentinels {
    fn watch(&self, region: Option<RegionKey>, version_last_seen: u64) -> WireRequest {
        request(
            "WatchSentinels",
            "/ctrl.v1.ClusterService/WatchSentinels",
            &WatchSentinelsRequest {
                region,
                version_last_seen,
            },
        )
    }

    fn question(&self, region: Option<RegionKey>, id: &str) -> WireRequest {
        request(
            "GetDesiredSentinelState",
            "/ctrl.v1.ClusterService/GetDesiredSentinelState",
            &GetDesiredSentinelStateRequest {
                region,
                sentinel_id: id.to_owned(),
            },
        )
    }

    fn report(&self, region: Option<RegionKey>, report: &Report) -> Option<WireRequest> {
        let message = match report {
            Report::Health {
                key,
                id,
                available,
                health,
                running_image,
            } => ReportSentinelStatusRequest {
                k8s_name: key.name.to_string(),
                available_replicas: i32::try_from(*available).unwrap_or(i32::MAX),
                health: health_message(*health).into(),
                sentinel_id: id.to_string(),
                running_image: running_image.clone(),
                region,
            },
            Report::Gone { key, id } => ReportSentinelStatusRequest {
                k8s_name: key.name.to_string(),
                available_replicas: 0,
                health: Health::Unhealthy.into(),
                sentinel_id: id.as_deref().unwrap_or_default().to_owned(),
                running_image: String::new(),
                region,
            },
            Report::Instances { .. } => return None,
        };
        Some(request(
            "ReportSentinelStatus",
            "/ctrl.v1.ClusterService/ReportSentinelStatus",
            &message,
        ))
    }

    fn decode(&self, message: &[u8], rules: &Rules) -> Result<(Named, u64), DecodeError> {
        let state = SentinelState::decode(message)?;
        let key = |name: &str| named_key(labels::SENTINEL_NAMESPACE, name);
        let named = match state.state {
            Some(sentinel_state::State::Apply(apply)) => named(key(&apply.k8s_name), || {
                let desired = validate(sentinel_input(apply), rules)?;
                Ok(Change::Apply(Desired::Sentinel(Box::new(desired))))
            }),
            Some(sentinel_state::State::Delete(delete)) => named(key(&delete.k8s_name), || {
                validate_delete(&delete.k8s_name)?;
                Ok(Change::Delete)
            }),
            None => Named::NOTHING_SAID,
        };
        Ok((named, state.version))
    }

    /// The message carries a name alone, at the place where others have the namespace.
    fn glimpsed<'a>(
        &self,
        first: Option<&'a str>,
        _second: Option<&'a str>,
    ) -> Option<(&'a str, &'a str)> {
        Some((labels::SENTINEL_NAMESPACE, first?))
    }
}

fn health_message(health: report::Health) -> Health {
    match health {
        report::Health::Healthy => Health::Healthy,
        report::Health::Unhealthy => Health::Unhealthy,
        report::Health::Paused => Health::Paused,
    }
}

fn sentinel_input(message: ApplySentinel) -> SentinelInput {
    // Every field is named, so that a new one does not compile until it is used.
    let ApplySentinel {
        k8s_name,
        workspace_id,
        project_id,
        app_id,
        environment_id,
        sentinel_id,
        image,
        replicas,
        cpu_millicores,
        memory_mib,
    } = message;
    SentinelInput {
        k8s_name,
        workspace_id,
        project_id,
        app_id,
        environment_id,
        sentinel_id,
        image,
        replicas,
        cpu_millicores,
        memory_mib,
    }
}
