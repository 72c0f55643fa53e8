//! The audit log: who asked the API server for what. Tests count writes with it.

use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::PathBuf,
};

use jiff::Timestamp;
use serde::Deserialize;

use crate::{Cluster, Error};

/// A place in the audit log, and when it was its end: what was asked before and is written down only now does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct AuditMark {
    offset: u64,
    at: Timestamp,
}

impl AuditMark {
    /// Before the first request.
    pub const START: Self = Self {
        offset: 0,
        at: Timestamp::UNIX_EPOCH,
    };
}

/// An answered request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// API group, empty for the core group.
    pub group: String,
    /// Plural resource, empty for paths that are no resource.
    pub resource: String,
    /// `status`, `scale`, `token` …, mostly empty.
    pub subresource: String,
    /// Namespace, empty for cluster-wide resources and requests.
    pub namespace: String,
    /// Object name, empty for lists.
    pub name: String,
    /// The user.
    pub user: String,
    /// What the client calls itself.
    pub user_agent: String,
    /// HTTP status of the answer, 0 when there was none.
    pub code: u16,
    /// Path and query.
    pub uri: String,
    /// When the request arrived.
    pub received: Timestamp,
    /// When it was answered; for a watch, when it ended.
    pub answered: Timestamp,
}

impl AuditEntry {
    /// Whether the request was meant to change stored objects. Reviews and tokens are created and stored nowhere; dry
    /// runs change nothing.
    pub fn is_write(&self) -> bool {
        matches!(
            self.verb.as_str(),
            "create" | "update" | "patch" | "delete" | "deletecollection"
        ) && !self.group.starts_with("authentication.k8s.io")
            && !self.group.starts_with("authorization.k8s.io")
            && self.subresource != "token"
            && !self.uri.contains("dryRun=")
    }
}

impl Cluster {
    /// The file the API server appends a line of JSON to for every answered request.
    pub fn audit_log_path(&self) -> Result<PathBuf, Error> {
        if self.options().audit {
            Ok(self.audit_log())
        } else {
            Err(Error::AuditOff)
        }
    }

    /// The end of the log now.
    pub fn audit_mark(&self) -> Result<AuditMark, Error> {
        let path = self.audit_log_path()?;
        // The log has microseconds.
        let now = Timestamp::now().as_microsecond();
        let at = Timestamp::from_microsecond(now).unwrap_or_default();
        match path.metadata() {
            Ok(metadata) => Ok(AuditMark {
                offset: metadata.len(),
                at,
            }),
            Err(source) => Err(Error::Files { path, source }),
        }
    }

    /// All answered requests that arrived since a mark, in the order of their answers.
    ///
    /// A line is written when the answer is sent: a test that has just seen the effect of a request may have to ask
    /// again a moment later to see its line.
    pub fn requests(&self, since: AuditMark) -> Result<Vec<AuditEntry>, Error> {
        let path = self.audit_log_path()?;
        let read = || {
            let mut file = File::open(&path)?;
            file.seek(SeekFrom::Start(since.offset))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|source| Error::Files {
            path: path.clone(),
            source,
        })?;
        // The last line may be half written; a mark taken at such a moment starts in the middle of one.
        Ok(bytes
            .split(|byte| *byte == b'\n')
            .filter_map(parse)
            .filter(|entry| entry.received >= since.at)
            .collect())
    }

    /// The requests of one user since a mark, reads included.
    pub fn requests_by(&self, user: &str, since: AuditMark) -> Result<Vec<AuditEntry>, Error> {
        let mut entries = self.requests(since)?;
        entries.retain(|entry| entry.user == user);
        Ok(entries)
    }

    /// The writes of one user since a mark ([`AuditEntry::is_write`]), refused ones included.
    pub fn writes_by(&self, user: &str, since: AuditMark) -> Result<Vec<AuditEntry>, Error> {
        let mut entries = self.requests_by(user, since)?;
        entries.retain(AuditEntry::is_write);
        Ok(entries)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    verb: String,
    #[serde(default, rename = "requestURI")]
    request_uri: String,
    #[serde(default)]
    user: User,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
    request_received_timestamp: Timestamp,
    stage_timestamp: Timestamp,
}

#[derive(Deserialize, Default)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
    api_group: String,
}

#[derive(Deserialize, Default)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

fn parse(line: &[u8]) -> Option<AuditEntry> {
    let line: Line = serde_json::from_slice(line).ok()?;
    Some(AuditEntry {
        verb: line.verb,
        group: line.object_ref.api_group,
        resource: line.object_ref.resource,
        subresource: line.object_ref.subresource,
        namespace: line.object_ref.namespace,
        name: line.object_ref.name,
        user: line.user.username,
        user_agent: line.user_agent,
        code: line.response_status.code,
        uri: line.request_uri,
        received: line.request_received_timestamp,
        answered: line.stage_timestamp,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"x",
        "stage":"ResponseComplete","requestURI":"/apis/apps/v1/namespaces/a/replicasets/b?fieldManager=krane",
        "verb":"patch","user":{"username":"u","groups":["g"]},"sourceIPs":["127.0.0.1"],"userAgent":"krane/1",
        "objectRef":{"resource":"replicasets","namespace":"a","name":"b","apiGroup":"apps","apiVersion":"v1"},
        "responseStatus":{"metadata":{},"code":201},"requestReceivedTimestamp":"2026-01-02T03:04:05.678901Z",
        "stageTimestamp":"2026-01-02T03:04:05.700000Z"}"#;

    #[test]
    fn a_line_is_parsed() {
        let entry = parse(LINE.as_bytes()).unwrap();
        assert_eq!(
            (
                entry.verb.as_str(),
                entry.group.as_str(),
                entry.resource.as_str()
            ),
            ("patch", "apps", "replicasets")
        );
        assert_eq!(
            (entry.namespace.as_str(), entry.name.as_str(), entry.code),
            ("a", "b", 201)
        );
        assert!(entry.is_write());
        assert!(entry.received < entry.answered);
    }

    #[test]
    fn reads_reviews_tokens_and_dry_runs_are_no_writes() {
        let entry = parse(LINE.as_bytes()).unwrap();
        assert!(
            !AuditEntry {
                verb: "watch".into(),
                ..entry.clone()
            }
            .is_write()
        );
        assert!(
            !AuditEntry {
                group: "authentication.k8s.io".into(),
                ..entry.clone()
            }
            .is_write()
        );
        assert!(
            !AuditEntry {
                subresource: "token".into(),
                ..entry.clone()
            }
            .is_write()
        );
        assert!(
            !AuditEntry {
                uri: "/api?dryRun=All".into(),
                ..entry
            }
            .is_write()
        );
    }

    #[test]
    fn half_a_line_is_left_out() {
        assert_eq!(parse(&LINE.as_bytes()[..LINE.len() / 2]), None);
        assert_eq!(parse(b""), None);
    }
}
