//! What is run for a program: what models write, made into an async function whose result is the value.
//!
//! Without a parser there are several readings, in order of preference; the engine is asked which of them parses, as a
//! function that is not called. Nothing here changes what a reading that parses means.

use pydeno_preflight::{Outline, Start, outline};
use pydeno_wire::Text;
use pydeno_wire::message::Language;

/// Gives the value of an expression, that of a function being what it returns.
const CALLED: &str = "return(v=>typeof v===\"function\"?v():v)(await(";
const EXPORTED: &str = "$default$export";

/// A program's readings.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    code: Vec<u8>,
    outline: Outline,
    readings: Vec<Reading>,
    language: Language,
}

#[derive(Clone, Copy, Debug)]
enum Reading {
    /// One expression; where its value is a function, what that returns.
    Expression,
    /// What the program exports by default, called where it is a function.
    Export,
    /// Statements, and the expression whose value it is.
    Last(Start),
    /// The body of a function.
    Body,
}

/// What is asked of the engine: an array of a function that is the program, and one that need only parse.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) source: Text,
    inserted: Vec<Inserted>,
}

/// Text that is not the program's.
#[derive(Clone, Copy, Debug)]
struct Inserted {
    line: u32,
    /// Where it begins in its line, 1-based, in UTF-16 units as the engine counts.
    column: u32,
    added: u32,
    removed: u32,
}

impl Attempt {
    /// The column in the program of a place in the attempt. Lines are the same.
    pub(crate) fn column(&self, line: u32, column: u32) -> u32 {
        let mut moved = column;
        for inserted in self.inserted.iter().filter(|inserted| inserted.line == line) {
            if column >= inserted.column + inserted.added {
                moved = moved.saturating_sub(inserted.added) + inserted.removed;
            }
        }
        moved.max(1)
    }
}

impl Program {
    pub(crate) fn new(source: &Text, mut language: Language) -> Self {
        let mut code = source.to_wtf8().into_owned();
        if let Some(Fenced { inside, says_typescript }) = fenced(&code) {
            code = inside;
            if says_typescript {
                language = Language::TypeScript;
            }
        }
        let outline = outline(&code);
        let mut readings = Vec::new();
        if outline.export_default.is_some() {
            readings.push(Reading::Export);
        } else {
            if outline.is_single {
                readings.push(Reading::Expression);
            }
            let last = outline.starts.iter().rev().take_while(|start| !start.is_statement);
            readings.extend(last.filter(|start| start.at > 0).map(|&start| Reading::Last(start)));
            readings.push(Reading::Body);
        }
        // Inside of a function `await` is the engine's; only these words may need work. It costs more than a short program.
        let needs_work = [&b"using"[..], b"import", b"export"].iter().any(|word| contains(&code, word));
        if language == Language::JavaScript && !needs_work {
            language = Language::PlainJavaScript;
        }
        Self { code, outline, readings, language }
    }

    /// What the engine is told that its readings are written in.
    pub(crate) fn language(&self) -> Language {
        self.language
    }

    /// The reading with this number, or `None` after the last.
    pub(crate) fn attempt(&self, number: usize) -> Option<Attempt> {
        let mut writer = Writer::default();
        let (code, end) = (&self.code[..], self.outline.end);
        writer.insert("[async function(){", 0);
        let mut check: &[u8] = b"";
        match *self.readings.get(number)? {
            Reading::Expression => {
                writer.insert(CALLED, 0);
                writer.copy(&code[..end]);
                writer.insert("\n))", 0);
            }
            Reading::Last(start) => {
                check = &code[..start.before];
                writer.copy(check);
                writer.insert(" return(", 0);
                writer.copy(&code[start.before..end]);
                writer.insert("\n)", 0);
            }
            Reading::Export => {
                let words = self.outline.export_default.clone()?;
                let removed = words.len() as u32;
                let rest = &code[words.end..];
                writer.copy(&code[..words.start]);
                let name = declared_name(rest);
                if name.is_some() {
                    writer.insert("", removed);
                } else {
                    writer.insert(&format!("const {EXPORTED}="), removed);
                }
                writer.copy(rest);
                writer.insert("\n", 0);
                writer.insert(CALLED, 0);
                writer.copy(name.unwrap_or(EXPORTED.as_bytes()));
                writer.insert("))", 0);
            }
            Reading::Body => writer.copy(code),
        }
        writer.insert("\n},async function(){", 0);
        writer.copy(check);
        writer.insert("\n}]", 0);
        let source = Text::from_wtf8(writer.out).unwrap_or_default();
        Some(Attempt { source, inserted: writer.inserted })
    }
}

#[derive(Default)]
struct Writer {
    out: Vec<u8>,
    inserted: Vec<Inserted>,
    line: u32,
    column: u32,
}

impl Writer {
    fn insert(&mut self, text: &str, removed: u32) {
        let added = text.len() as u32;
        self.inserted.push(Inserted { line: self.line + 1, column: self.column + 1, added, removed });
        self.copy(text.as_bytes());
    }

    fn copy(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match byte {
                b'\n' => (self.line, self.column) = (self.line + 1, 0),
                0x80..0xC0 => {}
                0xF0.. => self.column += 2,
                _ => self.column += 1,
            }
        }
        self.out.extend_from_slice(bytes);
    }
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

/// The name of the function or class that a text begins with.
fn declared_name(text: &[u8]) -> Option<&[u8]> {
    let word = |text: &[u8], word: &[u8]| -> Option<usize> {
        let rest = text.strip_prefix(word)?;
        let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        (blanks > 0 || rest.first() == Some(&b'*')).then_some(word.len() + blanks)
    };
    let mut at = word(text, b"async").unwrap_or(0);
    at += word(&text[at..], b"function").or_else(|| word(&text[at..], b"class"))?;
    if text.get(at) == Some(&b'*') {
        at += 1;
        at += text[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }
    let rest = &text[at..];
    let is_in_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(**byte, b'_' | b'$' | 0x80..);
    let name = &rest[..rest.iter().take_while(is_in_name).count()];
    (!name.is_empty() && name != b"extends").then_some(name)
}

/// The text within a Markdown fence. Its lines keep their numbers.
#[derive(Debug, PartialEq, Eq)]
struct Fenced {
    inside: Vec<u8>,
    says_typescript: bool,
}

/// What is within a fence, if that is all there is.
fn fenced(text: &[u8]) -> Option<Fenced> {
    let start = text.len() - text.trim_ascii_start().len();
    let trimmed = text.trim_ascii();
    let mark = *trimmed.first().filter(|mark| matches!(mark, b'`' | b'~'))?;
    let length = trimmed.iter().take_while(|&&byte| byte == mark).count();
    let info_end = trimmed.iter().position(|&byte| byte == b'\n')?;
    let info = &trimmed[length..info_end];
    let is_info = |byte: &u8| byte.is_ascii_alphanumeric() || b" \t\r+-_.".contains(byte);
    if length < 3 || !info.iter().all(is_info) {
        return None;
    }
    let is_fence = |line: &[u8]| {
        let line = line.trim_ascii();
        line.len() >= length && line.iter().all(|&byte| byte == mark)
    };
    let last_begins = trimmed.iter().rposition(|&byte| byte == b'\n')? + 1;
    let inside = trimmed.get(info_end + 1..last_begins).unwrap_or_default();
    if !is_fence(&trimmed[last_begins..]) || inside.split(|&byte| byte == b'\n').any(is_fence) {
        return None;
    }
    let lines = text[..start].split(|&byte| byte == b'\n').count();
    let says_typescript = matches!(info.trim_ascii().to_ascii_lowercase().as_slice(), b"ts" | b"typescript");
    Some(Fenced { inside: [&vec![b'\n'; lines], inside].concat(), says_typescript })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(source: &str) -> Vec<String> {
        let program = Program::new(&source.into(), Language::JavaScript);
        (0..)
            .map_while(|number| program.attempt(number))
            .map(|attempt| attempt.source.to_string_lossy().into())
            .collect()
    }

    #[test]
    fn a_fence_around_everything_is_taken_away_and_lines_keep_their_numbers() {
        let inside = |text: &str| fenced(text.as_bytes()).map(|fenced| fenced.inside);
        assert_eq!(inside("```js\n1 + 1\n```"), Some(b"\n1 + 1\n".to_vec()));
        assert_eq!(inside("\n~~~~ typescript\n1\n~~~~\n"), Some(b"\n\n1\n".to_vec()));
        assert_eq!(inside("`x`"), None);
        assert_eq!(inside("```js\n1\n```\ntext\n```js\n2\n```"), None);
    }

    #[test]
    fn a_fence_that_says_so_makes_a_program_typescript() {
        let language = |text: &str| Program::new(&text.into(), Language::JavaScript).language();
        assert_eq!(language("```ts\n1\n```"), Language::TypeScript);
        assert_eq!(language("~~~ TypeScript\n1\n~~~"), Language::TypeScript);
        assert_eq!(language("```js\n1\n```"), Language::PlainJavaScript);
        assert_eq!(
            Program::new(&"```js\n1\n```".into(), Language::TypeScript).language(),
            Language::TypeScript
        );
    }

    #[test]
    fn a_program_is_told_to_be_plain_unless_it_may_have_what_the_engine_does_not_know() {
        let language = |text: &str| Program::new(&text.into(), Language::JavaScript).language();
        assert_eq!(language("await f(); class A {}"), Language::PlainJavaScript);
        for source in ["{ using a = b }", "await import('x')", "export default 1"] {
            assert_eq!(language(source), Language::JavaScript, "{source}");
        }
    }

    #[test]
    fn the_last_reading_is_always_the_body_of_a_function() {
        for source in ["", "return 1", "if (a) { b }", "x; y", "a b c", "}{"] {
            assert!(readings(source).last().unwrap().starts_with("[async function(){"), "{source}");
        }
    }

    #[test]
    fn a_place_in_a_reading_is_told_as_a_place_in_the_program() {
        let program = Program::new(&"let é = 1\né.x".into(), Language::JavaScript);
        let attempt = program.attempt(1).unwrap();
        assert!(attempt.source.to_string_lossy().contains("\n return(é.x"), "{:?}", attempt.source);
        assert_eq!(attempt.column(2, 9), 1);
        assert_eq!(attempt.column(1, 19), 1);
    }

    #[test]
    fn a_default_export_that_is_declared_keeps_its_name() {
        assert_eq!(declared_name(b"async function main() {}"), Some(&b"main"[..]));
        assert_eq!(declared_name(b"function* main() {}"), Some(&b"main"[..]));
        assert_eq!(declared_name(b"function () {}"), None);
        assert_eq!(declared_name(b"functional()"), None);
        assert_eq!(declared_name(b"async () => 1"), None);
        assert_eq!(declared_name(b"class extends A {}"), None);
    }
}
