// `TextEncoder` and `TextDecoder`, by the Encoding standard.
(function (web) {
  "use strict";

  const { natives, makeInterface, remember, slice, bufferSlice, builtins, NO_ARGUMENTS } = web;
  const { apply, list, Bytes, isView, TypeError, RangeError, setTypedArray } = builtins;
  const { arrayBuffer, arrayOffset, arrayLength, viewBuffer, viewOffset, viewLength, bufferLength } = builtins;
  const { typedArrayTag } = web;

  const get = (getter, object) => apply(getter, object, NO_ARGUMENTS);

  class TextEncoder {
    #isEncoder = true;
    constructor() {
      remember(this);
    }
    get encoding() {
      this.#isEncoder;
      return "utf-8";
    }
    encode(text = "") {
      this.#isEncoder;
      return new Bytes(natives.encode(`${text}`));
    }
    encodeInto(text, target) {
      this.#isEncoder;
      if (!isObject(target) || get(typedArrayTag, target) !== "Uint8Array") {
        throw new TypeError("encodeInto needs a Uint8Array to write to");
      }
      const room = get(arrayLength, target);
      const arguments2 = list();
      arguments2[0] = 0;
      arguments2[1] = room;
      // A code unit takes at least a byte.
      const beginning = apply(slice, `${text}`, arguments2);
      const bytes = natives.encode(beginning);
      const arguments1 = list();
      if (bytes.length <= room) {
        arguments1[0] = bytes;
        apply(setTypedArray, target, arguments1);
        return { read: beginning.length, written: bytes.length };
      }
      let written = room;
      while (written > 0 && (bytes[written] & 0xc0) === 0x80) written--;
      let read = 0;
      for (let i = 0; i < written; i++) {
        const byte = bytes[i];
        target[i] = byte;
        if ((byte & 0xc0) !== 0x80) read += byte >= 0xf0 ? 2 : 1;
      }
      return { read, written };
    }
  }

  const isObject = (value) => typeof value === "object" && value !== null;

  // A copy of what a view or a buffer has, in an array that nobody else holds.
  function copy(source) {
    if (source === undefined) return new Bytes(0);
    if (isView(source)) {
      const isArray = get(typedArrayTag, source) !== undefined;
      const buffer = get(isArray ? arrayBuffer : viewBuffer, source);
      const offset = get(isArray ? arrayOffset : viewOffset, source);
      return new Bytes(new Bytes(buffer, offset, get(isArray ? arrayLength : viewLength, source)));
    }
    if (isObject(source)) {
      let isBuffer = true;
      try {
        get(bufferLength, source);
      } catch {
        isBuffer = false;
      }
      if (isBuffer) return new Bytes(apply(bufferSlice, source, NO_ARGUMENTS));
    }
    throw new TypeError("decode needs an ArrayBuffer or a view of one");
  }

  function joined(first, second) {
    if (first === undefined || first.length === 0) return second;
    const bytes = new Bytes(first.length + second.length);
    const place = list();
    place[0] = first;
    apply(setTypedArray, bytes, place);
    place[0] = second;
    place[1] = first.length;
    apply(setTypedArray, bytes, place);
    return bytes;
  }

  const BOM = 0xfeff;

  class TextDecoder {
    #encoding;
    #isFatal;
    #ignoresBom;
    // Of a stream: bytes that were not decoded yet; whether anything was, so that a byte order mark may not follow; and for
    // an encoding whose decoder keeps more than a few bytes, all of it and how much of its text was given already.
    #kept = undefined;
    #hasBegun = false;
    #given = 0;

    constructor(label = "utf-8", options = undefined) {
      const name = natives.encodingOf(`${label}`);
      if (name === undefined) throw new RangeError(`there is no encoding ${label}`);
      this.#encoding = name;
      this.#isFatal = options?.fatal ? true : false;
      this.#ignoresBom = options?.ignoreBOM ? true : false;
      remember(this);
    }
    get encoding() {
      return this.#encoding;
    }
    get fatal() {
      return this.#isFatal;
    }
    get ignoreBOM() {
      return this.#ignoresBom;
    }
    decode(input = undefined, options = undefined) {
      const isStream = options?.stream ? true : false;
      let bytes = joined(this.#kept, copy(input));
      this.#kept = undefined;
      let given = this.#given;
      let hasBegun = this.#hasBegun;
      this.#given = 0;
      this.#hasBegun = false;
      let isWhole = true;
      if (isStream) {
        const incomplete = natives.incomplete(this.#encoding, bytes);
        if (incomplete === undefined) {
          isWhole = false;
          this.#kept = bytes;
        } else if (incomplete > 0) {
          const complete = bytes.length - incomplete;
          this.#kept = new Bytes(incomplete);
          for (let i = 0; i < incomplete; i++) this.#kept[i] = bytes[complete + i];
          const rest = new Bytes(complete);
          for (let i = 0; i < complete; i++) rest[i] = bytes[i];
          bytes = rest;
        }
      }
      let text = natives.decode(this.#encoding, bytes, this.#isFatal, isWhole);
      if (text === undefined) {
        this.#kept = undefined;
        throw new TypeError(`the bytes are not ${this.#encoding}`);
      }
      const length = text.length;
      if (given > 0) text = cut(text, given);
      const isUnicode = this.#encoding === "utf-8" || this.#encoding === "utf-16le" || this.#encoding === "utf-16be";
      if (isUnicode && !hasBegun && length > 0) {
        hasBegun = true;
        if (!this.#ignoresBom && code(text) === BOM) text = cut(text, 1);
      }
      if (isStream) {
        this.#hasBegun = hasBegun;
        if (!isWhole) this.#given = length;
      }
      return text;
    }
  }

  const FIRST = list();
  FIRST[0] = 0;
  const code = (text) => apply(web.charCodeAt, text, FIRST);

  function cut(text, count) {
    const arguments1 = list();
    arguments1[0] = count;
    return apply(slice, text, arguments1);
  }

  return {
    __proto__: null,
    copy,
    TextEncoder: makeInterface("TextEncoder", 0, TextEncoder),
    TextDecoder: makeInterface("TextDecoder", 0, TextDecoder),
  };
})
