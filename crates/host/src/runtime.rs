//! A guest's home.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use pydeno_wire::message::{ExitStatus, Failure, Language, Place, SandboxReport, StreamRequest, WasmModule};
use pydeno_wire::{EncodeError, Text, Value};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::blocking;
use crate::clock::Nanos;
use crate::error::{Error, Limit};
use crate::fork_generation;
use crate::host_functions::{HostFunctions, Interrupted};
use crate::link::Link;
use crate::options::{Options, WebAssembly};
use crate::session::{Done, Session, Stopping};
use crate::supervisor::Supervisor;
use crate::turn::{Turn, Turns};
use crate::watch::{Verdict, Watch};
use crate::worker::Worker;
use crate::zygote::Zygote;

/// One guest in one confined worker.
///
/// Two ways lead in. [`eval`](Self::eval), [`invoke`](Self::invoke) and [`pull`](Self::pull) block the calling thread; those of several threads
/// run one after the other. [`begin_eval`](Self::begin_eval), [`begin_invoke`](Self::begin_invoke),
/// [`begin_pull`](Self::begin_pull) and [`advance`](Self::advance) never block and are for an event loop; what they begin overlaps. While one way is in use
/// the other answers [`Error::Busy`]. Dropping the runtime kills the worker.
#[derive(Debug)]
pub struct Runtime {
    pub(crate) options: Options,
    pub(crate) supervisor: Arc<Supervisor>,
    zygote: Arc<Zygote>,
    pub(crate) watch: Arc<Watch>,
    sandbox: SandboxReport,
    engine: String,
    generation: u32,
    /// Empty once the runtime is closed. Unlocked while a host function runs.
    link: Mutex<Option<Link>>,
    /// The link's own, to be had while the link is locked.
    socket: Weak<OwnedFd>,
    /// Held for a whole blocking evaluation.
    turns: Turns,
    /// The thread that runs the guest or something of the host for it, by the address of a variable of its own; 0 for
    /// none. [`CALLING`] is added while that is a host function.
    holder: AtomicUsize,
    /// The session's own.
    streams: Arc<AtomicBool>,
    /// Functions and streams of the guest that nobody here holds any more; told to the worker when there is something else to tell.
    released: Mutex<Vec<u64>>,
}

/// The link, for one thread for a while.
pub(crate) type LinkGuard<'a> = MutexGuard<'a, Option<Link>>;

impl Runtime {
    /// Starts a worker, waits until it has proved its sandbox and gives it its limits.
    pub fn new(supervisor: &Arc<Supervisor>, options: Options) -> Result<Self, Error> {
        let worker = supervisor.start_worker(&options)?;
        Ok(Self::of_worker(supervisor, options, worker))
    }

    /// Gives a worker its limits.
    pub(crate) fn of_worker(supervisor: &Arc<Supervisor>, options: Options, worker: Worker) -> Self {
        let Worker { zygote, socket, mut session, watch, ready } = worker;
        supervisor.monitor().add(&watch);
        session.configure(&options);
        let streams = Arc::clone(session.streams());
        let link = Link::new(socket, session);
        Self {
            options,
            supervisor: Arc::clone(supervisor),
            zygote,
            watch,
            sandbox: ready.sandbox,
            engine: ready.engine,
            generation: fork_generation::current(),
            socket: Arc::downgrade(&link.socket),
            link: Mutex::new(Some(link)),
            turns: Turns::default(),
            holder: AtomicUsize::new(0),
            streams,
            released: Mutex::default(),
        }
    }

    /// Ends the conversation and lets the process live: it is a template, and no worker.
    pub(crate) fn part(self) -> (Arc<Zygote>, Arc<Watch>) {
        let Self { zygote, watch, .. } = self;
        (zygote, watch)
    }

    /// The layers of the worker's sandbox.
    pub fn sandbox(&self) -> &SandboxReport {
        &self.sandbox
    }

    /// The engine's library, as the worker found it.
    pub fn engine(&self) -> &str {
        &self.engine
    }

    /// The worker's process id.
    pub fn worker_pid(&self) -> i32 {
        self.watch.pid().as_raw_pid()
    }

    /// The socket that an event loop waits on; `None` once the runtime is closed.
    pub fn socket(&self) -> Option<Arc<OwnedFd>> {
        self.socket.upgrade()
    }

    /// Whether the worker has ended, or is about to because its zygote has. One that says something unasked is as good as
    /// dead.
    pub(crate) fn is_dead(&self) -> bool {
        let Some(socket) = self.socket() else { return true };
        let signs =
            &mut [&*socket, self.zygote.pidfd()].map(|descriptor| PollFd::new(descriptor, PollFlags::IN));
        poll(signs, Some(&Timespec::default())) != Ok(0)
    }

    /// Whether the calling thread runs a host function for the guest, from which functions of the guest may be invoked.
    pub fn is_calling(&self) -> bool {
        self.holder.load(Ordering::Relaxed) == this_thread() | CALLING
    }

    /// Whether the guest has nothing left to run before an asynchronous call is answered.
    pub fn is_waiting(&self) -> bool {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        link.as_ref().is_some_and(|link| link.session.is_waiting())
    }

    /// Whether the runtime is closed and nobody asked for that.
    pub(crate) fn was_lost(&self) -> bool {
        !matches!(self.watch.verdict(), None | Some(Verdict::Closed | Verdict::Terminated))
    }

    /// Kills a worker that is to be replaced by another.
    pub(crate) fn abandon(&self) {
        self.end(Verdict::Lost);
    }

    /// Makes host functions visible to the guest, global or as properties of a global object; `asynchronous` says of each
    /// whether the guest gets a promise. They are numbered from the number that `remember` is given; none of them is
    /// called before it returns.
    pub fn bind(
        &self,
        object: Option<&Text>,
        names: &[Text],
        asynchronous: &[bool],
        remember: impl FnOnce(u32),
    ) -> Result<(), Error> {
        self.bind_in(&Place::from(object), names, asynchronous, remember)
    }

    /// As [`bind`](Self::bind), for functions in any [`Place`].
    pub fn bind_in(
        &self,
        place: &Place,
        names: &[Text],
        asynchronous: &[bool],
        remember: impl FnOnce(u32),
    ) -> Result<(), Error> {
        let mut guard = self.enter()?;
        let link = self.linked(&mut guard)?;
        let first = link.session.bind(place, names, asynchronous).map_err(|error| too_long(&error))?;
        remember(first);
        Ok(())
    }

    /// Sends what the worker is to be told ahead of the first request, as far as the socket takes it at once.
    pub(crate) fn tell(&self) -> Result<(), Error> {
        let mut guard = self.enter()?;
        let written = self.linked(&mut guard)?.write();
        drop(guard);
        written.map(|_| ()).map_err(|_| self.lost())
    }

    /// Evaluates a script and returns the value of its last expression. With `redeclare`, a later script can declare the
    /// `let`, `const` and `class` of its top level again.
    ///
    /// Asynchronous host functions need an event loop, see [`begin_eval`](Self::begin_eval).
    pub fn eval(
        &self,
        source: Text,
        name: &str,
        language: Language,
        redeclare: bool,
        host: &mut dyn HostFunctions,
    ) -> Result<Value, Error> {
        self.check_source(&source)?;
        self.eval_blocking(host, |session| {
            session.eval(Nanos::now(), source, name.to_owned(), language, redeclare)
        })
    }

    /// Evaluates a module and returns its exports as an object. From then on `name` is what it can be imported by.
    ///
    /// Asynchronous host functions need an event loop, see [`begin_eval_module`](Self::begin_eval_module).
    pub fn eval_module(
        &self,
        source: Text,
        name: &str,
        language: Language,
        host: &mut dyn HostFunctions,
    ) -> Result<Value, Error> {
        self.check_source(&source)?;
        self.eval_blocking(host, |session| {
            session.eval_module(Nanos::now(), source, name.to_owned(), language)
        })
    }

    /// Loads a WebAssembly module of the host's beside the guest, which gets what it exports as a global object of the
    /// module's name; the value is that object.
    ///
    /// The functions that it imports are synchronous and numbered from the number that `remember` is given; none of them is
    /// called before it returns.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] where the [options](Options::webassembly) do not allow it, or the module is too large. One that
    /// the engine refuses, or whose start function fails, is an [`Error::Js`].
    pub fn load_wasm(
        &self,
        module: WasmModule,
        remember: impl FnOnce(u32),
        host: &mut dyn HostFunctions,
    ) -> Result<Value, Error> {
        self.check_wasm(&module)?;
        self.eval_blocking(host, |session| {
            let (request, first) = session.load_wasm(Nanos::now(), module)?;
            remember(first);
            Ok(request)
        })
    }

    pub(crate) fn check_wasm(&self, module: &WasmModule) -> Result<(), Error> {
        let (length, max) = (module.code.len(), self.options.max_value_bytes);
        let what = if self.options.webassembly == WebAssembly::None {
            "load_wasm needs a runtime whose engine has WebAssembly; start it with webassembly=\"host\""
                .to_owned()
        } else if length as u64 > max {
            format!("the module has {length} bytes; `max_serialization_bytes` allows {max}")
        } else {
            return Ok(());
        };
        Err(Error::InvalidInput { what })
    }

    fn eval_blocking(
        &self,
        host: &mut dyn HostFunctions,
        begin: impl FnOnce(&mut Session) -> Result<u64, EncodeError>,
    ) -> Result<Value, Error> {
        let turn = self.turn(host)?;
        let mut guard = self.enter()?;
        let link = self.linked(&mut guard)?;
        if !link.session.is_idle() {
            return Err(Error::Busy);
        }
        self.tell_released(link);
        let request = begin(&mut link.session).map_err(|error| too_long(&error))?;
        let outcome = blocking::run(self, guard, request, host);
        drop(turn);
        outcome
    }

    /// Calls a function of the guest.
    ///
    /// From inside a synchronous host function this is possible too, on the thread that runs it; then the result
    /// cannot be a promise that is yet to settle.
    pub fn invoke(
        &self,
        function: u64,
        arguments: Vec<Value>,
        host: &mut dyn HostFunctions,
    ) -> Result<Value, Error> {
        let nested = self.is_calling();
        let turn = if nested { None } else { Some(self.turn(host)?) };
        let mut guard = self.lock()?;
        let link = self.linked(&mut guard)?;
        match (nested, link.session.is_blocked(), link.session.is_idle()) {
            (true, true, _) | (false, _, true) => {}
            (true, false, _) => return Err(Error::Reentrant),
            (false, _, false) => return Err(Error::Busy),
        }
        self.tell_released(link);
        let begun = link.session.invoke(Nanos::now(), function, arguments);
        let request = begun.map_err(|error| conversion(&error))?;
        let outcome = blocking::run(self, guard, request, host);
        drop(turn);
        outcome
    }

    /// Asks a stream of the guest for its next item, or to end; at its end that is [`Error::StreamEnded`].
    ///
    /// Not from inside a host function: the guest cannot go on before it returns.
    pub fn pull(
        &self,
        stream: u64,
        what: StreamRequest,
        host: &mut dyn HostFunctions,
    ) -> Result<Value, Error> {
        let turn = self.turn(host)?;
        let mut guard = self.enter()?;
        let link = self.linked(&mut guard)?;
        if !link.session.is_idle() {
            return Err(Error::Busy);
        }
        self.tell_released(link);
        let request = link.session.pull(Nanos::now(), stream, what);
        let outcome = blocking::run(self, guard, request, host);
        drop(turn);
        outcome
    }

    /// The switch that lets streams of the host cross: whoever sends one to the guest sets it before. Without it a guest that
    /// asks one does what it must not.
    pub fn streams(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.streams)
    }

    /// Lets go of functions and streams of the guest; the worker is told with the next request.
    pub fn release(&self, functions: &[u64]) {
        self.released.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(functions);
    }

    /// Kills the worker. An evaluation that runs on another thread ends with [`Error::Closed`].
    pub fn close(&self) {
        self.end(Verdict::Closed);
    }

    /// Kills the worker. An evaluation that runs on another thread ends with [`Error::Terminated`].
    pub fn terminate(&self) {
        self.end(Verdict::Terminated);
    }

    /// Whether the runtime takes no further evaluations.
    pub fn is_closed(&self) -> bool {
        self.watch.verdict().is_some()
    }

    fn end(&self, verdict: Verdict) {
        self.watch.kill(verdict);
        // A thread that evaluates holds the lock, sees the worker's end, and gives the socket back itself.
        if let Ok(mut link) = self.link.try_lock() {
            link.take();
        }
    }

    pub(crate) fn check_source(&self, source: &Text) -> Result<(), Error> {
        let max = self.options.max_value_bytes;
        let length = source.len_bytes();
        if length as u64 <= max {
            return Ok(());
        }
        Err(Error::InvalidInput {
            what: format!("the source has {length} bytes; `max_serialization_bytes` allows {max}"),
        })
    }

    /// Waits for other threads' evaluations.
    fn turn(&self, host: &mut dyn HostFunctions) -> Result<Turn<'_>, Error> {
        if self.generation != fork_generation::current() {
            return Err(Error::ForeignProcess);
        }
        if self.is_held_here() {
            return Err(Error::Reentrant);
        }
        self.turns.wait(|| {
            if self.is_closed() {
                return Err(self.ended());
            }
            host.check_interrupt().map_err(|Interrupted| Error::Cancelled)
        })
    }

    /// Locks the link without waiting for a blocking evaluation.
    pub(crate) fn enter_at_once(&self) -> Result<LinkGuard<'_>, Error> {
        if self.generation != fork_generation::current() {
            return Err(Error::ForeignProcess);
        }
        if self.is_held_here() {
            return Err(Error::Reentrant);
        }
        if self.is_held() {
            return Err(Error::Busy);
        }
        let _turn = self.turns.take().ok_or(Error::Busy)?;
        self.enter()
    }

    /// Locks the link for something that must not be asked from inside a host function.
    pub(crate) fn enter(&self) -> Result<LinkGuard<'_>, Error> {
        if self.is_held_here() {
            return Err(Error::Reentrant);
        }
        self.lock()
    }

    pub(crate) fn lock(&self) -> Result<LinkGuard<'_>, Error> {
        if self.generation != fork_generation::current() {
            return Err(Error::ForeignProcess);
        }
        self.usable(self.link.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn usable<'g>(&self, mut guard: LinkGuard<'g>) -> Result<LinkGuard<'g>, Error> {
        if guard.is_none() || self.is_closed() {
            guard.take();
            return Err(self.ended());
        }
        Ok(guard)
    }

    /// Locks the link for something that has begun, which fails as what it is where the worker was killed meanwhile.
    pub(crate) fn lock_again(&self) -> Result<LinkGuard<'_>, Error> {
        if let Some(verdict) = self.watch.verdict() {
            drop(self.lock());
            return Err(self.explain(verdict));
        }
        self.lock()
    }

    /// As [`lock_again`](Self::lock_again), or `None` where another thread has the link.
    pub(crate) fn try_lock_again(&self) -> Result<Option<LinkGuard<'_>>, Error> {
        if self.generation != fork_generation::current() {
            return Err(Error::ForeignProcess);
        }
        let guard = match self.link.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(None),
        };
        match self.watch.verdict() {
            Some(verdict) => {
                drop(self.usable(guard));
                Err(self.explain(verdict))
            }
            None => self.usable(guard).map(Some),
        }
    }

    /// The link in its guard; it is there unless the runtime was closed meanwhile.
    pub(crate) fn linked<'g>(&self, guard: &'g mut LinkGuard<'_>) -> Result<&'g mut Link, Error> {
        guard.as_mut().ok_or_else(|| self.ended())
    }

    /// Gives the socket back if the runtime is closed.
    pub(crate) fn leave(&self, mut guard: LinkGuard<'_>) {
        if self.is_closed() {
            guard.take();
        }
    }

    pub(crate) fn tell_released(&self, link: &mut Link) {
        let mut released = self.released.lock().unwrap_or_else(PoisonError::into_inner);
        if !released.is_empty() {
            link.session.release(&released);
            released.clear();
        }
    }

    /// Marks the calling thread as the one that runs the guest; what it was marked as before.
    pub(crate) fn hold(&self) -> usize {
        self.holder.swap(this_thread(), Ordering::Relaxed)
    }

    pub(crate) fn let_go(&self, before: usize) {
        self.holder.store(before, Ordering::Relaxed);
    }

    /// Runs a host function; meanwhile the calling thread may invoke functions of the guest.
    pub(crate) fn calling<T>(&self, function: impl FnOnce() -> T) -> T {
        self.holder.fetch_or(CALLING, Ordering::Relaxed);
        let value = function();
        self.holder.fetch_and(!CALLING, Ordering::Relaxed);
        value
    }

    /// Whether some thread runs the guest or something for it.
    pub(crate) fn is_held(&self) -> bool {
        self.holder.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn is_held_here(&self) -> bool {
        self.holder.load(Ordering::Relaxed) & !CALLING == this_thread()
    }

    /// Why nothing more is taken.
    pub(crate) fn ended(&self) -> Error {
        match self.watch.verdict() {
            Some(Verdict::Terminated) => Error::Terminated,
            _ => Error::Closed,
        }
    }

    /// The worker has hung up. If nobody here killed it, its zygote knows why; one that hangs up and lives on is ended.
    pub(crate) fn lost(&self) -> Error {
        self.watch.put_to_rest();
        self.explain(self.watch.verdict().unwrap_or(Verdict::Lost))
    }

    pub(crate) fn outcome(&self, done: Done) -> Result<Value, Error> {
        let options = &self.options;
        match done.stopped {
            Some(Stopping::Cancelled) => return Err(Error::Cancelled),
            Some(Stopping::HostCallBudget) => {
                return Err(Error::HostCallBudget { max_host_calls: options.max_host_calls });
            }
            Some(Stopping::InflightLimit) => {
                return Err(Error::InflightLimit {
                    max_inflight_host_calls: options.max_inflight_host_calls,
                });
            }
            Some(Stopping::HostWait) => {
                return Err(Error::HostWait { max_host_wait: options.max_host_wait });
            }
            Some(Stopping::RequestTimeout) => {
                return Err(Error::StoppedLate { request_timeout: options.request_timeout });
            }
            None => {}
        }
        done.outcome.map_err(|failure| match failure {
            Failure::Js(error) => Error::Js(Box::new(error)),
            Failure::Conversion { path, reason } => Error::Conversion { path, reason },
            Failure::Timeout => Error::Stopped { timeout: options.timeout },
            Failure::HeapLimit => Error::HeapFull { max_heap_size: options.max_heap_size },
            Failure::NeverSettles => Error::NeverSettles,
            Failure::CannotWait => Error::CannotWait,
            Failure::UnknownFunction => Error::UnknownFunction,
            Failure::StreamEnded => Error::StreamEnded,
            Failure::Cancelled => Error::Cancelled,
        })
    }

    pub(crate) fn explain(&self, verdict: Verdict) -> Error {
        let options = &self.options;
        match verdict {
            Verdict::Over(limit) => {
                let allowed = match limit {
                    Limit::Time => {
                        format!("{:?} ({:?} with host functions)", options.timeout, options.request_timeout)
                    }
                    Limit::Cpu => format!("{:?}", options.max_cpu()),
                    Limit::Memory => format!("{} bytes", options.max_memory),
                    Limit::Threads => format!("{}", options.jit.max_threads()),
                };
                Error::Killed { limit, allowed }
            }
            Verdict::Unmeasurable => Error::LimitsUnmeasurable,
            Verdict::Closed => Error::Closed,
            Verdict::Terminated => Error::Terminated,
            Verdict::Violation => Error::ProtocolViolation { what: "an earlier message".into() },
            Verdict::Lost => match self.zygote.collect(self.watch.pid()) {
                ExitStatus::Signal(libc::SIGSYS) => Error::SandboxViolation,
                ExitStatus::Signal(libc::SIGKILL) if self.watch.ran_out_of_memory() => {
                    self.explain(Verdict::Over(Limit::Memory))
                }
                status => Error::WorkerCrashed { status },
            },
        }
    }
}

pub(crate) fn too_long(error: &EncodeError) -> Error {
    Error::InvalidInput { what: error.to_string() }
}

/// An argument that does not fit.
pub(crate) fn conversion(error: &EncodeError) -> Error {
    let path = error.path().map_or_else(|| "$".to_owned(), ToString::to_string);
    Error::Conversion { path, reason: error.reason() }
}

/// Added to a thread's number, which is an even one.
const CALLING: usize = 1;

fn this_thread() -> usize {
    thread_local!(static MARK: u16 = const { 0 });
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}
