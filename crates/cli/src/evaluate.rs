//! `pydeno CODE`: one evaluation in a worker of its own.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read};

use pydeno_host::{Error, HostFunctions, Interrupted, Options, Runtime, supervisor};
use pydeno_wire::message::{ConsoleLevel, Frame, HostError, JsError, Language};
use pydeno_wire::{Text, Value};

use crate::arguments::{Input, MAX_INPUT, Output};
use crate::{Exit, json, terminal, worker_binary};

/// Evaluates the input and prints its value.
pub(crate) fn run(input: &Input, options: Options, output: Output) -> Exit {
    let (source, name) = match read(input) {
        Ok(read) => read,
        Err(message) => {
            terminal::complain(&message);
            return Exit::Usage;
        }
    };
    let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| name.ends_with(suffix));
    let language = if ends(&[".ts", ".mts", ".cts"]) { Language::TypeScript } else { Language::JavaScript };
    let is_module = ends(&[".mjs", ".mts"]);
    let outcome = supervisor(worker_binary::find)
        .and_then(|supervisor| Runtime::new(supervisor, options))
        .and_then(|runtime| {
            if is_module {
                runtime.eval_module(source, &name, language, &mut NoHost)
            } else {
                runtime.eval(source, &name, language, false, &mut NoHost)
            }
        });
    match outcome {
        Ok(exports) if is_module => print_value(&default_of(exports), output),
        Ok(value) => print_value(&value, output),
        Err(error) => print_error(&error, output),
    }
}

/// A module's default export, or all its exports where there is none.
fn default_of(exports: Value) -> Value {
    match exports {
        Value::Object(mut exports) => {
            match exports.iter().position(|(name, _)| name.as_str() == Some("default")) {
                Some(index) => exports.swap_remove(index).1,
                None => Value::Object(exports),
            }
        }
        other => other,
    }
}

/// The script and its name, or what to tell the user.
fn read(input: &Input) -> Result<(Text, String), String> {
    let (bytes, name) = match input {
        Input::Code(code) => (code.as_encoded_bytes().to_vec(), "command".to_owned()),
        Input::Stdin => (limited(io::stdin().lock(), "standard input")?, "stdin".to_owned()),
        Input::File(path) => {
            let name = path.display().to_string();
            let file = File::open(path).map_err(|error| format!("{name}: {error}"))?;
            (limited(file, &name)?, name)
        }
    };
    let source = String::from_utf8(bytes).map_err(|error| format!("{name} is not UTF-8: {error}"))?;
    Ok((source.into(), name))
}

/// Everything there is to read, unless it is more than a script may have.
pub(crate) fn limited(reader: impl Read, name: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    reader.take(MAX_INPUT + 1).read_to_end(&mut bytes).map_err(|error| format!("{name}: {error}"))?;
    if bytes.len() as u64 > MAX_INPUT {
        return Err(format!("{name} has more than {MAX_INPUT} bytes"));
    }
    Ok(bytes)
}

fn print_value(value: &Value, output: Output) -> Exit {
    let text = match value {
        Value::String(text) if output.raw && !output.json => raw(text),
        _ => match json::to_json(value) {
            Ok(text) if output.json => format!("{{\"ok\": true, \"value\": {text}}}\n"),
            Ok(text) => text + "\n",
            Err(error) => {
                complain(output, "no_json_form", &error.to_string(), "");
                return Exit::NoJson;
            }
        },
    };
    if text.len() as u64 > output.max_bytes {
        let (length, max) = (text.len(), output.max_bytes);
        complain(
            output,
            "output_limit",
            &format!("the value takes {length} bytes; --max-output allows {max}"),
            "",
        );
        return Exit::Failure;
    }
    terminal::print(&text)
}

/// Exact for a pipe or file; without what a terminal would act on for a terminal.
fn raw(text: &Text) -> String {
    if io::stdout().is_terminal() {
        text.display_safe().into_owned() + "\n"
    } else {
        text.to_string_lossy().into_owned()
    }
}

fn print_error(error: &Error, output: Output) -> Exit {
    let mut stack = String::new();
    if let Error::Js(js) = error {
        for Frame { function, file, line, column } in &js.frames {
            let (function, file) = (function.display_safe(), file.display_safe());
            let space = if function.is_empty() { "" } else { " " };
            stack.push_str(&format!("\n    at {function}{space}{file}:{line}:{column}"));
        }
    }
    complain(output, error.kind(), &error.to_string(), &stack);
    match error.kind() {
        "js_error" => Exit::JavaScriptError,
        "timeout" => Exit::Timeout,
        "sandbox_unavailable" | "engine_unavailable" => Exit::NotAvailable,
        _ => Exit::Failure,
    }
}

fn complain(output: Output, kind: &str, message: &str, stack: &str) {
    if output.json {
        let (kind, message) = (json::quote(&kind.into()), json::quote(&message.into()));
        // The exit code says the rest, also when nobody reads this.
        terminal::print(&format!(
            "{{\"ok\": false, \"error\": {{\"kind\": {kind}, \"message\": {message}}}}}\n"
        ));
    } else {
        terminal::complain(&format!("{message}{stack}"));
    }
}

/// A command binds no functions; Ctrl-C ends it, and its worker with it.
struct NoHost;

impl HostFunctions for NoHost {
    fn call(&mut self, _: u64, _: u32, _: Vec<Value>) -> Result<Result<Value, HostError>, Interrupted> {
        Err(Interrupted)
    }

    fn start(&mut self, _: u64, _: u64, _: u32, _: Vec<Value>) {}

    fn console(&mut self, _: ConsoleLevel, _: Text) -> Result<(), Interrupted> {
        Ok(())
    }

    fn unhandled_rejection(&mut self, _: JsError) -> Result<(), Interrupted> {
        Ok(())
    }

    fn check_interrupt(&mut self) -> Result<(), Interrupted> {
        Ok(())
    }
}
