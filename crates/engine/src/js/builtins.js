// The built-ins that the prelude needs, taken before any guest code could change one.
//
// The other files of the prelude may run after a guest has replaced, poisoned or deleted every built-in it can reach.
// So nothing in them looks a method up on a guest's object or on a prototype, iterates, spreads, destructures, coerces
// a guest's value, or reads a property that could be inherited: lists and records have no prototype, and built-ins
// are called through `apply`, which reads only a list's own elements.
(function () {
  "use strict";

  const { apply, getPrototypeOf, ownKeys } = Reflect;
  const { defineProperty, getOwnPropertyDescriptor, hasOwn, keys, setPrototypeOf, values } = Object;
  const getter = (object, name) => getOwnPropertyDescriptor(object, name)?.get;
  const TypedArrayPrototype = getPrototypeOf(Uint8Array.prototype);
  // What a generator inherits from is at the end of its function's `prototype`.
  const IteratorPrototype = getPrototypeOf(getPrototypeOf((function* () {}).prototype));
  const AsyncIteratorPrototype = getPrototypeOf(getPrototypeOf((async function* () {}).prototype));

  // What a guarded function returns when it has thrown. The engine's debugger is shown what leaves a function that the
  // host has called, and asks for its text; so nothing is let out.
  const failure = { __proto__: null, thrown: undefined };

  return {
    __proto__: null,

    apply, getPrototypeOf, ownKeys, setPrototypeOf, defineProperty, getOwnPropertyDescriptor, hasOwn, keys, values,

    // A list without prototype: an element that is not its own is `undefined`, and assigning one makes it.
    list: () => setPrototypeOf([], null),

    // What parts of the prelude that are loaded later add: the exports of a namespace object as a record.
    hooks: { __proto__: null, snapshot: undefined },

    failure,
    guard: (body) => (a, b, c, d, e) => {
      try {
        return body(a, b, c, d, e);
      } catch (thrown) {
        failure.thrown = thrown;
        return failure;
      }
    },

    // The prototypes by which `classify` tells classes apart.
    ObjectPrototype: Object.prototype,
    ArrayPrototype: Array.prototype,
    MapPrototype: Map.prototype,
    SetPrototype: Set.prototype,
    DataViewPrototype: DataView.prototype,
    PromisePrototype: Promise.prototype,
    ErrorPrototype: Error.prototype,
    TypedArrayPrototype,
    // Of classes whose instances keep what they are where no property shows it: as records they would all be empty.
    opaquePrototypes: [
      ...[RegExp, WeakMap, WeakSet, WeakRef, FinalizationRegistry, Number, String, Boolean, Symbol, BigInt],
      ...Object.getOwnPropertyNames(Intl).map((name) => Intl[name]),
    ]
      .filter((constructor) => typeof constructor === "function" && constructor.prototype !== undefined)
      .map((constructor) => constructor.prototype)
      .concat(IteratorPrototype, AsyncIteratorPrototype),
    AsyncIteratorPrototype,
    asyncIterator: Symbol.asyncIterator,

    Bytes: Uint8Array,
    Numbers: Float64Array,
    isView: ArrayBuffer.isView,
    setTypedArray: TypedArrayPrototype.set,
    arrayBuffer: getter(TypedArrayPrototype, "buffer"),
    arrayOffset: getter(TypedArrayPrototype, "byteOffset"),
    arrayLength: getter(TypedArrayPrototype, "byteLength"),
    viewBuffer: getter(DataView.prototype, "buffer"),
    viewOffset: getter(DataView.prototype, "byteOffset"),
    viewLength: getter(DataView.prototype, "byteLength"),
    bufferLength: getter(ArrayBuffer.prototype, "byteLength"),
    bufferDetached: getter(ArrayBuffer.prototype, "detached"),

    Map,
    mapSize: getter(Map.prototype, "size"),
    mapForEach: Map.prototype.forEach,
    mapSet: Map.prototype.set,
    Set,
    setSize: getter(Set.prototype, "size"),
    setForEach: Set.prototype.forEach,
    setAdd: Set.prototype.add,

    dateTime: Date.prototype.getTime,
    dateString: Date.prototype.toString,
    dateText: Date.prototype.toISOString,
    BigInt,
    bigIntText: BigInt.prototype.toString,
    isSafeInteger: Number.isSafeInteger,
    symbolText: Symbol.prototype.toString,
    join: Array.prototype.join,
    flat: Array.prototype.flat,
    slice: String.prototype.slice,
    indexOf: String.prototype.indexOf,
    quote: JSON.stringify,
    Promise,
    species: Symbol.species,
    promiseSpecies: getter(Promise, Symbol.species),
    then: Promise.prototype.then,

    construct: Reflect.construct,
    bindFunction: Function.prototype.bind,
    ownKeys: Reflect.ownKeys,
    Date,
    Proxy,
    toStringTag: Symbol.toStringTag,
    freeze: Object.freeze,
    preventExtensions: Object.preventExtensions,
    sameValue: Object.is,
    definePropertyOf: Reflect.defineProperty,
    sort: Array.prototype.sort,
    parse: JSON.parse,
    generatorNext: getPrototypeOf((function* () {}).prototype).next,
    asyncGeneratorNext: getPrototypeOf((async function* () {}).prototype).next,
    WeakMap,
    weakMapGet: WeakMap.prototype.get,
    weakMapSet: WeakMap.prototype.set,

    create: Object.create,
    toStringTag: Symbol.toStringTag,
    IteratorPrototype,
    AsyncIteratorPrototype,
    Error, TypeError, RangeError, SyntaxError, ReferenceError, URIError, EvalError,
  };
})
