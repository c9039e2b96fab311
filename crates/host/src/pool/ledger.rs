//! What a pool has and what it owes, without processes, threads or clocks.
//!
//! A *place* is one worker that the pool may have; it is starting, ready, or in use. A *ticket* is somebody who waits for
//! one. Tickets are served in the order in which they were drawn, and nobody overtakes them.

use std::collections::{HashMap, VecDeque};

/// The books of one pool. `S` is a spare worker, `E` why one could not be started.
#[derive(Debug)]
pub(super) struct Ledger<S, E> {
    size: usize,
    max_workers: usize,
    ready: VecDeque<S>,
    waiting: VecDeque<u64>,
    granted: HashMap<u64, Result<S, E>>,
    starting: usize,
    in_use: usize,
    last_ticket: u64,
    /// Starts fail, or what was started does not live: workers are started only for those who wait, so that each
    /// hears what is wrong and nothing is tried for ever.
    failing: bool,
    /// Spares that died since one was last taken.
    died_unused: usize,
    closed: bool,
    counts: Counts,
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) created: u64,
    pub(super) checkouts: u64,
    pub(super) waits: u64,
    pub(super) timeouts: u64,
    pub(super) failures: u64,
}

/// What there is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) ready: usize,
    pub(super) starting: usize,
    pub(super) in_use: usize,
    pub(super) waiting: usize,
}

impl<S, E> Ledger<S, E> {
    /// Books that want `size` spares and never more than `max_workers` places.
    pub(super) fn new(size: usize, max_workers: usize) -> Self {
        Self {
            size,
            max_workers,
            ready: VecDeque::new(),
            waiting: VecDeque::new(),
            granted: HashMap::new(),
            starting: 0,
            in_use: 0,
            last_ticket: 0,
            failing: false,
            died_unused: 0,
            closed: false,
            counts: Counts::default(),
        }
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    pub(super) fn places(&self) -> Places {
        Places {
            ready: self.ready.len(),
            starting: self.starting,
            in_use: self.in_use,
            waiting: self.waiting.len(),
        }
    }

    pub(super) fn max_workers(&self) -> usize {
        self.max_workers
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// The spares that nobody has taken.
    pub(super) fn ready(&self) -> impl Iterator<Item = &S> {
        self.ready.iter()
    }

    /// A spare, where one is ready and nobody waits.
    pub(super) fn take(&mut self) -> Option<S> {
        if !self.waiting.is_empty() {
            return None;
        }
        let spare = self.ready.pop_front()?;
        self.in_use += 1;
        self.counts.checkouts += 1;
        self.died_unused = 0;
        Some(spare)
    }

    /// What was taken turned out to be dead.
    pub(super) fn was_dead(&mut self) {
        self.in_use -= 1;
        self.counts.checkouts -= 1;
        self.note_death();
    }

    /// Draws a ticket.
    pub(super) fn wait(&mut self) -> u64 {
        self.last_ticket += 1;
        self.waiting.push_back(self.last_ticket);
        self.counts.waits += 1;
        self.last_ticket
    }

    /// What the ticket has brought, once.
    pub(super) fn collect(&mut self, ticket: u64) -> Option<Result<S, E>> {
        let outcome = self.granted.remove(&ticket)?;
        if outcome.is_ok() {
            self.counts.checkouts += 1;
            self.died_unused = 0;
        }
        Some(outcome)
    }

    /// Gives a ticket up; what it has brought meanwhile goes to the next one, which is returned.
    pub(super) fn withdraw(&mut self, ticket: u64, timed_out: bool) -> Option<u64> {
        self.counts.timeouts += u64::from(timed_out);
        self.waiting.retain(|&other| other != ticket);
        let spare = self.granted.remove(&ticket)?.ok()?;
        self.in_use -= 1;
        self.supply(spare)
    }

    /// How many workers to start now, so that no more than `at_once` are starting. They are on the books from here on.
    pub(super) fn begin_starts(&mut self, at_once: usize) -> usize {
        let number = self.missing().min(at_once.saturating_sub(self.starting));
        self.starting += number;
        number
    }

    /// How many workers are to be started that there is room for.
    pub(super) fn missing(&self) -> usize {
        if self.closed {
            return 0;
        }
        let spares = if self.failing { 0 } else { self.size };
        let wanted = (spares + self.waiting.len()).saturating_sub(self.ready.len() + self.starting);
        let room = self.max_workers.saturating_sub(self.ready.len() + self.starting + self.in_use);
        wanted.min(room)
    }

    /// Whether a worker is missing and nobody would notice if it came a moment later.
    pub(super) fn can_wait(&self) -> bool {
        self.waiting.is_empty() && self.ready.len() < self.size && self.ready.len() * 2 >= self.size
    }

    /// A start has succeeded; the ticket that got the worker, if one did.
    pub(super) fn started(&mut self, spare: S) -> Option<u64> {
        self.starting -= 1;
        self.failing = false;
        self.counts.created += 1;
        self.supply(spare)
    }

    /// A start has failed; the ticket that hears of it, if one does.
    pub(super) fn failed(&mut self, error: E) -> Option<u64> {
        self.starting -= 1;
        self.failing = true;
        self.counts.failures += 1;
        let ticket = self.waiting.pop_front()?;
        self.granted.insert(ticket, Err(error));
        Some(ticket)
    }

    /// A worker that was in use has ended.
    pub(super) fn returned(&mut self) {
        self.in_use -= 1;
    }

    /// Removes the spares that are dead.
    pub(super) fn remove_dead(&mut self, is_dead: impl Fn(&S) -> bool) -> Vec<S> {
        let (dead, alive): (Vec<S>, Vec<S>) = self.ready.drain(..).partition(is_dead);
        self.ready = alive.into();
        for _ in &dead {
            self.note_death();
        }
        dead
    }

    /// Ends it: what was not handed out comes back, and nothing is started any more.
    pub(super) fn close(&mut self) -> Vec<S> {
        self.closed = true;
        self.waiting.clear();
        let granted = self.granted.drain().filter_map(|(_, outcome)| outcome.ok());
        let granted: Vec<S> = granted.collect();
        self.in_use -= granted.len();
        self.ready.drain(..).chain(granted).collect()
    }

    fn supply(&mut self, spare: S) -> Option<u64> {
        let ticket = self.waiting.pop_front();
        match ticket {
            Some(ticket) => {
                self.in_use += 1;
                self.granted.insert(ticket, Ok(spare));
            }
            None => self.ready.push_back(spare),
        }
        ticket
    }

    fn note_death(&mut self) {
        self.counts.failures += 1;
        self.died_unused += 1;
        self.failing |= self.died_unused > self.size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_ONCE: usize = 100;

    fn ledger(size: usize, max_workers: usize) -> Ledger<u32, &'static str> {
        Ledger::new(size, max_workers)
    }

    /// One with everything started that it wants.
    fn filled(size: usize, max_workers: usize) -> Ledger<u32, &'static str> {
        let mut ledger = ledger(size, max_workers);
        for number in 0..ledger.begin_starts(AT_ONCE) {
            ledger.started(number as u32);
        }
        ledger
    }

    #[test]
    fn what_is_missing_is_told_without_being_started() {
        let mut ledger = filled(2, 3);
        assert_eq!(ledger.missing(), 0);
        ledger.take().unwrap();
        assert_eq!((ledger.missing(), ledger.missing()), (1, 1));
        assert_eq!(ledger.begin_starts(AT_ONCE), 1);
        assert_eq!(ledger.missing(), 0, "it is being started");
        ledger.started(7);
        ledger.take().unwrap();
        assert_eq!(ledger.missing(), 0, "there is no room for another");
        ledger.returned();
        assert_eq!(ledger.missing(), 1);
    }

    #[test]
    fn a_new_pool_starts_as_many_as_it_is_to_keep_ready() {
        let mut ledger = ledger(3, 10);
        assert_eq!(ledger.begin_starts(AT_ONCE), 3);
        assert_eq!(ledger.begin_starts(AT_ONCE), 0, "those are on the books");
    }

    #[test]
    fn no_more_start_at_once_than_allowed() {
        let mut ledger = ledger(10, 10);
        assert_eq!(ledger.begin_starts(4), 4);
        assert_eq!(ledger.begin_starts(4), 0);
        ledger.started(1);
        assert_eq!(ledger.begin_starts(4), 1);
    }

    #[test]
    fn what_is_taken_is_replaced_until_the_pool_is_full() {
        let mut ledger = filled(2, 3);
        assert_eq!(ledger.take(), Some(0));
        assert_eq!(ledger.begin_starts(AT_ONCE), 1);
        ledger.started(2);
        assert_eq!(ledger.take(), Some(1));
        assert_eq!(ledger.begin_starts(AT_ONCE), 0, "two are in use and one is ready");
        ledger.returned();
        assert_eq!(ledger.begin_starts(AT_ONCE), 1);
    }

    #[test]
    fn a_well_filled_pool_can_wait_and_one_that_runs_dry_cannot() {
        let mut ledger = filled(3, 10);
        assert!(!ledger.can_wait(), "nothing is missing");
        ledger.take();
        assert!(ledger.can_wait());
        ledger.take();
        assert!(!ledger.can_wait());
    }

    #[test]
    fn those_who_wait_are_served_in_order_and_not_overtaken() {
        let mut ledger = filled(1, 2);
        assert_eq!(ledger.take(), Some(0));
        let (first, second) = (ledger.wait(), ledger.wait());
        assert_eq!(ledger.begin_starts(AT_ONCE), 1, "there is room for one more");
        assert_eq!(ledger.started(7), Some(first));
        assert_eq!(ledger.take(), None);
        assert_eq!(ledger.collect(second), None);
        assert_eq!(ledger.collect(first), Some(Ok(7)));
        ledger.returned();
        assert_eq!(ledger.begin_starts(AT_ONCE), 1);
        assert_eq!(ledger.started(8), Some(second));
        assert_eq!(ledger.collect(second), Some(Ok(8)));
    }

    #[test]
    fn what_a_ticket_that_was_given_up_has_brought_goes_to_the_next() {
        let mut ledger = ledger(1, 1);
        let (first, second) = (ledger.wait(), ledger.wait());
        assert_eq!(ledger.begin_starts(AT_ONCE), 1);
        assert_eq!(ledger.started(7), Some(first));
        assert_eq!(ledger.withdraw(first, true), Some(second));
        assert_eq!(ledger.collect(second), Some(Ok(7)));
        assert_eq!(ledger.places(), Places { in_use: 1, ..Places::default() });
        assert_eq!(ledger.counts().timeouts, 1);
    }

    #[test]
    fn what_nobody_wants_any_more_is_ready_for_the_next() {
        let mut ledger = ledger(1, 1);
        let ticket = ledger.wait();
        ledger.begin_starts(AT_ONCE);
        assert_eq!(ledger.started(7), Some(ticket));
        assert_eq!(ledger.withdraw(ticket, false), None);
        assert_eq!(ledger.take(), Some(7));
    }

    #[test]
    fn a_failed_start_is_told_to_one_who_waits_and_not_tried_again_for_nobody() {
        let mut ledger = ledger(2, 4);
        assert_eq!(ledger.begin_starts(AT_ONCE), 2);
        assert_eq!(ledger.failed("broken"), None);
        assert_eq!(ledger.failed("broken"), None);
        assert_eq!(ledger.begin_starts(AT_ONCE), 0);
        let ticket = ledger.wait();
        assert_eq!(ledger.begin_starts(AT_ONCE), 1, "somebody asks again");
        assert_eq!(ledger.failed("still broken"), Some(ticket));
        assert_eq!(ledger.collect(ticket), Some(Err("still broken")));
        assert_eq!(ledger.begin_starts(AT_ONCE), 0);
    }

    #[test]
    fn a_start_that_succeeds_again_fills_the_pool_again() {
        let mut ledger = ledger(2, 4);
        ledger.begin_starts(AT_ONCE);
        ledger.failed("broken");
        ledger.failed("broken");
        ledger.wait();
        assert_eq!(ledger.begin_starts(AT_ONCE), 1);
        ledger.started(1);
        assert_eq!(ledger.begin_starts(AT_ONCE), 2);
    }

    #[test]
    fn a_dead_spare_is_replaced_and_spares_that_keep_dying_are_not() {
        let mut ledger = filled(2, 4);
        assert_eq!(ledger.remove_dead(|&spare| spare == 0), vec![0]);
        assert_eq!(ledger.begin_starts(AT_ONCE), 1);
        ledger.started(2);
        assert_eq!(ledger.remove_dead(|_| true).len(), 2);
        assert_eq!(ledger.begin_starts(AT_ONCE), 0, "three died and nobody has used one");
        ledger.wait();
        assert_eq!(ledger.begin_starts(AT_ONCE), 1);
    }

    #[test]
    fn a_spare_that_was_found_dead_when_it_was_taken_holds_no_place() {
        let mut ledger = filled(1, 1);
        assert_eq!(ledger.take(), Some(0));
        ledger.was_dead();
        assert_eq!(ledger.counts().checkouts, 0);
        assert_eq!(ledger.begin_starts(AT_ONCE), 1);
    }

    #[test]
    fn closing_gives_back_what_was_not_handed_out_and_starts_nothing() {
        let mut ledger = filled(2, 5);
        assert!(ledger.take().is_some());
        ledger.begin_starts(AT_ONCE);
        assert_eq!(ledger.close().len(), 1);
        assert_eq!(ledger.places().in_use, 1);
        assert_eq!(ledger.begin_starts(AT_ONCE), 0);
        ledger.returned();
        assert_eq!(ledger.places().in_use, 0);
    }
}
