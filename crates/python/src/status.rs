//! `sandbox_status()`, as the plain objects that the Python front makes its classes of.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;

/// What the sandbox can be on this machine, found out with the executable `worker`.
#[pyfunction]
pub(crate) fn sandbox_status(py: Python<'_>, worker: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let status = py.detach(|| pydeno_host::sandbox_status(&worker));
    let found = PyDict::new(py);
    found.set_item("layers", errors::layers_to_python(py, status.layers())?)?;
    found.set_item("applied", status.applied())?;
    found.set_item("complete", status.is_complete())?;
    found.set_item("hardened", status.is_hardened())?;
    found.set_item("required", status.required())?;
    found.set_item("warnings", status.warnings())?;
    found.set_item("platform", status.platform())?;
    found.set_item("kernel", status.kernel())?;
    found.set_item("explanation", status.explain())?;
    found.set_item("line", status.to_string())?;
    Ok(found)
}
