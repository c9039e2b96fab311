//! A clock that stands still, and a `Math.random` that begins at a seed.

mod guest;

use guest::{Guest, string};
use pydeno_wire::Value;

const FROZEN: i64 = 1_234_567_890_123;

fn frozen() -> Guest {
    let guest = Guest::new();
    guest.0.freeze_clock(FROZEN).expect("the clock can be frozen");
    guest
}

fn holds(guest: &Guest, claim: &str) {
    assert_eq!(guest.eval(claim), Ok(Value::Bool(true)), "{claim}");
}

/// What a script can learn the time from.
const READINGS: [&str; 16] = [
    "Date.now()",
    "new Date().getTime()",
    "+new Date",
    "new Date(undefined ?? Date.now()).valueOf()",
    "Date.parse(new Date().toISOString())",
    "Reflect.construct(Date, []).getTime()",
    "Reflect.construct(Date, [], class extends Date {}).getTime()",
    "Reflect.construct(Date, [], Object).constructor === Object && NOW",
    "new (class extends Date {})().getTime()",
    "new (class extends Date { constructor() { super() } })().getTime()",
    "new (new Date().constructor)().getTime()",
    "new (Date.prototype.constructor)().getTime()",
    "new (Object.getPrototypeOf(new Date(0)).constructor)().getTime()",
    "new (Date.bind())().getTime()",
    "new (new Proxy(Date, {}))().getTime()",
    "Date.now.call(null)",
];

#[test]
fn every_reading_is_the_frozen_time() {
    let guest = frozen();
    for reading in READINGS {
        let reading = reading.replace("NOW", &FROZEN.to_string());
        holds(&guest, &format!("({reading}) === {FROZEN}"));
    }
    holds(&guest, &format!("Date() === new Date({FROZEN}).toString() && typeof Date(0) === 'string'"));
    holds(&guest, "Date.call({}) === Date() && Date.apply(new Date(5), [1]) === Date()");
    for options in
        ["", "'en-US', { dateStyle: 'full', timeStyle: 'long' }", "'de', { fractionalSecondDigits: 3 }"]
    {
        holds(
            &guest,
            &format!(
                "(() => {{ const f = new Intl.DateTimeFormat({options}); const at = JSON.stringify(f.formatToParts({FROZEN})); \
                 return f.format() === f.format({FROZEN}) && f.format(undefined) === f.format({FROZEN}) && \
                 (0, f.format)() === f.format({FROZEN}) && [undefined].map(f.format)[0] === f.format({FROZEN}) && \
                 JSON.stringify(f.formatToParts()) === at && JSON.stringify(f.formatToParts(undefined)) === at && \
                 f.format(0) !== f.format() && f.format(new Date(0)) === f.format(0) }})()"
            ),
        );
    }
    holds(&guest, "typeof performance === 'undefined' && typeof Temporal === 'undefined'");
}

#[test]
fn without_it_every_reading_is_the_real_time() {
    let guest = Guest::new();
    for reading in READINGS {
        if reading.contains("NOW") {
            continue;
        }
        holds(&guest, &format!("({reading}) > {FROZEN} + 1e10"));
    }
    holds(
        &guest,
        &format!("new Intl.DateTimeFormat().format() !== new Intl.DateTimeFormat().format({FROZEN})"),
    );
    holds(&guest, &format!("Date() !== new Date({FROZEN}).toString()"));
}

#[test]
fn it_stands_still_while_time_passes() {
    let guest = frozen();
    let before = guest.value("[Date.now(), +new Date(), Date(), new Intl.DateTimeFormat('en', { fractionalSecondDigits: 3 }).format()]");
    std::thread::sleep(std::time::Duration::from_millis(20));
    let after = guest.value("[Date.now(), +new Date(), Date(), new Intl.DateTimeFormat('en', { fractionalSecondDigits: 3 }).format()]");
    assert_eq!(before, after);
}

#[test]
fn dates_are_otherwise_as_ever() {
    let (guest, real) = (frozen(), Guest::new());
    for source in [
        "[Date.name, Date.length, typeof Date, Reflect.ownKeys(Date).map(String).sort().join(), Reflect.ownKeys(Date.prototype).length].join()",
        "Function.prototype.toString.call(Date)",
        "Function.prototype.toString.call(Date.now)",
        "[Date.now.name, Date.now.length, 'prototype' in Date.now].join()",
        "JSON.stringify(Object.getOwnPropertyDescriptor(globalThis, 'Date'), (key, value) => key === 'value' ? 1 : value)",
        "JSON.stringify(Reflect.ownKeys(Date).sort().map((key) => { const { value, ...rest } = Object.getOwnPropertyDescriptor(Date, key); return [String(key), rest] }))",
        "JSON.stringify(Object.getOwnPropertyDescriptor(Date.prototype, 'constructor'), (key, value) => key === 'value' ? 1 : value)",
        "String(Date.prototype.constructor === Date)",
        "String([Object.getPrototypeOf(Date) === Function.prototype, new Date() instanceof Date, new Date(0).constructor === Date].join())",
        "String(Object.getPrototypeOf(new Date()) === Date.prototype)",
        "[new Date(2020, 1).getTime(), new Date(2020, 1, 2, 3, 4, 5, 6).getTime(), new Date('2020-02-03T00:00:00Z').getTime(), new Date(7).getTime()].join()",
        "[Date.UTC(2020, 1), Date.parse('2020-02-03'), Date.UTC(), new Date(NaN).getTime(), new Date(undefined).getTime(), new Date(null).getTime()].join()",
        "[new Date(new Date(5)).getTime(), new Date({ valueOf() { return 9 } }).getTime(), new Date(8.64e15 + 1).getTime()].join()",
        "(() => { class Own extends Date { get own() { return 1 } } const own = new Own(5); return [own.own, own instanceof Own, own instanceof Date, own.getTime(), Object.getPrototypeOf(Own) === Date].join() })()",
        "(() => { try { Date.prototype.getTime.call({}) } catch (error) { return error.name } })()",
        "(() => { try { new Date(Symbol()) } catch (error) { return error.name } })()",
        "(() => { try { new Date.now() } catch (error) { return error.name } })()",
        "Reflect.construct(Date, [5], Object) instanceof Date ? 'date' : 'object'",
        "Object.prototype.toString.call(new Date(0)) + JSON.stringify({ d: new Date(0) })",
        "(() => { Date.own = 1; const { own } = Date; delete Date.own; return String([own, 'own' in Date]) })()",
        "(() => { const d = Object.getOwnPropertyDescriptor(Intl.DateTimeFormat.prototype, 'format'); return [typeof d.get, d.get.name, d.set, d.enumerable, d.configurable].join() })()",
        "(() => { const f = new Intl.DateTimeFormat('en'); return [f.format === f.format, f.format.name, f.format.length, f.formatToParts.name, f.formatToParts.length, Function.prototype.toString.call(f.format)].join() })()",
        "(() => { const f = new Intl.DateTimeFormat('en', { timeZone: 'UTC' }); return [f.format(0), f.format(new Date(1e12)), f.formatRange(0, 1e12), f.formatToParts(0).length].join() })()",
        "(() => { try { new Intl.DateTimeFormat().formatRange() } catch (error) { return error.name } })()",
        "(() => { try { new Intl.DateTimeFormat().format(NaN) } catch (error) { return error.name } })()",
        "(() => { try { Intl.DateTimeFormat.prototype.formatToParts.call({}) } catch (error) { return error.name } })()",
        "(() => { try { Object.getOwnPropertyDescriptor(Intl.DateTimeFormat.prototype, 'format').get.call({}) } catch (error) { return error.name } })()",
    ] {
        let Value::String(expected) = real.value(source) else { panic!("{source} is a text") };
        assert_eq!(guest.value(source), Value::String(expected), "{source}");
    }
}

#[test]
fn dates_cross_both_ways() {
    let guest = frozen();
    guest.bind("give", Box::new(|_| Ok(Value::Date(5))));
    assert_eq!(guest.value("new Date()"), Value::Date(FROZEN));
    assert_eq!(guest.value("new (class extends Date {})(7)"), Value::Date(7));
    holds(&guest, "give() instanceof Date && give().constructor === Date && give().getTime() === 5");
}

#[test]
fn a_poisoned_prototype_neither_moves_it_nor_shows_the_real_one() {
    let guest = frozen();
    let source = format!(
        "const seen = []; const {{ defineProperty }} = Object; const f = new Intl.DateTimeFormat('en'); \
         for (const key of ['get', 'set', 'value', 'length', '0', 'configurable', 'then', 'apply', 'construct']) \
           defineProperty(Object.prototype, key, {{ __proto__: null, configurable: true, get() {{ seen[seen.length] = this }} }}); \
         for (const key of ['0', '1']) defineProperty(Array.prototype, key, {{ __proto__: null, configurable: true, set(value) {{ seen.all = value }} }}); \
         Function.prototype.apply = Function.prototype.call = Reflect.construct = WeakMap.prototype.get = WeakMap.prototype.set = null; \
         const told = new Date().getTime() === {FROZEN} && Date.now() === {FROZEN} && f.format() === f.format({FROZEN}); \
         for (const key of ['get', 'set', 'value', 'length', '0', 'configurable', 'then', 'apply', 'construct']) delete Object.prototype[key]; \
         for (const key of ['0', '1']) delete Array.prototype[key]; \
         told && seen.length === 0 && seen.all === undefined"
    );
    holds(&guest, &source);
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let draw = "Array.from({ length: 20 }, () => Math.random()).join()";
    let drawn = |seed: Option<u64>| {
        let guest = Guest::new();
        if let Some(seed) = seed {
            guest.0.seed_random(seed);
        }
        guest.value(draw)
    };
    assert_eq!(drawn(Some(7)), drawn(Some(7)));
    assert_ne!(drawn(Some(7)), drawn(Some(8)));
    assert_ne!(drawn(None), drawn(None), "a control");
    let guest = Guest::new();
    guest.value("Math.random()");
    guest.0.seed_random(7);
    assert_eq!(guest.value(draw), drawn(Some(7)));
    assert_eq!(guest.value("typeof Math.random()"), string("number"));
}
