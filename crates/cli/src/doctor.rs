//! `pydeno doctor`: what the sandbox can be on this machine, and which engine there is.

use pydeno_host::{Error, JitTier, WorkerBinary, find_engine, probe_sandbox};
use pydeno_wire::message::SandboxReport;

use crate::arguments::Output;
use crate::{Exit, json, terminal, worker_binary};

/// The layers that a worker under `--sandbox require` does without.
const BONUS: &[&str] = &["empty_root"];

/// Applies the sandbox in a throwaway process, loads the engine in another, and says what was found.
pub(crate) fn run(output: Output) -> Exit {
    let binary = match worker_binary::find() {
        Ok(binary) => binary,
        Err(error) => {
            terminal::complain(&error.to_string());
            return Exit::NotAvailable;
        }
    };
    let sandbox = probe_sandbox(&binary);
    let engine = engine_of(&binary);
    let complete = sandbox.as_ref().is_ok_and(is_complete);
    let text =
        if output.json { as_json(&sandbox, &engine, complete) } else { as_text(&sandbox, &engine, complete) };
    match terminal::print(&text) {
        Exit::Fine if complete && engine.is_ok() => Exit::Fine,
        Exit::Fine => Exit::NotAvailable,
        failed => failed,
    }
}

fn engine_of(binary: &WorkerBinary) -> Result<String, Error> {
    find_engine(binary, JitTier::Off)
}

fn is_complete(report: &SandboxReport) -> bool {
    !report.layers.is_empty()
        && report.layers.iter().all(|layer| layer.applied || BONUS.contains(&layer.name.as_str()))
}

fn as_text(sandbox: &Result<SandboxReport, Error>, engine: &Result<String, Error>, complete: bool) -> String {
    let mut text = String::new();
    match engine {
        Ok(library) => text.push_str(&format!("engine         yes  {library}\n")),
        Err(error) => text.push_str(&format!("engine         NO   {error}\n")),
    }
    match sandbox {
        Ok(report) => {
            for layer in &report.layers {
                let state = if layer.applied { "yes" } else { "NO " };
                text.push_str(&format!("{:<14} {state}  {}\n", layer.name, layer.detail));
                if !layer.fix.is_empty() {
                    text.push_str(&format!("{:<20}to fix: {}\n", "", layer.fix));
                }
            }
        }
        Err(error) => text.push_str(&format!("sandbox        NO   {error}\n")),
    }
    text.push_str(if complete {
        "The sandbox is complete: sandbox=\"require\" starts here.\n"
    } else {
        "The sandbox is not complete: sandbox=\"require\" refuses to start here.\n"
    });
    text
}

fn as_json(sandbox: &Result<SandboxReport, Error>, engine: &Result<String, Error>, complete: bool) -> String {
    let text = |text: &str| serde_json::Value::from(text);
    let layers = sandbox.as_ref().map_or_else(
        |_| Vec::new(),
        |report| {
            report
                .layers
                .iter()
                .map(|layer| {
                    serde_json::json!({
                        "name": layer.name, "applied": layer.applied, "detail": layer.detail, "fix": layer.fix,
                    })
                })
                .collect()
        },
    );
    let error =
        [sandbox.as_ref().err(), engine.as_ref().err()].into_iter().flatten().map(ToString::to_string);
    let object = serde_json::json!({
        "complete": complete && engine.is_ok(),
        "engine": engine.as_ref().map_or(serde_json::Value::Null, |library| text(library)),
        "layers": layers,
        "errors": error.collect::<Vec<_>>(),
    });
    // Escaped again for the terminal's sake: serde_json leaves everything above U+001F as it is.
    format!("{}\n", json::safe(&object.to_string()))
}
