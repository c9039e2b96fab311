//! The engine under the filter: every tier must run a load that uses all of it, and nothing may kill it.

#![allow(unsafe_code, reason = "loads the engine as a worker does, without the crate that binds it")]

mod confined;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;

use confined::{confine, parts, run_with, say};
use pydeno_sandbox::Mode;

parts!(load);

/// Newest first, as a worker looks for them.
const LIBRARIES: [&CStr; 3] =
    [c"libjavascriptcoregtk-6.0.so.1", c"libjavascriptcoregtk-4.1.so.0", c"libjavascriptcoregtk-4.0.so.18"];

/// Allocates, collects, compiles, sorts, formats, exhausts memory and the stack; says what went otherwise than it must.
const LOAD: &str = include_str!("engine/load.js");

/// A pointer to one of the engine's objects.
type Object = *mut c_void;

/// Asked when the time limit has passed: whether to end the script.
type ShouldEnd = extern "C" fn(Object, *mut c_void) -> bool;

extern "C" fn go_on(_: Object, _: *mut c_void) -> bool {
    false
}

/// The functions that a load needs, under the engine's names.
macro_rules! functions {
    ($($name:ident: $symbol:literal = $type:ty),* $(,)?) => {
        struct Engine { $($name: $type),* }

        impl Engine {
            fn load() -> Self {
                let library = open_library();
                Self { $(
                    // SAFETY: the type is the one that the engine's headers declare for this symbol.
                    $name: unsafe { transmute::<*mut c_void, $type>(symbol(library, $symbol)) }
                ),* }
            }
        }
    };
}

functions! {
    keep_scavenger_away: c"_ZN3WTF20fastDisableScavengerEv" = extern "C" fn(),
    make_group: c"JSContextGroupCreate" = extern "C" fn() -> Object,
    release_group: c"JSContextGroupRelease" = extern "C" fn(Object),
    limit_time: c"JSContextGroupSetExecutionTimeLimit" = extern "C" fn(Object, f64, ShouldEnd, *mut c_void),
    make_context: c"JSGlobalContextCreateInGroup" = extern "C" fn(Object, Object) -> Object,
    release_context: c"JSGlobalContextRelease" = extern "C" fn(Object),
    make_string: c"JSStringCreateWithUTF8CString" = extern "C" fn(*const c_char) -> Object,
    copy_string: c"JSStringGetUTF8CString" = extern "C" fn(Object, *mut c_char, usize) -> usize,
    to_string: c"JSValueToStringCopy" = extern "C" fn(Object, Object, *mut Object) -> Object,
    evaluate_script: c"JSEvaluateScript" =
        extern "C" fn(Object, Object, Object, Object, c_int, *mut Object) -> Object,
}

fn open_library() -> *mut c_void {
    let library = LIBRARIES.iter().find_map(|name| {
        // SAFETY: a library of the system, whose initialisers are meant to run at any time.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        (!library.is_null()).then_some(library)
    });
    library.expect("the engine is installed: apt-get install libjavascriptcoregtk-4.1-0")
}

fn symbol(library: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: the library came from `dlopen` and is never closed.
    let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!symbol.is_null(), "the engine has {name:?}");
    symbol
}

impl Engine {
    /// Evaluates `source` in a group and context of its own; `watched`, under a time limit that a helper thread of the
    /// engine looks after and that never ends the script.
    fn evaluate(&self, source: &str, watched: bool) -> String {
        let group = (self.make_group)();
        if watched {
            (self.limit_time)(group, 0.03, go_on, null_mut());
        }
        let context = (self.make_context)(group, null_mut());
        let source = CString::new(source).expect("a script without NUL");
        let source = (self.make_string)(source.as_ptr());
        let mut thrown = null_mut();
        let value = (self.evaluate_script)(context, source, null_mut(), null_mut(), 1, &raw mut thrown);
        let shown = (self.to_string)(context, if thrown.is_null() { value } else { thrown }, null_mut());
        let mut text = vec![0_u8; 4096];
        let written = (self.copy_string)(shown, text.as_mut_ptr().cast(), text.len());
        text.truncate(written.saturating_sub(1));
        (self.release_context)(context);
        (self.release_group)(group);
        String::from_utf8(text).expect("the load says UTF-8")
    }
}

/// What a zygote does, and then what its fork does.
fn load() {
    let engine = Engine::load();
    (engine.keep_scavenger_away)();
    engine.evaluate(
        "Math.random(); new Date().toLocaleString(); /a+/.test('aaa'); 1.5.toLocaleString()",
        false,
    );
    let report = confine(Mode::Require, true).expect("this machine can confine a worker");
    assert!(report.is_complete(), "{report:?}");
    say(&engine.evaluate(LOAD, true));
}

#[track_caller]
fn runs_the_load(tier: &[(&str, &str)]) {
    let outcome = run_with("load", tier);
    assert_eq!(outcome.signal(), None, "the load was killed: {outcome:?}");
    assert_eq!(outcome.said().trim(), "35 steps, as expected");
}

#[test]
fn the_load_runs_under_the_filter_without_jit() {
    runs_the_load(&[("JSC_useJIT", "0")]);
}

#[test]
fn the_load_runs_under_the_filter_in_the_baseline_tier() {
    runs_the_load(&[("JSC_useDFGJIT", "0")]);
}

#[test]
fn the_load_runs_under_the_filter_in_the_full_tier() {
    runs_the_load(&[]);
}
