//! What would have been written, one entry per object, the latest word about each.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use krane_domain::object::ObjectRef;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

/// Paths that an entry shows at most.
const SHOWN: usize = 8;

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
    pub fn summary(&self, unsettled: Vec<String>) -> Summary {
        let mut entries: Vec<Entry> = self.entries.lock().values().cloned().collect();
        entries.sort_by(|one, other| (one.what, &one.object).cmp(&(other.what, &other.object)));
        Summary {
            api_version: "krane/v1",
            kind: "ObserveSummary",
            unsettled,
            entries,
        }
    }
}

impl Summary {
    /// The summary for a person.
    pub fn words(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let mut line = |words: &str| {
            let _ = writeln!(text, "{words}");
        };
        if !self.unsettled.is_empty() {
            line("✗ not everything was looked at yet; observe for longer:");
        }
        for part in &self.unsettled {
            line(&format!("  {part}"));
        }
        if self.entries.is_empty() {
            line("✔ krane would change nothing");
        } else {
            line(&format!(
                "‼ krane would write {} objects:",
                self.entries.len()
            ));
        }
        for entry in &self.entries {
            let verb = match entry.what {
                What::Create => "create",
                What::Update => "update",
                What::Delete => "delete",
                What::Refused => "refused",
            };
            line(&format!("  {verb:<7} {}", entry.object));
            for path in entry.paths.iter().take(SHOWN) {
                line(&format!("            {path}"));
            }
            if entry.paths.len() > SHOWN {
                line(&format!(
                    "            and {} more",
                    entry.paths.len() - SHOWN
                ));
            }
            if let Some(why) = &entry.why {
                line(&format!("            {why}"));
            }
        }
        text
    }
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
        insta::assert_snapshot!(journal.summary(Vec::new()).words(), @r"
        ‼ krane would write 2 objects:
          create  Namespace ws-2
          update  ReplicaSet ws-1/app-1
                    spec.replicas
        ");
        journal.forget(&object);
        journal.forget(&other);
        assert!(journal.summary(Vec::new()).entries.is_empty());
    }
}
