// Events and abort signals, by the DOM standard, for objects that have no parents.
(function (web) {
  "use strict";

  const { natives, need, clocks, makeInterface, remember, required } = web;
  const { apply, list, defineProperty, TypeError } = web.builtins;

  const NONE = 0, AT_TARGET = 2;
  const KEY = {};
  const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";

  class Event {
    #type;
    #bubbles;
    #cancelable;
    #composed;
    #target = null;
    #phase = NONE;
    #isStopped = false;
    #isStoppedNow = false;
    #isPassive = false;
    #isCancelled = false;
    #isDispatched = false;
    #time = clocks.now() - clocks.clock.origin;

    constructor(...values) {
      required(1, values, "Event");
      const options = values[1] ?? {};
      this.#type = `${values[0]}`;
      this.#bubbles = !!options.bubbles;
      this.#cancelable = !!options.cancelable;
      this.#composed = !!options.composed;
      remember(this);
    }
    get type() { return this.#type; }
    get bubbles() { return this.#bubbles; }
    get cancelable() { return this.#cancelable; }
    get composed() { return this.#composed; }
    get target() { return this.#target; }
    get srcElement() { return this.#target; }
    get currentTarget() { return this.#isDispatched ? this.#target : null; }
    get eventPhase() { return this.#phase; }
    get timeStamp() { return this.#time; }
    get isTrusted() { return this.#type === null; }
    get defaultPrevented() { return this.#isCancelled; }
    get returnValue() { return !this.#isCancelled; }
    set returnValue(value) { if (!value) this.preventDefault(); }
    get cancelBubble() { return this.#isStopped; }
    set cancelBubble(value) { if (value) this.#isStopped = true; }
    preventDefault() { if (this.#cancelable && !this.#isPassive) this.#isCancelled = true; }
    stopPropagation() { this.#isStopped = true; }
    stopImmediatePropagation() { this.#isStopped = this.#isStoppedNow = true; }
    composedPath() { return this.#isDispatched ? [this.#target] : []; }
    initEvent(type, bubbles = false, cancelable = false) {
      if (this.#isDispatched) return;
      this.#type = `${type}`;
      this.#bubbles = !!bubbles;
      this.#cancelable = !!cancelable;
      this.#isCancelled = this.#isStopped = this.#isStoppedNow = false;
    }
    static begin(event, target) {
      if (event.#isDispatched) throw need("dom_exception").make("The event is being dispatched.", "InvalidStateError");
      event.#isDispatched = true;
      event.#target = target;
      event.#phase = AT_TARGET;
    }
    static end(event) {
      event.#isDispatched = event.#isStopped = event.#isStoppedNow = false;
      event.#phase = NONE;
      return !event.#isCancelled;
    }
    static setPassive(event, isPassive) { event.#isPassive = isPassive; }
    static isStoppedNow(event) { return event.#isStoppedNow; }
    static is(value) { return isObject(value) && #type in value; }
  }
  const { begin, end, setPassive, isStoppedNow, is: isEvent } = Event;
  for (const name of ["begin", "end", "setPassive", "isStoppedNow", "is"]) delete Event[name];
  const ShownEvent = makeInterface("Event", 1, Event);
  const phases = { __proto__: null, NONE: 0, CAPTURING_PHASE: 1, AT_TARGET: 2, BUBBLING_PHASE: 3 };
  for (const name in phases) {
    const descriptor = { __proto__: null, value: phases[name], writable: false, enumerable: true, configurable: false };
    defineProperty(ShownEvent, name, descriptor);
    defineProperty(Event.prototype, name, descriptor);
  }

  class CustomEvent extends Event {
    #detail;
    constructor(...values) {
      required(1, values, "CustomEvent");
      super(values[0], values[1]);
      this.#detail = values[1]?.detail ?? null;
    }
    get detail() { return this.#detail; }
    initCustomEvent(type, bubbles = false, cancelable = false, detail = null) {
      this.initEvent(type, bubbles, cancelable);
      this.#detail = detail;
    }
  }
  const ShownCustomEvent = makeInterface("CustomEvent", 1, CustomEvent, ShownEvent);

  class EventTarget {
    // In the order added. A dispatch goes through the list as it was, and skips what was removed meanwhile.
    #listeners = list();
    constructor() {
      remember(this);
    }
    addEventListener(type, callback, options = undefined) {
      const listeners = this.#listeners;
      const isRecord = isObject(options);
      const capture = isRecord ? !!options.capture : !!options;
      const once = isRecord ? !!options.once : false;
      const passive = isRecord ? !!options.passive : false;
      const signal = isRecord ? options.signal : undefined;
      if (signal !== undefined && !isSignal(signal)) throw new TypeError("signal is not an AbortSignal");
      if (signal !== undefined && signal.aborted) return;
      if (callback === null || callback === undefined) return;
      if (!isObject(callback)) throw new TypeError("a listener is a function or an object with handleEvent");
      const name = `${type}`;
      for (let i = 0; i < listeners.length; i++) {
        const other = listeners[i];
        if (other.type === name && other.callback === callback && other.capture === capture) return;
      }
      const listener = { __proto__: null, type: name, callback, capture, once, passive, isRemoved: false };
      listeners[listeners.length] = listener;
      if (signal !== undefined) whenAborted(signal, () => this.removeEventListener(name, callback, capture));
    }
    removeEventListener(type, callback, options = undefined) {
      const capture = isObject(options) ? !!options.capture : !!options;
      const name = `${type}`;
      const kept = list();
      const listeners = this.#listeners;
      for (let i = 0; i < listeners.length; i++) {
        const listener = listeners[i];
        if (listener.type === name && listener.callback === callback && listener.capture === capture) {
          listener.isRemoved = true;
        } else {
          kept[kept.length] = listener;
        }
      }
      this.#listeners = kept;
    }
    dispatchEvent(event) {
      this.#listeners;
      if (!isEvent(event)) throw new TypeError("dispatchEvent needs an Event");
      return dispatch(this, event);
    }
    static dispatch(target, event) {
      const listeners = list();
      for (let i = 0; i < target.#listeners.length; i++) listeners[i] = target.#listeners[i];
      begin(event, target);
      // At the target those that capture come first.
      for (let round = 0; round < 2; round++) {
        for (let i = 0; i < listeners.length && !isStoppedNow(event); i++) {
          const listener = listeners[i];
          if (listener.type !== event.type || listener.isRemoved || listener.capture !== (round === 0)) continue;
          if (listener.once) target.removeEventListener(listener.type, listener.callback, listener.capture);
          setPassive(event, listener.passive);
          tell(listener.callback, target, event);
          setPassive(event, false);
        }
      }
      return end(event);
    }
  }
  const { dispatch } = EventTarget;
  delete EventTarget.dispatch;

  function tell(callback, target, event) {
    const values = list();
    values[0] = event;
    try {
      if (typeof callback === "function") {
        apply(callback, target, values);
        return;
      }
      const { handleEvent } = callback;
      if (typeof handleEvent !== "function") throw new TypeError("handleEvent is no function");
      apply(handleEvent, callback, values);
    } catch (thrown) {
      natives.report(thrown);
    }
  }

  class AbortSignal extends EventTarget {
    #isAborted = false;
    #reason = undefined;
    #onabort = null;
    // What is done before any listener hears of it, and signals that follow this one.
    #algorithms = list();
    constructor(key) {
      if (key !== KEY) throw new TypeError("Illegal constructor");
      super();
    }
    get aborted() { return this.#isAborted; }
    get reason() { return this.#reason; }
    get onabort() { return this.#onabort; }
    set onabort(handler) {
      this.#isAborted;
      if (this.#onabort !== null) this.removeEventListener("abort", onAbort);
      this.#onabort = isObject(handler) ? handler : null;
      if (this.#onabort !== null) this.addEventListener("abort", onAbort);
    }
    throwIfAborted() {
      if (this.#isAborted) throw this.#reason;
    }
    static abort(reason = undefined) {
      const signal = new AbortSignal(KEY);
      signal.#reason = reason === undefined ? abortError() : reason;
      signal.#isAborted = true;
      return signal;
    }
    static timeout(milliseconds) {
      const delay = +milliseconds;
      if (!(delay >= 0 && delay <= 9007199254740991)) throw new TypeError("the time of a timeout is a number, 0 or more");
      const signal = new AbortSignal(KEY);
      const whenDue = () => signalAbort(signal, need("dom_exception").make("The time is up.", "TimeoutError"));
      natives.setTimer(whenDue, delay, web.NO_ARGUMENTS, false);
      return signal;
    }
    static any(signals) {
      const all = [...signals];
      for (let i = 0; i < all.length; i++) {
        if (!isSignal(all[i])) throw new TypeError("any needs AbortSignals");
      }
      const result = new AbortSignal(KEY);
      for (let i = 0; i < all.length; i++) {
        if (all[i].#isAborted) {
          result.#reason = all[i].#reason;
          result.#isAborted = true;
          return result;
        }
      }
      for (let i = 0; i < all.length; i++) whenAborted(all[i], () => signalAbort(result, all[i].#reason));
      return result;
    }
    static isSignal(value) { return isObject(value) && #isAborted in value; }
    static whenAborted(signal, algorithm) {
      signal.#algorithms[signal.#algorithms.length] = algorithm;
    }
    static signalAbort(signal, reason) {
      if (signal.#isAborted) return;
      signal.#isAborted = true;
      signal.#reason = reason === undefined ? abortError() : reason;
      const algorithms = signal.#algorithms;
      signal.#algorithms = list();
      for (let i = 0; i < algorithms.length; i++) algorithms[i]();
      dispatch(signal, new Event("abort"));
    }
    static handlerOf(signal) { return signal.#onabort; }
  }
  const { isSignal, whenAborted, signalAbort, handlerOf } = AbortSignal;
  for (const name of ["isSignal", "whenAborted", "signalAbort", "handlerOf"]) delete AbortSignal[name];

  const abortError = () => need("dom_exception").make("This operation was aborted.", "AbortError");

  function onAbort(event) {
    const handler = handlerOf(this);
    if (typeof handler !== "function") return;
    const values = list();
    values[0] = event;
    apply(handler, this, values);
  }

  class AbortController {
    #signal = new AbortSignal(KEY);
    constructor() {
      remember(this);
    }
    get signal() { return this.#signal; }
    abort(reason = undefined) { signalAbort(this.#signal, reason); }
  }

  const ShownEventTarget = makeInterface("EventTarget", 0, EventTarget);
  return {
    __proto__: null,
    Event: ShownEvent,
    CustomEvent: ShownCustomEvent,
    EventTarget: ShownEventTarget,
    AbortSignal: makeInterface("AbortSignal", 0, AbortSignal, ShownEventTarget),
    AbortController: makeInterface("AbortController", 0, AbortController),
  };
})
