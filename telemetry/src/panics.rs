//! A panic becomes an error line with its place and without its text.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::Write;
use std::panic::PanicHookInfo;

/// The text of a panic may quote a message, an environment or a token.
const WITHHELD: &str = "panicked; the text is withheld because it may hold tenant data";

/// Replaces the hook of the standard library, which prints the text.
pub(super) fn install() {
    std::panic::set_hook(Box::new(report));
}

fn report(panic: &PanicHookInfo<'_>) {
    krane_supervision::cause::note_panic(panic);
    let location = panic
        .location()
        .map(ToString::to_string)
        .unwrap_or_default();
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    if !tracing::dispatcher::has_been_set() {
        // Too early for log lines; stderr is all there is.
        let _ = writeln!(
            std::io::stderr(),
            "krane: {thread} {WITHHELD}, at {location}"
        );
        return;
    }
    let backtrace = Backtrace::capture();
    let captured = backtrace.status() == BacktraceStatus::Captured;
    let backtrace = captured.then(|| tracing::field::display(backtrace));
    tracing::error!(target: "krane::panic", location, thread, backtrace, "{WITHHELD}");
}
