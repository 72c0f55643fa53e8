mod golden;
mod take_over;
mod upgrades;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{DesiredSentinel, Live, SentinelInput, validate, validate_delete};
use crate::ids::ObjectKey;
use crate::kinds::deployment;
use crate::kinds::{Desired, LiveKind, ProbePaths, Region, Rules};
use crate::object::{LiveObject, ObjectRef, Rendered, Resource};
use crate::report::{Health, Report};
use crate::testing::{applied, applied_json, check_lists, lookup, minimal_input, sentinel_input};

fn rules() -> Rules {
    Rules {
        region: Region {
            platform: "aws".into(),
            name: "us-east-1".into(),
        },
        ..Rules::default()
    }
}

fn valid(input: SentinelInput) -> DesiredSentinel {
    validate(input, &rules()).unwrap_or_else(|invalid| panic!("{invalid}"))
}

fn desired(input: SentinelInput) -> Desired {
    Desired::Sentinel(Box::new(valid(input)))
}

fn live(desired: &Desired, uid: &str) -> LiveObject {
    applied(&desired.render(&rules(), None), uid, 5).unwrap_or_else(|error| panic!("{error}"))
}

/// All five objects, the Deployment first.
fn objects(input: SentinelInput) -> Vec<Rendered> {
    let desired = desired(input);
    let deployment = desired.render(&rules(), None);
    let owner = live(&desired, "uid-1");
    let mut all = vec![deployment];
    all.extend(desired.dependants(&rules(), &owner));
    all
}

fn bodies(input: SentinelInput) -> Vec<Value> {
    objects(input)
        .into_iter()
        .map(|object| object.body)
        .collect()
}

fn at<'a>(body: &'a Value, path: &str) -> &'a Value {
    lookup(body, path).unwrap_or_else(|| panic!("nothing at {path}"))
}

const CONTAINER: &str = "spec.template.spec.containers[name=sentinel]";

/// unkeyed/unkey a3e3d3afa1, PR #5015 (A43): all five carry the component; the ClusterIP Service selects
/// exactly its own pods, whatever else carries it.
#[test]
fn all_five_carry_the_labels_and_the_service_selects_its_own_pods_only() {
    for body in bodies(sentinel_input()) {
        let labels = &body["metadata"]["labels"];
        assert_eq!(labels["app.kubernetes.io/component"], "sentinel");
        assert_eq!(labels["app.kubernetes.io/managed-by"], "krane");
        assert_eq!(labels["unkey.com/sentinel.id"], "sen_1");
        assert_eq!(labels["unkey.com/app.id"], "");
    }
    let service = &bodies(sentinel_input())[1];
    let selector = json!({ "unkey.com/sentinel.id": "sen_1" });
    assert_eq!(service["spec"]["selector"], selector);
}

/// unkeyed/unkey 13a7d7b5c9, PR #4366 (A48): a Service on 8080 before a process on 8040, and pods that the
/// look-ups of deployments found.
#[test]
fn the_service_is_where_the_process_listens_and_no_deployment_owns_the_pods() {
    let all = bodies(sentinel_input());
    let ports = json!([{ "port": 8040, "targetPort": 8040, "protocol": "TCP" }]);
    assert_eq!(all[1]["spec"]["ports"], ports);
    let pod = at(&all[0], "spec.template.metadata.labels");
    assert!(pod.get("unkey.com/deployment.id").is_none());
    assert_eq!(pod["unkey.com/sentinel.id"], "sen_1");
    // A workload of the same id has other pods.
    let workload = deployment::DeploymentInput {
        deployment_id: "sen_1".to_owned(),
        ..minimal_input()
    };
    let workload = deployment::validate(workload, &rules());
    let workload = Desired::Deployment(Box::new(workload.unwrap_or_else(|it| panic!("{it}"))));
    let body = workload.render(&rules(), None).body;
    let pod = at(&body, "spec.template.metadata.labels");
    for service in [&all[1], &all[3]] {
        let selector = service["spec"]["selector"].as_object();
        let is_selected = selector.is_some_and(|selector| {
            selector
                .iter()
                .all(|(key, value)| pod.get(key) == Some(value))
        });
        assert!(!is_selected, "{service}");
    }
}

/// unkeyed/unkey c36d08d1df, PR #5376, #5367 (A49): images differ in where they answer.
#[test]
fn both_probes_ask_the_documented_path_unless_it_is_split() {
    let paths = |rules: &Rules| {
        let body = desired(sentinel_input()).render(rules, None).body;
        ["livenessProbe", "readinessProbe"].map(|probe| {
            let get = at(&body, &format!("{CONTAINER}.{probe}.httpGet")).clone();
            assert_eq!(get["port"], 8040);
            get["path"].as_str().unwrap_or_default().to_owned()
        })
    };
    let path = "/_unkey/internal/health";
    assert_eq!(paths(&rules()), [path, path]);
    let split = Rules {
        probe_paths: ProbePaths::Split,
        ..rules()
    };
    let split = paths(&split);
    assert_eq!(split, [format!("{path}/live"), format!("{path}/ready")]);
}

/// unkeyed/unkey c40134cbc5, PR #6723 (A45): what crash-loops must not stop a node's drain.
#[test]
fn the_budget_keeps_one_pod_and_protects_no_broken_one() {
    for (replicas, rule, other) in [
        (0, "minAvailable", "maxUnavailable"),
        (1, "minAvailable", "maxUnavailable"),
        (2, "maxUnavailable", "minAvailable"),
        (7, "maxUnavailable", "minAvailable"),
    ] {
        let spec = bodies(SentinelInput {
            replicas,
            ..sentinel_input()
        })[2]["spec"]
            .clone();
        assert_eq!(spec[rule], 1, "{replicas}");
        assert_eq!(spec.get(other), None, "{replicas}");
        assert_eq!(spec["unhealthyPodEvictionPolicy"], "AlwaysAllow");
    }
}

/// unkeyed/unkey a5090098c3, PR #5522; abe88a68b0, PR #5527; 5df245f7b8 (A13), here for sentinels.
#[test]
fn limits_are_millicores_and_mebibytes_and_requests_never_exceed_them() {
    for (cpu, memory, requested) in [
        (250, 512, "125m"),
        (1000, 2048, "500m"),
        (1, 1, "1m"),
        (3, 2, "1m"),
    ] {
        let body = &bodies(SentinelInput {
            cpu_millicores: cpu,
            memory_mib: memory,
            ..sentinel_input()
        })[0];
        let (cpu, memory) = (format!("{cpu}m"), format!("{memory}Mi"));
        let expected = json!({
            "limits": { "cpu": cpu, "memory": memory },
            "requests": { "cpu": requested, "memory": memory },
        });
        assert_eq!(*at(body, &format!("{CONTAINER}.resources")), expected);
    }
}

/// unkeyed/unkey 152f760a48, PR #6561; 01902778cf; 58f79d68ca (A17): a toleration of another name leaves pods pending.
#[test]
fn pods_tolerate_the_taint_of_their_nodes() {
    let body = &bodies(sentinel_input())[0];
    let expected = json!([{
        "key": "node-class", "operator": "Equal", "value": "sentinel", "effect": "NoSchedule",
    }]);
    assert_eq!(*at(body, "spec.template.spec.tolerations"), expected);
}

/// kubernetes/kubernetes#105610, #39188, #118725 (B21): one number with two protocols is two
/// ports only where both are part of the key.
#[test]
fn every_port_names_its_protocol_and_the_gossip_port_has_both() {
    let all = bodies(sentinel_input());
    let protocols = |list: &Value, key: &str| -> Vec<String> {
        let items = list.as_array().into_iter().flatten();
        items
            .filter(|port| port[key] == 7946)
            .map(|port| format!("{} {}", port["name"], port["protocol"]))
            .collect()
    };
    let expected = ["\"gossip-lan\" \"TCP\"", "\"gossip-lan-udp\" \"UDP\""];
    let container = at(&all[0], &format!("{CONTAINER}.ports"));
    assert_eq!(protocols(container, "containerPort"), expected);
    assert_eq!(protocols(&all[3]["spec"]["ports"], "port"), expected);
}

/// argoproj/argo-cd#17568 (B23): items without their key fields are refused.
#[test]
fn every_item_of_a_keyed_list_has_its_keys() {
    bodies(sentinel_input()).iter().for_each(check_lists);
}

/// (D20) Whichever sentinel goes, the pair of another still spans the environment.
#[test]
fn gossip_spans_the_environment_and_each_sentinel_has_its_own_pair() {
    let other = SentinelInput {
        k8s_name: "sen-2".to_owned(),
        sentinel_id: "sen_2".to_owned(),
        ..sentinel_input()
    };
    let (one, other) = (objects(sentinel_input()), objects(other));
    for index in [3, 4] {
        assert_ne!(one[index].reference, other[index].reference);
        assert_eq!(one[index].body["spec"], other[index].body["spec"]);
        assert_eq!(one[index].body["metadata"].get("ownerReferences"), None);
    }
}

/// kubernetes/kubernetes#65200, crossplane/crossplane#895, banzaicloud/koperator#186 (B19): a wrong
/// owner has the garbage collector delete the child.
#[test]
fn service_and_budget_belong_to_the_live_deployment() {
    let desired = desired(sentinel_input());
    let owner = live(&desired, "uid-of-now");
    for owned in &desired.dependants(&rules(), &owner)[..2] {
        let expected = json!([{
            "apiVersion": "apps/v1", "kind": "Deployment", "name": "sen-1", "uid": "uid-of-now",
        }]);
        assert_eq!(owned.body["metadata"]["ownerReferences"], expected);
    }
}

/// Prose of a region goes into TOML and past the kubelet.
#[test]
fn the_configuration_is_byte_for_byte_what_sentinels_read() {
    let body = &bodies(sentinel_input())[0];
    let config = at(
        body,
        &format!("{CONTAINER}.env[name=UNKEY_CONFIG_DATA].value"),
    );
    assert_eq!(config.as_str(), Some(include_str!("tests/config.toml")));
}

#[test]
fn every_object_leads_back_to_its_sentinel() {
    let key = ObjectKey::new("sentinel", "sen-1");
    let deleted: Vec<ObjectRef> = Live.deleted_first(&key);
    let mut beside: Vec<ObjectRef> = Vec::new();
    for object in &objects(sentinel_input())[1..] {
        let live = applied(object, "u", 1).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            Live.workload_of(&live),
            Some(key.clone()),
            "{:?}",
            object.reference
        );
        beside.push(object.reference.clone());
    }
    beside.sort();
    let mut sorted = deleted.clone();
    sorted.sort();
    assert_eq!(sorted, beside, "all that is applied is deleted");
    let order: Vec<Resource> = deleted.iter().map(|part| part.resource).collect();
    let expected = [
        Resource::Service,
        Resource::CiliumNetworkPolicy,
        Resource::Service,
        Resource::PodDisruptionBudget,
    ];
    assert_eq!(order, expected);
    assert_eq!(&*deleted[0].name, "sen-1-gossip-lan");
}

type Change = fn(&mut SentinelInput);

fn invalid_field(change: Change) -> String {
    let mut input = sentinel_input();
    change(&mut input);
    let invalid = validate(input, &rules()).err();
    invalid.map(|invalid| invalid.field).unwrap_or_default()
}

/// unkeyed/unkey 8f89494446 (A47), and Acto's odd numbers (C12).
#[test]
fn what_cannot_be_applied_is_refused_as_a_whole_and_by_name() {
    let rows: [(&str, Change); 19] = [
        ("", |_| ()),
        ("", |input| input.replicas = 0),
        ("", |input| input.k8s_name = "a".repeat(52)),
        ("k8s_name", |input| input.k8s_name = "a".repeat(53)),
        ("k8s_name", |input| input.k8s_name = "a".repeat(63)),
        ("k8s_name", |input| input.k8s_name = "a".repeat(64)),
        ("k8s_name", |input| input.k8s_name = "sen_Abc".to_owned()),
        ("k8s_name", |input| input.k8s_name = "-x".to_owned()),
        ("k8s_name", |input| input.k8s_name = "9lives".to_owned()),
        ("k8s_name", |input| input.k8s_name = String::new()),
        ("k8s_name", |input| {
            input.k8s_name = "sen-gossip-lan".to_owned();
        }),
        ("workspace_id", |input| input.workspace_id = "a".repeat(64)),
        ("project_id", |input| input.project_id = "a/b".to_owned()),
        ("environment_id", |input| {
            input.environment_id = "e-".to_owned();
        }),
        ("sentinel_id", |input| input.sentinel_id = String::new()),
        ("image", |input| input.image = " ".to_owned()),
        ("replicas", |input| input.replicas = -1),
        ("cpu_millicores", |input| input.cpu_millicores = 0),
        ("memory_mib", |input| input.memory_mib = i64::MAX),
    ];
    for (field, change) in rows {
        assert_eq!(invalid_field(change), field);
    }
    assert!(validate_delete("sen-1").is_ok());
    assert!(validate_delete("x-gossip-lan").is_err());
}

fn with_status(replicas: i32, status: Value) -> LiveObject {
    let rendered = desired(SentinelInput {
        replicas,
        ..sentinel_input()
    })
    .render(&rules(), None);
    let mut json = applied_json(&rendered, "uid", 9);
    json["metadata"]["generation"] = json!(4);
    json["status"] = status;
    LiveObject::from_json(Resource::Deployment, json).unwrap_or_else(|error| panic!("{error}"))
}

/// Health from the pods that are available, the image once no other runs.
#[test]
fn health_and_image_follow_from_the_status() {
    let converged = |available: u32| {
        json!({ "observedGeneration": 4, "replicas": available, "updatedReplicas": available,
            "availableReplicas": available })
    };
    let image = "ghcr.io/unkeyed/sentinel:v1";
    for (replicas, status, available, health, running) in [
        (2, json!({}), 0, Health::Unhealthy, ""),
        (2, converged(2), 2, Health::Healthy, image),
        (0, converged(0), 0, Health::Paused, image),
        (
            2,
            json!({ "observedGeneration": 3, "updatedReplicas": 2, "availableReplicas": 2 }),
            2,
            Health::Healthy,
            "",
        ),
        (
            2,
            json!({ "observedGeneration": 4, "updatedReplicas": 1, "availableReplicas": 2 }),
            2,
            Health::Healthy,
            "",
        ),
        (
            2,
            json!({ "observedGeneration": 4, "updatedReplicas": 2, "availableReplicas": 1,
                "unavailableReplicas": 1 }),
            1,
            Health::Healthy,
            "",
        ),
        (
            2,
            json!({ "observedGeneration": 4, "updatedReplicas": 2, "availableReplicas": 2,
                "unavailableReplicas": 1 }),
            2,
            Health::Healthy,
            "",
        ),
    ] {
        let observed = Live.observe(&with_status(replicas, status.clone()), &[], &rules());
        let expected = Report::Health {
            key: ObjectKey::new("sentinel", "sen-1"),
            id: "sen_1".into(),
            available,
            health,
            running_image: running.to_owned(),
        };
        assert_eq!(observed.map(|seen| seen.report), Some(expected), "{status}");
    }
}

/// unkeyed/unkey 36b5384c3a (A30): no report ever carries an empty id.
#[test]
fn a_deployment_without_id_is_not_reported() {
    let mut live = with_status(1, json!({}));
    live.labels.remove("unkey.com/sentinel.id");
    assert_eq!(Live.observe(&live, &[], &rules()), None);
    live.labels
        .insert("unkey.com/sentinel.id".into(), String::new());
    assert_eq!(Live.observe(&live, &[], &rules()), None);
}

proptest! {
    /// No region's name breaks out of the configuration, and no state of any region.
    #[test]
    fn the_configuration_says_where_the_sentinel_is(platform in ".*", name in ".*") {
        let rules = Rules {
            region: Region { platform: platform.as_str().into(), name: name.as_str().into() },
            ..Rules::default()
        };
        let body = desired(sentinel_input()).render(&rules, None).body;
        let config = at(&body, &format!("{CONTAINER}.env[name=UNKEY_CONFIG_DATA].value"));
        let config = config.as_str().unwrap_or_default().replace("$$", "$");
        let table: toml::Table = config.parse().expect("TOML");
        prop_assert_eq!(table["platform"].as_str(), Some(&*platform));
        prop_assert_eq!(table["region"].as_str(), Some(&*name));
        prop_assert_eq!(table["http_port"].as_integer(), Some(8040));
    }
}
