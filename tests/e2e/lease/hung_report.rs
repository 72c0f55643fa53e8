//! A report that hangs while its term is lost and regained (F1).

use std::time::{Duration, Instant};

use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::{Code, Method, Request, Seen, samples};
use krane_testharness::{Action, Outcome, Proxy, World, eventually, limits};

use super::{DURATION, RENEW, RETRY, elected, forget_the_lease, is_leader, leads};
use crate::world;

/// Longer than a term lasts without the API server, and than it takes to lead again.
const HANGING: Duration = Duration::from_secs(6);

/// Whether the newest report about it has so many instances.
fn is_told(world: &World, name: &str, instances: usize) -> Result<(), String> {
    let told = world
        .control
        .look(|seen| seen.report(name).map(|report| report.instances().len()));
    let is_so = told == Some(instances);
    is_so.then_some(()).ok_or_else(|| format!("{told:?}"))
}

/// How the reports about a name from this one on have ended.
fn ends(world: &World, name: &str, first: usize) -> Vec<Option<Code>> {
    world.control.look(|seen: &Seen| {
        let reports = seen.reports_of(name).map(|(request, _)| request);
        let reports = reports.filter(|request| request.number >= first);
        reports.map(Request::code).collect()
    })
}

/// On the wire, with the binary: the call of the lost term is cancelled, and what comes after it
/// neither floods the control plane nor starves the report of another object.
#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_hangs_over_a_lost_term_is_cancelled_and_starves_no_other() -> Outcome {
    let world = world().await?;
    forget_the_lease(&world).await?;
    let proxy = Proxy::start(&world).await?;
    let agent = elected(&world)
        .set("lease.duration", &format!("{}s", DURATION.as_secs()))
        .set("lease.renew", &format!("{}ms", RENEW.as_millis()))
        .set("lease.retry", &format!("{}ms", RETRY.as_millis()))
        .kubeconfig(proxy.kubeconfig())
        .start()
        .await?;
    leads("it leads", &agent, limits::SHORT).await?;
    let namespace = world.namespace(0);
    let sized = |name: &str, replicas: i32| ApplyDeployment {
        replicas,
        ..samples::deployment(&namespace, name)
    };
    world.push_all(&[sized("one", 1), sized("two", 1)]);
    for name in ["one", "two"] {
        eventually("it is reported", limits::LONG, async || {
            is_told(&world, name, 1)
        })
        .await?;
    }

    let first = world.control.look(|seen| seen.requests.len());
    world.control.delay(Method::ReportDeployment, HANGING);
    world
        .control
        .fail(Method::ReportDeployment, Code::Unavailable, u32::MAX);
    world.control.push(samples::apply(sized("one", 2)));
    eventually("a report hangs", limits::SHORT, async || {
        let hangs = ends(&world, "one", first).contains(&None);
        hangs.then_some(()).ok_or_else(|| "not yet".to_owned())
    })
    .await?;
    proxy.script(|_| Action::Hang);
    proxy.cut();
    eventually(
        "its term is over",
        limits::SHORT,
        async || match is_leader(&agent).await {
            Ok(false) => Ok(()),
            other => Err(format!("{other:?}")),
        },
    )
    .await?;
    proxy.pass();
    proxy.cut();
    leads("it leads again", &agent, limits::SHORT).await?;
    eventually("both have ended", limits::SHORT, async || {
        let ends = ends(&world, "one", first);
        let is_over = ends.len() >= 2 && ends[..2].iter().all(Option::is_some);
        is_over.then_some(()).ok_or_else(|| format!("{ends:?}"))
    })
    .await?;
    let how = ends(&world, "one", first);
    assert_eq!(how[0], Some(Code::Cancelled), "{how:?}");

    world.control.heal();
    let before = world.control.look(|seen| seen.requests.len());
    let began = Instant::now();
    world.control.push(samples::apply(sized("two", 2)));
    for name in ["one", "two"] {
        eventually("it is reported again", limits::SHORT, async || {
            is_told(&world, name, 2)
        })
        .await?;
    }
    let reports = ends(&world, "one", before).len() + ends(&world, "two", before).len();
    println!("{reports} reports in {:?} after the fault", began.elapsed());
    assert!(reports < 30, "{reports}");
    agent.stop().await
}
