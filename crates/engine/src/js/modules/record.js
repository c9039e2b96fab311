// Module records: what the loader knows of a module, and how one is made of what the host answers.
//
// A record's `getters` read its local exports; `imports` and `named` say what else it takes and gives, in places of
// `requests`, the modules that it needs, which are `loaded` in the same order. `compile` is native: it makes a function of
// a source by the protocol that the crate `transform` describes.
(function (builtins, natives) {
  "use strict";

  const {
    apply, list, keys, defineProperty, slice, parse, TypeError, SyntaxError, WeakMap, weakMapGet, weakMapSet,
  } = builtins;
  const { compile, exported } = natives;

  const MAX_QUOTED = 200;
  const shortened = list();
  shortened[0] = 0;
  shortened[1] = MAX_QUOTED;

  // How far a module has come.
  const UNLINKED = 0, LINKED = 1, EVALUATING = 2, EVALUATING_ASYNC = 3, EVALUATED = 4;

  // The modules by their names.
  const known = { __proto__: null };
  let count = 0;

  function quoted(text) {
    return text.length > MAX_QUOTED ? `'${apply(slice, text, shortened)}…'` : `'${text}'`;
  }

  const placed = new WeakMap();

  // An error that names a place in an author's text and nothing else.
  function located(Kind, message, file, line, column) {
    return place(new Kind(message), "", file, line, column);
  }

  // Has an error of the loader's name a place, or a stack, in the place of the loader's own. The first one stays.
  function place(error, stack, file, line, column) {
    const entry = list();
    entry[0] = error;
    if (apply(weakMapGet, placed, entry) === true) return error;
    entry[1] = true;
    apply(weakMapSet, placed, entry);
    show(error, "stack", stack);
    show(error, "line", line);
    show(error, "column", column);
    show(error, "sourceURL", file);
    return error;
  }

  function show(error, name, value) {
    defineProperty(error, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
  }

  function blank(name, kind) {
    return {
      __proto__: null,
      index: count++,
      name,
      kind,
      // What it needs and what becomes of it.
      requests: list(), requestCount: 0, loaded: list(), importList: list(), importCount: 0,
      // Its exports: by their names, those that stand for others in the order of the source, and all of another module.
      named: { __proto__: null }, indirect: list(), indirectCount: 0, stars: list(), starCount: 0,
      // What its own `import()` has given, by specifier and type.
      dynamic: { __proto__: null },
      getters: { __proto__: null },
      run: undefined, generator: undefined, bindings: undefined, namespace: undefined,
      asynchronous: false,
      status: UNLINKED,
      // Of its evaluation.
      error: undefined, dfsIndex: 0, dfsAncestor: 0, cycleRoot: undefined,
      order: 0, pending: 0, parents: list(), parentCount: 0, waiters: list(), waiterCount: 0, owner: 0, gathered: 0,
    };
  }

  // A record of a module that is nothing but values.
  function synthetic(name, kind, names, length, read) {
    const module = blank(name, kind);
    for (let i = 0; i < length; i++) {
      const value = read(names[i]);
      module.getters[names[i]] = () => value;
      module.named[names[i]] = { __proto__: null, name: names[i], from: -1, imported: undefined };
    }
    module.status = EVALUATED;
    module.cycleRoot = module;
    return module;
  }

  function fromValues(name, values, functions) {
    const all = keys(values);
    const module = synthetic(name, "values", all, all.length, (key) => values[key]);
    for (let i = 0; i < functions.length; i++) {
      const key = functions[i];
      const value = exported(name, key);
      module.getters[key] = () => value;
      module.named[key] = { __proto__: null, name: key, from: -1, imported: undefined };
    }
    return module;
  }

  function fromJson(name, source) {
    let value;
    const text = list();
    text[0] = source;
    try {
      value = apply(parse, undefined, text);
    } catch (thrown) {
      throw located(SyntaxError, `${quoted(name)} is not JSON: ${thrown.message}`, name, 1, 0);
    }
    const names = list();
    names[0] = "default";
    return synthetic(name, "json", names, 1, () => value);
  }

  function fromSource(name, source, kind) {
    // Its lists are arrays of the engine's making, of which only own elements are read.
    const compiled = compile(name, source, kind === "ts");
    if (compiled.run === null) {
      throw located(SyntaxError, compiled.message, name, compiled.line, compiled.column);
    }
    const module = blank(name, kind);
    const { requests, imports, exports } = compiled;
    module.run = compiled.run;
    module.asynchronous = compiled.asynchronous;
    module.requestCount = requests.length;
    for (let i = 0; i < requests.length; i++) {
      const request = requests[i];
      const attributes = request[1];
      let type = null;
      for (let j = 0; j < attributes.length; j++) {
        const key = attributes[j][0];
        if (key !== "type") {
          const message = `the import attribute ${quoted(key)} is not supported`;
          throw located(SyntaxError, message, name, request[2], request[3]);
        }
        type = attributes[j][1];
      }
      module.requests[i] = { __proto__: null, specifier: request[0], type, line: request[2], column: request[3] };
    }
    module.importCount = imports.length;
    for (let i = 0; i < imports.length; i++) {
      const entry = imports[i];
      module.importList[i] = {
        __proto__: null, local: entry[0], from: entry[1], imported: entry[2], line: entry[3], column: entry[4], variable: undefined,
      };
    }
    for (let i = 0; i < exports.length; i++) {
      const given = exports[i];
      const entry = { __proto__: null, name: given[0], from: given[1], imported: given[2], line: given[3], column: given[4] };
      if (entry.name === null) {
        module.stars[module.starCount++] = entry.from;
      } else {
        module.named[entry.name] = entry;
        if (entry.from >= 0) module.indirect[module.indirectCount++] = entry;
      }
    }
    return module;
  }

  function make(name, kind, source, values, functions) {
    switch (kind) {
      case "js":
      case "ts":
        return fromSource(name, source, kind);
      case "json":
        return fromJson(name, source);
      case "values":
        return fromValues(name, values, functions);
      default:
        throw new TypeError("the host gave a module of an unknown kind");
    }
  }

  return {
    __proto__: null, UNLINKED, LINKED, EVALUATING, EVALUATING_ASYNC, EVALUATED, known, quoted, located, place, make,
    // What the other files add.
    link: undefined, namespace: undefined, snapshot: undefined, react: undefined, instantiate: undefined,
    evaluate: undefined, dynamicImport: undefined,
  };
})
