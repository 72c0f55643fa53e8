//! Each planted defect is found, and soon.

use krane_domain::planted::Bug;
use krane_testsim::{
    ActorFault, CallFault, Fault, Setup, on_all_cores, run, scenarios, seeded, setup, words,
    workers_of,
};
use parking_lot::Mutex;

/// Within so many seeds.
const SEEDS: u64 = 150;

/// Where one that takes long to find was found before. Only the time depends on it: a run that
/// does not find it any more is followed by all others.
fn found_before(bug: Bug) -> Option<(String, Setup)> {
    let seed = |seed| Some((format!("KRANE_SEED={seed}"), seeded(seed)));
    let sweep = |name, fault| {
        let scenario = scenarios()
            .into_iter()
            .find(|scenario| scenario.name == name)?;
        Some((words(&scenario), setup(&scenario, &[fault])))
    };
    let panics = |worker| sweep("create", Fault::Actor(worker, ActorFault::Panic(1)));
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "the others are found within seconds"
    )]
    match bug {
        Bug::AnswerOverwritesNewerState => sweep(
            "changed while it is asked about",
            Fault::Control(5, CallFault::DelayAfter(5_000)),
        ),
        Bug::DuplicateLanes => sweep(
            "recreate",
            Fault::Cluster(16, CallFault::DelayBefore(4_000)),
        ),
        Bug::MailboxLostOnRestart => panics(1),
        Bug::LanesLostOnRestart => panics(3),
        Bug::WritesWhatIsNotOurs => seed(134),
        Bug::RelistKeepsGone => seed(45),
        Bug::BrakeOff => seed(37),
        _ => None,
    }
}

/// How the suites find it: the run and what it says. The cheapest runs come first.
fn found(bug: Bug) -> Option<(String, String)> {
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
    let before = found_before(bug).into_iter();
    let mut all = before.chain(undisturbed).chain(seeds).chain(disturbed);
    all.find_map(|(words, setup)| {
        let planted = Setup {
            bug: Some(bug),
            ..setup.clone()
        };
        let violation = run(&planted).violation?;
        let innocent = run(&setup).violation;
        assert_eq!(innocent, None, "{words} fails without a defect");
        let faults = setup.plan.faults.len();
        let plan = (faults < 4).then(|| setup.plan.to_text());
        Some((format!("{words} {}", plan.unwrap_or_default()), violation))
    })
}

fn told(bug: Bug) -> bool {
    let began = std::time::Instant::now();
    let result = found(bug);
    let seconds = began.elapsed().as_secs_f32();
    println!("{bug:?} ({seconds:.1} s): {result:?}");
    result.is_some()
}

/// The defects to plant: all, or the one that `KRANE_BUG` names.
fn asked_for() -> Vec<Bug> {
    let name = std::env::var("KRANE_BUG").ok();
    let is_asked = |bug: &Bug| name.as_ref().is_none_or(|name| *name == format!("{bug:?}"));
    Bug::ALL.into_iter().filter(is_asked).collect()
}

#[test]
fn every_planted_defect_is_found() {
    let bugs = asked_for();
    assert!(!bugs.is_empty(), "KRANE_BUG names none");
    let missed = Mutex::new(Vec::new());
    on_all_cores(&bugs, |bug| {
        if !told(*bug) {
            missed.lock().push(*bug);
        }
    });
    assert_eq!(missed.into_inner(), [], "nobody noticed");
}
