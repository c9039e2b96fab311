// Turns a value into a tape of numbers, one text and a list of byte arrays, which the host reads in a few calls.
//
// The tape is in prefix order: an operation, its operands, then its children. `tape.rs` reads it. No guest code runs
// while a value is flattened: a property's descriptor is looked at before its value is taken, and `look`, a native
// function, tells a proxy from everything else before an object is touched.
//
// What is alike is written by column and not by row, in few calls: see `rows`. There `look` has said that the objects
// have the shape of one whose descriptors have been looked at (shape.rs), so their values are taken without.
(function (builtins, look, learn) {
  "use strict";

  const {
    apply, guard, getPrototypeOf, setPrototypeOf, getOwnPropertyDescriptor, hasOwn, keys, ownKeys, values, list,
    ObjectPrototype, ArrayPrototype, Bytes, Numbers, isView,
    setTypedArray, arrayBuffer, arrayOffset, arrayLength, viewBuffer, viewOffset, viewLength, bufferLength,
    bufferDetached, mapSize, mapForEach, setSize, setForEach, dateTime, bigIntText, join, flat, slice, hooks, asyncIterator,
  } = builtins;

  // Operations, as in tape.rs.
  const UNDEFINED = 0, NULL = 1, FALSE = 2, TRUE = 3, NUMBER = 4, STRING = 5, BIGINT = 6, DATE = 7, BYTES = 8;
  const ARRAY = 9, OBJECT = 10, OBJECT_AGAIN = 11, SET = 12, MAP = 13, FUNCTION = 14;
  // Several elements of a list, property by property; and how a list is written that is all of one kind, or is not.
  const ROWS = 15, NUMBERS = 16, STRINGS = 17, MIXED = 18;
  const BYTES_IN_PIECES = 21;
  // Longer bytes the host takes in pieces.
  const PIECE = 262144;

  // Classes, as in class.rs.
  const CLASS_OTHER = 0, CLASS_ARRAY = 1, CLASS_FUNCTION = 2, CLASS_PROXY = 3, CLASS_DATE = 4, CLASS_BYTES = 5, CLASS_MAP = 6;
  const CLASS_SET = 7, CLASS_VIEW = 8, CLASS_PROMISE = 9, CLASS_ERROR = 10, CLASS_NEWER_BYTES = 11;
  const CLASS_OPAQUE = 12;
  // What `look` tells beside classes, as in shape.rs: the low eight bits are about the first object, the others say how
  // many in a row are the same.
  const CLASS_RECORD = 13, CLASS_DENSE = 14, SHAPES = 16;
  const LOOKED_AT_ONCE = 256;
  // Fewer are not worth a column.
  const FEW = 4;

  // Refusals, as in tape.rs.
  const IS_SYMBOL = 2, IS_PROXY = 3, IS_GETTER = 4, IS_PROMISE = 5, TOO_DEEP = 6, TOO_MANY_NODES = 7;
  const TOO_MANY_BYTES = 8, INVALID_DATE = 9, IS_DETACHED = 10, IS_CYCLIC = 11, IS_ERROR = 13, IS_OPAQUE = 14, TOO_MANY_FUNCTIONS = 15;

  // Steps of a path, as in tape.rs.
  const KEY = 0, INDEX = 1, MEMBER = 2, MAP_KEY = 3, MAP_VALUE = 4;
  // An operation for paths alone: the values of one property of several rows.
  const COLUMN = 19;
  const STREAM = 20;

  // The tape begins with the number of its numbers, of nodes and of bytes, of byte arrays and of functions.
  const HEADER = 5;
  const MAX_NAME = 200;
  const MAX_HOPS = 100;
  const SMALL = 4096;
  const ACCESSOR = { __proto__: null };
  const NO_ARGUMENTS = list();
  const HEXADECIMAL = list();
  HEXADECIMAL[0] = 16;
  const FROM_THE_BEGINNING = list();
  FROM_THE_BEGINNING[0] = 0;
  FROM_THE_BEGINNING[1] = MAX_NAME;
  const NOTHING_BETWEEN = list();
  NOTHING_BETWEEN[0] = "";
  const one = list();
  const two = list();

  const result = {
    __proto__: null, tape: new Numbers(SMALL), text: "", buffers: null, functions: null, path: null, steps: 0,
  };

  let tape = result.tape;
  let capacity = SMALL;
  let end = 0;
  let texts = null;
  let textCount = 0;
  let buffers = null;
  let bufferCount = 0;
  // In the order of the tape, which therefore has no numbers of them.
  let functions = null;
  let functionCount = 0;
  let maxFunctions = 0;
  let nodes = 0;
  let bytes = 0;
  let maxNodes = 0;
  let maxBytes = 0;
  let maxDepth = 0;
  // The names of the last object at each depth, and their length: rows of a table share them.
  let shapes = null;
  let shapeBytes = null;
  // The names of the shapes that `look` knows, by their numbers.
  let known = null;
  let knownCount = 0;
  // The row in which a column's value was refused.
  let lostRow = 0;
  // Whether a hole in an array reads as `undefined`: 0 where that is yet to be found out.
  let holes = 0;
  // An object's elements come first among its keys. These have none.
  const firstOfArrays = ownKeys(ArrayPrototype)[0];
  const firstOfObjects = ownKeys(ObjectPrototype)[0];
  // Whether a descriptor inherits nothing that matters here.
  let descriptorsAreClean = false;
  let refusal = 0;
  // The way back from a refusal, innermost first: the kind of step, its key, and the container it was taken in.
  let steps = null;
  let stepKeys = null;
  let containers = null;
  let stepCount = 0;

  function call(method, receiver) {
    return apply(method, receiver, NO_ARGUMENTS);
  }

  function refuse(reason) {
    refusal = reason;
    return false;
  }

  function lost(step, key, container) {
    steps[stepCount] = step;
    stepKeys[stepCount] = key;
    containers[stepCount] = container;
    stepCount++;
    return false;
  }

  // Makes room on the tape. A container reserves for itself and for those of its children that are leaves, at most three
  // numbers a property (the length of its name and two of the leaf) and two an item; and again for the rest after a child
  // that is a container has written.
  function reserve(numbers) {
    if (end + numbers <= capacity) return;
    capacity = capacity * 2 > end + numbers ? capacity * 2 : end + numbers;
    const larger = new Numbers(capacity);
    one[0] = tape;
    apply(setTypedArray, larger, one);
    one[0] = undefined;
    tape = larger;
  }

  function addText(operation, text) {
    const length = text.length;
    bytes += length;
    if (bytes > maxBytes) return refuse(TOO_MANY_BYTES);
    tape[end++] = operation;
    tape[end++] = length;
    texts[textCount++] = text;
    return true;
  }

  // Comparisons in a row and not a `switch`, which the interpreter answers with a table of strings.
  function leaf(value) {
    if (typeof value === "number") {
      tape[end++] = NUMBER;
      tape[end++] = value;
      return true;
    }
    if (typeof value === "string") return addText(STRING, value);
    if (value === undefined) {
      tape[end++] = UNDEFINED;
      return true;
    }
    if (value === null) {
      tape[end++] = NULL;
      return true;
    }
    if (typeof value === "boolean") {
      tape[end++] = value ? TRUE : FALSE;
      return true;
    }
    if (typeof value === "bigint") return addText(BIGINT, apply(bigIntText, value, HEXADECIMAL));
    if (typeof value === "symbol") return refuse(IS_SYMBOL);
    return (look(value) & 255) === CLASS_PROXY ? refuse(IS_PROXY) : callable(value);
  }

  // A function stays with the guest. Its name is what it calls itself, if that is a string.
  function callable(value) {
    if (functionCount >= maxFunctions) return refuse(TOO_MANY_FUNCTIONS);
    functions[functionCount++] = value;
    const descriptor = getOwnPropertyDescriptor(value, "name");
    if (descriptor === undefined) return addText(FUNCTION, "");
    setPrototypeOf(descriptor, null);
    const name = descriptor.value;
    if (typeof name !== "string") return addText(FUNCTION, "");
    return addText(FUNCTION, name.length > MAX_NAME ? apply(slice, name, FROM_THE_BEGINNING) : name);
  }

  // Whether an object says that it can be iterated asynchronously: by a function that is data, of its own or of a
  // prototype that is no proxy. `Object.prototype` says it of everything, so it is not asked.
  function isStream(value) {
    let object = value;
    for (let hops = 0; object !== null && object !== ObjectPrototype && hops < MAX_HOPS; hops++) {
      if (hops > 0 && (look(object) & 255) === CLASS_PROXY) return false;
      const descriptor = getOwnPropertyDescriptor(object, asyncIterator);
      if (descriptor !== undefined) {
        setPrototypeOf(descriptor, null);
        return typeof descriptor.value === "function";
      }
      object = getPrototypeOf(object);
    }
    return false;
  }

  // A stream stays with the guest, like a function. The record is for streams.js.
  function stream(iterable) {
    if (functionCount >= maxFunctions) return refuse(TOO_MANY_FUNCTIONS);
    functions[functionCount++] = { __proto__: null, iterable, iterator: undefined, next: undefined };
    tape[end++] = STREAM;
    return true;
  }

  function object(value, kind, depth) {
    // The two commonest kinds first: the cases below are compared one after the other.
    if (kind >= SHAPES) return properties(value, kind, depth);
    if (kind === CLASS_RECORD) return isStream(value) ? stream(value) : properties(value, kind, depth);
    if (kind === CLASS_DENSE) return items(ARRAY, value, value.length, value.length >= FEW && holesAreEmpty(), value, depth);
    switch (kind) {
      case CLASS_ARRAY:
        return items(ARRAY, value, value.length, false, value, depth);
      case CLASS_FUNCTION:
        return callable(value);
      case CLASS_PROXY: {
        // The one proxy whose properties are known: a module's namespace.
        const exports = hooks.snapshot === undefined ? undefined : hooks.snapshot(value);
        return exports === undefined ? refuse(IS_PROXY) : properties(exports, kind, depth);
      }
      case CLASS_PROMISE:
        return refuse(IS_PROMISE);
      case CLASS_ERROR:
        return refuse(IS_ERROR);
      case CLASS_OPAQUE:
        return isStream(value) ? stream(value) : refuse(IS_OPAQUE);
      case CLASS_DATE: {
        const time = call(dateTime, value);
        if (time !== time) return refuse(INVALID_DATE);
        tape[end++] = DATE;
        tape[end++] = time;
        return true;
      }
      case CLASS_BYTES:
        return isView(value) ? typed(value) : range(value, 0, call(bufferLength, value));
      // The next four go by the prototype chain, which anything can have; only the real ones pass the built-in.
      case CLASS_VIEW:
        return genuine(viewBuffer, value) ? view(value) : properties(value, kind, depth);
      case CLASS_NEWER_BYTES:
        return isView(value) ? typed(value) : properties(value, kind, depth);
      case CLASS_MAP:
        return genuine(mapSize, value) ? entries(value, depth) : properties(value, kind, depth);
      case CLASS_SET:
        return genuine(setSize, value) ? members(value, depth) : properties(value, kind, depth);
      default:
        return isStream(value) ? stream(value) : properties(value, kind, depth);
    }
  }

  function genuine(method, value) {
    try {
      call(method, value);
      return true;
    } catch {
      return false;
    }
  }

  function typed(array) {
    return range(call(arrayBuffer, array), call(arrayOffset, array), call(arrayLength, array));
  }

  function view(value) {
    const buffer = call(viewBuffer, value);
    // A view's getters throw where the buffer is gone.
    if (isGone(buffer) || !genuine(viewLength, value)) return refuse(IS_DETACHED);
    return range(buffer, call(viewOffset, value), call(viewLength, value));
  }

  function isGone(buffer) {
    return bufferDetached !== undefined && genuine(bufferDetached, buffer) && call(bufferDetached, buffer);
  }

  // Bytes are copied into an array that the guest never sees: the host takes its address, which pins it for good. Long ones
  // stay where they are until the host has read them, which it does before any guest code, in pieces through one such array.
  function range(buffer, offset, length) {
    if (isGone(buffer)) return refuse(IS_DETACHED);
    bytes += length;
    if (bytes > maxBytes) return refuse(TOO_MANY_BYTES);
    const whole = new Bytes(buffer, offset, length);
    const isLong = length > PIECE;
    buffers[bufferCount] = isLong ? whole : copied(new Bytes(length), whole);
    tape[end++] = isLong ? BYTES_IN_PIECES : BYTES;
    tape[end++] = bufferCount++;
    return true;
  }

  function copied(target, source) {
    one[0] = source;
    apply(setTypedArray, target, one);
    one[0] = undefined;
    return target;
  }

  // Copies a piece of long bytes to the beginning of the host's array.
  function takePiece(bytes, piece, offset, length) {
    copied(piece, new Bytes(call(arrayBuffer, bytes), call(arrayOffset, bytes) + offset, length));
  }

  function properties(value, kind, depth) {
    const names = keys(value);
    const count = names.length;
    if (depth > maxDepth) return refuse(TOO_DEEP);
    nodes += count;
    if (nodes > maxNodes) return refuse(TOO_MANY_NODES);
    reserve(3 * count + 3);
    const again = sameShape(shapes[depth], names, count);
    if (again) {
      bytes += shapeBytes[depth];
      tape[end++] = OBJECT_AGAIN;
    } else {
      tape[end++] = OBJECT;
      tape[end++] = count;
      const before = bytes;
      for (let i = 0; i < count; i++) {
        const name = names[i];
        const length = name.length;
        bytes += length;
        tape[end++] = length;
        texts[textCount++] = name;
      }
      shapes[depth] = names;
      shapeBytes[depth] = bytes - before;
    }
    if (bytes > maxBytes) return refuse(TOO_MANY_BYTES);
    for (let i = 0; i < count; i++) {
      const name = names[i];
      const descriptor = getOwnPropertyDescriptor(value, name);
      if (!descriptorsAreClean) setPrototypeOf(descriptor, null);
      const child = descriptor.value;
      // The two commonest kinds of leaf come first and without a call, for the interpreter's sake.
      if (typeof child === "number") {
        tape[end++] = NUMBER;
        tape[end++] = child;
      } else if (typeof child === "string") {
        if (!addText(STRING, child)) return lost(KEY, name, value);
      } else if (typeof child === "object" && child !== null) {
        if (!object(child, look(child) & 255, depth + 1)) return lost(KEY, name, value);
        reserve(3 * (count - i));
      } else if (child === undefined && (descriptor.get !== undefined || descriptor.set !== undefined)) {
        refuse(IS_GETTER);
        return lost(KEY, name, value);
      } else if (!leaf(child)) {
        return lost(KEY, name, value);
      }
    }
    // The second of a kind makes it worth telling; all its properties are data.
    if (again && kind === CLASS_RECORD && count > 0) {
      const shape = learn(value);
      if (shape >= SHAPES) {
        known[shape] = names;
        knownCount++;
      }
    }
    return true;
  }

  function sameShape(shape, names, count) {
    if (shape === undefined || shape.length !== count) return false;
    for (let i = 0; i < count; i++) {
      if (shape[i] !== names[i]) return false;
    }
    return true;
  }

  // The elements of an array, or of a list of a collection's contents; `container` is what the guest sees of it. An array
  // is safe to read from when it has no accessor and inherits no elements.
  function items(operation, array, length, isSafe, container, depth) {
    if (depth > maxDepth) return refuse(TOO_DEEP);
    nodes += length;
    if (nodes > maxNodes) return refuse(TOO_MANY_NODES);
    reserve(2);
    if (operation !== ARRAY) tape[end++] = operation;
    return elements(operation, array, length, isSafe, "", container, depth);
  }

  // Writes how many elements there are, and the elements; in one piece where they are all numbers, or all strings.
  function elements(operation, array, length, isSafe, name, container, depth) {
    if (isSafe && length >= FEW) {
      const first = array[0];
      if (typeof first === "number" && areNumbers(array, length)) return numbers(array, length);
      if (typeof first === "string") {
        const lengths = list();
        if (areStrings(array, length, lengths)) return strings(array, length, lengths, operation, name, container);
      }
    }
    reserve(2 * length + 2);
    tape[end++] = operation === ARRAY ? ARRAY : MIXED;
    tape[end++] = length;
    const group = list();
    let index = 0;
    let atOnce = 1;
    while (index < length) {
      const child = isSafe ? array[index] : element(array, index);
      if (typeof child === "number") {
        tape[end++] = NUMBER;
        tape[end++] = child;
        index++;
        continue;
      }
      if (typeof child !== "object" || child === null) {
        if (!leaf(child)) return itemLost(operation, index, name, container);
        index++;
        continue;
      }
      if (child === ACCESSOR) {
        refuse(IS_GETTER);
        return itemLost(operation, index, name, container);
      }
      let count = 1;
      group[0] = child;
      while (count < atOnce && index + count < length) {
        const next = isSafe ? array[index + count] : element(array, index + count);
        if (typeof next !== "object" || next === null || next === ACCESSOR) break;
        group[count++] = next;
      }
      if (group.length !== count) group.length = count;
      const seen = count === 1 ? look(child) : apply(look, undefined, group);
      const kind = seen & 255;
      const alike = seen >>> 8;
      // As long as objects are alike, more of them are looked at at once.
      atOnce = alike < count ? 1 : atOnce < LOOKED_AT_ONCE ? 4 * atOnce : LOOKED_AT_ONCE;
      if (kind >= SHAPES && alike >= FEW) {
        if (!rows(known[kind], group, alike, depth + 1)) return itemLost(operation, index + lostRow, name, container);
        index += alike;
      } else {
        const before = knownCount;
        for (let i = 0; i < alike && knownCount === before; i++) {
          if (!object(group[i], kind, depth + 1)) return itemLost(operation, index, name, container);
          index++;
        }
      }
      reserve(2 * (length - index));
    }
    return true;
  }

  function areNumbers(array, length) {
    for (let i = 0; i < length; i++) {
      if (typeof array[i] !== "number") return false;
    }
    return true;
  }

  function areStrings(array, length, lengths) {
    for (let i = 0; i < length; i++) {
      const text = array[i];
      if (typeof text !== "string") return false;
      lengths[i] = text.length;
    }
    return true;
  }

  function numbers(array, length) {
    reserve(length + 2);
    tape[end++] = NUMBERS;
    tape[end++] = length;
    return copy(array, length);
  }

  function strings(array, length, lengths, operation, name, container) {
    let size = 0;
    for (let i = 0; i < length; i++) {
      size += lengths[i];
      if (bytes + size > maxBytes) {
        refuse(TOO_MANY_BYTES);
        return itemLost(operation, i, name, container);
      }
    }
    bytes += size;
    reserve(length + 2);
    tape[end++] = STRINGS;
    tape[end++] = length;
    texts[textCount++] = apply(join, array, NOTHING_BETWEEN);
    return copy(lengths, length);
  }

  function copy(array, length) {
    two[0] = array;
    two[1] = end;
    apply(setTypedArray, tape, two);
    two[0] = undefined;
    end += length;
    return true;
  }

  // Objects of one shape, property by property.
  function rows(names, objects, count, depth) {
    const width = names.length;
    lostRow = 0;
    if (depth > maxDepth) return refuse(TOO_DEEP);
    nodes += count * width;
    if (nodes > maxNodes) return refuse(TOO_MANY_NODES);
    reserve(width + 3);
    tape[end++] = ROWS;
    tape[end++] = count;
    tape[end++] = width;
    for (let k = 0; k < width; k++) {
      const name = names[k];
      const length = name.length;
      bytes += count * length;
      tape[end++] = length;
      texts[textCount++] = name;
    }
    if (bytes > maxBytes) return refuse(TOO_MANY_BYTES);
    const cells = list();
    for (let i = 0; i < count; i++) cells[i] = values(objects[i]);
    // Row after row; `cells` has no constructor to be asked for another kind of array.
    const all = apply(flat, cells, NO_ARGUMENTS);
    for (let k = 0; k < width; k++) {
      const column = list();
      for (let i = 0, at = k; i < count; i++, at += width) column[i] = all[at];
      if (!elements(COLUMN, column, count, true, names[k], objects, depth)) return false;
    }
    return true;
  }

  function holesAreEmpty() {
    if (holes === 0) {
      const inheritNothing =
        getPrototypeOf(ArrayPrototype) === ObjectPrototype && ownKeys(ArrayPrototype)[0] === firstOfArrays &&
        ownKeys(ObjectPrototype)[0] === firstOfObjects;
      holes = inheritNothing ? 1 : 2;
    }
    return holes === 1;
  }

  // An array's own element, `undefined` for a hole, `ACCESSOR` for a getter or setter.
  function element(array, index) {
    const descriptor = getOwnPropertyDescriptor(array, index);
    if (descriptor === undefined) return undefined;
    if (!descriptorsAreClean) setPrototypeOf(descriptor, null);
    const value = descriptor.value;
    if (value === undefined && (descriptor.get !== undefined || descriptor.set !== undefined)) return ACCESSOR;
    return value;
  }

  function itemLost(operation, index, name, container) {
    if (operation === ARRAY) return lost(INDEX, index, container);
    if (operation === SET) return lost(MEMBER, index, container);
    if (operation === MAP) return lost((index & 1) === 0 ? MAP_KEY : MAP_VALUE, index >>> 1, container);
    lostRow = index;
    return lost(KEY, name, container[index]);
  }

  function entries(map, depth) {
    if (nodes + 2 * call(mapSize, map) > maxNodes) return refuse(TOO_MANY_NODES);
    const contents = list();
    let count = 0;
    one[0] = (value, key) => {
      contents[count++] = key;
      contents[count++] = value;
    };
    apply(mapForEach, map, one);
    one[0] = undefined;
    return items(MAP, contents, count, true, map, depth);
  }

  function members(set, depth) {
    if (nodes + call(setSize, set) > maxNodes) return refuse(TOO_MANY_NODES);
    const contents = list();
    let count = 0;
    one[0] = (value) => {
      contents[count++] = value;
    };
    apply(setForEach, set, one);
    one[0] = undefined;
    return items(SET, contents, count, true, set, depth);
  }

  // A value that contains itself has no bottom, so it is met as one that is too large. The way back then passes the
  // same container twice, and the path to name is the one that ends at the second.
  function findCycle() {
    if (refusal !== TOO_DEEP && refusal !== TOO_MANY_NODES && refusal !== TOO_MANY_BYTES) return;
    for (let inner = stepCount - 2; inner >= 0; inner--) {
      for (let outer = stepCount - 1; outer > inner; outer--) {
        if (containers[inner] !== containers[outer]) continue;
        refusal = IS_CYCLIC;
        const path = list();
        for (let i = inner + 1; i < stepCount; i++) {
          path[2 * (i - inner - 1)] = steps[i];
          path[2 * (i - inner - 1) + 1] = stepKeys[i];
        }
        result.path = path;
        result.steps = stepCount - inner - 1;
        return;
      }
    }
  }

  // Flattens a value into `result` and returns the number of the reason why not, 0 when it did.
  function flatten(value, nodeLimit, byteLimit, depthLimit, functionLimit) {
    end = HEADER;
    textCount = bufferCount = functionCount = bytes = refusal = stepCount = 0;
    nodes = 1;
    maxNodes = nodeLimit;
    maxBytes = byteLimit;
    maxDepth = depthLimit;
    maxFunctions = functionLimit;
    texts = list();
    buffers = list();
    functions = list();
    shapes = list();
    shapeBytes = list();
    known = list();
    knownCount = holes = 0;
    steps = list();
    stepKeys = list();
    containers = list();
    descriptorsAreClean =
      !hasOwn(ObjectPrototype, "value") && !hasOwn(ObjectPrototype, "get") && !hasOwn(ObjectPrototype, "set");
    const taken =
      typeof value === "object" && value !== null ? object(value, look(value) & 255, 1) : leaf(value);
    tape[0] = end;
    tape[1] = nodes;
    tape[2] = bytes;
    tape[3] = bufferCount;
    tape[4] = functionCount;
    result.tape = tape;
    result.buffers = buffers;
    result.functions = functions;
    result.text = textCount === 1 ? texts[0] : apply(join, texts, NOTHING_BETWEEN);
    result.path = null;
    if (!taken) {
      const path = list();
      for (let i = 0; i < stepCount; i++) {
        path[2 * i] = steps[i];
        path[2 * i + 1] = stepKeys[i];
      }
      result.path = path;
      result.steps = stepCount;
      findCycle();
    }
    texts = buffers = functions = shapes = shapeBytes = known = steps = stepKeys = containers = null;
    return refusal;
  }

  // Lets go of a value that has been read, and of a tape that has become large. A small value may stay until the next.
  function release() {
    result.text = "";
    result.buffers = null;
    result.functions = null;
    if (capacity > SMALL) {
      capacity = SMALL;
      tape = result.tape = new Numbers(SMALL);
    }
  }

  return { __proto__: null, flatten: guard(flatten), release: guard(release), takePiece: guard(takePiece), result };
})
