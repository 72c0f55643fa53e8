//! From the API server's word on a token to the one pod it names.

use std::collections::BTreeMap;

use super::Denial;

const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// `status` of a TokenReview. Absent is not true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Review {
    /// `authenticated`.
    pub authenticated: Option<bool>,
    /// `error`; empty when absent.
    pub error: String,
    /// `audiences`.
    pub audiences: Vec<String>,
    /// `user.username`.
    pub username: String,
    /// `user.groups`.
    pub groups: Vec<String>,
    /// `user.extra`.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The pod that a token is bound to, as the API server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Namespace of pod and account.
    pub namespace: String,
    /// The ServiceAccount's name.
    pub service_account: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's uid: the name alone is no identity.
    pub uid: String,
    /// The node the token was made for, where the API server says it.
    pub node: Option<String>,
    /// Which token this was, for the audit log.
    pub credential: Option<String>,
}

/// Whose token this is. The API server must confirm an audience: `audience`, where one is given,
/// and its own otherwise.
pub fn identify(review: &Review, audience: Option<&str>) -> Result<Identity, Denial> {
    if review.authenticated != Some(true) || !review.error.is_empty() {
        return Err(Denial::NotAuthenticated);
    }
    // An authenticator that knows nothing of audiences leaves the list empty.
    let is_confirmed = match audience {
        Some(wanted) => review.audiences.iter().any(|each| each == wanted),
        None => !review.audiences.is_empty(),
    };
    if !is_confirmed {
        return Err(Denial::WrongAudience);
    }
    let parts: Vec<&str> = review.username.split(':').collect();
    let ["system", "serviceaccount", namespace, account] = parts[..] else {
        return Err(Denial::NotAServiceAccount);
    };
    let group = format!("system:serviceaccounts:{namespace}");
    if namespace.is_empty() || account.is_empty() || !review.groups.contains(&group) {
        return Err(Denial::NotAServiceAccount);
    }
    let pod = only(review, POD_NAME)?.ok_or(Denial::NotBoundToAPod)?;
    let uid = only(review, POD_UID)?.ok_or(Denial::NotBoundToAPod)?;
    Ok(Identity {
        namespace: namespace.to_owned(),
        service_account: account.to_owned(),
        pod,
        uid,
        node: only(review, NODE_NAME)?,
        credential: only(review, CREDENTIAL_ID).unwrap_or_default(),
    })
}

/// The only value of an extra; none when it is absent. Two values are no identity.
fn only(review: &Review, key: &str) -> Result<Option<String>, Denial> {
    match review.extra.get(key).map(Vec::as_slice) {
        None => Ok(None),
        Some([value]) if !value.is_empty() => Ok(Some(value.clone())),
        Some(_) => Err(Denial::NotBoundToAPod),
    }
}
