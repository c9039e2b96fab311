//! Modules: the loader, which is JavaScript of the prelude, and what it needs of Rust and of the host.
//!
//! The engine evaluates scripts only. `pydeno_transform` makes a function of a module, and the loader connects the
//! functions as the language says. It is compiled when something is imported for the first time.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::rc::Rc;

use pydeno_transform::{ExportedAs, ImportedName, MAX_SOURCE_BYTES, ModuleOptions, Position, TransformError};
use pydeno_wire::Text;
use pydeno_wire::message::{Failure, Frame, JsError, Language, Place};

use crate::async_function::{self, AsyncHostFunction};
use crate::ffi::{Context, EngineString, Kept, Local, NativeFunction, ScriptError, Thrown};
use crate::host_function::{self, BindError, HostFunction};
use crate::isolate::{Isolate, Shared};
use crate::prelude::Prelude;
use crate::requests::RequestId;
use crate::{json, syntax};

const RECORD: &str = include_str!("js/modules/record.js");
const LINK: &str = include_str!("js/modules/link.js");
const EVALUATE: &str = include_str!("js/modules/evaluate.js");
const LOAD: &str = include_str!("js/modules/load.js");

/// What the loader's own code is called in stacks, from which it is taken out.
pub(crate) const LOADER: &str = "pydeno:modules";
/// The global function that `import()` of a script became.
pub(crate) const IMPORT: &str = "__pydeno_import__";

/// A module as its author wrote it.
#[derive(Clone, Copy, Debug)]
pub struct Module<'s> {
    /// Its text.
    pub source: &'s Text,
    /// What it is imported by, and what it is called in stacks and errors.
    pub name: &'s str,
    /// What it is written in.
    pub language: Language,
}

/// A host function of either kind.
pub enum Bound {
    /// The guest waits for its value.
    Synchronous(HostFunction),
    /// The guest gets a promise.
    Asynchronous(AsyncHostFunction),
}

/// What an isolate knows of modules.
#[derive(Default)]
pub(crate) struct Modules {
    /// What gives modules.
    source: RefCell<Option<Rc<Bound>>>,
    /// Host functions that modules export, by module and name.
    exports: RefCell<HashMap<(Text, Text), Kept>>,
    loader: OnceCell<Loader>,
}

/// The functions of the loader.
struct Loader {
    importer: Kept,
    evaluate: Kept,
}

impl Isolate {
    /// Makes a host function visible in any place. In [`Place::Import`] it is what the guest's imports call; see there for
    /// what it is given and gives.
    ///
    /// # Errors
    ///
    /// As [`bind`](Self::bind).
    pub fn bind_in(&self, place: &Place, name: &Text, function: Bound) -> Result<(), BindError> {
        let modules = &self.shared.modules;
        match (place, function) {
            (Place::Import, function) => {
                modules.source.replace(Some(Rc::new(function)));
                Ok(())
            }
            (Place::Module(module), function) => {
                let native = match function {
                    Bound::Synchronous(function) => {
                        host_function::make(&self.context, &self.shared, name, function)
                    }
                    Bound::Asynchronous(start) => {
                        async_function::make(&self.context, &self.shared, name, start)
                    }
                };
                let kept = Kept::new(&self.context, native.get(&self.context));
                modules.exports.borrow_mut().insert((module.clone(), name.clone()), kept);
                self.keep_function(native);
                Ok(())
            }
            (place, Bound::Synchronous(function)) => self.bind(place.holder(), name, function),
            (place, Bound::Asynchronous(start)) => self.bind_async(place.holder(), name, start),
        }
    }

    /// Evaluates a source as a module; a promise that is fulfilled with a record of its exports.
    pub(crate) fn evaluate_module(&self, module: &Module<'_>) -> Result<Local<'_>, Failure> {
        let (context, table) = (&self.context, self.context.table());
        let loader = self.loader()?;
        let kind = if module.language == Language::TypeScript { "ts" } else { "js" };
        let arguments = [
            context.string(&EngineString::from_str(table, module.name)),
            context.string(&EngineString::new(table, module.source)),
            context.string(&EngineString::from_str(table, kind)),
        ];
        self.shared
            .prelude
            .call(context, &loader.evaluate, &arguments)
            .map_err(|thrown| self.describe(thrown))
    }

    /// Makes sure that scripts find what their `import()` became.
    pub(crate) fn provide_import(&self) -> Result<(), Failure> {
        self.loader().map(drop)
    }

    fn loader(&self) -> Result<&Loader, Failure> {
        if let Some(loader) = self.shared.modules.loader.get() {
            return Ok(loader);
        }
        let loader = self.load().map_err(|error| match error {
            ScriptError::Thrown(thrown) => self.describe(thrown),
            ScriptError::Syntax { message, .. } => Failure::Js(JsError {
                name: "Error".into(),
                message: message.to_text(),
                ..JsError::default()
            }),
        })?;
        Ok(self.shared.modules.loader.get_or_init(|| loader))
    }

    fn load(&self) -> Result<Loader, ScriptError<'_>> {
        let (context, prelude) = (&self.context, &self.shared.prelude);
        let table = context.table();
        let name = EngineString::from_str(table, LOADER);
        let empty = |text: &str| {
            context.parse_json(&EngineString::from_str(table, text)).unwrap_or_else(|| context.undefined())
        };
        // The loader reads the natives once, as own properties.
        let natives = empty(r#"{"compile":null,"ask":null,"owner":null,"isAbandoned":null,"exported":null}"#);
        for (name, native) in self.natives() {
            context.set(natives, &EngineString::from_str(table, name), native.get(context))?;
            self.keep_function(native);
        }
        let builtins = prelude.builtins.get(context);
        let mut result = context.undefined();
        for source in [RECORD, LINK, EVALUATE, LOAD] {
            let part = context.evaluate(&EngineString::from_str(table, source), &name)?;
            result = context.call(part, &[builtins, natives, result])?;
        }
        let field = |name: &str| {
            let value = context.get(result, &EngineString::from_str(table, name));
            value.map(|value| Kept::new(context, value))
        };
        let loader = Loader { importer: field("importer")?, evaluate: field("evaluateModule")? };
        let function = loader.importer.get(context);
        prelude.define_hidden(context, context.global(), &EngineString::from_str(table, IMPORT), function)?;
        Ok(loader)
    }

    fn natives(&self) -> [(&'static str, NativeFunction); 5] {
        type Body = dyn for<'c> Fn(&'c Context, &Shared, &[Local<'c>]) -> Result<Local<'c>, Thrown<'c>>;
        let make = |name: &'static str, body: Box<Body>| {
            let shared = Rc::clone(&self.shared);
            let native = NativeFunction::new(
                &self.context,
                &EngineString::from_str(self.context.table(), name),
                Box::new(move |context, arguments| body(context, &shared, arguments)),
            );
            (name, native)
        };
        [
            make("compile", Box::new(compile)),
            make("ask", Box::new(ask)),
            make(
                "owner",
                Box::new(|context, shared, _| {
                    Ok(context.number(shared.requests.outermost().unwrap_or(0) as f64))
                }),
            ),
            make(
                "isAbandoned",
                Box::new(|context, shared, arguments| {
                    let request = arguments.first().map_or(0.0, |&request| context.to_number(request));
                    Ok(context.boolean(shared.requests.has_failed(request as RequestId)))
                }),
            ),
            make(
                "exported",
                Box::new(|context, shared, arguments| {
                    let exports = shared.modules.exports.borrow();
                    let found = text(context, arguments, 0)
                        .zip(text(context, arguments, 1))
                        .and_then(|key| exports.get(&key));
                    Ok(found.map_or_else(|| context.undefined(), |function| function.get(context)))
                }),
            ),
        ]
    }
}

fn text(context: &Context, arguments: &[Local<'_>], index: usize) -> Option<Text> {
    context.to_string(*arguments.get(index)?).map(|text| text.to_text())
}

/// Asks the host for a module. The last two arguments are called with the answer, or with the error that there is instead.
fn ask<'c>(context: &'c Context, shared: &Shared, arguments: &[Local<'c>]) -> Result<Local<'c>, Thrown<'c>> {
    let Some((question, &[answered, refused])) = arguments.split_last_chunk::<2>() else {
        return Ok(context.undefined());
    };
    let source = shared.modules.source.borrow().clone();
    let outcome = match source.as_deref() {
        None => Ok(context.undefined()),
        Some(Bound::Synchronous(function)) => host_function::call(context, shared, function, question),
        Some(Bound::Asynchronous(start)) => {
            match async_function::start(context, shared, start, question, [answered, refused]) {
                Ok(()) => return Ok(context.undefined()),
                Err(thrown) => Err(thrown),
            }
        }
    };
    match outcome {
        Ok(answer) => context.call(answered, &[answer]),
        Err(Thrown(reason)) => context.call(refused, &[reason]),
    }
}

/// A module's function and record, or what is wrong with its text.
fn compile<'c>(
    context: &'c Context,
    shared: &Shared,
    arguments: &[Local<'c>],
) -> Result<Local<'c>, Thrown<'c>> {
    let table = context.table();
    let name = text(context, arguments, 0).unwrap_or_default();
    let source = text(context, arguments, 1).unwrap_or_default();
    let is_typescript = arguments.get(2).is_some_and(|&flag| context.to_bool(flag));
    let (record, run) = match function(context, shared, &name, &source, is_typescript) {
        Ok((module, run)) => (describe(&module), Some(run)),
        Err((message, Position { line, column })) => {
            let message = json::string(&message);
            (format!(r#"{{"run":null,"message":{message},"line":{line},"column":{column}}}"#), None)
        }
    };
    let text = EngineString::from_str(table, &record);
    let Some(record) = context.parse_json(&text) else {
        return Err(out_of_memory(context, &shared.prelude));
    };
    if let Some(run) = run {
        context.set(record, &EngineString::from_str(table, "run"), run)?;
    }
    Ok(record)
}

type Compiled<'c> = (pydeno_transform::Module, Local<'c>);

fn function<'c>(
    context: &'c Context,
    shared: &Shared,
    name: &Text,
    source: &Text,
    is_typescript: bool,
) -> Result<Compiled<'c>, (String, Position)> {
    let table = context.table();
    let start = Position { line: 1, column: 1 };
    let Some(source) = source.as_str() else {
        return Err((
            "a module with a lone surrogate cannot be read; write it as an escape".to_owned(),
            start,
        ));
    };
    let language = if is_typescript {
        pydeno_transform::Language::TypeScript
    } else {
        pydeno_transform::Language::JavaScript
    };
    let options = ModuleOptions { language, max_source_bytes: MAX_SOURCE_BYTES, ..ModuleOptions::default() };
    let module = pydeno_transform::module(source, &options)
        .map_err(|TransformError { message, position, .. }| (message, position))?;
    let engine_name = EngineString::new(table, name);
    let text = EngineString::from_str(table, &module.text);
    shared.positions.remember_module(name, &module.map);
    match context.evaluate(&text, &engine_name) {
        Ok(run) => Ok((module, run)),
        // The parser has passed what the engine does not: it is later than the engine, or the engine is short of stack.
        Err(ScriptError::Syntax { message, line }) => {
            let failure = syntax::error(context, &text, &engine_name, &message, line);
            let place = match &failure {
                Failure::Js(JsError { frames, .. }) => match frames.first() {
                    Some(&Frame { line, column, .. }) => {
                        module.map.original(Position { line, column: column.max(1) })
                    }
                    None => start,
                },
                _ => start,
            };
            Err((message.to_text().to_string_lossy().into_owned(), place))
        }
        Err(ScriptError::Thrown(_)) => Err(("the module could not be compiled".to_owned(), start)),
    }
}

/// What the loader reads of a module, as JSON: requests, imports and exports in their order, each a list of its fields, with
/// -1 in the place of a request that there is none of.
fn describe(module: &pydeno_transform::Module) -> String {
    let mut out = format!(r#"{{"run":null,"asynchronous":{},"requests":["#, module.asynchronous);
    let separate = |out: &mut String, index: usize| {
        if index > 0 {
            out.push(',');
        }
    };
    for (index, request) in module.requests.iter().enumerate() {
        separate(&mut out, index);
        let _ = write!(out, "[{},[", json::string(&request.specifier));
        for (index, (key, value)) in request.attributes.iter().enumerate() {
            separate(&mut out, index);
            let _ = write!(out, "[{},{}]", json::string(key), json::string(value));
        }
        let Position { line, column } = request.position;
        let _ = write!(out, "],{line},{column}]");
    }
    out.push_str("],\"imports\":[");
    for (index, import) in module.imports.iter().enumerate() {
        separate(&mut out, index);
        let (local, name) = (json::string(&import.local), imported(&import.name));
        let (request, Position { line, column }) = (import.request, import.position);
        let _ = write!(out, "[{local},{request},{name},{line},{column}]");
    }
    out.push_str("],\"exports\":[");
    for (index, export) in module.exports.iter().enumerate() {
        separate(&mut out, index);
        let name = export.name.as_deref().map_or_else(|| "null".to_owned(), json::string);
        let Position { line, column } = export.position;
        let from = match &export.exported_as {
            ExportedAs::Local => "-1,null".to_owned(),
            ExportedAs::Indirect { request, name } => format!("{request},{}", imported(name)),
            ExportedAs::Star { request } => format!("{request},null"),
        };
        let _ = write!(out, "[{name},{from},{line},{column}]");
    }
    out.push_str("]}");
    out
}

fn imported(name: &ImportedName) -> String {
    match name {
        ImportedName::Name(name) => json::string(name),
        ImportedName::Namespace => "null".to_owned(),
    }
}

fn out_of_memory<'c>(context: &'c Context, prelude: &Prelude) -> Thrown<'c> {
    let text = |text| EngineString::from_str(context.table(), text);
    let message = text("Out of memory or stack");
    prelude
        .error(context, &text("RangeError"), Some("RangeError"), &message)
        .map_or_else(|thrown| thrown, Thrown)
}
