//! The protobuf contract: the messages and services that krane speaks, generated from the
//! `.proto` files of this folder.
//!
//! Messages that carry a secret (a token, a key, a plaintext, a ciphertext) print sizes in their
//! `Debug`, never content.

pub mod codes;
pub mod raw;
mod redacted;

/// How krane names itself to whom it calls.
pub const USER_AGENT: &str = concat!("krane/", env!("CARGO_PKG_VERSION"));

/// The encoded `FileDescriptorSet` of all files, for reflection and for tests that walk the fields.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// What the control plane serves.
pub mod ctrl {
    /// `ctrl.v1`
    #[allow(
        missing_docs,
        unreachable_pub,
        unused_qualifications,
        clippy::all,
        clippy::pedantic,
        clippy::allow_attributes_without_reason,
        reason = "generated code"
    )]
    pub mod v1 {
        tonic::include_proto!("ctrl.v1");
        include!(concat!(env!("OUT_DIR"), "/ctrl.v1.serde.rs"));
    }
}

/// What krane itself serves.
pub mod krane {
    /// `krane.v1`
    #[allow(
        missing_docs,
        unreachable_pub,
        unused_qualifications,
        clippy::all,
        clippy::pedantic,
        clippy::allow_attributes_without_reason,
        reason = "generated code"
    )]
    pub mod v1 {
        tonic::include_proto!("krane.v1");
        include!(concat!(env!("OUT_DIR"), "/krane.v1.serde.rs"));
    }
}

/// What the vault serves and stores.
pub mod vault {
    /// `vault.v1`
    #[allow(
        missing_docs,
        unreachable_pub,
        unused_qualifications,
        clippy::all,
        clippy::pedantic,
        clippy::allow_attributes_without_reason,
        reason = "generated code"
    )]
    pub mod v1 {
        tonic::include_proto!("vault.v1");
    }
}
