//! The acts about sentinels, and the policies between them and their apps.

use std::collections::BTreeSet;

use krane_domain::ids::Controller;

use super::{AWAY, Play, Told};
use crate::narrator::Who;
use crate::stage::pause;
use crate::wish::{App, Sentinel, Wish, count};

impl Play<'_> {
    pub(super) async fn guard(&self, sentinels: &[Sentinel], apps: &[App]) -> Told {
        let policies: Vec<_> = apps.iter().flat_map(App::policies).collect();
        let names: Vec<_> = sentinels
            .iter()
            .map(|sentinel| format!("{} ×{}", sentinel.name(), sentinel.replicas))
            .collect();
        if !sentinels.is_empty() {
            let wish = match &names[..] {
                [name] => format!("wants a sentinel before its apps: {name}"),
                names => format!(
                    "wants a sentinel before each environment: {}",
                    names.join(", ")
                ),
            };
            self.say(Who::ControlPlane, "wants", &wish)?;
            self.stage.want(sentinels);
            let took = self.in_place(sentinels).await;
            let what = "made it all: Deployment, Service, disruption budget, gossip";
            self.done("made", what, took)?;
            self.without_secret(&sentinels[0].clone().into()).await?;
        }
        let wish = format!(
            "wants {} policies: only a sentinel reaches its apps",
            policies.len()
        );
        self.say(Who::ControlPlane, "wants", &wish)?;
        self.stage.want(&policies);
        let took = self.in_place(&policies).await;
        self.done("made", "put them in force", took)
    }

    /// The first sentinels find no Secret with their database, until somebody makes it.
    async fn without_secret(&self, sentinel: &Wish) -> Told {
        let lacks = || self.stage.lacking(sentinel).is_some();
        if self.stage.cluster.has_secret() {
            return Ok(());
        }
        let took = self.stage.until(lacks).await;
        let what = format!(
            "knows why {} cannot start: {}",
            sentinel.name(),
            self.stage.lacking(sentinel).as_deref().unwrap_or_default()
        );
        self.done("explained", &what, took)?;
        pause(AWAY).await;
        self.stage.undisturbed().await;
        self.stage.cluster.give_secret();
        let what = "makes that Secret; krane itself may neither read nor write it";
        self.say(Who::Someone, "secret", what)
    }

    /// Tells which sentinels became healthy meanwhile: they have to be ready for 30 s first.
    pub(crate) fn tell_health(&self, told: &mut BTreeSet<String>) -> Told {
        for wish in self.stage.well_of(Controller::Sentinels) {
            let Wish::Sentinel(sentinel) = wish else {
                continue;
            };
            let name = sentinel.name();
            if !self.stage.is_told_healthy(&sentinel) {
                told.remove(&name);
            } else if told.insert(name) {
                let what = format!(
                    "reports {} healthy, its pods have been ready for 30 s",
                    sentinel.name()
                );
                self.say(Who::Krane, "healthy", &what)?;
            }
        }
        Ok(())
    }

    pub(super) async fn roll(&self, sentinel: &Sentinel) -> Told {
        self.stage.want(std::slice::from_ref(sentinel));
        let wish = format!("wants {} at release {}", sentinel.name(), sentinel.tag());
        self.say(Who::ControlPlane, "wants", &wish)?;
        let took = self.in_place(std::slice::from_ref(sentinel)).await;
        let what = format!(
            "changed {}; its pods are replaced one by one, each after the next was ready for 30 s",
            sentinel.name()
        );
        self.done("changed", &what, took)
    }

    pub(super) async fn resize(&self, sentinel: &Sentinel) -> Told {
        self.stage.want(std::slice::from_ref(sentinel));
        let wish = format!("wants {} of {}", count(sentinel.replicas), sentinel.name());
        self.say(Who::ControlPlane, "wants", &wish)?;
        let took = self.in_place(std::slice::from_ref(sentinel)).await;
        let what = format!("scaled {}", sentinel.name());
        self.done("changed", &what, took)
    }
}
