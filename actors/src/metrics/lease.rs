//! Who writes, read when it is scraped.

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntGauge, IntGaugeVec, Opts};

use crate::lease::Leadership;
use crate::status::StatusBoard;

/// Reads the standing of this process at every scrape.
#[derive(Debug)]
pub struct LeaseCollector {
    leadership: Leadership,
    board: StatusBoard,
    observes: bool,
    held: IntGauge,
    status: IntGaugeVec,
}

impl LeaseCollector {
    /// A collector for this leadership. A process that observes holds nothing.
    pub fn new(
        leadership: Leadership,
        board: StatusBoard,
        observes: bool,
    ) -> Result<Self, prometheus::Error> {
        let held = IntGauge::new(
            "krane_lease_held",
            "Whether this process may write: it holds the lease, or no lease is in use.",
        )?;
        let options = Opts::new(
            "leader_election_master_status",
            "Whether this process holds the lease; absent when no lease is in use.",
        );
        Ok(Self {
            leadership,
            board,
            observes,
            held,
            status: IntGaugeVec::new(options, &["name"])?,
        })
    }
}

impl Collector for LeaseCollector {
    fn desc(&self) -> Vec<&Desc> {
        let mut all = self.held.desc();
        all.extend(self.status.desc());
        all
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let is_leader = !self.observes && self.leadership.is_leader(self.board.now());
        let is_leader = i64::from(is_leader);
        self.held.set(is_leader);
        let mut families = self.held.collect();
        if self.leadership.shown().is_some() {
            let name = krane_domain::labels::LEASE_NAME;
            self.status.with_label_values(&[name]).set(is_leader);
            families.extend(self.status.collect());
        }
        families
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_observes_holds_nothing() {
        for (observes, held) in [(false, 1.0), (true, 0.0)] {
            let (leadership, board) = (Leadership::default(), StatusBoard::new());
            let collector = LeaseCollector::new(leadership, board, observes).unwrap();
            let families = collector.collect();
            let value = families[0].get_metric()[0].get_gauge().get_value();
            assert_eq!((families.len(), value), (1, held));
        }
    }
}
