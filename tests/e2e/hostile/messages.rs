//! Bytes in the stream.

use bytes::Bytes;
use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::{Code, Kind, samples};
use krane_testharness::{Outcome, World, limits};

use super::{gauge, logged, no_panic};
use crate::world;

const FEW: usize = 3;
const POISON: usize = 2000;

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
    bytes
}

fn bytes_field(number: u64, content: &[u8]) -> Vec<u8> {
    [
        varint(number << 3 | 2),
        varint(content.len() as u64),
        content.to_vec(),
    ]
    .concat()
}

fn version_field(version: u64) -> Vec<u8> {
    [varint(3 << 3), varint(version)].concat()
}

/// Messages that name no object, with their version where they can have one.
fn shapes(version: u64) -> Vec<Vec<u8>> {
    let version = version_field(version);
    let with_version = |start: Vec<u8>| [start, version.clone()].concat();
    let name = |content: &[u8]| bytes_field(1, &bytes_field(1, content));
    let mut deep = Vec::new();
    for _ in 0..300 {
        deep = bytes_field(1, &deep);
    }
    vec![
        Vec::new(),
        vec![0xff; 24],
        vec![0x00],
        // Lengths of 2^63, and of more than there is.
        vec![
            0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
        ],
        vec![0x0a, 0x7f, 0x0a],
        // `apply` and the version with wrong wire types.
        with_version(vec![0x08, 0x01]),
        with_version(vec![0x0d, 1, 2, 3, 4]),
        vec![0x1a, 0x01, 0x00],
        // Neither case, an unknown case, an empty case.
        version.clone(),
        with_version(bytes_field(9, b"policy")),
        with_version(bytes_field(1, b"")),
        with_version(bytes_field(2, b"")),
        // No UTF-8.
        with_version(name(&[0xff, 0xfe])),
        // Nesting: messages, and groups that never end.
        with_version(bytes_field(1, &deep)),
        with_version(bytes_field(77, &deep)),
        with_version(vec![0x7b; 10_000]),
        // 5 MiB of what nobody knows.
        with_version(bytes_field(99, &vec![0x41; 5 << 20])),
    ]
}

/// tursodatabase/libsql#337, grpc/grpc-rust#1353 (B41), D4, D4a: garbage of every shape and thousands of bad states
/// at once cost nobody else anything; each is named in the log.
#[tokio::test(flavor = "multi_thread")]
async fn garbage_of_every_shape_and_thousands_of_bad_states_cost_only_themselves() -> Outcome {
    let world = world().await?;
    let mut wanted = world.deployments(FEW, FEW);
    world.control.push(samples::apply(wanted[0].clone()));
    let agent = world.agent().set("resync.interval", "24h").start().await?;
    world
        .settles("the first runs", &wanted[..1], &[], limits::LONG)
        .await?;
    let (mark, before) = (world.mark()?, agent.resident_bytes()?);

    let garbage = shapes(1).len();
    for index in 0..garbage {
        world.control.push_raw(Kind::Deployments, |version| {
            Bytes::from(shapes(version).swap_remove(index))
        });
    }
    world.control.push(samples::apply(wanted[1].clone()));
    let bad = |index: usize| ApplyDeployment {
        image: " ".to_owned(),
        ..samples::deployment(&world.namespace(index % FEW), &format!("bad{index}"))
    };
    world
        .control
        .push_all((0..POISON).map(|index| samples::apply(bad(index))));
    world.control.push(samples::apply(wanted[2].clone()));
    world
        .settles("all good ones run", &wanted, &[], limits::LONG)
        .await?;
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    gauge(&agent, "krane_quarantined", POISON as f64).await?;
    let line = logged(&agent, "a bad state is named", |line| {
        line.level().eq_ignore_ascii_case("error") && line.text("key").ends_with("/bad7")
    })
    .await?;
    assert!(line.text("reason").contains("image"), "{:?}", line.json());
    let unknown = agent
        .metrics()
        .await?
        .deployments("krane_states_unknown_total");
    #[expect(clippy::cast_precision_loss, reason = "a dozen")]
    let expected = garbage as f64;
    assert!(
        (unknown - expected).abs() < f64::EPSILON,
        "{unknown} of {garbage} are counted"
    );

    // It goes on as ever.
    wanted[0].memory_mib = 512;
    world.control.push(samples::apply(wanted[0].clone()));
    world
        .settles("a change is made", &wanted, &[], limits::LONG)
        .await?;
    let writes = world.writes(mark)?;
    let strange: Vec<_> = writes
        .iter()
        .filter(|write| write.name.starts_with("bad"))
        .collect();
    assert!(strange.is_empty(), "{strange:#?}");
    let after = agent.resident_bytes()?;
    println!("resident: {} MiB, then {} MiB", before >> 20, after >> 20);
    assert!(after < before + (100 << 20));
    no_panic(&agent)?;
    agent.stop().await
}

/// mogenius/renovate-operator#616, aquasecurity/trivy-operator#757 (B32), D4: what is in quarantine does not fill the
/// backlog, or bad states would stop the reading of good ones for ever.
#[tokio::test(flavor = "multi_thread")]
async fn bad_states_larger_than_the_backlog_do_not_stop_the_stream() -> Outcome {
    let world = world().await?;
    let wanted = world.deployments(FEW, 1);
    world.control.push(samples::apply(wanted[0].clone()));
    let invalid = |index: usize| ApplyDeployment {
        image: " ".to_owned(),
        command: vec!["x".repeat(600 << 10)],
        ..samples::deployment(&world.namespace(0), &format!("invalid{index}"))
    };
    // The API server takes no object of this size.
    let refused = |index: usize| ApplyDeployment {
        command: vec!["x".repeat(2 << 20)],
        ..samples::deployment(&world.namespace(0), &format!("refused{index}"))
    };
    for index in 0..4 {
        world.control.push(samples::apply(invalid(index)));
    }
    world.control.push(samples::apply(wanted[1].clone()));
    for index in 0..2 {
        world.control.push(samples::apply(refused(index)));
    }
    world.control.push(samples::apply(wanted[2].clone()));
    let agent = world
        .agent()
        .set("control.max_backlog", "1MiB")
        .set("resync.interval", "24h")
        .start()
        .await?;
    world
        .settles("the good ones run", &wanted, &[], limits::LONG)
        .await?;
    gauge(&agent, "krane_quarantined", 6.0).await?;
    gauge(&agent, "krane_backlog_bytes", 0.0).await?;
    no_panic(&agent)?;
    agent.stop().await
}

/// D3, "nothing is lost": a version out of a broken message must not carry the cursor past everything to come.
#[tokio::test(flavor = "multi_thread")]
async fn a_version_out_of_garbage_does_not_deafen_the_stream() -> Outcome {
    let world = world().await?;
    let wanted = world.deployments(2, 1);
    world.control.push(samples::apply(wanted[0].clone()));
    let agent = world.agent().set("resync.interval", "24h").start().await?;
    world
        .settles("the first runs", &wanted[..1], &[], limits::LONG)
        .await?;
    // Half a name, and a version.
    world.control.push_raw(Kind::Deployments, |_| {
        let half = bytes_field(1, &[0x0a, 0x7f, b'x']);
        Bytes::from([half, version_field(u64::MAX)].concat())
    });
    logged(&agent, "the message is passed over", |line| {
        line.text("message").contains("names no object")
    })
    .await?;
    heard_after_a_reconnect(&world, &wanted).await?;
    no_panic(&agent)?;
    agent.stop().await
}

async fn heard_after_a_reconnect(world: &World, wanted: &[ApplyDeployment]) -> Outcome {
    let watches = world
        .control
        .look(|seen| seen.cursors(Kind::Deployments).len());
    world
        .control
        .cut_streams_of(Kind::Deployments, Code::Unavailable);
    world
        .control
        .wait_for("the stream is opened again", limits::SHORT, |seen| {
            (seen.cursors(Kind::Deployments).len() > watches).then_some(())
        })
        .await?;
    world.control.push(samples::apply(wanted[1].clone()));
    world
        .settles("a later state is heard", wanted, &[], limits::SHORT)
        .await
}

/// D4a: an update that does not decode, version included, is said aloud even when its object is known.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_update_of_a_known_object_is_not_dropped_in_silence() -> Outcome {
    let world = world().await?;
    let wanted = world.deployments(1, 1);
    world.control.push(samples::apply(wanted[0].clone()));
    let agent = world.agent().set("resync.interval", "24h").start().await?;
    world.settles("it runs", &wanted, &[], limits::LONG).await?;
    let broken = ApplyDeployment {
        memory_mib: 512,
        ..wanted[0].clone()
    };
    // The end, where the version is, never came.
    world
        .control
        .push_spoiled(samples::apply(broken), |message| {
            Bytes::copy_from_slice(&message[..message.len() - 8])
        });
    let name = wanted[0].k8s_name.clone();
    logged(&agent, "the broken update is named", |line| {
        let is_loud = ["warn", "error"].contains(&line.level().to_lowercase().as_str());
        let text = line.json().to_string();
        is_loud && text.contains(&name) && text.contains("does not decode")
    })
    .await?;
    world
        .settles("it runs on as it was", &wanted, &[], limits::SHORT)
        .await?;
    no_panic(&agent)?;
    agent.stop().await
}

/// Level-triggered rule, burst (C15), D3: apply, delete, apply of one object as fast as it goes ends with the last wish, beside others.
#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_applies_and_deletes_ends_with_the_last_wish() -> Outcome {
    let world = world().await?;
    world.control.keep_history(true);
    let wanted = world.deployments(FEW, 1);
    let agent = world.agent().set("resync.interval", "24h").start().await?;
    for round in 0..300 {
        let state = ApplyDeployment {
            memory_mib: 128 + round % 7,
            ..wanted[0].clone()
        };
        world.control.push(samples::apply(state));
        world.control.push(samples::delete(&wanted[0]));
        tokio::task::yield_now().await;
    }
    world.push_all(&wanted);
    world
        .settles("all are as last wanted", &wanted, &[], limits::LONG)
        .await?;
    for _ in 0..50 {
        world.control.push(samples::apply(wanted[1].clone()));
        world.control.push(samples::delete(&wanted[1]));
    }
    let rest = [wanted[0].clone(), wanted[2].clone()];
    world
        .settles(
            "the last wish was a delete",
            &rest,
            &wanted[1..2],
            limits::LONG,
        )
        .await?;
    no_panic(&agent)?;
    agent.stop().await
}
