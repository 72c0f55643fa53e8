//! Input that nobody in their right mind would send.

mod answers;
mod messages;
mod names;
mod obstacles;
mod peers;
mod pods;

use krane_testharness::{Agent, Failure, LogLine, Outcome, eventually, limits};

/// Waits until a gauge of the deployments controller has this value.
async fn gauge(agent: &Agent, name: &str, expected: f64) -> Outcome {
    eventually(name, limits::LONG, async || {
        let metrics = agent
            .metrics()
            .await
            .map_err(|failure| failure.to_string())?;
        let found = metrics.deployments(name);
        if (found - expected).abs() < f64::EPSILON {
            Ok(())
        } else {
            Err(format!("{found}, not {expected}"))
        }
    })
    .await
}

/// Waits for a line of the log.
async fn logged(agent: &Agent, what: &str, is_it: impl Fn(&LogLine) -> bool) -> Outcome<LogLine> {
    eventually(what, limits::SHORT, async || {
        let lines = agent.log().lines().map_err(|error| error.to_string())?;
        lines
            .into_iter()
            .find(|line| is_it(line))
            .ok_or_else(|| "no such line".to_owned())
    })
    .await
}

/// Whatever came, nothing panicked, and no line broke out of its JSON.
fn no_panic(agent: &Agent) -> Outcome {
    let strays = agent.log().strays()?;
    let panics: Vec<_> = agent
        .log()
        .text()?
        .lines()
        .filter(|line| line.contains("panicked") || line.contains("made krane panic"))
        .map(str::to_owned)
        .collect();
    if strays.is_empty() && panics.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(format!(
            "strays: {strays:#?}, panics: {panics:#?}"
        )))
    }
}
