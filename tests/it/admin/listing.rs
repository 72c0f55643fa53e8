//! Lists of many workloads, and the last hour.

use std::time::{Duration, Instant};

use super::world::{World, wanted};

/// How many rows a part has.
fn rows(text: &str) -> usize {
    text.matches("<th scope=\"row\">").count()
}

#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_methods, reason = "it prints a real time")]
async fn ten_thousand_workloads_are_shown_a_hundred_at_a_time() {
    let world = World::new();
    world.is_up();
    for version in 1..=10_000 {
        let (key, change) = wanted("shop", &format!("web-{version:05}"));
        world.wants(version, key, change);
    }
    let began = Instant::now();
    let page = world.get("/").await;
    let first = began.elapsed();
    assert_eq!(rows(&page.text), 100);
    assert!(page.text.contains("page 1 of 100"));
    let began = Instant::now();
    let last = world.get("/parts/workloads?page=100&sort=name").await.text;
    println!(
        "10,000 workloads: page {first:?}, then a part {:?}",
        began.elapsed()
    );
    assert!(last.contains("web-10000") && last.contains("page 100 of 100"));
    assert!(last.contains("rel=\"prev\"") && !last.contains("rel=\"next\""));
    assert!(first < Duration::from_secs(20));
    let newest = world.get("/parts/workloads?sort=version").await.text;
    assert!(newest.contains("web-10000") && !newest.contains("web-00001"));
    let found = world
        .get("/parts/workloads?filter=web-00042&page=7")
        .await
        .text;
    assert_eq!(rows(&found), 1, "a page beyond the last is the last one");
}

#[tokio::test(start_paused = true)]
async fn a_careless_address_shows_the_first_page() {
    let world = World::new();
    world.is_up();
    world.in_place(1, "web");
    for query in [
        "page=abc",
        "page=-1",
        "page=999999999999999999999",
        "sort=colour",
        "page=",
    ] {
        let answer = world.get(&format!("/?{query}")).await;
        assert!(answer.status.is_success(), "{query}");
        assert!(answer.text.contains("web"), "{query}");
    }
}

#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_methods, reason = "the clock is paused")]
async fn the_last_hour_is_remembered_whether_or_not_somebody_looks() {
    let world = World::new();
    world.is_up();
    let (feed, stop) = (world.feed.clone(), world.stop.clone());
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { feed.run(stop).await });
    tokio::time::sleep(Duration::from_secs(61)).await;
    let (key, change) = wanted("shop", "web");
    world.wants(9, key, change);
    tokio::time::sleep(Duration::from_secs(61)).await;
    let told = world.json("/api/v1/history").await;
    let lines = told["lines"].as_array().unwrap();
    let lag = lines
        .iter()
        .find(|line| line["what"] == "cursor lag")
        .unwrap();
    assert_eq!(
        (lag["now"].as_u64(), lag["highest"].as_u64()),
        (Some(9), Some(9))
    );
    assert_eq!(lag["samples"].as_array().unwrap().len(), 13);
    let part = world.get("/parts/history").await.text;
    assert_eq!(part.matches("<polyline").count(), lines.len());
    // Two hours later the hour before is forgotten.
    tokio::time::sleep(Duration::from_secs(7_200)).await;
    let told = world.json("/api/v1/history").await;
    assert_eq!(told["lines"][0]["samples"].as_array().unwrap().len(), 360);
    world.stop.cancel();
    tasks.join_all().await;
}
