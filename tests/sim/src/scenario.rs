//! Short lives to sweep: each about one thing that happens to workloads.

use std::time::Duration;

use krane_domain::ids::Controller;

use crate::plan::{CallFault, Fault, Plan, RECONCILER, WorldFault, ms};
use crate::run::Setup;
use crate::script::{POLICIES, SENTINELS, Script, Step, Variant};

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
    /// Whose scenario it is: faults happen to its calls, events, messages and actors.
    pub about: Controller,
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
            "no autoscaler any more when the label comes back",
            vec![
                (0, Step::Want(0, autoscaled)),
                (5_000, Step::Poison(0)),
                (12_000, other(0)),
            ],
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
    let of = |about| {
        move |(name, steps, faults)| Scenario {
            name,
            steps,
            about,
            faults,
            length: 45_000,
            patience: None,
        }
    };
    let all = all.into_iter().map(of(Controller::Deployments));
    let all = all.chain(sentinels().into_iter().map(of(Controller::Sentinels)));
    let all = all.chain(policies().into_iter().map(of(Controller::Cilium)));
    all.chain([Scenario {
        about: Controller::Deployments,
        name: "a reconciler that dies while it writes",
        steps: vec![(1_000, WANT)],
        faults: vec![Fault::World(2_500, WorldFault::Kill(RECONCILER))],
        // Nobody else looks before the first resync, 10 s after the start.
        length: 8_000,
        patience: Some(ms(1_000)),
    }])
    .collect()
}

/// Name, steps, and what goes wrong anyway.
type Story = (&'static str, Vec<(u64, Step)>, Vec<Fault>);

/// Edits by their place among those of their kind.
const MANAGERS_WIPED: u8 = 8;
const BUDGET_SWAPPED: u8 = 10;
const PORT_RENUMBERED: u8 = 16;
const ROLLOUT_PAUSED: u8 = 23;
const NAME_ELSEWHERE: u8 = 15;

/// What happens to sentinels.
fn sentinels() -> Vec<Story> {
    let (one, two) = (SENTINELS, SENTINELS + 1);
    let want = Step::Want(one, DEFAULT);
    let with = |tag, replicas| {
        let variant = Variant {
            tag,
            replicas,
            ..DEFAULT
        };
        Step::Want(one, variant)
    };
    vec![
        ("sentinel: create", vec![(0, want)], vec![]),
        (
            "sentinel: another image",
            vec![(0, with("1", 2)), (15_000, with("2", 2))],
            vec![],
        ),
        (
            "sentinel: scaled to nothing",
            vec![(0, with("1", 2)), (8_000, with("1", 0))],
            vec![],
        ),
        (
            "sentinel: delete one of two",
            vec![
                (0, want),
                (0, Step::Want(two, DEFAULT)),
                (8_000, Step::Delete(two)),
            ],
            vec![],
        ),
        (
            "sentinel: an owned object edited",
            vec![(0, want)],
            // In this order: gossip policy, Deployment, Service, gossip Service, budget.
            vec![
                Fault::World(9_000, WorldFault::Edit(4, BUDGET_SWAPPED)),
                Fault::World(10_000, WorldFault::Edit(2, PORT_RENUMBERED)),
                Fault::World(11_000, WorldFault::Edit(1, ROLLOUT_PAUSED)),
                Fault::World(12_000, WorldFault::Edit(3, NAME_ELSEWHERE)),
                Fault::World(13_000, WorldFault::Delete(2)),
            ],
        ),
        (
            "sentinel: who owns what is forgotten",
            vec![(0, want)],
            vec![Fault::World(9_000, WorldFault::Edit(4, MANAGERS_WIPED))],
        ),
        (
            "sentinel: without its Secret",
            vec![(2_000, want)],
            vec![Fault::World(1_000, WorldFault::SecretAway(20_000))],
        ),
    ]
}

/// What happens to policies of the control plane.
fn policies() -> Vec<Story> {
    let (inside, outside) = (POLICIES, POLICIES + 1);
    let want = Step::Want(inside, DEFAULT);
    let other = Variant {
        port: 8081,
        ..DEFAULT
    };
    vec![
        (
            "policy: create and update",
            vec![
                (0, want),
                (0, Step::Want(outside, DEFAULT)),
                (8_000, Step::Want(inside, other)),
            ],
            vec![],
        ),
        (
            "policy: delete",
            vec![(0, want), (8_000, Step::Delete(inside))],
            vec![],
        ),
        (
            "policy: the definition comes later",
            vec![(2_000, want), (5_000, Step::Want(outside, DEFAULT))],
            vec![Fault::World(1, WorldFault::DefinitionAway(20_000))],
        ),
        (
            "policy: edited by somebody",
            vec![(0, want)],
            vec![Fault::World(9_000, WorldFault::Edit(0, 4))],
        ),
    ]
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
        about: vec![scenario.about],
        patience: scenario.patience.filter(|_| are_late).or(recovery),
        defect: None,
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
