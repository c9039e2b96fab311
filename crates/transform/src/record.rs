//! What a module is for a loader.

use crate::{Position, PositionMap};

/// A module as the text of a function, and what it wants from and gives to other modules.
///
/// # The protocol
///
/// [`text`](Self::text) is a script whose value is a function `(record, imports) => generator`: a generator function, or
/// an async generator function where [`asynchronous`](Self::asynchronous) is set. It declares no global. A loader that keeps
/// to the following order gives a module the meaning it has in the language:
///
/// 1. **Load**: evaluate the text, and load the [`requests`](Self::requests), each once for its specifier and
///    attributes.
/// 2. **Link**: resolve every entry of [`imports`](Self::imports) and every indirect or star entry of
///    [`exports`](Self::exports) as the language's `ResolveExport` does. A name that is not there, or ambiguous, is a
///    `SyntaxError` at the entry's position.
/// 3. **Instantiate**: for each module of the graph, before any is evaluated, call the function with `this` undefined and
///    call `next()` once. The module calls `record.define(getters)` once: an object without prototype whose properties
///    are functions without parameters, one for each export with [`ExportedAs::Local`]. Its function declarations can be
///    called from then on, also from other modules of a cycle. An async generator has done so too when `next()` returns;
///    the promise is of no interest.
/// 4. **Evaluate**: after the modules that it requests, call `next()` again. A generator has evaluated the module when
///    that returns. An async one returns a promise that settles with the module.
///
/// The parameters:
///
/// - `record` has `define(getters)`, `meta` (the value of `import.meta`) and `import(specifier, options)` (what
///   `import()` calls, with `record` as `this`; it must return a promise and never throw).
/// - `imports` has a property for each entry of [`imports`](Self::imports), by its local name. Where the entry is
///   [`ImportedName::Name`], an accessor without a setter that calls the getter of the export that it was resolved to,
///   for a binding is read at each use; a namespace is a plain property. The object is best frozen and without a
///   prototype. The module reads them as `imports.name`, calls them as `(0, imports.name)()`, and an assignment
///   is a `TypeError`, since its code is strict.
///
/// A getter throws a `ReferenceError` while its `let`, `const`, `class` or `export default` has not been evaluated.
///
/// # What differs from the language
///
/// Direct `eval` in a module does not see imports by name, and sees the parameters and a `new.target`. `arguments` at the
/// top level is an object, where a module has none. An async generator hands out its results as objects, on which a guest
/// that changes `Object.prototype.then` is asked for that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The script whose value is the function.
    pub text: String,
    /// The way back to the author's text.
    pub map: PositionMap,
    /// Modules that this one needs, in the order of the source.
    pub requests: Vec<Request>,
    /// What it imports from them.
    pub imports: Vec<Import>,
    /// What it exports.
    pub exports: Vec<Export>,
    /// Whether it has top-level `await`.
    pub asynchronous: bool,
}

impl Module {
    pub(crate) fn positions_mut(&mut self) -> impl Iterator<Item = &mut Position> {
        let requests = self.requests.iter_mut().map(|request| &mut request.position);
        let imports = self.imports.iter_mut().map(|import| &mut import.position);
        let exports = self.exports.iter_mut().map(|export| &mut export.position);
        requests.chain(imports).chain(exports)
    }
}

/// A module that another one needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The specifier as it was written.
    pub specifier: String,
    /// The attributes (`with { type: "json" }`), sorted by their keys. It is the loader's to refuse unknown ones.
    pub attributes: Vec<(String, String)>,
    /// Where the specifier was first written.
    pub position: Position,
}

/// A name that a module has from another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The name in this module; also the key in the object of imports.
    pub local: String,
    /// The index of the request.
    pub request: usize,
    /// What of it.
    pub name: ImportedName,
    /// Where.
    pub position: Position,
}

/// What is imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportedName {
    /// An export by its name; `default` is one.
    Name(String),
    /// The namespace object.
    Namespace,
}

/// A name that a module exports, or all those of another module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The name, which no other entry has; `None` for [`ExportedAs::Star`].
    pub name: Option<String>,
    /// What it stands for.
    pub exported_as: ExportedAs,
    /// Where.
    pub position: Position,
}

/// What an export stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportedAs {
    /// A variable of the module; the getter of that name in `define` reads it.
    Local,
    /// An export of another module, also where it was imported first and then exported.
    Indirect {
        /// The index of the request.
        request: usize,
        /// What of it.
        name: ImportedName,
    },
    /// Every export of another module but its default.
    Star {
        /// The index of the request.
        request: usize,
    },
}
