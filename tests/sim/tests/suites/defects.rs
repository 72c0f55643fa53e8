//! Each planted defect is found, and soon.

use std::path::{Path, PathBuf};

use krane_testsim::{
    ActorFault, CallFault, Fault, Setup, on_all_cores, run, scenarios, seeded, setup, words,
    workers_of,
};
use parking_lot::Mutex;

/// Within so many seeds.
const SEEDS: u64 = 150;

/// Where one that takes long to find was found before. Only the time depends on it: a run that
/// does not find it any more is followed by all others.
fn found_before(defect: &str) -> Option<(String, Setup)> {
    let seed = |seed| Some((format!("KRANE_SEED={seed}"), seeded(seed)));
    let struck = |name, faults: &[Fault]| {
        let scenario = scenarios()
            .into_iter()
            .find(|scenario| scenario.name == name)?;
        Some((words(&scenario), setup(&scenario, faults)))
    };
    let scenario = |name| struck(name, &[]);
    let sweep = |name, fault| struck(name, &[fault]);
    let panics = |worker| sweep("create", Fault::Actor(worker, ActorFault::Panic(1)));
    match defect {
        "answer-overwrites-newer-state" => sweep(
            "changed while it is asked about",
            Fault::Control(5, CallFault::DelayAfter(5_000)),
        ),
        "duplicate-lanes" => sweep(
            "recreate",
            Fault::Cluster(16, CallFault::DelayBefore(4_000)),
        ),
        "mailbox-lost-on-restart" => panics(1),
        "lanes-lost-on-restart" => panics(3),
        "another-gossip-pair-deleted" | "companions-left-behind" => {
            scenario("sentinel: delete one of two")
        }
        "companion-drift-unseen" => scenario("sentinel: an owned object edited"),
        "cursor-moves-on-receipt" => seed(22),
        "report-lost-on-failure" => seed(21),
        "stream-not-reopened" => seed(13),
        "error-taken-for-not-found" => seed(4),
        "policy-after-workload" | "quarantine-forgets" | "watch-not-reopened" => seed(1),
        "writes-what-is-not-ours" => seed(134),
        "relist-keeps-gone" => seed(45),
        "brake-off" => seed(37),
        // The others are found within seconds.
        _ => None,
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("defects")
}

/// Whether a violation is of the invariant that the patch of the defect names: another one would be
/// another defect.
pub(super) fn is_that_of(defect: &str, violation: &str) -> bool {
    let patch = std::fs::read_to_string(folder().join(format!("{defect}.patch")));
    let patch = patch.expect("the defect is a patch");
    let (_, rest) = patch
        .split_once("Found as ")
        .expect("it names an invariant");
    let (invariant, _) = rest.split_once('.').expect("a sentence");
    violation.split([' ', ':']).any(|word| word == invariant)
}

/// How the suites find it: the run and what it says. The cheapest runs come first.
fn found(defect: &'static str) -> Option<(String, String)> {
    let undisturbed = scenarios()
        .into_iter()
        .map(|scenario| (words(&scenario), setup(&scenario, &[])));
    let disturbed = scenarios().into_iter().flat_map(|scenario| {
        let failing = workers_of(scenario.about).flat_map(|worker| {
            (0..12).map(move |message| Fault::Actor(worker, ActorFault::Panic(message)))
        });
        let asked = (0..30).map(|call| Fault::Control(call, CallFault::DelayAfter(5_000)));
        let written = (0..30).map(|call| Fault::Cluster(call, CallFault::DelayBefore(4_000)));
        let faults: Vec<Fault> = failing.chain(asked).chain(written).collect();
        faults
            .into_iter()
            .map(move |fault| (words(&scenario), setup(&scenario, &[fault])))
    });
    let seeds = (1..=SEEDS).map(|seed| (format!("KRANE_SEED={seed}"), seeded(seed)));
    let before = found_before(defect).into_iter();
    let mut all = before.chain(undisturbed).chain(seeds).chain(disturbed);
    all.find_map(|(words, setup)| {
        let planted = Setup {
            defect: Some(defect),
            ..setup.clone()
        };
        let violation = run(&planted)
            .violation
            .filter(|it| is_that_of(defect, it))?;
        let innocent = run(&setup).violation;
        assert_eq!(innocent, None, "{words} fails without a defect");
        let faults = setup.plan.faults.len();
        let plan = (faults < 4).then(|| setup.plan.to_text());
        Some((format!("{words} {}", plan.unwrap_or_default()), violation))
    })
}

fn told(defect: &'static str) -> bool {
    let began = std::time::Instant::now();
    let result = found(defect);
    let seconds = began.elapsed().as_secs_f32();
    println!("{defect} ({seconds:.1} s): {result:?}");
    result.is_some()
}

/// The defects to plant: one for each patch, or the one that `KRANE_DEFECT` names.
fn asked_for() -> Vec<&'static str> {
    let asked = std::env::var("KRANE_DEFECT").ok();
    let files = folder().read_dir().expect("there are patches");
    let mut names: Vec<&'static str> = files
        .map(|file| file.expect("a patch").path())
        .filter_map(|path| Some(&*path.file_stem()?.to_str()?.to_owned().leak()))
        .filter(|name| *name != "switch" && !super::rivals::DEFECTS.contains(name))
        .filter(|name| asked.as_ref().is_none_or(|asked| asked == name))
        .collect();
    names.sort_unstable();
    names
}

#[test]
#[ignore = "scripts/defects runs it, on a copy of the code that has the defects"]
fn every_planted_defect_is_found() {
    let defects = asked_for();
    assert!(!defects.is_empty(), "KRANE_DEFECT names none");
    let missed = Mutex::new(Vec::new());
    on_all_cores(&defects, |defect| {
        if !told(defect) {
            missed.lock().push(*defect);
        }
    });
    assert_eq!(missed.into_inner(), [""; 0], "not found");
}
