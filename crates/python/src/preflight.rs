//! `check_source`: a source read before it runs.

use std::borrow::Cow;
use std::collections::BTreeSet;

use pydeno_preflight::{Finding, Options, Report, check, check_policy};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

/// From this length on the GIL is released: below it, releasing costs more than the wait.
const RELEASE_FROM: usize = 64 << 10;

/// The core of `pydeno.SourcePolicy`.
#[pyclass(module = "pydeno._pydeno", frozen)]
pub(crate) struct SourcePolicy(pydeno_preflight::Policy);

#[pymethods]
impl SourcePolicy {
    #[new]
    #[pyo3(signature = (*, forbidden_identifiers, forbidden_globals, forbid_dynamic_import, forbid_eval,
        forbid_function, forbid_webassembly, max_source_bytes, include_preflight_rules,
        forbid_computed_global_access, ignore_strings_and_comments))]
    #[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools, reason = "one for each rule")]
    fn new(
        forbidden_identifiers: Vec<Bound<'_, PyString>>,
        forbidden_globals: Vec<Bound<'_, PyString>>,
        forbid_dynamic_import: bool,
        forbid_eval: bool,
        forbid_function: bool,
        forbid_webassembly: bool,
        max_source_bytes: usize,
        include_preflight_rules: bool,
        forbid_computed_global_access: bool,
        ignore_strings_and_comments: bool,
    ) -> PyResult<Self> {
        Ok(Self(pydeno_preflight::Policy {
            forbidden_identifiers: names(&forbidden_identifiers)?,
            forbidden_globals: names(&forbidden_globals)?,
            forbid_dynamic_import,
            forbid_eval,
            forbid_function,
            forbid_webassembly,
            max_source_bytes,
            include_preflight_rules,
            forbid_computed_global_access,
            ignore_strings_and_comments,
        }))
    }
}

fn names(names: &[Bound<'_, PyString>]) -> PyResult<BTreeSet<Vec<u8>>> {
    names.iter().map(|name| Ok(bytes(name)?.into_owned())).collect()
}

/// The text as UTF-8, with lone surrogates as if they were characters: no text is an error.
fn bytes<'a>(text: &'a Bound<'_, PyString>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(text) = text.to_str() {
        return Ok(Cow::Borrowed(text.as_bytes()));
    }
    // A subclass may have an `encode` of its own.
    let encode = text.py().get_type::<PyString>().getattr("encode")?;
    let encoded = encode.call1((text, "utf-8", "surrogatepass"))?;
    Ok(Cow::Owned(encoded.cast::<PyBytes>()?.as_bytes().to_vec()))
}

/// Checks `code`, against `policy` if there is one: whether it is without errors, the findings as
/// `(rule, message, line, column, severity)`, and how many more there are.
#[pyfunction]
pub(crate) fn check_source<'py>(
    py: Python<'py>,
    code: &Bound<'py, PyString>,
    allow_import: bool,
    allow_dynamic_import: bool,
    report_eval: bool,
    policy: Option<&Bound<'py, SourcePolicy>>,
) -> PyResult<(bool, Bound<'py, PyTuple>, usize)> {
    let source = bytes(code)?;
    let options = Options { allow_import, allow_dynamic_import, report_eval };
    let policy = policy.map(|policy| &policy.get().0);
    let run = || match policy {
        Some(policy) => check_policy(&source, policy, options),
        None => check(&source, options),
    };
    let Report { ok, findings, omitted } = if source.len() > RELEASE_FROM { py.detach(run) } else { run() };
    let findings = findings.iter().map(|Finding { rule, message, line, column, severity }| {
        (PyString::intern(py, rule), &**message, line, column, PyString::intern(py, severity.name()))
    });
    Ok((ok, PyTuple::new(py, findings.collect::<Vec<_>>())?, omitted))
}
