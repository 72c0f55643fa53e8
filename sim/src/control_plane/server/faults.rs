//! What goes wrong on purpose.

use std::{collections::BTreeMap, time::Duration};

use tonic::Code;

use super::Method;

/// The faults of every method.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    failing: BTreeMap<Method, (Code, u32)>,
    slow: BTreeMap<Method, Duration>,
}

impl Faults {
    pub(crate) fn fail(&mut self, method: Method, code: Code, times: u32) {
        self.failing.insert(method, (code, times));
    }

    pub(crate) fn delay(&mut self, method: Method, delay: Duration) {
        self.slow.insert(method, delay);
    }

    pub(crate) fn heal(&mut self) {
        *self = Self::default();
    }

    /// The code this request has to end with, if any.
    pub(crate) fn take(&mut self, method: Method) -> Option<Code> {
        let (code, times) = self.failing.get_mut(&method)?;
        let code = *code;
        // `u32::MAX` stands for ever.
        if *times != u32::MAX {
            *times -= 1;
        }
        if *times == 0 {
            self.failing.remove(&method);
        }
        Some(code)
    }

    pub(crate) fn delay_of(&self, method: Method) -> Option<Duration> {
        self.slow.get(&method).copied()
    }
}
