use tracing_subscriber::Registry;
use tracing_subscriber::layer::SubscriberExt;

use super::{Memory, settings};
use crate::{LevelError, LogTail, lines};

#[test]
fn the_level_is_changed_while_lines_are_written_and_a_bad_one_changes_nothing() {
    let memory = Memory::default();
    let (layer, level) = lines(&settings(&[]), false, memory.clone(), &LogTail::default()).unwrap();
    let said = || {
        tracing::debug!("debug");
        tracing::info!("info");
        let text = String::from_utf8(std::mem::take(&mut *memory.0.lock())).unwrap();
        let said = |word: &str| text.contains(&format!("\"message\":\"{word}\""));
        (said("debug"), said("info"))
    };
    tracing::subscriber::with_default(Registry::default().with(layer), || {
        assert_eq!(&*level.get(), "warn,kube_client=off,krane=info");
        assert_eq!(said(), (false, true));
        level.set(" warn,krane=debug ").unwrap();
        assert_eq!(&*level.get(), "warn,krane=debug");
        assert_eq!(said(), (true, true));
        for bad in ["", "  ", "krane=loud", "krane=info=debug"] {
            assert!(level.set(bad).is_err(), "{bad:?}");
        }
        assert!(matches!(
            level.set(&"krane=debug,".repeat(100)),
            Err(LevelError::TooLong)
        ));
        assert_eq!(&*level.get(), "warn,krane=debug");
        assert_eq!(said(), (true, true));
        level.set("error").unwrap();
        assert_eq!(said(), (false, false));
    });
    assert!(matches!(level.set("info"), Err(LevelError::Gone)));
}

/// The Kubernetes client warns with whole bodies; no level makes it.
#[test]
fn no_level_lets_bodies_into_lines() {
    let memory = Memory::default();
    let (layer, level) = lines(&settings(&[]), false, memory.clone(), &LogTail::default()).unwrap();
    tracing::subscriber::with_default(Registry::default().with(layer), || {
        level.set("trace,kube_client=trace").unwrap();
        memory.0.lock().clear();
        tracing::warn!(target: "kube_client::client", "canary-in-a-body");
        tracing::info!(target: "h2", "heard");
    });
    let text = String::from_utf8(memory.0.lock().clone()).unwrap();
    assert!(text.contains("heard"), "{text}");
    assert!(!text.contains("canary"), "{text}");
}
