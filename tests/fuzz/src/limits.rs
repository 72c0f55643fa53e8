//! How long, how much, and how to do it again.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds per target; a short while in the quick tier.
pub const SECONDS_VARIABLE: &str = "KRANE_FUZZ_SECONDS";
/// The seed that a run printed, in hexadecimal, to have the same inputs in the same order.
pub const SEED_VARIABLE: &str = "KRANE_FUZZ_SEED";
/// One input in hexadecimal, to show it again and nothing else.
pub const INPUT_VARIABLE: &str = "KRANE_FUZZ_INPUT";

/// What one input may take, on a machine that does other things too.
pub(crate) const HANG: Duration = Duration::from_secs(5);

/// Per target in the quick tier.
const QUICK: Duration = Duration::from_millis(300);

/// Resident memory of a process that does nothing else, in KiB.
const MOST_MEMORY: u64 = 512 * 1024;

pub(crate) fn budget() -> Duration {
    seconds().map_or(QUICK, Duration::from_secs_f64)
}

fn seconds() -> Option<f64> {
    let text = std::env::var(SECONDS_VARIABLE).ok()?;
    Some(text.parse().expect("KRANE_FUZZ_SECONDS is a number"))
}

/// The seed of this run: another one each time.
pub(crate) fn seed() -> [u8; 32] {
    let mut seed = [0; 32];
    let asked_for = std::env::var(SEED_VARIABLE).ok();
    let start = if let Some(text) = asked_for {
        bytes(&text).expect("KRANE_FUZZ_SEED is hexadecimal")
    } else {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_nanos());
        now.to_le_bytes()[..8].to_vec()
    };
    let length = start.len().min(seed.len());
    seed[..length].copy_from_slice(&start[..length]);
    seed
}

pub(crate) fn input() -> Option<Vec<u8>> {
    let text = std::env::var(INPUT_VARIABLE).ok()?;
    Some(bytes(&text).expect("KRANE_FUZZ_INPUT is hexadecimal"))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.map(byte).collect()
}

/// Fails if this process ever had more memory than any input may make it take. Only where the
/// process does nothing else.
pub(crate) fn check_memory(target: &str) {
    if seconds().is_none() {
        return;
    }
    // Elsewhere than on Linux nobody says.
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
        return;
    };
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<u64>().ok());
    let peak = peak.expect("Linux says how much memory a process had");
    println!("{target}: at most {} MiB", peak / 1024);
    assert!(peak < MOST_MEMORY, "{target}: {} MiB", peak / 1024);
}
