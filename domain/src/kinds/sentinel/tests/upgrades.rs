//! Sentinels whose pod template an earlier krane rendered from what is wanted, or from something
//! else (D44).

use serde_json::{Value, json};

use super::{SentinelInput, desired, rules, valid};
use crate::drift::{self, Decision};
use crate::kinds::sentinel::form::CURRENT;
use crate::kinds::sentinel::state;
use crate::kinds::sentinel::template::template;
use crate::kinds::{Keep, ProbePaths, Rules};
use crate::object::{LiveObject, Rendered, Resource};
use crate::testing::{applied_json, list_at, sentinel_input};
use crate::upgrades::is_older_rendering;

const RENDERER: &str = "krane.unkey.com/renderer";
const STATE: &str = "krane.unkey.com/state";

/// As an earlier krane rendered it: other details, one variable more and a probe less.
fn older(body: &mut Value) {
    body["metadata"]["annotations"][RENDERER] = json!("1");
    body["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(61);
    let container = &mut body["spec"]["template"]["spec"]["containers"][0];
    container["livenessProbe"]["periodSeconds"] = json!(17);
    if let Some(container) = container.as_object_mut() {
        container.remove("readinessProbe");
    }
    let env = list_at(container_of(body), "/env");
    env.push(json!({ "name": "LEGACY", "value": "x" }));
}

fn container_of(object: &mut Value) -> &mut Value {
    &mut object["spec"]["template"]["spec"]["containers"][0]
}

/// What was applied, after somebody changed it as it is stored.
fn live(rendered: fn(&mut Value), stored: impl Fn(&mut Value)) -> LiveObject {
    let mut before = desired(sentinel_input()).render(&rules(), None);
    rendered(&mut before.body);
    let mut json = applied_json(&before, "uid-1", 5);
    stored(&mut json);
    LiveObject::from_json(Resource::Deployment, json).unwrap_or_else(|error| panic!("{error}"))
}

fn render(input: SentinelInput, live: &LiveObject) -> Rendered {
    desired(input).render(&rules(), Some(live))
}

fn is_current(rendered: &Rendered, input: SentinelInput) -> bool {
    !rendered.keeps_template
        && rendered.body["spec"]["template"] == template(&valid(input), &rules(), &CURRENT)
}

/// kubectl owns what it wrote.
fn kubectl(json: &mut Value, container: &Value) {
    let fields = json!({ "f:spec": { "f:template": { "f:spec": { "f:containers": {
        "k:{\"name\":\"sentinel\"}": container,
    } } } } });
    let entry = json!({ "manager": "kubectl-edit", "operation": "Update", "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1", "fieldsV1": fields });
    list_at(json, "/metadata/managedFields").push(entry);
}

#[test]
fn a_template_that_an_earlier_krane_rendered_from_an_equal_state_is_kept_until_its_turn() {
    let live = live(older, |_| ());
    let kept = render(sentinel_input(), &live);
    assert!(kept.keeps_template);
    assert_eq!(
        drift::decide(&kept, Some(&live), None, 0),
        Decision::InPlace
    );
    assert_eq!(kept.body["metadata"]["annotations"][RENDERER], "1");
    let turn = desired(sentinel_input()).render_keeping(&rules(), Some(&live), Keep::Nothing);
    assert!(is_current(&turn, sentinel_input()));
    assert_ne!(turn.body["metadata"]["annotations"][RENDERER], "1");
}

/// The template alone restarts pods.
#[test]
fn everything_beside_a_kept_template_is_written() {
    let live = live(
        |body| {
            older(body);
            body["spec"]["minReadySeconds"] = json!(5);
        },
        |_| (),
    );
    let scaled = SentinelInput {
        replicas: 5,
        ..sentinel_input()
    };
    let kept = render(scaled, &live);
    assert!(
        kept.keeps_template,
        "how many pods is no matter of a template"
    );
    let Decision::Update { differences, .. } = drift::decide(&kept, Some(&live), None, 0) else {
        panic!("the count differs");
    };
    let paths: Vec<&str> = differences.iter().map(|found| &*found.path).collect();
    assert_eq!(paths, ["spec.minReadySeconds", "spec.replicas"]);
}

#[test]
fn a_template_that_says_something_else_than_the_state_is_rendered_anew() {
    let live = live(older, |_| ());
    let newer = SentinelInput {
        cpu_millicores: 300,
        ..sentinel_input()
    };
    let rendered = render(newer.clone(), &live);
    assert!(is_current(&rendered, newer));
    let Decision::Update { differences, .. } = drift::decide(&rendered, Some(&live), None, 0)
    else {
        panic!("it differs");
    };
    assert!(
        !is_older_rendering(&live, &differences),
        "it waits for nobody"
    );
}

/// (D12) The annotation is about what krane wrote.
#[test]
fn what_another_manager_did_to_a_template_of_an_equal_state_is_drift() {
    let edits: [fn(&mut Value); 3] = [
        |json| {
            container_of(json)["image"] = json!("evil:1");
            let own = "/metadata/managedFields/0/fieldsV1/f:spec/f:template/f:spec/f:containers";
            let item = json
                .pointer_mut(own)
                .and_then(|it| it.get_mut("k:{\"name\":\"sentinel\"}"));
            let item = item.and_then(Value::as_object_mut);
            item.and_then(|item| item.remove("f:image"));
            kubectl(json, &json!({ "f:image": {} }));
        },
        |json| {
            list_at(container_of(json), "/env").push(json!({ "name": "EVIL", "value": "x" }));
            let item = json!({ "k:{\"name\":\"EVIL\"}": { ".": {}, "f:name": {}, "f:value": {} } });
            kubectl(json, &json!({ "f:env": item }));
        },
        // Owned by both.
        |json| kubectl(json, &json!({ "f:image": {} })),
    ];
    for (index, edit) in edits.into_iter().enumerate() {
        let live = live(older, edit);
        let rendered = render(sentinel_input(), &live);
        assert!(is_current(&rendered, sentinel_input()), "{index}");
    }
}

/// Once krane owns what somebody added, only what is exactly known is nobody else's.
#[test]
fn after_a_take_over_of_fields_an_equal_state_proves_nothing() {
    let live = live(older, |_| ());
    let desired = desired(sentinel_input());
    let rendered = desired.render_keeping(&rules(), Some(&live), Keep::EarlierForm);
    assert!(is_current(&rendered, sentinel_input()));
}

/// Of the present renderer only settings can have been others.
#[test]
fn a_new_setting_waits_for_its_turn_and_a_field_that_was_taken_away_does_not() {
    let untouched = live(|_| (), |_| ());
    let split = Rules {
        probe_paths: ProbePaths::Split,
        ..rules()
    };
    let rendered = desired(sentinel_input()).render(&split, Some(&untouched));
    assert!(rendered.keeps_template);
    let edited = live(
        |_| (),
        |json| {
            let own = "/metadata/managedFields/0/fieldsV1/f:spec/f:template/f:spec/f:containers";
            let containers = json.pointer_mut(own);
            let item = containers.and_then(|it| it.get_mut("k:{\"name\":\"sentinel\"}"));
            let item = item.and_then(Value::as_object_mut);
            item.and_then(|item| item.remove("f:livenessProbe"));
            let container = container_of(json).as_object_mut();
            container.and_then(|it| it.remove("livenessProbe"));
        },
    );
    let rendered = render(sentinel_input(), &edited);
    assert!(is_current(&rendered, sentinel_input()));
}

/// What the present renderer left before it wrote this annotation: nothing of the template differs,
/// so that no pod restarts.
#[test]
fn a_deployment_without_the_annotation_gets_it_last_in_line_and_without_a_new_template() {
    let live = live(
        |body| {
            let annotations = &mut body["metadata"]["annotations"];
            *annotations = json!({ RENDERER: "1" });
        },
        |_| (),
    );
    let rendered = render(sentinel_input(), &live);
    let Decision::Update { differences, .. } = drift::decide(&rendered, Some(&live), None, 0)
    else {
        panic!("the annotation is missing");
    };
    let paths: Vec<&str> = differences.iter().map(|found| &*found.path).collect();
    let both = [RENDERER, STATE].map(|key| format!("metadata.annotations[\"{key}\"]"));
    assert_eq!(paths, both);
    assert!(is_older_rendering(&live, &differences));
}

/// An operator who removes it only makes krane forget.
#[test]
fn the_annotation_alone_that_somebody_removed_is_put_back() {
    let live = live(
        |body| {
            let annotations = body["metadata"]["annotations"].as_object_mut();
            annotations.and_then(|it| it.remove(STATE));
        },
        |_| (),
    );
    let rendered = render(sentinel_input(), &live);
    let decision = drift::decide(&rendered, Some(&live), None, 0);
    assert!(matches!(decision, Decision::Update { .. }), "{decision:?}");
}

type Change = fn(&mut SentinelInput);

/// What the hash leaves out would never be applied while `safety.upgrades` is off.
#[test]
fn the_hash_changes_with_exactly_the_fields_that_the_template_reads() {
    let fields: [Change; 10] = [
        |it| it.k8s_name = "sen-2".to_owned(),
        |it| it.workspace_id = "ws_2".to_owned(),
        |it| it.project_id = "proj_2".to_owned(),
        |it| it.app_id = "app_2".to_owned(),
        |it| it.environment_id = "env_2".to_owned(),
        |it| it.sentinel_id = "sen_2".to_owned(),
        |it| it.image = "ghcr.io/unkeyed/sentinel:v2".to_owned(),
        |it| it.replicas = 9,
        |it| it.cpu_millicores = 300,
        |it| it.memory_mib = 2048,
    ];
    let of = |input: SentinelInput| {
        let desired = valid(input);
        let hash = state::hash(&desired);
        (hash, template(&desired, &rules(), &CURRENT))
    };
    let (hash, template) = of(sentinel_input());
    let mut read = 0;
    for (index, change) in fields.into_iter().enumerate() {
        let mut input = sentinel_input();
        change(&mut input);
        let (changed, other) = of(input);
        assert_eq!(changed != hash, other != template, "{index}");
        read += usize::from(changed != hash);
    }
    assert_eq!(read, 8);
    assert_eq!(hash.len(), 32);
}

/// A list that changes under its number makes every sentinel in every cluster look changed.
#[test]
fn the_hash_of_a_known_state_stays_what_it_is() {
    assert_eq!(
        state::hash(&valid(sentinel_input())),
        "9acc3fd6cee79dcc12c1596b45bdcdac"
    );
}
