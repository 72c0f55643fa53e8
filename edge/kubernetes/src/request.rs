//! Requests: verb, path, query, body. Pure.

use std::fmt;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};
use http::{Method, Request};
use krane_domain::object::{ObjectRef, Resource};
use krane_domain::refusal::{Refusal, RefusalClass};
use kube::client::Body;

const JSON: &str = "application/json";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// What a request does; also the closed set of values of the metric label `verb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Server-side apply.
    Apply,
    /// Create by POST, for objects that cannot be applied (reviews, Events).
    Create,
    /// JSON or merge patch with preconditions.
    Patch,
    /// Delete with preconditions.
    Delete,
    /// Read of a whole object.
    Get,
    /// Read of an object's metadata alone.
    Metadata,
    /// One page of a list.
    List,
    /// One page of a list of metadata alone.
    ListMetadata,
    /// The start of a watch.
    Watch,
}

impl Verb {
    /// Low-cardinality name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Create => "create",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::Get => "get",
            Self::Metadata => "metadata",
            Self::List | Self::ListMetadata => "list",
            Self::Watch => "watch",
        }
    }

    /// The HTTP method, as in `rest_client_requests_total{method}`.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Apply | Self::Patch => "PATCH",
            Self::Create => "POST",
            Self::Delete => "DELETE",
            Self::Get | Self::Metadata | Self::List | Self::ListMetadata | Self::Watch => "GET",
        }
    }

    pub(super) const fn is_write(self) -> bool {
        matches!(
            self,
            Self::Apply | Self::Create | Self::Patch | Self::Delete
        )
    }
}

/// One request, to be sent as often as needed.
#[derive(Clone)]
pub struct Call {
    /// What it does.
    pub verb: Verb,
    /// Plural of the resource, for metrics.
    pub resource: &'static str,
    /// Path and query.
    pub target: String,
    /// The body with its content type.
    pub body: Option<(&'static str, Bytes)>,
}

impl fmt::Debug for Call {
    /// Leaves out the body: it may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("verb", &self.verb)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl Call {
    /// A request without a body.
    pub fn new(verb: Verb, resource: &'static str, target: String) -> Self {
        Self {
            verb,
            resource,
            target,
            body: None,
        }
    }

    /// The same with a body.
    #[must_use]
    pub fn with_body(mut self, content_type: &'static str, body: Bytes) -> Self {
        self.body = Some((content_type, body));
        self
    }

    pub(super) fn request(&self) -> Result<Request<Body>, http::Error> {
        let accept = match self.verb {
            Verb::Metadata => METADATA,
            Verb::ListMetadata => METADATA_LIST,
            Verb::Apply
            | Verb::Create
            | Verb::Patch
            | Verb::Delete
            | Verb::Get
            | Verb::List
            | Verb::Watch => JSON,
        };
        let mut request = Request::builder()
            .method(self.verb.method().parse::<Method>()?)
            .uri(&self.target)
            .header(ACCEPT, accept)
            // A gzipped watch of Kubernetes 1.37 has one gzip member per event.
            .header(ACCEPT_ENCODING, "identity");
        let body = match &self.body {
            Some((content_type, bytes)) => {
                request = request.header(CONTENT_TYPE, *content_type);
                Body::from(bytes.clone())
            }
            None => Body::empty(),
        };
        request.body(body)
    }
}

/// Path of the collection, in one namespace or in all.
pub(super) fn collection_path(
    resource: Resource,
    namespace: Option<&str>,
) -> Result<String, Refusal> {
    let mut path = match resource.group() {
        "" => format!("/api/{}", resource.version()),
        group => format!("/apis/{group}/{}", resource.version()),
    };
    if let Some(namespace) = namespace.filter(|_| resource.is_namespaced()) {
        path.push_str("/namespaces/");
        push_segment(&mut path, "namespace", namespace)?;
    }
    path.push('/');
    path.push_str(resource.plural());
    Ok(path)
}

/// Path of the Lease of this name, or of all in this namespace.
pub(super) fn lease_path(namespace: &str, name: Option<&str>) -> Result<String, Refusal> {
    let mut path = "/apis/coordination.k8s.io/v1/namespaces/".to_owned();
    push_segment(&mut path, "namespace", namespace)?;
    path.push_str("/leases");
    if let Some(name) = name {
        path.push('/');
        push_segment(&mut path, "name", name)?;
    }
    Ok(path)
}

/// Path of the Event of this name, or of all in this namespace.
pub(super) fn event_path(namespace: &str, name: Option<&str>) -> Result<String, Refusal> {
    let mut path = "/apis/events.k8s.io/v1/namespaces/".to_owned();
    push_segment(&mut path, "namespace", namespace)?;
    path.push_str("/events");
    if let Some(name) = name {
        path.push('/');
        push_segment(&mut path, "name", name)?;
    }
    Ok(path)
}

/// Path of one object.
pub(super) fn object_path(object: &ObjectRef) -> Result<String, Refusal> {
    let mut path = collection_path(object.resource, Some(&object.namespace))?;
    path.push('/');
    push_segment(&mut path, "name", &object.name)?;
    Ok(path)
}

/// An empty name would turn the path into that of the collection, and a delete into a delete of
/// everything in it; so such a request never leaves.
fn push_segment(path: &mut String, what: &str, segment: &str) -> Result<(), Refusal> {
    if matches!(segment, "" | "." | "..") {
        return Err(Refusal {
            class: RefusalClass::Permanent,
            code: 0,
            message: format!("`{segment}` is no {what} of a Kubernetes object; not sent"),
            retry_after: None,
        });
    }
    percent_encode(path, segment);
    Ok(())
}

/// `?key=value&…` of the pairs that have a value.
pub(super) fn push_query(target: &mut String, pairs: &[(&str, &str)]) {
    let mut separator = '?';
    for (key, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
        target.push(separator);
        target.push_str(key);
        target.push('=');
        percent_encode(target, value);
        separator = '&';
    }
}

fn percent_encode(target: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            target.push(char::from(byte));
        } else {
            target.push('%');
            target.push(char::from(HEX[usize::from(byte >> 4)]));
            target.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(resource: Resource, namespace: &str, name: &str) -> ObjectRef {
        ObjectRef::new(resource, namespace, name)
    }

    #[test]
    fn paths_follow_group_and_scope() {
        let path = |resource| object_path(&object(resource, "ws-1", "x")).unwrap();
        assert_eq!(path(Resource::Namespace), "/api/v1/namespaces/x");
        assert_eq!(path(Resource::Secret), "/api/v1/namespaces/ws-1/secrets/x");
        assert_eq!(
            path(Resource::ReplicaSet),
            "/apis/apps/v1/namespaces/ws-1/replicasets/x"
        );
        assert_eq!(
            path(Resource::CiliumNetworkPolicy),
            "/apis/cilium.io/v2/namespaces/ws-1/ciliumnetworkpolicies/x"
        );
        assert_eq!(
            collection_path(Resource::Pod, None).unwrap(),
            "/api/v1/pods"
        );
    }

    #[test]
    fn a_nameless_object_never_becomes_a_request_for_the_collection() {
        for (namespace, name) in [("ws-1", ""), ("", "x"), ("ws-1", ".."), (".", "x")] {
            let refused = object_path(&object(Resource::ReplicaSet, namespace, name)).unwrap_err();
            assert_eq!(refused.class, RefusalClass::Permanent);
        }
    }

    #[test]
    fn names_and_selectors_cannot_leave_their_place() {
        let path = object_path(&object(Resource::Pod, "a/b", "x?dryRun=All#é")).unwrap();
        assert_eq!(
            path,
            "/api/v1/namespaces/a%2Fb/pods/x%3FdryRun%3DAll%23%C3%A9"
        );
        let mut target = "/api/v1/pods".to_owned();
        push_query(
            &mut target,
            &[("labelSelector", "a=b,c in (d)"), ("fieldSelector", "")],
        );
        assert_eq!(
            target,
            "/api/v1/pods?labelSelector=a%3Db%2Cc%20in%20%28d%29"
        );
    }

    #[test]
    fn debug_output_never_holds_a_body() {
        let call = Call::new(Verb::Apply, "secrets", "/x".to_owned())
            .with_body("application/json", Bytes::from_static(b"hunter2"));
        assert!(!format!("{call:?}").contains("hunter2"));
    }
}
