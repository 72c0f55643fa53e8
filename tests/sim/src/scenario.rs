//! Short lives to sweep: each about one thing that happens to workloads.

use std::time::Duration;

use crate::plan::{CallFault, Fault, Plan, RECONCILER, WorldFault, ms};
use crate::run::Setup;
use crate::script::{Script, Step, Variant};

const WANT: Step = Step::Want(0, DEFAULT);
const DEFAULT: Variant = Variant {
    tag: "1",
    replicas: 1,
    port: 8080,
    is_autoscaled: false,
};

/// One short life.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it is about.
    pub name: &'static str,
    steps: Vec<(u64, Step)>,
    /// What goes wrong in it anyway.
    faults: Vec<Fault>,
    /// How long it is, in milliseconds.
    length: u64,
    /// How soon after that everything is in place, when calls are late at most.
    patience: Option<Duration>,
}

/// All of them.
pub fn scenarios() -> Vec<Scenario> {
    let other = |number| {
        let variant = Variant {
            tag: "2",
            replicas: 2,
            port: 8081,
            is_autoscaled: false,
        };
        Step::Want(number, variant)
    };
    let scaled = Variant {
        replicas: 3,
        ..DEFAULT
    };
    let autoscaled = Variant {
        is_autoscaled: true,
        ..DEFAULT
    };
    let world = |at, what| vec![Fault::World(at, what)];
    let all = vec![
        ("create", vec![(0, WANT)], vec![]),
        ("update", vec![(0, WANT), (8_000, other(0))], vec![]),
        (
            "scale",
            vec![(0, WANT), (8_000, Step::Want(0, scaled))],
            vec![],
        ),
        (
            "autoscaled for a while",
            vec![
                (0, Step::Want(0, autoscaled)),
                (9_000, Step::Want(0, DEFAULT)),
            ],
            vec![],
        ),
        ("delete", vec![(0, WANT), (8_000, Step::Delete(0))], vec![]),
        (
            "recreate",
            vec![(0, WANT), (6_000, Step::Delete(0)), (6_500, other(0))],
            vec![],
        ),
        (
            "poison, then better",
            vec![
                (0, WANT),
                (5_000, Step::Poison(0)),
                (20_000, other(0)),
                (20_000, other(1)),
            ],
            vec![],
        ),
        (
            "forget",
            vec![(0, WANT), (0, other(1)), (9_000, Step::Forget(0))],
            vec![],
        ),
        (
            "two environments",
            vec![(0, WANT), (0, other(1)), (0, other(2)), (4_000, other(3))],
            vec![],
        ),
        (
            "changed while it is asked about",
            vec![
                (0, WANT),
                (10_500, other(0)),
                (12_000, Step::Want(0, scaled)),
            ],
            vec![],
        ),
        (
            "older rows behind newer ones",
            vec![(0, WANT), (3_000, other(0)), (6_000, Step::Want(0, scaled))],
            vec![
                Fault::World(1, WorldFault::History),
                Fault::World(2, WorldFault::Order(2)),
                Fault::World(12_000, WorldFault::Crash),
            ],
        ),
        (
            "drift",
            vec![(0, WANT)],
            world(9_000, WorldFault::Edit(0, 1)),
        ),
        (
            "deleted by somebody",
            vec![(0, WANT)],
            world(9_000, WorldFault::Delete(0)),
        ),
        (
            "label taken",
            vec![(0, WANT)],
            world(9_000, WorldFault::Unlabel(0)),
        ),
        (
            "namespace deleted",
            vec![(0, WANT)],
            world(9_000, WorldFault::DeleteNamespace(0)),
        ),
        (
            "pod lost",
            vec![(0, WANT)],
            world(9_000, WorldFault::EvictPod(0)),
        ),
        (
            "burst",
            (0..12).map(|number| (3_000, other(number))).collect(),
            vec![],
        ),
        (
            "rows in disorder",
            vec![
                (0, WANT),
                (3_000, other(0)),
                (5_000, Step::Delete(1)),
                (6_000, WANT),
            ],
            vec![
                Fault::World(1, WorldFault::History),
                Fault::World(2, WorldFault::Order(2)),
                Fault::World(12_000, WorldFault::CutStreams),
                Fault::World(30_000, WorldFault::Crash),
            ],
        ),
        (
            "a process that never met the definition of policies",
            vec![(0, WANT), (5_000, Step::Poison(0))],
            vec![
                Fault::World(8_000, WorldFault::DefinitionAway(20_000)),
                Fault::World(15_000, WorldFault::Crash),
            ],
        ),
        (
            "restored",
            vec![(0, WANT), (3_000, other(0)), (6_000, other(1))],
            world(20_000, WorldFault::Restore(2)),
        ),
    ];
    let all = all.into_iter().map(|(name, steps, faults)| Scenario {
        name,
        steps,
        faults,
        length: 45_000,
        patience: None,
    });
    all.chain([Scenario {
        name: "a reconciler that dies while it writes",
        steps: vec![(1_000, WANT)],
        faults: vec![Fault::World(2_500, WorldFault::Kill(RECONCILER))],
        // Nobody else looks before the first resync, 10 s after the start.
        length: 8_000,
        patience: Some(ms(1_000)),
    }])
    .collect()
}

/// How soon after a crash everything goes on.
const RECOVERY: Duration = Duration::from_secs(15);

/// One scenario, with more that goes wrong.
pub fn setup(scenario: &Scenario, more: &[Fault]) -> Setup {
    let all_are = |is_like: fn(&CallFault) -> bool| {
        more.iter().all(|fault| match fault {
            Fault::Cluster(_, what) | Fault::Control(_, what) => is_like(what),
            _ => false,
        })
    };
    let are_late =
        all_are(|what| matches!(what, CallFault::DelayBefore(_) | CallFault::DelayAfter(_)));
    let are_crashes =
        all_are(|what| matches!(what, CallFault::CrashBefore | CallFault::CrashAfter));
    let recovery = (are_crashes && scenario.faults.is_empty()).then_some(RECOVERY);
    Setup {
        seed: 1,
        script: Script::of(&scenario.steps),
        plan: Plan {
            faults: [&*scenario.faults, more].concat(),
        },
        chaos: scenario.length,
        patience: scenario.patience.filter(|_| are_late).or(recovery),
        bug: None,
        is_loud: false,
    }
}

/// The scenario that the environment names.
pub fn scenario_asked_for() -> Option<Setup> {
    let name = std::env::var("KRANE_SCENARIO").ok()?;
    let mut all = scenarios().into_iter();
    let scenario = all.find(|scenario| scenario.name == name)?;
    Some(setup(&scenario, &[]))
}

/// What it takes to see a run of a scenario again.
pub fn words(scenario: &Scenario) -> String {
    format!("KRANE_SCENARIO='{}'", scenario.name)
}
