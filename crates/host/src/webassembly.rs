//! What a WebAssembly module of the host's imports and exports, read before it is sent.
//!
//! The host vouches for the module, so this is no check of it: the engine that compiles it validates it. It is read here so that
//! what is wrong with it is told at once, and so that the worker need not be asked what it has.

use std::collections::HashMap;

use pydeno_wire::message::{WasmExport, WasmExportKind, WasmImport, WasmModule, WasmNumber};
use pydeno_wire::{Text, Value};
use wasmparser::{ExternalKind, FuncType, GlobalType, MemoryType, Parser, Payload, TypeRef, ValType};

use crate::error::Error;

/// A page of a memory, in bytes.
const PAGE_BYTES: u64 = 64 << 10;
/// What names of imports begin with that a system interface gives.
const WASI: &str = "wasi";

/// What a module imports and exports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WasmOutline {
    /// The functions that it imports, in its order.
    pub imports: Vec<WasmFunction>,
    /// The functions of its exports.
    pub functions: Vec<WasmFunction>,
    /// The names of its exports that no guest gets: tables, tags, variables, functions of other types than numbers, and memories
    /// that are shared.
    pub left_out: Vec<String>,
    /// With how many pages of 64 KiB its memories begin.
    pub memory_pages: u64,
    /// To how many they can grow, where it says so of each.
    pub max_memory_pages: Option<u64>,
    exports: Vec<WasmExport>,
}

/// A function of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WasmFunction {
    /// Where it is imported from; empty for one that is exported.
    pub module: String,
    /// Its name.
    pub name: String,
    /// Its type: `(i32, i64) -> f64`.
    pub signature: String,
    result: Option<WasmNumber>,
}

impl WasmOutline {
    /// Reads a module in the binary format.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`]: it is none, or it imports something else than functions of numbers.
    pub fn read(code: &[u8]) -> Result<Self, Error> {
        let sections = Sections::read(code).map_err(|error| refused(&format!("does not parse: {error}")))?;
        sections.outline()
    }

    /// Says which functions the module needs that it is not given.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] where there are such.
    pub fn refuse_missing(&self, is_given: impl Fn(&str, &str) -> bool) -> Result<(), Error> {
        let missing = self.imports.iter().filter(|import| !is_given(&import.module, &import.name));
        let missing: Vec<&WasmFunction> = missing.collect();
        if missing.is_empty() {
            return Ok(());
        }
        let named = missing
            .iter()
            .map(|import| format!("{}.{} {}", import.module, import.name, import.signature))
            .collect::<Vec<_>>()
            .join(", ");
        let advice = if missing.iter().any(|import| import.module.starts_with(WASI)) {
            "there is no WASI here: build it for a target without a system, such as wasm32-unknown-unknown, or give \
             functions of these names with `imports`"
        } else {
            "give them with `imports`"
        };
        Err(refused(&format!("imports functions that were not given: {named}; {advice}")))
    }

    /// Refuses a module whose memory passes a limit from the beginning.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] where it does.
    pub fn refuse_larger(&self, limit: u64, name: &str) -> Result<(), Error> {
        let bytes = self.memory_pages.saturating_mul(PAGE_BYTES);
        if bytes <= limit {
            return Ok(());
        }
        Err(refused(&format!("begins with {bytes} bytes of memory; `{name}` allows {limit}")))
    }

    /// The names of what the guest gets.
    pub fn exports(&self) -> impl Iterator<Item = &Text> {
        self.exports.iter().map(|export| &export.name)
    }

    /// The module as it is sent, to be the global of this name.
    pub fn module(&self, name: Text, code: Vec<u8>) -> WasmModule {
        let imports = self.imports.iter().map(|import| WasmImport {
            module: import.module.as_str().into(),
            name: import.name.as_str().into(),
            result: import.result,
        });
        WasmModule { name, code, imports: imports.collect(), exports: self.exports.clone() }
    }
}

/// What of a module's sections matters here; functions, globals and memories that are imported come first in their list.
#[derive(Default)]
struct Sections {
    types: Vec<FuncType>,
    /// First and second name, and the type's number.
    imported: Vec<(String, String, u32)>,
    /// What it imports that is no function, by kind and names.
    others: Vec<String>,
    /// Types, by number.
    functions: Vec<u32>,
    globals: Vec<GlobalType>,
    memories: Vec<MemoryType>,
    exports: Vec<(String, ExternalKind, u32)>,
}

impl Sections {
    fn read(code: &[u8]) -> Result<Self, String> {
        let mut sections = Self::default();
        for payload in Parser::new(0).parse_all(code) {
            sections.take(payload.map_err(|error| error.to_string())?)?;
        }
        Ok(sections)
    }

    fn take(&mut self, payload: Payload<'_>) -> Result<(), String> {
        let read: wasmparser::Result<()> = match payload {
            Payload::Version { encoding: wasmparser::Encoding::Component, .. } => {
                return Err("it is a component and no module".to_owned());
            }
            Payload::TypeSection(types) => types
                .into_iter_err_on_gc_types()
                .collect::<wasmparser::Result<Vec<_>>>()
                .map(|types| self.types = types),
            Payload::ImportSection(imports) => imports.into_imports().try_for_each(|import| {
                self.import(&import?);
                Ok(())
            }),
            Payload::FunctionSection(functions) => functions.into_iter().try_for_each(|function| {
                self.functions.push(function?);
                Ok(())
            }),
            Payload::MemorySection(memories) => memories.into_iter().try_for_each(|memory| {
                self.memories.push(memory?);
                Ok(())
            }),
            Payload::GlobalSection(globals) => globals.into_iter().try_for_each(|global| {
                self.globals.push(global?.ty);
                Ok(())
            }),
            Payload::ExportSection(exports) => exports.into_iter().try_for_each(|export| {
                let export = export?;
                self.exports.push((export.name.to_owned(), export.kind, export.index));
                Ok(())
            }),
            _ => Ok(()),
        };
        read.map_err(|error| error.to_string())
    }

    fn import(&mut self, import: &wasmparser::Import<'_>) {
        let kind = match import.ty {
            TypeRef::Func(index) | TypeRef::FuncExact(index) => {
                self.functions.push(index);
                self.imported.push((import.module.to_owned(), import.name.to_owned(), index));
                return;
            }
            TypeRef::Table(_) => "table",
            TypeRef::Memory(_) => "memory",
            TypeRef::Global(_) => "global",
            TypeRef::Tag(_) => "tag",
        };
        self.others.push(format!("the {kind} {}.{}", import.module, import.name));
    }

    fn outline(self) -> Result<WasmOutline, Error> {
        if !self.others.is_empty() {
            let others = self.others.join(", ");
            return Err(refused(&format!(
                "imports {others}; only functions can be given, so build it to define them itself"
            )));
        }
        let mut outline = WasmOutline {
            memory_pages: self
                .memories
                .iter()
                .fold(0, |pages, memory| pages.saturating_add(pages_of(memory.initial, memory))),
            max_memory_pages: self.memories.iter().try_fold(0_u64, |pages, memory| {
                memory.maximum.map(|maximum| pages.saturating_add(pages_of(maximum, memory)))
            }),
            ..WasmOutline::default()
        };
        for (module, name, index) in &self.imported {
            outline.imports.push(self.imported_function(module, name, *index)?);
        }
        for (name, kind, index) in &self.exports {
            let kind = match kind {
                ExternalKind::Func | ExternalKind::FuncExact => {
                    self.exported_function(*index).map(|(parameters, signature)| {
                        let (module, name) = (String::new(), name.clone());
                        outline.functions.push(WasmFunction { module, name, signature, result: None });
                        WasmExportKind::Function(parameters)
                    })
                }
                ExternalKind::Memory => self
                    .memories
                    .get(*index as usize)
                    .filter(|memory| !memory.shared)
                    .map(|_| WasmExportKind::Memory),
                ExternalKind::Global => {
                    let global = self.globals.get(*index as usize);
                    let is_constant =
                        global.is_some_and(|global| !global.mutable && number(global.content_type).is_some());
                    is_constant.then_some(WasmExportKind::Constant)
                }
                ExternalKind::Table | ExternalKind::Tag => None,
            };
            match kind {
                Some(kind) => outline.exports.push(WasmExport { name: name.as_str().into(), kind }),
                None => outline.left_out.push(name.clone()),
            }
        }
        Ok(outline)
    }

    fn imported_function(&self, module: &str, name: &str, index: u32) -> Result<WasmFunction, Error> {
        let signature = self.types.get(index as usize).and_then(|signature| {
            let (_, results) = numbers_of(signature)?;
            (results.len() <= 1).then(|| (results.first().copied(), shown(signature)))
        });
        let Some((result, signature)) = signature else {
            return Err(refused(&format!(
                "imports the function {module}.{name}, which has something else than numbers or more than one result; \
                 such functions cannot be given"
            )));
        };
        Ok(WasmFunction { module: module.to_owned(), name: name.to_owned(), signature, result })
    }

    fn exported_function(&self, index: u32) -> Option<(Vec<WasmNumber>, String)> {
        let signature = self.types.get(*self.functions.get(index as usize)? as usize)?;
        let (parameters, _) = numbers_of(signature)?;
        Some((parameters, shown(signature)))
    }
}

/// The functions that a guest gets of a memory.
const OF_MEMORY: [&str; 3] = ["size", "read", "write"];

/// Whether this can be what a guest has of a module with these exports: what a worker says is a claim.
pub(crate) fn is_what_is_exported(exports: &[WasmExport], value: &Value) -> bool {
    let Value::Object(members) = value else { return false };
    let members: HashMap<&Text, &Value> = members.iter().map(|(name, member)| (name, member)).collect();
    members.len() == exports.len()
        && exports.iter().all(|export| {
            members.get(&export.name).is_some_and(|member| match (&export.kind, member) {
                (WasmExportKind::Function(_), Value::Function(_))
                | (WasmExportKind::Constant, Value::Number(_) | Value::BigInt(_)) => true,
                (WasmExportKind::Memory, Value::Object(functions)) => {
                    functions.len() == OF_MEMORY.len()
                        && functions.iter().zip(OF_MEMORY).all(|((name, function), expected)| {
                            *name == *expected && matches!(function, Value::Function(_))
                        })
                }
                _ => false,
            })
        })
}

/// Pages of 64 KiB, of a memory whose pages may have another size.
fn pages_of(pages: u64, memory: &MemoryType) -> u64 {
    match memory.page_size_log2 {
        None => pages,
        Some(shift) => {
            pages.saturating_mul(1_u64.checked_shl(shift).unwrap_or(u64::MAX)).div_ceil(PAGE_BYTES)
        }
    }
}

fn number(value: ValType) -> Option<WasmNumber> {
    match value {
        ValType::I32 => Some(WasmNumber::I32),
        ValType::I64 => Some(WasmNumber::I64),
        ValType::F32 => Some(WasmNumber::F32),
        ValType::F64 => Some(WasmNumber::F64),
        ValType::V128 | ValType::Ref(_) => None,
    }
}

/// Parameters and results; `None` where one is no number.
fn numbers_of(signature: &FuncType) -> Option<(Vec<WasmNumber>, Vec<WasmNumber>)> {
    let numbers = |values: &[ValType]| values.iter().map(|&value| number(value)).collect::<Option<Vec<_>>>();
    Some((numbers(signature.params())?, numbers(signature.results())?))
}

fn shown(signature: &FuncType) -> String {
    let list = |values: &[ValType]| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let parameters = list(signature.params());
    match signature.results() {
        [one] => format!("({parameters}) -> {one}"),
        results => format!("({parameters}) -> ({})", list(results)),
    }
}

fn refused(what: &str) -> Error {
    Error::InvalidInput { what: format!("the WebAssembly module {what}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    use pydeno_wire::Function;

    /// (module
    ///   (import "env" "f" (func (param i32) (result i64)))
    ///   (memory (export "m") 1 3) (table (export "t") 1 funcref)
    ///   (global (export "c") i32 (i32.const 42)) (global (export "v") (mut i32) (i32.const 7))
    ///   (func (export "g") (param f32 f64) (result i32) (i32.const 0))
    ///   (func (export "r") (param funcref)))
    const MODULE: &[u8] = b"\0asm\x01\0\0\0\
        \x01\x10\x03\x60\x01\x7F\x01\x7E\x60\x02\x7D\x7C\x01\x7F\x60\x01\x70\x00\
        \x02\x09\x01\x03env\x01f\x00\x00\
        \x03\x03\x02\x01\x02\
        \x04\x04\x01\x70\x00\x01\
        \x05\x04\x01\x01\x01\x03\
        \x06\x0B\x02\x7F\x00\x41\x2A\x0B\x7F\x01\x41\x07\x0B\
        \x07\x19\x06\x01m\x02\x00\x01t\x01\x00\x01c\x03\x00\x01v\x03\x01\x01g\x00\x01\x01r\x00\x02\
        \x0A\x09\x02\x04\x00\x41\x00\x0B\x02\x00\x0B";

    fn outline() -> WasmOutline {
        WasmOutline::read(MODULE).expect("it is a module")
    }

    #[test]
    fn a_module_is_read() {
        let outline = outline();
        let import = &outline.imports[0];
        assert_eq!((&*import.module, &*import.name, &*import.signature), ("env", "f", "(i32) -> i64"));
        assert_eq!(import.result, Some(WasmNumber::I64));
        assert_eq!(
            (&*outline.functions[0].name, &*outline.functions[0].signature),
            ("g", "(f32, f64) -> i32")
        );
        assert_eq!(outline.functions.len(), 1);
        assert_eq!(outline.left_out, ["t", "v", "r"]);
        assert_eq!((outline.memory_pages, outline.max_memory_pages), (1, Some(3)));
        let names: Vec<&Text> = outline.exports().collect();
        assert_eq!(names, [&Text::from("m"), &Text::from("c"), &Text::from("g")]);
    }

    #[test]
    fn a_module_that_is_cut_or_changed_is_read_or_refused() {
        let mut refused = 0;
        for end in 0..MODULE.len() {
            refused += u32::from(WasmOutline::read(&MODULE[..end]).is_err());
        }
        assert!(refused > 80, "{refused}");
        let mut changed = MODULE.to_vec();
        for place in 0..MODULE.len() {
            for byte in 0..=u8::MAX {
                changed[place] = byte;
                let _ = WasmOutline::read(&changed);
            }
            changed[place] = MODULE[place];
        }
    }

    #[test]
    fn what_is_missing_is_told() {
        let told = |result: Result<(), Error>| result.unwrap_err().to_string();
        let missing = told(outline().refuse_missing(|_, _| false));
        assert!(missing.contains("env.f (i32) -> i64; give them with `imports`"), "{missing}");
        assert!(outline().refuse_missing(|module, name| (module, name) == ("env", "f")).is_ok());
        assert!(told(outline().refuse_larger(65_535, "max_memory")).contains("`max_memory` allows 65535"));
        assert!(outline().refuse_larger(65_536, "max_memory").is_ok());
    }

    fn function() -> Value {
        Value::Function(Function { handle: 1, name: "f".into() })
    }

    fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
        Value::Object(members.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    fn memory() -> Value {
        object([("size", function()), ("read", function()), ("write", function())])
    }

    #[test]
    fn exports_are_what_the_module_has_and_nothing_else() {
        let exports = outline().exports;
        let is = |value: Value| is_what_is_exported(&exports, &value);
        let all = || [("m", memory()), ("c", Value::Number(42.0)), ("g", function())];
        assert!(is(object(all())));
        // An object of a script has the names that are numbers first.
        let [m, c, g] = all();
        assert!(is(object([g, m, c])));
        assert!(is_what_is_exported(&[], &object([])));

        assert!(!is(Value::Null));
        assert!(!is(object([])));
        let [m, c, g] = all();
        assert!(!is(object([m.clone(), c.clone(), g.clone(), ("x", function())])), "something else besides");
        assert!(!is(object([m.clone(), c.clone(), ("x", function())])), "something else instead");
        assert!(!is(object([m.clone(), c.clone(), ("g", Value::Null)])));
        assert!(!is(object([m, ("c", function()), g.clone()])));
        for odd in [
            Value::Bytes(vec![0]),
            object([("size", function()), ("read", function())]),
            object([("size", function()), ("read", function()), ("write", Value::Null)]),
        ] {
            assert!(!is(object([("m", odd), c.clone(), g.clone()])));
        }
    }
}
