//! Calling Python functions for a guest.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pydeno_wire::message::{ConsoleLevel, HostError, JsError, STREAMS};
use pydeno_wire::{Budget, Text, Value};
use pyo3::PyTraverseError;
use pyo3::exceptions::{PyBaseException, PyException, PyTimeoutError};
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::errors;
use crate::from_python::from_python;
use crate::js_function::Home;
use crate::to_python::{text_to_python, to_python};

/// Exceptions of host functions that are remembered, to be the cause of the guest's error that they became.
const REMEMBERED: usize = 16;

/// Why a call did not return to the guest: an exception that no guest may catch, such as `KeyboardInterrupt`.
pub(crate) struct Escaped(pub(crate) PyErr);

/// What a guest's calls need from Python.
pub(crate) struct Callbacks {
    pub(crate) budget: Budget,
    pub(crate) home: Arc<Home>,
    redact: bool,
    /// A tuple of exception classes that the guest is shown all the same.
    exposed: Option<Py<PyAny>>,
    tool_timeout: Option<Duration>,
    on_console: Option<Py<PyAny>>,
    on_unhandled_rejection: Option<Py<PyAny>>,
    /// By the number that the guest's side knows them by.
    functions: Mutex<Vec<BoundFunction>>,
    raised: Mutex<VecDeque<Raised>>,
}

struct BoundFunction {
    object: Option<Text>,
    name: Text,
    /// Empty once it is revoked.
    function: Option<Py<PyAny>>,
}

/// The error that a guest was shown, and the exception behind it.
struct Raised {
    shown: Text,
    exception: Py<PyBaseException>,
}

impl Callbacks {
    pub(crate) fn new(options: &Bound<'_, PyDict>, budget: Budget) -> PyResult<Self> {
        let given = |name: &str| -> PyResult<Option<Bound<'_, PyAny>>> {
            Ok(options.get_item(name)?.filter(|value| !value.is_none()))
        };
        let tool_timeout = given("tool_timeout")?.map(|seconds| seconds.extract::<f64>()).transpose()?;
        Ok(Self {
            budget,
            home: Arc::default(),
            redact: given("redact_host_errors")?.map_or(Ok(true), |value| value.extract())?,
            exposed: given("expose_host_errors")?.map(Bound::unbind),
            tool_timeout: tool_timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            on_console: given("on_console")?.map(Bound::unbind),
            on_unhandled_rejection: given("on_unhandled_rejection")?.map(Bound::unbind),
            functions: Mutex::default(),
            raised: Mutex::default(),
        })
    }

    fn functions(&self) -> MutexGuard<'_, Vec<BoundFunction>> {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers functions, numbered in order; the number of the first.
    pub(crate) fn bind(&self, object: Option<&Text>, names: &[Text], functions: Vec<Py<PyAny>>) -> u32 {
        let mut bound = self.functions();
        let first = bound.len() as u32;
        bound.extend(names.iter().zip(functions).map(|(name, function)| BoundFunction {
            object: object.cloned(),
            name: name.clone(),
            function: Some(function),
        }));
        first
    }

    /// How many functions are remembered; the number of the next.
    pub(crate) fn bound(&self) -> u32 {
        self.functions().len() as u32
    }

    /// Takes a function away from the guest, however it came by it; whether there was one.
    pub(crate) fn revoke(&self, object: Option<&Text>, name: &Text) -> bool {
        let mut revoked = Vec::new();
        for bound in &mut *self.functions() {
            if bound.object.as_ref() == object && bound.name == *name {
                revoked.extend(bound.function.take());
            }
        }
        // Dropped here, without the lock: a function's destructor may be anything.
        !revoked.is_empty()
    }

    /// The Python function behind a number, or what the guest is told instead.
    pub(crate) fn function(&self, py: Python<'_>, number: u32) -> Result<Py<PyAny>, HostError> {
        if number == STREAMS {
            return self.stream_method(py, intern!(py, "pull"));
        }
        let functions = self.functions();
        let bound = functions.get(number as usize);
        bound.and_then(|bound| bound.function.as_ref()).map(|function| function.clone_ref(py)).ok_or_else(
            || {
                let name = bound.map_or_else(String::new, |bound| bound.name.display_safe().to_string());
                error_of_host(&format!("the host function {name} has been revoked"))
            },
        )
    }

    /// How streams of the host are asked.
    fn stream_method(&self, py: Python<'_>, name: &Bound<'_, PyString>) -> Result<Py<PyAny>, HostError> {
        let method = self.home.streams().and_then(|streams| streams.getattr(py, name).ok());
        method.ok_or_else(|| error_of_host("streams do not cross here"))
    }

    /// What the guest calls a function. Its name in Python is the host's own affair.
    fn name_of(&self, function: &Bound<'_, PyAny>) -> Option<Text> {
        let functions = self.functions();
        let is_it = |bound: &&BoundFunction| bound.function.as_ref().is_some_and(|other| other.is(function));
        functions.iter().find(is_it).map(|bound| bound.name.clone())
    }

    /// The arguments of a call as Python objects.
    pub(crate) fn arguments<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Value],
    ) -> PyResult<Bound<'py, PyTuple>> {
        let arguments = arguments.iter().map(|value| to_python(py, value, &self.home));
        PyTuple::new(py, arguments.collect::<PyResult<Vec<_>>>()?)
    }

    /// Calls a synchronous function. The inner error is the guest's to catch; the exception behind it is remembered.
    pub(crate) fn call(
        &self,
        py: Python<'_>,
        number: u32,
        arguments: &[Value],
    ) -> Result<Result<Value, HostError>, Escaped> {
        let function = match number {
            STREAMS => self.stream_method(py, intern!(py, "pull_blocking")),
            number => self.function(py, number),
        };
        let function = match function {
            Ok(function) => function.into_bound(py),
            Err(refusal) => return Ok(Err(refusal)),
        };
        let began = self.tool_timeout.map(|_| Instant::now());
        let called = self.arguments(py, arguments).and_then(|arguments| function.call1(arguments));
        let answer = called.and_then(|value| self.result(&value));
        let late = self.tool_timeout.zip(began).filter(|(allowed, began)| began.elapsed() > *allowed);
        match (answer, late) {
            (Ok(_), Some((allowed, _))) => {
                let late = PyTimeoutError::new_err(format!("the host function took more than {allowed:?}"));
                self.failed(py, &function, late).map(Err)
            }
            (Ok(value), None) => Ok(Ok(value)),
            (Err(error), _) => self.failed(py, &function, error).map(Err),
        }
    }

    /// What a function returned.
    pub(crate) fn result(&self, value: &Bound<'_, PyAny>) -> PyResult<Value> {
        from_python(value, &self.budget, &self.home)
    }

    /// What the guest is shown of an exception, which is remembered; or the exception, if no guest may catch it.
    pub(crate) fn failed(
        &self,
        py: Python<'_>,
        function: &Bound<'_, PyAny>,
        error: PyErr,
    ) -> Result<HostError, Escaped> {
        self.failed_as(py, self.name_of(function), error)
    }

    /// As [`failed`](Self::failed), of a function that the guest knows by this name.
    pub(crate) fn failed_as(
        &self,
        py: Python<'_>,
        name: Option<Text>,
        error: PyErr,
    ) -> Result<HostError, Escaped> {
        if !error.is_instance_of::<PyException>(py) {
            return Err(Escaped(error));
        }
        let shown = self.show(py, name, &error);
        let exception = error.into_value(py);
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        let forgotten = if raised.len() == REMEMBERED { raised.pop_front() } else { None };
        raised.push_back(Raised { shown: shown.message.clone(), exception });
        drop(raised);
        drop(forgotten);
        Ok(shown)
    }

    /// What the guest may know of an exception: that there was one, or, unredacted, its type and text.
    fn show(&self, py: Python<'_>, name: Option<Text>, error: &PyErr) -> HostError {
        let exposed =
            self.exposed.as_ref().is_some_and(|classes| error.matches(py, classes).unwrap_or(false));
        let message = if self.redact && !exposed {
            match name {
                Some(name) => format!("the host function {} failed", name.display_safe()),
                None => "the host function failed".to_owned(),
            }
        } else {
            let class =
                error.get_type(py).name().map_or_else(|_| "Exception".to_owned(), |name| name.to_string());
            // An exception's own text may fail to be made.
            let text = error
                .value(py)
                .str()
                .map_or_else(|_| "no text".to_owned(), |text| text.to_string_lossy().into());
            format!("{class}: {text}")
        };
        error_of_host(&message)
    }

    /// Forgets the exceptions of an earlier evaluation.
    pub(crate) fn forget_raised(&self) {
        let forgotten = std::mem::take(&mut *self.raised.lock().unwrap_or_else(PoisonError::into_inner));
        drop(forgotten);
    }

    /// Makes the exception that a guest's uncaught error comes from its cause.
    pub(crate) fn explain(&self, py: Python<'_>, error: &PyErr) {
        let message_of =
            |error: &Bound<'_, PyAny>| -> PyResult<String> { error.getattr("message")?.extract() };
        let own = message_of(error.value(py));
        // An import that failed is an error of the guest's world whose cause is the host's.
        let cause = error.value(py).getattr("cause").and_then(|cause| message_of(&cause));
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        let found = [own, cause].into_iter().flatten().find_map(|message| {
            let latest = raised.iter().rposition(|raised| raised.shown.as_str() == Some(message.as_str()));
            latest.and_then(|index| raised.remove(index))
        });
        drop(raised);
        if let Some(Raised { exception, .. }) = found {
            error.set_cause(py, Some(PyErr::from_value(exception.into_bound(py).into_any())));
        }
    }

    /// Hands a console line to Python. An exception there is reported as unraisable: the guest has no part in it. One
    /// like `KeyboardInterrupt` is for whoever evaluates.
    pub(crate) fn console(&self, py: Python<'_>, level: ConsoleLevel, text: &Text) -> Result<(), Escaped> {
        let Some(on_console) = &self.on_console else { return Ok(()) };
        let name = match level {
            ConsoleLevel::Debug => "debug",
            ConsoleLevel::Log => "log",
            ConsoleLevel::Info => "info",
            ConsoleLevel::Warn => "warn",
            ConsoleLevel::Error => "error",
            ConsoleLevel::Dropped => "dropped",
        };
        let outcome = text_to_python(py, text).and_then(|text| on_console.call1(py, (name, text)));
        unless_it_escapes(py, on_console, outcome)
    }

    /// Hands the reason of an unhandled rejection to Python, as `console` does.
    pub(crate) fn unhandled_rejection(&self, py: Python<'_>, error: JsError) -> Result<(), Escaped> {
        let Some(callback) = &self.on_unhandled_rejection else { return Ok(()) };
        let error = errors::from_host(py, &pydeno_host::Error::Js(Box::new(error)));
        self.explain(py, &error);
        unless_it_escapes(py, callback, callback.call1(py, (error.value(py),)))
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Ok(functions) = self.functions.try_lock() {
            for function in functions.iter().filter_map(|bound| bound.function.as_ref()) {
                visit.call(function)?;
            }
        }
        // An exception holds the frames that it came through, and they may hold the runtime.
        if let Ok(raised) = self.raised.try_lock() {
            for Raised { exception, .. } in &*raised {
                visit.call(exception)?;
            }
        }
        if let Some(streams) = self.home.streams() {
            visit.call(streams)?;
        }
        for callback in [&self.on_console, &self.on_unhandled_rejection].into_iter().flatten() {
            visit.call(callback)?;
        }
        Ok(())
    }

    pub(crate) fn clear(&self) {
        let functions = std::mem::take(&mut *self.functions());
        drop(functions);
        self.forget_raised();
    }
}

fn unless_it_escapes(
    py: Python<'_>,
    callback: &Py<PyAny>,
    outcome: PyResult<Py<PyAny>>,
) -> Result<(), Escaped> {
    match outcome {
        Err(error) if error.is_instance_of::<PyException>(py) => {
            error.write_unraisable(py, Some(callback.bind(py)));
            Ok(())
        }
        Err(error) => Err(Escaped(error)),
        Ok(_) => Ok(()),
    }
}

/// An error of the host in the guest's world.
pub(crate) fn error_of_host(message: &str) -> HostError {
    HostError { name: "Error".into(), message: message.into() }
}

/// Runs the Python handlers of signals that have arrived, on the main thread; the exception is what they raised.
pub(crate) fn run_signal_handlers() -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        Ok(())
    })
}
