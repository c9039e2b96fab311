// `structuredClone`, by the HTML standard.
(function (web) {
  "use strict";

  const { natives, need, hide, isPlatformObject, isError, typedArrayTag, typedArrays, errors, NO_ARGUMENTS } = web;
  const { bufferSlice, bufferTransfer, bufferResizable, bufferMaxLength, elementCount, regExpSource, regExpFlags } = web;
  const { String, RegExp, DataView, ArrayBuffer, Object, Array } = web;
  const { numberValue, stringValue, booleanValue, bigIntValue } = web;
  const {
    apply, list, defineProperty, getOwnPropertyDescriptor, keys, construct, TypeError, Map, mapSet, mapSize,
    mapForEach, Set, setAdd, setSize, setForEach, Date, dateTime, arrayBuffer, arrayOffset, viewBuffer, viewOffset, viewLength,
    bufferLength, bufferDetached,
  } = web.builtins;
  const { mapGet, mapHas } = web;

  // As classify numbers them.
  const ARRAY = 1, PROXY = 3, DATE = 4, BYTES = 5, MAP = 6, SET = 7, VIEW = 8, PROMISE = 9, ERROR = 10, NEWER_BYTES = 11;
  const OPAQUE = 12;

  const get = (getter, object) => apply(getter, object, NO_ARGUMENTS);

  function call(method, object, first, second) {
    const values = list();
    values[0] = first;
    values[1] = second;
    return apply(method, object, values);
  }

  // What a getter says of an object that it is meant for; `undefined` for any other.
  function ask(getter, object) {
    try {
      return get(getter, object);
    } catch {
      return undefined;
    }
  }

  function refuse(what) {
    return need("dom_exception").make(`${what} could not be cloned.`, "DataCloneError");
  }

  function define(object, key, value) {
    defineProperty(object, key, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
  }

  // Makes copies that share what is shared in the original. `stand` makes something for a buffer that is to be transferred,
  // or a view of one, and `given` says what has come in the place of something that stood for it.
  function cloner(isTransferred, stand, given) {
    const copies = new Map();

    function keep(original, copy) {
      call(mapSet, copies, original, copy);
      return copy;
    }

    function copy(value) {
      if (typeof value === "symbol") throw refuse("A symbol");
      if (typeof value === "function") throw refuse("A function");
      if (typeof value !== "object" || value === null) return value;
      const known = call(mapGet, copies, value);
      if (known !== undefined) return known;
      const instead = given(value);
      if (instead !== undefined) return keep(value, instead);
      if (isPlatformObject(value)) throw refuse("An object of the web");
      switch (natives.classify(value)) {
        case PROXY:
          throw refuse("A proxy");
        case PROMISE:
          throw refuse("A promise");
        case ARRAY: {
          const array = keep(value, new Array(value.length));
          return properties(value, array);
        }
        case DATE:
          return keep(value, new Date(get(dateTime, value)));
        case BYTES:
        case NEWER_BYTES: {
          const tag = get(typedArrayTag, value);
          if (tag === undefined) return buffer(value);
          return view(value, typedArrays[tag], get(arrayBuffer, value), get(arrayOffset, value), get(elementCount, value));
        }
        case VIEW: {
          const whole = ask(viewBuffer, value);
          if (whole === undefined) break;
          return view(value, DataView, whole, get(viewOffset, value), get(viewLength, value));
        }
        case MAP:
          if (ask(mapSize, value) === undefined) break;
          return map(value);
        case SET:
          if (ask(setSize, value) === undefined) break;
          return set(value);
        case ERROR:
          if (isError !== undefined && !isError(value)) break;
          return error(value);
        case OPAQUE:
          return opaque(value);
      }
      return properties(value, keep(value, {}));
    }

    function properties(value, target) {
      const names = keys(value);
      for (let i = 0; i < names.length; i++) define(target, names[i], copy(value[names[i]]));
      return target;
    }

    function buffer(value) {
      const length = ask(bufferLength, value);
      if (length === undefined || get(bufferDetached, value)) throw refuse("A buffer that is shared or detached");
      if (isTransferred(value)) return keep(value, stand(value));
      if (bufferResizable === undefined || !get(bufferResizable, value)) {
        return keep(value, call(bufferSlice, value, 0, length));
      }
      const resizable = new ArrayBuffer(length, { __proto__: null, maxByteLength: get(bufferMaxLength, value) });
      const bytes = list();
      bytes[0] = new web.builtins.Bytes(value);
      apply(web.builtins.setTypedArray, new web.builtins.Bytes(resizable), bytes);
      return keep(value, resizable);
    }

    function view(value, constructor, whole, offset, length) {
      if (isTransferred(whole)) {
        return keep(value, stand(whole, (moved) => new constructor(moved, offset, length)));
      }
      return keep(value, new constructor(copy(whole), offset, length));
    }

    function map(value) {
      const target = keep(value, new Map());
      const entries = list();
      call(mapForEach, value, (item, key) => {
        entries[entries.length] = key;
        entries[entries.length] = item;
      });
      for (let i = 0; i < entries.length; i += 2) call(mapSet, target, copy(entries[i]), copy(entries[i + 1]));
      return target;
    }

    function set(value) {
      const target = keep(value, new Set());
      const members = list();
      call(setForEach, value, (member) => {
        members[members.length] = member;
      });
      for (let i = 0; i < members.length; i++) call(setAdd, target, copy(members[i]));
      return target;
    }

    function error(value) {
      const exceptions = need("dom_exception");
      if (exceptions.is(value)) return keep(value, exceptions.make(value.message, value.name));
      const name = `${value.name}`;
      const message = getOwnPropertyDescriptor(value, "message");
      const values = list();
      if (message !== undefined && "value" in message) values[0] = `${message.value}`;
      const target = keep(value, construct(errors[name] ?? errors.Error, values));
      const stack = getOwnPropertyDescriptor(value, "stack");
      if (stack !== undefined && typeof stack.value === "string") hide(target, "stack", stack.value);
      const cause = getOwnPropertyDescriptor(value, "cause");
      if (cause !== undefined && "value" in cause) hide(target, "cause", copy(cause.value));
      return target;
    }

    function opaque(value) {
      const source = ask(regExpSource, value);
      if (source !== undefined) return keep(value, new RegExp(source, get(regExpFlags, value)));
      const string = ask(stringValue, value);
      if (string !== undefined) return keep(value, new String(string));
      const wrapped = ask(numberValue, value) ?? ask(booleanValue, value) ?? ask(bigIntValue, value);
      if (wrapped !== undefined) return keep(value, Object(wrapped));
      throw refuse("An object with more in it than properties");
    }

    return copy;
  }

  const never = () => false;
  const nothing = () => undefined;

  function transfer(value, buffers) {
    const moved = new Map();
    for (let i = 0; i < buffers.length; i++) {
      const one = buffers[i];
      const isBuffer = typeof one === "object" && one !== null && ask(bufferLength, one) !== undefined;
      if (!isBuffer) throw need("dom_exception").make("A value cannot be transferred.", "DataCloneError");
      if (call(mapHas, moved, one)) {
        throw need("dom_exception").make("A buffer is to be transferred twice.", "DataCloneError");
      }
      if (get(bufferDetached, one)) throw refuse("A detached buffer");
      call(mapSet, moved, one, undefined);
    }
    // What a getter throws must come before anything is detached; so first comes a copy in which something stands for the
    // buffers, and then a copy of that.
    const standing = new Map();
    const stand = (buffer, make) => {
      const placeholder = {};
      call(mapSet, standing, placeholder, { __proto__: null, buffer, make });
      return placeholder;
    };
    const copy = cloner((buffer) => call(mapHas, moved, buffer), stand, nothing)(value);
    for (let i = 0; i < buffers.length; i++) {
      if (get(bufferDetached, buffers[i])) throw refuse("A detached buffer");
      call(mapSet, moved, buffers[i], get(bufferTransfer, buffers[i]));
    }
    const given = (placeholder) => {
      const what = call(mapGet, standing, placeholder);
      if (what === undefined) return undefined;
      const buffer = call(mapGet, moved, what.buffer);
      return what.make === undefined ? buffer : what.make(buffer);
    };
    return cloner(never, nothing, given)(copy);
  }

  function clone(value, options) {
    if (options !== undefined && options !== null && typeof options !== "object" && typeof options !== "function") {
      throw new TypeError("the options are an object");
    }
    const wanted = options?.transfer;
    const buffers = wanted === undefined ? [] : [...wanted];
    return buffers.length === 0 ? cloner(never, nothing, nothing)(value) : transfer(value, buffers);
  }

  return { __proto__: null, clone };
})
