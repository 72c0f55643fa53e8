//! Compiles the `.proto` files without `protoc`.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message as _;

const FILES: [&str; 7] = [
    "ctrl/v1/cluster.proto",
    "ctrl/v1/deployment.proto",
    "ctrl/v1/secrets.proto",
    "krane/v1/scheduler.proto",
    "krane/v1/secrets.proto",
    "vault/v1/object.proto",
    "vault/v1/service.proto",
];

/// Messages that carry a secret; `src/redacted.rs` writes their `Debug` by hand.
const REDACTED: [&str; 18] = [
    ".ctrl.v1.ApplyDeployment",
    ".ctrl.v1.SecretsConfig",
    ".krane.v1.ApplyDeploymentRequest",
    ".krane.v1.DecryptSecretsBlobRequest",
    ".krane.v1.DecryptSecretsBlobResponse",
    ".vault.v1.DataEncryptionKey",
    ".vault.v1.DecryptBulkRequest",
    ".vault.v1.DecryptBulkResponse",
    ".vault.v1.DecryptRequest",
    ".vault.v1.DecryptResponse",
    ".vault.v1.EncryptBulkRequest",
    ".vault.v1.EncryptBulkResponseItem",
    ".vault.v1.EncryptRequest",
    ".vault.v1.EncryptResponse",
    ".vault.v1.Encrypted",
    ".vault.v1.KeyEncryptionKey",
    ".vault.v1.ReEncryptRequest",
    ".vault.v1.ReEncryptResponse",
];

#[allow(
    clippy::disallowed_methods,
    reason = "cargo tells a build script where to write this way"
)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    for file in FILES {
        println!("cargo:rerun-if-changed={file}");
    }

    let mut descriptors = protox::compile(FILES, ["."])?;
    tonic_prost_build::configure()
        .bytes(".")
        // What krane serves is written in one order, whatever the hasher.
        .btree_map(".krane.v1")
        .skip_debug(REDACTED)
        .compile_fds(descriptors.clone())?;

    // Comments are for the generated documentation, not for the binary.
    for file in &mut descriptors.file {
        file.source_code_info = None;
    }
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let descriptors = descriptors.encode_to_vec();
    fs::write(out.join("descriptors.bin"), &descriptors)?;
    // Connect callers may write JSON; a newer one may send fields that are not known here.
    pbjson_build::Builder::new()
        .register_descriptors(&descriptors)?
        .btree_map([".krane.v1"])
        .ignore_unknown_fields()
        .build(&[".krane.v1"])?;
    // States are written by people for `krane render`: a typing error must not pass.
    pbjson_build::Builder::new()
        .register_descriptors(&descriptors)?
        .build(&[".ctrl.v1"])?;
    Ok(())
}
