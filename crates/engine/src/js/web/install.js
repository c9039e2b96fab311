// Defines the interfaces. Timers and what else is short is here; the rest is a script for each group, which runs when the
// guest first asks for one of its names.
//
// What these scripts do with a guest that has poisoned its built-ins can harm that guest alone: the host learns nothing from
// them but through the functions in `natives`, which take anything. Still they build on built-ins from before, so that a
// library that patches a prototype does not break them.
(function (builtins, clocks, natives) {
  "use strict";

  const { apply, defineProperty, getOwnPropertyDescriptor, setPrototypeOf, ownKeys, list, bindFunction, Proxy } = builtins;
  const { Promise, then, TypeError, RangeError } = builtins;

  const { toStringTag } = Symbol;
  const NO_ARGUMENTS = list();
  const NO_TRAPS = setPrototypeOf({}, null);

  function hide(object, name, value) {
    defineProperty(object, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
  }

  function constant(object, name, value, configurable) {
    defineProperty(object, name, { __proto__: null, value, writable: false, enumerable: false, configurable });
  }

  // What a guest sees of a function that has been bound is what it sees of the engine's own. `this` does not reach it.
  function native(name, length, body) {
    const bound = apply(bindFunction, body, NO_ARGUMENTS);
    constant(bound, "name", name, true);
    constant(bound, "length", length, true);
    return bound;
  }

  // The same for a method, which needs `this`: a proxy that does nothing shows no source either.
  function method(body) {
    return new Proxy(body, NO_TRAPS);
  }

  // Covers what an interface has, on its prototype or on the class itself.
  function cover(object, isClass) {
    const keys = ownKeys(object);
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i];
      if (key === "constructor" || (isClass && (key === "prototype" || key === "name" || key === "length"))) continue;
      const found = getOwnPropertyDescriptor(object, key);
      setPrototypeOf(found, null);
      if (typeof found.value === "function") found.value = method(found.value);
      if (found.get !== undefined) found.get = method(found.get);
      if (found.set !== undefined) found.set = method(found.set);
      found.enumerable = typeof key === "string";
      defineProperty(object, key, found);
    }
  }

  // An interface as the guest sees it, for a class: its constructor takes part in `new`, `extends` and `instanceof` as the
  // class does.
  function makeInterface(name, length, target, parent) {
    const { prototype } = target;
    cover(prototype, false);
    cover(target, true);
    constant(prototype, toStringTag, name, true);
    const shown = native(name, length, target);
    const keys = ownKeys(target);
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i];
      if (key !== "name" && key !== "length" && key !== "prototype") {
        defineProperty(shown, key, getOwnPropertyDescriptor(target, key));
      }
    }
    constant(shown, "prototype", prototype, false);
    hide(prototype, "constructor", shown);
    if (parent !== undefined) setPrototypeOf(shown, parent);
    return shown;
  }

  // The one object of an interface that nobody else can make objects of.
  function onlyOne(name) {
    const target = class {
      constructor() {
        throw new TypeError(`${name} cannot be constructed`);
      }
    };
    makeInterface(name, 0, target);
    return setPrototypeOf({}, target.prototype);
  }

  const loaded = { __proto__: null };

  // What a script offers. One that was stopped in the middle runs again.
  function need(script) {
    let offer = loaded[script];
    if (offer === undefined) {
      offer = natives.load(script)(web);
      loaded[script] = offer;
    }
    return offer;
  }

  // A global that is made when it is first looked at.
  function lazily(script, name) {
    const accessors = {
      get [name]() {
        const value = need(script)[name];
        try {
          hide(globalThis, name, value);
        } catch {
          // The guest has frozen the global object; it stays as it is, and so does the value.
        }
        return value;
      },
      set [name](value) {
        hide(globalThis, name, value);
      },
    };
    const found = getOwnPropertyDescriptor(accessors, name);
    found.get = method(found.get);
    found.set = method(found.set);
    found.enumerable = false;
    defineProperty(globalThis, name, found);
  }

  function expose(name, length, body) {
    hide(globalThis, name, native(name, length, body));
  }

  function required(count, values, name) {
    if (values.length < count) throw new TypeError(`${name} needs ${count} argument${count === 1 ? "" : "s"}`);
  }

  function callable(value, name) {
    if (typeof value !== "function") throw new TypeError(`${name} needs a function, not ${typeof value}`);
    return value;
  }

  // Objects that are none of the language, for `structuredClone` to refuse.
  const platformObjects = new WeakSet();
  const { add, has } = WeakSet.prototype;

  function remember(object) {
    const values = list();
    values[0] = object;
    apply(add, platformObjects, values);
  }

  function isPlatformObject(object) {
    const values = list();
    values[0] = object;
    return apply(has, platformObjects, values);
  }

  const web = {
    __proto__: null,
    builtins, clocks, natives, NO_ARGUMENTS, hide, constant, native, method, makeInterface, onlyOne, need, required,
    callable, isPlatformObject, remember,
    // The built-ins that only these scripts need.
    Array, String, RegExp, DataView, ArrayBuffer, Object,
    isArray: Array.isArray, isError: Error.isError,
    sort: Array.prototype.sort, toLowerCase: String.prototype.toLowerCase, trunc: Math.trunc, mapGet: Map.prototype.get, mapHas: Map.prototype.has,
    toStringTag, indexOf: String.prototype.indexOf, slice: String.prototype.slice, charCodeAt: String.prototype.charCodeAt,
    toWellFormed: String.prototype.toWellFormed,
    iterator: Symbol.iterator, IteratorPrototype: Iterator.prototype, floor: Math.floor,
    bufferTransfer: ArrayBuffer.prototype.transfer, bufferSlice: ArrayBuffer.prototype.slice,
    bufferResizable: getOwnPropertyDescriptor(ArrayBuffer.prototype, "resizable")?.get,
    bufferMaxLength: getOwnPropertyDescriptor(ArrayBuffer.prototype, "maxByteLength")?.get,
    elementCount: getOwnPropertyDescriptor(builtins.TypedArrayPrototype, "length").get,
    typedArrayTag: getOwnPropertyDescriptor(builtins.TypedArrayPrototype, Symbol.toStringTag).get,
    regExpSource: getOwnPropertyDescriptor(RegExp.prototype, "source").get,
    regExpFlags: getOwnPropertyDescriptor(RegExp.prototype, "flags").get,
    numberValue: Number.prototype.valueOf, stringValue: String.prototype.valueOf, booleanValue: Boolean.prototype.valueOf,
    bigIntValue: BigInt.prototype.valueOf,
    typedArrays: {
      __proto__: null,
      Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array, Float64Array,
      BigInt64Array, BigUint64Array, Float16Array: globalThis.Float16Array,
    },
    errors: {
      __proto__: null,
      Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError,
    },
  };

  function setTimer(name, callback, delay, values, repeats) {
    callable(callback, name);
    // As Web IDL has it: what is no number is 0, and so is what is below.
    const milliseconds = delay | 0;
    const id = natives.setTimer(callback, milliseconds < 0 ? 0 : milliseconds, values, repeats);
    if (id === undefined) throw new RangeError("there are too many timers");
    return id;
  }
  const clearTimer = (id) => natives.clearTimer(+id);

  expose("setTimeout", 1, (callback, delay, ...values) => setTimer("setTimeout", callback, delay, values, false));
  expose("setInterval", 1, (callback, delay, ...values) => setTimer("setInterval", callback, delay, values, true));
  expose("setImmediate", 1, (callback, ...values) => setTimer("setImmediate", callback, 0, values, false));
  for (const name of ["clearTimeout", "clearInterval", "clearImmediate"]) expose(name, 1, clearTimer);

  const settled = Promise.resolve();
  // So that `then` asks nobody for the kind of promise to make.
  hide(settled, "constructor", undefined);
  expose("queueMicrotask", 1, (callback) => {
    callable(callback, "queueMicrotask");
    const reactions = list();
    reactions[0] = () => run(callback, NO_ARGUMENTS);
    apply(then, settled, reactions);
  });
  expose("reportError", 1, (thrown) => natives.report(thrown));
  hide(globalThis, "self", globalThis);

  expose("btoa", 1, (...values) => {
    required(1, values, "btoa");
    const text = natives.btoa(`${values[0]}`);
    if (text !== undefined) return text;
    throw need("dom_exception").make("The string has characters beyond Latin-1.", "InvalidCharacterError");
  });
  expose("atob", 1, (...values) => {
    required(1, values, "atob");
    const text = natives.atob(`${values[0]}`);
    if (text !== undefined) return text;
    throw need("dom_exception").make("The string is not correctly encoded.", "InvalidCharacterError");
  });
  expose("structuredClone", 1, (...values) => {
    required(1, values, "structuredClone");
    return need("structured_clone").clone(values[0], values[1]);
  });

  // The host binds its methods to this object.
  hide(globalThis, "console", need("console").console);

  const lazy = {
    __proto__: null,
    blob: ["Blob", "File", "FileReader"],
    dom_exception: ["DOMException"],
    encoding: ["TextEncoder", "TextDecoder"],
    events: ["Event", "CustomEvent", "EventTarget", "AbortController", "AbortSignal"],
    performance: ["performance"],
    crypto: ["crypto"],
    url: ["URL", "URLSearchParams"],
  };
  for (const script in lazy) for (const name of lazy[script]) lazily(script, name);

  function run(callback, values) {
    try {
      apply(callback, undefined, values);
    } catch (thrown) {
      natives.report(thrown);
    }
  }
  return run;
})
