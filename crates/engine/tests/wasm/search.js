// Everything that can be reached from the global object and from its `lib` by properties and prototypes, by getters, and from what its functions
// return and throw, however they are called. The value is what of it is WebAssembly's: places of its objects and names of
// its constructors.
(() => {
  const isEngines = (value) => {
    try { return /^\[object WebAssembly/.test(Object.prototype.toString.call(value)); } catch { return false; }
  };
  const seen = new Set(), found = [], queue = [];
  const visit = (value, path) => {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value)) return;
    seen.add(value);
    queue.push([value, path]);
  };
  const thrown = (f, path) => { try { visit(f(), path); } catch (error) { visit(error, path + '!'); } };
  visit(globalThis, 'globalThis');
  visit(lib, 'lib');
  for (const name of Reflect.ownKeys(lib)) {
    const member = lib[name];
    if (typeof member === 'function') {
      for (const given of [[], [0], [0n], [70000], [1, 0], [{}], [lib], ['x'], [-1, -1]]) {
        thrown(() => member(...given), `lib.${name}()`);
        thrown(() => member.apply(lib, given), `lib.${name}()`);
        thrown(() => Reflect.construct(member, given), `new lib.${name}`);
      }
      // Where there is hardly any stack left, too.
      const deep = () => {
        try { deep(); } catch (error) { visit(error, 'deep'); thrown(() => member(1, 0), 'deep'); }
      };
      deep();
    } else if (member !== null && typeof member === 'object') {
      for (const inner of Reflect.ownKeys(member)) {
        if (typeof member[inner] !== 'function') continue;
        for (const given of [[], [0, 1], [1e9, 1], [-1, new Uint8Array(1)], [0, {}]]) {
          thrown(() => member[inner](...given), `lib.${String(name)}.${String(inner)}()`);
        }
      }
    }
  }
  while (queue.length > 0) {
    const [value, path] = queue.pop();
    if (isEngines(value)) found.push(path);
    for (let object = value; object !== null; object = Object.getPrototypeOf(object)) {
      visit(Object.getPrototypeOf(object), path + '.__proto__');
      for (const key of Reflect.ownKeys(object)) {
        const own = Object.getOwnPropertyDescriptor(object, key);
        visit(own.value, `${path}.${String(key)}`);
        visit(own.get, path); visit(own.set, path);
        if (own.get !== undefined) thrown(() => own.get.call(value), `${path}.${String(key)}`);
      }
    }
  }
  const named = [...seen].filter((value) => typeof value === 'function' &&
    /^(Module|Instance|Memory|Table|Global|Tag|Exception|CompileError|LinkError|RuntimeError)$/.test(value.name));
  return found.concat(named.map((value) => value.name)).sort().join();
})();
