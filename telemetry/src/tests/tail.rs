//! What is kept of the log is what the log has.

use jiff::Timestamp;
use tracing::Level;
use tracing_subscriber::Registry;
use tracing_subscriber::layer::SubscriberExt;

use super::super::{LogLine, LogTail, lines};
use super::{Memory, settings};

/// What `speak` writes, line by line, and what is kept of it, the newest last.
fn kept(
    changes: &[(&str, &str)],
    terminal: bool,
    speak: impl FnOnce(),
) -> (Vec<String>, Vec<String>) {
    let (memory, tail) = (Memory::default(), LogTail::default());
    let (layer, _) = lines(&settings(changes), terminal, memory.clone(), &tail).unwrap();
    tracing::subscriber::with_default(Registry::default().with(layer), speak);
    let written = String::from_utf8(memory.0.lock().clone()).unwrap();
    let kept = tail.after(0).into_iter().rev();
    (
        written.lines().map(str::to_owned).collect(),
        kept.map(|line| format!("{} {}: {}", line.level, line.text, line.fields))
            .collect(),
    )
}

fn speak() {
    let span = tracing::info_span!("apply", object = "shop/web", version = 7_u64);
    let _entered = span.enter();
    tracing::debug!("not at this level");
    tracing::info!(target: "h2", "another crate");
    tracing::info!(duration_ms = 5_u64, "a success that is sampled away");
    tracing::warn!(pods = 3, error = "refused", "not applied");
    tracing::warn!(target: "kube_client::client", "a whole body");
}

#[test]
fn exactly_the_lines_that_are_written_are_kept_with_their_fields_and_those_of_their_spans() {
    let none = ("observability.logging.sample_rate", "0");
    for (format, terminal) in [("json", false), ("pretty", false), ("pretty", true)] {
        let (written, kept) = kept(
            &[none, ("observability.logging.format", format)],
            terminal,
            speak,
        );
        assert_eq!(written.len(), 1, "{written:?}");
        let [line] = &kept[..] else {
            panic!("{format}: {kept:?}");
        };
        let line = line.replace('"', "");
        let expected = "WARN not applied: error=refused pods=3 object=shop/web version=7";
        assert_eq!(line, expected, "{format} {terminal}");
    }
}

#[test]
fn only_so_many_lines_and_only_so_much_of_each_are_kept() {
    let tail = LogTail::default();
    let keep = |text: String| {
        tail.keep(LogLine {
            number: 0,
            at: Timestamp::UNIX_EPOCH,
            level: Level::INFO,
            target: "krane",
            fields: text.clone(),
            text,
        });
    };
    for number in 1..=5_000 {
        keep(format!("line {number}"));
    }
    keep("ä".repeat(100_000));
    let kept = tail.after(0);
    assert_eq!(kept.len(), 1_000);
    let [long, newest, ..] = &kept[..] else {
        panic!("{}", kept.len());
    };
    for text in [&long.text, &long.fields] {
        assert!(text.len() < 2_100 && text.ends_with("ä…"), "{}", text.len());
    }
    assert_eq!((newest.number, newest.text.as_str()), (5_000, "line 5000"));
    assert_eq!(tail.after(4_999).len(), 2);
}
