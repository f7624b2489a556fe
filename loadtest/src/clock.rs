//! The one reading of the clock. Nothing else of the generator asks what time it is.

use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "a load generator has no clock but this one")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
