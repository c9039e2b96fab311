// A text for any value, the same in both engines: kinds, contents, what is shared, and the names of errors.
function show(value, seen = new Map()) {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint") return value + "n";
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : String(value);
  if (typeof value === "function") return "function " + value.name + "/" + value.length;
  if (typeof value !== "object" || value === null) return String(value);
  if (seen.has(value)) return "#" + seen.get(value);
  seen.set(value, seen.size);
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  const inner = item => show(item, seen);
  const own = () => Object.keys(value).map(key => key + ": " + inner(value[key])).join(", ");
  if (ArrayBuffer.isView(value)) {
    return tag + "@" + value.byteOffset + "[" + (tag === "DataView" ? value.byteLength : [...value]) + "] " + inner(value.buffer);
  }
  if (tag === "ArrayBuffer") return tag + "(" + [...new Uint8Array(value)] + ")" + (value.resizable ? value.maxByteLength : "");
  if (tag === "Map") return "Map{" + [...value].map(([k, v]) => inner(k) + " => " + inner(v)).join(", ") + "}";
  if (tag === "Set") return "Set{" + [...value].map(inner).join(", ") + "}";
  if (tag === "Date") return "Date " + value.getTime();
  if (tag === "RegExp") return "RegExp " + value.source + "/" + value.flags + " at " + value.lastIndex;
  if (tag === "Error" || tag === "DOMException") {
    const proto = Object.getPrototypeOf(value).constructor.name;
    const cause = "cause" in value ? " because " + inner(value.cause) : "";
    return tag + " " + proto + " " + value.name + ": " + value.message + cause + " {" + own() + "}";
  }
  if (tag === "Number" || tag === "String" || tag === "Boolean" || tag === "BigInt") return tag + " " + inner(value.valueOf());
  if (Array.isArray(value)) {
    const parts = [];
    for (let i = 0; i < value.length; i++) parts.push(i in value ? inner(value[i]) : "hole");
    return "[" + parts.join(", ") + "]" + Object.keys(value).filter(key => !(key >>> 0 == key)).map(key => key + inner(value[key]));
  }
  return tag + (Object.getPrototypeOf(value) === Object.prototype ? "" : "?") + " {" + own() + "}";
}
function outcome(source) {
  try {
    return show((0, eval)(source));
  } catch (error) {
    return "throws " + error.name;
  }
}
