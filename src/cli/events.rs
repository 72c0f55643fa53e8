//! `krane events`

use std::process::ExitCode;

use clap::Args;

use super::admin::{AskError, block_on};
use super::growing::{Growing, GrowingFlags};
use super::named::{Typed, parse};
use super::output::Terminal;
use super::told::{self, mark};

/// Shows what happened lately, the newest last.
#[derive(Debug, Args)]
pub(super) struct Events {
    /// Only those with all of these words in object, actor, controller, kind or text.
    #[arg(value_name = "WORD")]
    words: Vec<String>,

    /// Only those about this object: web, shop/web, deployment/web.
    #[arg(long = "for", value_name = "[KIND/|NAMESPACE/]NAME", value_parser = parse)]
    about: Option<Typed>,

    /// Its namespace.
    #[arg(short, long, value_name = "NAME", requires = "about")]
    namespace: Option<String>,

    #[command(flatten)]
    list: GrowingFlags,
}

impl Events {
    pub(super) fn execute(&self, terminal: &Terminal) -> ExitCode {
        block_on(terminal, self.run(terminal))
    }

    async fn run(&self, terminal: &Terminal) -> Result<ExitCode, AskError> {
        let mut words = self.words.clone();
        words.extend(self.about.iter().map(|about| about.name().to_owned()));
        let list = Growing {
            path: "/api/v1/events",
            name: "events",
            kind: "EventList",
        };
        let is_shown = |event: &told::Event| {
            let is_calm = told::is_calm(&event.level);
            (!self.list.warnings || !is_calm) && self.is_about(event)
        };
        let lines = |events: &[&told::Event]| lines(events.iter().copied(), true);
        self.list
            .print(&list, &words, terminal, is_shown, lines)
            .await
    }

    fn is_about(&self, event: &told::Event) -> bool {
        let Some(about) = &self.about else {
            return true;
        };
        let object = event.object.as_deref().unwrap_or_default();
        let object = object.rsplit(' ').next().unwrap_or(object);
        about.is(object, self.namespace.as_deref())
    }
}

/// One line per event.
pub(super) fn lines<'a>(
    events: impl IntoIterator<Item = &'a told::Event>,
    says_whose: bool,
) -> String {
    let line = |event: &told::Event| {
        let whose = [&event.object, &event.actor, &event.controller];
        let whose = whose.into_iter().find_map(Option::as_deref);
        let whose = whose
            .filter(|_| says_whose)
            .map(|whose| format!("{whose}: "));
        let version = event.version.map(|version| format!(" (version {version})"));
        format!(
            "  {} {} {}{}{}\n",
            event.at.strftime("%H:%M:%S"),
            mark(&event.level),
            whose.unwrap_or_default(),
            event.text,
            version.unwrap_or_default(),
        )
    };
    events.into_iter().map(line).collect()
}
