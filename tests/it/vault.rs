//! The adapters of the vault against scripted servers, and the contract of every vault.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail them"
)]

mod embedded;
mod log;
mod memory;
mod remote;
mod s3;
mod verify;

use std::collections::BTreeMap;

use krane_settings::{LoadInput, Loaded, Settings};

const CANARY: &str = "canary-5d41402abc4b2a76b9719d911017c592";

/// Settings with these lines in a file, and what every krane needs.
fn settings(lines: &str) -> Settings {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("krane.toml");
    let needed = "region = 'us-east-1.aws'\n[control]\nurl = 'http://control'\ntoken = 't'\n";
    std::fs::write(&file, format!("{needed}{lines}")).unwrap();
    let input = LoadInput {
        files: vec![file],
        ..LoadInput::default()
    };
    Loaded::load(&input).unwrap().settings
}

fn items(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = texts
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    owned.collect()
}
