//! Whether a worker and its caller take turns so fast that neither should fall asleep between them.
//!
//! Staying awake takes a second core, so it has to be worth one: turns have to become faster by it. On a machine whose
//! cores all have other work they do not, and the two go on as before.
//!
//! Pure: readings of the clock go in.

use pydeno_wire::attention::ATTENTION;

use crate::clock::Nanos;

/// After how many fast turns in a row the two stay awake.
const FAST_TURNS: u16 = 16;
/// The same, at most, after they have stayed awake for nothing again and again.
const MOST_FAST_TURNS: u16 = 1 << 12;
/// By how much more is asked for each time.
const MORE_FAST_TURNS: u16 = 4;
/// After how many fast turns, awake, it is seen whether that is worth it.
const TRIAL: u16 = 32;
/// After so many the two sleep for a few turns, to see how long those take now.
const LONG: u16 = 1 << 12;
/// After how many turns in a row that were not fast the two sleep again. The first may be slow because the worker had to wake up.
const SLOW_TURNS: u8 = 3;

/// The rhythm of one worker's turns with its caller. A turn begins where the caller has said something and waits, and ends with
/// what it hears.
#[derive(Debug)]
pub(crate) struct Rhythm {
    is_awake: bool,
    /// How many turns were fast since the two went to sleep or woke up; while they sleep, in a row.
    fast: u16,
    /// How many it takes for waking up.
    needed: u16,
    /// How many turns in a row were not fast although both were awake.
    slow: u8,
    began: Nanos,
    ended: Nanos,
    /// How long the fast turns have taken together, while awake those since it was seen whether that is worth it, in nanoseconds.
    spent: u64,
    /// How long each of those took after which the two woke up.
    asleep: u64,
}

impl Default for Rhythm {
    fn default() -> Self {
        Self {
            is_awake: false,
            fast: 0,
            needed: FAST_TURNS,
            slow: 0,
            began: Nanos(0),
            ended: Nanos(0),
            spent: 0,
            asleep: 0,
        }
    }
}

impl Rhythm {
    /// A turn begins; whether both stay awake meanwhile. A worker that has heard nothing for too long is asleep already.
    pub(crate) fn begin(&mut self, now: Nanos) -> bool {
        self.began = now;
        if now.since(self.ended) > ATTENTION {
            self.sleep();
        }
        self.is_awake
    }

    /// The turn has ended.
    pub(crate) fn end(&mut self, now: Nanos) {
        self.ended = now;
        let length = now.since(self.began);
        if length > ATTENTION {
            self.slow += 1;
            if !self.is_awake {
                self.sleep();
            } else if self.slow == SLOW_TURNS {
                self.was_for_nothing();
            }
            return;
        }
        self.slow = 0;
        self.fast += 1;
        self.spent += length.as_nanos() as u64;
        if self.is_awake {
            self.see_whether_it_is_worth_it();
        } else if self.fast >= self.needed {
            self.asleep = self.spent / u64::from(self.fast);
            self.sleep();
            self.is_awake = true;
        }
    }

    fn see_whether_it_is_worth_it(&mut self) {
        if !self.fast.is_multiple_of(TRIAL) {
            return;
        }
        let awake = std::mem::take(&mut self.spent) / u64::from(TRIAL);
        if 8 * awake > 7 * self.asleep {
            self.was_for_nothing();
            return;
        }
        self.needed = (self.needed / 2).max(FAST_TURNS);
        if self.fast >= LONG {
            self.sleep();
        }
    }

    /// The two cannot be kept off each other's core: staying awake would only keep the other one from it.
    pub(crate) fn has_one_core(&mut self) {
        self.needed = MOST_FAST_TURNS;
        self.sleep();
    }

    /// What comes next is no turn of theirs.
    pub(crate) fn sleep(&mut self) {
        self.is_awake = false;
        self.fast = 0;
        self.spent = 0;
        self.slow = 0;
    }

    fn was_for_nothing(&mut self) {
        self.needed = self.needed.saturating_mul(MORE_FAST_TURNS).min(MOST_FAST_TURNS);
        self.sleep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Turns that take a number of microseconds, another one while both are awake.
    struct Turns {
        rhythm: Rhythm,
        now: Nanos,
        asleep: u64,
        awake: u64,
    }

    impl Turns {
        fn new(asleep: u64, awake: u64) -> Self {
            Self { rhythm: Rhythm::default(), now: Nanos(0), asleep, awake }
        }

        /// Takes a turn after a pause of some microseconds; whether both were awake in it.
        fn turn(&mut self, pause: u64) -> bool {
            self.now = self.now.plus(Duration::from_micros(pause));
            let is_awake = self.rhythm.begin(self.now);
            let length = if is_awake { self.awake } else { self.asleep };
            self.now = self.now.plus(Duration::from_micros(length));
            self.rhythm.end(self.now);
            is_awake
        }

        /// In how many turns both were awake.
        fn take(&mut self, turns: u16, pause: u64) -> u16 {
            (0..turns).map(|_| u16::from(self.turn(pause))).sum()
        }

        /// How many turns they sleep through until they are awake, and how many they are.
        fn phases(&mut self) -> (u16, u16) {
            let asleep = (0..u16::MAX).take_while(|_| !self.turn(5)).count();
            let awake = (1..u16::MAX).take_while(|_| self.turn(5)).count();
            (asleep as u16, awake as u16 + 1)
        }
    }

    #[test]
    fn both_stay_awake_after_some_fast_turns_and_not_after_a_pause() {
        let mut turns = Turns::new(25, 15);
        assert_eq!(turns.take(FAST_TURNS, 5), 0);
        assert_eq!(turns.take(1000, 5), 1000);
        assert_eq!(turns.take(1, 1000), 0, "the worker has gone to sleep");
        assert_eq!(turns.take(FAST_TURNS - 1, 5), 0);
        assert_eq!(turns.take(1, 5), 1);
    }

    #[test]
    fn slow_turns_are_slept_through() {
        assert_eq!(Turns::new(500, 500).take(1000, 5), 0);
        assert_eq!(Turns::new(25, 15).take(1000, 500), 0);
    }

    #[test]
    fn staying_awake_is_tried_more_and_more_rarely_where_it_makes_turns_no_faster() {
        let mut turns = Turns::new(25, 22);
        let phases: Vec<_> = (0..6).map(|_| turns.phases()).collect();
        // The turn in which a phase ends belongs to the next.
        let asleep = [16, 63, 255, 1023, 4095, 4095];
        assert_eq!(phases, asleep.map(|asleep| (asleep, TRIAL)));
    }

    #[test]
    fn staying_awake_ends_where_the_other_one_has_no_core() {
        let mut turns = Turns::new(25, 15);
        turns.take(FAST_TURNS + 100, 5);
        turns.awake = 200;
        assert_eq!(turns.take(2, 5), 2, "few slow turns in a row are nothing");
        turns.awake = 15;
        assert_eq!(turns.take(100, 5), 100);
        turns.asleep = 200;
        turns.awake = 200;
        assert_eq!(turns.take(100, 5), u16::from(SLOW_TURNS));
        assert_eq!(turns.rhythm.needed, FAST_TURNS * MORE_FAST_TURNS);
    }

    #[test]
    fn it_is_seen_again_and_again_whether_staying_awake_is_still_worth_it() {
        let mut turns = Turns::new(25, 15);
        assert_eq!(turns.phases(), (FAST_TURNS, LONG));
        assert_eq!(turns.phases(), (FAST_TURNS - 1, LONG));
        // The machine is busy now: turns of two that sleep take no longer, the others do.
        turns.awake = 30;
        assert_eq!(turns.phases(), (FAST_TURNS - 1, TRIAL));
        assert_eq!(turns.phases(), (FAST_TURNS * MORE_FAST_TURNS - 1, TRIAL));
    }

    #[test]
    fn two_that_have_one_core_stay_awake_no_more() {
        let mut turns = Turns::new(25, 15);
        turns.take(FAST_TURNS, 5);
        assert!(turns.rhythm.begin(turns.now));
        turns.rhythm.has_one_core();
        assert_eq!(turns.take(1000, 5), 0);
    }
}
