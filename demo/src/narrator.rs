//! What the demo says: one line per event, for a person or for a script.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use tokio::time::Instant;

use super::summary::Summary;

/// Lines of the story that the page shows.
const SHOWN: usize = 3;

/// Who did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Who {
    ControlPlane,
    Krane,
    /// A person with kubectl.
    Someone,
    /// Pods, nodes and the API server.
    Cluster,
    /// The story itself, where it plays a mischievous hand.
    Chaos,
    /// Whoever presses a button of the page.
    You,
    /// The story about itself.
    Story,
}

impl Who {
    const fn word(self) -> &'static str {
        match self {
            Self::ControlPlane => "control plane",
            Self::Krane => "krane",
            Self::Someone => "someone",
            Self::Cluster => "cluster",
            Self::Chaos => "chaos",
            Self::You => "you",
            Self::Story => "story",
        }
    }

    /// What makes a sentence of what it does.
    const fn subject(self) -> &'static str {
        match self {
            Self::ControlPlane => "the control plane ",
            Self::Krane => "krane ",
            Self::Someone => "someone ",
            // Something of it is named already: "a pod of web crashes".
            Self::Cluster => "",
            Self::Chaos => "chaos ",
            Self::You => "you: ",
            Self::Story => "the story ",
        }
    }

    /// SGR parameters of its colour.
    const fn style(self) -> &'static str {
        match self {
            Self::ControlPlane => "36",
            Self::Krane => "1;32",
            Self::Someone | Self::Cluster => "33",
            Self::Chaos | Self::You => "35",
            Self::Story => "2",
        }
    }
}

/// How events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text {
        /// Whether colours help.
        color: bool,
    },
    /// One JSON object per line.
    Json,
}

/// What a person needs to look further.
#[derive(Debug, Serialize)]
pub(super) struct Links {
    pub(super) page: String,
    pub(super) metrics: String,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Frame<'a> {
    Started {
        seed: u64,
        #[serde(flatten)]
        links: &'a Links,
    },
    Interrupted {
        elapsed_ms: u128,
    },
}

#[derive(Serialize)]
struct Line<'a> {
    at_ms: u128,
    who: Who,
    event: &'a str,
    what: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    took_ms: Option<u128>,
}

/// Tells the story to a stream, usually stdout.
pub(super) struct Narrator {
    format: Format,
    start: Instant,
    out: Mutex<Box<dyn Write + Send>>,
    /// What went on by itself, newest first.
    story: Mutex<VecDeque<String>>,
}

impl Narrator {
    pub(super) fn new(format: Format, out: Box<dyn Write + Send>) -> Self {
        Self {
            format,
            start: Instant::now(),
            out: Mutex::new(out),
            story: Mutex::default(),
        }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// What goes on by itself, newest first: neither krane's deeds nor a visitor's.
    pub(super) fn story(&self) -> Vec<String> {
        self.story.lock().iter().cloned().collect()
    }

    /// The first words, with the links.
    pub(super) fn open(&self, seed: u64, links: &Links, ends: bool) -> io::Result<()> {
        let end = if ends { "" } else { " Ctrl-C ends it." };
        match self.format {
            Format::Json => self.json(&Frame::Started { seed, links }),
            Format::Text { .. } => self.text(&format!(
                "\n  {} · seed {seed}\n  A cluster, a control plane and krane between them, all \
                 in this process.{end}\n\n    {}  {}\n    {}  {}\n    {}  krane status --admin {}\n",
                self.paint("1", "krane demo"),
                self.paint("1", "live page"),
                self.paint("4", &links.page),
                self.paint("2", "metrics  "),
                self.paint("2", &links.metrics),
                self.paint("2", "ask it   "),
                links.page.trim_start_matches("http://").trim_end_matches('/'),
            )),
        }
    }

    /// Sets the next episode apart.
    pub(super) fn pause(&self) -> io::Result<()> {
        match self.format {
            Format::Json => Ok(()),
            Format::Text { .. } => self.text(""),
        }
    }

    /// One event: a name for scripts, a sentence for people, and how long it took.
    pub(super) fn say(
        &self,
        who: Who,
        event: &str,
        what: &str,
        took: Option<Duration>,
    ) -> io::Result<()> {
        let at = self.elapsed();
        if !matches!(who, Who::Krane | Who::You) {
            let mut story = self.story.lock();
            story.push_front(format!("{}{what}", who.subject()));
            story.truncate(SHOWN);
        }
        match self.format {
            Format::Json => self.json(&Line {
                at_ms: at.as_millis(),
                who,
                event,
                what,
                took_ms: took.map(|took| took.as_millis()),
            }),
            Format::Text { .. } => {
                let time = format!("{:6.1} s", at.as_secs_f64());
                let name = format!("{:<13}", who.word());
                let took = took.map_or_else(String::new, |took| {
                    self.paint("2", &format!("  {}", readable(took)))
                });
                self.text(&format!(
                    "{}  {}  {what}{took}",
                    self.paint("2", &time),
                    self.paint(who.style(), &name),
                ))
            }
        }
    }

    /// The last words when somebody has seen enough.
    pub(super) fn interrupted(&self) -> io::Result<()> {
        match self.format {
            Format::Json => self.json(&Frame::Interrupted {
                elapsed_ms: self.elapsed().as_millis(),
            }),
            Format::Text { .. } => self.text("\n  ended, nothing is left behind\n"),
        }
    }

    /// The last words.
    pub(super) fn close(&self, summary: &Summary) -> io::Result<()> {
        match self.format {
            Format::Json => self.json(summary),
            Format::Text { .. } => {
                let (mark, style) = if summary.ok {
                    ("✔", "1;32")
                } else {
                    ("✗", "1;31")
                };
                let mut text = format!("  {} {}\n", self.paint(style, mark), summary.sentence());
                for open in &summary.open {
                    let _ = writeln!(text, "    {} {open}", self.paint("31", "·"));
                }
                self.text(&text)
            }
        }
    }

    fn json(&self, value: &impl Serialize) -> io::Result<()> {
        let line = serde_json::to_string(value).map_err(io::Error::other)?;
        self.text(&line)
    }

    fn text(&self, text: &str) -> io::Result<()> {
        let mut out = self.out.lock();
        writeln!(out, "{text}")?;
        out.flush()
    }

    fn paint(&self, style: &str, text: &str) -> String {
        if self.format == (Format::Text { color: true }) {
            format!("\x1b[{style}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// As many digits as anyone reads.
pub(super) fn readable(took: Duration) -> String {
    match took.as_millis() {
        0..10 => "at once".to_owned(),
        millis @ 10..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", took.as_secs_f64()),
    }
}
