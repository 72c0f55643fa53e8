//! Names, ids and numbers.

use krane_proto::ctrl::v1::{ApplyDeployment, AutoscalingPolicy};
use krane_sim::control_plane::{Report, samples};
use krane_testharness::{Outcome, limits};

use super::{gauge, logged, no_panic};
use crate::world;

/// xlab-uiuc/acto, bugs.md (C12); rhobs/observability-operator PR #1113, Azure/azure-service-operator#4734 (B31);
/// D15: every name that is none and every number out of range is refused with its field named; no request leaves the
/// namespaces that are wanted.
#[tokio::test(flavor = "multi_thread")]
async fn names_that_escape_and_numbers_at_their_limits_never_reach_the_api_server() -> Outcome {
    let world = world().await?;
    let namespace = world.namespace(0);
    let long = "a".repeat(63);
    let mut good = samples::deployment(&namespace, &long);
    good.deployment_id = "d_good".to_owned();
    good.git_commit_message = Some("$(PATH) $$(HOME) ${X} \u{202e}\"\n%2f".to_owned());
    good.command = vec![
        "/bin/sh".into(),
        "-c".into(),
        "echo $(UNKEY_REGION) $$".into(),
    ];
    let mark = world.mark()?;
    let agent = world.agent().set("resync.interval", "24h").start().await?;

    let long = ["a".repeat(64), "a".repeat(253), "a".repeat(254)];
    let mut names = vec![
        "../../../api/v1/secrets",
        "..",
        ".",
        "%2f",
        "%2e%2e%2f",
        "a?dryRun=All",
        "a#b",
        "a b",
        "a/b",
        "UPPER",
        "ünï",
        "a\nb",
        "a\u{0}b",
        "-a",
        "a-",
        "a.b",
        "a_b",
        "{\"level\":\"error\"}",
        "\u{202e}a",
        "a\\b",
        ";rm",
        "a:b",
    ];
    names.extend(long.iter().map(String::as_str));
    let mut bad = Vec::new();
    for name in &names {
        bad.push(("k8s_name", samples::deployment(&namespace, name)));
        bad.push(("k8s_namespace", samples::deployment(name, "evil")));
    }
    for reserved in [
        "kube-system",
        "kube-public",
        "kube-x",
        "default",
        "sentinel",
    ] {
        bad.push(("k8s_namespace", samples::deployment(reserved, "evil")));
    }
    let mut number = 0;
    let mut with = |field: &'static str, change: &dyn Fn(&mut ApplyDeployment)| {
        number += 1;
        let mut state = samples::deployment(&namespace, &format!("odd{number}"));
        change(&mut state);
        bad.push((field, state));
    };
    for id in ["a b", "a/b", "ä", "_a", "a_", &"a".repeat(64), "a\n"] {
        with("deployment_id", &|state| {
            state.deployment_id = id.to_owned();
        });
        with("environment_id", &|state| {
            state.environment_id = id.to_owned();
        });
        with("build_id", &|state| state.build_id = Some(id.to_owned()));
    }
    for value in [-1, i32::MIN, i32::MAX, 1001] {
        with("replicas", &|state| state.replicas = value);
    }
    for value in [0, -5, i64::MIN, i64::MAX] {
        with("cpu_millicores", &|state| state.cpu_millicores = value);
        with("memory_mib", &|state| state.memory_mib = value);
    }
    for value in [65536, 70000, i32::MAX] {
        with("port", &|state| state.port = value);
    }
    with("shutdown_signal", &|state| {
        state.shutdown_signal = "SIGFOO; rm -rf /".to_owned();
    });
    with("command", &|state| state.command = vec!["a\0b".to_owned()]);
    with("image", &|state| state.image = "a b".to_owned());
    with("autoscaling", &|state| {
        state.autoscaling = Some(AutoscalingPolicy {
            min_replicas: u32::MAX,
            max_replicas: u32::MAX,
            ..AutoscalingPolicy::default()
        });
    });
    world
        .control
        .push_all(bad.iter().map(|(_, state)| samples::apply(state.clone())));
    for name in &names {
        world.control.push(samples::delete(&samples::deployment(
            &namespace,
            &format!("{name}x/.."),
        )));
        world
            .control
            .push(samples::delete(&samples::deployment("kube-system", name)));
    }
    world.control.push(samples::apply(good.clone()));
    world
        .settles("the good one runs", &[good.clone()], &[], limits::LONG)
        .await?;

    for (field, state) in &bad {
        let key = format!("{}/{}", state.k8s_namespace, state.k8s_name);
        // Names over 253 bytes name nothing.
        if state.k8s_name.len() > 253 || state.k8s_namespace.len() > 253 {
            continue;
        }
        logged(&agent, &format!("{field} of {key:?} is named"), |line| {
            line.level().eq_ignore_ascii_case("error")
                && line.text("reason").contains(field)
                && line.text("key") == key
        })
        .await?;
    }
    no_panic(&agent)?;

    let live = world.live().await?;
    let set = live.replica_sets.values().next().expect("it settled");
    let set = serde_json::to_value(set)?;
    let container = &set["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["command"], serde_json::json!(good.command));
    let message = container["env"]
        .as_array()
        .and_then(|all| all.iter().find(|v| v["name"] == "UNKEY_GIT_COMMIT_MESSAGE"))
        .map(|v| v["value"].clone());
    let literal = "$$(PATH) $$$$(HOME) $${X} \u{202e}\"\n%2f";
    assert_eq!(message, Some(serde_json::json!(literal)));
    let strangers: Vec<_> = world
        .requests(mark)?
        .into_iter()
        // Events name what is wrong on purpose, in the namespace of its Namespace.
        .filter(|request| !request.name.is_empty() && request.resource != "events")
        .filter(|request| request.namespace != namespace && request.name != namespace)
        .map(|request| format!("{} {} -> {}", request.verb, request.uri, request.code))
        .collect();
    assert!(strangers.is_empty(), "{strangers:#?}");
    agent.stop().await
}

/// D28: two workloads of one name are both run, one is reported, and the conflict is shown.
#[tokio::test(flavor = "multi_thread")]
async fn one_name_in_two_namespaces_runs_twice_and_is_reported_once() -> Outcome {
    let world = world().await?;
    let first = samples::deployment(&world.namespace(0), "twin");
    let second = samples::deployment(&world.namespace(1), "twin");
    world.control.push(samples::apply(first.clone()));
    let agent = world.agent().set("resync.interval", "24h").start().await?;
    world
        .settles(
            "the first runs",
            std::slice::from_ref(&first),
            &[],
            limits::LONG,
        )
        .await?;
    world.control.push(samples::apply(second.clone()));
    gauge(&agent, "krane_objects_name_conflict", 1.0).await?;
    let told = world.control.reports()["twin"].report.clone();
    let Report::Update { instances, .. } = told else {
        panic!("not an update: {told:?}");
    };
    assert_eq!(instances.len(), 1);
    assert!(instances[0].address.contains(&first.k8s_namespace));
    // The delete of one must not be told as the end of the other.
    world.control.push(samples::delete(&first));
    world
        .settles("the second takes its place", &[second], &[], limits::LONG)
        .await?;
    no_panic(&agent)?;
    agent.stop().await
}

/// D11c: a selector cannot be changed; the object is made anew, but only within its environment.
#[tokio::test(flavor = "multi_thread")]
async fn another_deployment_id_recreates_and_another_environment_is_refused() -> Outcome {
    let world = world().await?;
    let mut state = samples::deployment(&world.namespace(0), "web");
    let mut other = samples::deployment(&world.namespace(0), "other");
    world.push_all(&[state.clone(), other.clone()]);
    let agent = world.agent().set("resync.interval", "24h").start().await?;
    let both = [state.clone(), other.clone()];
    world.settles("both run", &both, &[], limits::LONG).await?;
    state.deployment_id = "d_another".to_owned();
    world.control.push(samples::apply(state.clone()));
    let both = [state.clone(), other.clone()];
    world
        .settles("it is made anew", &both, &[], limits::LONG)
        .await?;

    let stolen = ApplyDeployment {
        deployment_id: "d_stolen".to_owned(),
        environment_id: "env_stolen".to_owned(),
        ..state.clone()
    };
    world.control.push(samples::apply(stolen));
    gauge(&agent, "krane_quarantined", 1.0).await?;
    other.memory_mib = 512;
    world.control.push(samples::apply(other.clone()));
    world
        .settles("the rest goes on", &[state, other], &[], limits::LONG)
        .await?;
    no_panic(&agent)?;
    agent.stop().await
}
