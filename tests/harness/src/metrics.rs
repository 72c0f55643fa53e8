//! A scrape.

use std::collections::BTreeMap;

/// Samples by name and labels, as the exposition writes them: `krane_stream_cursor{controller="deployments"}`.
#[derive(Clone, Debug, Default)]
pub struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    pub(crate) fn parse(text: &str) -> Self {
        let sample = |line: &str| {
            let (series, value) = line.rsplit_once(' ')?;
            Some((series.to_owned(), value.parse().ok()?))
        };
        Self(
            text.lines()
                .filter(|line| !line.starts_with('#'))
                .filter_map(sample)
                .collect(),
        )
    }

    /// The sample of one series.
    pub fn get(&self, series: &str) -> Option<f64> {
        self.0.get(series).copied()
    }

    /// The sample of a series labelled with the controller of deployments alone; 0 when there is none.
    pub fn deployments(&self, name: &str) -> f64 {
        self.get(&format!("{name}{{controller=\"deployments\"}}"))
            .unwrap_or(0.0)
    }

    /// The sum over all series of a name, whatever their labels.
    pub fn sum(&self, name: &str) -> f64 {
        let of_name = |series: &str| {
            series
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('{'))
        };
        self.0
            .iter()
            .filter(|(series, _)| of_name(series))
            .map(|(_, value)| value)
            .sum()
    }

    /// All series.
    pub fn series(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0
            .iter()
            .map(|(series, value)| (series.as_str(), *value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_found_by_series_and_summed_by_name() {
        let metrics = Metrics::parse(
            "# HELP a x\na{b=\"c\"} 2\na{b=\"d e\"} 0.5\na_total 7\nk{controller=\"deployments\"} 3\n",
        );
        assert_eq!(metrics.get("a{b=\"d e\"}"), Some(0.5));
        assert!((metrics.sum("a") - 2.5).abs() < f64::EPSILON);
        assert!((metrics.deployments("k") - 3.0).abs() < f64::EPSILON);
        assert!(metrics.deployments("none").abs() < f64::EPSILON);
    }
}
