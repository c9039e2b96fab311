// A module of the host's beside the guest. The guest gets functions of this file around what the module exports, and never an
// object of WebAssembly's own: each of those leads to the constructors, by its prototype, and with them a guest compiles what
// it likes. Errors that WebAssembly makes are such objects, too.
//
// Numbers and bytes go in and out. What else a guest passes is refused and not coerced, so that nothing of the guest's runs
// between the two.
(function (builtins, compiler) {
  "use strict";

  const {
    apply, guard, list, getPrototypeOf, setPrototypeOf, getOwnPropertyDescriptor, defineProperty, freeze, bindFunction,
    isView, isSafeInteger, slice, indexOf, BigInt, Bytes, setTypedArray, arrayBuffer, arrayOffset, arrayLength, viewBuffer,
    viewOffset, viewLength, bufferLength, Error, TypeError, RangeError, SyntaxError, ReferenceError, URIError, EvalError,
  } = builtins;
  const { Module, Instance, exportsOf, bufferOf, valueOf, LinkErrorPrototype } = compiler;

  const NOTHING = list();
  // The kinds of exports and of numbers, as in webassembly.rs.
  const FUNCTION = 0, MEMORY = 1;
  const I64 = 1;
  // What the engine adds to a message: the text of the code that it was evaluating, which is this file's.
  const EVALUATING = " (evaluating '";

  function define(object, name, value) {
    defineProperty(object, name, { __proto__: null, value, writable: false, enumerable: true, configurable: false });
  }

  // What a guest sees of a function: a native one with this name and so many parameters.
  function present(body, name, length) {
    const bound = list();
    bound[0] = undefined;
    const native = apply(bindFunction, body, bound);
    const own = { __proto__: null, value: name, writable: false, enumerable: false, configurable: true };
    defineProperty(native, "name", own);
    own.value = length;
    defineProperty(native, "length", own);
    return native;
  }

  // What WebAssembly takes as a number of this kind without running anything.
  function number(value, kind, what) {
    if (typeof value === kind) return value;
    if (kind === "number") throw new TypeError(`${what} must be a number`);
    if (typeof value === "number" && isSafeInteger(value)) return BigInt(value);
    throw new TypeError(`${what} must be a BigInt, or a number that is an integer`);
  }

  function argument(value, kind, position, callee) {
    return number(value, kind, `argument ${position} of ${callee}`);
  }

  // How a type of WebAssembly's is called where it is a value of the language.
  function kindOf(type) {
    return type === I64 ? "bigint" : "number";
  }

  // Whether an error was made by the language, and not by WebAssembly.
  function isPlain(thrown) {
    if (typeof thrown !== "object" || thrown === null) return false;
    const prototype = getPrototypeOf(thrown);
    return prototype === Error.prototype || prototype === TypeError.prototype || prototype === RangeError.prototype ||
      prototype === SyntaxError.prototype || prototype === ReferenceError.prototype ||
      prototype === URIError.prototype || prototype === EvalError.prototype;
  }

  // What the guest is shown of something that was thrown inside a module.
  function shown(thrown, module) {
    if (isPlain(thrown)) return thrown;
    let reason = "an exception that it does not catch";
    if (typeof thrown === "object" && thrown !== null) {
      const message = getOwnPropertyDescriptor(thrown, "message");
      if (message !== undefined) setPrototypeOf(message, null);
      if (message !== undefined && typeof message.value === "string" && message.value !== "") {
        const end = list();
        end[0] = EVALUATING;
        const at = apply(indexOf, message.value, end);
        end[0] = 0;
        end[1] = at;
        reason = at < 0 ? message.value : apply(slice, message.value, end);
      }
    }
    return new Error(`the WebAssembly module ${module} trapped: ${reason}`);
  }

  // A function of the module for the guest. Those of few parameters have a body of their own, which is several times as fast.
  function exported(callee, name, parameters, module) {
    const count = parameters.length;
    const kinds = list();
    for (let i = 0; i < count; i++) kinds[i] = kindOf(parameters[i]);
    const body = count <= 4
      ? ofFew(callee, kinds, `${module}.${name}`, module)
      : ofMany(callee, kinds, `${module}.${name}`, module);
    return present(body, name, count);
  }

  function ofFew(callee, kinds, what, module) {
    const first = kinds[0], second = kinds[1], third = kinds[2], fourth = kinds[3];
    switch (kinds.length) {
      case 0:
        return () => {
          try { return callee(); } catch (thrown) { throw shown(thrown, module); }
        };
      case 1:
        return (a) => {
          if (typeof a !== first) a = argument(a, first, 1, what);
          try { return callee(a); } catch (thrown) { throw shown(thrown, module); }
        };
      case 2:
        return (a, b) => {
          if (typeof a !== first) a = argument(a, first, 1, what);
          if (typeof b !== second) b = argument(b, second, 2, what);
          try { return callee(a, b); } catch (thrown) { throw shown(thrown, module); }
        };
      case 3:
        return (a, b, c) => {
          if (typeof a !== first) a = argument(a, first, 1, what);
          if (typeof b !== second) b = argument(b, second, 2, what);
          if (typeof c !== third) c = argument(c, third, 3, what);
          try { return callee(a, b, c); } catch (thrown) { throw shown(thrown, module); }
        };
      default:
        return (a, b, c, d) => {
          if (typeof a !== first) a = argument(a, first, 1, what);
          if (typeof b !== second) b = argument(b, second, 2, what);
          if (typeof c !== third) c = argument(c, third, 3, what);
          if (typeof d !== fourth) d = argument(d, fourth, 4, what);
          try { return callee(a, b, c, d); } catch (thrown) { throw shown(thrown, module); }
        };
    }
  }

  function ofMany(callee, kinds, what, module) {
    const count = kinds.length;
    return (...given) => {
      const values = list();
      for (let i = 0; i < count; i++) {
        const value = i < given.length ? given[i] : undefined;
        values[i] = typeof value === kinds[i] ? value : argument(value, kinds[i], i + 1, what);
      }
      try { return apply(callee, undefined, values); } catch (thrown) { throw shown(thrown, module); }
    };
  }

  // A function of the host for the module.
  function imported(native, name, result) {
    const what = `the value of the host function ${name}`;
    return (...values) => {
      const value = apply(native, undefined, values);
      if (result !== null) return number(value, kindOf(result), what);
    };
  }

  // The bytes of a buffer or a view.
  function bytesOf(value) {
    if (!isView(value)) return new Bytes(value, 0, apply(bufferLength, value, NOTHING));
    let buffer, offset, length;
    try {
      buffer = apply(arrayBuffer, value, NOTHING);
      offset = apply(arrayOffset, value, NOTHING);
      length = apply(arrayLength, value, NOTHING);
    } catch {
      buffer = apply(viewBuffer, value, NOTHING);
      offset = apply(viewOffset, value, NOTHING);
      length = apply(viewLength, value, NOTHING);
    }
    return new Bytes(buffer, offset, length);
  }

  // A memory of the module for the guest: copies only, since a buffer is taken away when the memory grows.
  function memory(instance, name) {
    const all = () => apply(bufferOf, instance, NOTHING);

    function part(offset, length, what) {
      const buffer = all();
      const size = apply(bufferLength, buffer, NOTHING);
      if (!isSafeInteger(offset) || !isSafeInteger(length)) {
        throw new TypeError(`${what}: offset and length must be integers`);
      }
      if (offset < 0 || length < 0 || offset + length > size) {
        throw new RangeError(`${what}: ${length} bytes at ${offset} are not within the memory's ${size}`);
      }
      return new Bytes(buffer, offset, length);
    }

    function copy(from, to) {
      const source = list();
      source[0] = from;
      apply(setTypedArray, to, source);
    }

    const functions = { __proto__: null };
    define(functions, "size", present(() => apply(bufferLength, all(), NOTHING), "size", 0));
    define(functions, "read", present((offset, length) => {
      const source = part(offset, length, `${name}.read`);
      const target = new Bytes(length);
      copy(source, target);
      return target;
    }, "read", 2));
    define(functions, "write", present((offset, bytes) => {
      let source;
      try {
        source = bytesOf(bytes);
      } catch {
        throw new TypeError(`${name}.write: the second argument must be a typed array or a buffer`);
      }
      copy(source, part(offset, apply(arrayLength, source, NOTHING), `${name}.write`));
    }, "write", 2));
    return freeze(functions);
  }

  // Compiles a module, calls its start function, and makes what it exports a global. `about` is the host's description of
  // the module, `natives` what it imports.
  function load(code, about, natives, global) {
    const name = about.name;
    const module = new Module(code);
    const imports = { __proto__: null };
    for (let i = 0; i < about.imports.length; i++) {
      const wanted = about.imports[i];
      if (imports[wanted[0]] === undefined) imports[wanted[0]] = { __proto__: null };
      imports[wanted[0]][wanted[1]] = imported(natives[i], `${wanted[0]}.${wanted[1]}`, wanted[2]);
    }
    let instance;
    try {
      instance = new Instance(module, imports);
    } catch (thrown) {
      throw getPrototypeOf(thrown) === LinkErrorPrototype ? thrown : shown(thrown, name);
    }
    const all = apply(exportsOf, instance, NOTHING);
    const offered = { __proto__: null };
    for (let i = 0; i < about.exports.length; i++) {
      const entry = about.exports[i];
      const own = getOwnPropertyDescriptor(all, entry[0]);
      setPrototypeOf(own, null);
      if (entry[1] === FUNCTION) define(offered, entry[0], exported(own.value, entry[0], entry[2], name));
      else if (entry[1] === MEMORY) define(offered, entry[0], memory(own.value, `${name}.${entry[0]}`));
      else define(offered, entry[0], apply(valueOf, own.value, NOTHING));
    }
    freeze(offered);
    try {
      const own = { __proto__: null, value: offered, writable: true, enumerable: false, configurable: true };
      defineProperty(global, name, own);
    } catch {
      const reason = "guest code has taken the name and made it read-only; load before evaluating";
      throw new TypeError(`${name} cannot be bound: ${reason}`);
    }
    return offered;
  }

  return guard(load);
})
