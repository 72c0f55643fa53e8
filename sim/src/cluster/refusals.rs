//! What a server answers when it refuses, in its own words.

use std::io;

use krane_domain::refusal::{ApiStatus, Cause};
use serde_json::Value;

use super::field_set::FieldSet;
use super::normal::Inconvertible;
use super::ownership::Manager;
use super::schema::Kind;
use super::typed::Problem;

/// The answer to a request that was refused.
pub(super) type Status = ApiStatus;

fn status(code: u16, reason: &str, message: String) -> Status {
    Status {
        code,
        reason: reason.to_owned(),
        message,
        is_json: true,
        ..Status::default()
    }
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object["metadata"][key].as_str().unwrap_or_default()
}

/// `ns/name; apps/v1, Kind=ReplicaSet`
fn identity(kind: &Kind, object: &Value) -> String {
    let (namespace, name) = (text(object, "namespace"), text(object, "name"));
    format!(
        "{namespace}/{name}; {}, Kind={}",
        kind.api_version(),
        kind.name
    )
}

pub(super) fn bad_request(message: impl Into<String>) -> Status {
    status(400, "BadRequest", message.into())
}

pub(super) fn untyped(kind: &Kind, body: &Value, problems: &[Problem]) -> Status {
    let identity = identity(kind, body);
    let text = match problems {
        [problem] => problem.to_string(),
        problems => {
            let lines: Vec<String> = problems.iter().map(|each| format!("  {each}")).collect();
            format!("errors:\n{}", lines.join("\n"))
        }
    };
    let message = format!("failed to create typed patch object ({identity}): {text}");
    status(500, "", message)
}

/// A value that fits the schema and cannot be stored. Only an apply is answered with 500.
pub(super) fn inconvertible(kind: &Kind, sent: &Value, problem: &Inconvertible) -> Status {
    if sent.is_null() {
        return bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: {}",
            kind.name, kind.version, kind.name, problem.0
        ));
    }
    let identity = identity(kind, sent);
    let message = format!(
        "failed to convert new object ({identity}) to proper version: {}",
        problem.0
    );
    status(500, "", message)
}

pub(super) fn field_conflict(conflicts: &[(&Manager, FieldSet)]) -> Status {
    let causes: Vec<Cause> = conflicts
        .iter()
        .map(|(manager, fields)| Cause {
            reason: "FieldManagerConflict".to_owned(),
            field: fields.to_json().to_string(),
            message: format!("conflict with \"{}\"", manager.name),
        })
        .collect();
    let plural = if causes.len() == 1 { "" } else { "s" };
    let message = format!(
        "Apply failed with {} conflict{plural}: {}",
        causes.len(),
        causes
            .first()
            .map(|cause| cause.message.as_str())
            .unwrap_or_default()
    );
    Status {
        causes,
        ..status(409, "Conflict", message)
    }
}

pub(super) fn not_found(kind: &Kind, name: &str) -> Status {
    Status {
        details_kind: kind.plural.to_owned(),
        ..status(
            404,
            "NotFound",
            format!("{} \"{name}\" not found", kind.qualified_plural()),
        )
    }
}

pub(super) fn namespace_not_found(name: &str) -> Status {
    Status {
        details_kind: "namespaces".to_owned(),
        ..status(404, "NotFound", format!("namespaces \"{name}\" not found"))
    }
}

/// Plain text: the server does not know the path.
pub(super) fn kind_missing() -> Status {
    Status {
        code: 404,
        message: "404 page not found".to_owned(),
        ..Status::default()
    }
}

pub(super) fn namespace_terminating(kind: &Kind, name: &str, namespace: &str) -> Status {
    let text = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    Status {
        causes: vec![Cause {
            reason: "NamespaceTerminating".to_owned(),
            field: "metadata.namespace".to_owned(),
            message: format!("namespace {namespace} is being terminated"),
        }],
        details_kind: kind.plural.to_owned(),
        ..status(
            403,
            "Forbidden",
            format!(
                "{} \"{name}\" is forbidden: {text}",
                kind.qualified_plural()
            ),
        )
    }
}

pub(super) fn kind_terminating(kind: &Kind, name: &str) -> Status {
    status(
        403,
        "Forbidden",
        format!(
            "{} \"{name}\" is forbidden: create not allowed while custom resource definition is \
             terminating",
            kind.qualified_plural()
        ),
    )
}

pub(super) fn exists(kind: &Kind, name: &str) -> Status {
    let message = format!("{} \"{name}\" already exists", kind.qualified_plural());
    status(409, "AlreadyExists", message)
}

pub(super) fn conflict(kind: &Kind, name: &str, text: &str) -> Status {
    let plural = kind.qualified_plural();
    status(
        409,
        "Conflict",
        format!("Operation cannot be fulfilled on {plural} \"{name}\": {text}"),
    )
}

/// The object of the uid is gone, and none of the name is there.
pub(super) fn uid_of_nothing(kind: &Kind, name: &str, uid: &str) -> Status {
    let text = format!(
        "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
    );
    conflict(kind, name, &text)
}

pub(super) fn stale(kind: &Kind, name: &str) -> Status {
    let text = "the object has been modified; please apply your changes to the latest version and \
                try again";
    conflict(kind, name, text)
}

pub(super) fn precondition(kind: &Kind, name: &str, wanted: &str, found: &str) -> Status {
    let text = format!(
        "the UID in the precondition ({wanted}) does not match the UID in record ({found}). The \
         object might have been deleted and then recreated"
    );
    conflict(kind, name, &text)
}

/// A rule of a kind that an object breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) reason: &'static str,
    pub(super) field: String,
    pub(super) text: String,
}

impl Broken {
    pub(super) fn invalid(field: impl Into<String>, value: &Value, text: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            field: field.into(),
            text: format!("Invalid value: {value}: {text}"),
        }
    }

    pub(super) fn required(field: impl Into<String>, text: &str) -> Self {
        let text = if text.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {text}")
        };
        Self {
            reason: "FieldValueRequired",
            field: field.into(),
            text,
        }
    }

    pub(super) fn unsupported(field: impl Into<String>, value: &Value, known: &[&str]) -> Self {
        let known: Vec<String> = known.iter().map(|each| format!("\"{each}\"")).collect();
        Self {
            reason: "FieldValueNotSupported",
            field: field.into(),
            text: format!(
                "Unsupported value: {value}: supported values: {}",
                known.join(", ")
            ),
        }
    }

    pub(super) fn forbidden(field: impl Into<String>, text: &str) -> Self {
        Self {
            reason: "FieldValueForbidden",
            field: field.into(),
            text: format!("Forbidden: {text}"),
        }
    }

    pub(super) fn too_long(field: impl Into<String>, text: &str) -> Self {
        Self {
            reason: "FieldValueTooLong",
            field: field.into(),
            text: format!("Too long: {text}"),
        }
    }
}

pub(super) fn invalid(kind: &Kind, name: &str, broken: &[Broken]) -> Status {
    let lines: Vec<String> = broken
        .iter()
        .map(|each| format!("{}: {}", each.field, each.text))
        .collect();
    let text = match &lines[..] {
        [line] => line.clone(),
        lines => format!("[{}]", lines.join(", ")),
    };
    Status {
        causes: broken
            .iter()
            .map(|each| Cause {
                reason: each.reason.to_owned(),
                field: each.field.clone(),
                message: each.text.clone(),
            })
            .collect(),
        details_kind: kind.name.to_owned(),
        ..status(
            422,
            "Invalid",
            format!("{} \"{name}\" is invalid: {text}", kind.qualified()),
        )
    }
}

/// A JSON patch that does not fit the object.
pub(super) fn unprocessable() -> Status {
    status(
        422,
        "Invalid",
        "the server rejected our request due to an error in our request".to_owned(),
    )
}

/// Objects that etcd does not take, by their size in bytes.
/// The length of a value as compact JSON text, which is not kept.
pub(super) fn text_length(value: &Value) -> usize {
    struct Length(usize);
    impl io::Write for Length {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut length = Length(0);
    // Neither the writer nor a value fails.
    let _ = serde_json::to_writer(&mut length, value);
    length.0
}

pub(super) fn too_large(size: usize) -> Option<Status> {
    const REQUEST: usize = 1_572_864;
    const MESSAGE: usize = 2_097_152;
    if size > MESSAGE {
        let text = "rpc error: code = ResourceExhausted desc = trying to send message larger than \
                    max";
        return Some(status(500, "", format!("{text} ({size} vs. {MESSAGE})")));
    }
    (size > REQUEST).then(|| status(500, "", "etcdserver: request is too large".to_owned()))
}

pub(super) fn expired(version: u64, oldest: u64) -> Status {
    let message = format!("too old resource version: {version} ({oldest})");
    status(410, "Expired", message)
}

pub(super) fn garbage_version(version: &str) -> Status {
    let message = format!("strconv.ParseUint: parsing \"{version}\": invalid syntax");
    status(500, "", message)
}
