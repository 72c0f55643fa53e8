//! Two whole agents on one Lease (D22): what becomes of both when they are paused, killed, cut off
//! and not answered, by a seed. Virtual time is the same for all of them.

mod driver;
mod fate;
mod plan;
mod scene;
mod side;
mod ways;

use std::collections::BTreeMap;

use crate::planted::plant;

/// Everything that happens to a process, by name.
pub const STRIKES: [&str; 10] = plan::Blow::NAMES;

/// How two processes got along.
#[derive(Clone, Debug)]
pub struct Rivalry {
    /// What did not hold, and how.
    pub violation: Option<String>,
    /// Hash of the whole trace.
    pub hash: u64,
    /// What struck, and what came of it.
    pub counts: BTreeMap<&'static str, u64>,
    /// The trace.
    pub trace: Vec<String>,
}

/// Ten virtual minutes of trouble, and what comes after it. Everything follows from the seed.
pub fn rivalry(seed: u64, defect: Option<&'static str>) -> Rivalry {
    plant(defect);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(driver::live(seed)),
        Err(problem) => unreachable!("no runtime: {problem}"),
    }
}
