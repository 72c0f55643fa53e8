//! Trouble, and then none: two processes are struck, and in the end one of them has done everything.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use krane_domain::ids::{Controller, ObjectKey};
use krane_domain::object::ObjectRef;
use krane_sim::control_plane::SimControlPlane;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::Rivalry;
use super::plan::{self, Blow, Target};
use super::scene::Scene;
use super::side::Side;
use crate::assembly;
use crate::kinds::index;
use crate::wishes::{round_in, want};

/// How long there is trouble.
const TROUBLE: Duration = Duration::from_mins(10);
/// How long it may take then until everything is in place.
const CONVERGENCE: Duration = Duration::from_secs(180);
/// How long nothing may be written when everything is.
const SILENCE: Duration = Duration::from_secs(120);
/// How soon the other one writes after a clean end.
const CLEAN_HANDOVER: Duration = Duration::from_secs(3);
/// How often things are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Objects of each controller.
const OBJECTS: u64 = 5;

struct Driver {
    scene: Arc<Scene>,
    chance: Rng,
    seed: u64,
    started: u64,
    sides: [Option<Side>; 2],
    /// When a place is taken again that is empty.
    due: [Instant; 2],
    /// The round that is wanted of each object; nothing when it is to be gone.
    wanted: BTreeMap<(Controller, ObjectKey), Option<u64>>,
    rounds: u64,
}

/// A whole run.
pub(super) async fn live(seed: u64) -> Rivalry {
    let mut tasks = JoinSet::new();
    let cluster = assembly::cluster(seed, &mut tasks);
    let scene = Arc::new(Scene::new(cluster, seed));
    let now = Instant::now();
    let mut driver = Driver {
        scene: Arc::clone(&scene),
        chance: Rng::with_seed(seed),
        seed,
        started: 0,
        sides: [None, None],
        due: [now, now + Duration::from_secs(2)],
        wanted: BTreeMap::new(),
        rounds: 0,
    };
    let done = async {
        driver.trouble().await?;
        driver.quiet().await
    };
    if let Err(text) = done.await {
        scene.violate(text);
    }
    for side in driver.sides.iter().flatten() {
        side.bury();
    }
    scene.result()
}

impl Driver {
    async fn trouble(&mut self) -> Result<(), String> {
        let began = Instant::now();
        let mut blows = plan::at_random(&mut self.chance, TROUBLE)
            .into_iter()
            .peekable();
        let mut wish_at = began;
        while began.elapsed() < TROUBLE {
            let look = Instant::now() + LOOK;
            sleep_until(
                blows
                    .peek()
                    .map_or(look, |(at, ..)| (began + *at).min(look)),
            )
            .await;
            self.check()?;
            self.fill_places().await?;
            if wish_at <= Instant::now() {
                self.wish();
                wish_at = Instant::now() + Duration::from_millis(self.chance.u64(200..4_000));
            }
            while let Some((_, target, blow)) = blows.next_if(|(at, ..)| began.elapsed() >= *at) {
                self.strike(target, blow).await;
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.scene.violation().map_or(Ok(()), Err)
    }

    async fn fill_places(&mut self) -> Result<(), String> {
        for place in 0..self.sides.len() {
            if self.sides[place].is_none() && self.due[place] <= Instant::now() {
                self.started += 1;
                let side = Side::start(&self.scene, self.started, self.seed).await?;
                self.sides[place] = Some(side);
            }
        }
        Ok(())
    }

    fn wish(&mut self) {
        let who = Controller::ALL[self.chance.usize(..3)];
        let number = self.chance.u64(..OBJECTS);
        let name = format!("{}{number}", who.name());
        let control = &self.scene.controls[index(who)];
        self.rounds += 1;
        let key = want(who, control, &name, self.rounds);
        let is_gone = self.chance.u8(..6) == 0;
        if is_gone {
            control.delete(&key);
        }
        self.scene
            .note(&format!("wanted: {key} in {} {is_gone}", self.rounds));
        let round = (!is_gone).then_some(self.rounds);
        self.wanted.insert((who, key), round);
    }

    async fn strike(&mut self, target: Target, blow: Blow) {
        let leader = || {
            self.sides
                .iter()
                .position(|it| it.as_ref().is_some_and(Side::leads))
        };
        let place = match target {
            Target::Leader => leader(),
            Target::Place(place) => Some(place),
        };
        let Some(place) = place else { return };
        let Some(side) = &self.sides[place] else {
            return;
        };
        self.scene.count(blow.name());
        self.scene
            .note(&format!("{}: {blow:?}", side.fate.identity));
        side.fate.strike(blow);
        let pause = Duration::from_millis(self.chance.u64(100..10_000));
        match blow {
            Blow::Kill => side.bury(),
            Blow::Stop => drop(side.root.stop().await),
            _ => return,
        }
        self.sides[place] = None;
        self.due[place] = Instant::now() + pause;
    }

    /// Nothing goes wrong any more.
    async fn quiet(&mut self) -> Result<(), String> {
        self.scene.note("quiet");
        self.scene.late.lock().abort_all();
        for side in self.sides.iter().flatten() {
            side.fate.spare();
        }
        self.due = [Instant::now(); 2];
        self.fill_places().await?;
        self.until("L1", CONVERGENCE, Self::difference).await?;
        let leader = self.leader().ok_or("nobody leads")?;
        let writes = self.scene.writes();
        self.rest(SILENCE, writes).await?;
        if self.leader() != Some(leader) {
            return Err("L3: another one leads, and nothing has happened".to_owned());
        }
        // What is in place costs nothing, whoever comes to look after it.
        if let Some(side) = self.sides[leader].take() {
            let _ = side.root.stop().await;
        }
        self.until("L4", CLEAN_HANDOVER, |driver| {
            driver.leader().is_none().then(|| "nobody leads".to_owned())
        })
        .await?;
        self.rest(SILENCE, writes).await?;
        self.difference()
            .map_or(Ok(()), |text| Err(format!("L1 in the end: {text}")))
    }

    fn leader(&self) -> Option<usize> {
        self.sides
            .iter()
            .position(|it| it.as_ref().is_some_and(Side::leads))
    }

    async fn until(
        &self,
        what: &str,
        limit: Duration,
        difference: impl Fn(&Self) -> Option<String>,
    ) -> Result<(), String> {
        let began = Instant::now();
        while let Some(text) = difference(self) {
            self.check()?;
            if began.elapsed() > limit {
                return Err(format!("{what}: after {limit:?} {text}"));
            }
            sleep(LOOK).await;
        }
        self.scene
            .note(&format!("{what} after {:?}", began.elapsed()));
        self.check()
    }

    async fn rest(&self, length: Duration, writes: u64) -> Result<(), String> {
        let began = Instant::now();
        while began.elapsed() < length {
            sleep(LOOK).await;
            self.check()?;
            let now = self.scene.writes();
            if now > writes {
                return Err(format!(
                    "L3: {} writes, and nothing has happened",
                    now - writes
                ));
            }
        }
        Ok(())
    }

    /// What is not as it is wanted.
    fn difference(&self) -> Option<String> {
        let sides = || self.sides.iter().flatten();
        if sides().filter(|side| side.leads()).count() != 1 {
            return Some("not one of them leads".to_owned());
        }
        if let Some(text) = sides().find_map(Side::disorder) {
            return Some(text);
        }
        let controls = self.scene.controls.iter();
        let newest: Vec<u64> = controls.map(SimControlPlane::newest).collect();
        let cursors = sides().find(|side| side.leads()).map(Side::cursors)?;
        if cursors != newest {
            return Some(format!("cursors at {cursors:?}, and newest is {newest:?}"));
        }
        let mut wanted = self.wanted.iter();
        wanted.find_map(|((who, key), round)| self.difference_of(*who, key, *round))
    }

    fn difference_of(
        &self,
        who: Controller,
        key: &ObjectKey,
        wanted: Option<u64>,
    ) -> Option<String> {
        let admin = self.scene.cluster.admin();
        let primary = ObjectRef::new(who.primary(), &*key.namespace, &*key.name);
        let mut objects = who.deleted_first(key);
        objects.push(primary);
        objects.into_iter().find_map(|object| {
            let live = admin.get(&object);
            let round = live.as_ref().map(|live| round_in(who, live));
            (round != wanted.map(Some))
                .then(|| format!("{object} is in round {round:?}, wanted in {wanted:?}"))
        })
    }
}
