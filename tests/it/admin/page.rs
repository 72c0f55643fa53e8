//! What the page says, and that it says nothing else.

use krane_actors::events::Happening;
use krane_domain::backlog::{Outcome, Trouble, TroubleKind};
use krane_domain::ids::Controller;
use krane_domain::object::Resource;
use krane_supervision::cause::Cause;
use krane_supervision::status::{Activity, Failure};

use super::world::{CANARY, World};

const HOSTILE: &str = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&";

#[tokio::test(start_paused = true)]
async fn names_and_reasons_from_outside_are_text_and_never_markup() {
    let world = World::new();
    world.is_up();
    world.quarantined(3, "bad", HOSTILE, HOSTILE);
    world.stream_lost("unavailable", HOSTILE);
    let failed = Happening::ActorFailed {
        path: HOSTILE.into(),
        kind: Cause::Killed.kind(),
        text: HOSTILE.into(),
        pause: std::time::Duration::from_secs(1),
        is_parked: true,
    };
    world.board.record(None, failed);
    let cell = world.board.find("root/deployments").unwrap();
    let now = world.board.now();
    cell.update(|status| {
        status.activity = Activity::Parked { until: now };
        status.last_failure = Some(Failure {
            at: now,
            kind: "error",
            text: HOSTILE.into(),
        });
    });
    let query = "filter=%3Cscript%3Ealert(1)%3C/script%3E%22%27";
    let pages = [
        "/".to_owned(),
        format!("/?{query}"),
        format!("/parts/workloads?{query}"),
    ];
    let parts = ["health", "tree", "controllers", "workloads", "events"];
    for path in pages
        .into_iter()
        .chain(parts.map(|part| format!("/parts/{part}")))
    {
        let answer = world.get(&path).await;
        assert!(answer.status.is_success());
        for markup in ["<script>", "<img", "onerror=alert(2)>"] {
            assert!(!answer.text.contains(markup), "{path}: {}", answer.text);
        }
        assert!(answer.text.contains("alert(1)"), "{path} shows it as text");
    }
}

#[tokio::test(start_paused = true)]
async fn no_secret_is_on_any_page_or_endpoint() {
    let world = World::new();
    world.is_up();
    world.in_place(1, "web");
    world.quarantined(2, "bad", "refused", "fix it");
    let paths = [
        "/",
        "/parts/health",
        "/parts/tree",
        "/parts/controllers",
        "/parts/workloads",
        "/parts/events",
        "/log",
        "/parts/log",
        "/api/v1/log",
        "/api/v1/health",
        "/api/v1/tree",
        "/api/v1/controllers",
        "/api/v1/controllers/deployments",
        "/api/v1/workloads",
        "/api/v1/events",
        "/api/v1/history",
        "/api/v1/workloads/deployments/shop/web",
        "/api/v1/workloads/deployments/shop/bad",
        "/workloads/deployments/shop/web",
        "/workloads/deployments/shop/bad",
    ];
    for path in paths {
        let answer = world.get(path).await;
        assert!(answer.status.is_success(), "{path}");
        assert!(!answer.text.contains(CANARY), "{path}");
    }
    assert_eq!(world.get("/parts/nope").await.status, 404);
}

/// What is looked for comes from addresses, and lines from anywhere.
#[tokio::test(start_paused = true)]
async fn log_lines_are_found_by_level_object_and_text_and_are_never_markup() {
    let world = World::new();
    assert!(world.get("/log").await.text.contains("No line yet"));
    world.logs(tracing::Level::INFO, "applied", "object=shop/web");
    world.logs(tracing::Level::WARN, "not applied", "object=shop/api");
    world.logs(tracing::Level::ERROR, HOSTILE, HOSTILE);
    let text = world.get("/log").await.text;
    let places = ["alert(1)", "shop/api", "shop/web"].map(|it| text.find(it).unwrap());
    assert!(places.is_sorted(), "the newest comes first: {places:?}");
    assert!(
        !text.contains("<script>alert") && !text.contains("<img"),
        "{text}"
    );
    for (filter, expected) in [
        ("shop%2Fweb", vec![1]),
        ("WARN", vec![2]),
        ("error+edge", vec![3]),
        ("shop", vec![2, 1]),
        ("nothing", vec![]),
    ] {
        let told = world.json(&format!("/api/v1/log?filter={filter}")).await;
        let lines = told["lines"].as_array().unwrap();
        let numbers: Vec<_> = lines
            .iter()
            .map(|line| line["number"].as_u64().unwrap())
            .collect();
        assert_eq!(numbers, expected, "{filter}");
        let part = world.get(&format!("/parts/log?filter={filter}")).await.text;
        assert_eq!(part.matches("<li").count(), expected.len(), "{part}");
    }
    let later = world.json("/api/v1/log?after=1&limit=1").await;
    assert_eq!(later["lines"].as_array().map(Vec::len), Some(1));
    assert_eq!(later["lines"][0]["level"], "error");
}

#[tokio::test(start_paused = true)]
async fn the_first_sentence_says_how_krane_is() {
    let world = World::new();
    assert!(world.get("/").await.text.contains("krane is starting"));
    world.is_up();
    world.in_place(1, "web");
    world.pass().await;
    let text = world.get("/").await.text;
    assert!(text.contains("Everything wanted is in place"), "{text}");
    world.quarantined(2, "bad", "the field image is empty", "send an image");
    world.pass().await;
    let text = world.get("/").await.text;
    assert!(text.contains("1 state set aside"), "{text}");
    assert!(
        text.contains("shop/bad, version 2") && text.contains("send an image"),
        "{text}"
    );
    let cell = world.board.find("root/deployments").unwrap();
    cell.update(|status| {
        status.activity = Activity::Parked {
            until: std::time::Duration::from_secs(60),
        };
    });
    world.stream_lost("unauthenticated", "bad token");
    world.pass().await;
    let text = world.get("/").await.text;
    assert!(
        text.contains(
            "Controller deployments is parked, 1 state set aside, deployments have no stream"
        ),
        "{text}"
    );
    assert!(text.contains("check control.token"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn the_page_needs_no_script_and_nothing_from_elsewhere() {
    let world = World::new();
    world.is_up();
    world.in_place(1, "web");
    let repaired = Happening::repaired(
        &krane_domain::object::ObjectRef::new(Resource::ReplicaSet, "shop", "web"),
        ["spec.replicas"],
        vec!["kubectl-scale".to_owned()],
    );
    world.board.record(Some(Controller::Deployments), repaired);
    let text = world.get("/").await.text;
    for said in [
        "reconciler",
        "shop/",
        "web",
        "kubectl-scale changed spec.replicas",
        "in place",
    ] {
        assert!(text.contains(said), "{said} is missing");
    }
    assert_eq!(text.matches("<script").count(), 1, "the page's own file");
    assert!(
        !text.contains("style=") && !text.contains("onclick"),
        "nothing inline"
    );
    for asset in ["/assets/page.css", "/assets/page.js", "/assets/krane.svg"] {
        let answer = world.get(asset).await;
        assert!(answer.status.is_success());
        assert!(!answer.text.contains("https://"), "{asset}");
        assert!(answer.text.len() < 40_000, "{asset}");
    }
    assert!(!text.contains("http://") && !text.contains("https://"));
}

#[tokio::test(start_paused = true)]
async fn a_filter_works_on_the_server() {
    let world = World::new();
    world.is_up();
    world.in_place(1, "web");
    world.in_place(2, "worker");
    let text = world.get("/parts/workloads?filter=WORK").await.text;
    assert!(text.contains("worker") && !text.contains("d_web"), "{text}");
    let text = world.get("/parts/workloads?filter=nothing").await.text;
    assert!(text.contains("None of 2 workloads"), "{text}");
    let both = world
        .json("/api/v1/workloads?filter=in%20place&limit=1")
        .await;
    assert_eq!((&both["matching"], &both["total"]), (&2.into(), &2.into()));
    assert_eq!(both["workloads"].as_array().unwrap().len(), 1);
}

/// While nobody answers nothing changes either, so that all that is shown looks well.
#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_away_is_no_good_news() {
    let world = World::new();
    world.is_up();
    world.in_place(1, "web");
    let kinds = world.store.snapshot().watched;
    world.watches_break(&kinds, false, "no answer: connection refused");
    let text = world.get("/").await.text;
    let sentence = "5 watches broken since 08:00:00 UTC, krane reconnects";
    assert!(text.contains(sentence), "{text}");
    let part = world.get("/parts/workloads").await.text;
    assert!(part.contains("as of 08:00:00 UTC"), "{part}");
    tokio::time::advance(std::time::Duration::from_secs(6)).await;
    let (key, change) = super::world::wanted("shop", "late");
    world.wants(2, key.clone(), change);
    for _ in 0..3 {
        let refused = Trouble::new(TroubleKind::Transient, "connection refused");
        world.finish(&key, Outcome::Trouble(refused));
        let now = world.board.now();
        world
            .store
            .inside(|memory| memory.backlog.retry_transient(now));
    }
    let health = world.json("/api/v1/health").await;
    assert_eq!(health["sentence"], "The Kubernetes API does not answer");
    assert_eq!(health["level"], "bad");
    assert_eq!(health["problems"].as_array().unwrap().len(), 1, "{health}");
    let why = health["problems"][0]["why"].as_str().unwrap();
    assert!(
        why.starts_with("no answer: connection refused; ")
            && why.ends_with("as of 08:00:00 UTC; 1 object waits for it"),
        "{why}"
    );
    let watches = &world.json("/api/v1/controllers/deployments").await["watches"];
    assert_eq!(watches["broken"].as_array().unwrap().len(), kinds.len());
    let text = world.get("/parts/controllers").await.text;
    assert!(text.contains("0 of 5 work"), "{text}");

    world.store.inside(|memory| memory.broken_watches.clear());
    world.pass().await;
    let health = world.json("/api/v1/health").await;
    assert_eq!(health["sentence"], "1 object retried");
    let part = world.get("/parts/workloads").await.text;
    assert!(!part.contains("as of"), "{part}");
}

/// An actor that waits for news looks well when none can come.
#[tokio::test(start_paused = true)]
async fn the_tree_shows_watches_that_are_broken() {
    let world = World::new();
    world.is_up();
    let watch = |tree: serde_json::Value| {
        let actors = tree["actors"].as_array().unwrap().clone();
        let path = "root/deployments/observer/watch";
        actors.into_iter().find(|it| it["path"] == path).unwrap()
    };
    let before = watch(world.json("/api/v1/tree").await);
    assert_eq!(
        (&before["level"], &before["watches_broken"]),
        (&"good".into(), &0.into())
    );
    world.watches_break(&[Resource::Pod], false, "no answer");
    world.pass().await;
    let after = watch(world.json("/api/v1/tree").await);
    assert_eq!(
        (&after["level"], &after["watches_broken"]),
        (&"warn".into(), &1.into())
    );
    let page = world.get("/parts/tree").await.text;
    assert!(page.contains("1 watch broken"), "{page}");
    assert_eq!(after["trouble"]["text"], "Pod: no answer");
    assert!(page.contains(": Pod: no answer"), "it must say why: {page}");
}

#[tokio::test(start_paused = true)]
async fn one_of_something_is_no_plural() {
    let world = World::new();
    world.is_up();
    world.in_place(1, "web");
    let recovered = Happening::Recovered {
        key: krane_domain::ids::WorkKey::Workload(krane_domain::ids::ObjectKey::new("shop", "web")),
        attempts: 1,
    };
    world.board.record(Some(Controller::Deployments), recovered);
    world
        .board
        .record(None, Happening::DeletesAllowed { objects: 1 });
    let page = world.get("/").await.text;
    for said in [
        "after 1 failed attempt<",
        "a person allowed 1 held deletion<",
        "1 workload ·",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
}

/// The page reads the workloads again when what is told above them changes.
#[tokio::test(start_paused = true)]
async fn workloads_that_are_old_are_news() {
    let world = World::new();
    world.is_up();
    world.in_place(1, "web");
    let before = world.feed.view();
    world.watches_break(&[Resource::Pod], false, "no answer");
    world.pass().await;
    let after = world.feed.view();
    let changed = after.revisions.changed_since(&before.revisions);
    assert!(changed.contains(&"workloads"), "{changed:?}");
}

#[tokio::test(start_paused = true)]
async fn an_old_end_of_the_stream_is_no_reason_for_a_new_one() {
    let world = World::new();
    world.is_up();
    world.stream_lost("unavailable", "went away");
    tokio::time::advance(std::time::Duration::from_secs(7)).await;
    let card = world.get("/parts/controllers").await.text;
    assert!(
        card.contains("lost <time") && card.contains("not open"),
        "{card}"
    );
    // Another try ends sooner than the stream was lost.
    let lost_at = world.store.inside(|memory| memory.stream.lost_at);
    world.stream_lost("unavailable", "is still away");
    world.store.inside(|memory| memory.stream.lost_at = lost_at);
    world.pass().await;
    let card = world.get("/parts/controllers").await.text;
    assert!(card.contains(">7 s</time> ago"), "since it is lost: {card}");
    assert!(card.contains(">0 s</time> ago"), "the newest end: {card}");
    let health = world.get("/parts/health").await.text;
    assert!(health.contains("unavailable: is still away"), "{health}");
    assert!(
        health.contains("not connected, at the newest version heard"),
        "{health}"
    );
    // It was open, and its actor began again.
    world.store.inside(|memory| {
        memory.stream.was_open_since = true;
        memory.stream.opened_at = None;
    });
    world.pass().await;
    let health = world.get("/parts/health").await.text;
    assert!(health.contains("it is being opened again"), "{health}");
    assert!(!health.contains("is still away"), "{health}");
    let card = world.get("/parts/controllers").await.text;
    assert!(card.contains("opening again"), "{card}");
}

#[tokio::test(start_paused = true)]
async fn the_newest_events_are_shown_and_the_rest_on_demand() {
    let world = World::new();
    world.is_up();
    for number in 0..25 {
        let failed = Happening::ActorRestarted {
            path: format!("root/number-{number}").into(),
        };
        world.board.record(None, failed);
    }
    let text = world.get("/parts/events").await.text;
    let (newest, older) = text.split_once("<details").unwrap();
    assert_eq!(newest.matches("<li").count(), 20, "{text}");
    assert!(newest.contains("root/number-24"), "{text}");
    assert!(older.contains("root/number-0"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_api_server_is_told_with_its_length() {
    let world = World::new();
    world.is_up();
    let lost = Happening::ApiServerLost {
        error: "connection refused".to_owned(),
        silent: std::time::Duration::from_millis(5_600),
    };
    let recovered = Happening::ApiServerRecovered {
        took: std::time::Duration::from_secs(34),
    };
    world.board.record(None, lost);
    world.board.record(None, recovered);
    let answer = world.json("/api/v1/events").await;
    let told: Vec<_> = answer["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| {
            (
                event["level"].as_str().unwrap(),
                event["text"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("good", "the Kubernetes API answers again, after 34.0 s"),
        (
            "bad",
            "the Kubernetes API has not answered for 5.6 s: connection refused",
        ),
    ];
    assert_eq!(told, expected);
}

#[tokio::test(start_paused = true)]
async fn what_is_due_is_now() {
    let world = World::new();
    world.is_up();
    let cell = world.board.find("root/deployments").unwrap();
    for (millis, said) in [(900, ">now</time>"), (5_900, ">in 5 s</time>")] {
        world.pass().await;
        let until = world.board.now() + std::time::Duration::from_millis(millis);
        cell.update(|status| status.activity = Activity::Parked { until });
        let tree = world.get("/parts/tree").await.text;
        assert!(tree.contains(said), "{tree}");
        assert_eq!(tree.contains(">now</time>"), millis < 1_000, "{tree}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_may_not_be_watched_is_named() {
    let world = World::new();
    world.is_up();
    world.watches_break(&[Resource::Pod], true, "the API server answered 403");
    tokio::time::advance(std::time::Duration::from_secs(6)).await;
    let text = world.get("/").await.text;
    for said in ["1 watch of deployments broken", "Pod", "ClusterRole"] {
        assert!(text.contains(said), "{said}: {text}");
    }
}
