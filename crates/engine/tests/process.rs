//! What the engine does to a process. Each test runs in a fork of its own, where the engine has not been loaded.

#![allow(unsafe_code, reason = "forking, signal handlers and roots are the subject of these tests")]

mod guest;

use std::ffi::{CString, c_int};
use std::io::{Read, Write};
use std::mem::zeroed;
use std::os::fd::{FromRawFd, OwnedFd};
use std::panic::catch_unwind;
use std::process;
use std::ptr;
use std::time::Duration;

use guest::{Guest, number, string};
use pydeno_engine::{
    Engine, EngineUnavailable, EvalLimits, InitialiseError, Isolate, IsolateError, IsolateOptions,
    RandomSource, Surface, Tier,
};
use pydeno_wire::message::Failure;
use pydeno_wire::{Text, Value};

/// Runs `body` in a fork and gives its answer, or how the fork died.
fn in_fork(body: impl FnOnce() -> String) -> Result<String, c_int> {
    let mut ends = [0; 2];
    // SAFETY: an array of two for the two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: both descriptors are new and nobody else's.
    let [read, write] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    // SAFETY: the child runs this test's body and leaves with `_exit`, as a fork of a process with threads has to; what it
    // calls takes no lock that another thread of a test could hold for ever.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(read);
        let answer = catch_unwind(std::panic::AssertUnwindSafe(body));
        let sent = answer.is_ok_and(|answer| std::fs::File::from(write).write_all(answer.as_bytes()).is_ok());
        // SAFETY: ends this process at once, which is the point.
        unsafe { libc::_exit(c_int::from(!sent)) }
    }
    assert!(child > 0, "the test can fork");
    drop(write);
    let mut answer = String::new();
    std::fs::File::from(read).read_to_string(&mut answer).expect("the answer is a text");
    let mut status = 0;
    // SAFETY: waits for the child made above; the status is a variable of this frame.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    if status == 0 { Ok(answer) } else { Err(status) }
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("the process has threads").count()
}

fn engine() -> &'static Engine {
    Engine::load().expect("the tests need JavaScriptCore")
}

fn eval(isolate: &mut Isolate, source: &str) -> Result<Value, Failure> {
    isolate.eval(&Text::from(source), "test.js", &EvalLimits::default())
}

fn handler(signal: c_int) -> usize {
    // SAFETY: zeros are a valid `sigaction`.
    let mut action: libc::sigaction = unsafe { zeroed() };
    // SAFETY: reads the present handler into a variable of this frame.
    unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) };
    action.sa_sigaction
}

extern "C" fn of_the_host(_: c_int) {}

fn handle(signal: c_int) {
    // SAFETY: the handler does nothing.
    unsafe { libc::signal(signal, of_the_host as *const () as libc::sighandler_t) };
}

#[test]
fn an_initialised_process_still_has_one_thread_in_every_tier() {
    for tier in [Tier::Off, Tier::Baseline, Tier::Full] {
        let told = in_fork(|| {
            engine().initialise(tier).expect("it starts");
            threads().to_string()
        });
        assert_eq!(told.as_deref(), Ok("1"), "{tier:?}");
    }
}

#[test]
fn without_the_jit_a_fork_that_evaluates_has_the_deadlines_thread_and_no_other() {
    let told = in_fork(|| {
        engine().initialise(Tier::Off).expect("it starts");
        in_fork(|| {
            let guest = Guest::new();
            let before = threads();
            guest.value("(() => { const all = []; for (let i = 0; i < 3e5; i++) all.push({ i, text: 'x' + i }); return 1 })()");
            assert_eq!(guest.within(Duration::from_millis(100), "for (;;);"), Err(Failure::Timeout));
            format!("{before} {}", threads())
        })
        .expect("the inner fork ends well")
    });
    assert!(matches!(told.as_deref(), Ok("1 2" | "2 2")), "{told:?}");
}

#[test]
fn forks_of_one_process_draw_different_numbers() {
    let told = in_fork(|| {
        engine().initialise(Tier::Off).expect("it starts");
        let draw = |random| {
            in_fork(|| {
                let options = IsolateOptions { random, ..IsolateOptions::default() };
                let mut isolate = Isolate::new(engine(), &options).expect("an isolate can be made");
                format!("{:?}", eval(&mut isolate, "[Math.random(), Math.random()]"))
            })
            .expect("the inner fork ends well")
        };
        assert_ne!(draw(RandomSource::System), draw(RandomSource::System));
        assert_eq!(draw(RandomSource::Seed(1)), draw(RandomSource::Seed(1)), "a control");
        assert_ne!(draw(RandomSource::Seed(1)), draw(RandomSource::Seed(2)));
        String::new()
    });
    assert_eq!(told.as_deref(), Ok(""));
}

/// Makes an empty directory the root of this process, with the rights of a new user namespace where it has none.
fn enter_an_empty_root() {
    let directory = std::env::temp_dir().join(format!("pydeno-empty-root-{}", process::id()));
    std::fs::create_dir(&directory).expect("the directory is new");
    let path = CString::new(directory.as_os_str().as_encoded_bytes()).expect("a path has no NUL");
    // SAFETY: the path is a C string for the call.
    let mut entered = unsafe { libc::chroot(path.as_ptr()) };
    if entered != 0 {
        // SAFETY: takes a number; this process has one thread.
        unsafe { libc::unshare(libc::CLONE_NEWUSER) };
        // SAFETY: as above.
        entered = unsafe { libc::chroot(path.as_ptr()) };
    }
    std::fs::remove_dir(&directory).ok();
    assert_eq!(entered, 0, "the test needs root or user namespaces");
    // SAFETY: a literal C string.
    assert_eq!(unsafe { libc::chdir(c"/".as_ptr()) }, 0);
}

#[test]
fn a_fork_of_an_initialised_process_needs_no_file() {
    let told = in_fork(|| {
        engine().initialise(Tier::Off).expect("it starts");
        in_fork(|| {
            enter_an_empty_root();
            assert!(!std::path::Path::new("/proc").exists());
            let guest = Guest::new();
            assert_eq!(guest.within(Duration::from_millis(100), "for (;;);"), Err(Failure::Timeout));
            let source = "[(1234.5).toLocaleString('en-US'), new Date(0).toISOString(), 'ä'.localeCompare('b', 'de') < 0, \
                          Math.random() < 1, /\\p{L}+/u.test('é')].join(' ')";
            format!("{:?}", guest.value(source))
        })
        .expect("the inner fork ends well")
    });
    assert_eq!(told.as_deref(), Ok("String(\"1,234.5 1970-01-01T00:00:00.000Z true true true\")"));
}

#[test]
fn an_engine_that_was_not_initialised_does_need_files() {
    let told = in_fork(|| {
        let engine = engine();
        enter_an_empty_root();
        format!("{:?}", Isolate::new(engine, &IsolateOptions::default()).map(|_| ()))
    });
    assert!(told.is_err(), "a control: {told:?}");
}

#[test]
fn the_signal_handlers_of_a_host_stay_its_own() {
    for tier in [Tier::Off, Tier::Baseline, Tier::Full] {
        let told = in_fork(|| {
            let signals = [libc::SIGUSR1, libc::SIGUSR2, libc::SIGSEGV, libc::SIGBUS];
            signals.into_iter().for_each(handle);
            assert!(engine().configure(tier), "this engine takes options");
            let guest = Guest::new();
            let source = "(() => { let n = 0; for (let i = 0; i < 1e6; i++) n += [i].length; return n })()";
            assert_eq!(guest.value(source), number(1e6));
            // SAFETY: sends this process a signal that it handles.
            unsafe { libc::raise(libc::SIGUSR1) };
            assert!(guest.still_answers());
            let own = of_the_host as *const () as usize;
            format!("{}", signals.into_iter().all(|signal| handler(signal) == own))
        });
        assert_eq!(told.as_deref(), Ok("true"), "{tier:?}");
    }
}

#[test]
fn the_engine_left_alone_takes_a_signal_over() {
    let told = in_fork(|| {
        handle(libc::SIGUSR1);
        engine().initialise(Tier::Off).expect("it starts");
        format!("{}", handler(libc::SIGUSR1) == of_the_host as *const () as usize)
    });
    assert_eq!(told.as_deref(), Ok("false"), "a control");
}

#[test]
fn a_thread_with_an_isolate_has_no_alternate_signal_stack() {
    fn is_disabled() -> bool {
        // SAFETY: zeros are a valid `stack_t`.
        let mut stack: libc::stack_t = unsafe { zeroed() };
        // SAFETY: reads the present stack into a variable of this frame.
        unsafe { libc::sigaltstack(ptr::null(), &raw mut stack) };
        stack.ss_flags & libc::SS_DISABLE != 0
    }
    let told = in_fork(|| {
        let thread = std::thread::spawn(|| {
            let before = is_disabled();
            let guest = Guest::new();
            let with = is_disabled();
            drop(guest);
            format!("{before} {with}")
        });
        thread.join().expect("the thread ends well")
    });
    assert_eq!(told.as_deref(), Ok("false true"));
}

#[test]
fn a_library_that_is_not_there_is_named_and_looked_for_again() {
    let told = in_fork(|| {
        // SAFETY: this process has one thread.
        unsafe { std::env::set_var("PYDENO_JSC", "/nowhere/libnone.so") };
        let missing = Engine::load().expect_err("there is none");
        // SAFETY: as above.
        unsafe { std::env::remove_var("PYDENO_JSC") };
        assert!(Engine::load().is_ok());
        assert!(matches!(missing, EngineUnavailable::OverrideFailed { .. }));
        missing.to_string()
    });
    let told = told.expect("the fork ends well");
    assert!(told.contains("/nowhere/libnone.so") && told.contains("PYDENO_JSC"), "{told}");
}

#[test]
fn a_library_that_is_no_engine_is_named_with_what_it_lacks() {
    let told = in_fork(|| {
        // SAFETY: this process has one thread.
        unsafe { std::env::set_var("PYDENO_JSC", "libc.so.6") };
        let outdated = Engine::load().expect_err("it is no engine");
        assert!(matches!(outdated, EngineUnavailable::Outdated { .. }));
        outdated.to_string()
    });
    let told = told.expect("the fork ends well");
    assert!(told.contains("libc.so.6") && told.contains("JSContextGroupCreate"), "{told}");
}

#[test]
fn options_are_fixed_by_the_first_start() {
    let told = in_fork(|| {
        let engine = engine();
        assert!(engine.configure(Tier::Off));
        assert!(!engine.configure(Tier::Full));
        assert_eq!(engine.initialise(Tier::Off), Err(InitialiseError::StartedAlready));
        assert!(Guest::new().still_answers());
        String::new()
    });
    assert_eq!(told.as_deref(), Ok(""));
}

#[test]
fn compiled_code_stops_at_the_timeout_too() {
    for tier in [Tier::Off, Tier::Baseline, Tier::Full] {
        let told = in_fork(|| {
            assert!(engine().configure(tier));
            let guest = Guest::new();
            guest.value("function add(a, b) { return a + b } for (let i = 0; i < 2e5; i++) add(i, i); 0");
            for source in ["for (;;) add(1, 2)", "(() => { let n = 0; for (;;) n = (n + 1) | 0 })()"] {
                assert_eq!(guest.within(Duration::from_millis(200), source), Err(Failure::Timeout));
                for _ in 0..1000 {
                    assert!(guest.still_answers());
                }
            }
            String::new()
        });
        assert_eq!(told.as_deref(), Ok(""), "{tier:?}");
    }
}

#[test]
fn many_threads_make_use_and_end_isolates_at_once() {
    let told = in_fork(|| {
        let threads: Vec<_> = (0..20)
            .map(|thread| {
                std::thread::spawn(move || {
                    for round in 0..3 {
                        let guest = Guest::new();
                        guest.bind("thread", Box::new(move |_| Ok(number(f64::from(thread)))));
                        assert_eq!(guest.value("thread()"), number(f64::from(thread)));
                        if round == 0 {
                            assert_eq!(
                                guest.within(Duration::from_millis(80), "for (;;);"),
                                Err(Failure::Timeout)
                            );
                        }
                        guest.value(
                            "(() => { const a = []; for (let i = 0; i < 1e4; i++) a.push([i]); return 0 })()",
                        );
                        assert!(guest.still_answers());
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("the thread ends well");
        }
        String::new()
    });
    assert_eq!(told.as_deref(), Ok(""));
}

#[test]
fn a_fork_of_a_process_that_used_the_engine_is_told_so_at_once() {
    let told = in_fork(|| {
        let before = Guest::new();
        let told = in_fork(|| match Isolate::new(engine(), &IsolateOptions::default()) {
            Err(error @ IsolateError::Forked) => error.to_string(),
            other => format!("{other:?}"),
        });
        assert!(before.still_answers());
        told.expect("the inner fork ends well")
    });
    assert!(told.as_ref().is_ok_and(|told| told.contains("fork of one that has used")), "{told:?}");
}

#[test]
fn the_reduced_surface_lacks_shared_memory_and_machine_code() {
    let told = in_fork(|| {
        let names = "[typeof SharedArrayBuffer, typeof Atomics, typeof WebAssembly, typeof console].join()";
        let mut reduced = Isolate::new(engine(), &IsolateOptions::default()).expect("an isolate can be made");
        assert_eq!(eval(&mut reduced, names), Ok(string("undefined,undefined,undefined,undefined")));
        let full = IsolateOptions { surface: Surface::Full, ..IsolateOptions::default() };
        let mut full = Isolate::new(engine(), &full).expect("an isolate can be made");
        format!("{:?}", eval(&mut full, "typeof Atomics"))
    });
    assert_eq!(told.as_deref(), Ok("Ok(String(\"object\"))"), "a control");
}
