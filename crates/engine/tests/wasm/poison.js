// Everything that a script can replace, replaced by what notes who uses it, in `got`.
globalThis.got = [];
const define = Reflect.defineProperty, own = Reflect.ownKeys, describe = Reflect.getOwnPropertyDescriptor;
const keep = (what) => {
  define(got, got.length, {__proto__: null, value: what, writable: true, enumerable: true, configurable: true});
};
const text = String;
const note = (what) => function () { keep(what); keep(this); keep(arguments); throw 'poisoned'; };
const accessor = (object, name) => {
  const get = note(`get ${text(name)}`), set = note(`set ${text(name)}`);
  define(object, name, {__proto__: null, get, set, configurable: true});
};
const names = [
  '0', '1', '2', 'env', 'f', 'g', 'imports', 'exports', 'name', 'value', 'get', 'set', 'writable', 'enumerable',
  'configurable', 'then', 'lib', 'add', 'memory', 'buffer', 'parameters', 'message', 'stack', 'element', 'initial',
];
const prototypes = [
  Function.prototype, Array.prototype, String.prototype, Number.prototype, BigInt.prototype, Promise.prototype,
  Uint8Array.prototype, Object.getPrototypeOf(Uint8Array.prototype), ArrayBuffer.prototype, DataView.prototype,
  Error.prototype, TypeError.prototype, RangeError.prototype, Object.prototype,
];
const holders = [Reflect, Object, Function, Array, Number, BigInt, Uint8Array, ArrayBuffer, Error, Promise, Symbol];
for (let i = 0; i < holders.length; i++) {
  const keys = own(holders[i]);
  for (let k = 0; k < keys.length; k++) {
    if (describe(holders[i], keys[k]).configurable) accessor(holders[i], keys[k]);
  }
}
for (let i = 0; i < prototypes.length; i++) {
  const keys = own(prototypes[i]);
  for (let k = 0; k < keys.length; k++) {
    if (describe(prototypes[i], keys[k]).configurable) accessor(prototypes[i], keys[k]);
  }
  for (let k = 0; k < names.length; k++) accessor(prototypes[i], names[k]);
}
globalThis.Error = globalThis.TypeError = globalThis.Uint8Array = globalThis.BigInt = note('constructor');
got.length = 0;
0;
