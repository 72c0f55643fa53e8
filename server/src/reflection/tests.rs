//! What reflection may tell.

use tonic::service::Routes;

use super::{add, files_of};

fn names(services: &[&str]) -> Vec<String> {
    let files = files_of(services).unwrap().file;
    files.iter().map(|file| file.name().to_owned()).collect()
}

#[test]
fn only_the_files_of_what_is_served_are_told() {
    assert_eq!(
        names(&["krane.v1.SecretsService"]),
        ["krane/v1/secrets.proto"]
    );
    assert!(names(&[]).is_empty());
    // What is imported comes along.
    let cluster = names(&["ctrl.v1.ClusterService"]);
    assert_eq!(
        cluster,
        ["ctrl/v1/cluster.proto", "ctrl/v1/deployment.proto"]
    );
}

#[test]
fn every_service_can_be_told() {
    for services in [&[][..], &["krane.v1.SecretsService"]] {
        assert!(add(Routes::default(), services).is_ok(), "{services:?}");
    }
}
