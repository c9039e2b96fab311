(modules, entry) => {
  // A loader as the protocol describes it; every module is there before it is asked for.
  const find = (module, index) => {
    const { specifier } = module.requests[index];
    const found = modules[specifier];
    if (found === undefined) throw new SyntaxError(`no module ${specifier}`);
    return found;
  };
  const resolve = (module, name, seen = new Set()) => {
    const mark = `${module.id} ${name}`;
    if (seen.has(mark)) return null;
    seen.add(mark);
    for (const entry of module.exports) {
      if (entry.name !== name || entry.kind === "star") continue;
      if (entry.kind === "local") return { module, name };
      const from = find(module, entry.request);
      return entry.imported === null ? { module: from, name: null } : resolve(from, entry.imported, seen);
    }
    if (name === "default") return null;
    let star = null;
    for (const entry of module.exports) {
      if (entry.kind !== "star") continue;
      const found = resolve(find(module, entry.request), name, seen);
      if (found === "ambiguous") return found;
      if (found === null) continue;
      if (star === null) star = found;
      else if (star.module !== found.module || star.name !== found.name) return "ambiguous";
    }
    return star;
  };
  const names = (module, seen = new Set()) => {
    if (seen.has(module)) return [];
    seen.add(module);
    const all = new Set();
    for (const entry of module.exports) {
      if (entry.kind !== "star") all.add(entry.name);
      else for (const name of names(find(module, entry.request), seen)) if (name !== "default") all.add(name);
    }
    return [...all];
  };
  const read = ({ module, name }) => (name === null ? namespace(module) : module.getters[name]());
  const namespace = (module) => {
    if (module.namespace === undefined) {
      module.namespace = Object.create(null);
      for (const name of names(module).sort()) {
        const found = resolve(module, name);
        if (found === null || found === "ambiguous") continue;
        Object.defineProperty(module.namespace, name, { enumerable: true, get: () => read(found) });
      }
      Object.preventExtensions(module.namespace);
    }
    return module.namespace;
  };
  const link = (module) => {
    if (module.bindings !== undefined) return;
    module.bindings = Object.create(null);
    for (const { local, request, name } of module.imports) {
      const from = find(module, request);
      if (name === null) {
        Object.defineProperty(module.bindings, local, { get: () => namespace(from) });
        continue;
      }
      const found = resolve(from, name);
      if (found === null) throw new SyntaxError(`${from.id} has no export ${name}`);
      if (found === "ambiguous") throw new SyntaxError(`${from.id} has more than one export ${name}`);
      Object.defineProperty(module.bindings, local, { get: () => read(found) });
    }
    for (const { kind, name } of module.exports) {
      if (kind !== "indirect") continue;
      if (typeof resolve(module, name) !== "object" || resolve(module, name) === null) throw new SyntaxError(`${module.id} has no export ${name}`);
    }
    Object.freeze(module.bindings);
    module.requests.forEach((_, index) => link(find(module, index)));
  };
  const instantiate = (module) => {
    if (module.generator !== undefined) return;
    const record = {
      meta: { __proto__: null, url: module.id, attributes: module.requests.map(({ attributes }) => attributes) },
      import: async (specifier, options) => {
        if (modules[specifier] === undefined) throw new TypeError(`no module ${specifier}`);
        link(modules[specifier]);
        instantiate(modules[specifier]);
        await evaluate(modules[specifier]);
        return namespace(modules[specifier]);
      },
      define: (getters) => (module.getters = getters),
    };
    module.generator = (0, module.run)(record, module.bindings);
    module.generator.next();
    module.requests.forEach((_, index) => instantiate(find(module, index)));
  };
  const evaluate = (module) => {
    module.done ??= (async () => {
      for (const index of module.requests.keys()) {
        const from = find(module, index);
        if (!from.started) await evaluate(from);
      }
      if (module.asynchronous) await module.generator.next();
      else module.generator.next();
    })(module.started = true);
    return module.done;
  };
  for (const [id, module] of Object.entries(modules)) module.id = id;
  return (async () => {
    link(modules[entry]);
    instantiate(modules[entry]);
    await evaluate(modules[entry]);
    const value = namespace(modules[entry]);
    const isNamespace = (value) => Object.values(modules).some((module) => module.namespace === value);
    const plain = (value) => (typeof value === "function" ? "function" : value !== undefined && isNamespace(value) ? { ...value } : value);
    return Object.fromEntries(Object.keys(value).map((name) => [name, plain(value[name])]));
  })();
}
