use std::time::Duration;

use super::{ApiStatus, Cause, classify};
use crate::refusal::RefusalClass::{
    self, Configuration, KindMissing, NamespaceMissing, NamespaceTerminating, Permanent,
    Reevaluate, Transient, Unauthenticated,
};

fn status(code: u16, reason: &str, message: &str) -> ApiStatus {
    ApiStatus {
        code,
        reason: reason.to_owned(),
        message: message.to_owned(),
        is_json: true,
        ..ApiStatus::default()
    }
}

fn with_cause(status: ApiStatus, reason: &str, field: &str) -> ApiStatus {
    let cause = Cause {
        reason: reason.to_owned(),
        field: field.to_owned(),
        message: String::new(),
    };
    ApiStatus {
        causes: vec![cause],
        ..status
    }
}

fn of_kind(status: ApiStatus, kind: &str) -> ApiStatus {
    ApiStatus {
        details_kind: kind.to_owned(),
        ..status
    }
}

fn plain(code: u16, message: &str) -> ApiStatus {
    ApiStatus {
        is_json: false,
        ..status(code, "", message)
    }
}

/// Every row of the measured table, then what follows from D11b and what is not in it.
fn rows() -> Vec<(ApiStatus, RefusalClass)> {
    vec![
        (
            status(400, "BadRequest", "metadata.managedFields must be nil"),
            Permanent,
        ),
        (
            status(
                400,
                "BadRequest",
                "the name of the object (b) does not match the name on the URL (a)",
            ),
            Permanent,
        ),
        (
            status(400, "BadRequest", "error decoding YAML: duplicate field"),
            Permanent,
        ),
        (status(401, "Unauthorized", "Unauthorized"), Unauthenticated),
        (
            with_cause(
                status(
                    403,
                    "Forbidden",
                    "replicasets.apps \"a\" is forbidden: unable to create new content in namespace x because it is being terminated",
                ),
                "NamespaceTerminating",
                "metadata.namespace",
            ),
            NamespaceTerminating,
        ),
        (
            status(
                403,
                "Forbidden",
                "create not allowed while custom resource definition is terminating",
            ),
            Transient,
        ),
        (
            status(
                403,
                "Forbidden",
                "replicasets.apps \"a\" is forbidden: exceeded quota: q, requested: count/replicasets.apps=1",
            ),
            Transient,
        ),
        (
            status(
                403,
                "Forbidden",
                "replicasets.apps \"a\" is forbidden: User \"k\" cannot patch resource \"replicasets\"",
            ),
            Configuration,
        ),
        (
            status(
                403,
                "Forbidden",
                "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on",
            ),
            Configuration,
        ),
        (
            status(
                403,
                "Forbidden",
                "Use of external IPs is denied by admission control",
            ),
            Configuration,
        ),
        (
            of_kind(
                status(404, "NotFound", "namespaces \"x\" not found"),
                "namespaces",
            ),
            NamespaceMissing,
        ),
        (
            of_kind(
                status(404, "NotFound", "replicasets.apps \"a\" not found"),
                "replicasets",
            ),
            Reevaluate,
        ),
        (plain(404, "404 page not found"), KindMissing),
        (
            status(
                404,
                "NotFound",
                "the server could not find the requested resource",
            ),
            KindMissing,
        ),
        (
            with_cause(
                status(409, "Conflict", "Apply failed with 1 conflict"),
                "FieldManagerConflict",
                ".spec.replicas",
            ),
            Configuration,
        ),
        (
            status(
                409,
                "Conflict",
                "the object has been modified; please apply your changes to the latest version",
            ),
            Reevaluate,
        ),
        (
            status(
                409,
                "Conflict",
                "uid mismatch: the provided object specified uid x, and no existing object was found",
            ),
            Reevaluate,
        ),
        (
            status(
                409,
                "Conflict",
                "the UID in the precondition (x) does not match the UID in record (y)",
            ),
            Reevaluate,
        ),
        (
            status(409, "AlreadyExists", "namespaces \"x\" already exists"),
            Reevaluate,
        ),
        (
            status(
                413,
                "RequestEntityTooLarge",
                "Request entity too large: limit is 3145728",
            ),
            Permanent,
        ),
        (
            with_cause(
                status(
                    422,
                    "Invalid",
                    "ReplicaSet.apps \"a\" is invalid: spec.selector: Invalid value: …: field is immutable",
                ),
                "FieldValueInvalid",
                "spec.selector",
            ),
            Permanent,
        ),
        (
            with_cause(
                status(422, "Invalid", "ReplicaSet.apps \"a\" is invalid"),
                "FieldValueInvalid",
                "metadata.labels",
            ),
            Permanent,
        ),
        (
            with_cause(
                status(
                    422,
                    "Invalid",
                    "ReplicaSet.apps \"a\" is invalid: metadata.uid: Invalid value: \"x\": field is immutable",
                ),
                "FieldValueInvalid",
                "metadata.uid",
            ),
            Reevaluate,
        ),
        (
            status(
                422,
                "Invalid",
                "ReplicaSet.apps \"a\" is invalid: metadata.uid: Invalid value: \"x\": field is immutable",
            ),
            Reevaluate,
        ),
        (
            status(
                422,
                "Invalid",
                "the server rejected our request due to an error in our request",
            ),
            Reevaluate,
        ),
        (
            status(
                429,
                "TooManyRequests",
                "too many requests, please try again later",
            ),
            Transient,
        ),
        (
            status(
                500,
                "",
                "failed to create typed patch object (ns/app-1; apps/v1, Kind=ReplicaSet): .spec.template.spec.containers[name=\"c\"].imagePullPolcy: field not declared in schema",
            ),
            Permanent,
        ),
        (
            status(
                500,
                "",
                "failed to create typed patch object (ns/p; cilium.io/v2, Kind=CiliumNetworkPolicy): errors: .spec.x: duplicate entries for key [name=\"A\"]",
            ),
            Permanent,
        ),
        (
            status(
                500,
                "",
                "failed to convert new object (ns/app-1; apps/v1, Kind=ReplicaSet) to proper version: quantities must match the regular expression",
            ),
            Permanent,
        ),
        (
            status(500, "", "etcdserver: request is too large"),
            Permanent,
        ),
        (
            status(
                500,
                "",
                "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2600000 vs. 2097152)",
            ),
            Permanent,
        ),
        (
            status(
                500,
                "InternalError",
                "Internal error occurred: failed calling webhook \"x\": connection refused",
            ),
            Transient,
        ),
        (status(500, "", "etcdserver: leader changed"), Transient),
        (plain(502, "Bad Gateway"), Transient),
        (
            status(503, "ServiceUnavailable", "apiserver is shutting down"),
            Transient,
        ),
        (
            status(
                504,
                "Timeout",
                "request did not complete within requested timeout",
            ),
            Transient,
        ),
        (
            with_cause(
                status(504, "Timeout", "Too large resource version"),
                "ResourceVersionTooLarge",
                "",
            ),
            Reevaluate,
        ),
        (plain(0, "connection refused"), Transient),
        // D11b: admission is configuration, whatever code it chose.
        (
            status(
                400,
                "BadRequest",
                "admission webhook \"v.kyverno.svc\" denied the request: no gvisor",
            ),
            Configuration,
        ),
        (
            status(
                403,
                "Forbidden",
                "admission webhook \"gatekeeper.sh\" denied the request: label missing",
            ),
            Configuration,
        ),
        (
            status(
                422,
                "Invalid",
                "replicasets.apps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
            ),
            Configuration,
        ),
        // Not in the table.
        (
            status(
                405,
                "MethodNotAllowed",
                "the server does not allow this method",
            ),
            Configuration,
        ),
        (status(408, "Timeout", "request timed out"), Transient),
        (
            status(410, "Expired", "too old resource version"),
            Reevaluate,
        ),
        (plain(302, "Found"), Transient),
        (plain(599, ""), Transient),
    ]
}

#[test]
fn every_measured_refusal_has_its_class() {
    for (status, class) in rows() {
        let refusal = classify(&status);
        assert_eq!(
            refusal.class, class,
            "{} {}: {}",
            status.code, status.reason, status.message
        );
        assert_eq!(refusal.code, status.code);
    }
}

#[test]
fn a_schema_error_quoted_by_a_webhook_quarantines_nothing() {
    let quoted = status(
        500,
        "InternalError",
        "Internal error occurred: failed calling webhook: failed to create typed patch object (x)",
    );
    assert_eq!(classify(&quoted).class, Transient);
}

#[test]
fn the_wait_the_server_asked_for_is_kept() {
    let busy = ApiStatus {
        retry_after: Some(Duration::from_secs(2)),
        ..status(429, "TooManyRequests", "later")
    };
    assert_eq!(classify(&busy).retry_after, Some(Duration::from_secs(2)));
}

#[test]
fn messages_become_one_short_line() {
    let long = format!("  a\nb\t{}", "ä".repeat(5000));
    let refusal = classify(&status(500, "", &long));
    assert!(refusal.message.starts_with("a b ä"), "{}", refusal.message);
    assert!(refusal.message.ends_with('…'));
    assert_eq!(refusal.message.chars().count(), 513);
}

#[test]
fn every_code_has_a_class() {
    for code in 0..=1000 {
        let _ = classify(&plain(code, ""));
    }
}
