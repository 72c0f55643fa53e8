//! The two tables of wrong tokens. Tokens come from the API server's TokenRequest where it can make
//! them; what it cannot be made to say is said in its place, on the way to krane.
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "each step is about a few of the classes"
)]

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use krane_proto::ctrl::v1::ApplyDeployment;
use krane_testcontract::tokens::{Answer, Ask, Backend, Class, Table};
use krane_testharness::{Action, CANARY, Call, Outcome, Proxy, World, eventually, limits};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::caller::{Got, ask};
use super::forgery::{Forgery, change_template, forge, stream_is_read, template_has};
use super::vault::Vault;
use super::{agent, pod_of, request, workload};
use crate::world;

const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

#[tokio::test(flavor = "multi_thread")]
async fn only_the_right_token_with_the_right_question_gets_plaintext_from_the_real_binary()
-> Outcome {
    for audience in [None, Some("krane")] {
        let world = world().await?;
        let table = fill(&world, audience).await?;
        println!("{}\n", table.text(audience));
        assert_eq!(table.problems(audience), Vec::<String>::new());
    }
    Ok(())
}

async fn fill(world: &World, audience: Option<&'static str>) -> Outcome<Table> {
    let vault = Vault::start().await?;
    let proxy = Proxy::start(world).await?;
    let review: Arc<Mutex<Option<Action>>> = Arc::default();
    let said = Arc::clone(&review);
    proxy.script(move |call: &Call| {
        let is_review = call.method == Method::POST && call.resource == "tokenreviews";
        let said = said.lock().clone().filter(|_| is_review);
        said.unwrap_or(Action::Pass)
    });
    let wanted: Vec<ApplyDeployment> = Class::ALL
        .iter()
        .map(|class| workload(world, &vault, &name_of(*class)))
        .collect();
    world.push_all(&wanted);
    // Where a forger may create objects, and the environment has none.
    let mut outsider = workload(world, &vault, "outsider");
    outsider.k8s_namespace = world.namespace(2);
    "env_outsider".clone_into(&mut outsider.environment_id);
    world.push_all(std::slice::from_ref(&outsider));
    // Whose tokens are shown in place of one's own.
    let mut elsewhere = workload(world, &vault, "elsewhere");
    elsewhere.k8s_namespace = world.namespace(1);
    let other = workload(world, &vault, "another");
    // Of the same deployment, by its id, in another environment.
    let mut stranger = workload(world, &vault, "stranger");
    stranger.k8s_namespace = world.namespace(1);
    stranger.deployment_id = format!(
        "d_{}_{}",
        world.namespace(0),
        name_of(Class::OtherEnvironment)
    );
    "env_other".clone_into(&mut stranger.environment_id);
    world.push_all(&[elsewhere.clone(), other.clone(), stranger.clone()]);
    let agent = agent(world, &vault)
        .kubeconfig(proxy.kubeconfig())
        .set("secrets.audience", audience.unwrap_or_default())
        .start()
        .await?;
    let mut table = Table::default();
    for (class, own) in Class::ALL.into_iter().zip(&wanted) {
        *review.lock() = None;
        let scene = Scene {
            world,
            class,
            own,
            elsewhere: &elsewhere,
            stranger: &stranger,
            other: &other,
            outsider: &outsider,
            audience,
        };
        let pod = pod_of(world, own).await?;
        if class == Class::EarlierBlob {
            stream_is_read(&agent).await?;
        }
        let claimed = scene.claimed(&vault);
        let (token, answer) = scene.prepare(&pod, &claimed, &vault).await?;
        *review.lock() = answer;
        for ask_for in Ask::ALL {
            for backend in Backend::ALL {
                vault.set(backend);
                let before = vault.calls();
                let mut asked = request(&claimed, &token);
                match ask_for {
                    Ask::Own => {}
                    Ask::OtherDeployment => asked.deployment_id.clone_from(&other.deployment_id),
                    Ask::OtherEnvironment => "env_foreign".clone_into(&mut asked.environment_id),
                    Ask::ForeignBlob => {
                        asked.encrypted_blob = other.encrypted_environment_variables.clone();
                    }
                }
                let got = ask(agent.rpc_port(), &asked).await?;
                let calls = vault.calls() - before;
                table.fill(class, ask_for, backend, judged(own, got), calls);
            }
        }
        scene.tidy_up(&pod).await?;
    }
    agent.stop().await?;
    Ok(table)
}

fn name_of(class: Class) -> String {
    format!("{class:?}").to_lowercase()
}

fn judged(own: &ApplyDeployment, got: Got) -> Answer {
    match got {
        Got::Secrets(secrets) => {
            let expected = [
                ("A", format!("of {}", own.k8s_name)),
                ("B", "second".to_owned()),
            ]
            .map(|(name, value)| (name.to_owned(), format!("{CANARY}-{value}")));
            if secrets == expected {
                Answer::Plaintext
            } else {
                Answer::Other
            }
        }
        Got::Refused {
            status: 401, code, ..
        } if code == "unauthenticated" => Answer::Unauthenticated,
        Got::Refused {
            status: 503, code, ..
        } if code == "unavailable" => Answer::Unavailable,
        Got::Refused { .. } => Answer::Other,
    }
}

struct Scene<'a> {
    world: &'a World,
    class: Class,
    own: &'a ApplyDeployment,
    elsewhere: &'a ApplyDeployment,
    stranger: &'a ApplyDeployment,
    other: &'a ApplyDeployment,
    outsider: &'a ApplyDeployment,
    audience: Option<&'static str>,
}

impl Scene<'_> {
    /// What is asked for: what the workload is, or what a forger wants.
    fn claimed(&self, vault: &Vault) -> ApplyDeployment {
        let mut claimed = self.own.clone();
        match self.class {
            Class::InventedDeployment | Class::SchedulerMark => {
                claimed.deployment_id = format!("{}_invented", self.own.deployment_id);
            }
            Class::PatchedTemplate | Class::PatchedReplicaSet => {
                "env_victim".clone_into(&mut claimed.environment_id);
                let variables = [
                    ("A", &*format!("of {}", self.own.k8s_name)),
                    ("B", "second"),
                ];
                let blob = vault.blob(&claimed.environment_id, &variables);
                claimed.encrypted_environment_variables = blob.into();
            }
            _ => {}
        }
        claimed
    }

    /// A token of this class, and what is said of it in the API server's place.
    async fn prepare(
        &self,
        pod: &str,
        claimed: &ApplyDeployment,
        vault: &Vault,
    ) -> Outcome<(String, Option<Action>)> {
        let token = self.token(pod, claimed, vault).await?;
        let review = self.review(&token).await?;
        self.change(pod).await?;
        let token = match self.class {
            Class::BadSignature => format!("{token}x"),
            _ => token,
        };
        Ok((token, self.said(review)))
    }

    async fn token(&self, pod: &str, claimed: &ApplyDeployment, vault: &Vault) -> Outcome<String> {
        let cluster = self.world.cluster();
        let of = async |wanted: &ApplyDeployment, pod: &str| -> Outcome<String> {
            let audiences = self.class.audiences(self.audience);
            let (namespace, audiences) = (&wanted.k8s_namespace, &audiences[..]);
            Ok(cluster.pod_token(namespace, pod, audiences).await?)
        };
        match self.class {
            Class::LegacySecret => {
                let namespace = &self.own.k8s_namespace;
                Ok(cluster.service_account_token(namespace, "default").await?)
            }
            Class::OtherNamespace => {
                of(self.elsewhere, &pod_of(self.world, self.elsewhere).await?).await
            }
            Class::OtherEnvironment => {
                of(self.stranger, &pod_of(self.world, self.stranger).await?).await
            }
            Class::OtherDeployment => of(self.other, &pod_of(self.world, self.other).await?).await,
            Class::EarlierBlob => {
                let mut later = self.own.clone();
                let blob = vault.blob(&later.environment_id, &[("A", "later")]);
                later.encrypted_environment_variables = blob.clone().into();
                self.world.push_all(std::slice::from_ref(&later));
                template_has(self.world, &later, &blob).await?;
                of(self.own, pod).await
            }
            Class::ForgedReplicaSet | Class::InventedDeployment | Class::SchedulerMark => {
                let forgery = Forgery {
                    of: self.own,
                    namespace: &self.outsider.k8s_namespace,
                    deployment_id: &claimed.deployment_id,
                    is_marked: self.class == Class::SchedulerMark,
                };
                pod_of(self.world, self.outsider).await?;
                of(self.outsider, &forge(self.world, &forgery).await?).await
            }
            Class::PatchedTemplate | Class::PatchedReplicaSet => {
                let (id, blob) = (
                    &claimed.environment_id,
                    &claimed.encrypted_environment_variables,
                );
                let relabels = self.class == Class::PatchedReplicaSet;
                let pod = change_template(self.world, self.own, id, blob, relabels);
                of(self.own, &pod.await?).await
            }
            _ => of(self.own, pod).await,
        }
    }

    /// What the API server says of the token while its pod is well.
    async fn review(&self, token: &str) -> Outcome<Value> {
        let reviews: Api<TokenReview> = self.world.api.all();
        let question = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                audiences: self.audience.map(|audience| vec![audience.to_owned()]),
            },
            ..TokenReview::default()
        };
        let answer = reviews.create(&PostParams::default(), &question).await?;
        Ok(serde_json::to_value(answer)?)
    }

    fn said(&self, mut review: Value) -> Option<Action> {
        let status = &mut review["status"];
        match self.class {
            Class::Expired => *status = json!({"error": "token has expired", "user": {}}),
            Class::NotYetValid => *status = json!({"error": "token is not valid yet"}),
            Class::WrongIssuer => *status = json!({}),
            Class::AudiencesNotConfirmed => {
                status["audiences"].take();
            }
            Class::Node => {
                status["user"] = json!({"username": "system:node:n", "groups": ["system:nodes"]});
            }
            Class::UserCertificate => {
                status["user"] = json!({"username": "jane", "groups": ["system:authenticated"]});
            }
            Class::Anonymous => {
                let user =
                    json!({"username": "system:anonymous", "groups": ["system:unauthenticated"]});
                status["user"] = user;
            }
            Class::OtherAccount => {
                let name = format!("system:serviceaccount:{}:another", self.own.k8s_namespace);
                status["user"]["username"] = json!(name);
            }
            Class::NodeMismatch => {
                status["user"]["extra"][NODE_NAME] = json!(["another-node"]);
            }
            Class::TwoPods => {
                let pods = status["user"]["extra"][POD_NAME].as_array_mut()?;
                pods.push(json!("another"));
            }
            Class::RefusedWithUser => status["authenticated"] = json!(false),
            Class::ReviewFails => {
                return Some(Action::status(500, "InternalError", CANARY));
            }
            // An API server that is behind: only a look at the pod itself can tell.
            Class::PodDeleted | Class::SameNameNewUid => {}
            _ => return None,
        }
        Some(Action::Answer {
            code: StatusCode::CREATED,
            retry_after: None,
            body: Bytes::from(review.to_string()),
        })
    }

    async fn change(&self, pod: &str) -> Outcome {
        let namespace = &self.own.k8s_namespace;
        let pods: Api<Pod> = self.world.api.within(namespace);
        let merge = async |patch: Value| -> Outcome {
            pods.patch(pod, &PatchParams::default(), &Patch::Merge(patch))
                .await?;
            Ok(())
        };
        let relabel = async |key: &str, value: Value| {
            merge(json!({"metadata": {"labels": {key: value}}})).await
        };
        match self.class {
            Class::PodDeleted => self.remove(&pods, pod).await?,
            Class::SameNameNewUid => {
                let mut again = pods.get(pod).await?;
                self.remove(&pods, pod).await?;
                again.metadata.uid = None;
                again.metadata.resource_version = None;
                again.metadata.creation_timestamp = None;
                again.metadata.managed_fields = None;
                pods.create(&PostParams::default(), &again).await?;
            }
            Class::PodDeleting => {
                merge(json!({"metadata": {"finalizers": ["example.com/stay"]}})).await?;
                pods.delete(pod, &DeleteParams::default()).await?;
            }
            Class::PodSucceeded => {
                let status = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
                pods.patch_status(pod, &PatchParams::default(), &status)
                    .await?;
            }
            Class::PodLabelRemoved => relabel("unkey.com/deployment.id", Value::Null).await?,
            Class::PodNotManaged => {
                relabel("app.kubernetes.io/managed-by", json!("somebody")).await?;
            }
            Class::OwnerMismatch => {
                // Not another ReplicaSet: it would let go of what its selector does not match, and
                // the right one would take it back.
                let maps: Api<ConfigMap> = self.world.api.within(namespace);
                let map = json!({"metadata": {"name": "an-owner"}});
                let map: ConfigMap = serde_json::from_value(map)?;
                let map = maps.create(&PostParams::default(), &map).await?;
                let owner = json!({
                    "apiVersion": "v1", "kind": "ConfigMap", "name": "an-owner",
                    "uid": map.metadata.uid, "controller": true,
                });
                merge(json!({"metadata": {"ownerReferences": [owner]}})).await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// What is held back goes, so that the next test finds nothing of it.
    async fn tidy_up(&self, pod: &str) -> Outcome {
        if self.class == Class::PodDeleting {
            let pods: Api<Pod> = self.world.api.within(&self.own.k8s_namespace);
            let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            pods.patch(pod, &PatchParams::default(), &patch).await?;
        }
        Ok(())
    }

    async fn remove(&self, pods: &Api<Pod>, pod: &str) -> Outcome {
        pods.delete(pod, &DeleteParams::default().grace_period(0))
            .await?;
        eventually("the pod is gone", limits::LONG, async || {
            let found = pods.get_opt(pod).await.map_err(|error| error.to_string())?;
            match found {
                None => Ok(()),
                Some(_) => Err("it is there".to_owned()),
            }
        })
        .await
    }
}
