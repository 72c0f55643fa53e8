//! Two clusters that are asked the same and must answer the same.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use krane_domain::drift;
use krane_domain::object::{LiveObject, ObjectRef, Rendered};
use krane_domain::refusal::Refusal;
use krane_ports::Cluster;
use serde_json::{Value, json};

use crate::edits::Change;
use crate::other::{Other, Refused};

/// One of the two.
#[derive(Clone)]
pub struct Twin {
    /// As krane sees it.
    pub cluster: Arc<dyn Cluster>,
    /// As everybody else sees it.
    pub other: Arc<dyn Other>,
}

/// Which uid an apply or delete of krane insists on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uid {
    /// None.
    Any,
    /// That of the object which is there, else one that nothing has.
    Live,
    /// One that nothing has.
    Wrong,
}

/// One request.
#[derive(Clone)]
pub enum Step {
    /// krane applies.
    Apply(Rendered, Uid),
    /// krane takes over what others own.
    Adopt(ObjectRef),
    /// krane deletes.
    Delete(ObjectRef, Uid),
    /// Somebody changes what is there, or creates what is not.
    Change(
        ObjectRef,
        Arc<dyn Fn(&Value) -> Change + Send + Sync>,
        Value,
    ),
    /// Somebody deletes.
    Remove(ObjectRef),
}

/// What a request did, without what differs between any two clusters.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Whether it was refused, how, and with which words.
    pub answer: Result<(), String>,
    /// Whether there is another version of the object now.
    pub is_changed: bool,
    /// The object, without identity, time and managers.
    pub object: Value,
    /// Who owns what.
    pub managers: BTreeMap<String, Value>,
    /// How krane judges it against what it applied last.
    pub judgement: String,
}

const NOBODYS_UID: &str = "00000000-0000-4000-8000-000000000000";

impl Twin {
    /// Does it, and looks at the object; `wanted` is what krane applied last.
    pub async fn take(&self, step: &Step, wanted: Option<&Rendered>) -> Outcome {
        let object = match step {
            Step::Apply(rendered, _) => &rendered.reference,
            Step::Adopt(object)
            | Step::Delete(object, _)
            | Step::Change(object, ..)
            | Step::Remove(object) => object,
        };
        let before = self.other.read(object).await;
        let live = before
            .as_ref()
            .and_then(|live| live["metadata"]["uid"].as_str());
        let uid = |uid: Uid| match uid {
            Uid::Any => None,
            Uid::Live => Some(live.unwrap_or(NOBODYS_UID)),
            Uid::Wrong => Some(NOBODYS_UID),
        };
        let answer = match step {
            Step::Apply(rendered, wanted) => {
                answer(self.cluster.apply(rendered, uid(*wanted)).await)
            }
            Step::Adopt(object) => {
                let adopted = self.cluster.adopt(object, live.unwrap_or(NOBODYS_UID));
                answer(adopted.await)
            }
            Step::Delete(object, wanted) => {
                let uid = uid(*wanted).unwrap_or(NOBODYS_UID);
                answer(self.cluster.delete(object, uid).await)
            }
            Step::Change(object, change, new) => match &before {
                Some(live) => refused(self.other.change(object, change(live)).await),
                None => refused(self.other.post(object, new.clone()).await),
            },
            Step::Remove(object) => refused(self.other.remove(object).await),
        };
        let after = self.other.read(object).await;
        Outcome {
            answer: answer.map_err(|text| without_uids(&text, [&before, &after])),
            is_changed: without_order(before.as_ref()) != without_order(after.as_ref()),
            judgement: judgement(wanted, after.as_ref(), object),
            managers: managers(after.as_ref()),
            object: comparable(after),
        }
    }
}

fn answer<T>(answer: Result<T, Refusal>) -> Result<(), String> {
    answer.map(drop).map_err(|refusal| {
        let (class, code) = (refusal.class.name(), refusal.code);
        format!("{class} {code}: {}", refusal.message)
    })
}

fn refused(answer: Result<(), Refused>) -> Result<(), String> {
    answer.map_err(|refused| refused.to_string())
}

fn without_uids(text: &str, objects: [&Option<Value>; 2]) -> String {
    let mut text = text.to_owned();
    for object in objects.into_iter().flatten() {
        for field in ["uid", "resourceVersion"] {
            if let Some(value) = object["metadata"][field]
                .as_str()
                .filter(|_| field == "uid")
            {
                text = text.replace(value, "UID");
            }
        }
    }
    text
}

/// An object without its version, its managers in an order that says nothing. The API server sorts them by time before it writes
/// them, and by name once they are read again and happen to be of one second: a write that changes nothing may reorder them.
fn without_order(object: Option<&Value>) -> Option<Value> {
    let mut object = object.cloned()?;
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    if let Some(entries) = object["metadata"]["managedFields"].as_array_mut() {
        entries.sort_by_cached_key(ToString::to_string);
    }
    Some(object)
}

fn comparable(object: Option<Value>) -> Value {
    let Some(mut object) = object else {
        return Value::Null;
    };
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in [
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "managedFields",
        ] {
            metadata.remove(field);
        }
    }
    without_allocations(&mut object);
    object
}

/// Addresses and ports that a server chooses are words: which ones they are is chance.
fn without_allocations(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else {
        return;
    };
    let is_address = |value: &Value| value.as_str().is_some_and(|text| text.starts_with("10."));
    let addresses = spec.pointer_mut("/clusterIPs/0");
    for address in addresses.into_iter().filter(|address| is_address(address)) {
        *address = json!("ADDRESS");
    }
    if let Some(address) = spec
        .get_mut("clusterIP")
        .filter(|address| is_address(address))
    {
        *address = json!("ADDRESS");
    }
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        if let Some(number) = port.get_mut("nodePort") {
            *number = json!("PORT");
        }
    }
}

fn managers(object: Option<&Value>) -> BTreeMap<String, Value> {
    let entries = object.map(|object| &object["metadata"]["managedFields"]);
    let entries = entries.and_then(Value::as_array).into_iter().flatten();
    let named = entries.map(|entry| {
        let text = |key: &str| entry[key].as_str().unwrap_or_default();
        let name = [text("manager"), text("operation"), text("subresource")].join(" ");
        (name, entry["fieldsV1"].clone())
    });
    named.collect()
}

fn judgement(wanted: Option<&Rendered>, live: Option<&Value>, object: &ObjectRef) -> String {
    let Some(wanted) = wanted.filter(|wanted| wanted.reference == *object) else {
        return String::new();
    };
    let live = live.map(|live| {
        let mut live = live.clone();
        // By time, and whether two of them fall into one second is chance.
        if let Some(entries) = live["metadata"]["managedFields"].as_array_mut() {
            entries.sort_by_cached_key(|entry| {
                (entry["operation"].to_string(), entry["manager"].to_string())
            });
        }
        without_allocations(&mut live);
        LiveObject::from_json(object.resource, live)
    });
    let live = match live.transpose() {
        Ok(live) => live,
        Err(problem) => return problem.to_string(),
    };
    let judgement = drift::judge(wanted, live.as_ref(), None, 0);
    let uid = live.map(|live| live.uid.to_string()).unwrap_or_default();
    let text = format!("{judgement:?}");
    if uid.is_empty() {
        text
    } else {
        text.replace(&uid, "UID")
    }
}

/// What differs between the two outcomes, in words; `None` when nothing does.
pub fn difference(one: &Outcome, other: &Outcome) -> Option<String> {
    let mut text = String::new();
    let mut line = |what: &str, one: &dyn std::fmt::Debug, other: &dyn std::fmt::Debug| {
        let _ = writeln!(text, "  {what}: {one:?}\n      and: {other:?}");
    };
    let kind = |outcome: &Outcome| -> Option<String> {
        let text = outcome.answer.as_ref().err()?;
        text.split_once(':').map(|(kind, _)| kind.to_owned())
    };
    if kind(one) != kind(other) {
        line("answer", &one.answer, &other.answer);
    }
    if one.is_changed != other.is_changed {
        line("changed", &one.is_changed, &other.is_changed);
    }
    if one.judgement != other.judgement {
        line("judgement", &one.judgement, &other.judgement);
    }
    let documents =
        |outcome: &Outcome| json!({"object": outcome.object, "managers": outcome.managers});
    for (path, one, other) in leaves(&documents(one), &documents(other)) {
        line(&path, &one, &other);
    }
    (!text.is_empty()).then_some(text)
}

/// The paths at which two documents differ.
fn leaves(one: &Value, other: &Value) -> Vec<(String, Value, Value)> {
    let mut found = Vec::new();
    walk("", one, other, &mut found);
    found
}

fn walk(path: &str, one: &Value, other: &Value, found: &mut Vec<(String, Value, Value)>) {
    match (one, other) {
        _ if one == other => {}
        (Value::Object(left), Value::Object(right)) => {
            let keys = left
                .keys()
                .chain(right.keys().filter(|key| !left.contains_key(*key)));
            for key in keys {
                let absent = Value::from("(absent)");
                let one = left.get(key).unwrap_or(&absent);
                let other = right.get(key).unwrap_or(&absent);
                walk(&format!("{path}/{key}"), one, other, found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (one, other)) in left.iter().zip(right).enumerate() {
                walk(&format!("{path}/{index}"), one, other, found);
            }
        }
        _ => found.push((path.to_owned(), one.clone(), other.clone())),
    }
}
