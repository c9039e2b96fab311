//! The extension module `pydeno._pydeno`: conversions between Python objects and values, and the classes that the
//! Python front builds on. No policy lives here.

#![allow(clippy::needless_pass_by_value, reason = "arguments of Python methods arrive by value")]

mod errors;
mod from_python;
mod functions;
mod in_process;
mod isolated;
mod js_function;
mod loop_turn;
mod options;
mod preflight;
mod status;
mod thread_bound;
mod to_python;
mod undefined;

use pyo3::pymodule;

/// The native core of pydeno.
#[pymodule]
mod _pydeno {
    #[pymodule_export]
    use super::in_process::InProcessRuntime;
    #[pymodule_export]
    use super::isolated::{IsolatedRuntime, Socket, set_zygote_rotation, shut_down};
    #[pymodule_export]
    use super::js_function::JsFunction;
    #[pymodule_export]
    use super::preflight::{SourcePolicy, check_source};
    #[pymodule_export]
    use super::status::sandbox_status;
    #[pymodule_export]
    use super::undefined::UndefinedType;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("undefined", super::undefined::get(module.py())?)?;
        module.add("__version__", pydeno_wire::message::BUILD)
    }
}
