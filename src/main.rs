//! The krane binary.
fn main() {}
