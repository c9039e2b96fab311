//! What a transformation costs: `cargo bench -p pydeno-transform`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use pydeno_transform::{Language, ModuleOptions, Position, ScriptOptions, module, script};

const TYPESCRIPT: &str = r#"
interface Order<T extends string = string> { readonly id: number; state: T; lines?: { price: number; count?: number }[] }
export enum State { Open = "open", Paid = "paid", Void = "void" }
export class Book<T extends Order> implements Iterable<T> {
    private readonly orders: Map<number, T> = new Map();
    constructor(protected name: string, public readonly currency: "EUR" | "USD" = "EUR") {}
    add(order: T): this { this.orders.set(order.id, order); return this; }
    total(predicate: (order: T) => boolean = () => true): number {
        return [...this.orders.values()].filter(predicate).flatMap((order) => order.lines ?? [])
            .reduce((sum: number, { price, count = 1 }) => sum + price! * count, 0) as number;
    }
    *[Symbol.iterator](): Iterator<T> { yield* this.orders.values(); }
}
"#;

const MODULE: &str = r#"
import { readRows, parse as parseRow } from "rows";
import * as dates from "./dates.js";
export const label = (count) => (count === 1 ? `${count} item` : `${count} items`);
export function summarise(text, { separator = ",", zone } = {}) {
  const rows = readRows(text, separator).map((row) => parseRow(row)).filter(({ state }) => state !== "void");
  const byMonth = Object.groupBy(rows, ({ date }) => dates.month(date, zone));
  return Object.entries(byMonth).map(([month, rows]) => ({ month, label: label(rows.length), total: rows.reduce((a, b) => a + b.price, 0) }));
}
"#;

const SCRIPT: &str = r#"
const rows = await lookup("orders", { limit: 100 });
let total = 0;
for (const { price, count = 1 } of rows) {
  if (price > 0) total += price * count;
  else console.log(`skipped ${price}`);
}
"#;

/// About `bytes` of a source, its names made different.
fn repeated(source: &str, bytes: usize) -> String {
    let mut text = String::new();
    for number in 0.. {
        if text.len() >= bytes {
            break;
        }
        let mut copy = source.to_owned();
        for name in
            ["Order", "State", "Book", "readRows", "parseRow", "dates", "label", "summarise", "rows", "total"]
        {
            copy = copy.replace(name, &format!("{name}{number}"));
        }
        text += &copy;
    }
    text
}

fn main() {
    let options = |language| ModuleOptions { language, ..ModuleOptions::default() };
    let source = repeated(TYPESCRIPT, 100_000);
    measure("module in TypeScript", source.len(), || {
        module(black_box(&source), &options(Language::TypeScript)).expect("it parses")
    });
    let source = repeated(MODULE, 100_000);
    measure("module in JavaScript", source.len(), || {
        module(black_box(&source), &options(Language::JavaScript)).expect("it parses")
    });
    for bytes in [1_000, 100_000] {
        let source = repeated(SCRIPT, bytes);
        measure("script with await", source.len(), || {
            script(black_box(&source), &ScriptOptions::default()).expect("it parses")
        });
    }
    for bytes in [1_000, 100_000] {
        let source = repeated("x = f(rows, (y) => y * 2) / 3;\n", bytes);
        measure("plain script", source.len(), || {
            script(black_box(&source), &ScriptOptions::default()).expect("nothing to do")
        });
    }
    let source = repeated(SCRIPT, 100_000);
    let map = script(&source, &ScriptOptions::default()).expect("it parses").map;
    println!("the map of {} bytes takes {}", source.len(), map.size());
    measure("one position of it", 0, || map.original(black_box(Position { line: 1_000, column: 20 })));
}

/// Prints the median of many rounds, each long enough for the clock.
fn measure<T>(name: &str, bytes: usize, run: impl Fn() -> T) {
    let once = Instant::now();
    black_box(run());
    let repeats = (Duration::from_micros(200).as_nanos() / once.elapsed().as_nanos().max(1)).max(1) as u32;
    let mut rounds = Vec::new();
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(500) || rounds.len() < 5 {
        let round = Instant::now();
        for _ in 0..repeats {
            black_box(run());
        }
        rounds.push(round.elapsed() / repeats);
    }
    rounds.sort();
    let median = rounds[rounds.len() / 2];
    let speed = bytes as f64 / median.as_secs_f64() / 1e6;
    println!("{name:24} {bytes:>7} bytes {median:>10.1?} {speed:>8.1} MB/s");
}
