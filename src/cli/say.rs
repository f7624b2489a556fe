//! What the operator is told on standard error, apart from the log.

use std::io::Write;

/// Says one line to the operator on standard error. If nobody listens there, nobody does.
pub(super) fn say(line: &str) {
    writeln!(std::io::stderr(), "ringgate: {line}").unwrap_or_default();
}

/// Says a line that is meant to be copied.
pub(super) fn say_as_it_is(line: &str) {
    writeln!(std::io::stderr(), "{line}").unwrap_or_default();
}
