// `Blob`, `File` and `FileReader`, by the File API: bytes in memory, and nothing of any file.
(function (web) {
  "use strict";

  const { natives, need, clocks, makeInterface, remember, required, bufferSlice, charCodeAt, iterator, builtins } = web;
  const { apply, list, Bytes, setTypedArray, isView, bufferLength, arrayBuffer, TypeError, defineProperty } = builtins;
  const { copy } = need("encoding");
  const { EventTarget, Event } = need("events");

  const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";

  function isBuffer(value) {
    if (!isObject(value)) return false;
    if (isView(value)) return true;
    try {
      apply(bufferLength, value, web.NO_ARGUMENTS);
      return true;
    } catch {
      return false;
    }
  }

  // A type in lower case, or none where it has characters that no type has.
  function typeOf(text) {
    for (let i = 0; i < text.length; i++) {
      const at = list();
      at[0] = i;
      const code = apply(charCodeAt, text, at);
      if (code < 0x20 || code > 0x7e) return "";
    }
    return apply(web.toLowerCase, text, web.NO_ARGUMENTS);
  }

  const relative = (value, length, otherwise) => {
    if (value === undefined) return otherwise;
    const number = web.trunc(+value) || 0;
    if (number < 0) return number + length < 0 ? 0 : number + length;
    return number > length ? length : number;
  };

  class Blob {
    #bytes;
    #type;
    constructor(parts = [], options = undefined) {
      if (!isObject(parts) || typeof parts[iterator] !== "function") throw new TypeError("the parts are a list");
      const pieces = list();
      let length = 0;
      for (const part of parts) {
        const piece = isBlob(part) ? part.#bytes : isBuffer(part) ? copy(part) : new Bytes(natives.encode(`${part}`));
        pieces[pieces.length] = piece;
        length += piece.length;
      }
      this.#bytes = new Bytes(length);
      const place = list();
      place[1] = 0;
      for (let i = 0; i < pieces.length; i++) {
        place[0] = pieces[i];
        apply(setTypedArray, this.#bytes, place);
        place[1] += pieces[i].length;
      }
      const type = options?.type;
      this.#type = type === undefined ? "" : typeOf(`${type}`);
      remember(this);
    }
    get size() { return this.#bytes.length; }
    get type() { return this.#type; }
    slice(start = undefined, end = undefined, type = undefined) {
      const length = this.#bytes.length;
      const from = relative(start, length, 0);
      const to = relative(end, length, length);
      const part = new Bytes(apply(arrayBuffer, this.#bytes, web.NO_ARGUMENTS), from, to > from ? to - from : 0);
      return new Blob([part], { __proto__: null, type });
    }
    async arrayBuffer() { return bufferOf(this.#bytes); }
    async bytes() { return new Bytes(this.#bytes); }
    async text() { return natives.decode("utf-8", this.#bytes, false, true); }
    static is(value) { return isObject(value) && #bytes in value; }
    static bytesOf(blob) { return blob.#bytes; }
  }
  const { is: isBlob, bytesOf } = Blob;
  for (const name of ["is", "bytesOf"]) delete Blob[name];

  const bufferOf = (bytes) => apply(bufferSlice, apply(arrayBuffer, bytes, web.NO_ARGUMENTS), [0, bytes.length]);

  class File extends Blob {
    #name;
    #lastModified;
    constructor(...values) {
      required(2, values, "File");
      super(values[0], values[2]);
      this.#name = `${values[1]}`;
      const changed = values[2]?.lastModified;
      this.#lastModified = changed === undefined ? clocks.now() : web.trunc(+changed) || 0;
    }
    get name() { return this.#name; }
    get lastModified() { return this.#lastModified; }
  }

  const EMPTY = 0, LOADING = 1, DONE = 2;
  const EVENTS = ["loadstart", "progress", "load", "abort", "error", "loadend"];

  class FileReader extends EventTarget {
    #state = EMPTY;
    #result = null;
    #reading = 0;
    #handlers = { __proto__: null };
    get readyState() { return this.#state; }
    get result() { return this.#result; }
    get error() { return this.#state === undefined ? undefined : null; }
    readAsArrayBuffer(blob) { this.#read(blob, bufferOf); }
    readAsText(blob, label = "utf-8") {
      const name = natives.encodingOf(`${label}`) ?? "utf-8";
      this.#read(blob, (bytes) => natives.decode(name, bytes, false, true));
    }
    readAsBinaryString(blob) { this.#read(blob, natives.binary); }
    readAsDataURL(blob) {
      this.#read(blob, (bytes) => `data:${blob.type || "application/octet-stream"};base64,${natives.btoa(natives.binary(bytes))}`);
    }
    abort() {
      if (this.#state !== LOADING) return;
      this.#reading++;
      this.#state = DONE;
      this.#result = null;
      this.dispatchEvent(new Event("abort"));
      this.dispatchEvent(new Event("loadend"));
    }
    #read(blob, convert) {
      if (!isBlob(blob)) throw new TypeError("a FileReader reads a Blob");
      if (this.#state === LOADING) throw need("dom_exception").make("It is reading already.", "InvalidStateError");
      this.#state = LOADING;
      this.#result = null;
      const reading = ++this.#reading;
      // Of a time of its own, as tasks are.
      const isCurrent = () => this.#reading === reading && this.#state === LOADING;
      natives.setTimer(() => {
        if (!isCurrent()) return;
        this.dispatchEvent(new Event("loadstart"));
        if (!isCurrent()) return;
        this.#result = convert(bytesOf(blob));
        this.#state = DONE;
        this.dispatchEvent(new Event("load"));
        if (this.#reading === reading) this.dispatchEvent(new Event("loadend"));
      }, 0, web.NO_ARGUMENTS, false);
    }
    static handler(reader, name) { return reader.#handlers[name] ?? null; }
    static setHandler(reader, name, listener, value) {
      if (reader.#handlers[name] !== undefined) reader.removeEventListener(name, listener);
      reader.#handlers[name] = isObject(value) ? value : undefined;
      if (isObject(value)) reader.addEventListener(name, listener);
    }
  }
  const { handler, setHandler } = FileReader;
  for (const name of ["handler", "setHandler"]) delete FileReader[name];
  for (const name of EVENTS) {
    const listener = function (event) {
      const found = handler(this, name);
      if (typeof found === "function") apply(found, this, [event]);
    };
    const accessors = {
      get event() { return handler(this, name); },
      set event(value) { setHandler(this, name, listener, value); },
    };
    defineProperty(FileReader.prototype, `on${name}`, builtins.getOwnPropertyDescriptor(accessors, "event"));
  }

  const ShownBlob = makeInterface("Blob", 0, Blob);
  return {
    __proto__: null,
    Blob: ShownBlob,
    File: makeInterface("File", 2, File, ShownBlob),
    FileReader: makeInterface("FileReader", 0, FileReader, EventTarget),
  };
})
