// The `console` of browsers and Node. What it writes goes through `log` and its kin, which the host binds where it listens.
(function (web) {
  "use strict";

  const { hide, method, clocks, builtins } = web;
  const { Map, apply, list, mapSet } = builtins;
  const mapGet = Map.prototype.get;
  const mapDelete = Map.prototype.delete;

  const console = {};
  const counts = new Map();
  const starts = new Map();

  function call(method, map, key, value) {
    const values = list();
    values[0] = key;
    values[1] = value;
    return apply(method, map, values);
  }

  // The method that is there now: a script may have put its own into its place.
  function write(level, values) {
    if (typeof console[level] !== "function") return;
    console[level](...values);
  }

  const label = (value) => (value === undefined ? "default" : `${value}`);
  const elapsed = (name) => {
    const start = call(mapGet, starts, name);
    return start === undefined ? undefined : `${name}: ${clocks.now() - start}ms`;
  };

  const methods = {
    __proto__: null,
    debug() {},
    log() {},
    info() {},
    warn() {},
    error() {},
    assert: (...all) => {
      const [condition, ...values] = all;
      if (!condition) write("error", values.length === 0 ? ["Assertion failed"] : ["Assertion failed:", ...values]);
    },
    clear() {},
    count: (value) => {
      const name = label(value);
      const count = (call(mapGet, counts, name) ?? 0) + 1;
      call(mapSet, counts, name, count);
      write("info", [`${name}: ${count}`]);
    },
    countReset: (value) => call(mapSet, counts, label(value), 0) && undefined,
    dir: (value) => write("log", [value]),
    dirxml: (...values) => write("log", values),
    group: (...values) => {
      if (values.length > 0) write("log", values);
    },
    groupCollapsed: (...values) => methods.group(...values),
    groupEnd: () => {},
    table: (value) => write("log", [value]),
    time: (value) => call(mapSet, starts, label(value), clocks.now()) && undefined,
    timeLog: (value, ...values) => {
      const text = elapsed(label(value));
      if (text !== undefined) write("info", [text, ...values]);
    },
    timeEnd: (value) => {
      const name = label(value);
      const text = elapsed(name);
      if (text === undefined) return;
      call(mapDelete, starts, name);
      write("info", [text]);
    },
    trace: (...values) => write("debug", ["Trace:", ...values]),
  };
  for (const name in methods) {
    // As in browsers, what `console` has can be listed.
    console[name] = method(methods[name]);
  }
  hide(console, Symbol.toStringTag, "console");
  return { __proto__: null, console };
})
