//! The page's hands in a demo that plays no story of its own.

use std::io;

use krane_admin::actions::{DemoAction, DemoError as ActionError};

use super::narrator::Narrator;
use super::script::Act;
use super::summary::Requests;
use super::wish::{App, Sentinel, Wish};
use super::*;

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
        port: None,
        crowd: CrowdOptions::default(),
        token: None,
    };
    let narrator = Arc::new(Narrator::new(Format::Json, Box::new(io::sink())));
    let demo = Demo::prepare(options, "info", &BTreeMap::new())
        .await
        .unwrap();
    let stage = demo.start(&narrator).await.unwrap();
    let hands = Hands::new(Arc::clone(&stage), narrator);
    let Some(Act::Appear(apps)) = Script::new(5).next() else {
        panic!("a story begins with apps")
    };
    let early = hands.act(DemoAction::EditObject).await;
    assert_eq!(early.err(), Some(ActionError::NothingThere));
    stage.want(&apps);
    settles(&stage).await;
    Visit { stage, hands }
}

impl Visit {
    /// The apps that are well.
    fn apps(&self) -> Vec<App> {
        let wishes = self.stage.well().into_iter();
        let apps = wishes.filter_map(|wish| match wish {
            Wish::App(app) => Some(app),
            Wish::Sentinel(_) | Wish::Policy(_) => None,
        });
        apps.collect()
    }
}

async fn settles(stage: &Stage) {
    stage.settle().await;
    let summary = stage.summary(5, Duration::ZERO, 0);
    assert!(summary.ok, "{summary:?}");
}

impl Visit {
    async fn press(&self, action: DemoAction) {
        let said = self.hands.act(action.clone()).await;
        assert!(
            said.is_ok_and(|said| !said.borrow().is_empty()),
            "{action:?}"
        );
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
    assert_eq!(edited, visit.apps()[0].clone().into());

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
    let mut changed = visit.apps()[1].clone();
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
    assert!(!stage.is_in_place(&changed.clone().into()));
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
    let action = DemoAction::KillActor { path: path.clone() };
    let refused = visit.hands.act(action).await;
    assert_eq!(refused.err(), Some(ActionError::NoActor { path }));
    let path = "root".to_owned();
    let refused = visit.hands.act(DemoAction::KillActor { path }).await;
    assert_eq!(refused.err(), Some(ActionError::TheProcess));
    settles(&visit.stage).await;
}

#[test]
fn every_button_is_another_action() {
    let control = tokio::runtime::Runtime::new().unwrap();
    let hands = control.block_on(async {
        let stage = Arc::new(Stage::new(
            ControlPlane::start(TOKEN).await.unwrap(),
            DemoCluster::new(1, KEPT),
            Secrets::new(SimVault::default(), (Ipv4Addr::LOCALHOST, 0).into()),
            Crowd::new(CrowdOptions::default(), 1),
        ));
        let narrator = Narrator::new(Format::Json, Box::new(io::sink()));
        Hands::new(stage, Arc::new(narrator))
    });
    let mut labels: Vec<_> = hands.buttons().iter().map(|button| button.label).collect();
    assert!(labels.len() >= 7);
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), hands.buttons().len());
}

/// Everything that is said of an action, until nothing more comes of it.
async fn all_said(visit: &Visit, action: DemoAction) -> String {
    let mut said = visit.hands.act(action).await.unwrap();
    while said.changed().await.is_ok() {}
    said.borrow().clone()
}

#[tokio::test]
async fn what_comes_of_an_action_is_said_after_it() {
    let visit = visit().await;
    let name = visit.stage.well()[0].name();
    let said = all_said(&visit, DemoAction::EditObject).await;
    let start = format!("{name} was edited by hand: another image\nkrane undoes it, ");
    assert!(said.starts_with(&start), "{said}");
    let said = all_said(&visit, DemoAction::CrashPod).await;
    assert!(
        said.contains("\nkrane reports") && said.contains("it is back"),
        "{said}"
    );
    for (path, has_memory) in [
        ("root/heartbeat", false),
        ("root/servers/metrics", false),
        ("root/deployments/intake/stream", true),
    ] {
        let path = path.to_owned();
        let said = all_said(&visit, DemoAction::KillActor { path }).await;
        assert!(said.contains("was killed\nkrane starts it again"), "{said}");
        assert_eq!(said.contains("in the store above it"), has_memory, "{said}");
    }

    let said = all_said(&visit, DemoAction::TakeApiServerAway).await;
    assert!(
        said.contains("the story waits until Restore is pressed"),
        "{said}"
    );
    assert!(said.contains("\nkrane sees no change any more"), "{said}");
    let mut late = visit.hands.act(DemoAction::EditObject).await.unwrap();
    let said = all_said(&visit, DemoAction::TakeApiServerAway).await;
    assert!(!said.contains("the story waits"), "once is enough: {said}");
    assert!(
        !late.borrow_and_update().contains("undoes"),
        "nobody can yet"
    );
    let said = all_said(&visit, DemoAction::Restore).await;
    assert!(said.contains("\nkrane has everything in place"), "{said}");
    while late.changed().await.is_ok() {}
    assert!(late.borrow().contains("undoes it"));
}

#[tokio::test]
async fn a_pod_gets_its_own_secrets_and_nobody_elses() {
    let visit = visit().await;
    let apps = visit.apps();
    assert!(visit.stage.fetched(&apps[0]).await.is_some());
    let said = all_said(&visit, DemoAction::StealSecrets).await;
    let start = format!(
        "a pod of {} asked for the secrets of {}\nkrane refuses it",
        apps[0].name, apps[1].name
    );
    assert!(said.starts_with(&start), "{said}");
    assert!(said.contains("the vault was not even asked"), "{said}");
    let summary = visit.stage.summary(5, Duration::ZERO, 0);
    let Requests {
        served,
        refused,
        leaked,
    } = summary.secrets;
    assert_eq!((served, refused, leaked), (1, 1, 0), "{summary:?}");
    assert!(summary.ok, "{summary:?}");
}

#[tokio::test]
async fn the_story_leaves_alone_what_a_visitor_made_bad() {
    let visit = visit().await;
    let stage = &visit.stage;
    let bad = stage.well()[0].clone();
    visit.press(DemoAction::PoisonState).await;
    assert!(stage.is_spoilt(&bad));
    assert!(
        Act::Edit(bad.clone())
            .about()
            .iter()
            .any(|wish| stage.is_spoilt(wish))
    );
    while !stage.well().is_empty() {
        visit.press(DemoAction::PoisonState).await;
    }
    let refused = visit.hands.act(DemoAction::PoisonState).await;
    assert_eq!(refused.err(), Some(ActionError::AllBad));
    visit.press(DemoAction::Restore).await;
    assert!(!stage.is_spoilt(&bad));
    settles(stage).await;
}

/// What krane knows already it does not notice "at once".
#[tokio::test]
async fn a_stream_that_is_down_already_is_not_noticed_by_a_freeze() {
    let visit = visit().await;
    visit.until(|| visit.stage.is_connected()).await;
    visit.press(DemoAction::CutStream).await;
    visit.until(|| !visit.stage.is_connected()).await;
    let said = all_said(&visit, DemoAction::FreezeControlPlane).await;
    assert!(said.contains("was down already"), "{said}");
    assert!(
        !said.contains("notice") && !said.contains("at once"),
        "{said}"
    );
    visit.press(DemoAction::Restore).await;
    settles(&visit.stage).await;
}

#[tokio::test]
async fn the_story_takes_nothing_away_right_after_a_restore() {
    let visit = visit().await;
    let stage = &visit.stage;
    assert!(!stage.is_resting());
    visit.press(DemoAction::TakeApiServerAway).await;
    let waits = visit.hands.story();
    assert!(waits[0].contains("the story waits"), "{waits:?}");
    visit.press(DemoAction::Restore).await;
    assert!(stage.is_resting());
    let app = visit.apps()[0].clone();
    assert!(Act::ApiServerAway(app.clone()).is_outage());
    assert!(!Act::Scale(app).is_outage());
    // A story that has to end does not rest.
    stage.end_after(Duration::ZERO);
    assert!(!stage.is_resting());
    tokio::time::timeout(Duration::from_secs(1), stage.rested())
        .await
        .unwrap();
}

/// What else the story does would bury it.
#[tokio::test]
async fn the_story_rests_while_a_visitor_looks_at_what_is_bad_or_on_hold() {
    let visit = visit().await;
    let stage = &visit.stage;
    for action in [DemoAction::PoisonState, DemoAction::HoldObject] {
        assert!(!stage.is_looked_at(Instant::now()));
        visit.press(action.clone()).await;
        assert!(stage.is_looked_at(Instant::now()), "{action:?}");
        let later = Instant::now() + Duration::from_secs(60);
        assert!(!stage.is_looked_at(later), "not for ever");
        let narrator = Narrator::new(Format::Json, Box::new(io::sink()));
        let play = Play {
            stage,
            narrator: &narrator,
        };
        let watched = async {
            visit.until(|| !narrator.story().is_empty()).await;
            let told = narrator.story();
            assert!(told[0].contains("the story rests"), "{told:?}");
            assert!(stage.is_looked_at(Instant::now()));
            visit.press(DemoAction::Restore).await;
            visit.until(|| narrator.story().len() > 1).await;
        };
        tokio::select! {
            told = story(&play, 5, None) => panic!("it has no end: {told:?}"),
            () = watched => {}
        }
        settles(stage).await;
    }
}

#[test]
fn the_page_is_told_what_goes_on_by_itself_and_no_more() {
    use super::narrator::Who;
    let narrator = Narrator::new(Format::Json, Box::new(io::sink()));
    for (who, what) in [
        (Who::ControlPlane, "wants web gone"),
        (Who::Krane, "deleted web"),
        (Who::Someone, "edits api by hand"),
        (Who::You, "cut the desired-state streams"),
        (Who::Cluster, "a pod of api crashes"),
        (Who::Story, "waits"),
    ] {
        narrator.say(who, "event", what, None).unwrap();
    }
    let told = [
        "the story waits",
        "a pod of api crashes",
        "someone edits api by hand",
    ];
    assert_eq!(narrator.story(), told);
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let options = |port| Options {
        seed: 5,
        length: None,
        format: Format::Json,
        port: Some(port),
        crowd: CrowdOptions::default(),
        token: None,
    };
    let refused = Demo::prepare(options(port), "info", &BTreeMap::new())
        .await
        .err()
        .unwrap();
    assert!(
        refused.to_string().contains(&format!("port {port}")),
        "{refused}"
    );
    drop(taken);
    let demo = Demo::prepare(options(port), "info", &BTreeMap::new())
        .await
        .unwrap();
    assert_eq!(demo.links.page, format!("http://127.0.0.1:{port}/"));
}

/// Whoever edits three times has tried each controller.
#[tokio::test]
async fn a_visitor_meets_every_controller() {
    let visit = visit().await;
    let stage = &visit.stage;
    let app = visit.apps()[0].clone();
    stage.want(&app.policies());
    stage.cluster.give_secret();
    stage.want(&[Sentinel {
        environment: app.namespace,
        release: 1,
        replicas: 1,
    }]);
    settles(stage).await;
    let mut said = Vec::new();
    for _ in 0..3 {
        said.push(all_said(&visit, DemoAction::EditObject).await);
        settles(stage).await;
    }
    for (said, how) in said
        .iter()
        .zip(["another image", "the whole world", "no replicas"])
    {
        assert!(
            said.contains(how) && said.contains("krane undoes it"),
            "{said}"
        );
    }
    for set_aside in 1..=3 {
        let said = all_said(&visit, DemoAction::PoisonState).await;
        assert!(said.contains("sets that state aside"), "{said}");
        assert_eq!(stage.in_quarantine().len(), set_aside);
    }
    let summary = stage.summary(5, Duration::ZERO, 0);
    assert!(summary.ok && summary.poisoned == 3, "{summary:?}");
    visit.press(DemoAction::Restore).await;
    settles(stage).await;
    assert!(stage.in_quarantine().is_empty());
}
