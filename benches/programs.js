// Ten programs, each of another kind of work. Each returns a whole number that says whether it was done right; compare.py
// knows the answers. `var`, so that the name outlives the evaluation in every engine.
var programs = {
  // Recursion: how many ways eight queens stand on a board without seeing each other.
  recursion() {
    const place = (row, columns, left, right) => {
      if (row === 8) return 1;
      let ways = 0;
      for (let free = 255 & ~(columns | left | right); free; free &= free - 1) {
        const bit = free & -free;
        ways += place(row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1);
      }
      return ways;
    };
    let ways = 0;
    for (let i = 0; i < 15; i += 1) ways += place(0, 0, 0, 0);
    return ways;
  },

  // Properties: balls that bounce in a box.
  properties() {
    const balls = Array.from({length: 100}, (_, i) => ({x: i, y: 2 * i, dx: 1 + (i % 7), dy: 1 + (i % 5), hits: 0}));
    for (let step = 0; step < 1500; step += 1) {
      for (const ball of balls) {
        ball.x += ball.dx;
        ball.y += ball.dy;
        if (ball.x < 0 || ball.x > 300) {
          ball.dx = -ball.dx;
          ball.hits += 1;
        }
        if (ball.y < 0 || ball.y > 300) {
          ball.dy = -ball.dy;
          ball.hits += 1;
        }
      }
    }
    return balls.reduce((sum, ball) => sum + ball.hits, 0);
  },

  // Strings: a cipher that moves letters, there and back.
  strings() {
    const move = (text, by) => {
      let moved = "";
      for (let i = 0; i < text.length; i += 1) {
        const code = text.charCodeAt(i);
        moved += code < 97 ? text[i] : String.fromCharCode(97 + ((code - 97 + by) % 26));
      }
      return moved;
    };
    const text = "the quick brown fox jumps over the lazy dog ".repeat(700);
    const there = move(text, 3);
    const back = move(there, 23);
    return back === text ? there.split(" ").map((word) => word.toUpperCase().padStart(9, ".")).join("").length : -1;
  },

  // JSON: a tree to text and back, with a reviver.
  json() {
    const tree = (depth) => ({
      depth,
      label: `node "${depth}"\n`,
      weights: [depth / 3, -depth, null, true],
      children: depth ? [tree(depth - 1), tree(depth - 1)] : [],
    });
    const text = JSON.stringify(tree(10));
    let leaves = 0;
    JSON.parse(text, (key, value) => {
      if (key === "depth" && value === 0) leaves += 1;
      return value;
    });
    return text.length + leaves + JSON.stringify(JSON.parse(text)).length;
  },

  // Sorting: records by a text, then by a number.
  sort() {
    let seed = 42;
    const next = () => (seed = (seed * 16807) % 2147483647);
    const records = Array.from({length: 9000}, () => ({group: "g" + (next() % 50), value: next() % 1000}));
    records.sort((a, b) => (a.group < b.group ? -1 : a.group > b.group ? 1 : a.value - b.value));
    return records.reduce((sum, record, i) => (sum * 31 + record.value + i) % 1000003, 7);
  },

  // Array methods.
  arrays() {
    let total = 0;
    for (let round = 0; round < 12; round += 1) {
      const pairs = Array.from({length: 6000}, (_, i) => i + round)
        .filter((n) => n % 3 !== 0)
        .flatMap((n) => [n, n * n])
        .map((n) => n % 1009);
      total += pairs.slice(100, -100).reverse().reduce((sum, n, i) => sum + (pairs[i] < n ? n : 1), 0);
      total += pairs.findLastIndex((n) => n === 5) + pairs.indexOf(1008) + new Set(pairs).size;
    }
    return total;
  },

  // Regular expressions: lines of a log, taken apart and rewritten.
  regexps() {
    const log = Array.from(
      {length: 4000},
      (_, i) => `2024-03-${String(1 + (i % 28)).padStart(2, "0")} [${["info", "warn", "error"][i % 3]}] user${i}@host${i % 9}.example took ${i * 7}ms`,
    ).join("\n");
    let sum = 0;
    for (const {groups} of log.matchAll(/^(?<year>\d{4})-(\d\d)-(?<day>\d\d) \[(?:warn|error)\] (?<user>\w+)@[\w.]+ took (?<time>\d+)ms$/gm)) {
      sum += Number(groups.time) + Number(groups.day) + groups.user.length;
    }
    return sum + log.replace(/(\w+)@(\w+)\.example/g, (_, user, host) => `${host}/${user}`).length + log.split(/\s*[[\]]\s*/).length;
  },

  // Map and Set: which words stand beside which.
  maps() {
    let seed = 7;
    const words = Array.from({length: 30000}, () => {
      seed = (seed * 48271) % 2147483647;
      return "word" + (seed % 700);
    });
    const neighbours = new Map();
    const counts = new Map();
    for (let i = 1; i < words.length; i += 1) {
      counts.set(words[i], (counts.get(words[i]) ?? 0) + 1);
      if (!neighbours.has(words[i])) neighbours.set(words[i], new Set());
      neighbours.get(words[i]).add(words[i - 1]);
    }
    let sum = counts.size;
    for (const [word, beside] of neighbours) sum += beside.size * counts.get(word);
    return sum;
  },

  // Classes: a small language's expressions, simplified by methods that are overridden.
  classes() {
    class Node {
      #size = 1;
      get size() {
        return this.#size;
      }
      simpler() {
        return this;
      }
    }
    class Value extends Node {
      constructor(value) {
        super();
        this.value = value;
      }
    }
    class Sum extends Node {
      constructor(left, right) {
        super();
        this.left = left;
        this.right = right;
      }
      get size() {
        return super.size + this.left.size + this.right.size;
      }
      simpler() {
        const left = this.left.simpler();
        const right = this.right.simpler();
        return left instanceof Value && right instanceof Value
          ? new Value((left.value + right.value) % 65521)
          : new Sum(left, right);
      }
    }
    const build = (depth, n) => (depth ? new Sum(build(depth - 1, 2 * n), build(depth - 1, 2 * n + 1)) : new Value(n));
    let total = 0;
    for (let i = 0; i < 12; i += 1) {
      const expression = build(10, i + 1);
      total += expression.size + expression.simpler().value;
    }
    return total;
  },

  // Typed arrays: two matrices multiplied, then the game of life.
  typed() {
    const n = 48;
    const a = Float64Array.from({length: n * n}, (_, i) => i % 10);
    const b = Float64Array.from({length: n * n}, (_, i) => i % 7);
    const c = new Float64Array(n * n);
    for (let i = 0; i < n; i += 1) {
      for (let j = 0; j < n; j += 1) {
        let sum = 0;
        for (let k = 0; k < n; k += 1) sum += a[i * n + k] * b[k * n + j];
        c[i * n + j] = sum;
      }
    }
    const side = 64;
    let world = Uint8Array.from({length: side * side}, (_, i) => ((i * i) % 11 < 4 ? 1 : 0));
    for (let step = 0; step < 10; step += 1) {
      const later = new Uint8Array(side * side);
      for (let y = 1; y < side - 1; y += 1) {
        for (let x = 1; x < side - 1; x += 1) {
          const at = y * side + x;
          const beside =
            world[at - side - 1] + world[at - side] + world[at - side + 1] + world[at - 1] + world[at + 1] +
            world[at + side - 1] + world[at + side] + world[at + side + 1];
          later[at] = beside === 3 || (beside === 2 && world[at]) ? 1 : 0;
        }
      }
      world = later;
    }
    return c.reduce((sum, value) => sum + value, 0) + world.reduce((sum, cell) => sum + cell, 0);
  },
};
