//! Something to do for a controller, once a second, and how long it takes.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use krane_domain::ids::Controller;
use krane_domain::kinds::Rules;
use krane_ports::{Cluster, Item, WatchEvent};
use krane_sim::cluster::SimCluster;
use krane_sim::control_plane::SimControlPlane;
use tokio::time::{Instant, sleep_until};

use crate::times::Times;
use crate::wishes::{round_of, want};

const OBJECTS: u64 = 10;
const PERIOD: Duration = Duration::from_secs(1);
/// After this long nobody waits for a piece of work any more.
const PATIENCE: Duration = Duration::from_secs(60);

/// A piece of work once a second for so long.
pub(super) async fn measure(
    who: Controller,
    cluster: &SimCluster,
    control: &SimControlPlane,
    length: Duration,
) -> Result<(Controller, Times), String> {
    let specs = who.watches(&Rules::default());
    let spec = specs.first().ok_or("nothing is watched")?;
    let client = cluster.client().with_watch_limit(length * 2);
    let listed = client
        .list(spec)
        .await
        .map_err(|refusal| refusal.to_string())?;
    let events = client.watch(spec, &listed.resource_version).await;
    let mut events = events.map_err(|refusal| refusal.to_string())?;
    let began = Instant::now();
    let mut turn = 0_u32;
    let mut open: BTreeMap<String, (u64, Instant)> = BTreeMap::new();
    let mut times = Vec::new();
    while began.elapsed() < length + PATIENCE && (began.elapsed() < length || !open.is_empty()) {
        tokio::select! {
            biased;
            event = events.next() => {
                let Some(WatchEvent::Applied(Item::Object(live))) = event else { continue };
                let name = &*live.reference.name;
                let is_it = open.get(name).is_some_and(|(round, _)| {
                    round_of(who, &live) == Some(*round)
                });
                if is_it && let Some((_, at)) = open.remove(name) {
                    times.push(at.elapsed());
                }
            }
            () = sleep_until(began + PERIOD * turn) => {
                turn += 1;
                if began.elapsed() < length {
                    let name = format!("w{}", u64::from(turn) % OBJECTS);
                    want(who, control, &name, u64::from(turn));
                    // The one before never came: that counts too.
                    let replaced = open.insert(name, (u64::from(turn), Instant::now()));
                    times.extend(replaced.map(|(_, at)| at.elapsed()));
                }
            }
        }
    }
    times.extend(open.into_values().map(|(_, at)| at.elapsed()));
    Ok((who, Times::of(times)))
}
