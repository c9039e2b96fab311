// What was thrown, told without running guest code: texts, positions, and what else an error carries. Bounded, never
// fails. Values are handed out as they are; whoever takes them looks at each before touching it.
(function (builtins, classify, inspection) {
  "use strict";

  const { guard, getOwnPropertyDescriptor, setPrototypeOf, keys, list } = builtins;
  const { lookup, show } = inspection;

  const CLASS_OTHER = 0, CLASS_ARRAY = 1, CLASS_ERROR = 10;

  // Fields of what `describe` returns, as in exception.rs.
  const IS_ERROR = 0, NAME = 1, MESSAGE = 2, STACK = 3, LINE = 4, COLUMN = 5, SOURCE_URL = 6, PROPERTIES = 7, COUNT = 8;
  const HAS_CAUSE = 9, CAUSE = 10, ERRORS = 11, ERROR_COUNT = 12;

  // As in the wire's bounds; more are left out there.
  const MAX_PROPERTIES = 64, MAX_ERRORS = 16;
  // Of an object with more properties than these, the rest is not looked at.
  const MAX_LOOKED_AT = 1000;

  // The value of an own property that holds data, in a list; `undefined` where there is none.
  function own(object, name) {
    const descriptor = getOwnPropertyDescriptor(object, name);
    if (descriptor === undefined) return undefined;
    setPrototypeOf(descriptor, null);
    if (descriptor.get !== undefined || descriptor.set !== undefined) return undefined;
    const held = list();
    held[0] = descriptor.value;
    return held;
  }

  // Whether a name has a field of its own in the description of an error.
  function isTold(name) {
    return name === "name" || name === "message" || name === "stack" || name === "cause" || name === "errors";
  }

  function properties(object, about, isError) {
    const names = keys(object);
    const length = names.length < MAX_LOOKED_AT ? names.length : MAX_LOOKED_AT;
    if (length === 0) return;
    const pairs = list();
    let count = 0;
    for (let i = 0; i < length && count < 2 * MAX_PROPERTIES; i++) {
      const name = names[i];
      if (isError && isTold(name)) continue;
      const held = own(object, name);
      if (held === undefined) continue;
      const value = held[0];
      if (typeof value === "function" || typeof value === "symbol") continue;
      pairs[count++] = name;
      pairs[count++] = value;
    }
    about[PROPERTIES] = pairs;
    about[COUNT] = count;
  }

  function aggregated(error, about) {
    const held = own(error, "errors");
    if (held === undefined || typeof held[0] !== "object" || held[0] === null) return;
    const array = held[0];
    if (classify(array) !== CLASS_ARRAY) return;
    const length = array.length < MAX_ERRORS ? array.length : MAX_ERRORS;
    const errors = list();
    let count = 0;
    for (let i = 0; i < length; i++) {
      const element = own(array, i);
      if (element !== undefined) errors[count++] = element[0];
    }
    about[ERRORS] = errors;
    about[ERROR_COUNT] = count;
  }

  function describe(thrown) {
    const about = list();
    const isObject = typeof thrown === "object" && thrown !== null;
    const kind = isObject ? classify(thrown) : CLASS_OTHER;
    const isError = kind === CLASS_ERROR;
    about[IS_ERROR] = isError;
    if (!isError) {
      about[MESSAGE] = show(thrown);
      if (isObject && kind === CLASS_OTHER) properties(thrown, about, false);
      return about;
    }
    const name = lookup(thrown, "name");
    about[NAME] = typeof name === "string" ? name : "Error";
    const message = lookup(thrown, "message");
    about[MESSAGE] = typeof message === "string" || message === undefined ? message : show(message);
    about[STACK] = lookup(thrown, "stack");
    about[LINE] = lookup(thrown, "line");
    about[COLUMN] = lookup(thrown, "column");
    about[SOURCE_URL] = lookup(thrown, "sourceURL");
    properties(thrown, about, true);
    const cause = own(thrown, "cause");
    if (cause !== undefined) {
      about[HAS_CAUSE] = true;
      about[CAUSE] = cause[0];
    }
    aggregated(thrown, about);
    return about;
  }

  return { __proto__: null, describe: guard(describe) };
})
