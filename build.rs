//! Tells the binary which commit and compiler it was built from.

#![expect(
    clippy::disallowed_methods,
    reason = "a build script has no settings, its environment is its input"
)]

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=KRANE_BUILD_SHA");
    // A release must name its commit; a development build may lag behind and saves a rebuild.
    let release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let watched = if release {
        ".git/logs/HEAD"
    } else {
        ".git/HEAD"
    };
    if Path::new(watched).exists() {
        println!("cargo:rerun-if-changed={watched}");
    }
    let sha = std::env::var("KRANE_BUILD_SHA")
        .ok()
        .filter(|sha| !sha.is_empty());
    let sha = sha.or_else(|| first_line("git", &["rev-parse", "--short=12", "HEAD"]));
    println!(
        "cargo:rustc-env=KRANE_BUILD_SHA={}",
        sha.as_deref().unwrap_or("unknown")
    );
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = first_line(&rustc, &["--version"]);
    let version = version
        .as_deref()
        .and_then(|line| line.split(' ').nth(1))
        .unwrap_or("unknown");
    println!("cargo:rustc-env=KRANE_BUILD_RUSTC={version}");
}

fn first_line(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout)
        .ok()
        .filter(|_| output.status.success())?;
    text.lines()
        .next()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
}
