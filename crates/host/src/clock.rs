//! Monotonic time as a number, so that it fits an atomic.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Nanoseconds since this process first asked. 2^64 of them are 584 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Nanos(pub(crate) u64);

impl Nanos {
    pub(crate) fn now() -> Self {
        Self(ORIGIN.elapsed().as_nanos() as u64)
    }

    pub(crate) fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// The time from `earlier` to `self`, zero when `earlier` is later.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
