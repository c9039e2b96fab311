//! How deep the brackets of a source are nested, counted without a parser.

use crate::Language;
use crate::error::{ErrorKind, TransformError};
use crate::position::Lines;

/// How deep brackets of a source may be nested.
pub const MAX_NESTING: usize = 256;

/// How many `<` of TypeScript may stand open: the parser tries each of them as type arguments, in time and memory that
/// grow with the square.
const MAX_OPEN_ANGLES: usize = 128;

/// An open bracket.
struct Open {
    bracket: u8,
    /// A slash after its end begins a regular expression.
    regex_after: bool,
    /// `<` since the last end of a statement.
    angles: usize,
}

impl Open {
    const fn new(bracket: u8, regex_after: bool) -> Self {
        Self { bracket, regex_after, angles: 0 }
    }
}

/// Refuses brackets that are nested too deep.
///
/// It reads code, strings, templates, comments and regular expressions. Where it takes a division for a regular
/// expression or the reverse, it miscounts the brackets of one line; the stack has room for that.
pub(crate) fn check_nesting(source: &str, language: Language) -> Result<(), TransformError> {
    let mut count = Count {
        bytes: source.as_bytes(),
        at: 0,
        typescript: language == Language::TypeScript,
        open: Vec::new(),
        top: Open::new(0, true),
        regex: true,
        conditional: false,
    };
    while count.at < count.bytes.len() {
        let start = count.at;
        count.token();
        if count.open.len() > MAX_NESTING || count.top.angles > MAX_OPEN_ANGLES {
            return Err(TransformError::new(
                ErrorKind::TooDeep,
                format!("the source is nested deeper than {MAX_NESTING} levels"),
                Lines::new(source).position(start),
            ));
        }
    }
    Ok(())
}

/// Where the count is.
struct Count<'s> {
    bytes: &'s [u8],
    at: usize,
    typescript: bool,
    /// The brackets around the innermost one.
    open: Vec<Open>,
    /// The innermost open bracket, or the whole source.
    top: Open,
    /// A slash begins a regular expression.
    regex: bool,
    /// The last word was one that a condition follows.
    conditional: bool,
}

impl Count<'_> {
    fn next(&self) -> Option<u8> {
        self.bytes.get(self.at + 1).copied()
    }

    fn push(&mut self, open: Open) {
        self.open.push(std::mem::replace(&mut self.top, open));
    }

    /// Reads one token, or what is between two.
    fn token(&mut self) {
        let (start, byte) = (self.at, self.bytes[self.at]);
        match (byte, self.next()) {
            (b' ' | b'\t' | b'\n' | b'\r', _) => {
                self.at += 1;
                return;
            }
            (b'/', Some(b'/')) => {
                let rest = &self.bytes[start..];
                self.at = memchr::memchr2(b'\n', b'\r', rest).map_or(self.bytes.len(), |end| start + end);
                return;
            }
            (b'/', Some(b'*')) => {
                let rest = &self.bytes[start + 2..];
                self.at = memchr::memmem::find(rest, b"*/").map_or(self.bytes.len(), |end| start + end + 4);
                return;
            }
            _ if is_word(byte) => {
                self.word();
                return;
            }
            _ => {}
        }
        let conditional = std::mem::take(&mut self.conditional);
        self.at += 1;
        match byte {
            b'/' if self.regex => {
                let end = regex_end(self.bytes, self.at);
                self.at = end.unwrap_or(self.at);
                self.regex = end.is_none();
            }
            b'"' | b'\'' => {
                self.at = string_end(self.bytes, self.at, byte);
                self.regex = false;
            }
            b'`' => self.template(),
            b'(' | b'[' | b'{' => {
                let regex_after = match byte {
                    b'(' => conditional,
                    b'[' => false,
                    // An object where an expression is expected, a block elsewhere.
                    _ => !(self.regex && preceded_by_operator(self.bytes, start)),
                };
                self.push(Open::new(byte, regex_after));
                self.regex = true;
            }
            b')' | b']' | b'}' => self.close(byte),
            b'<' => {
                self.top.angles += usize::from(self.typescript);
                self.regex = true;
            }
            b'>' => {
                if self.bytes[..start].last() != Some(&b'=') {
                    self.top.angles = self.top.angles.saturating_sub(1);
                }
                self.regex = true;
            }
            b';' => {
                self.top.angles = 0;
                self.regex = true;
            }
            // After `a++` comes a division, after `++` an operand; the first is the likelier before a slash.
            b'+' | b'-' if self.bytes.get(self.at) == Some(&byte) => {
                self.at += 1;
                self.regex = false;
            }
            _ => self.regex = true,
        }
    }

    fn close(&mut self, bracket: u8) {
        let Some(around) = self.open.pop() else {
            self.regex = true;
            return;
        };
        let closed = std::mem::replace(&mut self.top, around);
        self.regex = closed.regex_after;
        if bracket == b'}' && closed.bracket == b'`' {
            self.template();
        }
    }

    /// The text of a template, up to its end or the next hole.
    fn template(&mut self) {
        let (end, hole) = template_end(self.bytes, self.at);
        self.at = end;
        self.regex = hole;
        if hole {
            self.push(Open::new(b'`', false));
        }
    }

    fn word(&mut self) {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(|&byte| is_word(byte)) {
            self.at += 1;
        }
        let word = &self.bytes[start..self.at];
        let property = self.bytes[..start].last() == Some(&b'.');
        self.conditional = !property && matches!(word, b"if" | b"while" | b"for" | b"with");
        self.regex = !property && is_operator_word(word);
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'\\' | b'#' | 0x80..)
}

/// A word that an operand follows.
fn is_operator_word(word: &[u8]) -> bool {
    matches!(
        word,
        b"return"
            | b"typeof"
            | b"case"
            | b"do"
            | b"else"
            | b"in"
            | b"of"
            | b"instanceof"
            | b"new"
            | b"void"
            | b"delete"
            | b"throw"
            | b"await"
            | b"yield"
            | b"default"
            | b"extends"
    )
}

fn preceded_by_operator(bytes: &[u8], at: usize) -> bool {
    let before = bytes[..at].trim_ascii_end();
    match before.last() {
        Some(b'>') => !before.ends_with(b"=>"),
        Some(b'(' | b'[' | b',' | b'=' | b'?' | b'&' | b'|' | b'+' | b'-' | b'*' | b'!' | b'~' | b'.') => {
            true
        }
        Some(b'n') => before.ends_with(b"return"),
        _ => false,
    }
}

fn string_end(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\\' => at += 1,
            b'\n' => return at,
            _ if byte == quote => return at,
            _ => {}
        }
    }
    bytes.len()
}

/// The end of a template's text, and whether a hole begins there.
fn template_end(bytes: &[u8], mut at: usize) -> (usize, bool) {
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\\' => at += 1,
            b'`' => return (at, false),
            b'$' if bytes.get(at) == Some(&b'{') => return (at + 1, true),
            _ => {}
        }
    }
    (bytes.len(), false)
}

/// The end of a regular expression without its flags, if it ends on its line.
fn regex_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut class = false;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 1,
            b'\n' | b'\r' => return None,
            b'[' => class = true,
            b']' => class = false,
            b'/' if !class => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(source: &str) -> bool {
        check_nesting(source, Language::TypeScript).is_ok()
    }

    #[test]
    fn brackets_in_text_are_not_counted() {
        let many = "(".repeat(MAX_NESTING + 1);
        for source in [
            format!("'{many}'"),
            format!("\"{many}\""),
            format!("`{many}`"),
            format!("`${{1}}{many}`"),
            format!("// {many}\n1"),
            format!("/* {many} */ 1"),
            format!("x = /[{many}]/"),
            format!("if (x) /[{many}]/.test(y)"),
            format!("{{}} /[{many}]/.test(y)"),
        ] {
            assert!(depth(&source), "{source}");
        }
    }

    #[test]
    fn brackets_of_code_are_counted() {
        let many = "(".repeat(MAX_NESTING + 1);
        for source in [
            many.clone(),
            format!("a / {many} / b"),
            format!("x = {{}} / {many} / 1"),
            format!("(x) / {many} / b"),
            format!("a++ / {many} / b"),
            format!("`${{{many}"),
            "`${".repeat(MAX_NESTING + 1),
            "[".repeat(MAX_NESTING + 1),
            "{".repeat(MAX_NESTING + 1),
            "a<".repeat(MAX_OPEN_ANGLES + 1),
        ] {
            assert!(!depth(&source), "{source}");
        }
    }

    #[test]
    fn the_limit_itself_is_allowed() {
        assert!(depth(&format!("{}1{}", "(".repeat(MAX_NESTING), ")".repeat(MAX_NESTING))));
        assert!(depth(&"a<b;".repeat(MAX_OPEN_ANGLES * 2)));
        assert!(depth(&"let a: A<B>\n".repeat(MAX_OPEN_ANGLES * 2)));
    }
}
