//! A session with its worker: what moves the bytes of the [machine](super::machine).

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::Duration;

use pydeno_wire::message::{ConsoleLevel, HostError, JsError, Language};
use pydeno_wire::{Text, Value};

use crate::agent::envelope::seal;
use crate::agent::error::{AgentError, JournalFault};
use crate::agent::guest::{Collector, Silent, fingerprint, make_runtime, wait_for};
use crate::agent::journal::{Answer, Journal, Spent};
use crate::agent::machine::{Bounds, Call, Called, Machine};
use crate::agent::program::{Attempt, Program};
use crate::agent::surface::Surface;
use crate::clock::Nanos;
use crate::error::{Error, Limit};
use crate::event_loop::{Ended, Progress};
use crate::options::Options;
use crate::runtime::Runtime;
use crate::supervisor::Supervisor;

/// How a program is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As an async function; what models write around it is tolerated.
    Function,
    /// As a script, exactly.
    Script,
}

/// What a session is beyond its runtime.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The tools.
    pub surface: Surface,
    /// How programs are read.
    pub mode: Mode,
    /// Whether a script may declare again what scripts before it declared.
    pub redeclare: bool,
    /// How many calls of tools the session may make.
    pub max_tool_calls: u64,
    /// How long one run may wait for answers in all.
    pub max_pause: Duration,
    /// How long the journal may become.
    pub max_journal_bytes: usize,
    /// Whether a journal is kept.
    pub is_durable: bool,
    /// What is evaluated before anything else, before there are tools.
    pub bootstrap: Option<Text>,
    /// What is known to have been used up, whatever the journal says.
    pub spent: Spent,
}

/// What a session tells while it goes on.
pub trait Hooks {
    /// Takes a line that the guest wrote to its console.
    fn console(&mut self, level: ConsoleLevel, text: Text);
    /// Takes the reason of a promise that was rejected and that nothing handled.
    fn unhandled_rejection(&mut self, error: JsError);
}

/// What [`AgentSession::advance`] has brought.
#[derive(Debug, Default)]
pub struct Turn {
    /// What there is to do, in order.
    pub steps: Vec<Step>,
    /// Whether the socket did not take all there is to write.
    pub wants_to_write: bool,
    /// After how long to call again even if nothing arrives.
    pub look_again: Option<Duration>,
}

/// One thing to do.
#[derive(Debug)]
pub enum Step {
    /// A call is to be answered with [`AgentSession::answer`].
    Call(Call),
    /// The run has ended; its calls that were not answered are nobody's concern any more.
    Ended(Result<Value, AgentError>),
}

/// A session. One thread uses it at a time; [`close`](Self::close) and [`terminate`](Self::terminate) may be called from
/// any.
#[derive(Debug)]
pub struct AgentSession {
    supervisor: Arc<Supervisor>,
    options: Options,
    mode: Mode,
    redeclare: bool,
    bootstrap: Option<Text>,
    runtime: RwLock<Arc<Runtime>>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    machine: Machine,
    phase: Phase,
    /// Since when the guest waits for an answer that nobody has given.
    waits_since: Option<Nanos>,
}

#[derive(Debug)]
enum Phase {
    Idle,
    /// The engine is asked which reading of the program parses.
    Reading {
        program: Program,
        number: usize,
        attempt: Attempt,
        request: u64,
        name: String,
        since: Nanos,
    },
    Running {
        request: u64,
        attempt: Option<Attempt>,
        name: String,
    },
}

impl AgentSession {
    /// Starts a worker for a new session, or, with a journal, has everything happen again up to where the journal ends.
    ///
    /// # Errors
    ///
    /// As [`Runtime::new`]; a journal that is of another engine or of other options; a divergence.
    pub fn new(
        supervisor: &Arc<Supervisor>,
        mut options: Options,
        settings: Settings,
        journal: Option<Journal>,
    ) -> Result<Self, AgentError> {
        let Settings {
            surface,
            mode,
            redeclare,
            max_tool_calls,
            max_pause,
            max_journal_bytes,
            is_durable,
            bootstrap,
            spent,
        } = settings;
        options.max_host_wait = max_pause;
        // What waits is ended by `max_pause`; this is for a host that does not look.
        options.request_timeout =
            options.timeout.saturating_add(max_pause).saturating_add(Duration::from_secs(1));
        let fingerprint = fingerprint(&options, &surface, (mode, redeclare), bootstrap.as_ref());
        let is_loaded = journal.is_some();
        let mut journal = match journal {
            None => Journal {
                clock: options.clock,
                random_seed: options.random_seed,
                fingerprint,
                ..Journal::default()
            },
            Some(journal) if journal.fingerprint == fingerprint => journal,
            Some(_) => {
                let what = "it is of a session with other options or other declared tools".to_owned();
                return Err(JournalFault::Foreign(what).into());
            }
        };
        journal.spent.raise_to(&spent);
        options.clock = journal.clock;
        options.random_seed = journal.random_seed;
        let bounds =
            Bounds { tool_calls: max_tool_calls, pause: max_pause, journal_bytes: max_journal_bytes };
        let mut machine = Machine::new(surface, bounds, journal, is_durable);
        let runtime = Arc::new(make_runtime(supervisor, &options, bootstrap.as_ref(), machine.surface())?);
        machine.set_engine(runtime.engine())?;
        let session = Self {
            supervisor: Arc::clone(supervisor),
            options,
            mode,
            redeclare,
            bootstrap,
            runtime: RwLock::new(Arc::clone(&runtime)),
            state: Mutex::new(State { machine, phase: Phase::Idle, waits_since: None }),
        };
        if is_loaded {
            let mut state = session.state()?;
            session.replay(&mut state, &runtime)?;
            drop(state);
        }
        Ok(session)
    }

    /// The runtime at present. A session gets another one when its worker is lost.
    pub fn runtime(&self) -> Arc<Runtime> {
        Arc::clone(&self.runtime.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the next run needs [`restore`](Self::restore) before.
    pub fn is_stale(&self) -> bool {
        self.state().is_ok_and(|state| state.machine.is_stale)
    }

    /// Whether the session can take another run, in this worker or the next.
    pub fn is_closed(&self) -> bool {
        let keeps = self.state.try_lock().map_or(true, |state| state.machine.keeps_journal());
        let runtime = self.runtime();
        runtime.is_closed() && !(keeps && runtime.was_lost())
    }

    /// Starts a fresh worker and has every run that has ended happen again in it. Waits until that is done.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn restore(&self) -> Result<(), AgentError> {
        let mut state = self.state()?;
        let before = self.runtime();
        if !state.machine.keeps_journal() || (before.is_closed() && !before.was_lost()) {
            return Err(before.ended().into());
        }
        before.abandon();
        let runtime =
            make_runtime(&self.supervisor, &self.options, self.bootstrap.as_ref(), state.machine.surface())?;
        let runtime = Arc::new(runtime);
        state.machine.set_engine(runtime.engine())?;
        *self.runtime.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&runtime);
        self.replay(&mut state, &runtime)
    }

    fn replay(&self, state: &mut State, runtime: &Runtime) -> Result<(), AgentError> {
        state.phase = Phase::Idle;
        state.machine.begin_replay();
        while let Some((source, name, language)) = state.machine.next_replay() {
            self.begin_program(state, runtime, source, &name, language)?;
            while state.machine.run().is_some_and(|run| run.is_replay()) {
                let turn = self.turn(state, runtime, &mut Silent)?;
                if state.machine.run().is_some_and(|run| run.is_replay()) {
                    wait_for(runtime, &turn);
                }
            }
        }
        Ok(())
    }

    /// Begins a run.
    ///
    /// # Errors
    ///
    /// Another has not ended; the runtime is closed; the source is too long.
    pub fn begin(&self, source: Text, name: &str, language: Language) -> Result<(), AgentError> {
        let mut state = self.state()?;
        let runtime = self.runtime();
        runtime.check_source(&source)?;
        if runtime.is_closed() {
            return Err(runtime.ended().into());
        }
        state.machine.begin(source.clone(), name, language)?;
        self.begin_program(&mut state, &runtime, source, name, language)
    }

    fn begin_program(
        &self,
        state: &mut State,
        runtime: &Runtime,
        source: Text,
        name: &str,
        language: Language,
    ) -> Result<(), AgentError> {
        let name = name.to_owned();
        let begun = match self.mode {
            Mode::Script => runtime
                .begin_eval(source, &name, language, self.redeclare)
                .map(|request| Phase::Running { request, attempt: None, name }),
            Mode::Function => {
                let program = Program::new(&source, language);
                let attempt = program.attempt(0).ok_or_else(no_reading)?;
                runtime.begin_eval(attempt.source.clone(), &name, program.language(), false).map(|request| {
                    Phase::Reading { program, number: 0, attempt, request, name, since: Nanos::now() }
                })
            }
        };
        match begun {
            Ok(phase) => {
                state.phase = phase;
                Ok(())
            }
            Err(error) => Err(lose(state, error)),
        }
    }

    /// Takes what has arrived and does what can be done at once.
    ///
    /// # Errors
    ///
    /// The run has ended with this error, and the worker is gone.
    pub fn advance(&self, hooks: &mut dyn Hooks) -> Result<Turn, AgentError> {
        let mut state = self.state()?;
        let runtime = self.runtime();
        let mut turn = self.turn(&mut state, &runtime, hooks)?;
        if let Some(run) = state.machine.run() {
            turn.steps.extend(std::iter::from_fn(|| run.next_untold()).map(Step::Call));
        }
        Ok(turn)
    }

    fn turn(&self, state: &mut State, runtime: &Runtime, hooks: &mut dyn Hooks) -> Result<Turn, AgentError> {
        let mut turn = Turn::default();
        loop {
            let mut host = Collector { calls: Vec::new(), hooks };
            let Progress { ended, wants_to_write, look_again } = match runtime.advance(&mut host) {
                Ok(progress) => progress,
                Err(error) => return Err(lose(state, error)),
            };
            for (wire, function, arguments) in host.calls {
                called(state, runtime, wire, function, arguments)?;
            }
            let mut goes_on = false;
            for Ended { request, outcome, .. } in ended {
                goes_on |= self.ended(state, runtime, request, outcome, &mut turn)?;
            }
            if !goes_on && runtime.is_waiting() {
                let answer = state.machine.next_answer().map_err(|error| fatal(runtime, error))?;
                if let Some((wire, outcome)) = answer {
                    runtime.answer(wire, outcome)?;
                    goes_on = true;
                }
            }
            if !goes_on {
                let waits = runtime.is_waiting() && !matches!(state.phase, Phase::Idle);
                state.waits_since =
                    if waits { state.waits_since.or_else(|| Some(Nanos::now())) } else { None };
                turn.wants_to_write = wants_to_write;
                turn.look_again = look_again;
                break;
            }
        }
        Ok(turn)
    }

    /// A request has ended; whether another was begun.
    fn ended(
        &self,
        state: &mut State,
        runtime: &Runtime,
        ended: u64,
        mut outcome: Result<Value, Error>,
        turn: &mut Turn,
    ) -> Result<bool, AgentError> {
        match std::mem::replace(&mut state.phase, Phase::Idle) {
            Phase::Reading { program, number, attempt, request, name, since } if request == ended => {
                if let Some(functions) = functions(&outcome) {
                    let begun = runtime.begin_invoke(functions[0], Vec::new());
                    runtime.release(&functions);
                    let request = begun.map_err(|error| lose(state, error))?;
                    state.phase = Phase::Running { request, attempt: Some(attempt), name };
                    return Ok(true);
                }
                let is_syntax = matches!(&outcome, Err(Error::Js(error)) if error.name == "SyntaxError");
                let in_time = Nanos::now().since(since) < self.options.timeout;
                if is_syntax
                    && in_time
                    && let Some(attempt) = program.attempt(number + 1)
                {
                    let begun = runtime.begin_eval(attempt.source.clone(), &name, program.language(), false);
                    let request = begun.map_err(|error| lose(state, error))?;
                    state.phase =
                        Phase::Reading { program, number: number + 1, attempt, request, name, since };
                    return Ok(true);
                }
                if matches!(outcome, Ok(_) | Err(Error::Conversion { .. })) {
                    outcome = Err(Error::Js(Box::new(JsError {
                        name: "SyntaxError".into(),
                        message: "the program is not a function's body".into(),
                        ..JsError::default()
                    })));
                }
                relocate(&mut outcome, &attempt, &name);
            }
            Phase::Running { request, attempt, name } if request == ended => {
                if let Some(attempt) = attempt {
                    relocate(&mut outcome, &attempt, &name);
                }
            }
            other => {
                state.phase = other;
                return Ok(false);
            }
        }
        let told = state.machine.ended(outcome).map_err(|error| fatal(runtime, error))?;
        turn.steps.extend(told.map(Step::Ended));
        Ok(false)
    }

    /// Takes the answer to a call; one that nobody waits for any more is dropped. [`advance`](Self::advance) hands it over.
    pub fn answer(&self, call: u64, answer: Answer) -> Result<bool, AgentError> {
        Ok(self.state()?.machine.answer(call, answer))
    }

    /// Asks for the end of the run.
    pub fn cancel(&self) -> Result<(), AgentError> {
        match self.state()?.phase {
            Phase::Idle => Ok(()),
            Phase::Reading { request, .. } | Phase::Running { request, .. } => {
                Ok(self.runtime().cancel(request)?)
            }
        }
    }

    /// How much of its budgets the session has used.
    ///
    /// # Errors
    ///
    /// Another thread uses the session.
    pub fn spent(&self) -> Result<Spent, AgentError> {
        Ok(self.state()?.machine.spent().clone())
    }

    /// Whether a run has not ended.
    pub fn has_run(&self) -> bool {
        self.state().is_ok_and(|state| !matches!(state.phase, Phase::Idle))
    }

    /// Waits for the worker, up to a tenth of a second.
    pub fn wait(&self, turn: &Turn) {
        wait_for(&self.runtime(), turn);
    }

    /// The journal, signed, with the run that waits for an answer if there is one.
    ///
    /// # Errors
    ///
    /// None is kept; it is too long; the key is too short; a run goes on.
    pub fn dump(&self, key: &[u8], associated: &[u8]) -> Result<Vec<u8>, AgentError> {
        let mut state = self.state()?;
        let most = state.machine.bounds().journal_bytes;
        let waits = self.runtime().is_waiting() && state.machine.run().is_some_and(|run| !run.has_answers());
        if !matches!(state.phase, Phase::Idle) && !waits {
            return Err(Error::Busy.into());
        }
        Ok(seal(&state.machine.journal()?, key, associated, most)?)
    }

    /// Closes the session and kills its worker.
    pub fn close(&self) {
        self.runtime().close();
    }

    /// Kills the worker; what runs ends with [`Error::Terminated`].
    pub fn terminate(&self) {
        self.runtime().terminate();
    }

    /// The socket that an event loop waits on.
    pub fn socket(&self) -> Option<Arc<OwnedFd>> {
        self.runtime().socket()
    }

    fn state(&self) -> Result<MutexGuard<'_, State>, Error> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(Error::Busy),
        }
    }
}

/// The guest calls a function.
fn called(
    state: &mut State,
    runtime: &Runtime,
    wire: u64,
    function: u32,
    arguments: Vec<Value>,
) -> Result<(), AgentError> {
    match state.phase {
        Phase::Running { request, .. } => {
            let led_to = state.machine.called(wire, function, arguments);
            if led_to.map_err(|error| fatal(runtime, error))? == Called::Stop {
                runtime.cancel(request)?;
            }
        }
        // A program whose text breaks out of the function around it.
        Phase::Reading { .. } | Phase::Idle => {
            let message = "the program is not a function's body".into();
            runtime.answer(wire, Err(HostError { name: "SyntaxError".into(), message }))?;
        }
    }
    Ok(())
}

/// The run has ended with its worker.
fn lose(state: &mut State, error: Error) -> AgentError {
    state.phase = Phase::Idle;
    state.machine.lost();
    let max_pause = state.machine.bounds().pause;
    let waited = state.waits_since.take().map(|since| Nanos::now().since(since));
    let is_late = matches!(error, Error::Killed { limit: Limit::Time, .. });
    // Nobody looked, so it could only be killed.
    if is_late && waited.is_some_and(|waited| waited > max_pause) {
        return AgentError::MaxPause { max_pause };
    }
    error.into()
}

/// A worker whose guest is not what the journal says is of no use.
fn fatal(runtime: &Runtime, error: AgentError) -> AgentError {
    runtime.abandon();
    error
}

fn no_reading() -> Error {
    Error::InvalidInput { what: "the program has no reading".to_owned() }
}

/// The two functions that a reading that parses is.
fn functions(outcome: &Result<Value, Error>) -> Option<[u64; 2]> {
    match outcome {
        Ok(Value::Array(items)) => match items.as_slice() {
            [Value::Function(program), Value::Function(check)] => Some([program.handle, check.handle]),
            _ => None,
        },
        _ => None,
    }
}

/// Says of the frames of an error where they are in the program.
fn relocate(outcome: &mut Result<Value, Error>, attempt: &Attempt, name: &str) {
    if let Err(Error::Js(error)) = outcome {
        for frame in error.frames.iter_mut().filter(|frame| frame.file == name) {
            frame.column = attempt.column(frame.line, frame.column);
        }
    }
}
