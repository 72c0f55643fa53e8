//! Finds the workload that a person means.

use clap::Args;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::{self, DeserializeOwned};
use serde_json::Value;

use super::admin::AskError;
use super::look::Answers;
use super::output::printable;
use super::told::{self, Told};

/// One workload, as `kubectl` names things.
#[derive(Debug, Args)]
pub(super) struct Named {
    /// The workload by its name, with its kind or its namespace before it: web, deployment/web,
    /// sentinel/eu, policy/allow, shop/web.
    #[arg(value_name = "[KIND/|NAMESPACE/]NAME", value_parser = parse)]
    name: Typed,

    /// Its namespace; needed where several have the name.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
}

/// A workload that is there, and what else is needed to ask for it.
pub(super) struct Found {
    pub(super) controller: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl From<told::Workload> for Found {
    fn from(workload: told::Workload) -> Self {
        Self {
            controller: workload.controller,
            namespace: workload.namespace,
            name: workload.name,
        }
    }
}

impl Found {
    /// Where the API has it.
    pub(super) fn path(&self) -> String {
        let Self {
            controller,
            namespace,
            name,
        } = self;
        format!(
            "/api/v1/workloads/{}/{}/{}",
            escaped(controller),
            escaped(namespace),
            escaped(name)
        )
    }
}

/// A name with what was typed before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Typed {
    controller: Option<&'static str>,
    namespace: Option<String>,
    name: String,
}

impl Typed {
    /// Whether an object, `NAME` or `NAMESPACE/NAME`, is the one that was meant.
    pub(super) fn is(&self, object: &str, namespace: Option<&str>) -> bool {
        let (of, name) = match object.split_once('/') {
            Some((of, name)) => (Some(of), name),
            None => (None, object),
        };
        let namespace = namespace.or(self.namespace.as_deref());
        name == self.name && (namespace.is_none() || namespace == of)
    }

    /// What has to be in an event about it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

pub(super) fn parse(text: &str) -> Result<Typed, String> {
    let whole = |controller, namespace, name: &str| Typed {
        controller,
        namespace,
        name: name.to_owned(),
    };
    let Some((before, name)) = text.split_once('/') else {
        return Ok(whole(None, None, text));
    };
    if name.is_empty() || name.contains('/') {
        return Err("a name, with its kind or its namespace before it".to_owned());
    }
    let controller = match before.to_lowercase().as_str() {
        "deployment" | "deployments" | "deploy" | "replicaset" | "replicasets" | "rs" => {
            "deployments"
        }
        "sentinel" | "sentinels" => "sentinels",
        "policy"
        | "policies"
        | "networkpolicy"
        | "ciliumnetworkpolicy"
        | "ciliumnetworkpolicies"
        | "cnp"
        | "cilium" => "cilium",
        // What is no kind is a namespace: so krane itself prints workloads.
        _ => return Ok(whole(None, Some(before.to_owned()), name)),
    };
    Ok(whole(Some(controller), None, name))
}

impl Named {
    /// The one workload of that name.
    pub(super) async fn find(&self, krane: &impl Answers) -> Result<Found, AskError> {
        let Typed {
            controller,
            namespace,
            name,
        } = &self.name;
        let namespace = self.namespace.as_ref().or(namespace.as_ref());
        let path = format!("/api/v1/workloads?limit=100000&filter={}", escaped(name));
        let Told { shown: all, .. }: Told<told::Workloads> = fetch(krane, &path).await?;
        let called: Vec<_> = all
            .workloads
            .into_iter()
            .filter(|it| it.name == *name)
            .collect();
        let elsewhere = called
            .iter()
            .map(|it| format!("{} {}/{}", it.kind, it.namespace, it.name));
        let elsewhere = elsewhere.collect::<Vec<_>>().join(", ");
        let mut found: Vec<Found> = called
            .into_iter()
            .filter(|it| controller.is_none_or(|controller| it.controller == controller))
            .filter(|it| namespace.is_none_or(|is| it.namespace == *is))
            .map(Found::from)
            .collect();
        match (found.pop(), found.as_slice()) {
            (Some(one), []) => Ok(one),
            (None, _) if elsewhere.is_empty() => Err(AskError::NoSuch(format!(
                "nothing is wanted of {name}; if it is gone, `krane events --for {name}` may tell"
            ))),
            (None, _) => Err(AskError::NoSuch(format!("there is only {elsewhere}"))),
            (Some(last), others) => {
                let all = others.iter().chain([&last]);
                let all = all.map(|it| format!("{} {}/{}", it.controller, it.namespace, it.name));
                let all = all.collect::<Vec<_>>().join(", ");
                Err(AskError::NoSuch(format!(
                    "several are called {name}: {all}; give the kind and -n NAMESPACE"
                )))
            }
        }
    }
}

/// Fetches something, to show and as it was told.
pub(super) async fn fetch<T: DeserializeOwned>(
    krane: &impl Answers,
    path: &str,
) -> Result<Told<T>, AskError> {
    let raw = krane.answer(path).await?;
    if !raw.is_object() {
        let error = de::Error::custom(format!("{path} is no JSON object"));
        return Err(krane.nonsense(error));
    }
    let mut shown = raw.clone();
    clean(&mut shown);
    let shown = serde_json::from_value(shown).map_err(|error| krane.nonsense(error))?;
    Ok(Told { shown, raw })
}

/// Nothing from elsewhere may tell a terminal what to do.
fn clean(value: &mut Value) {
    match value {
        Value::String(text) => *text = printable(text),
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Object(fields) => fields.values_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text as a part of a path or query.
pub(super) fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use super::{escaped, parse};

    #[test]
    fn a_kind_may_have_the_names_that_people_type() {
        let of = |text| parse(text).map(|name| name.controller);
        assert_eq!(of("web"), Ok(None));
        assert_eq!(of("Deployment/web"), Ok(Some("deployments")));
        assert_eq!(of("rs/web"), Ok(Some("deployments")));
        assert_eq!(of("cnp/web"), Ok(Some("cilium")));
        let spaced = parse("shop/web").unwrap();
        assert_eq!(
            (spaced.controller, spaced.namespace.as_deref()),
            (None, Some("shop"))
        );
        assert!(parse("a/b/c").is_err() && parse("shop/").is_err());
    }

    #[test]
    fn what_is_typed_stays_one_part_of_the_path() {
        assert_eq!(escaped("../a?b#c"), "%2E%2E%2Fa%3Fb%23c");
    }
}
