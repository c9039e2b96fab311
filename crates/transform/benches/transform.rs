//! What a transformation costs: `cargo bench -p pydeno-transform`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
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

fn transformations(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("100 KB");
    let options = |language| ModuleOptions { language, ..ModuleOptions::default() };
    let source = repeated(TYPESCRIPT, 100_000);
    group.throughput(Throughput::Bytes(source.len() as u64));
    group.bench_function("module in TypeScript", |bencher| {
        bencher.iter(|| module(black_box(&source), &options(Language::TypeScript)).expect("it parses"));
    });
    let source = repeated(MODULE, 100_000);
    group.throughput(Throughput::Bytes(source.len() as u64));
    group.bench_function("module in JavaScript", |bencher| {
        bencher.iter(|| module(black_box(&source), &options(Language::JavaScript)).expect("it parses"));
    });
    let source = repeated(SCRIPT, 100_000);
    group.throughput(Throughput::Bytes(source.len() as u64));
    group.bench_function("script with await", |bencher| {
        bencher.iter(|| script(black_box(&source), &ScriptOptions::default()).expect("it parses"));
    });
    group.finish();

    let mut group = criterion.benchmark_group("1 KB");
    let source = repeated("x = f(rows, (y) => y * 2) / 3;\n", 1_000);
    group.bench_function("plain script", |bencher| {
        bencher.iter(|| script(black_box(&source), &ScriptOptions::default()).expect("nothing to do"));
    });
    let source = repeated(SCRIPT, 1_000);
    group.bench_function("script with await", |bencher| {
        bencher.iter(|| script(black_box(&source), &ScriptOptions::default()).expect("it parses"));
    });
    group.finish();

    let source = repeated(SCRIPT, 100_000);
    let map = script(&source, &ScriptOptions::default()).expect("it parses").map;
    criterion.bench_function("position", |bencher| {
        bencher.iter(|| map.original(black_box(Position { line: 1_000, column: 20 })));
    });
}

criterion_group!(benches, transformations);
criterion_main!(benches);
