//! What an agent wrote to stderr.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// The log of an agent.
#[derive(Clone, Debug)]
pub struct Log {
    path: PathBuf,
}

/// A line of it.
#[derive(Clone, Debug)]
pub struct LogLine(Value);

impl Log {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All of it.
    pub fn text(&self) -> io::Result<String> {
        match fs::read(&self.path) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(error),
        }
    }

    /// The lines that are JSON.
    pub fn lines(&self) -> io::Result<Vec<LogLine>> {
        let text = self.text()?;
        Ok(text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok().map(LogLine))
            .collect())
    }

    /// The lines that are no JSON: a panic that escaped, the words of an exit.
    pub fn strays(&self) -> io::Result<Vec<String>> {
        let text = self.text()?;
        let is_stray =
            |line: &&str| !line.trim().is_empty() && serde_json::from_str::<Value>(line).is_err();
        Ok(text.lines().filter(is_stray).map(str::to_owned).collect())
    }

    /// Its end, for a message.
    pub fn tail(&self, lines: usize) -> String {
        let text = self.text().unwrap_or_default();
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

impl LogLine {
    /// A field anywhere at the top of the line, or among its `fields`.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.0.get(name).or_else(|| self.0.get("fields")?.get(name))
    }

    /// A field as text.
    pub fn text(&self, name: &str) -> &str {
        self.field(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Upper case or lower, as it was written.
    pub fn level(&self) -> &str {
        self.text("level")
    }

    /// The whole line.
    pub fn json(&self) -> &Value {
        &self.0
    }
}
