//! Rights and tokens: krane is tested under the ServiceAccount and the rules it is shipped with.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use k8s_openapi::api::{
    authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec},
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
    core::v1::{Pod, ServiceAccount},
};
use kube::{Api, Client, api::PostParams};
use serde_json::Value;

use crate::{
    Cluster, Component, Error, folder,
    objects::{KRANE, KRANE_USER, apply, read_manifests},
};

/// Longer than any test run.
const TOKEN_SECONDS: i64 = 12 * 3600;
const RIGHTS_LIMIT: Duration = Duration::from_secs(10);

impl Cluster {
    /// Applies every document of a YAML file in their order, and waits until the rights that it grants to krane's
    /// ServiceAccount are in force.
    pub async fn install(&self, manifests: &Path) -> Result<(), Error> {
        self.install_if(manifests, |_| true).await
    }

    /// [`install`](Self::install) of the documents that `keep` says yes to.
    pub async fn install_if(
        &self,
        manifests: &Path,
        keep: impl Fn(&Value) -> bool,
    ) -> Result<(), Error> {
        let client = self.admin_client().await?;
        let mut documents = read_manifests(manifests)?;
        documents.retain(keep);
        for document in &documents {
            apply(&client, manifests, document.clone()).await?;
        }
        for right in rights_to_check(&documents) {
            self.wait_for_right(&client, right).await?;
        }
        Ok(())
    }

    /// Installs the Cilium CRD in a cluster that was started without it.
    pub async fn install_cilium(&self) -> Result<(), Error> {
        let client = self.admin_client().await?;
        for document in read_manifests(self.cilium_crd())? {
            apply(&client, self.cilium_crd(), document).await?;
        }
        Ok(())
    }

    /// A kubeconfig with a fresh token of krane's ServiceAccount, valid for hours.
    pub async fn service_account_kubeconfig(&self) -> Result<PathBuf, Error> {
        let token = self.service_account_token(KRANE, KRANE).await?;
        let text = self
            .credentials()
            .kubeconfig(&self.api_url(), KRANE, &token);
        folder::write(self.folder(), &folder::kubeconfig_name(KRANE), &text)
    }

    /// A kubeconfig with the token that a kubelet would mount into this pod.
    pub async fn pod_kubeconfig(&self, namespace: &str, pod: &str) -> Result<PathBuf, Error> {
        let token = self.pod_token(namespace, pod, &[]).await?;
        let text = self.credentials().kubeconfig(&self.api_url(), pod, &token);
        folder::write(self.folder(), &folder::kubeconfig_name(pod), &text)
    }

    /// Writes the files that a kubelet mounts into this pod for its ServiceAccount: `token`, `ca.crt` and `namespace`.
    pub async fn mount_account(
        &self,
        namespace: &str,
        pod: &str,
        target: &Path,
    ) -> Result<(), Error> {
        let token = self.pod_token(namespace, pod, &[]).await?;
        folder::write(target, "token", &token)?;
        folder::write(target, "ca.crt", &self.credentials().authority)?;
        folder::write(target, "namespace", namespace)?;
        Ok(())
    }

    /// A client with the rights of krane's ServiceAccount.
    pub async fn service_account_client(&self) -> Result<Client, Error> {
        crate::client_of(&self.service_account_kubeconfig().await?).await
    }

    /// A token of any ServiceAccount, bound to nothing.
    pub async fn service_account_token(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<String, Error> {
        self.request_token(namespace, name, None, &[]).await
    }

    /// A token as a kubelet would mount it into this pod: of the pod's ServiceAccount, bound to the pod's name and uid.
    /// Without audiences it is for the API server itself.
    pub async fn pod_token(
        &self,
        namespace: &str,
        pod: &str,
        audiences: &[&str],
    ) -> Result<String, Error> {
        let client = self.admin_client().await?;
        let found = Api::<Pod>::namespaced(client, namespace)
            .get(pod)
            .await
            .map_err(|source| Error::Request {
                what: format!("get pod {namespace}/{pod}"),
                source,
            })?;
        let account = found
            .spec
            .and_then(|spec| spec.service_account_name)
            .unwrap_or_else(|| "default".to_owned());
        let bound = BoundObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: found.metadata.name,
            uid: found.metadata.uid,
        };
        self.request_token(namespace, &account, Some(bound), audiences)
            .await
    }

    async fn request_token(
        &self,
        namespace: &str,
        account: &str,
        bound: Option<BoundObjectReference>,
        audiences: &[&str],
    ) -> Result<String, Error> {
        let what = || format!("request a token of ServiceAccount {namespace}/{account}");
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                audiences: (!audiences.is_empty())
                    .then(|| audiences.iter().map(|&each| each.to_owned()).collect()),
                bound_object_ref: bound,
                expiration_seconds: Some(TOKEN_SECONDS),
            }),
            ..TokenRequest::default()
        };
        let client = self.admin_client().await?;
        let answer = Api::<ServiceAccount>::namespaced(client, namespace)
            .create_token_request(account, &PostParams::default(), &request)
            .await
            .map_err(|source| Error::Request {
                what: what(),
                source,
            })?;
        Ok(answer
            .status
            .and_then(|status| status.token)
            .unwrap_or_default())
    }

    /// The authorizer learns of new rules by a watch; a request made at once could still be refused.
    async fn wait_for_right(
        &self,
        client: &Client,
        right: ResourceAttributes,
    ) -> Result<(), Error> {
        let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
        let what = format!("right of {KRANE_USER} to {right:?}");
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(KRANE_USER.to_owned()),
                resource_attributes: Some(right),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        self.wait_for(&what, Component::ApiServer, RIGHTS_LIMIT, async || {
            let answer = reviews
                .create(&PostParams::default(), &review)
                .await
                .map_err(|error| error.to_string())?;
            match answer.status {
                Some(status) if status.allowed => Ok(()),
                other => Err(format!("refused: {other:?}")),
            }
        })
        .await
    }
}

/// For every binding to krane's ServiceAccount, one right out of each rule of its role, when the role is in the same file.
fn rights_to_check(documents: &[Value]) -> Vec<ResourceAttributes> {
    let text = |value: &Value, pointer: &str| {
        value
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let mut rights = Vec::new();
    for binding in documents
        .iter()
        .filter(|document| text(document, "/kind").ends_with("RoleBinding"))
    {
        let is_krane = |subject: &Value| {
            text(subject, "/kind") == "ServiceAccount"
                && text(subject, "/name") == KRANE
                && text(subject, "/namespace") == KRANE
        };
        if !binding["subjects"]
            .as_array()
            .is_some_and(|subjects| subjects.iter().any(is_krane))
        {
            continue;
        }
        let namespace = text(binding, "/metadata/namespace");
        let role_kind = text(binding, "/roleRef/kind");
        let role = documents.iter().find(|document| {
            text(document, "/kind") == role_kind
                && text(document, "/metadata/name") == text(binding, "/roleRef/name")
                && (role_kind == "ClusterRole"
                    || text(document, "/metadata/namespace") == namespace)
        });
        let rules = role.and_then(|role| role["rules"].as_array());
        for rule in rules.into_iter().flatten() {
            let first = |field: &str| rule[field].as_array()?.first()?.as_str().map(str::to_owned);
            let (Some(verb), Some(resource)) = (first("verbs"), first("resources")) else {
                continue;
            };
            let (resource, subresource) = match resource.split_once('/') {
                Some((resource, subresource)) => {
                    (resource.to_owned(), Some(subresource.to_owned()))
                }
                None => (resource, None),
            };
            rights.push(ResourceAttributes {
                group: first("apiGroups"),
                name: first("resourceNames"),
                namespace: (!namespace.is_empty()).then(|| namespace.clone()),
                resource: Some(resource),
                subresource,
                verb: Some(verb),
                ..ResourceAttributes::default()
            });
        }
    }
    rights
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_right_of_each_rule_of_a_bound_role() {
        let subject =
            |name: &str| json!([{"kind": "ServiceAccount", "namespace": KRANE, "name": name}]);
        let documents = [
            json!({"kind": "ClusterRole", "metadata": {"name": "r"}, "rules": [
                {"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["get", "list"]},
                {"apiGroups": [""], "resources": ["pods/status"], "resourceNames": ["x"], "verbs": ["patch"]},
                {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
            ]}),
            json!({"kind": "RoleBinding", "metadata": {"name": "b", "namespace": "n"},
                "roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": subject(KRANE)}),
            json!({"kind": "ClusterRoleBinding", "metadata": {"name": "c"},
                "roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": subject("other")}),
        ];
        let rights = rights_to_check(&documents);
        assert_eq!(rights.len(), 2);
        assert_eq!(rights[0].namespace.as_deref(), Some("n"));
        assert_eq!(rights[0].verb.as_deref(), Some("get"));
        assert_eq!(rights[1].subresource.as_deref(), Some("status"));
        assert_eq!(rights[1].name.as_deref(), Some("x"));
    }
}
