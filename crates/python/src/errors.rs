//! Errors of the core as Python exceptions. The classes are Python's, in `pydeno._errors`; their choice is by kind.

use pydeno_host::Error;
use pydeno_host::agent::AgentError;
use pydeno_wire::Path;
use pydeno_wire::message::{ExitStatus, Failure, JsError, LayerReport};
use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use crate::from_python::text_from_python;
use crate::to_python::{data_to_python, text_to_python};

/// The exception for an error of the host crate; `StopAsyncIteration` for the end of a stream.
pub(crate) fn from_host(py: Python<'_>, error: &Error) -> PyErr {
    if matches!(error, Error::StreamEnded) {
        return PyStopAsyncIteration::new_err(());
    }
    let data = PyDict::new(py);
    let filled = match error {
        Error::Js(js) => fill_js(&data, js),
        Error::Conversion { path, .. } => data.set_item("path", path),
        Error::WorkerCrashed { status } => fill_crash(&data, *status),
        Error::WorkerUnavailable { .. } => data.set_item("started", false),
        Error::SandboxUnavailable { report } => {
            layers_to_python(py, &report.layers).and_then(|layers| data.set_item("layers", layers))
        }
        _ => Ok(()),
    };
    let is_conversion = matches!(error, Error::Conversion { .. });
    let kind = if is_conversion { "conversion" } else { error.kind() };
    filled
        .and_then(|()| make(py, kind, &error.to_string(), error.runtime_survives(), &data))
        .unwrap_or_else(|error| error)
}

/// The exception for an error of an agent's session.
pub(crate) fn from_agent(py: Python<'_>, error: &AgentError) -> PyErr {
    let data = PyDict::new(py);
    let filled = match error {
        AgentError::Runtime(error) => return from_host(py, error),
        AgentError::Uncaught(uncaught) => fill_js(&data, &uncaught.error),
        _ => Ok(()),
    };
    filled
        .and_then(|()| make(py, error.kind(), &error.to_string(), error.runtime_survives(), &data))
        .unwrap_or_else(|error| error)
}

/// The exception for an evaluation in this process that has no value. The runtime survives each of them.
pub(crate) fn from_failure(
    py: Python<'_>,
    failure: Failure,
    limits: &crate::options::InProcessOptions,
) -> PyErr {
    let error = match failure {
        Failure::Js(js) => Error::Js(Box::new(js)),
        Failure::Conversion { path, reason } => Error::Conversion { path, reason },
        Failure::Timeout => Error::Stopped { timeout: limits.timeout },
        Failure::HeapLimit => Error::HeapFull { max_heap_size: limits.max_heap_size },
        Failure::NeverSettles => Error::NeverSettles,
        Failure::CannotWait => Error::CannotWait,
        Failure::UnknownFunction => Error::UnknownFunction,
        Failure::StreamEnded => Error::StreamEnded,
        Failure::Cancelled => Error::Cancelled,
    };
    from_host(py, &error)
}

/// A `ConversionError` for a Python object that cannot cross.
pub(crate) fn conversion(py: Python<'_>, path: &Path, reason: &str) -> PyErr {
    from_host(py, &Error::Conversion { path: path.to_string(), reason: reason.to_owned() })
}

/// A text as a person may see it: without control, bidi and invisible characters, and not longer than `max_bytes`.
#[pyfunction]
pub(crate) fn display_safe(text: &Bound<'_, PyString>, max_bytes: usize) -> PyResult<String> {
    Ok(text_from_python(text)?.shortened(max_bytes).display_safe().into_owned())
}

/// Layers as a list of `(name, applied, detail, fix)`.
pub(crate) fn layers_to_python<'py>(py: Python<'py>, layers: &[LayerReport]) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, layers.iter().map(|layer| (&layer.name, layer.applied, &layer.detail, &layer.fix)))
}

fn fill_crash(data: &Bound<'_, PyDict>, status: ExitStatus) -> PyResult<()> {
    match status {
        ExitStatus::Signal(signal) => data.set_item("signal", signal),
        ExitStatus::Code(code) => data.set_item("exit_code", code),
        ExitStatus::Unknown => Ok(()),
    }
}

/// Recursion is bounded by the depth that errors are described and decoded under.
fn fill_js(data: &Bound<'_, PyDict>, js: &JsError) -> PyResult<()> {
    let py = data.py();
    data.set_item("name", text_to_python(py, &js.name)?)?;
    data.set_item("message", text_to_python(py, &js.message)?)?;
    data.set_item("stack", text_to_python(py, &js.stack)?)?;
    let frames = js
        .frames
        .iter()
        .map(|frame| {
            let function = text_to_python(py, &frame.function)?.into_any();
            let file = text_to_python(py, &frame.file)?.into_any();
            let line = frame.line.into_pyobject(py)?.into_any();
            let column = frame.column.into_pyobject(py)?.into_any();
            PyTuple::new(py, [function, file, line, column])
        })
        .collect::<PyResult<Vec<_>>>()?;
    data.set_item("frames", PyList::new(py, frames)?)?;
    let Some(details) = &js.details else { return Ok(()) };
    if let Some(value) = details.value.as_ref().and_then(|value| data_to_python(py, value).ok()) {
        data.set_item("value", value)?;
    }
    let properties = PyDict::new(py);
    for (name, value) in &details.properties {
        // What Python has no form for is left out: an error is told, whatever it carries.
        if let Ok(value) = data_to_python(py, value) {
            properties.set_item(text_to_python(py, name)?, value)?;
        }
    }
    data.set_item("properties", properties)?;
    if let Some(cause) = &details.cause {
        data.set_item("cause", related(py, cause))?;
    }
    data.set_item("errors", PyList::new(py, details.errors.iter().map(|error| related(py, error)))?)
}

/// A cause or a part of an aggregate: an exception, or the value itself of what is no `Error`.
fn related<'py>(py: Python<'py>, error: &JsError) -> Bound<'py, PyAny> {
    let value = error.details.as_ref().and_then(|details| details.value.as_ref());
    if let Some(value) = value.and_then(|value| data_to_python(py, value).ok()) {
        return value;
    }
    from_host(py, &Error::Js(Box::new(error.clone()))).into_value(py).into_bound(py).into_any()
}

fn make(
    py: Python<'_>,
    kind: &str,
    message: &str,
    runtime_survives: bool,
    data: &Bound<'_, PyDict>,
) -> PyResult<PyErr> {
    static FROM_CORE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let from_core = FROM_CORE.import(py, "pydeno._errors", "from_core")?;
    Ok(PyErr::from_value(from_core.call1((kind, message, runtime_survives, data))?))
}
