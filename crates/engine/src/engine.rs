//! The engine of this process.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

use crate::ffi::{Context, EngineString, KeptSignals, StackRoom, Table, start};
use crate::heap;
use crate::library::{self, EngineUnavailable};
use crate::shape::Marks;
use crate::tier::Features;

/// JavaScriptCore as it was found on this system, ready to make isolates.
pub struct Engine {
    table: Table,
    library: String,
    started: Once,
    /// The process that made the first isolate, or 0.
    user: AtomicU32,
    marks: OnceLock<Option<Marks>>,
    reads_heap_directly: OnceLock<bool>,
}

/// What the zygote evaluates once: everything that the engine reads from the system when it is first used.
const WARM_UP: &str = include_str!("js/warm_up.js");

static LOADED: Mutex<Option<&'static Engine>> = Mutex::new(None);

impl Engine {
    /// Finds and opens the engine; the first time only, it then stays for the life of the process.
    ///
    /// # Errors
    ///
    /// [`EngineUnavailable`], whose text says what to install. The next call tries again.
    pub fn load() -> Result<&'static Self, EngineUnavailable> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = *loaded {
            return Ok(engine);
        }
        let (table, library) = library::find()?;
        let engine = Box::leak(Box::new(Self {
            table,
            library,
            started: Once::new(),
            user: AtomicU32::new(0),
            marks: OnceLock::new(),
            reads_heap_directly: OnceLock::new(),
        }));
        *loaded = Some(engine);
        Ok(engine)
    }

    /// The library, as it was named to the dynamic linker.
    pub fn library(&self) -> &str {
        &self.library
    }

    /// Whether an evaluation can be stopped from inside. Without it, its timeout, cancel question and heap limit are
    /// not looked at, and only a deadline outside the process ends an endless loop.
    pub fn has_soft_deadline(&self) -> bool {
        self.table.set_execution_time_limit.is_some() && self.table.clear_execution_time_limit.is_some()
    }

    pub(crate) fn table(&'static self) -> &'static Table {
        &self.table
    }

    /// How this engine marks its objects, where that is as expected. Found out once: forks know it.
    pub(crate) fn marks(&'static self) -> Option<&'static Marks> {
        self.marks.get_or_init(|| Marks::of_engine(&self.table)).as_ref()
    }

    /// Whether the size of the heap is read without asking this engine, which is found out with a context of it that runs nothing.
    /// Found out once, as the marks are.
    pub(crate) fn reads_heap_directly(&'static self, context: &Context) -> bool {
        *self.reads_heap_directly.get_or_init(|| heap::is_read_directly(context))
    }

    /// Starts the engine in a process that will fork and never run guest code itself.
    ///
    /// Call it first, while the process has one thread. It still has one afterwards, and its forks need no file to
    /// make isolates: whatever the engine reads once (random seed, memory map, locale data) it has read. The engine
    /// keeps a few descriptors open, and writes to one of them; a fork that closes them must leave their numbers
    /// unused.
    ///
    /// # Errors
    ///
    /// [`InitialiseError`]; the engine cannot be used then.
    pub fn initialise(&'static self, features: impl Into<Features>) -> Result<(), InitialiseError> {
        let features = features.into();
        let mut configured = Err(InitialiseError::StartedAlready);
        self.started.call_once(|| {
            start::disable_scavenger(&self.table);
            configured = if features.options().all(|option| start::set_option(&self.table, option)) {
                Ok(())
            } else {
                start::set_environment(&features.environment()).map_err(InitialiseError::Options)
            };
        });
        configured?;
        // A fork could not ask any more: the answer is in a file.
        StackRoom::of_this_thread();
        let context = Context::new(&self.table).ok_or(InitialiseError::NoContext)?;
        let script = EngineString::from_str(&self.table, WARM_UP);
        let name = EngineString::from_str(&self.table, "");
        match context.evaluate(&script, &name) {
            Ok(value) if context.to_bool(value) => {
                self.marks();
                self.reads_heap_directly(&context);
                Ok(())
            }
            _ => Err(InitialiseError::WarmUp),
        }
    }

    /// Fixes the engine's options for a process that has a life of its own, before its first isolate.
    ///
    /// Returns whether they are in force: `false` when this build of the engine takes them from the environment only,
    /// or when an isolate exists already, since it has read them by then.
    pub fn configure(&'static self, features: impl Into<Features>) -> bool {
        let features = features.into();
        let mut accepted = false;
        self.started.call_once(|| accepted = self.start_beside_host(features));
        accepted
    }

    /// Whether this process may make isolates. A fork of one that has made some may not: the thread that watches
    /// deadlines was not forked with the rest, and the engine would wait for it for ever.
    pub(crate) fn is_this_process(&self) -> bool {
        let this = std::process::id();
        let first = self.user.compare_exchange(0, this, Ordering::Relaxed, Ordering::Relaxed);
        first.is_ok() || first == Err(this)
    }

    /// Starts the engine if nothing has yet, in the default tier where it can be told.
    pub(crate) fn ensure_started(&'static self) {
        self.started.call_once(|| {
            self.start_beside_host(Features::default());
        });
    }

    /// Starts the engine in a process whose signal handlers are not its own.
    fn start_beside_host(&'static self, features: Features) -> bool {
        let signals = KeptSignals::note(&self.table);
        let accepted = features.options().all(|option| start::set_option(&self.table, option));
        drop(Context::new(&self.table));
        if accepted {
            // These options leave the engine without a use for signals; with options of its own choice it stops compiled
            // code and notices WebAssembly's faults with them.
            signals.restore();
        }
        accepted
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("library", &self.library).finish_non_exhaustive()
    }
}

/// Why the engine could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialiseError {
    /// Its options are fixed since an earlier start in this process.
    StartedAlready,
    /// Its options can be set through the environment only, and the process has this many threads that may read it.
    Options(usize),
    /// It has no memory for a context.
    NoContext,
    /// The script that touches every part of it failed.
    WarmUp,
}

impl fmt::Display for InitialiseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StartedAlready => f.write_str("JavaScriptCore was started before; initialise it first"),
            Self::Options(threads) => write!(
                f,
                "JavaScriptCore takes its options from the environment, which a process of {threads} threads cannot \
                 change; initialise it before starting threads"
            ),
            Self::NoContext => f.write_str("JavaScriptCore could not make a context; free some memory"),
            Self::WarmUp => f.write_str(
                "JavaScriptCore failed a script that uses every part of it; reinstall it, or name another with PYDENO_JSC",
            ),
        }
    }
}

impl std::error::Error for InitialiseError {}
