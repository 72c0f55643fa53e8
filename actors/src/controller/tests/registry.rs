//! The pull secret follows the password of the registry.

use std::sync::Arc;
use std::time::Duration;

use krane_domain::drift::{self, Decision};
use krane_domain::ids::SharedKey;
use krane_domain::kinds::{Member, Password, PullSecret, Rules, render_shared, shared_reference};
use parking_lot::Mutex;

use super::harness::{Choices, World};
use crate::testing::{FakeCluster, FakeControlPlane, input, wants};

const OLD: &str = "old-password";
const NEW: &str = "new-password";

fn rules(password: &str) -> Rules {
    Rules {
        pull_secret: Some(PullSecret {
            url: "registry.example".to_owned(),
            username: "u".to_owned(),
            password: Password::new(password),
        }),
        ..Rules::default()
    }
}

fn secret_of(namespace: &str) -> SharedKey {
    SharedKey::PullSecret(namespace.into())
}

/// Whether the live secret is made with this password.
fn is_made_with(world: &World, password: &str) -> bool {
    is_made_with_in(world, "ns", password)
}

fn is_made_with_in(world: &World, namespace: &str, password: &str) -> bool {
    let secret = secret_of(namespace);
    let Some(live) = world.cluster.object(&shared_reference(&secret)) else {
        return false;
    };
    let anybody = Member::isolated("ws", "env", 80);
    render_shared(&secret, &[anybody], &rules(password)).is_some_and(|wanted| {
        matches!(
            drift::decide(&wanted, Some(&live), None, 0),
            Decision::InPlace
        )
    })
}

/// A world with a registry, and the password in force.
async fn world() -> (World, Arc<Mutex<&'static str>>) {
    let password = Arc::new(Mutex::new(OLD));
    let now = Arc::clone(&password);
    let choices = Choices {
        rules: rules(OLD),
        registry_password: Some(Arc::new(move || Password::new(*now.lock()))),
        ..Choices::default()
    };
    let world =
        World::start_with(choices, FakeCluster::default(), FakeControlPlane::default()).await;
    (world, password)
}

/// (D42) A password in a file is read again; the old one is never written back.
#[tokio::test(start_paused = true)]
async fn a_changed_password_reaches_the_pull_secret() {
    let (world, password) = world().await;
    world.control_plane.push(wants(1, input("ns", "d1")));
    world.until("applied", |world| world.cursor() == 1).await;
    assert!(is_made_with(&world, OLD));

    *password.lock() = NEW;
    world.control_plane.push(wants(2, input("ns", "d2")));
    world.until("applied", |world| world.cursor() == 2).await;
    world
        .until("renewed", |world| is_made_with(world, NEW))
        .await;
    assert!(!is_made_with(&world, OLD));
}

/// (F2) Nothing happens in either namespace.
#[tokio::test(start_paused = true)]
async fn a_changed_password_reaches_quiet_namespaces_within_a_minute_with_one_write_each() {
    let (world, password) = world().await;
    for (version, namespace) in [(1, "left"), (2, "right")] {
        world
            .control_plane
            .push(wants(version, input(namespace, "d")));
    }
    world.until("applied", |world| world.cursor() == 2).await;
    world.pass(20 * 60).await;
    let quiet = world.cluster.writes();

    *password.lock() = NEW;
    let is_renewed = |world: &World| {
        ["left", "right"]
            .iter()
            .all(|namespace| is_made_with_in(world, namespace, NEW))
    };
    let took = world.until("renewed", is_renewed).await;
    assert!(took < Duration::from_secs(10), "{took:?}");
    world.pass(20 * 60).await;
    assert_eq!(
        world.cluster.writes(),
        quiet + 2,
        "one write each, for ever"
    );
}

/// (F2) The actor that noticed the change dies before anything was written.
#[tokio::test(start_paused = true)]
async fn a_changed_password_outlives_a_restart_of_the_reconciler() {
    let (world, password) = world().await;
    world.control_plane.push(wants(1, input("ns", "d1")));
    world.until("applied", |world| world.cursor() == 1).await;
    world.pass(60).await;
    let quiet = world.cluster.writes();
    world.cluster.set_call_time(Duration::from_secs(20));
    *password.lock() = NEW;
    world.pass(10).await;
    assert!(world.kill("reconciler"));
    world.pass(1).await;
    world.cluster.set_call_time(Duration::ZERO);
    world
        .until("renewed", |world| is_made_with(world, NEW))
        .await;
    let written = world.cluster.writes() - quiet;
    assert!(
        (1..=2).contains(&written),
        "the lost one may count: {written}"
    );
}

/// (F2) Renewals of many namespaces take the lanes that nobody else needs: a new state overtakes.
#[tokio::test(start_paused = true)]
async fn a_new_state_overtakes_the_renewal_of_many_pull_secrets() {
    let (world, password) = world().await;
    for version in 1..=200 {
        let namespace = format!("ns{version}");
        world
            .control_plane
            .push(wants(version, input(&namespace, "d")));
    }
    world.until("applied", |world| world.cursor() == 200).await;
    world.pass(60).await;
    let quiet = world.cluster.writes();
    // Eight lanes: 200 renewals take 25 seconds.
    world.cluster.set_call_time(Duration::from_secs(1));
    *password.lock() = NEW;
    world
        .until("renewals begin", |world| world.cluster.writes() > quiet)
        .await;
    let mut changed = input("ns200", "d");
    changed.image = "registry.example/app:2".into();
    world.control_plane.push(wants(201, changed));
    let took = world.until("applied", |world| world.cursor() == 201).await;
    assert!(took < Duration::from_secs(10), "{took:?}");
    let all = 1..=200;
    let is_renewed = |world: &World| {
        all.clone()
            .all(|it| is_made_with_in(world, &format!("ns{it}"), NEW))
    };
    let took = world.until("renewed", is_renewed).await;
    assert!(took < Duration::from_secs(40), "{took:?}");
    world.cluster.set_call_time(Duration::ZERO);
    world.pass(60).await;
    assert_eq!(world.cluster.writes(), quiet + 201);
}
