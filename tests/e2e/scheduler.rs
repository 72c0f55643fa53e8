//! A scheduler made with connect-go has the real binary run workloads on a real API server (D32).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::apps::v1::ReplicaSet;
use krane_proto::ctrl::v1::ApplyDeployment;
use krane_proto::krane::v1::State;
use krane_proto::krane::v1::state::State as Case;
use krane_sim::control_plane::samples;
use krane_testharness::{
    Agent, AgentBuilder, CANARY, ConnectGo, Outcome, World, eventually, limits,
};
use kube::ResourceExt as _;
use prost::Message as _;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::lease::{forget_the_lease, leads};
use crate::secrets_caller::WAYS;
use crate::world;

/// The one way that knows streams.
const GRPC: (&str, u8, bool) = ("grpc", 2, false);

/// One line of the scheduler's.
#[derive(Debug, Deserialize)]
struct Line {
    code: String,
    message: String,
    #[serde(default)]
    state: String,
}

/// A scheduler that calls one agent.
struct Scheduler {
    program: ConnectGo,
    token: String,
}

impl Scheduler {
    async fn of(agent: &Agent) -> Outcome<Self> {
        let url = format!("http://127.0.0.1:{}", agent.rpc_port());
        let program = ConnectGo::start(env!("CARGO_TARGET_TMPDIR"), &["-schedule", &url]).await?;
        Ok(Self {
            program,
            token: token(),
        })
    }

    /// How a call ends: its code and its message.
    async fn call(
        &mut self,
        way: (&str, u8, bool),
        method: &str,
        message: &Value,
    ) -> Outcome<(String, String)> {
        let order = json!({
            "protocol": way.0, "http": way.1, "json": way.2,
            "token": self.token, "method": method, "message": message,
        });
        self.program.tell(&order).await?;
        let told: Line = self.program.hear(Duration::from_secs(60)).await?;
        Ok((told.code, told.message))
    }

    async fn done(&mut self, way: (&str, u8, bool), method: &str, message: &Value) -> Outcome {
        let (code, message) = self.call(way, method, message).await?;
        assert_eq!(code, "ok", "{method} {way:?}: {message}");
        Ok(())
    }

    /// Follows from now on.
    async fn follow(&mut self) -> Outcome {
        let order = json!({
            "protocol": "grpc", "http": 2, "token": self.token, "method": "Watch",
        });
        self.program.tell(&order).await
    }

    /// Why nothing follows any more.
    async fn end(&mut self) -> Outcome<(String, String)> {
        loop {
            let told: Line = self.program.hear(limits::LONG).await?;
            if told.code != "state" {
                return Ok((told.code, told.message));
            }
        }
    }

    /// Reads states until one is as expected.
    async fn sees(&mut self, what: &str, expected: impl Fn(&Case) -> bool) -> Outcome {
        loop {
            let told: Line = self.program.hear(limits::LONG).await?;
            assert_eq!(told.code, "state", "{what}: {}", told.message);
            let state = State::decode(&*STANDARD.decode(&told.state)?)?;
            if state.state.as_ref().is_some_and(&expected) {
                return Ok(());
            }
        }
    }
}

fn token() -> String {
    format!("{CANARY}-of-the-scheduler")
}

fn agent(world: &World) -> AgentBuilder {
    world.agent().variable("KRANE__SCHEDULER__TOKEN", &token())
}

/// The call for a workload like this one, of so many pods.
fn apply(wanted: &ApplyDeployment, replicas: u32) -> Value {
    json!({
        "k8sNamespace": wanted.k8s_namespace,
        "k8sName": wanted.k8s_name,
        "workspaceId": wanted.workspace_id,
        "projectId": wanted.project_id,
        "environmentId": wanted.environment_id,
        "deploymentId": wanted.deployment_id,
        "image": wanted.image,
        "replicas": replicas,
        "cpuMillicores": "250",
        "memoryMib": "256",
        "readinessId": "ready-7",
    })
}

fn delete(wanted: &ApplyDeployment) -> Value {
    json!({ "k8sNamespace": wanted.k8s_namespace, "k8sName": wanted.k8s_name })
}

/// How many running instances are told of a workload.
fn running(case: &Case, name: &str) -> Option<usize> {
    match case {
        Case::Deployment(told) if told.deployment_k8s_name == name => {
            let running = told.instances.iter().filter(|it| it.status == 2);
            Some(running.count())
        }
        Case::Deployment(_) | Case::Sentinel(_) => None,
    }
}

async fn replica_set(world: &World, wanted: &ApplyDeployment) -> Outcome<Option<ReplicaSet>> {
    let sets = world.api.within::<ReplicaSet>(&wanted.k8s_namespace);
    Ok(sets.get_opt(&wanted.k8s_name).await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_scheduler_calls_for_runs_is_told_to_followers_alone_and_goes_when_it_says_so()
-> Outcome {
    let world = world().await?;
    let agent = agent(&world).secret(&token()).start().await?;
    let (mut scheduler, mut follower) =
        (Scheduler::of(&agent).await?, Scheduler::of(&agent).await?);
    follower.follow().await?;
    let planned = samples::deployment(&world.namespace(0), "planned");
    for (step, way) in WAYS.into_iter().enumerate() {
        let replicas = 1 + u32::try_from(step % 2)?;
        let call = apply(&planned, replicas);
        scheduler.done(way, "ApplyDeployment", &call).await?;
        let set = replica_set(&world, &planned)
            .await?
            .expect("the call is done");
        let wanted = set.spec.as_ref().and_then(|spec| spec.replicas);
        assert_eq!(wanted, Some(i32::try_from(replicas)?), "{way:?}");
        assert_eq!(set.labels()["krane.unkey.com/desired-by"], "scheduler");
        let all_run = |case: &Case| running(case, "planned") == Some(replicas as usize);
        follower.sees("its pods run", all_run).await?;
    }
    // One object, one owner: the control plane wants another, which is then not the scheduler's.
    let owned = samples::deployment(&world.namespace(0), "owned");
    world.control.push(samples::apply(owned.clone()));
    let one_runs = |case: &Case| running(case, "owned") == Some(1);
    follower.sees("it is told of others' too", one_runs).await?;
    for (method, call) in [
        ("ApplyDeployment", apply(&owned, 3)),
        ("DeleteDeployment", delete(&owned)),
    ] {
        for way in WAYS {
            let (code, message) = scheduler.call(way, method, &call).await?;
            assert_eq!(code, "failed_precondition", "{method} {way:?}: {message}");
        }
    }
    let told: Vec<_> = world.control.reports().into_keys().collect();
    assert!(!told.contains(&"planned".to_owned()), "{told:?}");

    // What the API server refuses, and what no API server is asked.
    let nonsense = json!({ "k8sNamespace": "kube-system", "k8sName": "x" });
    let (code, message) = scheduler.call(GRPC, "DeleteDeployment", &nonsense).await?;
    assert_eq!(code, "invalid_argument", "{message}");
    let scrape = json!({ "namespace": planned.k8s_namespace, "name": "planned", "path": "/" });
    let (code, _) = scheduler.call(GRPC, "ScrapeOpenApiSchema", &scrape).await?;
    assert_eq!(code, "unimplemented");
    scheduler.token = "wrong".to_owned();
    for way in WAYS {
        let call = delete(&planned);
        let (code, _) = scheduler.call(way, "DeleteDeployment", &call).await?;
        assert_eq!(code, "unauthenticated", "{way:?}");
    }
    scheduler.token = token();

    scheduler
        .done(WAYS[1], "DeleteDeployment", &delete(&planned))
        .await?;
    let gone = |case: &Case| running(case, "planned") == Some(0);
    follower.sees("it is gone", gone).await?;
    assert_eq!(replica_set(&world, &planned).await?, None);
    // A second one finds nothing to do.
    scheduler
        .done(GRPC, "DeleteDeployment", &delete(&planned))
        .await?;
    // The follower's connection does not hold up the end.
    agent.stop().await
}

/// While krane runs, an edit is undone; after a restart nobody knows any more what was wanted, so
/// that the object stays as it is, its edit with it, until the next call.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_objects_of_the_scheduler_are_kept_and_not_repaired_until_the_next_call()
-> Outcome {
    let world = world().await?;
    let mut agent = agent(&world).start().await?;
    let mut scheduler = Scheduler::of(&agent).await?;
    let kept = samples::deployment(&world.namespace(0), "kept");
    let call = apply(&kept, 1);
    scheduler.done(GRPC, "ApplyDeployment", &call).await?;
    let edit = json!({ "spec": { "replicas": 3 } });
    let replicas = async |wanted: i32| {
        eventually("the replicas are right", limits::SHORT, async || {
            let set = replica_set(&world, &kept).await;
            let set = set.map_err(|failure| failure.to_string())?;
            let found = set.and_then(|set| set.spec).and_then(|spec| spec.replicas);
            (found == Some(wanted))
                .then_some(())
                .ok_or_else(|| format!("{found:?}"))
        })
        .await
    };
    let (namespace, name) = (&kept.k8s_namespace, &kept.k8s_name);
    world
        .api
        .edit::<ReplicaSet>(namespace, name, edit.clone())
        .await?;
    replicas(1).await?;

    agent.kill().await?;
    world.api.edit::<ReplicaSet>(namespace, name, edit).await?;
    let other = samples::deployment(&world.namespace(0), "other");
    let agent = self::agent(&world)
        .set("resync.interval", "1s")
        .start()
        .await?;
    world.control.push(samples::apply(other.clone()));
    let is_told = async || {
        let told = world.control.reports();
        told.contains_key("other")
            .then_some(())
            .ok_or_else(|| "not yet".to_owned())
    };
    eventually("krane works", limits::LONG, is_told).await?;
    let mark = world.mark()?;
    // A few passes over all that there is.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let writes = world.writes(mark)?;
    assert!(writes.is_empty(), "{writes:?}");
    replicas(3).await?;
    let mut scheduler = Scheduler::of(&agent).await?;
    scheduler.follow().await?;
    let all_run = |case: &Case| running(case, "kept") == Some(3);
    scheduler.sees("it is told nevertheless", all_run).await?;
    let mut scheduler = Scheduler::of(&agent).await?;
    scheduler.done(GRPC, "ApplyDeployment", &call).await?;
    replicas(1).await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_krane_on_standby_does_nothing_for_a_scheduler() -> Outcome {
    let world = world().await?;
    forget_the_lease(&world).await?;
    let elected = || agent(&world).set("lease.enabled", "true");
    let leader = elected().set("instance_id", "first").start().await?;
    leads("the first leads", &leader, limits::SHORT).await?;
    let standby = elected().set("instance_id", "second").start().await?;
    let wanted = samples::deployment(&world.namespace(0), "planned");
    let call = apply(&wanted, 1);
    let (mut first, mut second) = (
        Scheduler::of(&leader).await?,
        Scheduler::of(&standby).await?,
    );
    for (method, message) in [("ApplyDeployment", &call), ("Watch", &json!({}))] {
        let (code, text) = second.call(GRPC, method, message).await?;
        assert_eq!(code, "unavailable", "{method}: {text}");
        assert!(text.contains("standby"), "{method}: {text}");
    }
    assert_eq!(replica_set(&world, &wanted).await?, None);
    first.done(GRPC, "ApplyDeployment", &call).await?;
    // Whoever follows a leader is told when it leads no more.
    first.follow().await?;
    let one_runs = |case: &Case| running(case, "planned") == Some(1);
    first.sees("its pod runs", one_runs).await?;
    leader.stop().await?;
    let (code, text) = first.end().await?;
    assert_eq!(code, "unavailable", "{text}");
    eventually("the other one leads", limits::LONG, async || {
        let ended = second.call(GRPC, "ApplyDeployment", &call).await;
        let (code, text) = ended.map_err(|failure| failure.to_string())?;
        (code == "ok").then_some(()).ok_or(text)
    })
    .await?;
    standby.stop().await
}
