// Evaluation, as the language's `InnerModuleEvaluation` and its companions have it, with lists in the place of recursion.
(function (builtins, natives, kit) {
  "use strict";

  const { apply, list, defineProperty, then, sort, generatorNext, asyncGeneratorNext, Error } = builtins;
  const { owner, isAbandoned } = natives;
  const { LINKED, EVALUATING, EVALUATING_ASYNC, EVALUATED, quoted } = kit;

  const NO_ARGUMENTS = list();
  // Of `order`: a module that has waited for others and is done. Larger numbers are those that still do.
  const DONE = -1;

  let lastOrder = 0;
  let lastGathering = 0;
  // What is being evaluated: the modules that are not known to be in a cycle or not.
  let stack = list();
  let stackCount = 0;
  let isRunning = false;

  // Calls a reaction when a promise of the loader's own has settled. `then` looks for the promise's `constructor`, so it
  // gets one without a value, which means the built-in one.
  function react(promise, done, failed) {
    defineProperty(promise, "constructor", { __proto__: null, value: undefined, configurable: true });
    const reactions = list();
    reactions[0] = done;
    reactions[1] = failed;
    apply(then, promise, reactions);
  }

  function instantiate(module) {
    const record = {
      __proto__: null,
      meta: { __proto__: null, url: module.name },
      import: (specifier, options) => kit.dynamicImport(module, specifier, options),
      define: (getters) => (module.getters = getters),
    };
    module.bindings = { __proto__: null };
    const parameters = list();
    parameters[0] = record;
    parameters[1] = module.bindings;
    module.generator = apply(module.run, undefined, parameters);
    return apply(module.asynchronous ? asyncGeneratorNext : generatorNext, module.generator, NO_ARGUMENTS);
  }

  function stopped(module) {
    return new Error(`the evaluation of the module ${quoted(module.name)} was stopped with the one that began it`);
  }

  // What was on the way when the engine stopped the guest, which no `catch` sees.
  function giveUpWhatWasStopped() {
    if (!isRunning) return;
    isRunning = false;
    failAll((module) => stopped(module));
  }

  function failAll(errorOf) {
    for (let i = 0; i < stackCount; i++) {
      const module = stack[i];
      module.status = EVALUATED;
      module.error = { __proto__: null, value: errorOf(module) };
      if (module.cycleRoot === undefined) module.cycleRoot = module;
    }
    stack = list();
    stackCount = 0;
  }

  // Evaluates a linked module and what it needs. One of the callbacks is called, now or later.
  function evaluate(root, done, failed) {
    giveUpWhatWasStopped();
    let module = root;
    if (module.status === EVALUATED || module.status === EVALUATING_ASYNC) module = module.cycleRoot;
    if (module.status === LINKED) {
      isRunning = true;
      try {
        walk(module);
      } catch (thrown) {
        failAll(() => thrown);
      }
      isRunning = false;
    }
    if (module.error !== undefined) failed(module.error.value);
    else if (module.status === EVALUATED) done();
    else if (isAbandoned(module.owner)) failed(stopped(module));
    else module.waiters[module.waiterCount++] = { __proto__: null, done, failed };
  }

  function walk(root) {
    const path = list();
    const places = list();
    let depth = 0;
    let index = 0;
    const enter = (module) => {
      module.status = EVALUATING;
      module.dfsIndex = index;
      module.dfsAncestor = index++;
      stack[stackCount++] = module;
      path[depth] = module;
      places[depth++] = 0;
    };
    enter(root);
    while (depth > 0) {
      const module = path[depth - 1];
      if (places[depth - 1] < module.requestCount) {
        const needed = module.loaded[places[depth - 1]];
        if (needed.status === LINKED) {
          enter(needed);
        } else {
          places[depth - 1]++;
          take(module, needed);
        }
        continue;
      }
      finish(module);
      depth--;
    }
  }

  // What a module that another one needs means to it, once that one was visited.
  function take(module, visited) {
    let needed = visited;
    if (needed.status === EVALUATING) {
      if (needed.dfsAncestor < module.dfsAncestor) module.dfsAncestor = needed.dfsAncestor;
    } else {
      needed = needed.cycleRoot;
      if (needed.error !== undefined) throw needed.error.value;
      if (needed.order > 0 && isAbandoned(needed.owner)) throw stopped(needed);
    }
    if (needed.order > 0) {
      module.pending++;
      needed.parents[needed.parentCount++] = module;
    }
  }

  function finish(module) {
    if (module.pending > 0 || module.asynchronous) {
      module.order = ++lastOrder;
      module.owner = owner();
      if (module.pending === 0) executeAsync(module);
    } else {
      apply(generatorNext, module.generator, NO_ARGUMENTS);
    }
    if (module.dfsAncestor !== module.dfsIndex) return;
    for (;;) {
      const member = stack[--stackCount];
      member.status = member.order === 0 ? EVALUATED : EVALUATING_ASYNC;
      member.cycleRoot = module;
      if (member === module) break;
    }
  }

  function executeAsync(module) {
    const promise = apply(asyncGeneratorNext, module.generator, NO_ARGUMENTS);
    react(promise, () => fulfilled(module), (reason) => rejected(module, reason));
  }

  function settled(module) {
    const { waiters, waiterCount } = module;
    module.waiters = list();
    module.waiterCount = 0;
    for (let i = 0; i < waiterCount; i++) {
      if (module.error === undefined) waiters[i].done();
      else waiters[i].failed(module.error.value);
    }
  }

  function complete(module) {
    module.order = DONE;
    module.status = EVALUATED;
    settled(module);
  }

  function fulfilled(module) {
    if (module.status === EVALUATED) return;
    complete(module);
    const ready = gather(module);
    for (let i = 0; i < ready.length; i++) {
      const next = ready[i];
      if (next.status === EVALUATED) continue;
      if (next.asynchronous) {
        executeAsync(next);
        continue;
      }
      try {
        apply(generatorNext, next.generator, NO_ARGUMENTS);
      } catch (thrown) {
        rejected(next, thrown);
        continue;
      }
      complete(next);
    }
  }

  // What can go on now that a module is done, in the order in which it began to wait.
  function gather(module) {
    const gathering = ++lastGathering;
    const ready = list();
    let count = 0;
    const waiting = list();
    let left = 0;
    waiting[left++] = module;
    while (left > 0) {
      const at = waiting[--left];
      for (let i = 0; i < at.parentCount; i++) {
        const parent = at.parents[i];
        if (parent.gathered === gathering) continue;
        if (parent.cycleRoot !== undefined && parent.cycleRoot.error !== undefined) continue;
        if (--parent.pending > 0) continue;
        parent.gathered = gathering;
        ready[count++] = parent;
        if (!parent.asynchronous) waiting[left++] = parent;
      }
    }
    const order = list();
    order[0] = (a, b) => a.order - b.order;
    return apply(sort, ready, order);
  }

  function rejected(root, reason) {
    const waiting = list();
    let left = 0;
    waiting[left++] = root;
    while (left > 0) {
      const module = waiting[--left];
      if (module.status === EVALUATED) continue;
      module.error = { __proto__: null, value: reason };
      complete(module);
      for (let i = module.parentCount - 1; i >= 0; i--) waiting[left++] = module.parents[i];
    }
  }

  kit.react = react;
  kit.instantiate = instantiate;
  kit.evaluate = evaluate;
  return kit;
})
