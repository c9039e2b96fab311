//! An agent's session behind a Python object.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use pydeno_host::agent::{
    AgentError, AgentSession, Answer, Call, Hooks, Mode, Settings, Spent, Step, Surface, Target, Tool,
    ToolError, ToolErrorKind, Turn, open,
};
use pydeno_wire::message::{ConsoleLevel, HostError, JsError};
use pydeno_wire::{Budget, Text};
use pyo3::PyTraverseError;
use pyo3::exceptions::PyValueError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::errors;
use crate::from_python::text_from_python;
use crate::functions::{Callbacks, Escaped, run_signal_handlers};
use crate::isolated::{Socket, this_process};
use crate::options::{self, entry, seconds};
use crate::to_python::to_python;

/// A journal's data, the keys that it may be signed with, and the data that it is bound to.
type SignedJournal = (Vec<u8>, Vec<Vec<u8>>, Vec<u8>);

/// The core of `pydeno.AgentSandbox`.
#[pyclass(module = "pydeno._pydeno", frozen)]
pub(crate) struct AgentCore {
    session: AgentSession,
    callbacks: Callbacks,
}

#[pymethods]
impl AgentCore {
    /// Starts a worker; with `journal`, everything in it happens again.
    #[new]
    fn new(
        py: Python<'_>,
        worker: PathBuf,
        options: &Bound<'_, PyDict>,
        settings: &Bound<'_, PyDict>,
        journal: Option<SignedJournal>,
    ) -> PyResult<Self> {
        let runtime_options = options::isolated(options)?;
        let settings = agent_settings(settings)?;
        let journal = journal
            .map(|(data, keys, associated)| open(&data, &keys, &associated, settings.max_journal_bytes))
            .transpose()
            .map_err(|fault| errors::from_agent(py, &AgentError::from(fault)))?;
        let budget = Budget {
            bytes: usize::try_from(runtime_options.max_value_bytes).unwrap_or(usize::MAX),
            nodes: usize::try_from(runtime_options.max_value_nodes).unwrap_or(usize::MAX),
            depth: runtime_options.max_value_depth,
        };
        let callbacks = Callbacks::new(options, budget)?;
        let supervisor = this_process(py, worker)?;
        let session = py
            .detach(|| AgentSession::new(supervisor, runtime_options, settings, journal))
            .map_err(|error| errors::from_agent(py, &error))?;
        Ok(Self { session, callbacks })
    }

    /// Begins a run.
    fn begin(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyString>,
        name: &str,
        language: &str,
    ) -> PyResult<()> {
        let source = text_from_python(source)?;
        let language = options::language(language)?;
        py.detach(|| self.session.begin(source, name, language))
            .map_err(|error| errors::from_agent(py, &error))
    }

    /// What there is to do: `(steps, wants_to_write, look_again)`. A step is `(0, id, target, arguments)` for a call, whose
    /// target is a tool's number, -1 for a search and -2 for a description; `(1, value)`; or `(2, exception, call, tool)`.
    fn advance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mut hooks = Console { callbacks: &self.callbacks, escaped: None };
        let turn = py.detach(|| self.session.advance(&mut hooks));
        if let Some(Escaped(exception)) = hooks.escaped {
            return Err(exception);
        }
        let turn = turn.map_err(|error| errors::from_agent(py, &error))?;
        let steps = PyList::empty(py);
        for step in turn.steps {
            steps.append(self.step(py, step)?)?;
        }
        let look_again = turn.look_again.map(|duration| duration.as_secs_f64());
        (steps, turn.wants_to_write, look_again).into_pyobject(py)
    }

    /// Waits for the worker for a moment, and runs Python's signal handlers.
    fn wait(&self, py: Python<'_>, wants_to_write: bool, look_again: Option<f64>) -> PyResult<()> {
        let look_again = look_again.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        py.detach(|| self.session.wait(&Turn { steps: Vec::new(), wants_to_write, look_again }));
        run_signal_handlers()
    }

    /// Answers a call with a value; one that cannot cross becomes the guest's error, and is returned.
    fn answer(
        &self,
        py: Python<'_>,
        call: u64,
        tool: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Py<PyAny>>> {
        match self.callbacks.result(value) {
            Ok(value) => {
                self.take(py, call, Answer::Value(value))?;
                Ok(None)
            }
            Err(error) => {
                let error = error.into_value(py).into_bound(py).into_any();
                self.answer_error(py, call, tool, error.clone())?;
                Ok(Some(error.unbind()))
            }
        }
    }

    /// Answers a call with an exception, as much of it as the guest may see.
    fn answer_error(
        &self,
        py: Python<'_>,
        call: u64,
        tool: &Bound<'_, PyAny>,
        exception: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        // Tools are pydeno's own objects; the name is the one that the program calls them by.
        let name = tool.getattr("__name__")?;
        let name = text_from_python(name.cast::<PyString>()?)?;
        match self.callbacks.failed_as(py, Some(name), PyErr::from_value(exception)) {
            Ok(HostError { name, message }) => {
                let error = ToolError { kind: ToolErrorKind::Failed, name, message };
                self.take(py, call, Answer::Error(error))
            }
            Err(Escaped(exception)) => Err(exception),
        }
    }

    /// Answers a call with words of pydeno's own.
    fn refuse(
        &self,
        py: Python<'_>,
        call: u64,
        not_found: bool,
        message: &Bound<'_, PyString>,
    ) -> PyResult<()> {
        let (kind, name) = if not_found {
            (ToolErrorKind::NotFound, "ToolNotFoundError")
        } else {
            (ToolErrorKind::Arguments, "TypeError")
        };
        let error = ToolError { kind, name: name.into(), message: text_from_python(message)? };
        self.take(py, call, Answer::Error(error))
    }

    /// Asks for the end of the run.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.session.cancel()).map_err(|error| errors::from_agent(py, &error))
    }

    /// Whether `restore` is needed before the next run.
    fn is_stale(&self) -> bool {
        self.session.is_stale()
    }

    /// Has the session's runs happen again in a fresh worker.
    fn restore(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.session.restore()).map_err(|error| errors::from_agent(py, &error))
    }

    /// The signed journal.
    fn dump<'py>(&self, py: Python<'py>, key: Vec<u8>, associated: Vec<u8>) -> PyResult<Bound<'py, PyBytes>> {
        let sealed = py.detach(|| self.session.dump(&key, &associated));
        sealed.map(|sealed| PyBytes::new(py, &sealed)).map_err(|error| errors::from_agent(py, &error))
    }

    /// What has been used up: `(calls, calls by tool, number of the next call)`.
    fn spent(&self, py: Python<'_>) -> PyResult<(u64, BTreeMap<String, u64>, u64)> {
        let Spent { calls, by_tool, next_call } =
            self.session.spent().map_err(|error| errors::from_agent(py, &error))?;
        Ok((calls, by_tool, next_call))
    }

    /// Whether a run has not ended.
    fn has_run(&self, py: Python<'_>) -> bool {
        py.detach(|| self.session.has_run())
    }

    /// Whether the program has nothing left to run before a call is answered.
    fn is_waiting(&self, py: Python<'_>) -> bool {
        py.detach(|| self.session.runtime().is_waiting())
    }

    /// The socket to wait on, or `None` once closed.
    fn socket(&self) -> Option<Socket> {
        self.session.socket().map(Socket)
    }

    fn close(&self) {
        self.session.close();
    }

    fn terminate(&self) {
        self.session.terminate();
    }

    fn is_closed(&self) -> bool {
        self.session.is_closed()
    }

    /// The sandbox's layers as a list of `(name, applied, detail, fix)`.
    fn layers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        errors::layers_to_python(py, &self.session.runtime().sandbox().layers)
    }

    /// Whether no layer that is required is missing; `layers` says which.
    fn is_complete(&self) -> bool {
        let runtime = self.session.runtime();
        runtime.sandbox().layers.iter().all(|layer| layer.applied || layer.name == "empty_root")
    }

    #[getter]
    fn worker_pid(&self) -> i32 {
        self.session.runtime().worker_pid()
    }

    #[getter]
    fn engine(&self) -> String {
        self.session.runtime().engine().to_owned()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.callbacks.traverse(&visit)
    }

    fn __clear__(&self) {
        self.session.close();
        self.callbacks.clear();
    }
}

impl AgentCore {
    fn take(&self, py: Python<'_>, call: u64, answer: Answer) -> PyResult<()> {
        py.detach(|| self.session.answer(call, answer))
            .map(|_| ())
            .map_err(|error| errors::from_agent(py, &error))
    }

    /// A step as a Python object; a call whose arguments Python has no form for is answered at once.
    fn step<'py>(&self, py: Python<'py>, step: Step) -> PyResult<Bound<'py, PyTuple>> {
        let home = &self.callbacks.home;
        Ok(match step {
            Step::Call(Call { id, target, arguments }) => {
                let target = match target {
                    Target::Tool(tool) => tool as i64,
                    Target::Search => -1,
                    Target::Describe => -2,
                };
                match self.callbacks.arguments(py, &arguments) {
                    Ok(arguments) => (0, id, target, arguments).into_pyobject(py)?,
                    Err(error) => {
                        self.refuse(py, id, false, &error.value(py).str()?)?;
                        // Handed over at the next turn, which is asked for by a step that is nobody's.
                        (0, id, -3, PyTuple::empty(py)).into_pyobject(py)?
                    }
                }
            }
            Step::Ended(Ok(value)) => match to_python(py, &value, home) {
                Ok(value) => (1, value).into_pyobject(py)?,
                Err(error) => (2, error.into_value(py), py.None(), py.None()).into_pyobject(py)?,
            },
            Step::Ended(Err(error)) => {
                let (call, tool) = match &error {
                    AgentError::Uncaught(uncaught) => (Some(uncaught.call), uncaught.tool),
                    _ => (None, None),
                };
                (2, errors::from_agent(py, &error).into_value(py), call, tool).into_pyobject(py)?
            }
        })
    }
}

/// Where a guest's console goes.
struct Console<'a> {
    callbacks: &'a Callbacks,
    /// What was raised there and is no `Exception`: it is for whoever drives the session.
    escaped: Option<Escaped>,
}

impl Console<'_> {
    fn keep(&mut self, outcome: Result<(), Escaped>) {
        if let Err(escaped) = outcome {
            self.escaped.get_or_insert(escaped);
        }
    }
}

impl Hooks for Console<'_> {
    fn console(&mut self, level: ConsoleLevel, text: Text) {
        let outcome = Python::attach(|py| self.callbacks.console(py, level, &text));
        self.keep(outcome);
    }

    fn unhandled_rejection(&mut self, error: JsError) {
        let outcome = Python::attach(|py| self.callbacks.unhandled_rejection(py, error));
        self.keep(outcome);
    }
}

fn agent_settings(settings: &Bound<'_, PyDict>) -> PyResult<Settings> {
    let tools: Vec<(String, Option<u64>)> = entry(settings, "tools")?;
    let declared: usize = entry(settings, "declared")?;
    let namespace: Option<String> = entry(settings, "namespace")?;
    let mode: String = entry(settings, "mode")?;
    let bootstrap: Option<String> = entry(settings, "bootstrap")?;
    let (calls, by_tool, next_call) = entry(settings, "spent")?;
    if declared > tools.len() {
        return Err(PyValueError::new_err("more tools are declared than there are"));
    }
    Ok(Settings {
        surface: Surface {
            namespace: namespace.map(|namespace| namespace.as_str().into()),
            tools: tools
                .into_iter()
                .map(|(name, max_calls)| Tool { name: name.as_str().into(), max_calls })
                .collect(),
            declared,
            has_catalog: entry(settings, "has_catalog")?,
        },
        mode: match mode.as_str() {
            "function" => Mode::Function,
            "script" => Mode::Script,
            other => return Err(PyValueError::new_err(format!("no mode is named {other:?}"))),
        },
        redeclare: entry(settings, "redeclare")?,
        max_tool_calls: entry(settings, "max_tool_calls")?,
        max_pause: seconds(settings, "max_pause")?,
        max_journal_bytes: entry(settings, "max_journal_bytes")?,
        is_durable: entry(settings, "durable")?,
        bootstrap: bootstrap.map(|bootstrap| bootstrap.as_str().into()),
        spent: Spent { calls, by_tool, next_call },
    })
}
