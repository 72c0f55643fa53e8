//! The page's hands in a demo that plays no story of its own.

use std::io;

use super::narrator::Narrator;
use super::script::Act;
use super::*;
use crate::admin::actions::{DemoAction, DemoError as ActionError};

struct Visit {
    stage: Arc<Stage>,
    hands: Hands,
}

/// A demo in which the first apps of its script run.
async fn visit() -> Visit {
    let options = Options {
        seed: 5,
        length: None,
        format: Format::Json,
    };
    let narrator = Arc::new(Narrator::new(Format::Json, Box::new(io::sink())));
    let demo = Demo::prepare(options, "info").await.unwrap();
    let stage = demo.start(&narrator).await.unwrap();
    let hands = Hands {
        stage: Arc::clone(&stage),
        narrator,
    };
    let Some(Act::Appear(apps)) = Script::new(5).next() else {
        panic!("a story begins with apps")
    };
    assert_eq!(
        hands.act(DemoAction::EditObject).await,
        Err(ActionError::NothingThere)
    );
    stage.want(&apps);
    settles(&stage).await;
    Visit { stage, hands }
}

async fn settles(stage: &Stage) {
    stage.settle().await;
    let summary = stage.summary(5, Duration::ZERO, 0);
    assert!(summary.ok, "{summary:?}");
}

impl Visit {
    async fn press(&self, action: DemoAction) {
        let said = self.hands.act(action.clone()).await;
        assert!(said.is_ok_and(|said| !said.is_empty()), "{action:?}");
    }

    async fn until(&self, look: impl Fn() -> bool) {
        assert!(self.stage.until(look).await.is_some(), "it did not come");
    }
}

#[tokio::test]
async fn whatever_a_visitor_does_krane_recovers() {
    let visit = visit().await;
    let stage = &visit.stage;
    let edited = stage.well()[0].clone();

    visit.press(DemoAction::EditObject).await;
    visit.until(|| stage.is_in_place(&edited)).await;

    visit.press(DemoAction::CrashPod).await;
    visit.until(|| !stage.is_told(&edited)).await;
    settles(stage).await;

    visit.press(DemoAction::PoisonState).await;
    visit.until(|| stage.in_quarantine().len() == 1).await;
    let summary = stage.summary(5, Duration::ZERO, 0);
    assert_eq!(
        (summary.poisoned, summary.quarantined),
        (1, 0),
        "{summary:?}"
    );
    visit.press(DemoAction::Restore).await;
    visit.until(|| stage.in_quarantine().is_empty()).await;
    settles(stage).await;

    visit.press(DemoAction::TakeApiServerAway).await;
    let mut changed = stage.well()[1].clone();
    changed.release += 1;
    stage.want(std::slice::from_ref(&changed));
    visit.press(DemoAction::Restore).await;
    settles(stage).await;

    visit.press(DemoAction::CutStream).await;
    visit.until(|| !stage.is_connected()).await;
    visit.until(|| stage.is_connected()).await;

    visit.press(DemoAction::FreezeControlPlane).await;
    changed.replicas += 1;
    stage.want(std::slice::from_ref(&changed));
    assert!(!stage.is_in_place(&changed));
    visit.press(DemoAction::Restore).await;
    settles(stage).await;
}

#[tokio::test]
async fn a_visitor_kills_actors_that_are_there() {
    let visit = visit().await;
    for path in ["root/heartbeat", "root/deployments/intake/reconciler"] {
        let before = visit.stage.restarts();
        visit
            .press(DemoAction::KillActor {
                path: path.to_owned(),
            })
            .await;
        visit.until(|| visit.stage.restarts() > before).await;
    }
    let path = "root/nobody".to_owned();
    assert_eq!(
        visit
            .hands
            .act(DemoAction::KillActor { path: path.clone() })
            .await,
        Err(ActionError::NoActor { path })
    );
    settles(&visit.stage).await;
}

#[test]
fn every_button_is_another_action() {
    let control = tokio::runtime::Runtime::new().unwrap();
    let hands = control.block_on(async {
        Hands {
            stage: Arc::new(Stage::new(
                ControlPlane::start(TOKEN).await.unwrap(),
                DemoCluster::new(1, KEPT),
            )),
            narrator: Arc::new(Narrator::new(Format::Json, Box::new(io::sink()))),
        }
    });
    let mut labels: Vec<_> = hands.buttons().iter().map(|button| button.label).collect();
    assert!(labels.len() >= 7);
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), hands.buttons().len());
}
