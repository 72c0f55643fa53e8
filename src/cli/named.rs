//! Finds the workload that a person means.

use clap::Args;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::admin::{AdminFlags, AskError};
use super::told::{self, Told};

/// One workload, as `kubectl` names things.
#[derive(Debug, Args)]
pub(super) struct Named {
    /// The workload: its name, with its kind before it if it has one: deployment/web, sentinel/eu,
    /// policy/allow.
    #[arg(value_name = "[KIND/]NAME", value_parser = parse)]
    name: (Option<&'static str>, String),

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

fn parse(text: &str) -> Result<(Option<&'static str>, String), String> {
    let Some((kind, name)) = text.split_once('/') else {
        return Ok((None, text.to_owned()));
    };
    let controller = match kind.to_lowercase().as_str() {
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
        _ => return Err("the kinds are deployment, sentinel and policy".to_owned()),
    };
    Ok((Some(controller), name.to_owned()))
}

impl Named {
    /// The one workload of that name.
    pub(super) async fn find(&self, admin: &AdminFlags) -> Result<Found, AskError> {
        let (controller, name) = &self.name;
        let path = format!("/api/v1/workloads?limit=100000&filter={}", escaped(name));
        let all: told::Workloads = admin.get(&path).await?;
        let mut found: Vec<Found> = all
            .workloads
            .into_iter()
            .filter(|it| it.name == *name)
            .filter(|it| controller.is_none_or(|controller| it.controller == controller))
            .filter(|it| self.namespace.as_ref().is_none_or(|is| it.namespace == *is))
            .map(|it| Found {
                controller: it.controller,
                namespace: it.namespace,
                name: it.name,
            })
            .collect();
        match (found.pop(), found.as_slice()) {
            (Some(one), []) => Ok(one),
            (None, _) => Err(AskError::NoSuch(format!("nothing is wanted of {name}"))),
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
    admin: &AdminFlags,
    path: &str,
) -> Result<Told<T>, AskError> {
    let raw: Value = admin.get(path).await?;
    let shown = serde_json::from_value(raw.clone())?;
    Ok(Told { shown, raw })
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
        let of = |text| parse(text).map(|(kind, _)| kind);
        assert_eq!(of("web"), Ok(None));
        assert_eq!(of("Deployment/web"), Ok(Some("deployments")));
        assert_eq!(of("rs/web"), Ok(Some("deployments")));
        assert_eq!(of("cnp/web"), Ok(Some("cilium")));
        assert!(of("pod/web").is_err());
    }

    #[test]
    fn what_is_typed_stays_one_part_of_the_path() {
        assert_eq!(escaped("../a?b#c"), "%2E%2E%2Fa%3Fb%23c");
    }
}
