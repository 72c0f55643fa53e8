//! A part of the lanes: what may be many must not hold them all.

/// The lanes that work on keys of one sort, of which there may be a quarter of all.
#[derive(Debug, Default)]
pub(super) struct Quarter {
    at_work: usize,
}

impl Quarter {
    /// Whether another one may begin, with this many lanes in all. One may always be at work.
    pub(super) const fn has_room(&self, lanes: usize) -> bool {
        let most = lanes / 4;
        self.at_work < if most == 0 { 1 } else { most }
    }

    /// Lanes at work for it.
    pub(super) const fn at_work(&self) -> usize {
        self.at_work
    }

    pub(super) const fn begin(&mut self) {
        self.at_work += 1;
    }

    pub(super) const fn end(&mut self) {
        self.at_work -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::Quarter;

    #[test]
    fn a_quarter_of_the_lanes_may_be_at_work_and_always_one() {
        for (lanes, most) in [(0, 1), (1, 1), (7, 1), (8, 2), (32, 8)] {
            let mut quarter = Quarter::default();
            for _ in 0..most {
                assert!(quarter.has_room(lanes), "{lanes} lanes");
                quarter.begin();
            }
            assert!(!quarter.has_room(lanes), "{lanes} lanes");
            quarter.end();
            assert!(quarter.has_room(lanes), "{lanes} lanes");
        }
    }
}
