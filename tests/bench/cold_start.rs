//! Cold start beside a bare client that sends what the agent sends: the same bodies, the same order, 32 in flight.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use futures::{StreamExt as _, stream};
use http::Request;
use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::{Kind, samples};
use krane_testcluster::{AuditEntry, client_of};
use krane_testharness::{Call, Failure, Outcome, Proxy, World, eventually, limits};
use kube::{Client, client::Body};
use tokio::sync::watch;

use crate::{
    PER_NAMESPACE,
    figures::{Figures, Target},
};

const IN_FLIGHT: usize = 32;
/// Nothing else in a request looks like this, so that a round's name can take the place of another's.
const PREFIX: &str = "zq";
const HEALTHCHECK: &[u8] = br#"{"method":"GET","path":"/healthz","intervalSeconds":10}"#;

/// The workloads of a round: names of their own, so that no round meets what another left.
pub(crate) fn workloads(round: usize, count: usize) -> Vec<ApplyDeployment> {
    let one = |index: usize| {
        let namespace = format!("{PREFIX}{round}n{}", index / PER_NAMESPACE);
        ApplyDeployment {
            healthcheck: Some(HEALTHCHECK.into()),
            ..samples::deployment(&namespace, &format!("{PREFIX}{round}d{index}"))
        }
    };
    (0..count).map(one).collect()
}

/// Records a cold start, then alternates the agent (A) and the bare client (B): A B B A, twice.
pub(crate) async fn measure(world: &World, count: usize, figures: &mut Figures) -> Outcome {
    println!("cold start");
    let recorded = record(world, count).await?;
    let mut rates = BTreeMap::<char, Vec<f64>>::new();
    for (round, who) in (1..).zip(['A', 'B', 'B', 'A', 'A', 'B', 'B', 'A']) {
        world.sweep().await?;
        let writes = match who {
            'A' => agent(world, round, count, figures).await?,
            _ => bare(world, round, &recorded).await?,
        };
        let rate = rate(&writes)?;
        println!("    {who}: {} writes, {rate:.0}/s", writes.len());
        rates.entry(who).or_default().push(rate);
    }
    #[expect(clippy::cast_precision_loss, reason = "four")]
    let mean = |who: char| rates[&who].iter().sum::<f64>() / rates[&who].len() as f64;
    figures.number(
        "raw ceiling, writes per second",
        "/s",
        mean('B'),
        Target::None,
    );
    figures.number(
        "cold start, writes per second",
        "/s",
        mean('A'),
        Target::None,
    );
    let share = mean('A') / mean('B') * 100.0;
    figures.number(
        "cold start, share of the raw ceiling",
        "%",
        share,
        Target::AtLeast(90.0),
    );
    world.sweep().await
}

/// Brings everything about once more and leaves it.
pub(crate) async fn settle(world: &World, count: usize) -> Outcome<Vec<ApplyDeployment>> {
    let wanted = workloads(0, count);
    roll_out(world, &wanted).await?;
    world
        .settles("all run and are reported", &wanted, &[], limits::VERY_LONG)
        .await?;
    Ok(wanted)
}

async fn roll_out(world: &World, wanted: &[ApplyDeployment]) -> Outcome {
    world.control.lose_memory();
    world.push_all(wanted);
    let agent = world.agent().start().await?;
    world
        .settles("all run", wanted, &[], limits::VERY_LONG)
        .await?;
    agent.stop().await
}

/// The agent's writes, in the order in which they were sent.
async fn record(world: &World, count: usize) -> Outcome<Vec<Call>> {
    let wanted = workloads(0, count);
    world.control.lose_memory();
    world.push_all(&wanted);
    let proxy = Proxy::start(world).await?;
    let agent = world.agent().kubeconfig(proxy.kubeconfig()).start().await?;
    world
        .settles("all run", &wanted, &[], limits::VERY_LONG)
        .await?;
    agent.stop().await?;
    let records = proxy.records().into_iter().map(|record| record.call);
    Ok(records.filter(Call::is_write).collect())
}

async fn agent(
    world: &World,
    round: usize,
    count: usize,
    figures: &mut Figures,
) -> Outcome<Vec<AuditEntry>> {
    let wanted = workloads(round, count);
    world.control.lose_memory();
    world.push_all(&wanted);
    let mark = world.mark()?;
    let before = world
        .control
        .look(|seen| seen.cursors(Kind::Deployments).len());
    let started = Instant::now();
    let agent = world.agent().spawn()?;
    let opened = |seen: &krane_sim::control_plane::Seen| {
        let mut watches = seen.of(krane_sim::control_plane::Method::Watch(Kind::Deployments));
        watches.nth(before).map(|request| request.at - started)
    };
    let opened = world
        .control
        .wait_for("the stream", limits::LONG, opened)
        .await?;
    world
        .settles("all run", &wanted, &[], limits::VERY_LONG)
        .await?;
    agent.stop().await?;
    let requests = world.requests(mark)?;
    if round == 1 {
        figures.durations(
            "binary start until its Watch request",
            [opened],
            Target::Below(300.0),
            Target::None,
        );
        per_deployment(&requests, count, figures);
    }
    Ok(requests.into_iter().filter(AuditEntry::is_write).collect())
}

fn per_deployment(requests: &[AuditEntry], count: usize, figures: &mut Figures) {
    let mut by_verb = BTreeMap::<(String, String), usize>::new();
    for request in requests {
        *by_verb
            .entry((request.verb.clone(), request.resource.clone()))
            .or_default() += 1;
    }
    for ((verb, resource), number) in &by_verb {
        println!("    {verb:<8} {resource:<26} {number:>6}");
    }
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let per = |number: usize| number as f64 / count as f64;
    let writes = requests.iter().filter(|request| request.is_write()).count();
    let reads = requests
        .iter()
        .filter(|request| request.verb == "get")
        .count();
    figures.number(
        "writes per deployment at cold start",
        "",
        per(writes),
        Target::Below(1.501),
    );
    figures.number(
        "reads per deployment at cold start",
        "",
        per(reads),
        Target::Below(1.501),
    );
}

/// The recorded writes under the names of another round.
async fn bare(world: &World, round: usize, recorded: &[Call]) -> Outcome<Vec<AuditEntry>> {
    let client = client_of(world.kubeconfig()).await?;
    let (from, to) = (format!("{PREFIX}0"), format!("{PREFIX}{round}"));
    // A write waits for its namespace, as the agent's did.
    let gates: BTreeMap<String, watch::Sender<bool>> = recorded
        .iter()
        .filter(|call| call.writes("namespaces"))
        .map(|call| (call.namespace.clone(), watch::Sender::new(false)))
        .collect();
    let mark = world.mark()?;
    let sent: Vec<Outcome> = stream::iter(recorded)
        .map(|call| send(&client, call, &from, &to, gates.get(&call.namespace)))
        .buffer_unordered(IN_FLIGHT)
        .collect()
        .await;
    for result in sent {
        result?;
    }
    let count = recorded.len();
    eventually("the audit log is complete", limits::SHORT, async || {
        let writes = world.writes(mark).map_err(|failure| failure.to_string())?;
        if writes.len() >= count {
            Ok(writes)
        } else {
            Err(writes.len().to_string())
        }
    })
    .await
}

async fn send(
    client: &Client,
    call: &Call,
    from: &str,
    to: &str,
    gate: Option<&watch::Sender<bool>>,
) -> Outcome {
    let is_namespace = call.writes("namespaces");
    if let Some(gate) = gate.filter(|_| !is_namespace) {
        gate.subscribe().wait_for(|open| *open).await?;
    }
    let body = String::from_utf8(call.body.to_vec())?.replace(from, to);
    let mut request = Request::builder()
        .method(call.method.clone())
        .uri(call.uri.replace(from, to));
    for header in [http::header::CONTENT_TYPE, http::header::ACCEPT] {
        if let Some(value) = call.headers.get(&header) {
            request = request.header(header, value);
        }
    }
    let answer = client
        .send(request.body(Body::from(body.into_bytes()))?)
        .await?;
    let code = answer.status();
    // As a client that wants its connection back has to.
    http_body_util::BodyExt::collect(answer.into_body())
        .await
        .map_err(|error| Failure::new(error.to_string()))?;
    if !code.is_success() {
        return Err(Failure::new(format!(
            "{} {}: {code}",
            call.method, call.uri
        )));
    }
    if let Some(gate) = gate.filter(|_| is_namespace) {
        gate.send_replace(true);
    }
    Ok(())
}

/// Writes per second, from the first that arrived to the last that was answered.
fn rate(writes: &[AuditEntry]) -> Outcome<f64> {
    let first = writes.iter().map(|write| write.received).min();
    let last = writes.iter().map(|write| write.answered).max();
    let (Some(first), Some(last)) = (first, last) else {
        return Err(Failure::new("nothing was written"));
    };
    let took = Duration::try_from(last.duration_since(first))?;
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let count = writes.len() as f64;
    Ok(count / took.as_secs_f64())
}
