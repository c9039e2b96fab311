//! Turns source text that the engine's C API cannot evaluate into scripts that it can: TypeScript, scripts with top-level
//! `await`, modules. It keeps the way back to the author's lines and columns.
//!
//! The engine evaluates scripts, and only those. This crate is text in, text out: it evaluates nothing, reads no file and
//! knows no engine.
//!
//! # Terms
//!
//! - The **source** is the author's text, the **output** what is evaluated.
//! - A **script** is evaluated for the value of its last expression, and what it declares stays for the next one
//!   ([`script`]).
//! - A **module** has imports and exports. It becomes the text of a function ([`module`]); a loader, which is not part of
//!   this crate, connects the functions by the protocol that [`Module`] describes.
//! - A source is **edited** where only ranges of it are replaced. Everything else stays, character by character:
//!   `Function.prototype.toString` gives the author's text. JavaScript is edited.
//! - A source is **printed** anew from its syntax tree where editing would not do: TypeScript, and JavaScript with `using`.
//!   Comments and layout are not kept.
//! - A [`PositionMap`] leads from a place of the output to the author's.
//!
//! # Example
//!
//! ```
//! use pydeno_transform::{Completion, Position, ScriptOptions, script};
//!
//! let script = script("const x = await 1\nx + 1", &ScriptOptions::default())?;
//! assert_eq!(script.completion, Completion::Promise);
//! assert!(script.text.starts_with("let x;(async()=>{let $v; x = await 1;\n$v=(x + 1);"));
//! let thrown_at = Position { line: 2, column: 5 };
//! assert_eq!(script.map.original(thrown_at), Position { line: 2, column: 1 });
//! # Ok::<(), pydeno_transform::TransformError>(())
//! ```
//!
//! # Limits
//!
//! The source is not trusted. Its length is limited ([`ScriptOptions::max_source_bytes`]) and so is its nesting
//! ([`MAX_NESTING`]). The parser recurses; it runs on a stack of its own, whose size follows from the length of the source. A
//! source of up to 128 KiB cannot overflow it. A longer one is refused by counting its brackets first; only a source
//! made to deceive that count could overflow the stack, which ends the process with `SIGSEGV`. Memory is bounded by the
//! product of length and nesting. A panic of the parser becomes [`ErrorKind::Internal`].
//!
//! # What it does not do
//!
//! It checks no types. JSX is refused, and so are decorators, unless the older ones of TypeScript are asked for
//! ([`Decorators`]). Syntax that the engine knows is left alone. It is no filter: that a source was transformed says nothing
//! about what it does. A source with lone surrogates is no `str` and cannot be transformed.

#![forbid(unsafe_code)]

mod deep;
mod edits;
mod error;
mod lower;
mod module;
mod names;
mod nesting;
mod parse;
mod position;
mod record;
mod script;
mod support;
mod words;

use std::borrow::Cow;

pub use error::{ErrorKind, TransformError};
pub use nesting::MAX_NESTING;
pub use position::{Position, PositionMap};
pub use record::{Export, ExportedAs, Import, ImportedName, Module, Request};

/// How many bytes a source may have, unless the options say otherwise.
pub const MAX_SOURCE_BYTES: usize = 1 << 20;

/// The language of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// JavaScript as the engine knows it, and `using`.
    #[default]
    JavaScript,
    /// TypeScript without JSX. Types are removed and not checked; `enum`, `namespace` and parameter properties become code.
    /// Each file stands alone (`isolatedModules`), and an import that is used as a type only is removed.
    TypeScript,
}

/// Whether decorators are understood.
///
/// The engine has none, and there is no lowering for the decorators of the language's proposal, so these are refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decorators {
    /// They are an error.
    #[default]
    Refuse,
    /// In TypeScript they mean what they do under `experimentalDecorators`, which is something else than the proposal. In
    /// JavaScript they are an error.
    Legacy,
}

/// What the text is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    Script,
    Module,
}

/// How a script is transformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptOptions<'o> {
    /// The language of the source.
    pub language: Language,
    /// Whether TypeScript's older decorators are understood.
    pub decorators: Decorators,
    /// Whether `let`, `const` and `class` of the top level can be declared again by a later script, as in a browser's
    /// console. They become `var`: properties of the global object, without a dead zone before their declaration. Only a
    /// name that a script without this option declared cannot be declared again. An assignment to a constant in the same
    /// script stays a `TypeError`; a later script can assign to it.
    pub redeclare: bool,
    /// An expression whose value is the function that `import()` calls, such as a global's name, to be put in the place of
    /// the word. Without one, `import()` stays and is the engine's to reject.
    pub import_function: Option<&'o str>,
    /// How long a source may be, in bytes. It should not be raised far beyond the default for sources that nobody vouches
    /// for: see the limits in the crate's documentation.
    pub max_source_bytes: usize,
}

impl Default for ScriptOptions<'_> {
    fn default() -> Self {
        Self {
            language: Language::default(),
            decorators: Decorators::default(),
            redeclare: false,
            import_function: None,
            max_source_bytes: MAX_SOURCE_BYTES,
        }
    }
}

/// How a module is transformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleOptions {
    /// The language of the source.
    pub language: Language,
    /// Whether TypeScript's older decorators are understood.
    pub decorators: Decorators,
    /// How long a source may be, in bytes; see [`ScriptOptions::max_source_bytes`].
    pub max_source_bytes: usize,
}

impl Default for ModuleOptions {
    fn default() -> Self {
        Self {
            language: Language::default(),
            decorators: Decorators::default(),
            max_source_bytes: MAX_SOURCE_BYTES,
        }
    }
}

/// What the evaluation of a script's text gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The script's value.
    Value,
    /// A promise. It is fulfilled with an object without prototype whose property `value` is the script's value, which may
    /// be a promise or anything else with a `then` and is not awaited.
    Promise,
}

/// A script that the engine can evaluate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script<'s> {
    /// The text to evaluate; the source itself where nothing had to change.
    pub text: Cow<'s, str>,
    /// What its evaluation gives.
    pub completion: Completion,
    /// The way back to the author's text.
    pub map: PositionMap,
}

/// Whether a script may need work. One without the words `await`, `import`, `export` and `using` does not, nor, with
/// [`ScriptOptions::redeclare`], one that has no `let`, `const` and `class` either.
///
/// It reads the source a few times and allocates nothing. [`script`] asks this itself.
pub fn needs_transform(source: &str, options: &ScriptOptions<'_>) -> bool {
    options.language == Language::TypeScript || words::occur(source, options.redeclare)
}

/// Makes a source a script that the engine can evaluate.
///
/// # Top-level await
///
/// A script with `await` outside of every function becomes one whose value is a promise ([`Completion::Promise`]). An
/// `await` before a parenthesis or a bracket counts as one too, unless the script has a variable of that name. `this` stays
/// the global object and sloppy code stays sloppy. The value is that of `eval`: of the last statement that has one,
/// through blocks, `if`, loops, `switch`, `try` and labels; with these differences: a loop whose body is an `if` or a loop
/// without a block, and is left by a pass without a value, keeps the value of the pass before; `break` and `continue` in a
/// `finally` block do the same.
///
/// What the script declares stays for later ones:
///
/// - `var`, `let`, `const`, `class` are declared before the function and assigned in it. A `let`, `const` or `class` that a
///   script declared before is a `SyntaxError`, as it is for other scripts. Read before its declaration it is
///   `undefined`, not a `ReferenceError`. An assignment to a constant in the same script is a `TypeError`; a later
///   script can assign to it.
/// - Functions of the top level are moved behind the function, with their text. A function that sloppy code declares in a
///   block stays in the block.
///
/// # Errors
///
/// [`TransformError`]. A JavaScript source that does not parse, and in which nothing had to change, is no error here: it comes
/// back as it is, and the engine will say what is wrong.
///
/// # Panics
///
/// Never; a panic of the parser is [`ErrorKind::Internal`].
pub fn script<'s>(source: &'s str, options: &ScriptOptions<'_>) -> Result<Script<'s>, TransformError> {
    check_size(source, options.max_source_bytes)?;
    if !needs_transform(source, options) {
        return Ok(Script {
            text: Cow::Borrowed(source),
            completion: Completion::Value,
            map: PositionMap::identity(),
        });
    }
    deep::guard(source, options.language, || script::transform(source, options))
}

/// Makes a function of a module.
///
/// # Errors
///
/// [`TransformError`].
///
/// # Panics
///
/// Never; a panic of the parser is [`ErrorKind::Internal`].
pub fn module(source: &str, options: &ModuleOptions) -> Result<Module, TransformError> {
    check_size(source, options.max_source_bytes)?;
    deep::guard(source, options.language, || module::transform(source, options))
}

fn check_size(source: &str, most: usize) -> Result<(), TransformError> {
    if source.len() <= most {
        return Ok(());
    }
    let message = format!("the source has {} bytes and {most} are allowed", source.len());
    Err(TransformError::new(ErrorKind::TooLarge, message, Position::START))
}
