//! The moment in which either end looks for what the other says before it sleeps.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

/// How long it takes. To wake somebody on an idle core costs about as much, so one who looks in vain has spent at most twice what
/// sleeping at once would have cost.
pub const ATTENTION: Duration = Duration::from_micros(50);

/// Each look takes the lock that the other end needs for what is looked for.
const PAUSES_BETWEEN_LOOKS: u32 = 8;

/// One such moment.
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    began: Instant,
}

impl Attention {
    /// It begins.
    #[must_use]
    pub fn begin() -> Self {
        Self { began: Instant::now() }
    }

    /// Before another look, pauses; false when the moment is over.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        for _ in 0..PAUSES_BETWEEN_LOOKS {
            spin_loop();
        }
        self.began.elapsed() < ATTENTION
    }
}
