//! krane's adapters against programs of others, each a process of its own: a vault made with
//! connect-go and an S3 server. Needs Go and `scripts/tools s3`; run by `scripts/peers`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "helpers of tests may fail them, time is real here, and figures are printed"
)]

mod connect_vault;
mod s3_server;

use std::collections::BTreeMap;
use std::time::Duration;

/// Only a broken peer takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

fn items(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = texts
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    owned.collect()
}
