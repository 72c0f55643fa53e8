//! The pull secret follows the password of the registry.

use std::sync::Arc;

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

fn secret() -> SharedKey {
    SharedKey::PullSecret("ns".into())
}

/// Whether the live secret is made with this password.
fn is_made_with(world: &World, password: &str) -> bool {
    let Some(live) = world.cluster.object(&shared_reference(&secret())) else {
        return false;
    };
    let anybody = Member::isolated("ws", "env", 80);
    render_shared(&secret(), &[anybody], &rules(password)).is_some_and(|wanted| {
        matches!(
            drift::decide(&wanted, Some(&live), None, 0),
            Decision::InPlace
        )
    })
}

/// D35: a password in a file is read again; the old one is never written back.
#[tokio::test(start_paused = true)]
async fn a_changed_password_reaches_the_pull_secret() {
    let password = Arc::new(Mutex::new(OLD));
    let now = Arc::clone(&password);
    let choices = Choices {
        rules: rules(OLD),
        registry_password: Some(Arc::new(move || Password::new(*now.lock()))),
        ..Choices::default()
    };
    let world =
        World::start_with(choices, FakeCluster::default(), FakeControlPlane::default()).await;
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
