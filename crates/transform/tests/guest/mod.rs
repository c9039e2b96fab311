//! The engine, scripts in it as a runtime would evaluate them, and a loader of modules.

#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]

use pydeno_engine::{Engine, EvalLimits, Isolate, IsolateOptions};
use pydeno_transform::{
    Completion, ExportedAs, ImportedName, Language, Module, ModuleOptions, Script, ScriptOptions,
    TransformError, module, script,
};
use pydeno_wire::message::{Failure, JsError};
use pydeno_wire::{Text, Value};

pub const REPL: ScriptOptions<'_> = ScriptOptions { redeclare: true, ..javascript() };
pub const TYPESCRIPT: ScriptOptions<'_> = ScriptOptions { language: Language::TypeScript, ..javascript() };

pub const fn javascript() -> ScriptOptions<'static> {
    ScriptOptions {
        language: Language::JavaScript,
        decorators: pydeno_transform::Decorators::Refuse,
        redeclare: false,
        import_function: None,
        max_source_bytes: pydeno_transform::MAX_SOURCE_BYTES,
    }
}

pub fn transformed(source: &str) -> Script<'_> {
    script(source, &javascript()).unwrap_or_else(|error| panic!("{source}\nis refused: {error}"))
}

pub fn refused(source: &str, options: &ScriptOptions<'_>) -> TransformError {
    script(source, options).err().unwrap_or_else(|| panic!("{source}\nis not refused"))
}

pub struct Guest(Isolate);

impl Guest {
    pub fn new() -> Self {
        let engine = Engine::load().expect("the tests need JavaScriptCore");
        Self(Isolate::new(engine, &IsolateOptions::default()).expect("an isolate can be made"))
    }

    /// Evaluates a text as it is.
    pub fn raw(&mut self, text: &str) -> Result<Value, Failure> {
        self.0.eval(&Text::from(text), "test.js", &EvalLimits::default())
    }

    pub fn run(&mut self, source: &str, options: &ScriptOptions<'_>) -> Result<Value, Failure> {
        let script = script(source, options).unwrap_or_else(|error| panic!("{source}\nis refused: {error}"));
        let value = self.raw(&script.text)?;
        match (script.completion, value) {
            (Completion::Value, value) => Ok(value),
            (Completion::Promise, Value::Object(mut properties)) => {
                assert_eq!(properties.len(), 1, "{source}");
                Ok(properties.remove(0).1)
            }
            (Completion::Promise, other) => panic!("{source}\ngave {other:?}"),
        }
    }

    pub fn value(&mut self, source: &str, options: &ScriptOptions<'_>) -> Value {
        self.run(source, options).unwrap_or_else(|failure| panic!("{source}\nfailed: {failure:?}"))
    }

    pub fn error(&mut self, source: &str, options: &ScriptOptions<'_>) -> JsError {
        match self.run(source, options) {
            Err(Failure::Js(error)) => error,
            other => panic!("{source}\nthrew nothing: {other:?}"),
        }
    }

    /// Evaluates the first of some modules; the value is its namespace as a plain object, or what it threw.
    pub fn modules(&mut self, sources: &[(&str, &str)]) -> Result<Value, Failure> {
        self.modules_in(Language::JavaScript, sources)
    }

    pub fn modules_in(&mut self, language: Language, sources: &[(&str, &str)]) -> Result<Value, Failure> {
        let options = ModuleOptions { language, ..ModuleOptions::default() };
        let records: Vec<_> = sources
            .iter()
            .map(|(name, source)| {
                let module =
                    module(source, &options).unwrap_or_else(|error| panic!("{source}\nis refused: {error}"));
                format!("{}:{}", quoted(name), record(&module))
            })
            .collect();
        let loader = include_str!("loader.js");
        self.raw(&format!("({})({{{}}},{})", loader.trim_end(), records.join(","), quoted(sources[0].0)))
    }
}

/// A module as the loader gets it.
fn record(module: &Module) -> String {
    let requests: Vec<_> = module
        .requests
        .iter()
        .map(|request| {
            let attributes: Vec<_> = request
                .attributes
                .iter()
                .map(|(key, value)| format!("[{},{}]", quoted(key), quoted(value)))
                .collect();
            format!("{{specifier:{},attributes:[{}]}}", quoted(&request.specifier), attributes.join(","))
        })
        .collect();
    let name = |name: &ImportedName| match name {
        ImportedName::Name(name) => quoted(name),
        ImportedName::Namespace => "null".to_owned(),
    };
    let imports: Vec<_> = module
        .imports
        .iter()
        .map(|import| {
            format!(
                "{{local:{},request:{},name:{}}}",
                quoted(&import.local),
                import.request,
                name(&import.name)
            )
        })
        .collect();
    let exports: Vec<_> = module
        .exports
        .iter()
        .map(|export| {
            let exported = export.name.as_deref().map_or_else(|| "null".to_owned(), quoted);
            match &export.exported_as {
                ExportedAs::Local => format!("{{kind:'local',name:{exported}}}"),
                ExportedAs::Indirect { request, name: imported } => {
                    format!(
                        "{{kind:'indirect',name:{exported},request:{request},imported:{}}}",
                        name(imported)
                    )
                }
                ExportedAs::Star { request } => format!("{{kind:'star',request:{request}}}"),
            }
        })
        .collect();
    format!(
        "{{run:{}\n,requests:[{}],imports:[{}],exports:[{}],asynchronous:{}}}",
        module.text,
        requests.join(","),
        imports.join(","),
        exports.join(","),
        module.asynchronous
    )
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}

pub fn number(value: f64) -> Value {
    Value::Number(value)
}

pub fn string(value: &str) -> Value {
    Value::String(value.into())
}

pub fn array<const N: usize>(values: [Value; N]) -> Value {
    Value::Array(values.into())
}

pub fn object<const N: usize>(properties: [(&str, Value); N]) -> Value {
    Value::Object(properties.into_iter().map(|(key, value)| (key.into(), value)).collect())
}
