//! A guest's home, driven on the calling thread.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pydeno_wire::message::{ConsoleLevel, ExitStatus, Failure, HostError, SandboxReport};
use pydeno_wire::{EncodeError, Text, Value};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::affinity::{Held, Placement};
use crate::clock::Nanos;
use crate::error::{Error, Limit};
use crate::fork_generation;
use crate::options::Options;
use crate::session::{Event, Session, Stopping};
use crate::supervisor::Supervisor;
use crate::watch::{Verdict, Watch};
use crate::worker::Worker;
use crate::zygote::Zygote;

/// How often a long wait looks whether the caller was interrupted.
const WAIT: Duration = Duration::from_millis(100);
/// How long an interrupted script has to stop before its worker is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(1);

/// What a runtime needs from the code that embeds it.
pub trait HostFunctions {
    /// Calls the host function `function`.
    ///
    /// # Errors
    ///
    /// The inner error is thrown into the guest. [`Interrupted`] ends the evaluation.
    fn call(&mut self, function: u32, arguments: Vec<Value>)
    -> Result<Result<Value, HostError>, Interrupted>;

    /// Takes a line that the guest wrote to its console.
    fn console(&mut self, level: ConsoleLevel, text: Text);

    /// Asked now and then during a long wait.
    ///
    /// # Errors
    ///
    /// [`Interrupted`] ends the evaluation.
    fn check_interrupt(&mut self) -> Result<(), Interrupted>;
}

/// The embedding code wants the evaluation stopped; it knows why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

/// One guest in one confined worker.
///
/// Evaluations of several threads run one after the other. Dropping it kills the worker.
#[derive(Debug)]
pub struct Runtime {
    options: Options,
    supervisor: Arc<Supervisor>,
    zygote: Arc<Zygote>,
    watch: Arc<Watch>,
    sandbox: SandboxReport,
    engine: String,
    generation: u32,
    /// Empty once the runtime is closed.
    driver: Mutex<Option<Driver>>,
    /// The thread that uses `driver`, by the address of a variable of its own; 0 for none.
    holder: AtomicUsize,
}

#[derive(Debug)]
struct Driver {
    socket: OwnedFd,
    session: Session,
    placement: Placement,
}

impl Runtime {
    /// Starts a worker, waits until it has proved its sandbox and gives it its limits.
    pub fn new(supervisor: &Arc<Supervisor>, options: Options) -> Result<Self, Error> {
        let Worker { zygote, socket, mut session, watch, ready } = supervisor.start_worker(&options)?;
        session.configure(&options);
        Ok(Self {
            options,
            supervisor: Arc::clone(supervisor),
            zygote,
            watch,
            sandbox: ready.sandbox,
            engine: ready.engine,
            generation: fork_generation::current(),
            driver: Mutex::new(Some(Driver { socket, session, placement: Placement::default() })),
            holder: AtomicUsize::new(0),
        })
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

    /// Makes host functions visible to the guest, global or as properties of a global object. They are numbered from
    /// the number that `remember` is given; no evaluation runs, and so none of them is called, before it returns.
    pub fn bind(
        &self,
        object: Option<&Text>,
        names: &[Text],
        remember: impl FnOnce(u32),
    ) -> Result<(), Error> {
        let mut entered = self.enter()?;
        let first = entered.driver().session.bind(object, names).map_err(|error| too_long(&error))?;
        remember(first);
        Ok(())
    }

    /// Evaluates a script and returns the value of its last expression.
    pub fn eval(&self, source: Text, name: &str, host: &mut dyn HostFunctions) -> Result<Value, Error> {
        let max = self.options.max_value_bytes;
        if source.len_bytes() as u64 > max {
            let length = source.len_bytes();
            return Err(Error::InvalidInput {
                what: format!("the source has {length} bytes; `max_serialization_bytes` allows {max}"),
            });
        }
        let mut entered = self.enter()?;
        let Driver { socket, session, placement } = entered.driver();
        let request =
            session.eval(Nanos::now(), source, name.to_owned()).map_err(|error| too_long(&error))?;
        if !self.watch.begin(request, session.deadline()) {
            return Err(self.ended());
        }
        let mut evaluation =
            Evaluation { runtime: self, socket, session, placement, host, interrupted_at: None, held: None };
        let outcome = evaluation.run();
        match (self.watch.end(request), outcome) {
            (Ok(()), outcome) => outcome,
            (Err(_), Err(error)) if !error.runtime_survives() => Err(error),
            // The kill was decided just as the evaluation ended by itself.
            (Err(verdict), _) => Err(self.explain(verdict)),
        }
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
        if let Ok(mut driver) = self.driver.try_lock() {
            driver.take();
        }
    }

    fn enter(&self) -> Result<Entered<'_>, Error> {
        if self.generation != fork_generation::current() {
            return Err(Error::ForeignProcess);
        }
        if self.holder.load(Ordering::Relaxed) == this_thread() {
            return Err(Error::Reentrant);
        }
        let driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner);
        if driver.is_none() || self.is_closed() {
            return Err(self.ended());
        }
        self.holder.store(this_thread(), Ordering::Relaxed);
        Ok(Entered { runtime: self, driver })
    }

    /// Why nothing more is taken.
    fn ended(&self) -> Error {
        match self.watch.verdict() {
            Some(Verdict::Terminated) => Error::Terminated,
            _ => Error::Closed,
        }
    }

    fn explain(&self, verdict: Verdict) -> Error {
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
                ExitStatus::Signal(signal) if signal == libc::SIGSYS => Error::SandboxViolation,
                status => Error::WorkerCrashed { status },
            },
        }
    }
}

fn too_long(error: &EncodeError) -> Error {
    Error::InvalidInput { what: error.to_string() }
}

/// The driver, held by one thread.
struct Entered<'a> {
    runtime: &'a Runtime,
    driver: MutexGuard<'a, Option<Driver>>,
}

impl Entered<'_> {
    fn driver(&mut self) -> &mut Driver {
        self.driver
            .as_mut()
            .expect("`enter` has seen it, and it is taken only below or by who holds the lock")
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.runtime.holder.store(0, Ordering::Relaxed);
        if self.runtime.is_closed() {
            self.driver.take();
        }
    }
}

fn this_thread() -> usize {
    thread_local!(static MARK: u8 = const { 0 });
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}

/// One evaluation on the calling thread.
struct Evaluation<'a> {
    runtime: &'a Runtime,
    socket: &'a OwnedFd,
    session: &'a mut Session,
    placement: &'a mut Placement,
    host: &'a mut dyn HostFunctions,
    interrupted_at: Option<Nanos>,
    /// While the calling thread sleeps.
    held: Option<Held>,
}

impl Evaluation<'_> {
    fn run(&mut self) -> Result<Value, Error> {
        loop {
            // Before anything is read: what the worker sent unasked after its last answer is held against it now.
            loop {
                match self.session.next_event(Nanos::now()) {
                    Ok(None) => break,
                    Ok(Some(Event::Done { outcome, stopped })) => return self.done(outcome, stopped),
                    Ok(Some(Event::Call { function, arguments })) => self.call(function, arguments),
                    Ok(Some(Event::Console { level, text })) => self.host.console(level, text),
                    Ok(Some(Event::Ready(_) | Event::Refused(_))) => {
                        unreachable!("the session is past its start")
                    }
                    Err(violation) => {
                        self.runtime.watch.kill(Verdict::Violation);
                        return Err(Error::ProtocolViolation { what: violation.0 });
                    }
                }
            }
            self.held = self.placement.together(self.runtime.watch.pid());
            self.write()?;
            self.read()?;
            let held = self.held.take();
            self.placement.woke(held);
        }
    }

    fn done(&self, outcome: Result<Value, Failure>, stopped: Option<Stopping>) -> Result<Value, Error> {
        let options = &self.runtime.options;
        match stopped {
            Some(Stopping::Cancelled) => return Err(Error::Cancelled),
            Some(Stopping::HostCallBudget) => {
                return Err(Error::HostCallBudget { max_host_calls: options.max_host_calls });
            }
            None => {}
        }
        outcome.map_err(|failure| match failure {
            Failure::Js(error) => Error::Js(Box::new(error)),
            Failure::Conversion { path, reason } => Error::Conversion { path, reason },
            Failure::Timeout => Error::Stopped { timeout: options.timeout },
            Failure::HeapLimit => Error::HeapFull { max_heap_size: options.max_heap_size },
            Failure::NeverSettles => Error::NeverSettles,
            Failure::CannotWait => Error::CannotWait,
            Failure::UnknownFunction => Error::UnknownFunction,
            Failure::Cancelled => Error::Cancelled,
        })
    }

    fn call(&mut self, function: u32, arguments: Vec<Value>) {
        let watch = &self.runtime.watch;
        watch.set_deadline(self.session.deadline());
        self.runtime.supervisor.monitor().ensure_awake();
        let answer = self.host.call(function, arguments).unwrap_or_else(|Interrupted| {
            self.interrupt();
            Err(HostError { name: "Error".into(), message: "the evaluation is being stopped".into() })
        });
        let now = Nanos::now();
        if let Err(error) = self.session.answer(now, answer) {
            let message = format!("the host function's value cannot cross: {error}");
            let refusal = HostError { name: "TypeError".into(), message: message.into() };
            self.session.answer(now, Err(refusal)).expect("an error of a few words is within every budget");
        }
        watch.set_deadline(self.session.deadline());
    }

    fn interrupt(&mut self) {
        self.interrupted_at.get_or_insert_with(Nanos::now);
        self.session.stop(Stopping::Cancelled);
    }

    /// Writes what the session has to say. The worker reads whenever it does not evaluate, so this waits only for
    /// values larger than the socket's buffer, or for a worker that misbehaves and is killed at the deadline.
    fn write(&mut self) -> Result<(), Error> {
        let mut written = 0;
        while written < self.session.output().len() {
            match send(
                self.socket,
                &self.session.output()[written..],
                SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
            ) {
                Ok(count) => written += count,
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT)?,
                Err(Errno::INTR) => self.look_after_the_caller(),
                Err(_) => return Err(self.lost()),
            }
        }
        self.session.output().clear();
        Ok(())
    }

    /// Waits for bytes of the worker.
    fn read(&mut self) -> Result<(), Error> {
        loop {
            match recv(self.socket, self.session.reader().spare(1), RecvFlags::empty()) {
                Ok((0, _)) => return Err(self.lost()),
                Ok((received, _)) => {
                    self.session.reader().filled(received);
                    return Ok(());
                }
                Err(Errno::AGAIN) => self.wait(PollFlags::IN)?,
                Err(Errno::INTR) => {
                    self.look_after_the_caller();
                    self.write()?;
                }
                Err(_) => return Err(self.lost()),
            }
        }
    }

    /// A wait that has turned out to be long.
    fn wait(&mut self, what: PollFlags) -> Result<(), Error> {
        self.part();
        self.runtime.supervisor.monitor().ensure_awake();
        let timeout = Timespec::try_from(WAIT).expect("a tenth of a second fits a timespec");
        match poll(&mut [PollFd::new(self.socket, what)], Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => {
                self.look_after_the_caller();
                if what == PollFlags::IN {
                    self.write()?;
                }
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(_) => Err(self.lost()),
        }
    }

    /// Lets worker and caller go their own ways.
    fn part(&mut self) {
        self.held = None;
        self.placement.release(self.runtime.watch.pid());
    }

    fn look_after_the_caller(&mut self) {
        // Python's signal handlers may run here, and are not to be held on a core.
        self.part();
        match self.interrupted_at {
            None if self.host.check_interrupt() == Err(Interrupted) => self.interrupt(),
            Some(since) if Nanos::now().since(since) > STOP_PATIENCE => {
                self.runtime.watch.kill(Verdict::Terminated);
            }
            _ => {}
        }
    }

    /// The worker has hung up. If nobody here killed it, its zygote knows why; one that hangs up and lives on is ended.
    fn lost(&self) -> Error {
        let watch = &self.runtime.watch;
        watch.put_to_rest();
        self.runtime.explain(watch.verdict().unwrap_or(Verdict::Lost))
    }
}
