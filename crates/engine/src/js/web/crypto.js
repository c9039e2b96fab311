// Random numbers for `crypto`; nothing else of it.
(function (web) {
  "use strict";

  const { natives, need, hide, native, onlyOne, required, typedArrayTag, builtins } = web;
  const { apply, Bytes, arrayBuffer, arrayOffset, arrayLength, setTypedArray } = builtins;
  const MOST = 65536;
  const HEXADECIMAL = "0123456789abcdef";
  const toHex = list256();

  function list256() {
    const texts = builtins.list();
    for (let i = 0; i < 256; i++) texts[i] = HEXADECIMAL[i >> 4] + HEXADECIMAL[i & 15];
    return texts;
  }

  function random(count) {
    const bytes = natives.random(count);
    if (bytes === undefined) throw need("dom_exception").make("The system gives no random numbers.", "OperationError");
    return bytes;
  }

  function getRandomValues(...values) {
    required(1, values, "getRandomValues");
    const array = values[0];
    const kind = typeof array === "object" && array !== null ? tag(array) : undefined;
    if (kind === undefined) throw new builtins.TypeError("getRandomValues needs a typed array");
    if (kind === "Float16Array" || kind === "Float32Array" || kind === "Float64Array") {
      throw need("dom_exception").make("The array is not one of integers.", "TypeMismatchError");
    }
    const length = call(arrayLength, array);
    if (length > MOST) {
      throw need("dom_exception").make(`The array has more than ${MOST} bytes.`, "QuotaExceededError");
    }
    const target = new Bytes(call(arrayBuffer, array), call(arrayOffset, array), length);
    const source = builtins.list();
    source[0] = random(length);
    apply(setTypedArray, target, source);
    return array;
  }

  function call(getter, object) {
    return apply(getter, object, web.NO_ARGUMENTS);
  }

  function tag(object) {
    return call(typedArrayTag, object);
  }

  function randomUUID() {
    const bytes = random(16);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let text = "";
    for (let i = 0; i < 16; i++) {
      if (i === 4 || i === 6 || i === 8 || i === 10) text += "-";
      text += toHex[bytes[i]];
    }
    return text;
  }

  const crypto = onlyOne("Crypto");
  hide(crypto, "getRandomValues", native("getRandomValues", 1, getRandomValues));
  hide(crypto, "randomUUID", native("randomUUID", 0, randomUUID));
  return { __proto__: null, crypto };
})
