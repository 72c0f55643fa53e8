//! Figures, their targets, a table and JSON.

use std::{fmt, time::Duration};

use serde_json::{Value, json};

/// What a figure must be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    Below(f64),
    AtLeast(f64),
    /// Printed for comparison only.
    None,
}

/// One line of the table.
#[derive(Clone, Debug)]
struct Figure {
    name: String,
    unit: &'static str,
    values: Vec<f64>,
    p50: Target,
    p99: Target,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Figures(Vec<Figure>);

impl Figures {
    /// A single number.
    pub(crate) fn number(&mut self, name: &str, unit: &'static str, value: f64, target: Target) {
        let figure = Figure {
            name: name.to_owned(),
            unit,
            values: vec![value],
            p50: target,
            p99: Target::None,
        };
        println!("  {figure}");
        self.0.push(figure);
    }

    /// Durations, with targets of their median and 99th percentile in milliseconds.
    pub(crate) fn durations(
        &mut self,
        name: &str,
        durations: impl IntoIterator<Item = Duration>,
        p50: Target,
        p99: Target,
    ) {
        let mut values: Vec<f64> = durations
            .into_iter()
            .map(|duration| duration.as_secs_f64() * 1000.0)
            .collect();
        values.sort_by(f64::total_cmp);
        let figure = Figure {
            name: name.to_owned(),
            unit: "ms",
            values,
            p50,
            p99,
        };
        println!("  {figure}");
        self.0.push(figure);
    }

    /// For machines.
    pub(crate) fn json(&self) -> String {
        let figures: Vec<Value> = self.0.iter().map(Figure::json).collect();
        format!("{:#}\n", json!({"figures": figures}))
    }
}

impl Figure {
    /// The value below which this share of them is.
    fn quantile(&self, share: f64) -> f64 {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index of a few hundred values"
        )]
        let index = ((self.values.len() as f64 * share).ceil() as usize).saturating_sub(1);
        self.values.get(index).copied().unwrap_or(f64::NAN)
    }

    fn is_met(&self) -> Option<bool> {
        let met = |target: Target, value: f64| match target {
            Target::Below(limit) => Some(value < limit),
            Target::AtLeast(limit) => Some(value >= limit),
            Target::None => None,
        };
        let both = [
            met(self.p50, self.quantile(0.5)),
            met(self.p99, self.quantile(0.99)),
        ];
        both.into_iter().flatten().reduce(|all, one| all && one)
    }

    fn json(&self) -> Value {
        let target = |target: Target| match target {
            Target::Below(limit) => json!({"below": limit}),
            Target::AtLeast(limit) => json!({"at_least": limit}),
            Target::None => Value::Null,
        };
        json!({
            "name": self.name, "unit": self.unit, "count": self.values.len(),
            "p50": self.quantile(0.5), "p99": self.quantile(0.99), "max": self.quantile(1.0),
            "target_p50": target(self.p50), "target_p99": target(self.p99), "met": self.is_met(),
        })
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.is_met() {
            Some(true) => "✓",
            Some(false) => "✗",
            None => " ",
        };
        let Self {
            name, unit, values, ..
        } = self;
        write!(f, "{mark} {name:<58}")?;
        if let [value] = values.as_slice() {
            write!(f, "{value:>10.2} {unit}")?;
        } else {
            let (p50, p99, max) = (self.quantile(0.5), self.quantile(0.99), self.quantile(1.0));
            write!(
                f,
                "{p50:>10.1} {p99:>8.1} {max:>8.1} {unit}  of {}",
                values.len()
            )?;
        }
        for (name, target) in [("", self.p50), ("p99 ", self.p99)] {
            match target {
                Target::Below(limit) => write!(f, "  ({name}< {limit})")?,
                Target::AtLeast(limit) => write!(f, "  ({name}≥ {limit})")?,
                Target::None => {}
            }
        }
        Ok(())
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {:<58}{:>10} {:>8} {:>8}", "", "p50", "p99", "max")?;
        for figure in &self.0 {
            writeln!(f, "{figure}")?;
        }
        Ok(())
    }
}
