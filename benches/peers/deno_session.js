// The other end of deno.py: evaluates what it is sent, and calls back for functions, in lines of JSON.
const encoder = new TextEncoder();
const decoder = new TextDecoder();
const chunk = new Uint8Array(1 << 16);
let rest = [];

function readLine() {
  for (;;) {
    const count = Deno.stdin.readSync(chunk);
    if (count === null) Deno.exit(0);
    const end = chunk.subarray(0, count).indexOf(10);
    if (end < 0) {
      rest.push(chunk.slice(0, count));
      continue;
    }
    // The host waits for an answer before it sends another line, so nothing follows this one.
    rest.push(chunk.slice(0, end));
    const line = new Uint8Array(rest.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of rest) {
      line.set(part, at);
      at += part.length;
    }
    rest = [];
    return JSON.parse(decoder.decode(line));
  }
}

function writeLine(message) {
  const bytes = encoder.encode(JSON.stringify(message) + "\n");
  for (let sent = 0; sent < bytes.length; ) sent += Deno.stdout.writeSync(bytes.subarray(sent));
}

const evaluate = globalThis.eval;

for (;;) {
  const {bind, code} = readLine();
  try {
    if (bind !== undefined) {
      globalThis[bind] = () => {
        writeLine({call: bind});
        return readLine().value;
      };
      writeLine({});
    } else {
      writeLine({value: evaluate(code)});
    }
  } catch (error) {
    writeLine({error: String(error)});
  }
}
