//! Short lives to sweep: each about one thing that happens to workloads.

use crate::plan::{Fault, Plan, WorldFault};
use crate::run::Setup;
use crate::script::{Script, Step, Variant};

const WANT: Step = Step::Want(0, DEFAULT);
const DEFAULT: Variant = Variant {
    tag: "1",
    replicas: 1,
    port: 8080,
    is_autoscaled: false,
};

/// A scenario: its name, its script, and what goes wrong in it anyway.
pub type Scenario = (&'static str, Vec<(u64, Step)>, Vec<Fault>);

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
    vec![
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
            "restored",
            vec![(0, WANT), (3_000, other(0)), (6_000, other(1))],
            world(20_000, WorldFault::Restore(2)),
        ),
    ]
}

/// One scenario, with more that goes wrong.
pub fn setup(scenario: &Scenario, more: &[Fault]) -> Setup {
    let (_, steps, faults) = scenario;
    Setup {
        seed: 1,
        script: Script::of(steps),
        plan: Plan {
            faults: [faults, more].concat(),
        },
        chaos: 45_000,
        bug: None,
        is_loud: false,
    }
}
