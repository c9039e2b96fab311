// Lets every clock that a script can read stand still: `Date`, and `Intl.DateTimeFormat` where it is given no time.
(function (builtins) {
  "use strict";

  const {
    apply, guard, getOwnPropertyDescriptor, defineProperty, setPrototypeOf, ownKeys, list, construct, bindFunction, Date,
    dateString, Proxy, WeakMap, weakMapGet, weakMapSet,
  } = builtins;

  const NO_ARGUMENTS = list();
  // The name is that of the function within `frozenDate` too.
  const RealDate = Date;
  const DatePrototype = Date.prototype;
  const Format = Intl.DateTimeFormat;

  // What a guest sees of a function that has been bound is what it sees of the engine's own.
  function native(body) {
    return apply(bindFunction, body, NO_ARGUMENTS);
  }

  function replace(object, key, value) {
    const descriptor = getOwnPropertyDescriptor(object, key);
    descriptor.value = value;
    defineProperty(object, key, descriptor);
  }

  function frozenDate(now) {
    const nowAlone = list();
    nowAlone[0] = now;
    const target = function Date(...parts) {
      if (new.target === undefined) return apply(dateString, new RealDate(now), NO_ARGUMENTS);
      return construct(RealDate, parts.length === 0 ? nowAlone : parts, new.target);
    };
    // `new.target` of a plain `new` is this function, whose instances are dates like any other.
    target.prototype = DatePrototype;
    const frozen = native(target);
    const keys = ownKeys(Date);
    for (let i = 0; i < keys.length; i++) {
      defineProperty(frozen, keys[i], getOwnPropertyDescriptor(Date, keys[i]));
    }
    const clock = native({ now: () => now }.now);
    defineProperty(clock, "name", getOwnPropertyDescriptor(Date.now, "name"));
    replace(frozen, "now", clock);
    replace(DatePrototype, "constructor", frozen);
    return frozen;
  }

  // The same function where it is given a time, and else of the time that stands still.
  function withoutTime(original, now) {
    return new Proxy(original, {
      __proto__: null,
      apply(_, formatter, values) {
        const given = list();
        given[0] = values.length === 0 || values[0] === undefined ? now : values[0];
        return apply(original, formatter, given);
      },
    });
  }

  function freezeFormats(now) {
    const prototype = Format.prototype;
    replace(prototype, "formatToParts", withoutTime(prototype.formatToParts, now));
    const descriptor = getOwnPropertyDescriptor(prototype, "format");
    const original = descriptor.get;
    const frozen = new WeakMap();
    const one = list();
    const two = list();
    const nameless = getOwnPropertyDescriptor(new Format().format, "name");
    setPrototypeOf(nameless, null);
    descriptor.get = new Proxy(original, {
      __proto__: null,
      apply(_, formatter) {
        const format = apply(original, formatter, NO_ARGUMENTS);
        one[0] = format;
        let answer = apply(weakMapGet, frozen, one);
        if (answer === undefined) {
          answer = native((time) => {
            const given = list();
            given[0] = time === undefined ? now : time;
            return apply(format, undefined, given);
          });
          defineProperty(answer, "name", nameless);
          two[0] = format;
          two[1] = answer;
          apply(weakMapSet, frozen, two);
          two[0] = two[1] = undefined;
        }
        one[0] = undefined;
        return answer;
      },
    });
    defineProperty(prototype, "format", descriptor);
  }

  return guard((now) => {
    replace(globalThis, "Date", frozenDate(now));
    freezeFormats(now);
    if (typeof Temporal === "object") delete Temporal.Now;
  });
})
