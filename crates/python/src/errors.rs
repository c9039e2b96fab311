//! Errors of the core as Python exceptions. The classes are Python's, in `pydeno._errors`; their choice is by kind.

use pydeno_host::Error;
use pydeno_wire::Path;
use pydeno_wire::message::{Failure, JsError, LayerReport};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::to_python::text_to_python;

/// The exception for an error of the host crate.
pub(crate) fn from_host(py: Python<'_>, error: &Error) -> PyErr {
    let data = PyDict::new(py);
    let filled = match error {
        Error::Js(js) => fill_js(&data, js),
        Error::Conversion { path, .. } => data.set_item("path", path),
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
        Failure::Cancelled => Error::Cancelled,
    };
    from_host(py, &error)
}

/// A `ConversionError` for a Python object that cannot cross.
pub(crate) fn conversion(py: Python<'_>, path: &Path, reason: &str) -> PyErr {
    from_host(py, &Error::Conversion { path: path.to_string(), reason: reason.to_owned() })
}

/// Layers as a list of `(name, applied, detail, fix)`.
pub(crate) fn layers_to_python<'py>(py: Python<'py>, layers: &[LayerReport]) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, layers.iter().map(|layer| (&layer.name, layer.applied, &layer.detail, &layer.fix)))
}

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
    data.set_item("frames", PyList::new(py, frames)?)
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
