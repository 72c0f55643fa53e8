//! The healthcheck JSON of a deployment.
