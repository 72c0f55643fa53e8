//! Requests as a test looks at them.

use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, Method};

/// A request.
#[derive(Clone, Debug)]
pub struct Call {
    /// Place in the order of arrival.
    pub number: usize,
    /// When it arrived.
    pub at: Instant,
    /// The method.
    pub method: Method,
    /// Path and query.
    pub uri: String,
    /// Plural resource; empty when the path is none.
    pub resource: String,
    /// Namespace; of a Namespace itself its name.
    pub namespace: String,
    /// Object name; empty for lists and watches.
    pub name: String,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

/// A request and its end.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The request.
    pub call: Call,
    /// The status it was answered with, and when; for a watch, when its answer began.
    pub answered: Option<(u16, Instant)>,
}

impl Call {
    pub(crate) fn new(number: usize, request: &http::request::Parts, body: Bytes) -> Self {
        let uri = request.uri.path_and_query().map_or("/", |uri| uri.as_str());
        let (namespace, resource, name) = parse(request.uri.path());
        Self {
            number,
            at: Instant::now(),
            method: request.method.clone(),
            uri: uri.to_owned(),
            resource,
            namespace,
            name,
            headers: request.headers.clone(),
            body,
        }
    }

    /// Whether it changes something.
    pub fn is_write(&self) -> bool {
        self.method != Method::GET && !self.uri.contains("dryRun=")
    }

    /// Whether it is a watch.
    pub fn is_watch(&self) -> bool {
        self.method == Method::GET && self.uri.contains("watch=")
    }

    /// Whether it is a list.
    pub fn is_list(&self) -> bool {
        self.method == Method::GET
            && self.name.is_empty()
            && !self.resource.is_empty()
            && !self.is_watch()
    }

    /// Whether it writes an object of this resource.
    pub fn writes(&self, resource: &str) -> bool {
        self.is_write() && self.resource == resource
    }
}

impl Recorded {
    pub(crate) fn summary(&self) -> String {
        let code = self.answered.map(|(code, _)| code);
        format!("{} {} -> {code:?}", self.call.method, self.call.uri)
    }

    /// The status it was answered with.
    pub fn code(&self) -> Option<u16> {
        self.answered.map(|(code, _)| code)
    }
}

/// Namespace, resource, name.
fn parse(path: &str) -> (String, String, String) {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let skipped = match parts.next() {
        Some("api") => 1,
        Some("apis") => 2,
        _ => return Default::default(),
    };
    let parts: Vec<&str> = parts.skip(skipped).collect();
    let owned = |part: Option<&&str>| part.map(|part| (*part).to_owned()).unwrap_or_default();
    match parts.as_slice() {
        ["namespaces", namespace, resource, rest @ ..] => (
            (*namespace).to_owned(),
            (*resource).to_owned(),
            owned(rest.first()),
        ),
        ["namespaces", namespace] => (
            (*namespace).to_owned(),
            "namespaces".to_owned(),
            (*namespace).to_owned(),
        ),
        [resource, rest @ ..] => (String::new(), (*resource).to_owned(), owned(rest.first())),
        [] => Default::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart() {
        let check = |path, expected: (&str, &str, &str)| {
            let (namespace, resource, name) = parse(path);
            assert_eq!(
                (namespace.as_str(), resource.as_str(), name.as_str()),
                expected,
                "{path}"
            );
        };
        check("/api/v1/namespaces/a", ("a", "namespaces", "a"));
        check("/api/v1/namespaces", ("", "namespaces", ""));
        check("/api/v1/pods", ("", "pods", ""));
        check("/apis/apps/v1/replicasets", ("", "replicasets", ""));
        check(
            "/apis/apps/v1/namespaces/a/replicasets/b",
            ("a", "replicasets", "b"),
        );
        check(
            "/apis/cilium.io/v2/namespaces/a/ciliumnetworkpolicies",
            ("a", "ciliumnetworkpolicies", ""),
        );
        check("/readyz", ("", "", ""));
    }
}
