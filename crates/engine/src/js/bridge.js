// The small things: promises, collections and bindings.
(function (builtins, classify) {
  "use strict";

  const {
    apply, guard, getPrototypeOf, setPrototypeOf, getOwnPropertyDescriptor, defineProperty, list, Promise, species,
    promiseSpecies, then, Map, mapSet, Set, setAdd, Bytes, setTypedArray,
  } = builtins;

  const CLASS_PROXY = 3;
  const MAX_HOPS = 100;

  // A record that tells how a promise ends: 0 while it is pending, 1 when fulfilled, 2 when rejected; or `undefined` for
  // what is no real promise and for one that cannot be asked.
  //
  // `then` looks the promise's `constructor` up, to make a promise of the same kind. So the promise is given one of its
  // own, without a value, which means the built-in kind, for as long as this takes.
  function watch(promise) {
    const ending = { __proto__: null, state: 0, value: undefined };
    const settle = (state) => (value) => {
      if (ending.state !== 0) return;
      ending.state = state;
      ending.value = value;
    };
    const reactions = list();
    reactions[0] = settle(1);
    reactions[1] = settle(2);
    const own = getOwnPropertyDescriptor(promise, "constructor");
    if (own !== undefined) setPrototypeOf(own, null);
    try {
      hide(promise, "constructor", undefined);
    } catch {
      // It is frozen, or has a fixed one.
      if (!isOfBuiltInKind(promise)) return undefined;
      apply(then, promise, reactions);
      return ending;
    }
    try {
      apply(then, promise, reactions);
      return ending;
    } catch {
      return undefined;
    } finally {
      if (own === undefined) delete promise.constructor;
      else defineProperty(promise, "constructor", own);
    }
  }

  // Whether looking the `constructor` up runs nothing of the guest and finds the built-in one, whose kind has not been
  // replaced.
  function isOfBuiltInKind(promise) {
    let object = promise;
    for (let hops = 0; object !== null; hops++) {
      if (hops > MAX_HOPS || classify(object) === CLASS_PROXY) return false;
      const found = getOwnPropertyDescriptor(object, "constructor");
      if (found !== undefined) {
        setPrototypeOf(found, null);
        if (found.value !== Promise) return false;
        const kind = getOwnPropertyDescriptor(Promise, species);
        if (kind === undefined) return false;
        setPrototypeOf(kind, null);
        return kind.get === promiseSpecies && kind.value === undefined;
      }
      object = getPrototypeOf(object);
    }
    return false;
  }

  // Calls a function, and tells how that ended as `watch` does. Reactions run before the host reads it, so each call has a
  // record of its own.
  function invoke(callee, values) {
    const ending = { __proto__: null, state: 0, value: undefined };
    try {
      ending.value = apply(callee, undefined, values);
      ending.state = 1;
    } catch (thrown) {
      ending.value = thrown;
      ending.state = 2;
    }
    return ending;
  }

  // A `Map` from a list of keys and values in turn.
  function makeMap(contents, count) {
    const map = new Map();
    const entry = list();
    for (let i = 0; i < count; i += 2) {
      entry[0] = contents[i];
      entry[1] = contents[i + 1];
      apply(mapSet, map, entry);
    }
    return map;
  }

  function makeSet(contents, count) {
    const set = new Set();
    const member = list();
    for (let i = 0; i < count; i++) {
      member[0] = contents[i];
      apply(setAdd, set, member);
    }
    return set;
  }

  // The host has taken the address of `bytes`, which pins it; the guest gets one that it can transfer and resize.
  function unpin(bytes) {
    return new Bytes(bytes);
  }

  function makeBytes(length) {
    return new Bytes(length);
  }

  // Copies the host's array into longer bytes.
  function putPiece(bytes, piece, offset) {
    const source = list();
    source[0] = piece;
    source[1] = offset;
    apply(setTypedArray, bytes, source);
  }

  function negate(integer) {
    return -integer;
  }

  // Defines a property as the language defines its own globals.
  function hide(object, name, value) {
    defineProperty(object, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
  }

  // Makes a host function a global, or a property of a global object. Returns whether it could.
  function bind(global, holder, name, value) {
    try {
      let target = global;
      if (holder !== undefined) {
        const descriptor = getOwnPropertyDescriptor(global, holder);
        if (descriptor !== undefined) setPrototypeOf(descriptor, null);
        target = descriptor === undefined ? undefined : descriptor.value;
        if ((typeof target !== "object" && typeof target !== "function") || target === null) {
          target = {};
          hide(global, holder, target);
        }
        if (classify(target) === CLASS_PROXY) return false;
      }
      hide(target, name, value);
      return true;
    } catch {
      return false;
    }
  }

  return {
    __proto__: null,
    watch: guard(watch),
    invoke,
    makeMap: guard(makeMap),
    makeSet: guard(makeSet),
    unpin: guard(unpin),
    makeBytes: guard(makeBytes),
    putPiece: guard(putPiece),
    negate: guard(negate),
    hide: guard(hide),
    bind: guard(bind),
  };
})
