//! Whether the cluster can be seen at all. If not, all that is shown of it is old.

use std::time::Duration;

use krane_actors::outage::PATIENCE;
use krane_domain::words::many;

use super::{Findings, Problem, ProblemKind};
use crate::model::{BrokenWatchView, ControllerView, Level, SilenceView, Stamp};

/// After an outage the watches come back one by one, each when it tries next.
const CATCHING_UP: Duration = Duration::from_secs(10);

/// Finds watches that do not work. Whether the API server answers nobody. `back_at`: when its last
/// outage was over.
pub(super) fn look(
    controllers: &[ControllerView],
    now: Stamp,
    back_at: Option<Stamp>,
    findings: &mut Findings,
) -> bool {
    let silences = controllers.iter().filter_map(|it| silence(it, now));
    let longest = silences.min_by_key(|silence| silence.first);
    let is_catching_up = back_at.is_some_and(|at| now.since(&at) < CATCHING_UP);
    if let Some(longest) = longest {
        away(longest, controllers, findings);
    } else {
        for controller in controllers.iter().filter(|it| it.listed) {
            some_broken(controller, now, is_catching_up, findings);
        }
    }
    longest.is_some()
}

/// What to say of watches that are broken and may be back in a moment: what they show may be old.
pub(super) fn broken_just_now(controllers: &[ControllerView]) -> Option<String> {
    let all = || controllers.iter().flat_map(|it| &it.watches.broken);
    let first = all().map(|watch| watch.since).min()?;
    let watches = many(all().count(), "watch");
    Some(format!(
        "{watches} broken since {} UTC, krane reconnects",
        first.clock()
    ))
}

/// What has been broken for a while, the longest first; before anything was seen, what is broken.
fn broken(controller: &ControllerView, now: Stamp) -> Vec<&BrokenWatchView> {
    let watches = controller.watches.broken.iter();
    watches
        .filter(|watch| !controller.listed || now.since(&watch.since) >= PATIENCE)
        .collect()
}

/// That no watch of it is answered, once that has lasted a while, or as long as nothing was seen.
fn silence(controller: &ControllerView, now: Stamp) -> Option<&SilenceView> {
    let silence = controller.watches.silence.as_ref();
    silence.filter(|it| !controller.listed || now.since(&it.last) >= PATIENCE)
}

fn away(longest: &SilenceView, controllers: &[ControllerView], findings: &mut Findings) {
    let wait = controllers.iter().flat_map(|it| &it.quarantine);
    let waiting = match wait.filter(|it| it.kind == "retrying").count() {
        0 => String::new(),
        count => format!("; {} for it", waits(count)),
    };
    let words = "the Kubernetes API does not answer";
    findings.headline.say(Level::Bad, words);
    let shown = if controllers.iter().any(|it| it.listed) {
        let since = longest.first.clock();
        format!("what is shown of the cluster is as of {since} UTC")
    } else {
        "nothing of the cluster was seen yet".to_owned()
    };
    findings.add(Problem {
        what: "The Kubernetes API does not answer".to_owned(),
        why: Some(format!("{}; {shown}{waiting}", longest.error)),
        remedy: "check the API server and the way to it; krane keeps trying, nothing is lost"
            .to_owned(),
        since: Some(longest.first),
        ..Problem::of(ProblemKind::ApiServerAway, Level::Bad)
    });
}

fn waits(count: usize) -> String {
    let verb = if count == 1 { "waits" } else { "wait" };
    format!("{} {verb}", many(count, "object"))
}

fn some_broken(
    controller: &ControllerView,
    now: Stamp,
    is_catching_up: bool,
    findings: &mut Findings,
) {
    let mut broken = broken(controller, now);
    broken.retain(|watch| watch.refused || !is_catching_up);
    let Some(first) = broken.first() else { return };
    let name = controller.name;
    let words = format!("{} of {name} broken", many(broken.len(), "watch"));
    findings.headline.say(Level::Bad, words);
    let kinds: Vec<&str> = broken.iter().map(|watch| watch.kind).collect();
    findings.add(Problem {
        what: format!("{name} does not see changes of {}", kinds.join(", ")),
        why: Some(format!(
            "{}; what is shown of them is as of {} UTC",
            first.error,
            first.since.clock()
        )),
        remedy: if first.refused {
            "check krane's ClusterRole and its credentials; what needs these kinds is blocked until \
             krane may list them, and nothing is lost"
        } else {
            "check the API server and the way to it; krane keeps trying, nothing is lost"
        }
        .to_owned(),
        since: Some(first.since),
        name: Some(kinds.join(", ")),
        ..Problem::of(ProblemKind::WatchBroken, Level::Bad).about(Some(name))
    });
}

#[cfg(test)]
mod tests {
    use krane_actors::chance::Chance;
    use krane_actors::store::{Store, WatchFailure};
    use krane_domain::ids::Controller;
    use krane_domain::kinds::Rules;
    use krane_domain::object::Resource;

    use super::*;
    use crate::model::{Epoch, controllers};

    /// What is told at second 60 of one watch that broke at second 1.
    fn told(is_refused: bool, back_at: Option<u64>) -> Option<String> {
        let epoch = Epoch::new(1_800_000_000, Duration::ZERO);
        let store = Store::new(
            Controller::Deployments,
            Rules::default(),
            1 << 20,
            Chance::new(7),
        );
        store.listed();
        let text = "no answer".to_owned();
        let failure = WatchFailure { is_refused, text };
        let second = Duration::from_secs;
        store.arrange(|memory| memory.watch_failed(Resource::Pod, failure, second(1)));
        let controllers = [controllers::view(&store.snapshot(), &epoch)];
        let mut findings = Findings::default();
        let back_at = back_at.map(|at| epoch.at(second(at)));
        assert!(!look(
            &controllers,
            epoch.at(second(60)),
            back_at,
            &mut findings
        ));
        findings.headline.sentence().map(|(_, words)| words)
    }

    #[test]
    fn watches_that_come_back_after_an_outage_are_no_problem_for_a_while() {
        let broken = Some("1 watch of deployments broken".to_owned());
        assert_eq!(told(false, None), broken);
        assert_eq!(told(false, Some(55)), None, "it tries again in a moment");
        assert_eq!(told(false, Some(40)), broken, "it had time enough");
        assert_eq!(told(true, Some(55)), broken, "that is no outage");
    }
}
