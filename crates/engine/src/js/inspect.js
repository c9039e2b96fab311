// Texts about values for a person to read: console lines and what was thrown. Runs no guest code, never fails, bounded.
(function (builtins, classify) {
  "use strict";

  const {
    apply, guard, getPrototypeOf, setPrototypeOf, getOwnPropertyDescriptor, keys, list, isView, arrayLength, viewLength,
    bufferLength, mapSize, mapForEach, setSize, setForEach, dateText, symbolText, slice, quote,
  } = builtins;

  const CLASS_ARRAY = 1, CLASS_PROXY = 3, CLASS_DATE = 4, CLASS_BYTES = 5, CLASS_MAP = 6;
  const CLASS_SET = 7, CLASS_VIEW = 8, CLASS_PROMISE = 9, CLASS_ERROR = 10;

  const MAX_DEPTH = 4, MAX_CHILDREN = 100, MAX_NODES = 1000, MAX_STRING = 10000, MAX_HOPS = 100;

  const NO_ARGUMENTS = list();
  const arguments1 = list();
  const bounds = list();
  bounds[0] = 0;
  bounds[1] = MAX_STRING;

  let nodes = 0;
  let ancestors = null;

  function call(method, receiver) {
    return apply(method, receiver, NO_ARGUMENTS);
  }

  // The value of a data property, own or inherited, or `undefined` where there is none or a getter or a proxy.
  function lookup(object, name) {
    for (let hops = 0; hops < MAX_HOPS; hops++) {
      if (object === null || classify(object) === CLASS_PROXY) return undefined;
      const descriptor = getOwnPropertyDescriptor(object, name);
      if (descriptor !== undefined) {
        setPrototypeOf(descriptor, null);
        return descriptor.value;
      }
      object = getPrototypeOf(object);
    }
    return undefined;
  }

  function stringOf(object, name) {
    const value = lookup(object, name);
    return typeof value === "string" ? value : "";
  }

  function shorten(text) {
    return text.length > MAX_STRING ? `${apply(slice, text, bounds)}…` : text;
  }

  function quoted(text) {
    arguments1[0] = shorten(text);
    return apply(quote, undefined, arguments1);
  }

  function primitive(value) {
    switch (typeof value) {
      case "string":
        return quoted(value);
      case "bigint":
        return `${value}n`;
      case "symbol":
        return shorten(call(symbolText, value));
      default:
        // A number, a boolean, `null` or `undefined`: nothing of the guest is asked.
        return value === 0 && 1 / value < 0 ? "-0" : `${value}`;
    }
  }

  function error(value) {
    const name = stringOf(value, "name");
    const message = stringOf(value, "message");
    const head = name === "" ? "Error" : name;
    return shorten(message === "" ? head : `${head}: ${message}`);
  }

  function named(kind, value) {
    const name = stringOf(value, "name");
    return name === "" ? `[${kind}]` : `[${kind}: ${shorten(name)}]`;
  }

  function show(value, depth) {
    if ((typeof value !== "object" && typeof value !== "function") || value === null) return primitive(value);
    const kind = classify(value);
    if (typeof value === "function" && kind !== CLASS_PROXY) return named("Function", value);
    switch (kind) {
      case CLASS_PROXY:
        return "[Proxy]";
      case CLASS_PROMISE:
        return "[Promise]";
      case CLASS_ERROR:
        return depth === 0 ? error(value) : `[${error(value)}]`;
      case CLASS_DATE:
        return safely(dateText, value, "[Invalid Date]");
      case CLASS_BYTES:
        return `[${call(isView(value) ? arrayLength : bufferLength, value)} bytes]`;
      case CLASS_VIEW:
        return `[${safely(viewLength, value, 0)} bytes]`;
      default:
        return container(value, kind, depth);
    }
  }

  function safely(method, value, otherwise) {
    try {
      return call(method, value);
    } catch {
      return otherwise;
    }
  }

  function container(value, kind, depth) {
    for (let i = 0; i < depth; i++) {
      if (ancestors[i] === value) return "[Circular]";
    }
    if (depth >= MAX_DEPTH || nodes > MAX_NODES) return kind === CLASS_ARRAY ? "[…]" : "{…}";
    ancestors[depth] = value;
    switch (kind) {
      case CLASS_ARRAY:
        return `[${elements(value, depth)}]`;
      case CLASS_MAP:
        return collection("Map", value, mapSize, mapForEach, depth);
      case CLASS_SET:
        return collection("Set", value, setSize, setForEach, depth);
      default:
        return record(value, depth);
    }
  }

  function property(object, key, depth) {
    const descriptor = getOwnPropertyDescriptor(object, key);
    if (descriptor === undefined) return "undefined";
    setPrototypeOf(descriptor, null);
    if (descriptor.get !== undefined || descriptor.set !== undefined) return "[Getter]";
    nodes++;
    return show(descriptor.value, depth + 1);
  }

  function elements(array, depth) {
    const length = array.length;
    let text = "";
    for (let i = 0; i < length; i++) {
      if (i >= MAX_CHILDREN || nodes > MAX_NODES) return `${text}, … ${length - i} more`;
      text = i === 0 ? property(array, i, depth) : `${text}, ${property(array, i, depth)}`;
    }
    return text;
  }

  function record(object, depth) {
    const names = keys(object);
    const count = names.length;
    if (count === 0) return "{}";
    let text = "";
    for (let i = 0; i < count; i++) {
      if (i >= MAX_CHILDREN || nodes > MAX_NODES) return `{ ${text}, … ${count - i} more }`;
      const shown = `${quoted(names[i])}: ${property(object, names[i], depth)}`;
      text = i === 0 ? shown : `${text}, ${shown}`;
    }
    return `{ ${text} }`;
  }

  function collection(name, value, size, forEach, depth) {
    const count = safely(size, value, -1);
    if (count < 0) return record(value, depth);
    let text = "";
    let seen = 0;
    const each = list();
    each[0] = (item, key) => {
      if (seen >= MAX_CHILDREN || nodes > MAX_NODES) return;
      nodes++;
      const shown = show(item, depth + 1);
      const entry = name === "Map" ? `${show(key, depth + 1)} => ${shown}` : shown;
      text = seen === 0 ? entry : `${text}, ${entry}`;
      seen++;
    };
    apply(forEach, value, each);
    if (seen < count) text = `${text}, … ${count - seen} more`;
    return count === 0 ? `${name}(0) {}` : `${name}(${count}) { ${text} }`;
  }

  // A string as it is, anything else as `show` has it.
  function inspect(value) {
    if (typeof value === "string") return value;
    nodes = 0;
    ancestors = list();
    try {
      return show(value, 0);
    } finally {
      ancestors = null;
    }
  }

  return { __proto__: null, inspect: guard(inspect), show: inspect, lookup };
})
