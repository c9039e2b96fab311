//! `pydeno doctor`: what the sandbox can be on this machine, and which engine there is.

use pydeno_host::{Error, JitTier, SandboxStatus, find_engine, sandbox_status};

use crate::arguments::Output;
use crate::{Exit, json, terminal, worker_binary};

/// Applies the sandbox in a throwaway process, loads the engine in another, and says what was found.
pub(crate) fn run(output: Output) -> Exit {
    let (sandbox, engine) = match worker_binary::find() {
        Ok(binary) => (sandbox_status(&binary.path), find_engine(&binary, JitTier::Off)),
        Err(error) => (SandboxStatus::unknown(&error.to_string()), Err(error)),
    };
    let text = if output.json { as_json(&sandbox, &engine) } else { as_text(&sandbox, &engine) };
    match terminal::print(&text) {
        Exit::Fine if sandbox.is_complete() && engine.is_ok() => Exit::Fine,
        Exit::Fine => Exit::NotAvailable,
        failed => failed,
    }
}

fn as_text(sandbox: &SandboxStatus, engine: &Result<String, Error>) -> String {
    let (state, engine) = match engine {
        Ok(library) => ("yes", library.clone()),
        Err(error) => ("NO", error.to_string()),
    };
    format!("{:<15} {state:<3}  {engine}\n{}", "engine", sandbox.explain())
}

fn as_json(sandbox: &SandboxStatus, engine: &Result<String, Error>) -> String {
    let mut object = serde_json::json!({
        "applied": sandbox.applied(),
        "complete": sandbox.is_complete(),
        "hardened": sandbox.is_hardened(),
        "required": sandbox.required(),
        "warnings": sandbox.warnings(),
        "platform": sandbox.platform(),
        "kernel": sandbox.kernel(),
        "engine": engine.as_ref().ok(),
        "engine_error": engine.as_ref().err().map(ToString::to_string),
    });
    for layer in sandbox.layers() {
        object[&layer.name] = serde_json::json!({
            "applied": layer.applied, "detail": layer.detail, "fix": layer.fix,
        });
    }
    // Escaped again for the terminal's sake: serde_json leaves everything above U+001F as it is.
    format!("{}\n", json::safe(&object.to_string()))
}
