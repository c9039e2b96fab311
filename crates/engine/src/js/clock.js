// Puts every clock that a script can read into the host's hands: `Date`, and `Intl.DateTimeFormat` where it is given no
// time. A clock stands still where it was told to, or else is the system's; and jumps with the timers.
(function (builtins) {
  "use strict";

  const {
    apply, guard, getOwnPropertyDescriptor, defineProperty, setPrototypeOf, ownKeys, list, construct, bindFunction, Date,
    dateString, Proxy, WeakMap, weakMapGet, weakMapSet,
  } = builtins;

  const NO_ARGUMENTS = list();
  // The name is that of the function within `ownDate` too.
  const RealDate = Date;
  const DatePrototype = Date.prototype;
  const Format = Intl.DateTimeFormat;
  const realNow = Date.now;

  // Where the clock stands, if it does, by how much the timers have made it jump, and when the guest's time began, in
  // milliseconds.
  const clock = { __proto__: null, start: undefined, jumped: 0, origin: 0 };
  let isReplaced = false;

  function now() {
    const start = clock.start === undefined ? apply(realNow, RealDate, NO_ARGUMENTS) : clock.start;
    return start + clock.jumped;
  }

  // What a guest sees of a function that has been bound is what it sees of the engine's own.
  function native(body) {
    return apply(bindFunction, body, NO_ARGUMENTS);
  }

  function replace(object, key, value) {
    const descriptor = getOwnPropertyDescriptor(object, key);
    descriptor.value = value;
    defineProperty(object, key, descriptor);
  }

  function ownDate() {
    const target = function Date(...parts) {
      if (new.target === undefined) return apply(dateString, new RealDate(now()), NO_ARGUMENTS);
      if (parts.length !== 0) return construct(RealDate, parts, new.target);
      const reading = list();
      reading[0] = now();
      return construct(RealDate, reading, new.target);
    };
    // `new.target` of a plain `new` is this function, whose instances are dates like any other.
    target.prototype = DatePrototype;
    const own = native(target);
    const keys = ownKeys(Date);
    for (let i = 0; i < keys.length; i++) {
      defineProperty(own, keys[i], getOwnPropertyDescriptor(Date, keys[i]));
    }
    const reading = native({ now: () => now() }.now);
    defineProperty(reading, "name", getOwnPropertyDescriptor(Date.now, "name"));
    replace(own, "now", reading);
    replace(DatePrototype, "constructor", own);
    return own;
  }

  // The same function where it is given a time, and else of the clock's.
  function withoutTime(original) {
    return new Proxy(original, {
      __proto__: null,
      apply(_, formatter, values) {
        const given = list();
        given[0] = values.length === 0 || values[0] === undefined ? now() : values[0];
        return apply(original, formatter, given);
      },
    });
  }

  function replaceFormats() {
    const prototype = Format.prototype;
    replace(prototype, "formatToParts", withoutTime(prototype.formatToParts));
    const descriptor = getOwnPropertyDescriptor(prototype, "format");
    const original = descriptor.get;
    const formats = new WeakMap();
    const one = list();
    const two = list();
    descriptor.get = new Proxy(original, {
      __proto__: null,
      apply(_, formatter) {
        const format = apply(original, formatter, NO_ARGUMENTS);
        one[0] = format;
        let answer = apply(weakMapGet, formats, one);
        if (answer === undefined) {
          answer = native((time) => {
            const given = list();
            given[0] = time === undefined ? now() : time;
            return apply(format, undefined, given);
          });
          const name = getOwnPropertyDescriptor(format, "name");
          setPrototypeOf(name, null);
          defineProperty(answer, "name", name);
          two[0] = format;
          two[1] = answer;
          apply(weakMapSet, formats, two);
          two[0] = two[1] = undefined;
        }
        one[0] = undefined;
        return answer;
      },
    });
    defineProperty(prototype, "format", descriptor);
  }

  function take() {
    if (isReplaced) return;
    isReplaced = true;
    replace(globalThis, "Date", ownDate());
    replaceFormats();
    if (typeof Temporal === "object") delete Temporal.Now;
  }

  return {
    __proto__: null,
    clock,
    now,
    take: guard(take),
    begin: guard(() => {
      clock.origin = now();
    }),
    freeze: guard((start) => {
      clock.start = start;
      take();
    }),
  };
})
