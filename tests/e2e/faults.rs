//! An API server that is slow, refuses, loses answers or shows nothing yet.

mod crashes;
mod credentials;
mod views;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use http::StatusCode;
use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::{Code, Kind, samples};
use krane_testharness::{Action, Agent, Call, Outcome, Proxy, Recorded, World, eventually, limits};

use crate::world;

async fn through(world: &World, proxy: &Proxy) -> Outcome<Agent> {
    world.agent().kubeconfig(proxy.kubeconfig()).start().await
}

fn writes(call: &Call, state: &ApplyDeployment) -> bool {
    call.writes("replicasets") && call.name == state.k8s_name
}

/// unkeyed/unkey bdb79b273c, PR #7098 (A01): a change that failed for a passing reason was skipped, and the cursor
/// moved past it. D3: no watch request may name a version that is not applied.
#[tokio::test(flavor = "multi_thread")]
async fn a_passing_failure_is_not_skipped_and_the_cursor_waits_below_it() -> Outcome {
    let world = world().await?;
    let wanted = world.deployments(8, 2);
    let failing = wanted[6].clone();
    let proxy = Proxy::start(&world).await?;
    let open = Arc::new(AtomicBool::new(false));
    proxy.script({
        let (failing, open) = (failing.clone(), Arc::clone(&open));
        move |call: &Call| {
            if writes(call, &failing) && !open.load(Ordering::Relaxed) {
                Action::status(503, "ServiceUnavailable", "try again")
            } else {
                Action::Pass
            }
        }
    });
    world.push_all(&wanted);
    let agent = through(&world, &proxy).await?;
    let others: Vec<_> = wanted
        .iter()
        .filter(|state| state.k8s_name != failing.k8s_name)
        .cloned()
        .collect();
    world
        .settles("the others run", &others, &[], limits::LONG)
        .await?;
    // Every new stream tells how far krane thinks it is.
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(8) {
        let before = world
            .control
            .look(|seen| seen.cursors(Kind::Deployments).len());
        world.control.cut_streams(Code::Unavailable);
        let again = |seen: &krane_sim::control_plane::Seen| {
            (seen.cursors(Kind::Deployments).len() > before).then_some(())
        };
        world
            .control
            .wait_for("the next stream", limits::SHORT, again)
            .await?;
    }
    let cursors = world.control.look(|seen| seen.cursors(Kind::Deployments));
    assert!(cursors.iter().all(|cursor| *cursor <= 6), "{cursors:?}");
    assert_eq!(
        cursors.last(),
        Some(&6),
        "it moves as far as it may: {cursors:?}"
    );
    open.store(true, Ordering::Relaxed);
    world.settles("all run", &wanted, &[], limits::LONG).await?;
    eventually("the cursor is at 8", limits::SHORT, async || {
        let metrics = agent
            .metrics()
            .await
            .map_err(|failure| failure.to_string())?;
        let cursor = metrics.deployments("krane_stream_cursor");
        if cursor >= 8.0 {
            Ok(())
        } else {
            Err(cursor.to_string())
        }
    })
    .await?;
    agent.stop().await
}

/// unkeyed/unkey 0587420153, PR #5624 (A04): a live change waited behind the replay of everything.
#[tokio::test(flavor = "multi_thread")]
async fn a_live_change_overtakes_a_replay_and_requests_stay_bounded() -> Outcome {
    const REPLAYED: usize = 500;
    let world = world().await?;
    let replayed: Vec<_> = world
        .deployments(REPLAYED, 25)
        .into_iter()
        .map(|state| ApplyDeployment {
            replicas: 0,
            ..state
        })
        .collect();
    let proxy = Proxy::start(&world).await?;
    proxy.script(|call: &Call| {
        if call.is_write() {
            Action::Delay(Duration::from_millis(250))
        } else {
            Action::Pass
        }
    });
    world.push_all(&replayed);
    let agent = world.agent().kubeconfig(proxy.kubeconfig()).spawn()?;
    proxy
        .wait_for("the replay is being applied", limits::LONG, |records| {
            (records
                .iter()
                .filter(|r| r.call.writes("replicasets"))
                .count()
                >= 40)
                .then_some(())
        })
        .await?;
    let live = samples::deployment(&world.namespace(0), "live");
    let pushed = Instant::now();
    world.control.push(samples::apply(live.clone()));
    let applied = |records: &[Recorded]| {
        let mut of_live = records.iter().filter(|record| writes(&record.call, &live));
        of_live.find_map(|record| record.answered.map(|(_, at)| at))
    };
    let applied = proxy
        .wait_for("the live change is applied", limits::SHORT, applied)
        .await?;
    let waiting = REPLAYED
        - proxy
            .records()
            .iter()
            .filter(|r| r.call.writes("replicasets"))
            .count()
            .min(REPLAYED);
    println!(
        "applied {:?} after its push, {waiting} replayed ones still waiting",
        applied - pushed
    );
    assert!(waiting > 0, "the replay must not be over before");
    let most = most_in_flight(&proxy.records());
    assert!(most <= 32, "{most} requests in flight");
    agent.stop().await
}

/// The most requests about single objects that were open at once. Lists and watches are the other controllers', too, and
/// each controller has a limit of its own.
fn most_in_flight(records: &[Recorded]) -> i32 {
    // Watches, lists and Events have limits of their own (D22a).
    let has_own_limit = |record: &&Recorded| {
        let call = &record.call;
        call.is_watch() || call.is_list() || call.resource == "events"
    };
    let mut edges: Vec<(Instant, i32)> = records
        .iter()
        .filter(|record| !has_own_limit(record))
        .filter_map(|record| Some([(record.call.at, 1), (record.answered?.1, -1)]))
        .flatten()
        .collect();
    edges.sort();
    let mut now = 0;
    edges.iter().fold(0, |most, (_, step)| {
        now += step;
        most.max(now)
    })
}

/// unkeyed/unkey 1ca1128c6a, PR #5309 (A15): the workload was created before what it names. The policy comes first.
#[tokio::test(flavor = "multi_thread")]
async fn everything_a_pod_names_is_in_place_before_its_workload() -> Outcome {
    let world = world().await?;
    let wanted = world.deployments(6, 3);
    let proxy = Proxy::start(&world).await?;
    proxy.script(|call: &Call| {
        if call.is_write() && !call.writes("replicasets") {
            Action::Delay(Duration::from_secs(1))
        } else {
            Action::Pass
        }
    });
    world.push_all(&wanted);
    let agent = through(&world, &proxy).await?;
    world.settles("all run", &wanted, &[], limits::LONG).await?;
    let records = proxy.records();
    for state in &wanted {
        let answered = |resource: &str| {
            let found = records.iter().find(|record| {
                record.call.writes(resource) && record.call.namespace == state.k8s_namespace
            });
            found
                .and_then(|record| record.answered)
                .filter(|(code, _)| *code < 300)
        };
        let sent = records
            .iter()
            .find(|record| writes(&record.call, state))
            .map(|r| r.call.at);
        for resource in ["namespaces", "ciliumnetworkpolicies"] {
            let in_place = answered(resource).map(|(_, at)| at);
            assert!(
                in_place < sent && in_place.is_some(),
                "{resource} of {}",
                state.k8s_name
            );
        }
    }
    agent.stop().await
}

/// unkeyed/unkey fb7501c734, PR #5833; 0587420153, PR #5624 (A20): 429 with Retry-After on a tenth of all calls.
#[tokio::test(flavor = "multi_thread")]
async fn being_told_to_wait_loses_nothing_and_is_obeyed() -> Outcome {
    let world = world().await?;
    let wanted = world.deployments(150, 15);
    world.push_all(&wanted);
    let agent = world.agent().start().await?;
    world
        .settles("all run", &wanted, &[], limits::VERY_LONG)
        .await?;
    agent.stop().await?;

    let proxy = Proxy::start(&world).await?;
    let count = AtomicUsize::new(0);
    proxy.script(move |_: &Call| {
        if count.fetch_add(1, Ordering::Relaxed) % 10 == 3 {
            Action::Answer {
                code: StatusCode::TOO_MANY_REQUESTS,
                retry_after: Some(2),
                body: "{\"kind\":\"Status\",\"code\":429,\"reason\":\"TooManyRequests\"}".into(),
            }
        } else {
            Action::Pass
        }
    });
    let before = world.control.look(|seen| seen.requests.len());
    let started = Instant::now();
    // Every second one changes, so that there are writes to be refused.
    let wanted: Vec<_> = wanted
        .into_iter()
        .enumerate()
        .map(|(index, state)| ApplyDeployment {
            memory_mib: if index % 2 == 0 {
                512
            } else {
                state.memory_mib
            },
            ..state
        })
        .collect();
    world.push_all(&wanted);
    let agent = world.agent().kubeconfig(proxy.kubeconfig()).spawn()?;
    world
        .settles("all are as wanted", &wanted, &[], limits::VERY_LONG)
        .await?;
    let told = |seen: &krane_sim::control_plane::Seen| {
        let told = |state: &ApplyDeployment| {
            let mut since = seen.requests[before..].iter();
            since.any(|request| {
                matches!(&request.asked, krane_sim::control_plane::Asked::Report(report)
                    if report.name() == state.k8s_name && report.is_running())
            })
        };
        wanted.iter().all(told).then_some(())
    };
    world
        .control
        .wait_for("all are told again", limits::LONG, told)
        .await?;
    println!("all told {:?} after the start", started.elapsed());
    let records = proxy.records();
    let refused: Vec<_> = records
        .iter()
        .filter(|r| r.code() == Some(429) && r.call.is_write())
        .collect();
    assert!(!refused.is_empty());
    for refused in refused {
        let (_, at) = refused.answered.unwrap_or((0, refused.call.at));
        let again = records.iter().find(|record| {
            record.call.number > refused.call.number
                && record.call.uri == refused.call.uri
                && record.call.method == refused.call.method
        });
        let pause = again.map(|again| again.call.at - at);
        // An Event that could not be told may be given up; the next one waits all the same.
        if pause.is_none() && refused.call.resource == "events" {
            continue;
        }
        assert!(
            pause >= Some(Duration::from_millis(1990)),
            "again after {pause:?}"
        );
    }
    let most = most_in_flight(&records);
    assert!(most <= 32, "{most} requests in flight");
    agent.stop().await
}

/// Level-triggered rule, burst (C15): each queued event was worked off although only the last mattered.
#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_one_object_costs_few_writes_and_delays_no_other() -> Outcome {
    let world = world().await?;
    world.control.keep_history(true);
    let mut wanted = world.deployments(2, 1);
    let proxy = Proxy::start(&world).await?;
    let agent = through(&world, &proxy).await?;
    world.control.push(samples::apply(wanted[0].clone()));
    world
        .settles("it runs", &wanted[..1], &[], limits::LONG)
        .await?;
    proxy.script(|call: &Call| {
        if call.is_write() {
            Action::Delay(Duration::from_millis(300))
        } else {
            Action::Pass
        }
    });
    let before = proxy.records().len();
    for memory in 1..=100 {
        wanted[0].memory_mib = 300 + memory;
        world.control.push(samples::apply(wanted[0].clone()));
    }
    let pushed = Instant::now();
    world.control.push(samples::apply(wanted[1].clone()));
    let other = |records: &[Recorded]| {
        let mut writes = records
            .iter()
            .filter(|record| writes(&record.call, &wanted[1]));
        writes.find_map(|record| record.answered.map(|(_, at)| at))
    };
    let other = proxy
        .wait_for("the other is applied", limits::SHORT, other)
        .await?;
    world
        .settles("both are as wanted last", &wanted, &[], limits::LONG)
        .await?;
    let records = proxy.records();
    let count = records[before..]
        .iter()
        .filter(|record| writes(&record.call, &wanted[0]))
        .count();
    println!(
        "100 versions became {count} writes; the other one took {:?}",
        other - pushed
    );
    assert!(count < 20, "{count} writes");
    let metrics = agent.metrics().await?;
    assert!(metrics.deployments("krane_stream_cursor") >= 102.0);
    agent.stop().await
}

/// Anvil, lost reply (C17): the write took effect and its answer was lost; the retry meets its own result.
#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_of_first_writes_change_nothing() -> Outcome {
    let world = world().await?;
    let mut wanted = world.deployments(6, 2);
    let proxy = Proxy::start(&world).await?;
    // Of each method and object the first.
    let seen = parking_lot::Mutex::new(std::collections::BTreeSet::new());
    proxy.script(move |call: &Call| {
        let path = call.uri.split('?').next().unwrap_or_default().to_owned();
        if call.is_write() && seen.lock().insert((call.method.to_string(), path)) {
            Action::DropAnswer
        } else {
            Action::Pass
        }
    });
    world.push_all(&wanted);
    let agent = through(&world, &proxy).await?;
    world.settles("all run", &wanted, &[], limits::LONG).await?;
    let gone = wanted.split_off(4);
    world.control.push_all(gone.iter().map(samples::delete));
    world
        .settles("two are gone", &wanted, &gone, limits::LONG)
        .await?;
    let refused: Vec<_> = proxy
        .records()
        .iter()
        .filter(|record| record.call.is_write() && record.code().is_some_and(|code| code >= 400))
        .map(|record| {
            format!(
                "{} {} -> {:?}",
                record.call.method,
                record.call.uri,
                record.code()
            )
        })
        .collect();
    println!("refused retries: {refused:?}");
    assert!(
        !agent
            .log()
            .lines()?
            .iter()
            .any(|line| line.level() == "ERROR" && line.text("target").starts_with("krane"))
    );
    agent.stop().await
}
