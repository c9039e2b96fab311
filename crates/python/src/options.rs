//! Options as the Python front hands them over: checked there, taken at their word here.

use std::time::Duration;

use pydeno_host::{JitTier, Options, WebAssembly, WorkerStart};
use pydeno_wire::Budget;
use pydeno_wire::message::{Language, SandboxMode};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A dict's entry, converted; the front always sets every one.
pub(crate) fn entry<'py, T>(options: &Bound<'py, PyDict>, name: &str) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    let value = options
        .get_item(name)?
        .ok_or_else(|| PyValueError::new_err(format!("the option {name} is missing")))?;
    value.extract::<T>().map_err(Into::into)
}

pub(crate) fn seconds(options: &Bound<'_, PyDict>, name: &str) -> PyResult<Duration> {
    let value: f64 = entry(options, name)?;
    Duration::try_from_secs_f64(value).map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
}

/// The language of a script, by its name.
pub(crate) fn language(name: &str) -> PyResult<Language> {
    match name {
        "js" => Ok(Language::JavaScript),
        "ts" => Ok(Language::TypeScript),
        other => Err(PyValueError::new_err(format!("no language is named {other:?}"))),
    }
}

/// The options of an isolated runtime.
pub(crate) fn isolated(options: &Bound<'_, PyDict>) -> PyResult<Options> {
    let jit: String = entry(options, "jit")?;
    let sandbox: String = entry(options, "sandbox")?;
    let worker_start: String = entry(options, "worker_start")?;
    let webassembly: String = entry(options, "webassembly")?;
    Ok(Options {
        sandbox: match sandbox.as_str() {
            "require" => SandboxMode::Require,
            "auto" => SandboxMode::Auto,
            "off" => SandboxMode::Off,
            other => return Err(PyValueError::new_err(format!("no sandbox mode is named {other:?}"))),
        },
        empty_root: entry(options, "empty_root")?,
        jit: JitTier::from_name(&jit)
            .ok_or_else(|| PyValueError::new_err(format!("no JIT tier is named {jit:?}")))?,
        worker_start: match worker_start.as_str() {
            "fork" => WorkerStart::Fork,
            "exec" => WorkerStart::Exec,
            other => {
                return Err(PyValueError::new_err(format!("no way to start a worker is named {other:?}")));
            }
        },
        timeout: seconds(options, "timeout")?,
        request_timeout: seconds(options, "request_timeout")?,
        max_memory: entry(options, "max_memory")?,
        max_heap_size: entry(options, "max_heap_size")?,
        max_host_calls: entry(options, "max_host_calls")?,
        max_inflight_host_calls: entry(options, "max_inflight_host_calls")?,
        max_host_wait: seconds(options, "max_host_wait")?,
        max_value_bytes: entry(options, "max_serialization_bytes")?,
        max_value_nodes: nodes(entry(options, "max_serialization_bytes")?),
        max_value_depth: entry(options, "max_serialization_depth")?,
        console: entry(options, "enable_console")?,
        clock: entry(options, "clock")?,
        random_seed: entry(options, "random_seed")?,
        strict_eval: entry(options, "strict_eval")?,
        webassembly: WebAssembly::from_name(&webassembly).ok_or_else(|| {
            PyValueError::new_err(format!("no way of having WebAssembly is named {webassembly:?}"))
        })?,
        web: entry(options, "web")?,
    })
}

/// What the values of an isolated runtime may be.
pub(crate) fn budget(options: &Options) -> Budget {
    Budget {
        bytes: usize::try_from(options.max_value_bytes).unwrap_or(usize::MAX),
        nodes: usize::try_from(options.max_value_nodes).unwrap_or(usize::MAX),
        depth: options.max_value_depth,
    }
}

/// The options of a runtime in this process.
#[derive(Clone, Debug)]
pub(crate) struct InProcessOptions {
    pub(crate) timeout: Duration,
    pub(crate) max_heap_size: u64,
    pub(crate) budget: Budget,
    pub(crate) console: bool,
    pub(crate) web: bool,
}

pub(crate) fn in_process(options: &Bound<'_, PyDict>) -> PyResult<InProcessOptions> {
    let bytes: u64 = entry(options, "max_serialization_bytes")?;
    Ok(InProcessOptions {
        timeout: seconds(options, "timeout")?,
        max_heap_size: entry(options, "max_heap_size")?,
        budget: Budget {
            bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            nodes: usize::try_from(nodes(bytes)).unwrap_or(usize::MAX),
            depth: entry(options, "max_serialization_depth")?,
        },
        console: entry(options, "enable_console")?,
        web: entry(options, "web")?,
    })
}

/// A node takes one byte on the wire at the least but some fifty in memory on each side; bounding them at an eighth of
/// the bytes keeps a value's memory within a few times its encoding, and lets any realistic value through.
fn nodes(bytes: u64) -> u64 {
    (bytes / 8).max(1024)
}
