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
    let RenderError::Invalid(invalid) = error else {
        panic!("{error}");
    };
    let said: Vec<String> = invalid.iter().map(ToString::to_string).collect();
    assert!(said[0].starts_with("deployments[0]: replicas"), "{said:?}");
    assert!(said[1].starts_with("deployments[1]: state"), "{said:?}");
}

#[test]
fn a_field_that_nobody_knows_is_refused() {
    for text in [
        "[]",
        r#"{"deploymentz": []}"#,
        r#"{"deployments": [{"apply": {"k8sNam": "x"}}]}"#,
    ] {
        let error = render(text, &Rules::default()).unwrap_err();
        assert!(matches!(error, RenderError::Input(_)), "{text}: {error}");
    }
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
