//! A session as a state machine without input or output: budgets, the order of calls and answers, the journal, the replay.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use pydeno_wire::message::{HostError, Language};
use pydeno_wire::{Text, Value};

use crate::agent::digest;
use crate::agent::error::{AgentError, JournalFault};
use crate::agent::journal::{Answer, Event, Journal, RecordedRun, Spent, ToolError, ToolErrorKind};
use crate::agent::run::Run;
use crate::agent::surface::{Function, Surface, has_function};
use crate::error::Error;

/// A call that somebody is to answer.
#[derive(Debug, PartialEq)]
pub struct Call {
    /// Its number: unique in the session, and the same after a replay.
    pub id: u64,
    /// What is called.
    pub target: Target,
    /// The arguments.
    pub arguments: Vec<Value>,
}

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The tool with this number.
    Tool(usize),
    /// A search of the catalog.
    Search,
    /// A tool's description.
    Describe,
}

/// What bounds a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) tool_calls: u64,
    pub(crate) pause: Duration,
    pub(crate) journal_bytes: usize,
}

#[derive(Debug)]
pub(crate) struct Machine {
    surface: Surface,
    by_name: HashMap<Text, usize>,
    bounds: Bounds,
    /// With the runs that have ended. It is kept current where `keeps` says so, and its budgets always.
    journal: Journal,
    keeps: Keeps,
    journal_bytes: usize,
    run: Option<Run>,
    /// Runs of the journal that are yet to happen again.
    to_replay: VecDeque<RecordedRun>,
    /// Why the run that goes on is being stopped.
    stopped: Option<Stopped>,
    /// Whether the guest is no longer what the journal says, so that a fresh worker is needed.
    pub(crate) is_stale: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    Journal,
    Nothing(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    CallBudget,
}

/// The worker's number of a call, and its answer.
pub(crate) type HandedOver = (u64, Result<Value, HostError>);

/// What a call leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Called {
    /// The run goes on.
    Noted,
    /// The run is to be stopped.
    Stop,
}

impl Machine {
    pub(crate) fn new(surface: Surface, bounds: Bounds, journal: Journal, is_durable: bool) -> Self {
        let keeps = if is_durable {
            Keeps::Journal
        } else {
            Keeps::Nothing("the session was made with durable=False")
        };
        Self {
            by_name: surface.by_name(),
            surface,
            bounds,
            journal_bytes: journal.size(),
            journal,
            keeps,
            run: None,
            to_replay: VecDeque::new(),
            stopped: None,
            is_stale: false,
        }
    }

    pub(crate) fn surface(&self) -> &Surface {
        &self.surface
    }

    pub(crate) fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    pub(crate) fn spent(&self) -> &Spent {
        &self.journal.spent
    }

    pub(crate) fn run(&mut self) -> Option<&mut Run> {
        self.run.as_mut()
    }

    pub(crate) fn keeps_journal(&self) -> bool {
        self.keeps == Keeps::Journal
    }

    /// What is to be said of the engine once it is known.
    pub(crate) fn set_engine(&mut self, engine: &str) -> Result<(), JournalFault> {
        if self.journal.engine.is_empty() {
            engine.clone_into(&mut self.journal.engine);
        }
        if self.journal.engine == engine {
            return Ok(());
        }
        let other = &self.journal.engine;
        Err(JournalFault::Foreign(format!(
            "it was written with the engine {other:?}, and this is {engine:?}"
        )))
    }

    pub(crate) fn begin(&mut self, source: Text, name: &str, language: Language) -> Result<(), AgentError> {
        if self.run.is_some() {
            let what = "a run has not ended: resume it, or cancel it, before another".to_owned();
            return Err(Error::InvalidInput { what }.into());
        }
        let first_call = self.journal.spent.next_call;
        let record =
            RecordedRun { source, name: name.to_owned(), language, first_call, ..RecordedRun::default() };
        self.run = Some(Run::new(record, false));
        self.stopped = None;
        Ok(())
    }

    /// Has the whole journal happen again in a fresh worker.
    pub(crate) fn begin_replay(&mut self) {
        self.to_replay = std::mem::take(&mut self.journal.runs).into();
        self.run = None;
        self.stopped = None;
        self.is_stale = false;
    }

    /// The program, the name and the language of the run that is to happen again next.
    pub(crate) fn next_replay(&mut self) -> Option<(Text, String, Language)> {
        let record = self.to_replay.pop_front()?;
        let program = (record.source.clone(), record.name.clone(), record.language);
        self.run = Some(Run::new(record, true));
        Some(program)
    }

    /// The guest calls a function.
    pub(crate) fn called(
        &mut self,
        wire: u64,
        function: u32,
        mut arguments: Vec<Value>,
    ) -> Result<Called, AgentError> {
        let Some(run) = &mut self.run else { return Ok(Called::Stop) };
        let Some(kind) = self.surface.function(function) else { return Ok(Called::Stop) };
        let digest = digest::of_values("arguments", &arguments).unwrap_or_default();
        let target = match kind {
            Function::Tool(tool) => Ok(Target::Tool(tool)),
            Function::Search => Ok(Target::Search),
            Function::Describe => Ok(Target::Describe),
            Function::CallTool => called_by_name(&self.by_name, &mut arguments),
        };
        let target = match target {
            Ok(_) if arguments.iter().any(has_function) => Err(arguments_error(
                "a function or stream cannot be passed to a tool; call or read it, and pass what it gives",
            )),
            target => target,
        };
        let tool = match target {
            Ok(Target::Tool(tool)) => Some(tool),
            _ => None,
        };
        let is_replay = run.is_replay();
        let index = match run.call(wire, tool, function, digest) {
            Ok(index) => index,
            Err(what) => return Err(self.divergence(what)),
        };
        let id = run.record.first_call + index as u64;
        if is_replay {
            // Whether it was refused then is in the journal.
            if let Ok(target) = target {
                run.tell(Call { id, target, arguments });
            }
            return Ok(Called::Noted);
        }
        self.journal.spent.next_call = self.journal.spent.next_call.max(id + 1);
        self.journal_bytes += Event::Call { function, arguments: digest }.size();
        let target = target.and_then(|target| match tool.and_then(|tool| self.over_budget(tool)) {
            Some(refusal) => Err(refusal),
            None => Ok(target),
        });
        let Some(run) = &mut self.run else { return Ok(Called::Stop) };
        match target {
            Ok(target) => {
                if let Target::Tool(tool) = target
                    && !self.journal.spent.take(&self.surface, tool, self.bounds.tool_calls)
                {
                    self.stopped = Some(Stopped::CallBudget);
                    return Ok(Called::Stop);
                }
                run.tell(Call { id, target, arguments });
            }
            Err(refusal) => {
                run.answer(index, Answer::Error(refusal));
            }
        }
        Ok(Called::Noted)
    }

    /// Why a tool's own budget does not allow another call.
    fn over_budget(&self, tool: usize) -> Option<ToolError> {
        let tool = self.surface.tools.get(tool)?;
        let name = tool.name.to_string_lossy();
        let used = self.journal.spent.by_tool.get(&*name).copied().unwrap_or(0);
        let most = tool.max_calls.filter(|&most| used >= most)?;
        let message = format!("the tool {name} may be called {most} times in a session, and has been");
        Some(ToolError {
            kind: ToolErrorKind::Budget,
            name: "ToolBudgetError".into(),
            message: message.into(),
        })
    }

    /// Takes the answer to a call; false when nobody waits for it any more.
    pub(crate) fn answer(&mut self, call: u64, answer: Answer) -> bool {
        let Some(run) = &mut self.run else { return false };
        let index = call.checked_sub(run.record.first_call).and_then(|index| usize::try_from(index).ok());
        let Some(index) = index else { return false };
        let size = Event::Answer { call: 0, answer: answer.clone() }.size();
        let taken = run.answer(index, answer);
        if taken {
            self.journal_bytes += size;
        }
        taken
    }

    /// The guest waits: what to hand over now.
    pub(crate) fn next_answer(&mut self) -> Result<Option<HandedOver>, AgentError> {
        let Some(run) = &mut self.run else { return Ok(None) };
        match run.next_answer() {
            Ok(answer) => Ok(answer.map(|(wire, answer)| (wire, answer.into_outcome()))),
            Err(what) => Err(self.divergence(what)),
        }
    }

    /// The run has ended, as this; what to tell of it, unless it was a replay.
    pub(crate) fn ended(
        &mut self,
        ended: Result<Value, Error>,
    ) -> Result<Option<Result<Value, AgentError>>, AgentError> {
        let Some(mut run) = self.run.take() else { return Ok(None) };
        let is_replay = run.is_replay();
        let ended = match ended {
            Ok(value) if has_function(&value) => Err(Error::Conversion {
                path: "$".to_owned(),
                reason: "a run's value cannot have functions or streams; return data, or call or read it"
                    .to_owned(),
            }),
            ended => ended,
        };
        let digest = digest::of_outcome(&ended);
        if digest.is_none() && is_replay {
            // No fault of the journal: a machine that is slower, or a worker that was stopped.
            self.run = Some(run);
            self.lost();
            return ended.map(|_| None).map_err(AgentError::Runtime);
        }
        if let Err(what) = run.end(digest) {
            return Err(self.divergence(what));
        }
        let outcome = match (self.stopped.take(), ended) {
            (Some(Stopped::CallBudget), Err(Error::Cancelled)) => {
                Err(AgentError::CallBudget { max_tool_calls: self.bounds.tool_calls })
            }
            (_, Ok(value)) => Ok(value),
            (_, Err(Error::Js(error))) => Err(match run.uncaught(&error) {
                Some(uncaught) => AgentError::Uncaught(Box::new(uncaught)),
                None => AgentError::Runtime(Error::Js(error)),
            }),
            (_, Err(Error::HostWait { .. })) => Err(AgentError::MaxPause { max_pause: self.bounds.pause }),
            (_, Err(error)) => Err(AgentError::Runtime(error)),
        };
        self.keep(run.record, is_replay);
        Ok((!is_replay).then_some(outcome))
    }

    fn keep(&mut self, record: RecordedRun, is_replay: bool) {
        if self.keeps != Keeps::Journal {
            return;
        }
        if record.outcome.is_none() {
            // Where it was stopped depends on more than the journal has.
            self.is_stale = true;
            return;
        }
        if !is_replay {
            self.journal_bytes += 128 + record.source.len_bytes();
        }
        self.journal.runs.push(record);
        if self.journal_bytes > self.bounds.journal_bytes {
            self.outgrow();
        }
    }

    fn outgrow(&mut self) {
        self.keeps = Keeps::Nothing("it has outgrown `max_journal_bytes`");
        self.journal.runs = Vec::new();
    }

    /// The worker is gone, and with it the run. What was to happen again still is.
    pub(crate) fn lost(&mut self) {
        if let Some(run) = self.run.take().filter(Run::is_replay) {
            self.journal.runs.push(run.record);
        }
        self.journal.runs.extend(self.to_replay.drain(..));
        self.stopped = None;
        self.is_stale = true;
    }

    /// The journal with the run that waits, if one does.
    pub(crate) fn journal(&self) -> Result<Journal, AgentError> {
        if let Keeps::Nothing(why) = self.keeps {
            return Err(JournalFault::NotKept(why).into());
        }
        let mut journal = self.journal.clone();
        if let Some(run) = &self.run {
            journal.runs.push(run.record.clone());
        }
        Ok(journal)
    }

    fn divergence(&mut self, what: String) -> AgentError {
        let run = self.journal.runs.len() + 1;
        self.is_stale = true;
        self.run = None;
        self.keeps = Keeps::Nothing("its replay was not what it says");
        AgentError::Divergence { run, what }
    }
}

impl Spent {
    /// Takes a call of a tool; false when the session may make no more.
    fn take(&mut self, surface: &Surface, tool: usize, most: u64) -> bool {
        if self.calls >= most {
            return false;
        }
        self.calls += 1;
        if let Some(tool) = surface.tools.get(tool).filter(|tool| tool.max_calls.is_some()) {
            *self.by_tool.entry(tool.name.to_string_lossy().into()).or_default() += 1;
        }
        true
    }
}

impl Answer {
    fn into_outcome(self) -> Result<Value, HostError> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Error(ToolError { name, message, .. }) => Err(HostError { name, message }),
        }
    }
}

/// The target of `call_tool(name, arguments)`, whose first argument is taken away.
fn called_by_name(by_name: &HashMap<Text, usize>, arguments: &mut Vec<Value>) -> Result<Target, ToolError> {
    match arguments.first() {
        Some(Value::String(name)) => match by_name.get(name) {
            Some(&tool) => {
                arguments.remove(0);
                Ok(Target::Tool(tool))
            }
            None => Err(ToolError {
                kind: ToolErrorKind::NotFound,
                name: "ToolNotFoundError".into(),
                message: format!("there is no tool {:?}; use search_tools", name.display_safe()).into(),
            }),
        },
        _ => Err(arguments_error("call_tool takes a tool's name and an object of arguments")),
    }
}

fn arguments_error(message: &str) -> ToolError {
    ToolError { kind: ToolErrorKind::Arguments, name: "TypeError".into(), message: message.into() }
}

#[cfg(test)]
mod tests;
