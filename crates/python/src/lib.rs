//! The extension module `pydeno._pydeno`: conversions between Python objects and values, and the classes that the
//! Python front builds on. No policy lives here.

#![allow(clippy::needless_pass_by_value, reason = "arguments of Python methods arrive by value")]

mod agent;
mod bytes_like;
mod errors;
mod from_python;
mod functions;
mod hint;
mod in_process;
mod isolated;
mod js_function;
mod js_stream;
mod loop_turn;
mod options;
mod pool;
mod preflight;
mod status;
mod thread_bound;
mod to_python;
mod unconverted;
mod undefined;
mod wasm;

use pyo3::pymodule;

/// The native core of pydeno.
#[pymodule]
mod _pydeno {
    #[pymodule_export]
    use super::agent::AgentCore;
    #[pymodule_export]
    use super::errors::display_safe;
    #[pymodule_export]
    use super::in_process::InProcessRuntime;
    #[pymodule_export]
    use super::isolated::{IsolatedRuntime, Socket, set_zygote_rotation, shut_down};
    #[pymodule_export]
    use super::js_function::JsFunction;
    #[pymodule_export]
    use super::js_stream::JsStream;
    #[pymodule_export]
    use super::pool::Pool;
    #[pymodule_export]
    use super::preflight::{SourcePolicy, check_source};
    #[pymodule_export]
    use super::status::sandbox_status;
    #[pymodule_export]
    use super::undefined::UndefinedType;
    #[pymodule_export]
    use super::wasm::WasmOutline;

    use std::sync::OnceLock;

    use pyo3::exceptions::PyImportError;
    use pyo3::prelude::*;

    /// Which interpreter has the module, by the address of its `sys`.
    static INTERPRETER: OnceLock<usize> = OnceLock::new();

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // Classes and singletons are kept once in a process; those of another interpreter would not be its own.
        let interpreter = module.py().import("sys")?.as_ptr() as usize;
        if *INTERPRETER.get_or_init(|| interpreter) != interpreter {
            return Err(PyImportError::new_err(
                "pydeno cannot be imported in a subinterpreter when another interpreter of the process has it; use a \
                 thread or a process instead",
            ));
        }
        module.add("undefined", super::undefined::get(module.py())?)?;
        module.add("__version__", pydeno_wire::message::BUILD)
    }
}
