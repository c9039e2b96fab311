// Linking: which variable each imported name is, and namespace objects.
//
// No function calls itself: a chain of modules may be longer than the stack is deep.
(function (builtins, natives, kit) {
  "use strict";

  const {
    apply, list, defineProperty, definePropertyOf, getOwnPropertyDescriptor, hasOwn, setPrototypeOf, freeze,
    preventExtensions, sameValue, sort, Proxy, toStringTag, SyntaxError, WeakMap, weakMapGet, weakMapSet,
  } = builtins;
  const { UNLINKED, LINKED, quoted, located } = kit;

  const AMBIGUOUS = { __proto__: null };
  const NO_ARGUMENTS = list();

  // What an export stands for: a module and the name of a variable of it, or `null` for its namespace. `null` where there
  // is none. Every export that is reached is looked at once, and all that are found must be the same.
  function resolve(module, name) {
    const seen = { __proto__: null };
    const modules = list();
    const names = list();
    let left = 0;
    let found = null;
    modules[left] = module;
    names[left++] = name;
    while (left > 0) {
      const at = modules[--left];
      const wanted = names[left];
      const mark = `${at.index} ${wanted}`;
      if (seen[mark] === true) continue;
      seen[mark] = true;
      const entry = at.named[wanted];
      let variable = null;
      if (entry === undefined) {
        if (wanted === "default") continue;
        for (let i = 0; i < at.starCount; i++) {
          modules[left] = at.loaded[at.stars[i]];
          names[left++] = wanted;
        }
        continue;
      } else if (entry.from < 0) {
        variable = { __proto__: null, module: at, name: wanted };
      } else if (entry.imported === null) {
        variable = { __proto__: null, module: at.loaded[entry.from], name: null };
      } else {
        modules[left] = at.loaded[entry.from];
        names[left++] = entry.imported;
        continue;
      }
      if (found === null) found = variable;
      else if (found.module !== variable.module || found.name !== variable.name) return AMBIGUOUS;
    }
    return found;
  }

  // The names that a module exports, in the order of their code units.
  function exportedNames(root) {
    const all = { __proto__: null };
    const names = list();
    let count = 0;
    const seen = { __proto__: null };
    const modules = list();
    let left = 0;
    modules[left++] = root;
    while (left > 0) {
      const module = modules[--left];
      if (seen[module.index] === true) continue;
      seen[module.index] = true;
      for (const name in module.named) {
        if (all[name] === true || (name === "default" && module !== root)) continue;
        all[name] = true;
        names[count++] = name;
      }
      for (let i = 0; i < module.starCount; i++) modules[left++] = module.loaded[module.stars[i]];
    }
    const order = list();
    order[0] = (a, b) => (a < b ? -1 : 1);
    return apply(sort, names, order);
  }

  function read(variable) {
    if (variable.name === null) return namespace(variable.module);
    return apply(variable.module.getters[variable.name], undefined, NO_ARGUMENTS);
  }

  const moduleOf = new WeakMap();

  // The namespace object: a proxy, since its properties are variables of other functions that can be read and not written.
  function namespace(module) {
    if (module.namespace !== undefined) return module.namespace;
    const names = exportedNames(module);
    const variables = { __proto__: null };
    const target = { __proto__: null };
    const all = list();
    let count = 0;
    for (let i = 0; i < names.length; i++) {
      const variable = resolve(module, names[i]);
      if (variable === null || variable === AMBIGUOUS) continue;
      variables[names[i]] = variable;
      all[count++] = names[i];
      defineProperty(target, names[i], { __proto__: null, value: undefined, writable: true, enumerable: true, configurable: false });
    }
    defineProperty(target, toStringTag, { __proto__: null, value: "Module", writable: false, enumerable: false, configurable: false });
    preventExtensions(target);
    module.namespace = new Proxy(target, {
      __proto__: null,
      get(_, key) {
        if (typeof key === "symbol") return key === toStringTag ? "Module" : undefined;
        const variable = variables[key];
        return variable === undefined ? undefined : read(variable);
      },
      set: () => false,
      getOwnPropertyDescriptor(_, key) {
        if (typeof key === "symbol") {
          const descriptor = getOwnPropertyDescriptor(target, key);
          return descriptor === undefined ? undefined : setPrototypeOf(descriptor, null);
        }
        const variable = variables[key];
        if (variable === undefined) return undefined;
        return { __proto__: null, value: read(variable), writable: true, enumerable: true, configurable: false };
      },
      defineProperty(_, key, wanted) {
        setPrototypeOf(wanted, null);
        if (typeof key === "symbol") return definePropertyOf(target, key, wanted);
        const variable = variables[key];
        if (variable === undefined || wanted.configurable === true || hasOwn(wanted, "get") || hasOwn(wanted, "set")) return false;
        if ((hasOwn(wanted, "enumerable") && !wanted.enumerable) || (hasOwn(wanted, "writable") && !wanted.writable)) return false;
        return !hasOwn(wanted, "value") || sameValue(wanted.value, read(variable));
      },
      ownKeys() {
        const keys = list();
        for (let i = 0; i < count; i++) keys[i] = all[i];
        keys[count] = toStringTag;
        return keys;
      },
      setPrototypeOf: (_, prototype) => prototype === null,
    });
    const entry = list();
    entry[0] = module.namespace;
    entry[1] = { __proto__: null, names: all, count, variables };
    apply(weakMapSet, moduleOf, entry);
    return module.namespace;
  }

  // The exports as a plain record, of a namespace or `undefined` for what is none. Throws where a variable has no value yet.
  function snapshot(object) {
    const key = list();
    key[0] = object;
    const inside = apply(weakMapGet, moduleOf, key);
    if (inside === undefined) return undefined;
    const record = { __proto__: null };
    for (let i = 0; i < inside.count; i++) record[inside.names[i]] = read(inside.variables[inside.names[i]]);
    return record;
  }

  function missing(variable, wanted, from, module, entry) {
    const what = variable === null ? "has no export" : "has more than one export";
    return located(SyntaxError, `the module ${quoted(from.name)} ${what} ${quoted(wanted)}`, module.name, entry.line, entry.column);
  }

  // Links every module that can be reached and is not linked; where one cannot be, none is. Returns a list of promises, of
  // asynchronous modules that have yet to come to where their evaluation begins.
  function link(root) {
    const modules = unlinked(root);
    for (let i = 0; i < modules.length; i++) check(modules[i]);
    const starting = list();
    // Only what the transformer wrote runs before the first `yield`: it hands over the getters, and functions are there.
    for (let i = 0; i < modules.length; i++) {
      const begun = kit.instantiate(modules[i]);
      if (modules[i].asynchronous) starting[starting.length] = begun;
    }
    for (let i = 0; i < modules.length; i++) connect(modules[i]);
    for (let i = 0; i < modules.length; i++) modules[i].status = LINKED;
    return starting;
  }

  // The modules that are to be linked, each after those that it needs.
  function unlinked(root) {
    const modules = list();
    const seen = { __proto__: null };
    const path = list();
    const places = list();
    let depth = 0;
    const enter = (module) => {
      if (module.status !== UNLINKED || seen[module.index] === true) return;
      seen[module.index] = true;
      path[depth] = module;
      places[depth++] = 0;
    };
    enter(root);
    while (depth > 0) {
      const module = path[depth - 1];
      if (places[depth - 1] < module.requestCount) {
        enter(module.loaded[places[depth - 1]++]);
      } else {
        modules[modules.length] = module;
        depth--;
      }
    }
    return modules;
  }

  function check(module) {
    for (let i = 0; i < module.indirectCount; i++) {
      const entry = module.indirect[i];
      const variable = resolve(module, entry.name);
      if (variable === null || variable === AMBIGUOUS) {
        throw missing(variable, entry.imported, module.loaded[entry.from], module, entry);
      }
    }
    for (let i = 0; i < module.importCount; i++) {
      const entry = module.importList[i];
      if (entry.imported === null) continue;
      const variable = resolve(module.loaded[entry.from], entry.imported);
      if (variable === null || variable === AMBIGUOUS) {
        throw missing(variable, entry.imported, module.loaded[entry.from], module, entry);
      }
      entry.variable = variable;
    }
  }

  function connect(module) {
    for (let i = 0; i < module.importCount; i++) {
      const { local, imported, from, variable } = module.importList[i];
      const property = { __proto__: null, enumerable: true, configurable: false };
      if (imported === null) property.value = namespace(module.loaded[from]);
      else if (variable.name === null) property.value = namespace(variable.module);
      else property.get = variable.module.getters[variable.name];
      defineProperty(module.bindings, local, property);
    }
    freeze(module.bindings);
  }

  kit.link = link;
  kit.namespace = namespace;
  kit.snapshot = snapshot;
  return kit;
})
