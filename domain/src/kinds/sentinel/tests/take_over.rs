//! Sentinels that an earlier agent made keep running as they are.

use serde_json::{Value, json};

use super::{CONTAINER, SentinelInput, at, desired, rules, valid};
use crate::drift::{self, Decision};
use crate::kinds::sentinel::form::{CURRENT, EARLIER};
use crate::kinds::sentinel::template::template;
use crate::object::{LiveObject, Rendered, Resource};
use crate::testing::{applied_json, sentinel_input};

/// What an earlier agent applied, as it is stored.
fn left_behind(form: usize, change: impl Fn(&mut Value)) -> LiveObject {
    let mut rendered = desired(sentinel_input()).render(&rules(), None);
    rendered.body["spec"]["template"] =
        template(&valid(sentinel_input()), &rules(), &EARLIER[form]);
    if let Some(metadata) = rendered.body["metadata"].as_object_mut() {
        metadata.remove("annotations");
    }
    let mut json = applied_json(&rendered, "uid-1", 5);
    change(&mut json);
    LiveObject::from_json(Resource::Deployment, json).unwrap_or_else(|error| panic!("{error}"))
}

fn template_of(rendered: &Rendered) -> &Value {
    &rendered.body["spec"]["template"]
}

#[test]
fn no_form_is_rendered_like_another() {
    let all = EARLIER.iter().chain([&CURRENT]);
    let templates: Vec<Value> = all
        .map(|form| template(&valid(sentinel_input()), &rules(), form))
        .collect();
    for (index, one) in templates.iter().enumerate() {
        assert!(!templates[..index].contains(one), "{index}");
    }
}

/// A template that differs by its form alone would restart every pod for nothing.
#[test]
fn a_sentinel_of_any_earlier_form_keeps_its_template() {
    for (index, form) in EARLIER.iter().enumerate() {
        let live = left_behind(index, |_| ());
        let rendered = desired(sentinel_input()).render(&rules(), Some(&live));
        let kept = template(&valid(sentinel_input()), &rules(), form);
        assert_eq!(*template_of(&rendered), kept, "{index}");
        let decision = drift::decide(&rendered, Some(&live), None, 0);
        assert_eq!(
            decision,
            Decision::InPlace,
            "only the renderer's number differs"
        );
    }
}

#[test]
fn a_count_is_changed_without_a_new_template() {
    let live = left_behind(1, |_| ());
    let scaled = SentinelInput {
        replicas: 5,
        ..sentinel_input()
    };
    let rendered = desired(scaled).render(&rules(), Some(&live));
    let Decision::Update { differences, .. } = drift::decide(&rendered, Some(&live), None, 0)
    else {
        panic!("the count differs");
    };
    let paths: Vec<&str> = differences.iter().map(|found| &*found.path).collect();
    assert!(paths.contains(&"spec.replicas"), "{paths:?}");
    assert!(
        !paths.iter().any(|path| path.starts_with("spec.template")),
        "{paths:?}"
    );
}

/// Pods restart anyway: then they get all that is new.
#[test]
fn another_image_comes_with_the_current_template() {
    for form in 0..EARLIER.len() {
        let newer = SentinelInput {
            image: "ghcr.io/unkeyed/sentinel:v2".to_owned(),
            ..sentinel_input()
        };
        let live = left_behind(form, |_| ());
        let rendered = desired(newer.clone()).render(&rules(), Some(&live));
        let current = template(&valid(newer), &rules(), &CURRENT);
        assert_eq!(*template_of(&rendered), current);
    }
}

/// Keeping what runs must not keep what somebody did to it.
#[test]
fn an_edit_of_an_earlier_template_is_no_form_and_is_undone() {
    let image = |json: &mut Value| {
        json["spec"]["template"]["spec"]["containers"][0]["image"] = json!("evil:1");
    };
    let rendered = desired(sentinel_input()).render(&rules(), Some(&left_behind(1, image)));
    assert_eq!(
        at(&rendered.body, &format!("{CONTAINER}.image")),
        &sentinel_input().image
    );
    let labels = at(&rendered.body, "spec.template.metadata.labels");
    assert_eq!(
        labels["app.kubernetes.io/managed-by"], "krane",
        "the current form"
    );
}
