// `performance`, on the guest's clock: in whole milliseconds, and never back.
(function (web) {
  "use strict";

  const { clocks, hide, native, onlyOne, constant, floor } = web;
  const { origin } = clocks.clock;

  let last = 0;
  function now() {
    const elapsed = floor(clocks.now() - origin);
    if (elapsed > last) last = elapsed;
    return last;
  }

  const performance = onlyOne("Performance");
  hide(performance, "now", native("now", 0, now));
  constant(performance, "timeOrigin", origin, true);
  hide(performance, "toJSON", native("toJSON", 0, () => ({ timeOrigin: origin })));
  return { __proto__: null, performance };
})
