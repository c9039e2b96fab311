//! WebAssembly modules that the host loads.

use pydeno_host::WasmOutline as Outline;
use pydeno_wire::Text;
use pydeno_wire::message::WasmModule;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::errors;
use crate::from_python::text_from_python;
use crate::functions::Callbacks;

/// What a module imports and exports, read from its bytes.
#[pyclass(module = "pydeno._pydeno", frozen)]
pub(crate) struct WasmOutline(Outline);

#[pymethods]
impl WasmOutline {
    #[new]
    fn new(py: Python<'_>, code: &[u8]) -> PyResult<Self> {
        Outline::read(code).map(Self).map_err(|error| errors::from_host(py, &error))
    }

    /// Refuses a module that needs other functions than those with these pairs of names, or whose memory is larger from the
    /// beginning than the limit with this name.
    fn check(
        &self,
        py: Python<'_>,
        given: Vec<(String, String)>,
        limit: u64,
        limit_name: &str,
    ) -> PyResult<()> {
        let is_given = |module: &str, name: &str| given.iter().any(|pair| pair.0 == module && pair.1 == name);
        self.0
            .refuse_missing(is_given)
            .and_then(|()| self.0.refuse_larger(limit, limit_name))
            .map_err(|error| errors::from_host(py, &error))
    }

    /// The pairs of names of the functions that it imports, in its order.
    #[getter]
    fn imports(&self) -> Vec<(&str, &str)> {
        self.0.imports.iter().map(|import| (import.module.as_str(), import.name.as_str())).collect()
    }

    /// Name and signature of each function that it exports.
    #[getter]
    fn functions(&self) -> Vec<(&str, &str)> {
        let functions = self.0.functions.iter();
        functions.map(|function| (function.name.as_str(), function.signature.as_str())).collect()
    }

    #[getter]
    fn left_out(&self) -> Vec<&str> {
        self.0.left_out.iter().map(String::as_str).collect()
    }

    #[getter]
    fn memory_pages(&self) -> u64 {
        self.0.memory_pages
    }

    #[getter]
    fn max_memory_pages(&self) -> Option<u64> {
        self.0.max_memory_pages
    }
}

impl WasmOutline {
    /// The module to load; `functions` are what it imports.
    pub(crate) fn module(
        &self,
        name: &Bound<'_, PyString>,
        code: &[u8],
        functions: &[Py<PyAny>],
    ) -> PyResult<WasmModule> {
        if functions.len() != self.0.imports.len() {
            return Err(PyValueError::new_err("a module needs as many functions as it imports"));
        }
        Ok(self.0.module(text_from_python(name)?, code.to_vec()))
    }
}

/// Remembers what a module imports, numbered in order from the number that is returned. It can be revoked as
/// `lib.env.log`: what the module `lib` imports as `log` of `env`.
pub(crate) fn remember(
    callbacks: &Callbacks,
    name: &str,
    imports: Vec<(Text, Text)>,
    functions: Vec<Py<PyAny>>,
) -> u32 {
    let first = callbacks.bound();
    for ((module, import), function) in imports.into_iter().zip(functions) {
        let holder = Text::from(format!("{name}.{}", module.to_string_lossy()));
        callbacks.bind(Some(&holder), &[import], vec![function]);
    }
    first
}

/// The two names of each import of a module.
pub(crate) fn import_names(module: &WasmModule) -> Vec<(Text, Text)> {
    module.imports.iter().map(|import| (import.module.clone(), import.name.clone())).collect()
}
