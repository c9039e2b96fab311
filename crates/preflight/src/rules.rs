//! The rules of a check, each on a word and what follows it.

use std::ops::Range;

use crate::finding::{Collector, Severity};
use crate::keyword::RULE_WORDS;
use crate::reading::{Next, Reader, meaning};
use crate::scanner::{Role, Sink, TextKind};
use crate::word_set::WordSet;

/// What a check lets pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// `import ...` and `export ...`, for code that is run as a module.
    pub allow_import: bool,
    /// `import(...)`, for code that is run with a module loader.
    pub allow_dynamic_import: bool,
    /// Whether `eval(` and `new Function(` are told of.
    pub report_eval: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { allow_import: false, allow_dynamic_import: false, report_eval: true }
    }
}

const STATIC_IMPORT: &str = "There are no modules to import here; write a plain script and have the host bind the functions it needs.";
const STATIC_EXPORT: &str =
    "There is nobody to export to; make the value to return the script's last expression.";
const DYNAMIC_IMPORT: &str = "There is no module loader; have the host bind the functions you need.";
const REQUIRE: &str =
    "There is no `require`; write it in plain JavaScript or have the host bind the function you need.";
const FETCH: &str = "There is no network; have the host bind a function that fetches, or pass the data in.";
const XHR: &str = "There is no XMLHttpRequest and no network; have the host bind a function that fetches, or pass the data in.";
const WEBSOCKET: &str =
    "There is no WebSocket and no network; have the host bind functions that send and receive.";
const PROCESS: &str = "There is no `process`; pass what you need of the environment in as data.";
const DENO: &str = "There is no `Deno`; have the host bind the functions you need.";
const CHILD_PROCESS: &str =
    "No other program can be started; have the host bind a function that does the work.";
const GLOBAL_ALIAS: &str =
    "The global object does not have it either; have the host bind a function, or pass the data in.";
const PROTO: &str =
    "`__proto__` reaches for prototypes; use Object.getPrototypeOf, Object.create or a Map instead.";
const CONSTRUCTOR: &str = "`.constructor.constructor` is the Function constructor and leads to nothing outside; call what you need directly.";
const EVAL: &str = "Code made from text is not checked; write the code out, or use JSON.parse for data.";

/// Names of the global object itself.
pub(crate) fn is_global_object(name: &[u8]) -> bool {
    matches!(name, b"globalThis" | b"self" | b"window" | b"global")
}

/// Names that only exist outside.
fn is_outside(name: &[u8]) -> bool {
    matches!(
        name,
        b"require" | b"fetch" | b"XMLHttpRequest" | b"WebSocket" | b"process" | b"Deno" | b"child_process"
    )
}

/// A quick look at whether there is a rule for a word.
static NAMES: WordSet = WordSet::new(RULE_WORDS);

/// The rules as a sink of the scanner.
pub(crate) struct Rules {
    options: Options,
    reader: Reader,
    /// Where the last `.constructor.constructor` ended.
    constructors_end: usize,
    pub(crate) collector: Collector,
}

impl Rules {
    pub(crate) fn new(options: Options) -> Self {
        Self { options, reader: Reader::default(), constructors_end: 0, collector: Collector::default() }
    }

    /// How many bytes were read ahead.
    pub(crate) fn steps(&self) -> usize {
        self.reader.steps
    }

    /// Whether there is something to say about a word that has a role.
    pub(crate) fn would_report(&mut self, source: &[u8], span: Range<usize>, role: Role) -> bool {
        self.constructors_end = 0;
        self.collector = Collector::default();
        self.named(source, &source[span.clone()], span, role);
        !self.collector.is_empty()
    }

    fn error(&mut self, offset: usize, rule: &'static str, message: &'static str) {
        self.collector.add(offset, rule, Severity::Error, message);
    }

    fn named(&mut self, source: &[u8], name: &[u8], span: Range<usize>, role: Role) {
        let start = span.start;
        match (name, role) {
            (b"__proto__", Role::Reference | Role::New | Role::Member | Role::ObjectKey | Role::Name) => {
                self.collector.add(start, "proto", Severity::Warning, PROTO);
            }
            (b"import", Role::Keyword) => self.import(source, &span),
            (b"export", Role::Keyword) => self.export(source, &span),
            (b"constructor", Role::Member) => self.constructor(source, &span),
            (b"Function", Role::New) | (b"eval", Role::Reference) => self.eval(source, &span),
            (b"XMLHttpRequest", _) => self.absent(source, &span, role, ("xhr", XHR)),
            (b"WebSocket", _) => self.absent(source, &span, role, ("websocket", WEBSOCKET)),
            (b"child_process", _) => self.absent(source, &span, role, ("child-process", CHILD_PROCESS)),
            (_, Role::Reference | Role::New) => self.variable(source, name, span),
            _ => {}
        }
    }

    fn export(&mut self, source: &[u8], span: &Range<usize>) {
        if !self.options.allow_import && !exports_type(&mut self.reader, source, span.end) {
            self.error(span.start, "static-export", STATIC_EXPORT);
        }
    }

    fn constructor(&mut self, source: &[u8], span: &Range<usize>) {
        if span.start >= self.constructors_end
            && let Next::Property(second, end) = self.reader.next(source, span.end)
            && *second == *b"constructor"
        {
            self.constructors_end = end;
            self.collector.add(span.start, "constructor-constructor", Severity::Warning, CONSTRUCTOR);
        }
    }

    fn eval(&mut self, source: &[u8], span: &Range<usize>) {
        if self.options.report_eval && self.reader.next(source, span.end) == Next::Call {
            self.collector.add(span.start, "eval", Severity::Info, EVAL);
        }
    }

    /// A variable that does not exist, whatever is done with it.
    fn absent(
        &mut self,
        source: &[u8],
        span: &Range<usize>,
        role: Role,
        (code, message): (&'static str, &'static str),
    ) {
        if is_variable(&mut self.reader, source, span, role)
            && !in_type_arguments(&mut self.reader, source, span)
        {
            self.error(span.start, code, message);
        }
    }

    /// A variable that matters by what is done with it.
    fn variable(&mut self, source: &[u8], name: &[u8], span: Range<usize>) {
        if is_global_object(name) {
            if let (Next::Property(property, _), _) = through_global(&mut self.reader, source, span.end)
                && is_outside(&property)
            {
                self.error(span.start, "global-alias", GLOBAL_ALIAS);
            }
            return;
        }
        let (rule, message, by_call) = match name {
            b"require" => ("require", REQUIRE, true),
            b"fetch" => ("fetch", FETCH, true),
            b"process" => ("process", PROCESS, false),
            b"Deno" => ("deno", DENO, false),
            _ => return,
        };
        let matches = match self.reader.next(source, span.end) {
            Next::Call => by_call,
            Next::Property(..) => !by_call,
            _ => false,
        };
        if matches {
            self.error(span.start, rule, message);
        }
    }

    fn import(&mut self, source: &[u8], span: &Range<usize>) {
        match imports(&mut self.reader, source, span.end) {
            Import::Dynamic if !self.options.allow_dynamic_import => {
                self.error(span.start, "dynamic-import", DYNAMIC_IMPORT);
            }
            Import::Static if !self.options.allow_import => {
                self.error(span.start, "static-import", STATIC_IMPORT);
            }
            _ => {}
        }
    }
}

impl Sink for Rules {
    const EVERY_WORD: bool = false;

    #[inline]
    fn word(&mut self, source: &[u8], span: Range<usize>, escaped: bool, role: Role) {
        if escaped {
            let name = meaning(source, span.clone());
            if NAMES.may_hold(&name) {
                self.named(source, &name, span, role);
            }
        } else if NAMES.may_hold(&source[span.clone()]) && role != Role::Type {
            self.named(source, &source[span.clone()], span, role);
        }
    }

    fn text(&mut self, _: &[u8], _: Range<usize>, _: TextKind) {}

    fn steps(&mut self, _: usize) {}
}

/// What an `import` is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Import {
    /// A declaration.
    Static,
    /// `import(`, `import.defer(`, `import.source(`.
    Dynamic,
    /// `import.meta`, or a declaration that only imports types.
    Neither,
}

/// What the `import` that ends at `end` is.
pub(crate) fn imports(reader: &mut Reader, source: &[u8], end: usize) -> Import {
    match reader.next(source, end) {
        Next::Call => Import::Dynamic,
        Next::Property(name, after)
            if matches!(&*name, b"defer" | b"source") && reader.next(source, after) == Next::Call =>
        {
            Import::Dynamic
        }
        Next::Property(..) => Import::Neither,
        _ if imports_type(reader, source, end) => Import::Neither,
        _ => Import::Static,
    }
}

/// TypeScript: `import type ...`, unless `type` is what the import is called.
fn imports_type(reader: &mut Reader, source: &[u8], end: usize) -> bool {
    let Some(after) = word(reader, source, end, b"type") else { return false };
    match reader.token(source, after).0 {
        b'{' | b'*' => true,
        b',' | b'"' | b'\'' => false,
        _ => match word(reader, source, after, b"from") {
            Some(from) => !matches!(reader.token(source, from).0, b'"' | b'\''),
            None => true,
        },
    }
}

/// TypeScript: an export that is gone once types are.
fn exports_type(reader: &mut Reader, source: &[u8], end: usize) -> bool {
    [&b"type"[..], b"interface", b"declare"].iter().any(|name| word(reader, source, end, name).is_some())
}

/// The end of the next word, when it is `expected`.
fn word(reader: &mut Reader, source: &[u8], end: usize, expected: &[u8]) -> Option<usize> {
    let (_, start) = reader.token(source, end);
    let after = start + expected.len();
    (source[start..].starts_with(expected) && !crate::characters::continues_name(source, after))
        .then_some(after)
}

/// Whether a word stands for a variable.
pub(crate) fn is_variable(reader: &mut Reader, source: &[u8], span: &Range<usize>, role: Role) -> bool {
    match role {
        Role::Reference | Role::New => true,
        Role::ObjectKey => matches!(reader.token(source, span.end).0, b',' | b'}' | b'='),
        _ => false,
    }
}

/// What is done with the global object, and where that ends: `globalThis.window.self` is the same object.
pub(crate) fn through_global<'a>(reader: &mut Reader, source: &'a [u8], mut end: usize) -> (Next<'a>, usize) {
    loop {
        match reader.next(source, end) {
            Next::Property(name, after) if is_global_object(&name) => end = after,
            next => return (next, end),
        }
    }
}

/// How far type arguments are looked for to either side of a word, in bytes.
const MAX_TYPE_ARGUMENTS: usize = 64;

/// TypeScript: whether a word is in the angle brackets of `new Map<string, WebSocket>()`. The scanner takes those for
/// comparisons, which only what follows them can tell; a comparison of a comparison makes no sense with these words.
fn in_type_arguments(reader: &mut Reader, source: &[u8], span: &Range<usize>) -> bool {
    let is_type = |byte: &u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'$' | b'.' | b',' | b' ' | b'|' | b'&' | b'[' | b']')
    };
    let before = &source[span.start.saturating_sub(MAX_TYPE_ARGUMENTS)..span.start];
    let after = &source[span.end..source.len().min(span.end + MAX_TYPE_ARGUMENTS)];
    reader.steps += before.len() + after.len();
    let mut open = 0;
    let opens = before.iter().enumerate().rev().find_map(|(index, byte)| match byte {
        b'>' => {
            open += 1;
            None
        }
        b'<' if open > 0 => {
            open -= 1;
            None
        }
        b'<' => Some(index > 0 && before[index - 1].is_ascii_alphanumeric()),
        byte if is_type(byte) => None,
        _ => Some(false),
    });
    let mut open = 0;
    let closes = after.iter().enumerate().find_map(|(index, byte)| match byte {
        b'<' => {
            open += 1;
            None
        }
        b'>' if open > 0 => {
            open -= 1;
            None
        }
        b'>' => Some(matches!(after.get(index + 1), Some(b'(' | b'`' | b'>' | b',' | b'[' | b'{'))),
        byte if is_type(byte) => None,
        _ => Some(false),
    });
    opens == Some(true) && closes == Some(true)
}
