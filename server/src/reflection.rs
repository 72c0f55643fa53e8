//! gRPC server reflection: tells tools which services there are, and what their messages look like.

#[cfg(test)]
mod tests;

use krane_proto::FILE_DESCRIPTOR_SET;
use prost::Message as _;
use prost_types::{FileDescriptorProto, FileDescriptorSet};
use tonic::service::Routes;
use tonic_reflection::server::{Builder, Error};

/// The methods, in the version of today and the one that older tools ask for.
pub const METHODS: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// Adds reflection about these services of krane, and about gRPC health. What krane knows of the
/// contract beyond them is not told.
pub fn add(routes: Routes, services: &[&str]) -> Result<Routes, Error> {
    let builder = || -> Result<Builder<'static>, Error> {
        Ok(Builder::configure()
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .register_file_descriptor_set(files_of(services)?))
    };
    Ok(routes
        .add_service(builder()?.build_v1()?)
        .add_service(builder()?.build_v1alpha()?))
}

/// The files that declare these services, and what those import.
fn files_of(services: &[&str]) -> Result<FileDescriptorSet, Error> {
    let FileDescriptorSet { mut file } = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET)?;
    let mut found: Vec<FileDescriptorProto> = Vec::new();
    let mut wanted: Vec<String> = Vec::new();
    for one in &file {
        let declares = one.service.iter().any(|service| {
            services.contains(&format!("{}.{}", one.package(), service.name()).as_str())
        });
        if declares {
            wanted.push(one.name().to_owned());
        }
    }
    while let Some(name) = wanted.pop() {
        if let Some(at) = file.iter().position(|one| one.name() == name) {
            let one = file.swap_remove(at);
            wanted.extend(one.dependency.iter().cloned());
            found.push(one);
        }
    }
    Ok(FileDescriptorSet { file: found })
}
