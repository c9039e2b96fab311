// `URL` and `URLSearchParams`, by the URL standard. Parsing and serialising are the host's.
(function (web) {
  "use strict";

  const { natives, makeInterface, remember, required, indexOf, slice, sort, iterator, builtins } = web;
  const { apply, list, TypeError, defineProperty, ownKeys, getOwnPropertyDescriptor } = builtins;

  const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";

  const HREF = 0, ORIGIN = 1, PROTOCOL = 2, USERNAME = 3, PASSWORD = 4, HOST = 5, HOSTNAME = 6, PORT = 7, PATHNAME = 8;
  const SEARCH = 9, HASH = 10, PARTS = 11;

  // The parts, which the host gives each on a line.
  function split(text) {
    const parts = list();
    const bounds = list();
    let start = 0;
    for (let i = 0; i < PARTS; i++) {
      bounds[0] = "\n";
      bounds[1] = start;
      const end = i === PARTS - 1 ? text.length : apply(indexOf, text, bounds);
      bounds[0] = start;
      bounds[1] = end;
      parts[i] = apply(slice, text, bounds);
      start = end + 1;
    }
    return parts;
  }

  function parse(url, base) {
    const text = natives.parseUrl(`${url}`, base === undefined ? undefined : `${base}`);
    return text === undefined ? undefined : split(text);
  }

  class URL {
    #parts;
    #query = undefined;
    constructor(...values) {
      required(1, values, "URL");
      const parts = parse(values[0], values[1]);
      if (parts === undefined) throw invalid(values[0]);
      this.#parts = parts;
      remember(this);
    }
    #set(part, value) {
      const text = natives.setUrl(this.#parts[HREF], part, `${value}`);
      if (text === undefined) return;
      this.#parts = split(text);
      if (part === "search") this.#tellQuery();
    }
    #tellQuery() {
      if (this.#query !== undefined) update(this.#query, withoutMark(this.#parts[SEARCH]));
    }
    get href() { return this.#parts[HREF]; }
    set href(value) {
      const parts = parse(value, undefined);
      this.#parts;
      if (parts === undefined) throw invalid(value);
      this.#parts = parts;
      this.#tellQuery();
    }
    get origin() { return this.#parts[ORIGIN]; }
    get protocol() { return this.#parts[PROTOCOL]; }
    set protocol(value) { this.#set("protocol", value); }
    get username() { return this.#parts[USERNAME]; }
    set username(value) { this.#set("username", value); }
    get password() { return this.#parts[PASSWORD]; }
    set password(value) { this.#set("password", value); }
    get host() { return this.#parts[HOST]; }
    set host(value) { this.#set("host", value); }
    get hostname() { return this.#parts[HOSTNAME]; }
    set hostname(value) { this.#set("hostname", value); }
    get port() { return this.#parts[PORT]; }
    set port(value) { this.#set("port", value); }
    get pathname() { return this.#parts[PATHNAME]; }
    set pathname(value) { this.#set("pathname", value); }
    get search() { return this.#parts[SEARCH]; }
    set search(value) { this.#set("search", value); }
    get searchParams() {
      if (this.#query === undefined) {
        this.#query = new URLSearchParams(withoutMark(this.#parts[SEARCH]));
        follow(this.#query, (text) => {
          const parts = natives.setUrl(this.#parts[HREF], "search", text);
          if (parts !== undefined) this.#parts = split(parts);
        });
      }
      return this.#query;
    }
    get hash() { return this.#parts[HASH]; }
    set hash(value) { this.#set("hash", value); }
    toString() { return this.#parts[HREF]; }
    toJSON() { return this.#parts[HREF]; }
    static canParse(...values) {
      required(1, values, "canParse");
      return parse(values[0], values[1]) !== undefined;
    }
    static parse(...values) {
      required(1, values, "parse");
      const parts = parse(values[0], values[1]);
      return parts === undefined ? null : new URL(parts[HREF]);
    }
  }

  function invalid(url) {
    const error = new TypeError("Invalid URL");
    web.hide(error, "code", "ERR_INVALID_URL");
    web.hide(error, "input", `${url}`);
    return error;
  }

  const FIRST = list();
  FIRST[0] = 1;
  const withoutMark = (text) => (text[0] === "?" ? apply(slice, text, FIRST) : text);

  class URLSearchParams {
    // Names and values in turn.
    #pairs = list();
    #tell = undefined;
    constructor(init = "") {
      remember(this);
      if (!isObject(init)) {
        this.#pairs = parseForm(withoutMark(`${init}`));
        return;
      }
      const pairs = this.#pairs;
      const iterate = init[iterator];
      if (iterate !== undefined && iterate !== null) {
        if (typeof iterate !== "function") throw new TypeError("the pairs cannot be iterated");
        for (const pair of { [iterator]: () => apply(iterate, init, web.NO_ARGUMENTS) }) {
          if (!isObject(pair)) throw new TypeError("a pair is a list of a name and a value");
          const both = [...pair];
          if (both.length !== 2) throw new TypeError("a pair is a list of a name and a value");
          add(pairs, scalars(both[0]), scalars(both[1]));
        }
        return;
      }
      const keys = ownKeys(init);
      for (let i = 0; i < keys.length; i++) {
        const descriptor = getOwnPropertyDescriptor(init, keys[i]);
        if (descriptor === undefined || !descriptor.enumerable) continue;
        if (typeof keys[i] === "symbol") throw new TypeError("a name is a string");
        const name = scalars(keys[i]);
        const value = scalars(init[keys[i]]);
        // Names that are the same once they are well-formed count once.
        const at = find(pairs, name, 0);
        if (at < 0) add(pairs, name, value);
        else pairs[at + 1] = value;
      }
    }
    #changed() {
      if (this.#tell !== undefined) this.#tell(this.toString());
    }
    get size() { return this.#pairs.length / 2; }
    append(...values) {
      this.#pairs;
      required(2, values, "append");
      add(this.#pairs, scalars(values[0]), scalars(values[1]));
      this.#changed();
    }
    delete(...values) {
      this.#pairs;
      required(1, values, "delete");
      const name = scalars(values[0]);
      const value = values[1] === undefined ? undefined : scalars(values[1]);
      const kept = list();
      const pairs = this.#pairs;
      for (let i = 0; i < pairs.length; i += 2) {
        if (pairs[i] !== name || (value !== undefined && pairs[i + 1] !== value)) add(kept, pairs[i], pairs[i + 1]);
      }
      this.#pairs = kept;
      this.#changed();
    }
    get(...values) {
      this.#pairs;
      required(1, values, "get");
      const at = find(this.#pairs, scalars(values[0]), 0);
      return at < 0 ? null : this.#pairs[at + 1];
    }
    getAll(...values) {
      this.#pairs;
      required(1, values, "getAll");
      const name = scalars(values[0]);
      const all = [];
      for (let at = find(this.#pairs, name, 0); at >= 0; at = find(this.#pairs, name, at + 2)) {
        define(all, all.length, this.#pairs[at + 1]);
      }
      return all;
    }
    has(...values) {
      this.#pairs;
      required(1, values, "has");
      const name = scalars(values[0]);
      const value = values[1] === undefined ? undefined : scalars(values[1]);
      for (let at = find(this.#pairs, name, 0); at >= 0; at = find(this.#pairs, name, at + 2)) {
        if (value === undefined || this.#pairs[at + 1] === value) return true;
      }
      return false;
    }
    set(...values) {
      this.#pairs;
      required(2, values, "set");
      const name = scalars(values[0]);
      const value = scalars(values[1]);
      const kept = list();
      const pairs = this.#pairs;
      let isSet = false;
      for (let i = 0; i < pairs.length; i += 2) {
        if (pairs[i] !== name) add(kept, pairs[i], pairs[i + 1]);
        else if (!isSet) {
          isSet = true;
          add(kept, name, value);
        }
      }
      if (!isSet) add(kept, name, value);
      this.#pairs = kept;
      this.#changed();
    }
    sort() {
      const pairs = this.#pairs;
      const order = list();
      for (let i = 0; i < pairs.length; i += 2) order[i / 2] = i;
      const by = list();
      by[0] = (a, b) => (pairs[a] < pairs[b] ? -1 : pairs[a] > pairs[b] ? 1 : a - b);
      apply(sort, order, by);
      const sorted = list();
      for (let i = 0; i < order.length; i++) add(sorted, pairs[order[i]], pairs[order[i] + 1]);
      this.#pairs = sorted;
      this.#changed();
    }
    forEach(callback, receiver = undefined) {
      this.#pairs;
      web.callable(callback, "forEach");
      const values = list();
      for (let i = 0; i < this.#pairs.length; i += 2) {
        values[0] = this.#pairs[i + 1];
        values[1] = this.#pairs[i];
        values[2] = this;
        apply(callback, receiver, values);
      }
    }
    toString() {
      const pairs = this.#pairs;
      let text = "";
      for (let i = 0; i < pairs.length; i += 2) {
        text += `${i === 0 ? "" : "&"}${natives.encodeForm(pairs[i])}=${natives.encodeForm(pairs[i + 1])}`;
      }
      return text;
    }
    entries() { this.#pairs; return makeIterator(this, (name, value) => [name, value]); }
    keys() { this.#pairs; return makeIterator(this, (name) => name); }
    values() { this.#pairs; return makeIterator(this, (_, value) => value); }
    static pairsOf(query) { return query.#pairs; }
    static follow(query, tell) { query.#tell = tell; }
    static update(query, text) { query.#pairs = parseForm(text); }
  }
  const { pairsOf, follow, update } = URLSearchParams;
  for (const name of ["pairsOf", "follow", "update"]) delete URLSearchParams[name];

  const scalars = (value) => apply(web.toWellFormed, `${value}`, web.NO_ARGUMENTS);

  function define(array, index, value) {
    defineProperty(array, index, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
  }

  function parseForm(text) {
    const parsed = natives.parseForm(text);
    const pairs = list();
    for (let i = 0; i < parsed.length; i++) pairs[i] = parsed[i];
    return pairs;
  }

  function add(pairs, name, value) {
    pairs[pairs.length] = name;
    pairs[pairs.length] = value;
  }

  function find(pairs, name, from) {
    for (let i = from; i < pairs.length; i += 2) if (pairs[i] === name) return i;
    return -1;
  }

  class Cursor {
    #query;
    #pick;
    #at = 0;
    constructor(query, pick) {
      this.#query = query;
      this.#pick = pick;
    }
    next() {
      const pairs = pairsOf(this.#query);
      if (this.#at >= pairs.length) return { value: undefined, done: true };
      const value = this.#pick(pairs[this.#at], pairs[this.#at + 1]);
      this.#at += 2;
      return { value, done: false };
    }
  }
  builtins.setPrototypeOf(Cursor.prototype, web.IteratorPrototype);
  makeInterface("URLSearchParams Iterator", 0, Cursor);
  delete Cursor.prototype.constructor;

  const makeIterator = (query, pick) => new Cursor(query, pick);

  const Shown = makeInterface("URLSearchParams", 0, URLSearchParams);
  web.hide(URLSearchParams.prototype, iterator, getOwnPropertyDescriptor(URLSearchParams.prototype, "entries").value);
  return { __proto__: null, URL: makeInterface("URL", 1, URL), URLSearchParams: Shown };
})
