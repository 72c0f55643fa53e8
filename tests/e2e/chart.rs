//! The chart on a real API server: what it installs is enough for krane, and its admission policy refuses the rest.

use k8s_openapi::api::{
    admissionregistration::v1::ValidatingAdmissionPolicyBinding,
    apps::v1::{Deployment, ReplicaSet},
    autoscaling::v2::HorizontalPodAutoscaler,
    coordination::v1::Lease,
    core::v1::{Namespace, Pod, Secret, Service},
};
use krane_proto::ctrl::v1::{ApplyDeployment, AutoscalingPolicy, Health};
use krane_sim::control_plane::{Kind, samples};
use krane_testcluster::Options;
use krane_testharness::{Chart, Failure, Outcome, World, eventually, limits};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::{
    KRANE,
    sentinels::{all_five, has, is_told, policies, sentinel, settled_cursor},
    world,
};

const MANAGED: (&str, &str) = ("app.kubernetes.io/managed-by", "krane");

/// Everything that krane writes, made and taken away again, with the rights that helm installed and no others.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_chart_installs_is_enough_and_nothing_is_refused() -> Outcome {
    let world = World::bare(KRANE, Options::default()).await?;
    let values = json!({
        "config": {"resync": {"interval": "2s"}},
        "leaderElection": {"enabled": true},
        "networkPolicy": {"enabled": true},
        "podDisruptionBudget": {"enabled": true},
        "sentinelNamespace": {"create": true},
    });
    let chart = Chart::new(&world, &values)?;
    chart.install().await?;
    let pod = chart.pod().await?;
    let careless: Pod = serde_json::from_value(json!({
        "metadata": {"name": "careless"}, "spec": {"containers": [{"name": "c", "image": "x"}]},
    }))?;
    let pods = world.api.within::<Pod>("krane");
    let refused = pods.create(&PostParams::default(), &careless).await;
    assert!(
        matches!(&refused, Err(kube::Error::Api(status)) if status.message.contains("PodSecurity")),
        "restricted pods only: {refused:?}"
    );
    let check = chart.test_pod().await?;
    assert_eq!(
        image(&check),
        image(&pod),
        "`helm test` runs the same image"
    );

    let client = krane_client(&world, &pod.name_any()).await?;
    policy_is_in_force(&client).await?;
    let mark = world.mark()?;
    let plain = samples::deployment(&world.namespace(0), "plain");
    let scaled = ApplyDeployment {
        autoscaling: Some(AutoscalingPolicy {
            min_replicas: 1,
            max_replicas: 3,
            memory_threshold: Some(90),
            ..AutoscalingPolicy::default()
        }),
        ..samples::deployment(&world.namespace(1), "scaled")
    };
    let front = sentinel(&world, "front", "prod");
    let policy = samples::policy(&world.namespace(0), "from-afar");
    world.push_all(&[plain.clone(), scaled.clone()]);
    world.control.push(samples::apply_sentinel(front.clone()));
    world.control.push(samples::apply_policy(policy));
    let agent = chart.start(&pod).await?;
    let wanted = [plain.clone(), scaled.clone()];
    world
        .settles("both run and are reported", &wanted, &[], limits::LONG)
        .await?;
    is_told(&world, &front, Health::Healthy, 1, limits::LONG).await?;
    has(&world, &front, &all_five(&front.k8s_name)).await?;
    is_there(
        &world
            .api
            .within::<HorizontalPodAutoscaler>(&scaled.k8s_namespace),
        "scaled",
    )
    .await?;
    is_there(
        &world.api.within::<Secret>(&plain.k8s_namespace),
        "depot-pull-secret",
    )
    .await?;
    is_there(&policies(&world, &plain.k8s_namespace), "from-afar").await?;
    is_there(&world.api.within::<Lease>("krane"), "krane").await?;

    world.control.push(samples::delete(&plain));
    world.control.push(samples::delete(&scaled));
    world
        .control
        .push(samples::delete_sentinel(&front.k8s_name));
    let gone = samples::delete_policy(&plain.k8s_namespace, "from-afar");
    world.control.push(gone);
    world
        .settles("both are gone", &[], &wanted, limits::LONG)
        .await?;
    has(&world, &front, &[]).await?;
    let newest = world.control.newest(Kind::Policies);
    settled_cursor(&agent, "cilium", newest).await?;
    agent.stop().await?;

    let requests = world.requests(mark)?;
    let refused: Vec<_> = requests
        .iter()
        .filter(|request| matches!(request.code, 401 | 403 | 422))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
    let writes = world.writes(mark)?;
    assert!(writes.len() >= 16, "{} writes", writes.len());
    println!(
        "{} requests, {} of them writes",
        requests.len(),
        writes.len()
    );

    only_the_policy_was_in_the_way(&world, &client).await
}

/// RBAC alone would let krane change a stranger's object.
async fn only_the_policy_was_in_the_way(world: &World, client: &Client) -> Outcome {
    let namespace = world.namespace(2);
    let strangers = stranger(world, &namespace).await?;
    let theirs = Api::<ReplicaSet>::namespaced(client.clone(), &namespace);
    let scale = Patch::Merge(json!({"spec": {"replicas": 1}}));
    let patch = async || {
        theirs
            .patch("theirs", &PatchParams::default(), &scale)
            .await
    };
    is_refused(
        "a patch",
        patch().await,
        "touches no object without the label",
    )?;
    assert_eq!(
        strangers
            .get("theirs")
            .await?
            .spec
            .and_then(|spec| spec.replicas),
        Some(0)
    );

    let bindings = world.api.all::<ValidatingAdmissionPolicyBinding>();
    bindings.delete("krane", &DeleteParams::default()).await?;
    eventually(
        "without the policy it is allowed",
        limits::SHORT,
        async || patch().await.map_err(|error| error.to_string()),
    )
    .await?;
    Ok(())
}

/// Each rule of the policy, by somebody who stole krane's token.
#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_token_changes_nothing_that_is_not_kranes() -> Outcome {
    let world = world().await?;
    let client = world.cluster().service_account_client().await?;
    policy_is_in_force(&client).await?;
    let namespace = world.namespace(0);
    stranger(&world, &namespace).await?;

    let ours = replica_set(&json!({}));
    let without = |key: &str| {
        let mut object = ours.clone();
        if let Some(spec) = object["spec"]["template"]["spec"].as_object_mut() {
            spec.remove(key);
        }
        object
    };
    let node = "no pods that reach their node";
    let privileged = json!([{"name": "c", "image": "x", "securityContext": {"privileged": true}}]);
    let capable = json!([{"name": "i", "image": "x",
        "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]);
    let host_path = json!([{"name": "root", "hostPath": {"path": "/"}}]);
    let host_port =
        json!([{"name": "c", "image": "x", "ports": [{"containerPort": 80, "hostPort": 80}]}]);
    let unconfined = json!({"seccompProfile": {"type": "Unconfined"}});
    for (what, object, word) in [
        (
            "its node's network",
            replica_set(&json!({"hostNetwork": true})),
            node,
        ),
        (
            "its node's processes",
            replica_set(&json!({"hostPID": true})),
            node,
        ),
        (
            "its node's files",
            replica_set(&json!({"volumes": host_path})),
            node,
        ),
        (
            "a port of its node",
            replica_set(&json!({"containers": host_port})),
            node,
        ),
        (
            "a node of its choice",
            replica_set(&json!({"nodeName": "node"})),
            node,
        ),
        (
            "no seccomp",
            replica_set(&json!({"securityContext": unconfined})),
            node,
        ),
        (
            "a privileged pod",
            replica_set(&json!({"containers": privileged})),
            node,
        ),
        (
            "a capability",
            replica_set(&json!({"initContainers": capable})),
            node,
        ),
        (
            "an account",
            replica_set(&json!({"serviceAccountName": "admin"})),
            "rights of their own",
        ),
        (
            "no sandbox",
            without("runtimeClassName"),
            "RuntimeClass gvisor",
        ),
    ] {
        let answer = apply(&client, &namespace, "new", &object).await;
        is_refused(what, answer, word)?;
    }
    nothing_else_is_scaled(&client, &namespace).await?;
    nothing_is_opened_to_the_outside(&client).await?;
    let mut unlabelled = ours.clone();
    unlabelled["metadata"]["labels"] = json!({});
    let label = "has the label app.kubernetes.io/managed-by=krane";
    is_refused(
        "a create",
        apply(&client, &namespace, "new", &unlabelled).await,
        label,
    )?;
    for reserved in ["default", "kube-system", "krane"] {
        let answer = apply(&client, reserved, "new", &ours).await;
        is_refused(reserved, answer, "writes nothing in namespace")?;
    }
    let foreign = "touches no object without the label";
    is_refused(
        "an apply",
        apply(&client, &namespace, "theirs", &ours).await,
        foreign,
    )?;
    let theirs = Api::<ReplicaSet>::namespaced(client.clone(), &namespace);
    let deleted = theirs.delete("theirs", &DeleteParams::background()).await;
    is_refused("a delete", deleted, foreign)?;
    let namespaces = Api::<Namespace>::all(client.clone());
    let open = json!({"metadata": {"labels": {
        "pod-security.kubernetes.io/enforce": "privileged", (MANAGED.0): MANAGED.1,
    }}});
    let patched = namespaces
        .patch(&namespace, &PatchParams::default(), &Patch::Merge(open))
        .await;
    is_refused("a namespace", patched, foreign)?;

    // What is its own it may have, but not give away.
    apply(&client, &namespace, "mine", &ours).await?;
    let opened = replica_set(&json!({"hostNetwork": true}));
    let opened = apply(&client, &namespace, "mine", &opened).await;
    is_refused("to open its own", opened, node)?;
    let given = Patch::Merge(json!({"metadata": {"labels": {(MANAGED.0): null}}}));
    let given = theirs.patch("mine", &PatchParams::default(), &given).await;
    is_refused("to hide an object", given, label)?;
    theirs.delete("mine", &DeleteParams::background()).await?;
    world
        .api
        .delete_global(&world.api.all::<Namespace>().get(&namespace).await?)
        .await
}

/// An autoscaler of krane's, with somebody else's workload as its target.
async fn nothing_else_is_scaled(client: &Client, namespace: &str) -> Outcome {
    let scalers = Api::<HorizontalPodAutoscaler>::namespaced(client.clone(), namespace);
    for (kind, name) in [("Deployment", "scaler"), ("ReplicaSet", "theirs")] {
        let scaler: HorizontalPodAutoscaler = serde_json::from_value(json!({
            "metadata": {"name": "scaler", "labels": {(MANAGED.0): MANAGED.1}},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": name},
                "maxReplicas": 3,
            },
        }))?;
        let answer = scalers.create(&PostParams::default(), &scaler).await;
        is_refused(kind, answer, "scales ReplicaSets only")?;
    }
    Ok(())
}

async fn nothing_is_opened_to_the_outside(client: &Client) -> Outcome {
    let services = Api::<Service>::namespaced(client.clone(), "sentinel");
    for (what, spec) in [
        (
            "a port of all nodes",
            json!({"type": "NodePort", "ports": [{"port": 80}]}),
        ),
        (
            "an address",
            json!({"externalIPs": ["192.0.2.1"], "ports": [{"port": 80}]}),
        ),
    ] {
        let service: Service = serde_json::from_value(json!({
            "metadata": {"name": "open", "labels": {(MANAGED.0): MANAGED.1}},
            "spec": spec,
        }))?;
        let answer = services.create(&PostParams::default(), &service).await;
        is_refused(what, answer, "type ClusterIP without externalIPs")?;
    }
    Ok(())
}

/// D15: without the label, but applied by krane's field manager. Deleted it may not be.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_earlier_agent_left_among_the_sentinels_may_be_taken_over() -> Outcome {
    let world = world().await?;
    let client = world.cluster().service_account_client().await?;
    policy_is_in_force(&client).await?;
    let deployments = world.api.within::<Deployment>("sentinel");
    let name = |what: &str| format!("{}-{what}", world.namespace(0));
    let left = |labels: Value| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"labels": labels},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "x"}},
                "template": {
                    "metadata": {"labels": {"app": "x"}},
                    "spec": {"containers": [{"name": "c", "image": "x"}]},
                },
            },
        })
    };
    for (what, manager) in [("left", "krane"), ("foreign", "helm")] {
        let manager = PatchParams::apply(manager);
        let patch = Patch::Apply(named(&left(json!({})), &name(what)));
        deployments.patch(&name(what), &manager, &patch).await?;
    }
    let as_krane = Api::<Deployment>::namespaced(client, "sentinel");
    let krane = PatchParams::apply("krane").force();
    let ours = left(json!({(MANAGED.0): MANAGED.1}));
    let take_over = async |what: &str| {
        let object = Patch::Apply(named(&ours, &name(what)));
        as_krane.patch(&name(what), &krane, &object).await
    };
    let background = DeleteParams::background();
    let gone = as_krane.delete(&name("left"), &background).await;
    let label = "touches no object without the label";
    is_refused("a delete", gone, label)?;
    take_over("left").await?;
    let foreign = take_over("foreign").await;
    is_refused("a stranger's", foreign, label)?;
    deployments
        .delete(&name("foreign"), &DeleteParams::default())
        .await?;
    Ok(())
}

/// A namespace that is not krane's, with a ReplicaSet of somebody.
async fn stranger(world: &World, namespace: &str) -> Outcome<Api<ReplicaSet>> {
    let manager = PatchParams::apply("somebody");
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let namespaces = world.api.all::<Namespace>();
    namespaces
        .patch(namespace, &manager, &Patch::Apply(object))
        .await?;
    let mut theirs = replica_set(&json!({}));
    theirs["metadata"]["labels"] = json!({"app": "x"});
    let sets = world.api.within::<ReplicaSet>(namespace);
    sets.patch("theirs", &manager, &Patch::Apply(named(&theirs, "theirs")))
        .await?;
    Ok(sets)
}

/// What krane may make, with these fields of the pod beyond.
fn replica_set(more: &Value) -> Value {
    let mut pod =
        json!({"runtimeClassName": "gvisor", "containers": [{"name": "c", "image": "x"}]});
    for (key, value) in more.as_object().into_iter().flatten() {
        pod[key] = value.clone();
    }
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"labels": {(MANAGED.0): MANAGED.1}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": pod},
        },
    })
}

/// An apply wants the name in the object, too.
fn named(object: &Value, name: &str) -> Value {
    let mut object = object.clone();
    object["metadata"]["name"] = name.into();
    object
}

async fn apply(
    client: &Client,
    namespace: &str,
    name: &str,
    object: &Value,
) -> kube::Result<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", "ReplicaSet"));
    let sets = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource);
    let krane = PatchParams::apply("krane").force();
    let object = Patch::Apply(named(object, name));
    sets.patch(name, &krane, &object).await
}

fn is_refused<T>(what: &str, answer: kube::Result<T>, word: &str) -> Outcome {
    match answer {
        Err(kube::Error::Api(status))
            if status.code == 403
                && status.message.contains("ValidatingAdmissionPolicy 'krane'")
                && status.message.contains(word) =>
        {
            Ok(())
        }
        Err(error) => Err(Failure::new(format!("{what}: {error}"))),
        Ok(_) => Err(Failure::new(format!("{what} was not refused"))),
    }
}

/// The API server learns of a policy by a watch.
async fn policy_is_in_force(client: &Client) -> Outcome {
    let krane = PatchParams::apply("krane").dry_run();
    let namespaces = Api::<Namespace>::all(client.clone());
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-probe",
        "labels": {(MANAGED.0): MANAGED.1}}});
    eventually("the policy is in force", limits::SHORT, async || {
        let answer = namespaces
            .patch("kube-probe", &krane, &Patch::Apply(&object))
            .await;
        is_refused("a probe", answer, "writes nothing in namespace kube-probe")
            .map_err(|failure| failure.to_string())
    })
    .await
}

async fn krane_client(world: &World, pod: &str) -> Outcome<Client> {
    let kubeconfig = world.cluster().pod_kubeconfig("krane", pod).await?;
    Ok(krane_testcluster::client_of(&kubeconfig).await?)
}

async fn is_there<K>(api: &Api<K>, name: &str) -> Outcome
where
    K: Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    eventually(&format!("{name} is there"), limits::LONG, async || {
        let found = api.get(name).await;
        found.map(drop).map_err(|error| error.to_string())
    })
    .await
}

fn image(pod: &Pod) -> Option<String> {
    pod.spec.as_ref()?.containers.first()?.image.clone()
}
