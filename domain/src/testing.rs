//! A model of what a real API server makes of an apply, for tests: field ownership, defaults,
//! canonical quantities and dropped empty values, as measured on a real one.

mod defaults;
#[cfg(test)]
mod lists;
mod lookup;
mod ownership;
#[cfg(test)]
mod samples;

#[cfg(test)]
pub(crate) use lists::check_lists;
pub use lookup::lookup;
pub use ownership::fields_of;
#[cfg(test)]
pub(crate) use samples::{
    Edit, full_input, list_at, minimal_input, scaled_input, sentinel_input, valid_input,
};
use serde_json::{Value, json};

use crate::object::{LiveObject, Rendered, Undecodable};

/// The object as the API server answers and stores it after krane's first apply of `rendered`.
pub fn applied_json(rendered: &Rendered, uid: &str, resource_version: u64) -> Value {
    let mut object = rendered.body.clone();
    defaults::fill(rendered.reference.resource, &mut object);
    let metadata = &mut object["metadata"];
    metadata["uid"] = json!(uid);
    metadata["resourceVersion"] = json!(resource_version.to_string());
    metadata["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    metadata["managedFields"] = json!([{
        "manager": "krane",
        "operation": "Apply",
        "apiVersion": rendered.reference.resource.api_version(),
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields_of(&rendered.body),
    }]);
    object
}

/// The same, as krane keeps it.
pub fn applied(
    rendered: &Rendered,
    uid: &str,
    resource_version: u64,
) -> Result<LiveObject, Undecodable> {
    let json = applied_json(rendered, uid, resource_version);
    LiveObject::from_json(rendered.reference.resource, json)
}
