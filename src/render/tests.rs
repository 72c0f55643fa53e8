use super::*;

const STATES: &str = r#"{
  "deployments": [
    {"version": "7", "apply": {
      "k8sNamespace": "abcdefgh", "k8sName": "dep-1", "workspaceId": "ws_1", "projectId": "proj_1",
      "environmentId": "env_1", "deploymentId": "d_1", "image": "nginx:1", "replicas": 1,
      "cpuMillicores": "250", "memoryMib": "256"
    }},
    {"delete": {"k8sNamespace": "abcdefgh", "k8sName": "dep-0"}}
  ],
  "sentinels": [
    {"apply": {
      "k8sName": "sen-1", "workspaceId": "ws_1", "projectId": "proj_1", "environmentId": "env_1",
      "sentinelId": "sen_1", "image": "ghcr.io/unkeyed/sentinel:v1", "replicas": 2,
      "cpuMillicores": "256", "memoryMib": "1024"
    }}
  ]
}"#;

fn names(manifests: &Manifests) -> Vec<String> {
    let name = |body: &Value| {
        let metadata = &body["metadata"];
        let (kind, name) = (&body["kind"], &metadata["name"]);
        format!("{kind} {} {name}", metadata["namespace"]).replace('"', "")
    };
    manifests.bodies.iter().map(name).collect()
}

#[test]
fn states_become_manifests_in_the_order_of_their_writing() {
    let manifests = render(STATES, &Rules::default()).unwrap();
    insta::assert_snapshot!(names(&manifests).join("\n"), @r"
    Namespace null abcdefgh
    Namespace null sentinel
    CiliumNetworkPolicy abcdefgh allow-sentinel-ingress-env-1-b6f6b232
    CiliumNetworkPolicy sentinel sen-1-gossip-lan
    ReplicaSet abcdefgh dep-1
    Deployment sentinel sen-1
    Service sentinel sen-1
    Service sentinel sen-1-gossip-lan
    PodDisruptionBudget sentinel sen-1
    ");
}

/// What is rendered here is what is rendered for a cluster.
#[test]
fn the_manifest_is_the_golden_one() {
    let golden = include_str!(
        "../../domain/src/kinds/deployment/render/tests/snapshots/krane_domain__kinds__deployment__render__tests__golden__minimal.snap"
    );
    let (_, golden) = golden[3..].split_once("---\n").unwrap();
    let golden: Value = serde_json::from_str(golden).unwrap();
    let manifests = render(STATES, &Rules::default()).unwrap();
    let found = manifests
        .bodies
        .iter()
        .find(|body| body["kind"] == "ReplicaSet");
    assert_eq!(found, Some(&golden));
}

#[test]
fn the_order_of_the_input_does_not_matter() {
    let mut states: Value = serde_json::from_str(STATES).unwrap();
    let mut second = states["deployments"][0].clone();
    second["apply"]["k8sName"] = json!("dep-2");
    second["apply"]["deploymentId"] = json!("d_2");
    states["deployments"].as_array_mut().unwrap().push(second);
    let forwards = render(&states.to_string(), &Rules::default()).unwrap();
    states["deployments"].as_array_mut().unwrap().reverse();
    let backwards = render(&states.to_string(), &Rules::default()).unwrap();
    assert_eq!(forwards.bodies, backwards.bodies);
}

#[test]
fn every_state_that_would_be_set_aside_is_named_with_its_remedy() {
    let mut states: Value = serde_json::from_str(STATES).unwrap();
    states["deployments"][0]["apply"]["replicas"] = json!(-1);
    states["deployments"][1] = json!({});
    let error = render(&states.to_string(), &Rules::default()).unwrap_err();
    let said = faults(error);
    assert!(said[0].starts_with("deployments[0] (line 1, "), "{said:?}");
    assert!(said[0].contains("): replicas: "), "{said:?}");
    assert!(said[1].starts_with("deployments[1] (line 1, "), "{said:?}");
    assert!(said[1].contains("): state: "), "{said:?}");
}

fn faults(error: RenderError) -> Vec<String> {
    let RenderError::Faults(faults) = error else {
        panic!("{error}");
    };
    faults.told.iter().map(ToString::to_string).collect()
}

/// Whoever mends one after the other needs a run for each.
#[test]
fn all_that_is_wrong_is_told_at_once_with_its_place() {
    let text = r#"{
  "deploymentz": [],
  "deployments": [
    {"apply": {
      "k8sNam": "x", "k8sNamespace": "abcdefgh", "workspaceId": "ws_1", "projectId": "proj_1",
      "replicas": "many", "image": 3,
      "environmentId": "env_1", "deploymentId": "d_1", "cpuMillicores": 250, "memoryMib": 256
    }},
    {"apply": {
      "k8sNamespace": "abcdefgh", "k8sName": "dep-1", "workspaceId": "ws_1", "projectId": "proj_1",
      "environmentId": "env_1", "deploymentId": "d_1", "image": "nginx:1", "cpuMillicores": 250,
      "memoryMib": 256, "replicas": -1
    }}
  ],
  "sentinels": {}
}"#;
    let said = faults(render(text, &Rules::default()).unwrap_err());
    let places: Vec<&str> = said
        .iter()
        .filter_map(|fault| fault.split_once("): ").map(|(place, _)| place))
        .collect();
    assert_eq!(
        places,
        [
            "deploymentz (line 2, column 18",
            "deployments[0].apply.k8sNam (line 5, column 17",
            "deployments[0].apply.replicas (line 6, column 19",
            "deployments[0].apply.image (line 6, column 36",
            "deployments[1] (line 12, column 37",
            "sentinels (line 15, column 16",
        ]
    );
    assert!(
        said[1].ends_with("unknown field `k8sNam`, did you mean `k8sName`?"),
        "{said:?}"
    );
}

/// The reader of states stops at the first field; a person wants to know of all.
#[test]
fn all_that_a_state_lacks_is_told_at_once() {
    let text = r#"{"deployments": [{"apply": {
        "k8sNamespace": "abcdefgh", "k8sName": "dep-1", "image": "no image", "port": 70000
    }}]}"#;
    let said = faults(render(text, &Rules::default()).unwrap_err());
    let lacks = |field: &str| said.iter().any(|it| it.contains(&format!("): {field}: ")));
    for field in [
        "workspace_id",
        "project_id",
        "environment_id",
        "deployment_id",
        "image",
        "port",
    ] {
        assert!(lacks(field), "{field}: {said:?}");
    }
    let image = said.iter().find(|it| it.contains("): image: ")).unwrap();
    assert!(image.contains("line 2, "), "{image}");
}

/// All that is said of each field, without its place.
fn told_of(text: &str) -> Vec<String> {
    let said = faults(render(text, &Rules::default()).unwrap_err());
    let words = said.iter().map(|it| it.split_once("): ").unwrap().1);
    words.map(str::to_owned).collect()
}

#[test]
fn what_can_be_read_of_a_state_is_validated_too() {
    let text = r#"{"deployments": [{"apply": {
        "k8sNamespace": "abcdefgh", "k8sNam": "dep-1", "workspaceId": "ws_1", "projectId": "proj_1",
        "environmentId": "env_1", "deploymentId": "d_1", "cpuMillicores": 250, "memoryMib": 256,
        "replicas": "many", "port": 70000, "image": "no image"
    }}]}"#;
    let said = told_of(text);
    let starts = |words: &str| said.iter().any(|it| it.starts_with(words));
    for words in ["unknown field `k8sNam`", "port: ", "image: "] {
        assert!(starts(words), "{words}: {said:?}");
    }
    // The misspelt one is told once, and not again as a field that is missing.
    assert_eq!(said.len(), 4, "{said:?}");
}

#[test]
fn a_policy_and_a_deletion_are_read_to_their_end() {
    let text = r#"{"ciliumNetworkPolicies": [{"apply": {
        "k8sNamespace": "abcdefgh", "k8sName": "p", "policy": "AAAA"
    }}]}"#;
    let said = told_of(text);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].starts_with("cilium_network_policy_id: "),
        "{said:?}"
    );
    assert!(said[1].starts_with("policy: "), "{said:?}");
    let text = r#"{"deployments": [{"delete": {"k8sNamespace": "NO", "k8sName": "NO"}}]}"#;
    let said = told_of(text);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("k8s_namespace: "), "{said:?}");
    assert!(said[1].starts_with("k8s_name: "), "{said:?}");
}

#[test]
fn a_state_without_a_name_is_read_to_its_end() {
    for name in ["", r#""k8sName": "","#] {
        let text = format!(
            r#"{{"sentinels": [{{"apply": {{ {name} "image": "no image", "replicas": 2 }}}}]}}"#
        );
        let said = told_of(&text);
        let starts = |words: &str| said.iter().any(|it| it.starts_with(words));
        for words in ["state: names no object", "sentinel_id: ", "image: "] {
            assert!(starts(words), "{words}: {said:?}");
        }
    }
}

/// Otherwise what follows a mended field is never reached.
#[test]
fn a_state_of_the_sample_alone_is_well() {
    for (controller, list) in [
        (Controller::Deployments, "deployments"),
        (Controller::Sentinels, "sentinels"),
        (Controller::Cilium, "ciliumNetworkPolicies"),
    ] {
        let text = json!({ list: [{ "apply": sample(controller) }] }).to_string();
        let rendered = render(&text, &Rules::default());
        assert!(rendered.is_ok_and(|it| !it.bodies.is_empty()), "{text}");
    }
}

#[test]
fn a_field_of_a_field_has_the_place_of_the_outer_one() {
    let text = r#"{"deployments": [{"apply": {
        "k8sNamespace": "abcdefgh", "k8sName": "dep-1", "workspaceId": "ws_1", "projectId": "proj_1",
        "environmentId": "env_1", "deploymentId": "d_1", "image": "nginx:1", "replicas": 1,
        "cpuMillicores": 250, "memoryMib": 256,
        "autoscaling": {"minReplicas": 1, "maxReplicas": 100000}
    }}]}"#;
    let said = faults(render(text, &Rules::default()).unwrap_err());
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].starts_with("deployments[0] (line 5, column 24): autoscaling.max_replicas: "),
        "{said:?}"
    );
}

#[test]
fn a_list_that_is_given_twice_is_a_fault() {
    let text = r#"{"deployments": [], "sentinels": [], "deployments": []}"#;
    let said = faults(render(text, &Rules::default()).unwrap_err());
    assert_eq!(
        said,
        ["deployments (line 1, column 53): is given twice; put its states into one list"]
    );
}

/// Windows writes it before the text.
#[test]
fn a_byte_order_mark_is_no_part_of_the_text() {
    let marked = format!("\u{feff}{STATES}");
    assert!(render(&marked, &Rules::default()).is_ok());
    let said = faults(render("\u{feff}{\"x\": 1}", &Rules::default()).unwrap_err());
    assert!(said[0].starts_with("x (line 1, column 7): "), "{said:?}");
}

#[test]
fn a_name_of_any_length_is_cut() {
    let name = "n".repeat(100_000);
    for text in [
        format!(r#"{{"{name}": 1}}"#),
        format!(r#"{{"deployments": [{{"apply": {{"{name}": 1}}}}]}}"#),
    ] {
        let said = faults(render(&text, &Rules::default()).unwrap_err());
        let longest = said.iter().map(String::len).max();
        assert!(longest.unwrap() < 3_000, "{longest:?}");
    }
}

/// A file of something else has as many faults as fields.
#[test]
fn of_many_faults_the_first_are_told_and_all_are_counted() {
    let fields = ["\"a\": 1, \"b\": 2"; 500].join(",\n\"ü\": ");
    let fields = fields.replace(": \"a\"", ": 0, \"a\"");
    let error = render(&format!("{{{fields}}}"), &Rules::default()).unwrap_err();
    assert_eq!(error.to_string(), "1499 faults in the input");
    let said = faults(error);
    assert_eq!(said.len(), 100);
    assert!(said[0].starts_with("a (line 1, column 7): "), "{}", said[0]);
    // 2 of the first line and 3 of each further one.
    for (at, place) in [
        (98, "ü (line 34, column 6): "),
        (99, "a (line 34, column 14): "),
    ] {
        assert!(said[at].starts_with(place), "{}", said[at]);
    }
}

#[test]
fn a_field_that_is_given_twice_is_a_fault_of_the_state() {
    let text = r#"{"deployments": [{"delete": {"k8sNamespace": "abcdefgh", "k8sName": "a", "k8sName": "b"}}]}"#;
    let said = faults(render(text, &Rules::default()).unwrap_err());
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].starts_with("deployments[0] (line 1, column 18)"),
        "{said:?}"
    );
}

#[test]
fn what_is_no_json_is_told_with_its_place() {
    for (text, place) in [("[]", "line 1"), ("{\n  \"deployments\": [,]\n}", "line 2")] {
        let error = render(text, &Rules::default()).unwrap_err();
        let RenderError::Input(error) = error else {
            panic!("{text}: {error}");
        };
        assert!(error.to_string().contains(place), "{text}: {error}");
    }
}

#[test]
fn the_example_of_help_and_docs_can_be_rendered() {
    let manifests = render(EXAMPLE, &Rules::default()).unwrap();
    assert!(manifests.bodies.len() > 4);
    let docs = include_str!("../../docs/operations.md");
    assert!(
        docs.contains(EXAMPLE),
        "docs/operations.md has another example"
    );
}

#[test]
fn a_pull_secret_is_counted_and_not_shown() {
    let rules = Rules {
        pull_secret: Some(kinds::PullSecret {
            url: "registry.example".to_owned(),
            username: "krane".to_owned(),
            password: kinds::Password::new("canary"),
        }),
        ..Rules::default()
    };
    let manifests = render(STATES, &rules).unwrap();
    assert_eq!(manifests.pull_secrets, ["abcdefgh"]);
    let shown = Value::from(manifests.bodies).to_string();
    assert!(!shown.contains("dockerconfigjson"), "{shown}");
}
