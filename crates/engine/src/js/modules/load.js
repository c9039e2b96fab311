// Loading: asks the host for what modules need, and begins evaluations. `ask` is native, and calls one of its last two
// arguments with the host's answer, at once or later.
(function (builtins, natives, kit) {
  "use strict";

  const { list, keys, guard, Promise, Error, TypeError } = builtins;
  const { ask, owner } = natives;
  const { UNLINKED, known, quoted, place, make } = kit;

  // How many questions one graph has in flight; the host bounds how many an evaluation may have.
  const MAX_IN_FLIGHT = 8;

  // Questions in flight, by who asks what: a request cannot count on the answers to another one's.
  const inFlight = { __proto__: null };

  const PLEASE =
    "the host can add it with add_static_module, or give modules with set_module_resolver and set_module_loader";

  function failure(specifier, referrer, reason) {
    return `cannot import ${quoted(specifier)} from ${quoted(referrer)}: ${reason}`;
  }

  // Gets the module that a specifier means to a referrer.
  function fetch(referrer, specifier, type, done, failed) {
    const key = `${owner()} ${type === null ? "" : `${type.length} ${type}`} ${referrer.length} ${referrer} ${specifier}`;
    const others = inFlight[key];
    if (others !== undefined) {
      others[others.length] = { __proto__: null, done, failed };
      return;
    }
    const waiters = (inFlight[key] = list());
    waiters[0] = { __proto__: null, done, failed };
    const end = (module, error) => {
      if (inFlight[key] === waiters) delete inFlight[key];
      for (let i = 0; i < waiters.length; i++) {
        if (module !== null) waiters[i].done(module);
        else waiters[i].failed(error);
      }
    };
    question(referrer, specifier, type, false, (module) => end(module, undefined), (error) => end(null, error));
  }

  function question(referrer, specifier, type, again, done, failed) {
    const answered = (answer) => {
      let module;
      try {
        module = accept(answer, referrer, specifier, type);
      } catch (thrown) {
        failed(thrown);
        return;
      }
      if (module !== undefined) done(module);
      else if (again) failed(new TypeError(failure(specifier, referrer, "the host gave no source")));
      else question(referrer, specifier, type, true, done, failed);
    };
    const refused = (reason) => {
      failed(new Error(failure(specifier, referrer, "the host failed"), { __proto__: null, cause: reason }));
    };
    ask(specifier, referrer, type, again, guard(answered), guard(refused));
  }

  // The module of an answer, or `undefined` where its source has to be asked for.
  function accept(answer, referrer, specifier, type) {
    if (answer === undefined) throw new TypeError(failure(specifier, referrer, `this runtime has no modules; ${PLEASE}`));
    const refusal = answer[0], name = answer[1], kind = answer[2];
    if (refusal !== null) throw new TypeError(failure(specifier, referrer, refusal));
    let module = known[name];
    if (module === undefined) {
      if (kind === null) return undefined;
      // What it is has to be right before anything is made of it.
      checkType(kind, name, type, referrer, specifier);
      module = make(name, kind, answer[3], answer[4], answer[5]);
      known[name] = module;
    } else {
      checkType(module.kind, name, type, referrer, specifier);
    }
    return module;
  }

  function checkType(kind, name, type, referrer, specifier) {
    if (type !== null && type !== "json") {
      throw new TypeError(failure(specifier, referrer, `the module type ${quoted(type)} is not supported`));
    }
    if (kind === "json" && type === null) {
      throw new TypeError(failure(specifier, referrer, `${quoted(name)} is JSON; import it with { type: "json" }`));
    }
    if (kind !== "json" && type === "json") {
      throw new TypeError(failure(specifier, referrer, `${quoted(name)} is not JSON`));
    }
  }

  // Loads what a module needs, and what that needs, and so on.
  function loadGraph(root, done, failed) {
    const seen = { __proto__: null };
    const importers = list();
    const places = list();
    let queued = 0;
    let taken = 0;
    let flying = 0;
    let isPumping = false;
    let hasEnded = false;

    function visit(module) {
      if (module.status !== UNLINKED || seen[module.index] === true) return;
      seen[module.index] = true;
      for (let i = 0; i < module.requestCount; i++) {
        importers[queued] = module;
        places[queued++] = i;
      }
    }

    function pump() {
      if (isPumping || hasEnded) return;
      isPumping = true;
      while (taken < queued && flying < MAX_IN_FLIGHT && !hasEnded) {
        const importer = importers[taken];
        const index = places[taken];
        taken++;
        if (importer.loaded[index] !== undefined) visit(importer.loaded[index]);
        else load(importer, index);
      }
      isPumping = false;
      if (!hasEnded && flying === 0 && taken === queued) {
        hasEnded = true;
        done();
      }
    }

    function load(importer, index) {
      const { specifier, type, line, column } = importer.requests[index];
      flying++;
      const arrived = (module) => {
        flying--;
        importer.loaded[index] = module;
        visit(module);
        pump();
      };
      const lost = (error) => {
        flying--;
        if (hasEnded) return;
        hasEnded = true;
        failed(place(error, "", importer.name, line, column));
      };
      fetch(importer.name, specifier, type, arrived, lost);
    }

    visit(root);
    pump();
  }

  function capability() {
    const made = { __proto__: null, promise: undefined, resolve: undefined, reject: undefined };
    made.promise = new Promise((resolve, reject) => {
      made.resolve = resolve;
      made.reject = reject;
    });
    return made;
  }

  // Calls a function when the guest code that runs now has returned.
  function later(body) {
    const { promise, resolve } = capability();
    resolve();
    kit.react(promise, body, body);
  }

  function linkAndEvaluate(module, done, failed) {
    let starting;
    try {
      starting = kit.link(module);
    } catch (thrown) {
      failed(thrown);
      return;
    }
    let left = starting.length;
    const started = () => {
      if (--left === 0) kit.evaluate(module, done, failed);
    };
    if (left === 0) kit.evaluate(module, done, failed);
    for (let i = 0; i < starting.length; i++) kit.react(starting[i], started, started);
  }

  // The value of the attribute `type`. What it reads is the guest's own, as the language has it.
  function typeIn(options) {
    if (options === undefined) return null;
    if (typeof options !== "object" && typeof options !== "function" || options === null) {
      throw new TypeError("the second argument of import() must be an object");
    }
    const attributes = options.with;
    if (attributes === undefined) return null;
    if (typeof attributes !== "object" && typeof attributes !== "function" || attributes === null) {
      throw new TypeError("the option `with` of import() must be an object");
    }
    const names = keys(attributes);
    let type = null;
    for (let i = 0; i < names.length; i++) {
      const value = attributes[names[i]];
      if (typeof value !== "string") throw new TypeError("the value of an import attribute must be a string");
      if (names[i] !== "type") throw new TypeError(`the import attribute ${quoted(names[i])} is not supported`);
      type = value;
    }
    return type;
  }

  // `import()` of a module, or of a script by its name.
  function dynamicImport(referrer, given, options) {
    const { promise, resolve, reject } = capability();
    // Its stack leads to whoever imports, also when the answer comes later.
    const here = new Error();
    const lost = (error) => reject(place(error, here.stack, "", 0, 0));
    try {
      const specifier = `${given}`;
      const type = typeIn(options);
      const isModule = typeof referrer !== "string";
      const key = `${type} ${specifier}`;
      const found = (module) => {
        if (isModule) referrer.dynamic[key] = module;
        const evaluated = () => resolve(kit.namespace(module));
        loadGraph(module, () => later(() => linkAndEvaluate(module, evaluated, reject)), reject);
      };
      if (isModule && referrer.dynamic[key] !== undefined) found(referrer.dynamic[key]);
      else fetch(isModule ? referrer.name : referrer, specifier, type, found, lost);
    } catch (thrown) {
      reject(thrown);
    }
    return promise;
  }

  // What `import()` of a script calls.
  function importer(referrer) {
    return (specifier, options) => dynamicImport(referrer, specifier, options);
  }

  // Evaluates a source as a module of this name. The promise is fulfilled with a record that has its exports.
  function evaluateModule(name, source, kind) {
    const { promise, resolve, reject } = capability();
    try {
      const module = make(name, kind, source);
      known[name] = module;
      const ready = () => linkAndEvaluate(module, finished, reject);
      const finished = () => {
        try {
          resolve({ __proto__: null, value: kit.snapshot(kit.namespace(module)) });
        } catch (thrown) {
          reject(thrown);
        }
      };
      loadGraph(module, ready, reject);
    } catch (thrown) {
      reject(thrown);
    }
    return promise;
  }

  kit.dynamicImport = dynamicImport;
  builtins.hooks.snapshot = kit.snapshot;
  return { __proto__: null, importer: guard(importer), evaluateModule: guard(evaluateModule) };
})
