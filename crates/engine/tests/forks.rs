//! An isolate that is made and used before its process is forked, and goes on in the forks.

#![allow(unsafe_code, reason = "forking is the subject of these tests")]

use std::ffi::c_int;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use pydeno_engine::{Engine, EvalLimits, Isolate, IsolateOptions, RandomSource, Tier};
use pydeno_wire::message::Failure;
use pydeno_wire::{Text, Value};

/// Runs `body` in a fork, which must end well, and gives its answer.
#[track_caller]
fn in_fork(body: impl FnOnce() -> String) -> String {
    let mut ends = [0; 2];
    // SAFETY: an array of two for the two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: both descriptors are new and nobody else's.
    let [read, write] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    // SAFETY: the child runs this test's body and leaves with `_exit`; what it calls takes no lock that another thread of
    // a test could hold for ever.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(read);
        let answer = catch_unwind(AssertUnwindSafe(body));
        let sent = answer.is_ok_and(|answer| std::fs::File::from(write).write_all(answer.as_bytes()).is_ok());
        // SAFETY: ends this process at once, without the destructor of the isolate that it inherited.
        unsafe { libc::_exit(c_int::from(!sent)) }
    }
    assert!(child > 0, "the test can fork");
    drop(write);
    let mut answer = String::new();
    std::fs::File::from(read).read_to_string(&mut answer).expect("the answer is a text");
    let mut status = 0;
    // SAFETY: waits for the child made above; the status is a variable of this frame.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the fork ended well");
    answer
}

/// What a template evaluates: functions, a heap, a captured `Math.random`.
const LIBRARY: &str = r#"
    const random = Math.random;
    const table = Array.from({ length: 20000 }, (_, i) => ({ i, text: "row " + i }));
    const pattern = /(\p{L}+)-(?<number>\d+)/u;
    const format = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" });
    const weak = new WeakMap([[table, "kept"]]);
    class Counter { #n = 0; next() { return ++this.#n } }
    const counter = new Counter();
    function forever() { for (;;); }
    function allocate(megabytes) {
        let sum = 0;
        for (let i = 0; i < megabytes; i++) sum += new Array(131072).fill(i).length;
        return sum;
    }
    async function later(x) { await null; return x + 1; }
    counter.next();
"#;

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("the process has threads").count()
}

fn template() -> Isolate {
    let engine = Engine::load().expect("the tests need JavaScriptCore");
    engine.initialise(Tier::Off).expect("it starts");
    let options = IsolateOptions { for_forks: true, ..IsolateOptions::default() };
    let isolate = Isolate::new(engine, &options).expect("an isolate can be made");
    value(&isolate, LIBRARY);
    isolate
}

fn eval(isolate: &Isolate, source: &str, timeout: Duration) -> Result<Value, Failure> {
    let limits = EvalLimits { timeout, ..EvalLimits::default() };
    isolate.eval(&Text::from(source), "test.js", &limits)
}

#[track_caller]
fn value(isolate: &Isolate, source: &str) -> Value {
    eval(isolate, source, Duration::from_secs(60))
        .unwrap_or_else(|failure| panic!("{source}\nfailed: {failure:?}"))
}

#[track_caller]
fn text(isolate: &Isolate, source: &str) -> String {
    match value(isolate, &format!("String({source})")) {
        Value::String(text) => text.to_string(),
        other => panic!("{source} is {other:?}"),
    }
}

#[test]
fn an_isolate_for_forks_leaves_its_process_with_one_thread_and_another_does_not() {
    let told = in_fork(|| {
        let isolate = template();
        value(&isolate, "allocate(30)");
        threads().to_string()
    });
    assert_eq!(told, "1");
    let told = in_fork(|| {
        let engine = Engine::load().expect("the tests need JavaScriptCore");
        engine.initialise(Tier::Off).expect("it starts");
        let isolate = Isolate::new(engine, &IsolateOptions::default()).expect("an isolate can be made");
        value(&isolate, LIBRARY);
        threads().to_string()
    });
    assert_eq!(told, "2", "the thread that watches deadlines would be lost in a fork");
}

#[test]
fn everything_that_a_template_has_made_goes_on_in_its_forks() {
    in_fork(|| {
        let isolate = template();
        for _ in 0..3 {
            in_fork(|| {
                isolate.go_on_in_fork(Some(RandomSource::System)).expect("it goes on");
                assert_eq!(text(&isolate, "table.length + table[19999].text"), "20000row 19999");
                assert_eq!(text(&isolate, "counter.next()"), "2", "no fork has touched another's");
                // 200 MB of garbage, and what the template made is still there afterwards.
                assert_eq!(text(&isolate, "allocate(200)"), "26214400");
                assert_eq!(text(&isolate, "weak.get(table) + table[10000].text"), "keptrow 10000");
                assert_eq!(
                    eval(&isolate, "forever()", Duration::from_millis(60)),
                    Err(Failure::Timeout),
                    "a loop that was compiled in the template stops"
                );
                assert_eq!(eval(&isolate, "for (;;);", Duration::from_millis(60)), Err(Failure::Timeout));
                assert_eq!(text(&isolate, "pattern.exec('may-2020').groups.number"), "2020");
                assert_eq!(text(&isolate, "format.format(1234.5)"), "$1,234.50");
                assert_eq!(
                    text(&isolate, "new Intl.DateTimeFormat('de-DE', { month: 'long' }).format(0)"),
                    "Januar"
                );
                assert_eq!(text(&isolate, "new Date(0).toISOString()"), "1970-01-01T00:00:00.000Z");
                assert_eq!(value(&isolate, "later(41)"), Value::Number(42.0));
                assert_eq!(
                    text(&isolate, "(() => { try { null.x } catch (e) { return e.name } })()"),
                    "TypeError"
                );
                assert_eq!(threads(), 2, "its own and the one that watches deadlines");
                String::new()
            });
        }
        String::new()
    });
}

#[test]
fn a_fork_that_reaches_its_heap_limit_is_stopped_and_goes_on() {
    in_fork(|| {
        let isolate = template();
        in_fork(|| {
            isolate.go_on_in_fork(None).expect("it goes on");
            let limits = EvalLimits { max_heap_bytes: 64 << 20, ..EvalLimits::default() };
            let source = Text::from("globalThis.all = []; for (;;) all.push(new Array(1000).fill(1))");
            assert_eq!(isolate.eval(&source, "test.js", &limits), Err(Failure::HeapLimit));
            assert_eq!(text(&isolate, "delete globalThis.all && counter.next()"), "2");
            String::new()
        });
        String::new()
    });
}

#[test]
fn forks_of_one_template_draw_numbers_of_their_own_also_from_a_function_that_was_kept() {
    in_fork(|| {
        let isolate = template();
        let draw = |random: Option<RandomSource>, source: &str| {
            in_fork(|| {
                isolate.go_on_in_fork(random).expect("it goes on");
                text(&isolate, source)
            })
        };
        let system = Some(RandomSource::System);
        for source in ["Math.random()", "random()"] {
            assert_ne!(draw(system, source), draw(system, source), "{source}");
            assert_eq!(draw(None, source), draw(None, source), "a control: {source} is not renewed");
        }
        String::new()
    });
}

#[test]
fn a_guest_cannot_tell_an_isolate_that_was_warmed_up() {
    const LOOK: &str = "(() => {
        const owner = object => Reflect.ownKeys(object)
            .map(key => String(key) + ':' + JSON.stringify(Object.getOwnPropertyDescriptor(object, key))).sort();
        const thrown = () => { try { null.x } catch (error) { return error.stack } };
        const found = [globalThis, Object.prototype, Array.prototype, Function.prototype, Error, Symbol].map(owner);
        return JSON.stringify([found, thrown(), new Error('x').stack, Math.random(), Math.random()]);
    })()";
    let look = |is_warm: bool, before: &str| {
        in_fork(|| {
            let engine = Engine::load().expect("the tests need JavaScriptCore");
            engine.initialise(Tier::Off).expect("it starts");
            let random = RandomSource::Seed(7);
            let options = IsolateOptions { for_forks: true, random, ..IsolateOptions::default() };
            let isolate = Isolate::new(engine, &options).expect("an isolate can be made");
            if is_warm {
                isolate.warm_up();
            }
            value(&isolate, before);
            in_fork(|| {
                isolate.go_on_in_fork(None).expect("it goes on");
                if is_warm {
                    isolate.warm_up();
                }
                text(&isolate, LOOK)
            })
        })
    };
    assert_eq!(look(true, ""), look(false, ""));
    assert_ne!(look(true, "Math.random()"), look(true, ""), "a control: what a script does is seen");
}
