// Blob and FileReader, which GLTFExporter puts its buffers together with, no more than it uses of them.
globalThis.Blob ??= class Blob {
  constructor(parts) {
    const arrays = parts.map((part) =>
      ArrayBuffer.isView(part) ? new Uint8Array(part.buffer, part.byteOffset, part.byteLength) : new Uint8Array(part.bytes ?? part),
    );
    this.bytes = new Uint8Array(arrays.reduce((size, array) => size + array.length, 0));
    let at = 0;
    for (const array of arrays) {
      this.bytes.set(array, at);
      at += array.length;
    }
    this.size = at;
  }
};

globalThis.FileReader ??= class FileReader {
  readAsArrayBuffer(blob) {
    this.result = blob.bytes.slice().buffer;
    queueMicrotask(() => this.onloadend());
  }
};
