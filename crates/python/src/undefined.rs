//! `pydeno.undefined`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The type of `pydeno.undefined`, JavaScript's `undefined`: one falsy object, apart from `None`, which is `null`.
#[pyclass(module = "pydeno", name = "UndefinedType", frozen)]
pub(crate) struct UndefinedType;

static UNDEFINED: PyOnceLock<Py<UndefinedType>> = PyOnceLock::new();

/// The only instance.
pub(crate) fn get(py: Python<'_>) -> PyResult<&Bound<'_, UndefinedType>> {
    UNDEFINED.get_or_try_init(py, || Py::new(py, UndefinedType)).map(|undefined| undefined.bind(py))
}

#[pymethods]
impl UndefinedType {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Py<Self>> {
        get(py).map(|undefined| undefined.clone().unbind())
    }

    #[allow(clippy::unused_self, reason = "the signature is Python's")]
    fn __repr__(&self) -> &'static str {
        "undefined"
    }

    #[allow(clippy::unused_self, reason = "the signature is Python's")]
    fn __bool__(&self) -> bool {
        false
    }

    /// Copies and unpickles to the same object: a global's name is how pickle says so.
    #[allow(clippy::unused_self, reason = "the signature is Python's")]
    fn __reduce__(&self) -> &'static str {
        "undefined"
    }
}
