//! Where every field of `ApplyDeployment` ends up.

/// One field of the `ApplyDeployment` message and the places its value lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtoField {
    /// Field number.
    pub number: u32,
    /// Field name in the protocol.
    pub name: &'static str,
    /// Places in the rendered ReplicaSet, in the notation of [`crate::drift::Difference::path`].
    pub places: &'static [&'static str],
    /// What of it is not built yet; empty when all is.
    pub later: &'static str,
}

/// Every field krane knows. A field of the protocol without a row here fails a test (A12).
pub const FIELD_TABLE: &[ProtoField] = &[];
