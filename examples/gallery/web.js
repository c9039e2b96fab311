// What the libraries expect of a browser and a bare engine does not have, no more than they use. A timer waits for what
// runs now and never longer.
const later = (callback, delay, ...values) => {
  Promise.resolve().then(() => callback(...values));
  return delay;
};

class Utf8Encoder {
  encode(text) {
    const bytes = [];
    for (const character of text) {
      const point = character.codePointAt(0);
      if (point < 0x80) bytes.push(point);
      else if (point < 0x800) bytes.push(0xc0 | (point >> 6), 0x80 | (point & 63));
      else if (point < 0x10000) bytes.push(0xe0 | (point >> 12), 0x80 | ((point >> 6) & 63), 0x80 | (point & 63));
      else bytes.push(0xf0 | (point >> 18), 0x80 | ((point >> 12) & 63), 0x80 | ((point >> 6) & 63), 0x80 | (point & 63));
    }
    return Uint8Array.from(bytes);
  }
}

class BytesBlob {
  constructor(parts) {
    const arrays = parts.map((part) => {
      if (part instanceof BytesBlob) return part.bytes;
      return ArrayBuffer.isView(part)
        ? new Uint8Array(part.buffer, part.byteOffset, part.byteLength)
        : new Uint8Array(part);
    });
    this.bytes = new Uint8Array(arrays.reduce((size, array) => size + array.length, 0));
    let at = 0;
    for (const array of arrays) {
      this.bytes.set(array, at);
      at += array.length;
    }
    this.size = at;
  }
}

class BlobReader {
  readAsArrayBuffer(blob) {
    this.result = blob.bytes.slice().buffer;
    later(() => this.onloadend());
  }
}

const offered = {
  self: globalThis,
  setTimeout: later,
  clearTimeout() {},
  TextEncoder: Utf8Encoder,
  Blob: BytesBlob,
  FileReader: BlobReader,
  console: {log() {}, info() {}, warn() {}, error() {}},
};
for (const [name, value] of Object.entries(offered)) globalThis[name] ??= value;
