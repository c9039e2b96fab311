//! WebAssembly modules of the host's beside the guest.
//!
//! What the guest gets is made by JavaScript of the prelude, which is compiled when the first module is loaded.

use std::cell::OnceCell;
use std::fmt::Write as _;

use pydeno_wire::Text;
use pydeno_wire::message::{Failure, JsError, WasmExport, WasmExportKind, WasmImport, WasmModule};

use crate::deadline::EvalLimits;
use crate::ffi::{EngineString, Kept, Kind, Local, NativeFunction, ScriptError};
use crate::host_function::{self, HostFunction};
use crate::isolate::Isolate;
use crate::json;
use crate::requests::RequestId;

const LOAD: &str = include_str!("js/load_webassembly.js");

/// What the loader's own code is called in stacks, from which it is taken out.
pub(crate) const WASM_LOADER: &str = "pydeno:webassembly";

/// What loads modules, once one has been.
#[derive(Default)]
pub(crate) struct WebAssemblyLoader {
    load: OnceCell<Kept>,
}

impl Isolate {
    /// Begins to compile a module of the host's, which the isolate must have been made for: see
    /// [`WebAssembly`](crate::WebAssembly). The value is an object of what it exports, and so is a global of the module's name.
    ///
    /// `functions` are what it imports, in its order. A module that is loaded under a name again takes the place of the one
    /// before.
    ///
    /// # Panics
    ///
    /// As [`begin_eval`](Self::begin_eval).
    pub fn begin_load_wasm(
        &self,
        request: RequestId,
        module: &WasmModule,
        functions: Vec<HostFunction>,
        limits: &EvalLimits<'_>,
    ) {
        self.begin_plain(request, limits, || self.load_wasm(module, functions));
    }

    fn load_wasm(&self, module: &WasmModule, functions: Vec<HostFunction>) -> Result<Local<'_>, Failure> {
        let (context, prelude) = (&self.context, &self.shared.prelude);
        let table = context.table();
        let load = self.wasm_loader()?;
        let natives: Vec<NativeFunction> = module
            .imports
            .iter()
            .zip(functions)
            .map(|(import, function)| host_function::make(context, &self.shared, &import.name, function))
            .collect();
        let places = format!("[{}]", vec!["null"; natives.len()].join(","));
        let parsed = |text: &str| {
            let parsed = context.parse_json(&EngineString::from_str(table, text));
            parsed.ok_or_else(|| type_error("there is no memory for the module"))
        };
        let list = parsed(&places)?;
        for (index, native) in natives.iter().enumerate() {
            context
                .set_index(list, index as u32, native.get(context))
                .map_err(|thrown| self.describe(thrown))?;
        }
        let code = context.bytes(&module.code).map_err(|thrown| self.describe(thrown))?;
        let arguments = [code, parsed(&description(module))?, list, context.global()];
        let exports = prelude.call(context, load, &arguments).map_err(|thrown| self.describe(thrown))?;
        self.keep_functions(natives);
        Ok(exports)
    }

    fn wasm_loader(&self) -> Result<&Kept, Failure> {
        let loader = &self.shared.webassembly.load;
        if let Some(load) = loader.get() {
            return Ok(load);
        }
        let (context, prelude) = (&self.context, &self.shared.prelude);
        let compiler = prelude.compiler.get(context);
        if context.kind(compiler) != Kind::Object {
            return Err(type_error("there is no WebAssembly here"));
        }
        let string = |text: &str| EngineString::from_str(context.table(), text);
        let load = context
            .evaluate(&string(LOAD), &string(WASM_LOADER))
            .and_then(|link| Ok(context.call(link, &[prelude.builtins.get(context), compiler])?))
            .map_err(|error| match error {
                ScriptError::Thrown(thrown) => self.describe(thrown),
                ScriptError::Syntax { message, .. } => type_error(&message.to_text().to_string_lossy()),
            })?;
        Ok(loader.get_or_init(|| Kept::new(context, load)))
    }
}

/// What the loader reads of a module, as JSON: imports and exports in their order, each a list of its fields.
fn description(module: &WasmModule) -> String {
    let string = |text: &Text| json::string(&text.to_string_lossy());
    let mut out = format!(r#"{{"name":{},"imports":["#, string(&module.name));
    for (index, WasmImport { module, name, result }) in module.imports.iter().enumerate() {
        let result = result.map_or_else(|| "null".to_owned(), |result| (result as u8).to_string());
        let separator = if index > 0 { "," } else { "" };
        let _ = write!(out, "{separator}[{},{},{result}]", string(module), string(name));
    }
    out.push_str("],\"exports\":[");
    for (index, WasmExport { name, kind }) in module.exports.iter().enumerate() {
        let separator = if index > 0 { "," } else { "" };
        let _ = write!(out, "{separator}[{},", string(name));
        match kind {
            WasmExportKind::Function(parameters) => {
                let numbers: Vec<String> =
                    parameters.iter().map(|&parameter| (parameter as u8).to_string()).collect();
                let _ = write!(out, "0,[{}]]", numbers.join(","));
            }
            WasmExportKind::Memory => out.push_str("1]"),
            WasmExportKind::Constant => out.push_str("2]"),
        }
    }
    out.push_str("]}");
    out
}

fn type_error(message: &str) -> Failure {
    Failure::Js(JsError { name: "TypeError".into(), message: message.into(), ..JsError::default() })
}
