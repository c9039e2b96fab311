// `performance`, on the guest's clock: in whole milliseconds, and never back.
(function (web) {
  "use strict";

  const { clocks, hide, native, constant, floor, toStringTag } = web;
  const { origin } = clocks.clock;

  let last = 0;
  function now() {
    const elapsed = floor(clocks.now() - origin);
    if (elapsed > last) last = elapsed;
    return last;
  }

  class Performance {}
  constant(Performance.prototype, toStringTag, "Performance", true);
  const performance = new Performance();
  hide(performance, "now", native("now", 0, now));
  constant(performance, "timeOrigin", origin, true);
  hide(performance, "toJSON", native("toJSON", 0, () => ({ timeOrigin: origin })));
  return { __proto__: null, performance };
})
