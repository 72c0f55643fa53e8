//! Signals.

use std::time::{Duration, Instant};

use krane_sim::control_plane::{Code, Kind, Method};
use krane_testharness::{Action, Call, Outcome, Proxy, Signal, limits};
use tokio::time::sleep;

use crate::world;

/// tenequm/pond PR #198 (B53): only Ctrl-C was handled. unkeyed/unkey 1953c75247, PR #4782 (A64): streams were not
/// closed.
#[tokio::test(flavor = "multi_thread")]
async fn either_signal_ends_it_with_code_0_and_streams_closed() -> Outcome {
    let world = world().await?;
    for signal in [Signal::TERM, Signal::INT] {
        let mut agent = world.agent().start().await?;
        world
            .control
            .wait_for("the stream", limits::SHORT, |seen| {
                (seen.open_watches(Kind::Deployments) == 1).then_some(())
            })
            .await?;
        let started = Instant::now();
        agent.signal(signal)?;
        let status = agent.wait(Duration::from_secs(10)).await?;
        println!("{signal:?}: {status} after {:?}", started.elapsed());
        assert!(status.success(), "{signal:?}: {status}");
        let ended = |seen: &krane_sim::control_plane::Seen| {
            seen.of(Method::Watch(Kind::Deployments))
                .last()
                .and_then(krane_sim::control_plane::Request::code)
        };
        let code = world
            .control
            .wait_for("its end", limits::SHORT, ended)
            .await?;
        assert_eq!(code, Code::Cancelled);
    }
    Ok(())
}

/// D41: a SIGTERM in the middle of many applies; nothing is written more than a second after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_sigterm_amid_applies_ends_it_in_time_and_the_next_start_finishes() -> Outcome {
    let world = world().await?;
    let wanted = world.deployments(100, 20);
    world.push_all(&wanted);
    let proxy = Proxy::start(&world).await?;
    proxy.script(|call: &Call| {
        if call.is_write() {
            Action::Delay(Duration::from_millis(300))
        } else {
            Action::Pass
        }
    });
    let mut agent = world.agent().kubeconfig(proxy.kubeconfig()).spawn()?;
    proxy
        .wait_for("forty writes", limits::LONG, |records| {
            (records
                .iter()
                .filter(|record| record.call.is_write())
                .count()
                >= 40)
                .then_some(())
        })
        .await?;
    let signalled = Instant::now();
    agent.signal(Signal::TERM)?;
    let status = agent.wait(Duration::from_secs(10)).await?;
    println!("{status} {:?} after SIGTERM", signalled.elapsed());
    assert!(status.success(), "{status}");
    let late = proxy
        .records()
        .into_iter()
        .filter(|record| record.call.is_write());
    let late = late
        .filter(|record| record.call.at > signalled + Duration::from_secs(1))
        .count();
    assert_eq!(
        late, 0,
        "writes that began more than a second after the signal"
    );

    let agent = world.agent().start().await?;
    world
        .settles("the next start finishes", &wanted, &[], limits::LONG)
        .await?;
    agent.stop().await
}

/// unkeyed/unkey 1953c75247, PR #4782 (A64): stopping twice closed a closed channel.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_at_once_changes_nothing() -> Outcome {
    let world = world().await?;
    for (first, second) in [(Signal::TERM, Signal::TERM), (Signal::INT, Signal::TERM)] {
        let mut agent = world.agent().start().await?;
        agent.signal(first)?;
        sleep(Duration::from_millis(50)).await;
        // It may have ended by now.
        let _ = agent.signal(second);
        let status = agent.wait(Duration::from_secs(10)).await?;
        assert!(status.success(), "{first:?}, {second:?}: {status}");
        assert!(
            !agent.log().text()?.contains("panicked"),
            "{}",
            agent.log().tail(20)
        );
    }
    Ok(())
}

/// unkeyed/unkey 1953c75247, PR #4782 (A64): SIGTERM before the start has finished, here while the first lists wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_before_the_first_lists_ends_it_with_code_0() -> Outcome {
    let world = world().await?;
    let proxy = Proxy::start(&world).await?;
    proxy.script(|_| Action::Hang);
    let mut agent = world.agent().kubeconfig(proxy.kubeconfig()).spawn()?;
    proxy
        .wait_for("a request", limits::SHORT, |records| {
            (!records.is_empty()).then_some(())
        })
        .await?;
    let started = Instant::now();
    agent.signal(Signal::TERM)?;
    let status = agent.wait(Duration::from_secs(10)).await?;
    println!(
        "{status} {:?} after SIGTERM amid the start",
        started.elapsed()
    );
    assert!(status.success(), "{status}");
    Ok(())
}
