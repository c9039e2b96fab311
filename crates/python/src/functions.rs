//! Calling Python functions for a guest.

use pydeno_wire::message::{ConsoleLevel, HostError};
use pydeno_wire::{Budget, Text, Value};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::from_python::from_python;
use crate::to_python::{text_to_python, to_python};

/// Why a call did not return to the guest: an exception that no guest may catch, such as `KeyboardInterrupt`.
pub(crate) struct Escaped(pub(crate) PyErr);

/// What a guest's calls need from Python.
pub(crate) struct Callbacks {
    pub(crate) budget: Budget,
    pub(crate) redact: bool,
    pub(crate) on_console: Option<Py<PyAny>>,
}

/// The error that a guest was shown, and the exception behind it.
pub(crate) struct Raised {
    shown: Text,
    exception: PyErr,
}

impl Callbacks {
    /// Calls `function`. The inner error is the guest's to catch; the exception behind it is kept in `raised`.
    pub(crate) fn call(
        &self,
        py: Python<'_>,
        function: &Bound<'_, PyAny>,
        arguments: &[Value],
        raised: &mut Option<Raised>,
    ) -> Result<Result<Value, HostError>, Escaped> {
        match self.try_call(py, function, arguments) {
            Ok(value) => Ok(Ok(value)),
            Err(error) if error.is_instance_of::<PyException>(py) => {
                let shown = self.show(py, function, &error);
                *raised = Some(Raised { shown: shown.message.clone(), exception: error });
                Ok(Err(shown))
            }
            Err(error) => Err(Escaped(error)),
        }
    }

    fn try_call(&self, py: Python<'_>, function: &Bound<'_, PyAny>, arguments: &[Value]) -> PyResult<Value> {
        let arguments = arguments.iter().map(|value| to_python(py, value)).collect::<PyResult<Vec<_>>>()?;
        let result = function.call1(PyTuple::new(py, arguments)?)?;
        from_python(&result, &self.budget)
    }

    /// What the guest may know of an exception: that there was one, or, unredacted, its type and text.
    fn show(&self, py: Python<'_>, function: &Bound<'_, PyAny>, error: &PyErr) -> HostError {
        let message = if self.redact {
            let name = function.getattr("__name__").and_then(|name| name.extract::<String>());
            match name {
                Ok(name) => format!("the host function {name} failed"),
                Err(_) => "the host function failed".to_owned(),
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
        HostError { name: "Error".into(), message: message.into() }
    }

    /// Hands a console line to Python. An exception there is reported as unraisable: the guest has no part in it.
    pub(crate) fn console(&self, py: Python<'_>, level: ConsoleLevel, text: &Text) {
        let Some(on_console) = &self.on_console else { return };
        let name = match level {
            ConsoleLevel::Debug => "debug",
            ConsoleLevel::Log => "log",
            ConsoleLevel::Info => "info",
            ConsoleLevel::Warn => "warn",
            ConsoleLevel::Error => "error",
        };
        let outcome = text_to_python(py, text).and_then(|text| on_console.call1(py, (name, text)));
        if let Err(error) = outcome {
            error.write_unraisable(py, Some(on_console.bind(py)));
        }
    }
}

/// Runs the Python handlers of signals that have arrived, on the main thread; the exception is what they raised.
pub(crate) fn run_signal_handlers() -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        Ok(())
    })
}

impl Raised {
    /// Makes the host's exception the cause of the guest's error that it became.
    pub(crate) fn explain(self, py: Python<'_>, error: &PyErr) {
        let message = error.value(py).getattr("message").and_then(|message| message.extract::<String>());
        if message.is_ok_and(|message| Some(message.as_str()) == self.shown.as_str()) {
            error.set_cause(py, Some(self.exception));
        }
    }
}
