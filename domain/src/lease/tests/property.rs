//! Electors on one Lease, with delays, lost requests and answers, pauses, and clocks that started
//! at different times and run at slightly different rates.

use proptest::prelude::*;

use super::*;

/// How one request goes, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Luck {
    /// Until it takes effect …
    to: u64,
    /// … and until its answer arrives.
    back: u64,
    is_lost: bool,
    is_answer_lost: bool,
    /// How long the process stands still before it hears of the outcome.
    pause: u64,
}

/// When the faults are over.
const CALM: Luck = Luck {
    to: 5,
    back: 5,
    is_lost: false,
    is_answer_lost: false,
    pause: 0,
};

fn luck() -> impl Strategy<Value = Luck> {
    let delay = || prop_oneof![8 => 0u64..200, 2 => 0u64..3_000, 1 => 0u64..40_000];
    let pause = prop_oneof![20 => Just(0u64), 1 => 0u64..60_000];
    (delay(), delay(), 0u8..20, 0u8..20, pause).prop_map(|(to, back, lost, mute, pause)| Luck {
        to,
        back,
        is_lost: lost == 0,
        is_answer_lost: mute == 0,
        pause,
    })
}

/// One process: its clock shows `start` plus the real time, at most 2 % off.
#[derive(Debug)]
struct Process {
    elector: Elector,
    start: u64,
    rate: f64,
    luck: Vec<Luck>,
    turns: usize,
}

impl Process {
    fn local(&self, real: u64) -> Moment {
        Duration::from_millis(self.start) + Duration::from_millis(real).mul_f64(self.rate)
    }

    fn real(&self, local: Moment) -> u64 {
        let passed = local.saturating_sub(Duration::from_millis(self.start));
        u64::try_from(passed.div_f64(self.rate).as_millis()).unwrap()
    }

    fn next_luck(&mut self) -> Luck {
        self.turns += 1;
        self.luck[self.turns % self.luck.len()]
    }
}

#[derive(Debug)]
enum Happens {
    Turn,
    Effect { made: Move, began: u64 },
    Heard { answer: Answer, began: u64 },
}

#[derive(Debug)]
enum Answer {
    /// It is on its way.
    None,
    Read(Option<Record>),
    Wrote(Record),
    Failed(Failure),
}

/// The Lease as the API server keeps it: a write needs the version it was made for.
#[derive(Default)]
struct Server {
    record: Option<Record>,
    writes: u64,
}

impl Server {
    fn carry_out(&mut self, made: &Move) -> Answer {
        match (made, &self.record) {
            (Move::Look, found) => return Answer::Read(found.clone()),
            (Move::Create(_), None) => {}
            (Move::Update { version, .. }, Some(found)) if found.version == *version => {}
            (Move::Create(_) | Move::Update { .. }, _) => return Answer::Failed(Failure::Conflict),
        }
        self.writes += 1;
        let record = after(self.writes, made);
        self.record = Some(record.clone());
        Answer::Wrote(record)
    }
}

/// Who could write, and from when to when.
type Windows = Vec<(usize, u64, u64)>;

struct World {
    processes: Vec<Process>,
    server: Server,
    agenda: Vec<(u64, usize, Happens)>,
    windows: Windows,
}

impl World {
    fn new(processes: Vec<Process>) -> Self {
        let turns = (0..processes.len()).map(|who| (0, who, Happens::Turn));
        Self {
            agenda: turns.collect(),
            processes,
            server: Server::default(),
            windows: Windows::new(),
        }
    }

    fn run(&mut self, calm_at: u64, end: u64) {
        while let Some(next) = (0..self.agenda.len()).min_by_key(|index| self.agenda[*index].0) {
            let (now, who, what) = self.agenda.remove(next);
            if now > end {
                return;
            }
            match what {
                Happens::Turn => self.turn(who, now, now >= calm_at),
                Happens::Effect { made, began } => {
                    let result = self.server.carry_out(&made);
                    let waiting = self
                        .agenda
                        .iter_mut()
                        .find_map(|(_, whose, what)| match what {
                            Happens::Heard { answer, began: of }
                                if *whose == who && *of == began =>
                            {
                                Some(answer)
                            }
                            Happens::Turn | Happens::Effect { .. } | Happens::Heard { .. } => None,
                        });
                    if let Some(answer @ Answer::None) = waiting {
                        *answer = result;
                    }
                }
                Happens::Heard { answer, began } => self.heard(who, now, answer, began),
            }
        }
    }

    fn turn(&mut self, who: usize, now: u64, is_calm: bool) {
        let process = &mut self.processes[who];
        let made = process.elector.next(process.local(now));
        let luck = process.next_luck();
        let luck = if is_calm { CALM } else { luck };
        let limit = u64::try_from(TIMING.request().as_millis()).unwrap();
        let is_in_time = luck.to + luck.back <= limit;
        if !luck.is_lost {
            let effect = Happens::Effect { made, began: now };
            self.agenda.push((now + luck.to, who, effect));
        }
        let (answer, took) = if luck.is_lost || luck.is_answer_lost || !is_in_time {
            (Answer::Failed(Failure::Unknown), limit)
        } else {
            (Answer::None, luck.to + luck.back)
        };
        let heard = Happens::Heard { answer, began: now };
        self.agenda.push((now + took + luck.pause, who, heard));
    }

    fn heard(&mut self, who: usize, now: u64, answer: Answer, began: u64) {
        let process = &mut self.processes[who];
        let (sent_at, at) = (process.local(began), process.local(now));
        match answer {
            Answer::Read(record) => process.elector.read(record, at),
            Answer::Wrote(record) => process.elector.wrote(record, sent_at, at),
            Answer::Failed(failure) => process.elector.write_failed(failure),
            Answer::None => process.elector.read_failed(),
        }
        if let Some(until) = until(&process.elector).filter(|until| *until > at) {
            self.windows.push((who, now, process.real(until)));
        }
        let at = process.elector.next_at(sent_at, at, 0.5);
        let due = process.real(at).max(now + 1);
        self.agenda.push((due, who, Happens::Turn));
    }

    fn leading(&self, now: u64) -> usize {
        let leads = |process: &&Process| {
            let at = process.local(now);
            until(&process.elector).is_some_and(|until| until > at)
        };
        self.processes.iter().filter(leads).count()
    }
}

fn processes() -> impl Strategy<Value = Vec<Process>> {
    let one = (
        0u64..100_000,
        0.98f64..1.02,
        prop::collection::vec(luck(), 1..60),
    );
    let process = |(index, (start, rate, luck)): (usize, (u64, f64, Vec<Luck>))| Process {
        elector: elector(&format!("p{index}")),
        start,
        rate,
        luck,
        turns: 0,
    };
    prop::collection::vec(one, 2..4)
        .prop_map(move |several| several.into_iter().enumerate().map(process).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]
    /// Never two at once, and one again soon after the faults stop.
    #[test]
    fn windows_never_overlap_and_somebody_leads_again_when_faults_stop(processes in processes()) {
        let mut world = World::new(processes);
        world.run(300_000, 420_000);
        for (index, (who, from, to)) in world.windows.iter().enumerate() {
            for (other, other_from, other_to) in &world.windows[index + 1..] {
                prop_assert!(
                    who == other || from >= other_to || other_from >= to,
                    "{} may write in {}..{}, {} in {}..{}", who, from, to, other, other_from, other_to
                );
            }
        }
        prop_assert_eq!(world.leading(420_000), 1);
    }
}
