//! The secrets actor over a scripted API server and a scripted vault, on a paused clock.

mod ownership;
mod scene;

use core::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use krane_domain::secret::Secret;
use krane_domain::secrets::Denial;
use krane_ports::{DecryptRequest, Refused, SecretsDesk, VaultFailureKind};
use krane_supervision::testing::pause;
use tokio::time::Instant;

use self::scene::{Script, Setting, Way, request};
use super::Outcome;

#[tokio::test(start_paused = true)]
async fn a_pod_gets_all_of_its_secrets_from_the_key_ring_of_its_environment() {
    let setting = Setting::start().await;
    let secrets = setting.ask(request("a")).await.unwrap();
    let secrets: Vec<_> = secrets
        .iter()
        .map(|(name, value)| (&**name, value.expose()))
        .collect();
    assert_eq!(secrets, [("A", "plain-A"), ("B", "plain-B")]);
    assert_eq!(*setting.scene.ring.lock(), "env_1");
    assert_eq!(
        setting.scene.pods.load(Ordering::Relaxed),
        2,
        "looked at once more at the end"
    );
    assert_eq!(setting.count(Outcome::Granted), 1);
}

/// No answer is kept: neither a good one nor a bad one.
#[tokio::test(start_paused = true)]
async fn every_request_is_proved_anew() {
    let setting = Setting::start().await;
    for _ in 0..3 {
        setting.ask(request("a")).await.unwrap();
    }
    assert_eq!(setting.scene.reviews.load(Ordering::Relaxed), 3);
    setting.scene.set(|script| script.review = Way::Fails);
    assert_eq!(setting.ask(request("a")).await, Err(Refused::Unavailable));
    setting.scene.set(|script| script.review = Way::Well);
    assert!(setting.ask(request("a")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_proves_nothing_never_reaches_the_vault() {
    let setting = Setting::start().await;
    let with = |change: fn(&mut DecryptRequest)| {
        let mut request = request("a");
        change(&mut request);
        request
    };
    let token = |text: &str| DecryptRequest {
        token: Secret::new(text.to_owned()),
        ..request("a")
    };
    let cases = [
        (token(""), Denial::NoToken),
        (token(&"x".repeat(9 << 10)), Denial::TooLarge),
        (token("stranger"), Denial::NotAuthenticated),
        (with(|r| r.blob = vec![b' '; 2 << 20]), Denial::TooLarge),
        (
            with(|r| r.deployment_id = "d_2".into()),
            Denial::AnotherDeployment,
        ),
        (
            with(|r| r.environment_id = "env_2".into()),
            Denial::AnotherEnvironment,
        ),
        (
            with(|r| r.blob = br#"{"secrets":{"A":"x"}}"#.to_vec()),
            Denial::AnotherBlob,
        ),
    ];
    for (request, denial) in cases {
        let before = setting.count(Outcome::Denied(denial));
        assert_eq!(setting.ask(request).await, Err(Refused::Unauthenticated));
        assert_eq!(
            setting.count(Outcome::Denied(denial)),
            before + 1,
            "{denial}"
        );
    }
    assert_eq!(setting.scene.vault_calls(), 0);
}

/// unkeyed/unkey 3a360d289d, PR #4706 (A56): an empty blob has no secrets, and what is no blob is an
/// error.
#[tokio::test(start_paused = true)]
async fn an_empty_blob_is_an_empty_answer_and_a_malformed_one_an_internal_error() {
    let setting = Setting::start().await;
    let with = |blob: &[u8]| DecryptRequest {
        blob: blob.to_vec(),
        ..request("a")
    };
    assert_eq!(setting.ask(with(b"")).await.unwrap().len(), 0);
    assert_eq!(setting.ask(with(b"{")).await, Err(Refused::Internal));
    assert_eq!(setting.count(Outcome::MalformedBlob), 1);
    let stranger = DecryptRequest {
        token: Secret::new("stranger".to_owned()),
        ..with(b"")
    };
    assert_eq!(setting.ask(stranger).await, Err(Refused::Unauthenticated));
    assert_eq!(setting.scene.vault_calls(), 0);
}

/// hashicorp/vault-plugin-auth-kubernetes#179 (B47): what krane cannot find out is no fault of the
/// token.
#[tokio::test(start_paused = true)]
async fn a_dependency_that_is_not_well_makes_it_unavailable_and_nothing_else() {
    for way in [Way::Fails, Way::Forbidden, Way::Hangs] {
        let setting = Setting::start().await;
        let changes: [fn(&mut Script, Way); 3] = [
            |script, way| script.review = way,
            |script, way| script.pod = way,
            |script, way| script.set = way,
        ];
        for change in changes {
            setting.scene.set(|script| change(script, way));
            assert_eq!(
                setting.ask(request("a")).await,
                Err(Refused::Unavailable),
                "{way:?}"
            );
            setting.scene.set(|script| change(script, Way::Well));
        }
        assert_eq!(setting.count(Outcome::ClusterUnavailable), 3);
        assert_eq!(setting.scene.vault_calls(), 0);
        setting.scene.set(|script| script.vault = vec![way]);
        assert_eq!(
            setting.ask(request("a")).await,
            Err(Refused::Unavailable),
            "{way:?}"
        );
        assert_eq!(setting.count(Outcome::VaultUnavailable), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_vault_that_fails_at_once_is_asked_once_more_and_a_slow_one_is_not() {
    let setting = Setting::start().await;
    setting
        .scene
        .set(|script| script.vault = vec![Way::Fails, Way::Well]);
    assert!(setting.ask(request("a")).await.is_ok());
    assert_eq!(setting.scene.vault_calls(), 2);
    setting.scene.set(|script| script.vault = vec![Way::Hangs]);
    assert!(setting.ask(request("a")).await.is_err());
    assert_eq!(setting.scene.vault_calls(), 3);
    setting.scene.set(|script| {
        script.vault = vec![Way::Fails];
        script.refusal = VaultFailureKind::Refused;
    });
    assert_eq!(setting.ask(request("a")).await, Err(Refused::Unavailable));
    assert_eq!(
        setting.scene.vault_calls(),
        4,
        "what it refuses it refuses again"
    );
}

/// unkeyed/unkey 4b7f6d2cf8, PR #5127 (A57): all or nothing.
#[tokio::test(start_paused = true)]
async fn an_answer_of_the_vault_that_lacks_a_name_is_no_answer() {
    let setting = Setting::start().await;
    setting.scene.set(|script| script.leaves_out = true);
    assert_eq!(setting.ask(request("a")).await, Err(Refused::Unavailable));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_while_the_vault_decrypts_gets_nothing() {
    let setting = Setting::start().await;
    setting.scene.set(|script| script.dies_meanwhile = true);
    assert_eq!(
        setting.ask(request("a")).await,
        Err(Refused::Unauthenticated)
    );
    assert_eq!(setting.count(Outcome::Denied(Denial::PodGone)), 1);
    assert_eq!(setting.scene.vault_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dead_vault_is_spared_and_asked_again_soon() {
    let setting = Setting::start().await;
    setting.scene.set(|script| script.vault = vec![Way::Fails]);
    for _ in 0..20 {
        assert!(setting.ask(request("a")).await.is_err());
    }
    assert!(setting.scene.vault_calls() <= 6, "the breaker is open");
    setting.scene.set(|script| script.vault = vec![Way::Well]);
    pause(Duration::from_secs(10)).await;
    assert!(setting.ask(request("a")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn one_pod_that_asks_all_the_time_is_limited_and_no_other_notices() {
    let setting = Setting::start().await;
    let mut limited = 0;
    for _ in 0..200 {
        limited += usize::from(setting.ask(request("greedy")).await.is_err());
        assert!(
            setting
                .ask(request(&format!("other-{limited}")))
                .await
                .is_ok()
        );
    }
    assert!(limited >= 170, "{limited}");
    assert_eq!(setting.count(Outcome::Limited), limited as u64);
}

/// A sender is limited before anybody is asked for it.
#[tokio::test(start_paused = true)]
async fn one_sender_that_asks_all_the_time_costs_the_api_server_nothing_more() {
    let setting = Setting::start().await;
    let from = |last, token: &str| DecryptRequest {
        peer: Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))),
        token: Secret::new(token.to_owned()),
        ..request("a")
    };
    for _ in 0..2_000 {
        let _ = setting.ask(from(1, "stranger")).await;
    }
    let reviews = setting.scene.reviews.load(Ordering::Relaxed);
    assert!(reviews < 300, "{reviews}");
    assert!(setting.ask(from(2, "token-of-b")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_panic_costs_one_request_and_tells_nothing() {
    let setting = Setting::start().await;
    setting.scene.set(|script| script.pod = Way::Panics);
    assert_eq!(setting.ask(request("a")).await, Err(Refused::Unavailable));
    setting.scene.set(|script| script.pod = Way::Well);
    assert!(setting.ask(request("a")).await.is_ok());
    assert_eq!(setting.count(Outcome::Panicked), 1);
}

#[tokio::test(start_paused = true)]
async fn nobody_works_for_a_caller_that_has_gone() {
    let setting = Setting::start().await;
    setting
        .scene
        .set(|script| script.review = Way::Slow(Duration::from_secs(3)));
    let call = setting.ask(request("a"));
    assert!(
        tokio::time::timeout(Duration::from_secs(1), call)
            .await
            .is_err()
    );
    pause(Duration::from_secs(10)).await;
    assert_eq!(setting.scene.pods.load(Ordering::Relaxed), 0);
    assert_eq!(setting.count(Outcome::Abandoned), 1);
}

#[tokio::test(start_paused = true)]
async fn slow_requests_wait_beside_each_other_up_to_a_number() {
    let setting = Setting::start().await;
    setting
        .scene
        .set(|script| script.vault = vec![Way::Slow(Duration::from_secs(3))]);
    let began = Instant::now();
    let calls = (0..700).map(|number| {
        let desk = Arc::clone(&setting.desk);
        async move { desk.decrypt(request(&format!("pod-{number}"))).await }
    });
    let answers = futures::future::join_all(calls).await;
    let granted = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(granted, super::MOST_AT_ONCE);
    assert!(
        answers
            .iter()
            .all(|answer| answer.is_ok() || *answer == Err(Refused::ResourceExhausted))
    );
    assert!(began.elapsed() < Duration::from_secs(4));
}
