use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{FIELD_TABLE, ProtoField};
use crate::kinds::Rules;
use crate::kinds::deployment::{AutoscalingInput, DeploymentInput, dependants, render, validate};
use crate::testing::{applied, full_input, lookup, scaled_input};

fn rendered(input: DeploymentInput) -> Value {
    let rules = Rules::default();
    let desired = validate(input, &rules).unwrap_or_else(|invalid| panic!("{invalid}"));
    render(&desired, &rules, None).body
}

/// The autoscaler of a workload with one, which was applied before.
fn rendered_autoscaler(input: DeploymentInput) -> Value {
    let rules = Rules::default();
    let desired = validate(input, &rules).unwrap_or_else(|invalid| panic!("{invalid}"));
    let owner = applied(&render(&desired, &rules, None), "uid-1", 7);
    let owner = owner.unwrap_or_else(|error| panic!("{error}"));
    dependants(&desired, &owner).remove(0).body
}

/// What is found at each place of [`FIELD_TABLE`], in its order.
fn expected() -> BTreeMap<u32, Vec<Value>> {
    let ids = |value: &str, count| vec![json!(value); count];
    let probe = json!({
        "httpGet": { "path": "/odd", "port": 4321 },
        "periodSeconds": 11,
        "timeoutSeconds": 6,
        "failureThreshold": 4,
        "initialDelaySeconds": 2,
    });
    BTreeMap::from([
        (1, ids("wsnamespace", 1)),
        (2, vec![json!("odd-name"), json!("odd-name-")]),
        (3, ids("ws_Odd", 3)),
        (4, ids("proj_Odd", 3)),
        (5, ids("env_Odd", 5)),
        (6, ids("d_Odd", 6)),
        (7, ids("registry.depot.dev/odd/image@sha256:0123abcd", 1)),
        (8, vec![json!(7)]),
        (9, vec![json!("1300m"), json!("325m")]),
        (10, vec![json!("3000Mi"), json!("750Mi")]),
        (11, ids("build_Odd", 2)),
        (12, ids("eyJPREQiOiJzZWFsZWQifQ==", 1)),
        (13, vec![json!(["odd", "--flag"])]),
        (
            14,
            vec![json!("4321"), json!(4321), json!(4321), json!(4321)],
        ),
        (15, vec![json!(["kill", "-SIGQUIT", "1"])]),
        (17, vec![probe.clone(), probe]),
        (18, ids("app_Odd", 2)),
        (21, ids("odd-slug", 1)),
        (22, ids("odd-region-1", 1)),
        (23, ids("0ddc0de", 1)),
        (24, ids("odd/branch", 1)),
        (25, ids("odd/repo", 1)),
        (26, ids("odd: costs $$5 $$(PATH)", 1)),
        (27, vec![json!(7)]),
        (29, vec![json!("/data"), json!("/data"), json!("5120Mi")]),
    ])
}

/// The same for the autoscaler.
fn expected_of_autoscaler() -> BTreeMap<u32, Vec<Value>> {
    BTreeMap::from([
        (1, vec![json!("wsnamespace")]),
        (2, vec![json!("odd-name"); 3]),
        (3, vec![json!("ws_Odd")]),
        (4, vec![json!("proj_Odd")]),
        (5, vec![json!("env_Odd")]),
        (6, vec![json!("d_Odd")]),
        (18, vec![json!("app_Odd")]),
        (27, vec![json!(3), json!(19), json!(83), json!(71)]),
    ])
}

fn check(
    body: &Value,
    mut expected: BTreeMap<u32, Vec<Value>>,
    places: fn(&ProtoField) -> &'static [&'static str],
) {
    for field in FIELD_TABLE {
        let (number, name) = (field.number, field.name);
        let values = expected.remove(&number).unwrap_or_default();
        assert_eq!(values.len(), places(field).len(), "{number} {name}");
        for (place, value) in places(field).iter().zip(values) {
            assert_eq!(lookup(body, place), Some(&value), "{name} at {place}");
        }
    }
    let unused = "values of fields that are not in the table";
    assert_eq!(expected, BTreeMap::new(), "{unused}");
}

/// unkeyed/unkey deea720808, PR #6545; 131a54126f, PR #6544 (A12): a field of the message that
/// nothing consumes goes unnoticed for months.
#[test]
fn every_field_lands_at_its_documented_places() {
    let body = rendered(scaled_input());
    check(&body, expected(), |field| field.places);
    let body = rendered_autoscaler(scaled_input());
    check(&body, expected_of_autoscaler(), |field| {
        field.autoscaler_places
    });
    for field in FIELD_TABLE {
        assert!(!field.places.is_empty(), "nothing consumes {}", field.name);
    }
}

/// Takes one field out of a message.
type Clear = fn(&mut DeploymentInput);

/// unkeyed/unkey deea720808, PR #6545 (A12): an optional field that is absent leaves no trace.
#[test]
fn an_absent_optional_field_leaves_no_trace() {
    let without: &[(u32, Clear)] = &[
        (12, |input| input.encrypted_environment_variables.clear()),
        (13, |input| input.command.clear()),
        (15, |input| input.shutdown_signal.clear()),
        (17, |input| input.healthcheck = None),
        (21, |input| input.environment_slug = None),
        (22, |input| input.region = None),
        (23, |input| input.git_commit_sha = None),
        (24, |input| input.git_branch = None),
        (25, |input| input.git_repo = None),
        (26, |input| input.git_commit_message = None),
        (29, |input| input.ephemeral_storage_mib = None),
    ];
    for (number, clear) in without {
        let mut input = scaled_input();
        clear(&mut input);
        let body = rendered(input);
        for field in FIELD_TABLE.iter().filter(|field| field.number == *number) {
            for place in field.places {
                let item = place.strip_suffix(".value").unwrap_or(place);
                assert_eq!(lookup(&body, item), None, "{} at {item}", field.name);
            }
        }
    }
    let mut input = full_input();
    (input.build_id, input.app_id) = (None, String::new());
    let body = rendered(input);
    for label in ["unkey.com/build.id", "unkey.com/app.id"] {
        assert_eq!(
            lookup(&body, &format!("metadata.labels[\"{label}\"]")),
            Some(&json!(""))
        );
    }
}

#[test]
fn autoscaling_raises_replicas_to_its_minimum() {
    let policy = |min_replicas| AutoscalingInput {
        min_replicas,
        max_replicas: 20,
        ..AutoscalingInput::default()
    };
    for (replicas, minimum, expected) in [(7, 3, 7), (7, 9, 9), (0, 1, 1)] {
        let body = rendered(DeploymentInput {
            replicas,
            autoscaling: Some(policy(minimum)),
            ..full_input()
        });
        assert_eq!(body["spec"]["replicas"], json!(expected));
    }
}

#[test]
fn the_table_names_each_field_once_and_in_order() {
    let numbers: Vec<u32> = FIELD_TABLE.iter().map(|field| field.number).collect();
    assert!(
        numbers.is_sorted_by(|one, other| one < other),
        "{numbers:?}"
    );
    let names: BTreeSet<&str> = FIELD_TABLE.iter().map(|field| field.name).collect();
    assert_eq!(names.len(), FIELD_TABLE.len());
}
