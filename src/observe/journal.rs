//! What would have been written, one entry per object, the latest word about each.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use krane_domain::object::ObjectRef;
use krane_domain::words::printable;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

use super::coverage::{Coverage, Obstacle};

/// Paths that an entry shows at most.
const SHOWN: usize = 8;
/// Obstacles that a person is shown at most; a program gets all.
const OBSTACLES_SHOWN: usize = 50;

/// What would have been done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Made.
    Create,
    /// Changed.
    Update,
    /// Deleted.
    Delete,
    /// Nothing: the API server refuses it.
    Refused,
}

/// One object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// What would have been done.
    pub what: What,
    /// Which object, as `Kind namespace/name`.
    pub object: String,
    /// Where it would differ, without values.
    pub paths: Vec<String>,
    /// Why it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Everything at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    api_version: &'static str,
    kind: &'static str,
    /// What was not looked at yet; empty when everything was.
    pub unsettled: Vec<String>,
    /// What krane would not bring about, and why.
    pub obstacles: Vec<Obstacle>,
    /// What would have been written.
    pub entries: Vec<Entry>,
}

/// Filled by all controllers.
#[derive(Debug, Default)]
pub struct Journal {
    entries: Mutex<BTreeMap<ObjectRef, Entry>>,
}

impl Journal {
    pub(super) fn note(&self, object: &ObjectRef, what: What, paths: Vec<String>) {
        self.put(object, what, paths, None);
    }

    pub(super) fn refused(&self, object: &ObjectRef, why: String) {
        self.put(object, What::Refused, Vec::new(), Some(why));
    }

    pub(super) fn forget(&self, object: &ObjectRef) {
        self.entries.lock().remove(object);
    }

    fn put(&self, object: &ObjectRef, what: What, paths: Vec<String>, why: Option<String>) {
        let entry = Entry {
            what,
            object: object.to_string(),
            paths,
            why,
        };
        self.entries.lock().insert(object.clone(), entry);
    }

    /// What there is now, in the order of action and name.
    pub fn summary(&self, coverage: Coverage) -> Summary {
        let mut entries: Vec<Entry> = self.entries.lock().values().cloned().collect();
        entries.sort_by(|one, other| (one.what, &one.object).cmp(&(other.what, &other.object)));
        Summary {
            api_version: "krane/v1",
            kind: "ObserveSummary",
            unsettled: coverage.unsettled,
            obstacles: coverage.obstacles,
            entries,
        }
    }
}

impl Summary {
    /// Whether everything was looked at, and nothing would be written and nothing is in the way.
    pub fn is_calm(&self) -> bool {
        self.unsettled.is_empty() && self.obstacles.is_empty() && self.entries.is_empty()
    }

    /// The summary for a person. Servers may have written parts of it.
    pub fn words(&self) -> String {
        let mut text = String::new();
        self.words_of_coverage(&mut text);
        if self.is_calm() {
            text.push_str("✔ krane would change nothing\n");
        } else if self.entries.is_empty() {
            text.push_str("- krane would write nothing else\n");
        } else {
            line(
                &mut text,
                &format!("‼ krane would write {} objects:", self.entries.len()),
            );
        }
        for entry in &self.entries {
            entry.words(&mut text);
        }
        text
    }

    fn words_of_coverage(&self, text: &mut String) {
        if !self.unsettled.is_empty() {
            line(
                text,
                "✗ not everything was looked at yet; observe for longer:",
            );
        }
        for part in &self.unsettled {
            line(text, &format!("  {part}"));
        }
        if !self.obstacles.is_empty() {
            let number = self.obstacles.len();
            line(
                text,
                &format!("✗ krane would not get past {number} objects:"),
            );
        }
        for it in self.obstacles.iter().take(OBSTACLES_SHOWN) {
            line(
                text,
                &format!("  {:<13} {} of {}", it.state, it.object, it.controller),
            );
            line(text, &format!("                {}", it.why));
        }
        if let Some(more) = self.obstacles.len().checked_sub(OBSTACLES_SHOWN + 1) {
            line(text, &format!("  and {} more", more + 1));
        }
    }
}

impl Entry {
    fn words(&self, text: &mut String) {
        let verb = match self.what {
            What::Create => "create",
            What::Update => "update",
            What::Delete => "delete",
            What::Refused => "refused",
        };
        line(text, &format!("  {verb:<7} {}", self.object));
        for path in self.paths.iter().take(SHOWN) {
            line(text, &format!("            {path}"));
        }
        if self.paths.len() > SHOWN {
            let more = self.paths.len() - SHOWN;
            line(text, &format!("            and {more} more"));
        }
        if let Some(why) = &self.why {
            line(text, &format!("            {why}"));
        }
    }
}

fn line(text: &mut String, words: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}", printable(words));
}

/// Where two objects differ, without what the server alone writes.
pub(super) fn differing(before: &Value, after: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    compare("", before, after, &mut paths);
    let is_servers = |path: &str| {
        ["metadata.managedFields", "metadata.generation", "status"]
            .iter()
            .any(|own| {
                path == *own
                    || path.starts_with(&format!("{own}."))
                    || path.starts_with(&format!("{own}["))
            })
    };
    let owned = paths
        .iter()
        .any(|path| path.starts_with("metadata.managedFields"));
    paths.retain(|path| !is_servers(path));
    if paths.is_empty() && owned {
        paths.push("metadata.managedFields".to_owned());
    }
    paths
}

fn compare(at: &str, before: &Value, after: &Value, paths: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                let dot = if at.is_empty() { "" } else { "." };
                let path = format!("{at}{dot}{key}");
                let [one, other] = [before, after].map(|map| map.get(key).unwrap_or(&Value::Null));
                compare(&path, one, other, paths);
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (number, (one, other)) in before.iter().zip(after).enumerate() {
                compare(&format!("{at}[{number}]"), one, other, paths);
            }
        }
        (before, after) if before == after => {}
        _ => paths.push(at.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use krane_domain::object::Resource;
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_paths_without_what_the_server_writes() {
        let before = json!({
            "metadata": {"generation": 1, "managedFields": [1], "labels": {"a": "1"}},
            "spec": {"replicas": 1, "list": [{"x": 1}, {"x": 2}]}, "status": {"replicas": 1},
        });
        let mut after = before.clone();
        after["metadata"]["generation"] = json!(2);
        after["metadata"]["managedFields"] = json!([2]);
        assert_eq!(differing(&before, &after), ["metadata.managedFields"]);
        after["spec"]["replicas"] = json!(2);
        after["spec"]["list"][1]["x"] = json!(3);
        after["metadata"]["labels"]["b"] = json!("2");
        assert_eq!(
            differing(&before, &after),
            ["metadata.labels.b", "spec.list[1].x", "spec.replicas"]
        );
        assert_eq!(differing(&before, &before), Vec::<String>::new());
    }

    #[test]
    fn the_latest_word_about_an_object_counts() {
        let journal = Journal::default();
        let object = ObjectRef::new(Resource::ReplicaSet, "ws-1", "app-1");
        journal.refused(&object, "quota".to_owned());
        journal.note(&object, What::Update, vec!["spec.replicas".to_owned()]);
        let other = ObjectRef::new(Resource::Namespace, "", "ws-2");
        journal.note(&other, What::Create, Vec::new());
        insta::assert_snapshot!(journal.summary(Coverage::default()).words(), @r"
        ‼ krane would write 2 objects:
          create  Namespace ws-2
          update  ReplicaSet ws-1/app-1
                    spec.replicas
        ");
        journal.forget(&object);
        journal.forget(&other);
        assert!(journal.summary(Coverage::default()).entries.is_empty());
    }

    #[test]
    fn what_is_in_the_way_is_no_calm_and_obeys_no_terminal() {
        let journal = Journal::default();
        let coverage = Coverage {
            unsettled: vec!["deployments: 2 objects are on their way".to_owned()],
            obstacles: vec![Obstacle {
                controller: "deployments",
                object: "ws-1/app-1".to_owned(),
                state: "misconfigured",
                why: "denied \u{1b}[2J\u{202e}by a webhook".to_owned(),
            }],
        };
        let summary = journal.summary(coverage);
        assert!(!summary.is_calm());
        insta::assert_snapshot!(summary.words(), @r"
        ✗ not everything was looked at yet; observe for longer:
          deployments: 2 objects are on their way
        ✗ krane would not get past 1 objects:
          misconfigured ws-1/app-1 of deployments
                        denied \u{1b}[2J\u{202e}by a webhook
        - krane would write nothing else
        ");
        assert!(journal.summary(Coverage::default()).is_calm());
    }
}
