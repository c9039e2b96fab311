//! How timers go off.

use std::time::{Duration, Instant};

use super::Progress;
use crate::deadline::StepLimits;
use crate::isolate::Isolate;
use crate::requests::{Request, RequestId, Running};

impl Isolate {
    /// How long timers go off before whoever keeps the isolate is asked again.
    const MOMENT: Duration = Duration::from_millis(2);

    /// The request on whose behalf [`fire_timers`](Self::fire_timers) runs the callback of the next timer. `None` where none can
    /// go off: timers do while a request waits, and those that are not due do not while calls are in flight.
    pub fn next_timer(&self) -> Option<RequestId> {
        let requests = &self.shared.requests;
        if requests.depth() > 0 || !requests.is_pending() {
            return None;
        }
        requests.timers.next(!requests.has_calls()).and_then(|owner| requests.heir_of(owner))
    }

    /// Lets time jump to the next timer, runs its callback and what that sets going; then the same again with the next timers of
    /// the same request, for a moment. Whoever keeps an isolate calls it while [`next_timer`](Self::next_timer) names a request,
    /// and sees in between to what else there is to do.
    ///
    /// # Panics
    ///
    /// As [`begin_eval`](Self::begin_eval).
    pub fn fire_timers(&self, limits: &StepLimits<'_>) {
        let began = Instant::now();
        let first = self.next_timer();
        self.shared.deadline.including_what_is_between(|| {
            while first.is_some() && self.next_timer() == first {
                self.fire_timer(limits);
                if began.elapsed() >= Self::MOMENT {
                    break;
                }
            }
        });
    }

    fn fire_timer(&self, limits: &StepLimits<'_>) {
        let (context, shared) = (&self.context, &*self.shared);
        let requests = &shared.requests;
        let Some(heir) = self.next_timer() else { return };
        let Some(request) = requests.take(|pending| pending.id == heir) else { return };
        let Some(timer) = requests.timers.take_next() else { return requests.wait(request) };
        requests.calls_of_outermost.set(request.calls);
        let Request { id, bounds, budget, awaited, .. } = request;
        let progress = match shared.deadline.look(bounds, limits.cancelled) {
            Some(stop) => Progress::Ended(Err(stop.into())),
            None => self.step(Running { request: id, budget }, bounds, limits.cancelled, || {
                // What is thrown goes where what nobody has caught goes.
                let _ = timer.run(context, &shared.prelude, &requests.timers);
                Progress::Waits(awaited)
            }),
        };
        match progress {
            Progress::Ended(outcome) => {
                requests.timers.forget(&timer);
                requests.tell(requests.end(id, outcome));
            }
            Progress::Waits(awaited) => {
                requests.timers.repeat(timer, id);
                let calls = requests.calls_of_outermost.get();
                requests.wait(Request { id, bounds, budget, calls, awaited });
            }
        }
        self.advance(limits.cancelled);
    }
}
