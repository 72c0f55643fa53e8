//! The crowd on the stage.

use std::time::Duration;

use krane_proto::ctrl::v1::ApplyDeployment;
use krane_sim::control_plane::samples;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::Stage;
use super::wanted::is_like;
use crate::crowd::reference;

/// How often changes are sent: several at once when there are many.
const BEAT: Duration = Duration::from_millis(50);

impl Stage {
    /// The control plane wants the whole crowd.
    pub(crate) fn want_crowd(&self) {
        let states = self.crowd.states();
        self.control
            .push_all(states.into_iter().map(samples::apply));
    }

    /// The control plane changes one after the other, for ever.
    pub(crate) async fn change_crowd(&self) {
        let a_second = f64::from(self.crowd.options().changes_per_second);
        let (start, mut sent) = (Instant::now(), 0.0);
        let mut beat = interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            beat.tick().await;
            let due = start.elapsed().as_secs_f64() * a_second;
            while sent + 1.0 <= due {
                sent += 1.0;
                if let Some(state) = self.crowd.change() {
                    self.control.push(samples::apply(state));
                }
            }
        }
    }

    /// Waits until the whole crowd is in place and told. How long it took; nothing when one of it does not get there, such as one on hold.
    pub(crate) async fn crowd_settled(&self) -> Option<Duration> {
        let start = Instant::now();
        for state in self.crowd.states() {
            self.until(|| self.has(&state) && self.is_told_of(&state))
                .await?;
        }
        Some(start.elapsed())
    }

    /// Whether the cluster has this one as it is wanted.
    pub(super) fn has(&self, app: &ApplyDeployment) -> bool {
        let live = self.cluster.get(&reference(app));
        live.is_some_and(|live| is_like(&live, &app.image, app.replicas))
    }

    /// Whether the control plane was told that all of this one runs.
    pub(super) fn is_told_of(&self, app: &ApplyDeployment) -> bool {
        self.control.look(|seen| {
            let report = seen.report(&app.k8s_name);
            let instances = report.map_or(0, |report| report.instances().len());
            i32::try_from(instances) == Ok(app.replicas) && seen.running(&app.k8s_name)
        })
    }
}
