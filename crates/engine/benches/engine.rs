//! Prints medians of what an evaluation costs in the engine, without any process or socket around it:
//! `cargo bench -p pydeno-engine [-- off|baseline|full]`.

use std::time::{Duration, Instant};

use pydeno_engine::{Engine, EvalLimits, Isolate, IsolateOptions, Tier};
use pydeno_wire::{Text, Value};

const ROWS: &str =
    "globalThis.rows = Array.from({ length: 50000 }, (_, id) => ({ id, name: `name ${id}`, v: id * 1.5 }))";

fn main() {
    let tier = std::env::args().find_map(|argument| Tier::from_name(&argument)).unwrap_or_default();
    let engine = Engine::load().expect("the bench needs JavaScriptCore");
    assert!(engine.configure(tier), "this engine takes its options from the environment only");
    println!("{} with JIT {}", engine.library(), tier.name());

    measure("new isolate and its end", 200, || {
        Isolate::new(engine, &IsolateOptions::default()).expect("an isolate can be made");
    });

    let isolate = isolate(engine);
    let eval = {
        let isolate = &isolate;
        move |source: &Text| isolate.eval(source, "bench.js", &EvalLimits::default()).expect("it evaluates")
    };
    let one_and_one = Text::from("1+1");
    measure("eval 1+1", 20_000, || drop(eval(&one_and_one)));
    measure("eval ({a: 1})", 20_000, || drop(eval(&Text::from("({a: 1})"))));

    eval(&Text::from(
        "const calls = (count, argument) => { for (let i = 0; i < count; i++) take(argument); }; 0",
    ));
    let calls = Text::from("calls(1000, 7)");
    measure("1,000 host calls with a number", 100, || drop(eval(&calls)));
    let calls = Text::from("calls(1000, { id: 7 })");
    measure("1,000 host calls with {id}", 100, || drop(eval(&calls)));

    eval(&Text::from(ROWS));
    let rows = Text::from("rows");
    measure("export 50,000 objects {id, name, v}", 15, || drop(eval(&rows)));
    let rows = Text::from("give_rows().length");
    measure("import 50,000 objects {id, name, v}", 15, || drop(eval(&rows)));

    eval(&Text::from("globalThis.numbers = Array.from({ length: 1000000 }, (_, i) => i / 3); 0"));
    let numbers = Text::from("numbers");
    measure("export 1,000,000 numbers", 9, || drop(eval(&numbers)));

    eval(&Text::from("globalThis.bytes = new Uint8Array(1 << 20); 0"));
    let bytes = Text::from("bytes");
    measure("export 1 MiB of bytes", 100, || drop(eval(&bytes)));
    let bytes = Text::from("give_bytes().length");
    measure("import 1 MiB of bytes", 100, || drop(eval(&bytes)));

    eval(&Text::from("globalThis.text = 'a1b2c3d4e5'.repeat(170000); 0"));
    let text = Text::from("text");
    measure("export a string of 1.7 MB", 100, || drop(eval(&text)));
    let text = Text::from("give_text().length");
    measure("import a string of 1.7 MB", 100, || drop(eval(&text)));
}

fn isolate(engine: &'static Engine) -> Isolate {
    let isolate = Isolate::new(engine, &IsolateOptions::default()).expect("an isolate can be made");
    let row = |id: i32| {
        Value::Object(vec![
            ("id".into(), Value::Number(f64::from(id))),
            ("name".into(), Value::String(format!("name {id}").into())),
            ("v".into(), Value::Number(f64::from(id) * 1.5)),
        ])
    };
    let bind = |name: &str, answer: Value| {
        let function = Box::new(move |_, _| Ok(answer.clone()));
        isolate.bind(None, &name.into(), function).expect("a new name can be bound");
    };
    bind("take", Value::Undefined);
    bind("give_rows", Value::Array((0..50_000).map(row).collect()));
    bind("give_bytes", Value::Bytes(vec![7; 1 << 20]));
    bind("give_text", Value::String("a1b2c3d4e5".repeat(170_000).into()));
    isolate
}

fn measure(what: &str, times: usize, mut body: impl FnMut()) {
    let mut took: Vec<Duration> = (0..times)
        .map(|_| {
            let began = Instant::now();
            body();
            began.elapsed()
        })
        .collect();
    took.sort_unstable();
    println!("{what:<40} {:>12.2?}", took[times / 2]);
}
