// Objects that the host looks at once, to see whether this engine marks shapes and storage as shape.rs expects.
//
// No function here is called often enough for a compiler to take an interest: the zygote has to stay at one thread.
(function () {
  "use strict";

  const { assign, create, defineProperties, defineProperty, getOwnPropertyDescriptors } = Object;
  const row = (a, b) => ({ a, b });
  const accessor = { get: () => 1, enumerable: true, configurable: true };
  const many = () => ({
    ...getOwnPropertyDescriptors(String.prototype), ...getOwnPropertyDescriptors(Math),
    ...getOwnPropertyDescriptors(Array.prototype),
  });

  const defined = row(1, 2);
  defined.__defineGetter__("a", () => 1);
  const assigned = row(1, 2);
  assigned.__defineSetter__("b", () => 1);
  const without = row(1, 2);
  delete without.b;
  const reordered = row(1, 2);
  delete reordered.a;
  reordered.a = 1;
  const replaced = row(1, 2);
  delete replaced.b;
  defineProperty(replaced, "b", accessor);

  const defining = [{}, {}];
  defining.__defineGetter__(0, () => 1);
  const assigning = [{}, {}];
  assigning.__defineSetter__(1, () => 1);
  const moved = defineProperty([{}, {}], 0, accessor);
  delete moved[0];
  defineProperty(moved, 1, accessor);

  const pushed = [];
  pushed.push(1);
  const widened = [1];
  widened.push(1.5);
  const mixed = [1.5];
  mixed.push({});

  return {
    __proto__: null,
    // Of one shape: the first of each says which.
    alike: [
      [row(1, 2), row("x", {}), row(undefined, 0.5)],
      [{ a: 1 }, { a: "x" }],
    ],
    // Of a shape that the first of the list does not have.
    unlike: [
      [
        row(1, 2), { b: 1, a: 2 }, { a: 1 }, { a: 1, b: 2, c: 3 }, { a: 1, c: 2 }, { a: 1, get b() { return 1; } },
        { a: 1, set b(_) {} }, { get a() { return 1; }, b: 1 }, { __proto__: null, a: 1, b: 2 }, defined, assigned,
        without, reordered, replaced, defineProperty(row(1, 2), "b", accessor),
        defineProperties(row(1, 2), { a: accessor }), defineProperty(row(1, 2), "a", { enumerable: false }),
        create(Object.prototype, { a: accessor, b: accessor }),
      ],
      [many(), defineProperty(many(), "sin", accessor)],
      [many(), defineProperty(many(), "charAt", accessor)],
      [many(), assign(many(), { another: 1 })],
    ],
    // Not made by a literal, or with elements.
    special: [
      { 0: 1 }, [], () => 1, new Map(), new Set(), new Date(), new Proxy({}, {}), new Proxy([], {}), new Error(), /a/,
      new Uint8Array(1), new ArrayBuffer(1), Promise.resolve(), (function () { return arguments; })(1), new String("a"),
      Math, JSON, Reflect, globalThis, Symbol.prototype, (function* () {})(), class {},
    ],
    // Arrays whose elements are all data, in storage that has no room for accessors.
    dense: [
      [1, 2], [1.5, 2.5], ["a", {}], pushed, widened, mixed, Array.from([1, 2]), "a b".split(" "), Array.of({}, 1),
      JSON.parse("[1,{},1.5]"), JSON.parse("[1,2]"), JSON.parse("[1.5]"),
    ],
    // Arrays with an accessor.
    accessors: [
      defining, assigning, moved, defineProperty([1, 2], 0, accessor), defineProperty([1, 2], 1, accessor),
      defineProperty([1, 2], 2, accessor), defineProperty([1, 2], 9, accessor),
      defineProperty([1.5, 2.5], 0, accessor), defineProperty([1.5, 2.5], 2, accessor),
      defineProperty([{}, {}], 0, accessor), defineProperty([{}, {}], 1, accessor),
      defineProperty([{}, {}], 2, accessor), defineProperty([, 1], 0, accessor), defineProperty([], 0, accessor),
      defineProperty(new Array(3), 1, accessor), defineProperty(Array.from([{}, 1]), 1, accessor),
      defineProperty("a b".split(" "), 1, accessor), defineProperty(new Array(1000).fill(1), 999, accessor),
      defineProperty(new (class extends Array {})(1, 2), 0, accessor), defineProperties([1, 2], { 1: accessor }),
      defineProperties([{}, {}], { 0: accessor, 1: accessor }),
    ],
  };
})
